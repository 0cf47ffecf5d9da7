//! How values and lists of them are said: bounded, fit for a terminal, without what may be a secret.

use crate::rules::problems::quoted;

/// How many names of a list are said.
const MOST_NAMED: usize = 8;

/// How much of a value is said, in characters.
const LONGEST: usize = 120;

/// "a, b and c", or "a, b and 31 more networks".
pub(super) fn and_more(named: &[String], more: usize, what: &str) -> String {
    let more = match (more, named.is_empty()) {
        (0, _) => None,
        (more, true) => Some(format!("{more} {what}{}", if more == 1 { "" } else { "s" })),
        (more, false) => Some(format!("{more} more {what}{}", if more == 1 { "" } else { "s" })),
    };
    let all: Vec<&str> = named.iter().map(String::as_str).chain(more.as_deref()).collect();
    match all.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

/// Names, the first few of them said; `quote` puts them between backticks.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>, what: &str, quote: bool) -> (String, usize) {
    let mut rest = names.into_iter();
    let shown = |name| if quote { quoted(name) } else { plain(name) };
    let first: Vec<String> = rest.by_ref().take(MOST_NAMED).map(shown).collect();
    let more = rest.count();
    (and_more(&first, more, what), first.len() + more)
}

/// A text of the operator's, control characters escaped, the overlong cut.
pub(super) fn plain(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    // Quotes and backslashes are harmless, and patterns are full of them.
    shown = shown.replace("\\\"", "\"").replace("\\'", "'").replace("\\\\", "\\");
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A URL without what may be a secret: what stands before its host, and its query.
pub(super) fn url(text: &str) -> String {
    let (before, query) = match text.find(['?', '#']) {
        // Whether what is before it is a host or the start of a password is not for guessing.
        Some(at) if text[at..].contains('@') => (text.split_once("://").map_or("", |(scheme, _)| scheme), "://***"),
        Some(at) => (&text[..at], "?***"),
        None => (text, ""),
    };
    let Some((scheme, rest)) = before.split_once("://") else { return format!("{}{query}", plain(before)) };
    let host = match rest.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => rest.to_owned(),
    };
    plain(&format!("{scheme}://{host}")) + query
}

/// "old -> new"; what looks the same and is not is called another one.
pub(super) fn arrow(old: &str, new: &str) -> String {
    if old == new { format!("{new} is another one now") } else { format!("{old} -> {new}") }
}

/// "is", or "are" for several.
pub(super) const fn is(several: bool) -> &'static str {
    if several { "are" } else { "is" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let said = |count| listed(names(count).iter().map(String::as_str), "shop", false).0;
        assert_eq!(said(0), "");
        assert_eq!(said(1), "0");
        assert_eq!(said(3), "0, 1 and 2");
        assert_eq!(said(9), "0, 1, 2, 3, 4, 5, 6, 7 and 1 more shop");
        assert_eq!(said(10), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more shops");
    }

    #[test]
    fn urls_are_shown_without_credentials() {
        for (text, shown) in [
            ("https://a.example/x", "https://a.example/x"),
            ("https://u:p@a.example/x", "https://***@a.example/x"),
            ("https://a.example/x?token=abc#d", "https://a.example/x?***"),
            ("https://a.example/x#abc", "https://a.example/x?***"),
            ("https://u:p?w@a.example/x", "https://***"),
            ("embedded", "embedded"),
            ("https://a/\u{7}", "https://a/\\u{7}"),
        ] {
            assert_eq!(url(text), shown);
        }
    }
}
