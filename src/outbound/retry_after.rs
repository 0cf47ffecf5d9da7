//! Parses `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.

use std::time::Duration;

use crate::domain::UnixMillis;

/// Returns the wait that the header's text requests; `None` if it is malformed.
pub(super) fn parse(text: &str, now: UnixMillis) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Longer numbers amount to for ever; the caller limits the wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let moment = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(now.until(UnixMillis(moment.as_millisecond())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_moments() {
        // 1994-11-06T08:49:37Z, the RFC's own example.
        let now = UnixMillis(784_111_777_000 - 90_000);
        for (text, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(u64::from(u32::MAX))),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(90)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(parse(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
