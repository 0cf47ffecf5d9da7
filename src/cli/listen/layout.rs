//! JSON text written otherwise: the same tokens in the same order, other spaces.

use serde::de::IgnoredAny;

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No spaces.
    Compact,
    /// A space after each comma and colon, as Python writes it.
    Spaced,
    /// Each member on a line of its own, indented by so many spaces a level.
    Indented(usize),
}

/// A JSON text in another layout; `None` when it is not one JSON value in UTF-8. Members keep their order and values
/// their spelling.
#[must_use]
pub fn laid_out(json: &[u8], layout: Layout) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(json).ok()?;
    let text = std::str::from_utf8(json).ok()?;
    let mut writer = Writer { out: String::with_capacity(text.len()), layout, depth: 0, opened: false };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' { string_length(rest) } else { first.len_utf8() };
        let (token, after) = rest.split_at(length);
        writer.token(token);
        rest = after;
    }
    Some(writer.out)
}

/// The length of the string that the text begins with, its quotes included, in bytes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

struct Writer {
    out: String,
    layout: Layout,
    depth: usize,
    /// The last token opened an object or a list, which may be empty.
    opened: bool,
}

impl Writer {
    fn token(&mut self, token: &str) {
        match token {
            " " | "\t" | "\n" | "\r" => return,
            "}" | "]" => {
                if !self.opened {
                    self.depth = self.depth.saturating_sub(1);
                    self.new_line();
                }
                self.opened = false;
                self.out.push_str(token);
                return;
            }
            _ => {}
        }
        if self.opened {
            self.depth += 1;
            self.new_line();
        }
        self.opened = matches!(token, "{" | "[");
        self.out.push_str(token);
        match token {
            "," if self.layout == Layout::Spaced => self.out.push(' '),
            "," => self.new_line(),
            ":" if self.layout != Layout::Compact => self.out.push(' '),
            _ => {}
        }
    }

    fn new_line(&mut self) {
        if let Layout::Indented(spaces) = self.layout {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', spaces * self.depth));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_and_spaces_change() {
        let json = br#" { "b":[1.50 ,2e1,{ },[ ]], "a":"x: {\"\\\\, y" , "c":null}  "#;
        assert_eq!(laid_out(json, Layout::Compact).unwrap(), r#"{"b":[1.50,2e1,{},[]],"a":"x: {\"\\\\, y","c":null}"#);
        assert_eq!(
            laid_out(json, Layout::Spaced).unwrap(),
            r#"{"b": [1.50, 2e1, {}, []], "a": "x: {\"\\\\, y", "c": null}"#
        );
        assert_eq!(
            laid_out(json, Layout::Indented(2)).unwrap(),
            "{\n  \"b\": [\n    1.50,\n    2e1,\n    {},\n    []\n  ],\n  \"a\": \"x: {\\\"\\\\\\\\, y\",\n  \"c\": null\n}"
        );
        for scalar in ["7", "\"\\\\\"", "null", "[]", "\"\u{e9}\\\"\""] {
            assert_eq!(laid_out(scalar.as_bytes(), Layout::Indented(2)).unwrap(), scalar);
        }
    }

    #[test]
    fn what_is_no_json_has_no_layout() {
        for text in [&b""[..], b"{", b"{} {}", b"order_id=1", b"\"\xff\"", b"{\"a\":1,}"] {
            assert_eq!(laid_out(text, Layout::Compact), None);
        }
    }
}
