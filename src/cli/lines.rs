//! Reads order ids from a text file, one per line, in bounded memory.

use std::io::{self, BufRead, Read as _};

use crate::domain::{InvalidValue, OrderId, wide};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How many bytes of a line are kept: 255 characters of four bytes each, a byte order mark and a CR. A longer line
/// cannot be an order id.
const MAX_LINE_BYTES: usize = BYTE_ORDER_MARK.len() + 255 * 4 + 1;

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The line's number, from 1.
    pub number: u64,
    /// The parsed content.
    pub content: LineContent,
}

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum LineContent {
    /// The line is empty.
    Blank,
    /// The line is a valid id.
    Id(OrderId),
    /// The line is not a valid id, for this reason.
    Flawed(InvalidValue),
}

/// Reads lines. A line ends with LF or CRLF, or, the last one, with the file. A byte order mark at the start of the
/// file is dropped; nothing else is trimmed.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    number: u64,
    kept: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Creates a reader for a file, from its start.
    pub fn new(source: R) -> Self {
        Self { source, number: 0, kept: Vec::with_capacity(MAX_LINE_BYTES) }
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        let Some(whole) = self.read_bytes()? else { return Ok(None) };
        self.number += 1;
        let mut text = self.kept.as_slice();
        if self.number == 1 {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        // Also covers a file that was cut inside its last CRLF.
        text = text.strip_suffix(b"\r").unwrap_or(text);
        let content = match (whole, text) {
            (true, b"") => LineContent::Blank,
            (true, text) => content(text),
            (false, _) => LineContent::Flawed(InvalidValue::new("must be at most 255 characters")),
        };
        Ok(Some(Line { number: self.number, content }))
    }

    /// Reads the next line into `kept`, without its LF. Returns whether all of it was kept; `None` at the end of the
    /// file.
    fn read_bytes(&mut self) -> io::Result<Option<bool>> {
        self.kept.clear();
        let most = wide(MAX_LINE_BYTES) + 1;
        if self.source.by_ref().take(most).read_until(b'\n', &mut self.kept)? == 0 {
            return Ok(None);
        }
        let ended = self.kept.pop_if(|byte| *byte == b'\n').is_some();
        if !ended && self.kept.len() > MAX_LINE_BYTES {
            self.source.skip_until(b'\n')?;
            return Ok(Some(false));
        }
        Ok(Some(true))
    }
}

fn content(text: &[u8]) -> LineContent {
    let Ok(text) = std::str::from_utf8(text) else { return LineContent::Flawed(InvalidValue::new("must be UTF-8")) };
    OrderId::new(text).map_or_else(LineContent::Flawed, LineContent::Id)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use proptest::prelude::*;

    use super::*;

    fn lines(source: impl Read, buffer: usize) -> Vec<LineContent> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, source));
        let mut contents = Vec::new();
        while let Some(line) = lines.read().unwrap() {
            contents.push(line.content);
            assert_eq!(line.number, u64::try_from(contents.len()).unwrap());
        }
        contents
    }

    fn shown(bytes: &[u8]) -> Vec<String> {
        let show = |content| match content {
            LineContent::Blank => String::new(),
            LineContent::Id(id) => format!("={}", id.as_str()),
            LineContent::Flawed(invalid) => format!("!{}", invalid.reason()),
        };
        lines(bytes, 4096).into_iter().map(show).collect()
    }

    #[test]
    fn lines_are_ids() {
        assert_eq!(shown(b""), [""; 0]);
        assert_eq!(shown(b"a\nb"), ["=a", "=b"]);
        assert_eq!(shown(b"a\nb\n"), ["=a", "=b"]);
        assert_eq!(shown(b"a\r\nb\r\n\r\n\n"), ["=a", "=b", "", ""]);
        assert_eq!(shown(b"a\nb\r"), ["=a", "=b"]);
        assert_eq!(shown(b" a \n\t\n\rb\r\r\n"), ["= a ", "=\t", "=\rb\r"]);
        assert_eq!(shown("\u{feff}a\r\n\u{feff}b".as_bytes()), ["=a", "=\u{feff}b"]);
        assert_eq!(shown("\u{feff}".as_bytes()), [""]);
        assert_eq!(shown(b"\xff\na\0b"), ["!must be UTF-8", "!must not contain U+0000"]);
    }

    #[test]
    fn ids_are_measured_in_characters() {
        for character in ["a", "é", "😀"] {
            let longest = character.repeat(255);
            let text = format!("\u{feff}{longest}\r\n{longest}\r\n{longest}a\r\n{}\nb", character.repeat(10_000));
            let found = shown(text.as_bytes());
            let id = format!("={longest}");
            let long = "!must be at most 255 characters";
            assert_eq!(found, [id.as_str(), id.as_str(), long, long, "=b"]);
        }
    }

    proptest! {
        /// Arbitrary bytes, often mixed with those that the reader treats specially.
        #[test]
        fn buffers_may_end_anywhere(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just(b"\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"\r".to_vec()), Just(b"\0".to_vec()),
                    Just(BYTE_ORDER_MARK.to_vec()), Just("é".repeat(128).into_bytes()),
                    proptest::collection::vec(any::<u8>(), 0..40),
                ],
                0..40,
            ),
            buffer in 1_usize..50,
        ) {
            let bytes = parts.concat();
            let found = lines(bytes.as_slice(), buffer);
            prop_assert_eq!(&found, &lines(bytes.as_slice(), 1 << 20));
            let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let expected = if bytes.is_empty() { 0 } else { text.split(|byte| *byte == b'\n').count() };
            prop_assert_eq!(found.len(), expected);
        }
    }
}
