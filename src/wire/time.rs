//! Points in time as text: RFC 3339.

use jiff::Timestamp;

use crate::domain::UnixMillis;

/// A point in time in UTC with milliseconds, `2026-01-02T03:04:05.678Z`: as exact as it is stored, so that who reads it
/// can ask for that very moment. A time beyond the years that RFC 3339 can write is told as the last of them.
#[must_use]
pub fn rfc3339(at: UnixMillis) -> String {
    let earliest = -62_167_219_200_000; // 0000-01-01T00:00:00Z
    let latest = Timestamp::MAX.as_millisecond();
    let at = Timestamp::from_millisecond(at.0.clamp(earliest, latest)).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

/// Reads an RFC 3339 time. The parser knows more spellings than RFC 3339 has: ISO 8601's basic format, a space for the
/// `T`, annotations in brackets. They are no times here.
#[must_use]
pub fn read_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let separated = |at: usize, separators: &[u8]| bytes.get(at).is_some_and(|byte| separators.contains(byte));
    let shaped = (20..=40).contains(&bytes.len())
        && separated(4, b"-")
        && separated(7, b"-")
        && separated(10, b"Tt")
        && separated(13, b":")
        && separated(16, b":")
        && bytes.iter().all(|byte| byte.is_ascii_digit() || b"-+:.TtZz".contains(byte));
    if shaped { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
            (1_767_323_045_600, "2026-01-02T03:04:05.600Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(UnixMillis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same_millisecond(millis in -62_167_219_200_000_i64..253_402_207_200_000) {
            let text = rfc3339(UnixMillis(millis));
            prop_assert_eq!(read_rfc3339(&text).map(Timestamp::as_millisecond), Some(millis), "{}", text);
        }

        #[test]
        fn every_time_is_written_as_one(millis: i64) {
            let text = rfc3339(UnixMillis(millis));
            prop_assert!(read_rfc3339(&text).is_some(), "{}", text);
        }

        #[test]
        fn reading_never_panics(text in "[-+:.TtZz0-9 ]{0,45}|\\PC{0,45}") {
            let _ = read_rfc3339(&text);
        }
    }
}
