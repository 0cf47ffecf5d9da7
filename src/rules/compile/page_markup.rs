//! What a page is made of: its tags, as browsers tell them apart, and what may not be among them.

use crate::rules::problems::quoted;

/// A tag of a page.
#[derive(Debug)]
struct Tag<'h> {
    /// In small letters.
    name: String,
    closes: bool,
    /// Names in small letters, and values as they are written.
    attributes: Vec<(String, &'h str)>,
    /// What stands in an element that holds no tags.
    content: &'h str,
}

impl Tag<'_> {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn opens(&self, name: &str) -> bool {
        !self.closes && self.name == name
    }
}

/// What a page has to hold. Values are as the page writes them.
pub(super) struct Expected<'a> {
    /// The language's tag.
    pub lang: &'a str,
    /// The link to the merchant.
    pub return_url: Option<String>,
    /// Where the sandbox's form goes, on its page.
    pub form: Option<String>,
    /// When and where the page goes on by itself.
    pub refresh: Option<String>,
    /// Addresses that may stand anywhere.
    pub addresses: Vec<String>,
    /// The stylesheet.
    pub style: &'a str,
}

/// What is wrong with a page.
#[derive(Debug)]
pub(super) struct Fault {
    /// Half a sentence after the template's name.
    pub reason: String,
    /// What to look for in the template.
    pub near: Option<String>,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), near: None }
    }

    fn near(self, near: impl Into<String>) -> Self {
        Self { near: Some(near.into()), ..self }
    }
}

/// An attribute that stands in sample values: where it is found among a page's attributes, a value got out of its place.
pub(super) const STRAY_ATTRIBUTE: &str = "onstray";

const BLOCKED: &str = "the pages' Content-Security-Policy blocks it";

/// Elements that load, run or lead elsewhere.
const BLOCKED_ELEMENTS: &[&str] = &["applet", "base", "embed", "frame", "frameset", "iframe", "object", "script"];

/// Attributes whose addresses are loaded.
const LOADED: &[&str] = &["background", "data", "poster", "src", "srcset"];

/// Attributes whose addresses are gone to.
const FOLLOWED: &[&str] = &["action", "formaction", "href", "ping", "xlink:href"];

/// What is wrong with a page.
pub(super) fn faults(html: &str, expected: &Expected<'_>) -> Vec<Fault> {
    let tags = tags(html);
    let mut faults = Vec::new();
    if !html.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype html>")) {
        faults.push(Fault::new("must begin with `<!doctype html>`"));
    }
    let html_tag = tags.iter().find(|tag| tag.opens("html"));
    if html_tag.and_then(|tag| tag.attribute("lang")) != Some(expected.lang) {
        faults.push(Fault::new("must have `<html lang=\"{{ lang }}\">`: screen readers speak by it").near("<html"));
    }
    if let Some(url) = &expected.return_url
        && !tags.iter().any(|tag| tag.opens("a") && tag.attribute("href") == Some(url))
    {
        faults
            .push(Fault::new("must have a link `<a href=\"{{ return_url }}\">` on every page that has a return link"));
    }
    if let Some(action) = &expected.form {
        faults.extend(form_fault(&tags, action));
    }
    faults.extend(style_faults(&tags, expected.style));
    faults.extend(tags.iter().filter(|tag| !tag.closes).flat_map(|tag| tag_faults(tag, expected)));
    faults
}

/// The sandbox's form needs both of its buttons.
fn form_fault(tags: &[Tag<'_>], action: &str) -> Option<Fault> {
    let is_form = |tag: &Tag<'_>| {
        let posts = tag.attribute("method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
        tag.opens("form") && posts && tag.attribute("action") == Some(action)
    };
    let Some(form) = tags.iter().position(is_form) else {
        let reason = "must have `<form method=\"post\" action=\"{{ action }}\">` on the sandbox's page";
        return Some(Fault::new(reason).near("<form"));
    };
    let inside: Vec<&Tag<'_>> = tags[form + 1..].iter().take_while(|tag| tag.name != "form").collect();
    let has = |value: &str| {
        let is_button = |tag: &&&Tag<'_>| ["button", "input"].contains(&tag.name.as_str());
        let mut buttons = inside.iter().filter(is_button);
        buttons.any(|tag| tag.attribute("name") == Some("decision") && tag.attribute("value") == Some(value))
    };
    let missing = ["pay", "decline"].into_iter().find(|value| !has(value))?;
    let reason =
        format!("must have a `<button name=\"decision\" value=\"{missing}\">` in the form of the sandbox's page");
    Some(Fault::new(reason).near("<form"))
}

fn style_faults(tags: &[Tag<'_>], style: &str) -> Option<Fault> {
    let sheets: Vec<&Tag<'_>> = tags.iter().filter(|tag| tag.opens("style")).collect();
    match sheets.as_slice() {
        [sheet] if sheet.content == style => None,
        [] => Some(Fault::new("must have `<style>{{ style }}</style>`")),
        [_] => {
            let reason =
                "must have the stylesheet unchanged, as `<style>{{ style }}</style>`: it is allowed by its hash";
            Some(Fault::new(reason).near("<style"))
        }
        _ => Some(Fault::new(format!("must have one `<style>` alone: {BLOCKED}")).near("<style")),
    }
}

fn tag_faults(tag: &Tag<'_>, expected: &Expected<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let name = &tag.name;
    if BLOCKED_ELEMENTS.contains(&name.as_str()) {
        faults.push(
            Fault::new(format!("must not have {}: {BLOCKED}", quoted(&format!("<{name}>")))).near(format!("<{name}")),
        );
    }
    let is_meta = |name: &str| tag.attribute("http-equiv").is_some_and(|value| value.trim().eq_ignore_ascii_case(name));
    if is_meta("refresh") && tag.attribute("content") != expected.refresh.as_deref() {
        let reason = "may have no `http-equiv=\"refresh\"` but the one of `{{ refresh }}`, where there is one";
        faults.push(Fault::new(reason).near("http-equiv"));
    }
    for (attribute, value) in &tag.attributes {
        faults.extend(attribute_fault(name, attribute, value, expected));
    }
    faults
}

fn attribute_fault(tag: &str, attribute: &str, value: &str, expected: &Expected<'_>) -> Option<Fault> {
    let shown = quoted(attribute);
    if attribute.contains(STRAY_ATTRIBUTE) {
        let reason = "writes a value into a tag without quotes around it: what stands in it would become attributes";
        return Some(Fault::new(reason).near("={{"));
    }
    if attribute.starts_with("on") || ["style", "srcdoc"].contains(&attribute) {
        return Some(Fault::new(format!("must not have the attribute {shown}: {BLOCKED}")).near(attribute));
    }
    let small = value.trim().to_ascii_lowercase();
    let is_followed = FOLLOWED.contains(&attribute);
    if is_followed && small.starts_with("javascript:") {
        let reason = format!("must not have `javascript:` in the attribute {shown}: {BLOCKED}");
        return Some(Fault::new(reason).near("javascript:"));
    }
    let is_loaded = LOADED.contains(&attribute) || (tag == "link" && attribute == "href");
    if is_loaded && !small.starts_with("data:") {
        let reason = format!("may load nothing but `data:` URLs by the attribute {shown}: {BLOCKED}");
        return Some(Fault::new(reason).near(if value.is_empty() { attribute } else { value }));
    }
    // Named one by one: browsers read an address in more ways than can be told apart here.
    let stays = ["#", "mailto:", "tel:"].iter().any(|start| small.starts_with(start));
    if is_followed && !is_loaded && !stays && !expected.addresses.iter().any(|known| known == value) {
        let reason = format!(
            "may lead nowhere but to `return_url`, `here` and `action`, `#…`, `mailto:…` and `tel:…` by the attribute \
             {shown}: another origin would learn of the payment"
        );
        return Some(Fault::new(reason).near(value));
    }
    None
}

/// The tags of a page, without those in comments.
fn tags(html: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let closes = rest.starts_with("</");
        let inside = &rest[if closes { 2 } else { 1 }..];
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
            rest = inside;
            continue;
        }
        let (mut tag, after) = tag(inside, closes);
        rest = after;
        if !closes && ["script", "style", "textarea", "title"].contains(&tag.name.as_str()) {
            let end = find_small(rest, &format!("</{}", tag.name)).unwrap_or(rest.len());
            tag.content = &rest[..end];
            rest = &rest[end..];
        }
        tags.push(tag);
    }
    tags
}

/// Where a text of small ASCII letters stands first, in any case.
pub(super) fn find_small(text: &str, small: &str) -> Option<usize> {
    let (text, small) = (text.as_bytes(), small.as_bytes());
    if small.is_empty() {
        return None;
    }
    text.windows(small.len()).position(|window| window.eq_ignore_ascii_case(small))
}

const SPACE: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];

/// A tag from its name on, and what follows it.
fn tag(text: &str, closes: bool) -> (Tag<'_>, &str) {
    let end = text.find(|c: char| SPACE.contains(&c) || c == '/' || c == '>').unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut tag = Tag { name: name.to_ascii_lowercase(), closes, attributes: Vec::new(), content: "" };
    loop {
        rest = rest.trim_start_matches(|c: char| SPACE.contains(&c) || c == '/');
        if rest.is_empty() {
            return (tag, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (tag, after);
        }
        // A `=` in the first place belongs to the name.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let ends = |c: char| SPACE.contains(&c) || c == '/' || c == '>' || c == '=';
        let end = rest[first..].find(ends).map_or(rest.len(), |at| first + at);
        let (name, after) = rest.split_at(end);
        let spaced = after.trim_start_matches(SPACE);
        let (value, after) = match spaced.strip_prefix('=') {
            Some(value) => attribute_value(value.trim_start_matches(SPACE)),
            None => ("", after),
        };
        tag.attributes.push((name.to_ascii_lowercase(), value));
        rest = after;
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = text.find(|c: char| SPACE.contains(&c) || c == '>').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_told_apart_as_browsers_do() {
        let html = "<!doctype html><!-- <script> --><A HREF = 'x>y' b c=d/><style>a > b { } <i></STYLE ><br/>\
                    1 < 2 <3 </a><p/onclick=1>";
        let shown: Vec<String> = tags(html)
            .iter()
            .map(|tag| {
                format!("{}{} {:?} {}", if tag.closes { "/" } else { "" }, tag.name, tag.attributes, tag.content)
            })
            .collect();
        let expected = [
            "a [(\"href\", \"x>y\"), (\"b\", \"\"), (\"c\", \"d/\")] ",
            "style [] a > b { } <i>",
            "/style [] ",
            "br [] ",
            "/a [] ",
            "p [(\"onclick\", \"1\")] ",
        ];
        assert_eq!(shown, expected);
    }

    proptest::proptest! {
        #[test]
        fn no_page_is_too_odd(html in "[<>/=!\"' a-z\\-é]{0,200}") {
            proptest::prop_assert!(tags(&html).len() <= html.len());
        }
    }
}
