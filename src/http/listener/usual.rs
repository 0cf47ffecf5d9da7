//! The heads that nearly all clients send, judged without a parser: plain text, an origin's target, one `Host`, a
//! `Content-Length` or no body. Whatever is not certainly one of them is left to `head`, which parses it as hyper does and
//! finds the words to refuse it with; so everything here is stricter than it is there.

use memchr::memchr;

use super::authority;
use super::framing::Framing;
use super::head::{MAX_HEADERS, content_length, is_plain_target};

/// The framing of the body behind a head whose lines a scanner has found: each ends in CRLF, the last one is empty. `None`:
/// it has to be looked at more closely.
pub(super) fn framing(head: &[u8]) -> Option<Framing> {
    let (first, mut rest) = line(head)?;
    check_request_line(first)?;
    let (mut host, mut length) = (None, None);
    let mut lines = 1;
    loop {
        let (header, behind) = line(rest)?;
        lines += 1;
        rest = behind;
        if header.is_empty() {
            break;
        }
        let (name, value) = split(header)?;
        let found = match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => &mut host,
            14 if name.eq_ignore_ascii_case(b"content-length") => &mut length,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => return None,
            _ => continue,
        };
        if found.replace(value).is_some() {
            return None;
        }
    }
    // Nothing but the line ends is no plain text: then no value holds what a parser would refuse.
    let plain = rest.is_empty() && lines <= MAX_HEADERS && unprintable(head) == 2 * lines;
    if !plain || !authority::is_valid(host?) {
        return None;
    }
    length.map_or(Some(Framing::NONE), |length| content_length(length).map(Framing::Length))
}

/// The first line, without its end, and what is behind it.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, behind) = text.split_at(memchr(b'\n', text)? + 1);
    Some((line.strip_suffix(b"\r\n")?, behind))
}

fn check_request_line(line: &[u8]) -> Option<()> {
    let behind = line.strip_prefix(b"POST ").or_else(|| line.strip_prefix(b"GET "))?;
    is_plain_target(behind.strip_suffix(b" HTTP/1.1")?).then_some(())
}

/// A header's name and value.
fn split(header: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = header.iter().position(|byte| !is_of_name(*byte))?;
    let (name, value) = header.split_at(length);
    let value = value.strip_prefix(b":")?;
    (!name.is_empty()).then(|| (name, value.trim_ascii()))
}

/// Letters, digits, `-` and `_`: of all that may stand in a name, what does.
fn is_of_name(byte: u8) -> bool {
    static TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            byte += 1;
        }
        table
    };
    TABLE[usize::from(byte)]
}

/// How many bytes are neither printable ASCII nor a space. Counted in pieces whose count fits a byte, which takes many bytes
/// at a time.
fn unprintable(text: &[u8]) -> usize {
    let count = |piece: &[u8]| piece.iter().map(|byte| u8::from(!matches!(byte, b' '..=b'~'))).sum::<u8>();
    text.chunks(128).map(|piece| usize::from(count(piece))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::head::{Scan, Scanner, judge_parsed};
    use super::*;

    fn of(lines: &str) -> Option<Framing> {
        framing(format!("{lines}\r\n").as_bytes())
    }

    #[test]
    fn usual_heads_need_no_parser() {
        let post = "POST /api/v1/payin HTTP/1.1\r\nHost: localhost:8443\r\nX-Api-Key: a b\r\n";
        assert_eq!(of(post), Some(Framing::NONE));
        assert_eq!(of(&format!("{post}content-length:  17 \r\n")), Some(Framing::Length(17)));
        assert_eq!(of("GET /a?b=c HTTP/1.1\r\nhOST: [::1]:1\r\nempty:\r\n"), Some(Framing::NONE));
    }

    #[test]
    fn what_is_not_usual_is_looked_at_more_closely() {
        let with = |lines: &str| of(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}"));
        assert_eq!(with(""), Some(Framing::NONE));
        for lines in [
            "Host: a\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: \r\n",
            "a: b\u{e9}\r\n",
            "a: b\tc\r\n",
            "a: b\rc\r\n",
            "a: b\n",
            "a : b\r\n",
            " a: b\r\n",
            ": b\r\n",
            "a\r\n",
            "a!: b\r\n",
            "\r\na: b\r\n",
        ] {
            assert_eq!(with(lines), None, "{lines:?}");
        }
        assert!(with(&"a: b\r\n".repeat(MAX_HEADERS - 3)).is_some());
        assert!(with(&"a: b\r\n".repeat(MAX_HEADERS)).is_none());
        for request_line in
            ["PUT / HTTP/1.1", "GET / HTTP/1.0", "GET  / HTTP/1.1", "GET * HTTP/1.1", "GET /\u{e9} HTTP/1.1"]
        {
            assert_eq!(of(&format!("{request_line}\r\nHost: a\r\n")), None, "{request_line}");
        }
        for host in ["", "Host: \r\n", "Host: a b\r\n", "Host: a,b\r\n"] {
            assert_eq!(of(&format!("GET / HTTP/1.1\r\n{host}")), None, "{host:?}");
        }
    }

    /// A head made of pieces that parsers differ about.
    fn head() -> impl Strategy<Value = String> {
        let request_line = prop::sample::select(vec![
            "GET / HTTP/1.1",
            "POST /a?b=%20 HTTP/1.1",
            "POST /\"{} HTTP/1.1",
            "GET http://a/ HTTP/1.1",
            "GET / HTTP/1.0",
            "GET / HTTP/1.1 ",
        ]);
        let name = prop::sample::select(vec![
            "Host",
            "host",
            "content-length",
            "Content-Length",
            "Transfer-Encoding",
            "x",
            "Expect",
            "x ",
            "",
            "x!",
            "x\t",
        ]);
        let value = prop::sample::select(vec![
            "a", "a:1", "5", " 5 ", "\t5", "chunked", "", "\u{e9}", "a\u{7f}", "a\0", "a,b", "+5",
        ]);
        let separator = prop::sample::select(vec![":", ": ", ":\t", " :", ""]);
        let line =
            (name, separator, value).prop_map(|(name, separator, value)| format!("{name}{separator}{value}\r\n"));
        (request_line, prop::collection::vec(line, 0..6))
            .prop_map(|(request_line, lines)| format!("{request_line}\r\nHost: a\r\n{}\r\n", lines.concat()))
    }

    proptest! {
        /// Nothing passes here that the parser would refuse or frame otherwise.
        #[test]
        fn what_is_usual_is_what_the_parser_finds(head in head()) {
            let complete = Scanner::default().scan(head.as_bytes()) == Scan::Complete(head.len());
            if let Some(framing) = framing(head.as_bytes()).filter(|_| complete) {
                prop_assert_eq!(judge_parsed(head.as_bytes()).unwrap(), framing);
            }
        }

        #[test]
        fn bytes_of_any_kind_are_judged_alike(bytes in prop::collection::vec(any::<u8>(), 0..40), place in 0_usize..60) {
            let mut head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Name: value\r\n\r\n".to_vec();
            let place = place.min(head.len());
            head.splice(place..place, bytes);
            let complete = Scanner::default().scan(&head) == Scan::Complete(head.len());
            if let Some(framing) = framing(&head).filter(|_| complete) {
                prop_assert_eq!(judge_parsed(&head).unwrap(), framing);
            }
        }
    }
}
