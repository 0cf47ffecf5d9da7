//! Names in messages: how they are shown, and which known name was probably meant.

use std::fmt;

/// The longest name that is compared with others, in bytes.
const MAX_NAME_LENGTH: usize = 80;

/// Formats a name from a rule file for a message: control characters escaped, overlong names cut.
pub(crate) fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(MAX_NAME_LENGTH).flat_map(char::escape_debug).collect();
    let more = if name.chars().nth(MAX_NAME_LENGTH).is_some() { "..." } else { "" };
    format!("`{shown}{more}`")
}

/// Returns "did you mean `x`?" if one of the known names is similar.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    meant(name, known).map(|meant| format!("did you mean `{meant}`?"))
}

/// Returns the known name that was probably meant.
pub(crate) fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME_LENGTH {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let known = known.into_iter().filter(|candidate| candidate.len() <= MAX_NAME_LENGTH);
    let near = known.map(|candidate| (strsim::osa_distance(name, candidate), candidate));
    near.filter(|(distance, _)| *distance <= allowed).min().map(|(_, candidate)| candidate)
}

/// The longest masked name, in characters.
const LONGEST_MASKED: usize = 64;

/// Masks a name that only a caller has, for reports: it is cut, digits become `#`, and characters that are not printed
/// `\u{fffd}`.
pub(crate) fn masked(name: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_numeric() => '#',
        '\'' | '"' | '\\' => c,
        c if c.escape_debug().len() > 1 => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    name.chars().take(LONGEST_MASKED).map(shown).collect()
}

/// A member's name that a caller made up, fit to be shown back: overlong names, names with control
/// characters or invisible ones and names that could hold a card number are described instead of echoed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nameable<'a>(pub(crate) &'a str);

impl<'a> Nameable<'a> {
    /// Returns the name, or a placeholder for one that cannot be shown.
    #[must_use]
    pub(crate) fn shown(self) -> &'a str {
        let name = self.0;
        // Most names are lowercase ASCII; the others need more checks.
        let usual = name.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'.'));
        if usual && (1..=128).contains(&name.len()) {
            return name;
        }
        let shown = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() && c != '"' || c == ' ';
        let plain = (1..=128).contains(&name.chars().count()) && name.chars().all(shown) && name.trim() == name;
        let digits = name.chars().filter(|c| c.is_numeric()).count();
        if plain && digits < 12 { name } else { "(a member whose name cannot be shown)" }
    }
}

impl fmt::Display for Nameable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let known = ["default_shop", "name", "api_keys"];
        assert_eq!(did_you_mean("defalt_shop", known).as_deref(), Some("did you mean `default_shop`?"));
        assert_eq!(did_you_mean("nmae", known).as_deref(), Some("did you mean `name`?"));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(did_you_mean(&"a".repeat(81), ["a"]), None);
    }

    #[test]
    fn masked_names_are_short_and_hold_no_digit() {
        for (name, expected) in [
            ("bank_code", "bank_code"),
            ("line2 \"a\\b\"", "line# \"a\\b\""),
            ("4111\u{661}½é", "#####\u{23}é"),
            ("a\n\u{1b}[31m\u{202e}b", "a\u{fffd}\u{fffd}[##m\u{fffd}b"),
        ] {
            assert_eq!(masked(name), expected);
        }
        assert_eq!(masked(&"é".repeat(65)).chars().count(), 64);
    }
}
