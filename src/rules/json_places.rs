//! Where the members of a JSON text are, so that a problem of a schema can be pointed at.

use std::collections::HashSet;

use super::problems::Span;

/// The places of a text that was already parsed once: it is JSON, and its depth is bounded.
pub(super) struct Places {
    /// Members and elements, each with what is in it; the first one is the text as a whole.
    nodes: Vec<Node>,
    /// Keys that their object has twice.
    pub duplicates: Vec<(String, Span)>,
}

/// A member or an element.
#[derive(Default)]
struct Node {
    /// Of a member's key, or of an element.
    span: Span,
    /// What is in it, by key or index.
    inside: Vec<(String, usize)>,
}

impl Places {
    /// Finds the places of a valid JSON text.
    pub(super) fn of(text: &str) -> Self {
        let places = Self { nodes: vec![Node::default()], duplicates: Vec::new() };
        let mut scanner = Scanner { text, at: 0, within: 0, places };
        scanner.value();
        scanner.places
    }

    /// The place of a member, or of the nearest one above it that the text has.
    pub(super) fn nearest(&self, path: &[String]) -> Span {
        let mut node = &self.nodes[0];
        for step in path {
            // Of a key that is there twice the later one counts, as it does for the parser.
            match node.inside.iter().rev().find(|(name, _)| name == step) {
                Some((_, inside)) => node = &self.nodes[*inside],
                None => break,
            }
        }
        node.span.clone()
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The node that is being read.
    within: usize,
    places: Places,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn value(&mut self) {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                self.string();
            }
            _ => {
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().take_while(|byte| !matches!(byte, b',' | b'}' | b']')).count();
            }
        }
    }

    /// Passes a string and returns where it was.
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

    fn object(&mut self) {
        let mut seen = HashSet::new();
        self.at += 1;
        while let Some(b'"') = self.peek() {
            let span = self.string();
            let key: String = serde_json::from_str(&self.text[span.clone()]).unwrap_or_default();
            if !seen.insert(key.clone()) {
                self.places.duplicates.push((key.clone(), span.clone()));
            }
            self.pass(b':');
            let node = self.inside(key, Self::value);
            self.places.nodes[node].span = span;
            self.pass(b',');
        }
        self.pass(b'}');
    }

    fn array(&mut self) {
        self.at += 1;
        let mut index = 0;
        while self.peek().is_some_and(|byte| byte != b']') {
            let start = self.at;
            let node = self.inside(index.to_string(), Self::value);
            self.places.nodes[node].span = start..self.at;
            self.pass(b',');
            index += 1;
        }
        self.pass(b']');
    }

    /// Reads what belongs to a new node inside the one that is being read.
    fn inside(&mut self, name: String, read: impl FnOnce(&mut Self)) -> usize {
        let node = self.places.nodes.len();
        self.places.nodes.push(Node::default());
        let above = std::mem::replace(&mut self.within, node);
        self.places.nodes[above].inside.push((name, node));
        read(self);
        self.within = above;
        node
    }

    fn pass(&mut self, byte: u8) {
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
    fn keys_stated_twice_are_found() {
        let text = r#"{"a":{"x":1,"y":2,"x":3},"b":{"x":1}}"#;
        assert_eq!(Places::of(text).duplicates, [("x".to_owned(), 18..21)]);
    }
}
