//! The positions of members in a JSON text, for pointing at problems of a schema.

use std::collections::HashSet;

use super::problems::Span;

/// The positions in a text that was parsed before: it is valid JSON of bounded depth.
pub(super) struct Places {
    /// The text as a whole.
    root: Node,
    /// Keys that their object has twice.
    pub duplicates: Vec<(String, Span)>,
}

/// A member or an element.
struct Node {
    /// The span of a member's key, or of an element.
    span: Span,
    /// Its children, by key or index.
    children: Vec<(String, Node)>,
}

impl Places {
    /// Finds the positions in a valid JSON text.
    pub(super) fn of(text: &str) -> Self {
        let mut scanner = Scanner { text, at: 0, duplicates: Vec::new() };
        let root = Node { span: 0..0, children: scanner.value() };
        Self { root, duplicates: scanner.duplicates }
    }

    /// Returns the span of a member, or of its nearest ancestor that exists.
    pub(super) fn nearest(&self, path: &[String]) -> Span {
        let mut node = &self.root;
        for step in path {
            // Of duplicate keys the last one counts, as it does for the parser.
            match node.children.iter().rev().find(|(name, _)| name == step) {
                Some((_, child)) => node = child,
                None => break,
            }
        }
        node.span.clone()
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    duplicates: Vec<(String, Span)>,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().iter().skip(self.at);
        self.at += rest.take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes a value and returns what is in it.
    fn value(&mut self) -> Vec<(String, Node)> {
        match self.peek() {
            Some(b'{') => return self.object(),
            Some(b'[') => return self.array(),
            Some(b'"') => {
                self.string();
            }
            _ => {
                let rest = self.text.as_bytes().iter().skip(self.at);
                self.at += rest.take_while(|byte| !matches!(byte, b',' | b'}' | b']')).count();
            }
        }
        Vec::new()
    }

    /// Skips a string and returns its span.
    fn string(&mut self) -> Span {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
        start..self.at
    }

    fn object(&mut self) -> Vec<(String, Node)> {
        let (mut members, mut seen) = (Vec::new(), HashSet::new());
        self.at += 1;
        while let Some(b'"') = self.peek() {
            let span = self.string();
            let key: String = serde_json::from_str(&self.text[span.clone()]).unwrap_or_default();
            if !seen.insert(key.clone()) {
                self.duplicates.push((key.clone(), span.clone()));
            }
            self.skip(b':');
            let children = self.value();
            members.push((key, Node { span, children }));
            self.skip(b',');
        }
        self.skip(b'}');
        members
    }

    fn array(&mut self) -> Vec<(String, Node)> {
        let mut elements = Vec::new();
        self.at += 1;
        while self.peek().is_some_and(|byte| byte != b']') {
            let start = self.at;
            let children = self.value();
            elements.push((elements.len().to_string(), Node { span: start..self.at, children }));
            self.skip(b',');
        }
        self.skip(b']');
        elements
    }

    fn skip(&mut self, byte: u8) {
        if self.peek() == Some(byte) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_path() {
        let text = r#" { "a" : [ 1, {"b\"c": "x"} , [] ] , "d":true } "#;
        let places = Places::of(text);
        let at = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
            &text[places.nearest(&path)]
        };
        assert_eq!(at(&["a"]), "\"a\"");
        assert_eq!(at(&["a", "0"]), "1");
        assert_eq!(at(&["a", "1", "b\"c"]), r#""b\"c""#);
        assert_eq!(at(&["a", "1", "b\"c", "missing"]), r#""b\"c""#);
        assert_eq!(at(&["d"]), "\"d\"");
        assert!(places.duplicates.is_empty());
    }

    #[test]
    fn duplicate_keys_are_found() {
        let text = r#"{"a":{"x":1,"y":2,"x":3},"b":{"x":1}}"#;
        assert_eq!(Places::of(text).duplicates, [("x".to_owned(), 18..21)]);
    }
}
