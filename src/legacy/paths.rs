//! Which further paths are forwarded to the old v1 service: those that are below `[legacy] paths` in every reading that a
//! server may have of them (contract section 6). Servers decode a path once, twice or not at all, some split it at `\`, and
//! some drop parameters after `;`: one that is forwarded unclaimed must be a create to none of them.

/// Encoded separators, which some servers see only after they have compared the path with their routes, and NUL.
const FORBIDDEN: [&[u8]; 5] = [b"%3b", b"%3f", b"%23", b"%5c", b"%00"];

/// Reports whether a path, as sent, is below one of `prefixes` by whole segments, and stays there.
#[must_use]
pub fn is_forwarded(prefixes: &[Box<str>], path: &str) -> bool {
    let sent = path.as_bytes();
    let mut prefixes =
        prefixes.iter().map(|prefix| prefix.as_bytes()).filter(|prefix| is_below(prefix, sent)).peekable();
    if prefixes.peek().is_none() || !is_well_encoded(sent) {
        return false;
    }
    let once = decoded(sent);
    let twice = decoded(&once);
    [sent, &once, &twice].into_iter().all(is_plain)
        && prefixes.any(|prefix| is_below(prefix, &once) && is_below(prefix, &twice))
}

/// Reports whether a path is a prefix, or continues with another segment.
fn is_below(prefix: &[u8], path: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(prefix) else { return false };
    rest.is_empty() || prefix.ends_with(b"/") || rest.first().is_some_and(|byte| is_separator(*byte))
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Reports whether no server reads a path as another one: it has no dot segments, no empty ones but the last, no forbidden
/// escapes, no control characters, and no character in a longer form than its own.
fn is_plain(path: &[u8]) -> bool {
    let lower = path.to_ascii_lowercase();
    let is_forbidden = lower.windows(3).any(|escape| FORBIDDEN.contains(&escape));
    let has_controls = String::from_utf8_lossy(path).contains(char::is_control);
    let is_overlong = path
        .windows(2)
        .any(|pair| matches!(pair, [0xC0 | 0xC1, 0x80..=0xBF] | [0xE0, 0x80..=0x9F] | [0xF0, 0x80..=0x8F]));
    let mut names = path.get(1..).unwrap_or_default().split(|byte| is_separator(*byte)).map(name).rev();
    let last = names.next().unwrap_or_default();
    !is_forbidden
        && !has_controls
        && !is_overlong
        && !is_dots(last)
        && names.all(|name| !name.is_empty() && !is_dots(name))
}

/// Returns a segment without its parameters.
fn name(segment: &[u8]) -> &[u8] {
    segment.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Reports whether every `%` begins an escape: what servers make of others differs.
fn is_well_encoded(path: &[u8]) -> bool {
    let mut rests = path.split(|byte| *byte == b'%').skip(1);
    rests.all(|rest| matches!(rest, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()))
}

/// Decodes the escapes of a path once; a `%` that begins none stays.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = match behind {
            [high, low, ..] if first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (byte, length) = escaped.map_or((first, 1), |(high, low)| (high << 4 | low, 3));
        decoded.push(byte);
        rest = rest.get(length..).unwrap_or_default();
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwards(path: &str) -> bool {
        is_forwarded(&["/api/v1/refunds".into(), "/reports/".into()], path)
    }

    #[test]
    fn what_is_below_by_whole_segments_is_forwarded() {
        for path in [
            "/api/v1/refunds",
            "/api/v1/refunds/",
            "/api/v1/refunds/7",
            "/api/v1/refunds/7/",
            "/api/v1/refunds/SO%2F2026%2f12",
            "/api/v1/refunds/SO%2F12/lines",
            "/api/v1/refunds/100%25",
            "/api/v1/refunds/100%25free",
            "/api/v1/refunds/SO%252F12",
            "/api/v1/refunds/a.b/c;v=1",
            "/api/v1/refunds/..a/...",
            "/api/v1/refunds/caf%C3%A9",
            "/api/v1/refunds/caf%E9",
            "/api/v1/refunds/a%20b",
            "/api/v1/refunds\\7",
            "/reports/",
            "/reports/7",
        ] {
            assert!(forwards(path), "{path}");
        }
        for path in [
            "/api/v1/refunds-admin",
            "/api/v1/refundsx/7",
            "/api/v1/refunds;v=1",
            "/api/v1/refund",
            "/api/v1/Refunds/7",
            "/api/v1/%72efunds/7",
            "/api/v1/refunds%2F7",
            "/api/v1/payin",
            "/x/api/v1/refunds",
            "/reports",
            "/",
            "",
        ] {
            assert!(!forwards(path), "{path}");
        }
    }

    #[test]
    fn what_a_server_may_read_as_another_path_is_not() {
        for rest in [
            "..",
            ".",
            "../payin",
            "./7",
            "7/../../payin",
            "..;/payin",
            "..;a=1/payin",
            ".;/7",
            "%2e%2E/payin",
            ".%2e/payin",
            "%2e/7",
            "%2e%2e;x/payin",
            "..%2fpayin",
            "%2e%2e%2fpayin",
            "..%252fpayin",
            "%252e%252e/payin",
            "%252e%252e%252fpayin",
            "..\\payin",
            "7\\..\\..\\payin",
            "..%5cpayin",
            "..%255cpayin",
            "%5c",
            "%255C",
            ".. /payin",
            "..%20/payin",
            "/payin",
            "7//8",
            "%2fpayin",
            "%252fpayin",
            "7%2f%2f8",
            "7%2f/8",
            "\\payin",
            ";/payin",
            ";a=1/payin",
            "..%3b/payin",
            "..%3B/payin",
            "..%253b/payin",
            "7%3bv=1",
            "7%25253b",
            "7%3fa=1",
            "7%3Fa=1",
            "7%253f",
            "7%23",
            "7%2523",
            "%00",
            "7%00",
            "7%2500",
            "7%0a",
            "7%0D%0A",
            "7%250a",
            "7%09",
            "7%1f",
            "7%7f",
            "7%257F",
            "7%c2%85",
            "%c0%ae%c0%ae/payin",
            "..%c0%afpayin",
            "%e0%80%ae/7",
            "%f0%80%80%ae/7",
            "%25c0%25ae%25c0%25ae/payin",
            "%u002e%u002e/payin",
            "%",
            "7%",
            "7%2",
            "7%zz",
            "%%32%65/payin",
        ] {
            let path = format!("/api/v1/refunds/{rest}");
            assert!(!forwards(&path), "{path}");
        }
    }

    #[test]
    fn escapes_are_decoded_once() {
        for (sent, expected) in [
            ("a%2Fb", "a/b"),
            ("%252F", "%2F"),
            ("100%", "100%"),
            ("%2", "%2"),
            ("%zz%41", "%zzA"),
            ("", ""),
            ("%C3%A9", "é"),
        ] {
            assert_eq!(decoded(sent.as_bytes()), expected.as_bytes(), "{sent}");
        }
    }
}
