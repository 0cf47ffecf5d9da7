//! Where the members of a JSON text are, so that a problem of a schema can be pointed at.

use std::collections::{HashMap, HashSet};

use super::problems::Span;

/// The places of a text that was already parsed once: it is JSON, and its depth is bounded.
#[derive(Default)]
pub(super) struct Places {
    /// Of each member's key and each element, by the keys and indices that lead there.
    places: HashMap<Vec<String>, Span>,
    /// Keys that their object has twice.
    pub duplicates: Vec<(String, Span)>,
}

impl Places {
    /// Finds the places of a valid JSON text.
    pub fn of(text: &str) -> Self {
        let mut scanner = Scanner { text, at: 0, path: Vec::new(), places: Self::default() };
        scanner.value();
        scanner.places
    }

    /// The place of a member, or of the nearest one above it that the text has.
    pub fn nearest(&self, path: &[String]) -> Span {
        let above = (0..=path.len()).rev().find_map(|length| self.places.get(&path[..length]));
        above.cloned().unwrap_or(0..0)
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    path: Vec<String>,
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
            self.path.push(key);
            self.places.places.insert(self.path.clone(), span);
            self.pass(b':');
            self.value();
            self.path.pop();
            self.pass(b',');
        }
        self.pass(b'}');
    }

    fn array(&mut self) {
        self.at += 1;
        let mut index = 0;
        while self.peek().is_some_and(|byte| byte != b']') {
            let start = self.at;
            self.path.push(index.to_string());
            self.value();
            self.places.places.insert(self.path.clone(), start..self.at);
            self.path.pop();
            self.pass(b',');
            index += 1;
        }
        self.pass(b']');
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
    fn keys_said_twice_are_found() {
        let text = r#"{"a":{"x":1,"y":2,"x":3},"b":{"x":1}}"#;
        assert_eq!(Places::of(text).duplicates, [("x".to_owned(), 18..21)]);
    }
}
