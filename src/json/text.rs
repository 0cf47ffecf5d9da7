//! The text of JSON strings: what needs an escape, and how it is written.

/// Appends `text` to `out` as a JSON string with quotes.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest.as_bytes()));
        out.push_str(plain);
        // Plain text ends at a byte of ASCII, or at the end.
        let Some(byte) = special.bytes().next() else { break };
        write_escape(out, byte);
        rest = &special[1..];
    }
    out.push('"');
}

fn write_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        other => {
            out.push_str("\\u00");
            out.push(char::from(b'0' + (other >> 4)));
            out.push(char::from_digit(u32::from(other & 0xf), 16).unwrap_or('0'));
        }
    }
}

/// Returns how many of the first bytes need no escape in a string: they are neither a quotation mark, a backslash nor a
/// control character. Checks eight bytes at a time, since nearly all text is of this kind.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST_BITS: u64 = ONES << 7;
    // The subtraction borrows from the highest bit of a byte that is below `limit`. A borrow may carry into later
    // bytes, never into earlier ones, so the first byte found is correct.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHEST_BITS;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            #[expect(clippy::as_conversions, reason = "at most 64, and `usize::from` takes no `u32`")]
            let bits = found.trailing_zeros() as usize;
            return index * 8 + bits / 8;
        }
    }
    let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
    words.len() * 8 + rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Node, read};

    proptest! {
        #[test]
        fn written_strings_are_read_back(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
            let mut out = String::new();
            write_string(&mut out, &text);
            prop_assert_eq!(read(out.as_bytes()).unwrap().node, Node::String(text.into()));
        }
    }
}
