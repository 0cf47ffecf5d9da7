//! As much of HTML as the tests need: elements with their attributes, and text.

/// A start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// What a stylesheet or script holds, as it stands.
    pub raw: String,
}

impl Element {
    /// The decoded value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A page, read from beginning to end.
#[derive(Debug)]
pub struct Document {
    pub elements: Vec<Element>,
    /// Every tag in order, closing ones with their slash, with the names of its attributes.
    pub shape: Vec<String>,
    text: String,
}

impl Document {
    /// Reads a page whose tags are written with care: every attribute's value stands in double quotes or is missing.
    #[track_caller]
    pub fn parse(html: &str) -> Self {
        let mut document = Self { elements: Vec::new(), shape: Vec::new(), text: String::new() };
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            document.text.push_str(&decoded(&rest[..at]));
            let (tag, after) = split_tag(&rest[at + 1..]);
            rest = after;
            if tag.starts_with('!') {
                document.shape.push("!".to_owned());
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                document.shape.push(format!("/{}", name.trim()));
                continue;
            }
            let mut element = element(tag);
            let names: Vec<_> = element.attributes.iter().map(|(name, _)| name.as_str()).collect();
            document.shape.push(format!("{} {}", element.name, names.join(" ")));
            if ["style", "script"].contains(&&element.name[..]) {
                let end = rest.find(&format!("</{}", element.name)).expect("its end");
                rest[..end].clone_into(&mut element.raw);
                rest = &rest[end..];
            }
            document.elements.push(element);
        }
        document.text.push_str(&decoded(rest));
        document
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }

    /// The one element of this name.
    #[track_caller]
    pub fn only(&self, name: &str) -> &Element {
        let found: Vec<_> = self.elements.iter().filter(|element| element.name == name).collect();
        let [element] = found[..] else { panic!("not exactly one <{name}>: {found:?}") };
        element
    }

    /// The text of the page, white space as it stands.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The return links that it offers: path and query, or whole.
    pub fn return_links(&self) -> Vec<&str> {
        let links = self.all("a").filter_map(|link| link.attribute("href"));
        links.filter(|link| link.contains("/return/")).collect()
    }

    /// Path and query of the one return link.
    #[track_caller]
    pub fn return_link(&self) -> String {
        let links = self.return_links();
        let [link] = links[..] else { panic!("not exactly one return link: {links:?}") };
        if link.starts_with('/') { link.to_owned() } else { crate::pages::target(link) }
    }

    /// Asserts that it shows the amount and the currency, the amount also as programs read it.
    #[track_caller]
    pub fn assert_shows(&self, value: &str, currency: &str) {
        let values = self.elements.iter().filter_map(|element| element.attribute("value"));
        assert!(values.into_iter().any(|known| known == value), "no value={value:?}");
        assert!(self.text.contains(currency), "no {currency} in {}", self.text);
    }
}

/// A tag without its brackets, and what follows it.
#[track_caller]
fn split_tag(rest: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return (&rest[..at], &rest[at + 1..]),
            _ => {}
        }
    }
    panic!("a tag without an end: {rest}");
}

#[track_caller]
fn element(tag: &str) -> Element {
    let tag = tag.trim_end_matches('/');
    let (name, mut rest) = tag.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((tag, ""));
    let name = name.to_ascii_lowercase();
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !name.is_empty(), "<{tag}>");
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Element { name, attributes, raw: String::new() };
        }
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let attribute = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let (inside, after) = quoted.split_once('"').expect("a value's end");
            value = decoded(inside);
            rest = after;
        } else {
            assert!(!rest.starts_with('='), "a value without double quotes: <{tag}>");
        }
        attributes.push((attribute, value));
    }
}

/// Text with its character references resolved; an ampersand that begins none is a mistake.
#[track_caller]
fn decoded(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let (reference, after) = rest[at + 1..].split_once(';').unwrap_or_else(|| panic!("a bare & in {text:?}"));
        decoded.push(match reference {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => '\u{a0}',
            _ => character(reference).unwrap_or_else(|| panic!("&{reference}; in {text:?}")),
        });
        rest = after;
    }
    decoded + rest
}

fn character(reference: &str) -> Option<char> {
    let number = reference.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}
