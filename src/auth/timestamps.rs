//! Formats and checks the timestamps of v1 requests, which must lie within a window around now (contract section 4,
//! `window`).

use std::time::Duration;

use crate::domain::UnixMillis;
use crate::rules::{Recipe, TimestampFormat};
use crate::wire::time::{read_rfc3339, rfc3339};

/// Reports whether the text of a timestamp header is a time within the recipe's window around `now`, both ends
/// included. Malformed text is not.
#[must_use]
pub fn is_fresh(recipe: &Recipe, text: &[u8], now: UnixMillis) -> bool {
    let Some(text) = std::str::from_utf8(text).ok() else { return false };
    // Whole seconds are compared with whole seconds, so that a caller that truncates does not lose up to a second of
    // its window.
    let distance = match recipe.timestamp_format {
        TimestampFormat::Unix => {
            parse_digits(text).map(|seconds| difference(seconds, now.seconds(), Duration::from_secs))
        }
        TimestampFormat::UnixMillis => {
            parse_digits(text).map(|millis| difference(millis, now.0, Duration::from_millis))
        }
        TimestampFormat::Rfc3339 => {
            read_rfc3339(text).map(|time| difference(time.as_millisecond(), now.0, Duration::from_millis))
        }
    };
    distance.is_some_and(|distance| distance <= recipe.window)
}

/// Formats a time for a timestamp header.
#[must_use]
pub fn format(format: TimestampFormat, at: UnixMillis) -> String {
    match format {
        TimestampFormat::Unix => at.seconds().to_string(),
        TimestampFormat::UnixMillis => at.0.to_string(),
        TimestampFormat::Rfc3339 => rfc3339(at),
    }
}

fn difference(one: i64, other: i64, unit: fn(u64) -> Duration) -> Duration {
    unit(one.abs_diff(other))
}

/// Parses 1 to 18 digits: no sign, no fraction, no spaces, no leading zero.
fn parse_digits(text: &str) -> Option<i64> {
    let plain = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = plain && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::rules::{Algorithm, Encoding};

    /// 2025-01-01T00:00:00.900Z.
    const NOW: UnixMillis = UnixMillis(1_735_689_600_900);

    fn fresh(timestamp_format: TimestampFormat, text: &str) -> bool {
        let recipe = Recipe {
            api_key: HeaderName::from_static("x-api-key"),
            signature: HeaderName::from_static("x-signature"),
            timestamp: HeaderName::from_static("x-timestamp"),
            timestamp_format,
            window: Duration::from_mins(5),
            payload: Vec::new(),
            algorithm: Algorithm::HmacSha256,
            encoding: Encoding::Hex,
        };
        is_fresh(&recipe, text.as_bytes(), NOW)
    }

    #[test]
    fn the_window_lies_either_side_of_now() {
        for (format, inside, outside) in [
            (
                TimestampFormat::Unix,
                ["1735689600", "1735689300", "1735689900"],
                ["1735689299", "1735689901", "1735689600900"],
            ),
            (
                TimestampFormat::UnixMillis,
                ["1735689600900", "1735689300900", "1735689900900"],
                ["1735689300899", "1735689900901", "1735689600"],
            ),
            (
                TimestampFormat::Rfc3339,
                ["2025-01-01T00:00:00Z", "2025-01-01T02:04:00.5+02:00", "2024-12-31t23:55:00.900z"],
                ["2024-12-31T23:55:00.899Z", "2025-01-01T00:05:00.901Z", "2025-01-01T00:00:00+01:00"],
            ),
        ] {
            for text in inside {
                assert!(fresh(format, text), "{format:?} {text}");
            }
            for text in outside {
                assert!(!fresh(format, text), "{format:?} {text}");
            }
        }
    }

    #[test]
    fn clients_spell_the_same_time_differently() {
        for text in [
            "2025-01-01T00:00:00.9Z",
            "2025-01-01t00:00:00.900000z",
            "2025-01-01T00:00:00.900000000Z",
            "2025-01-01T00:00:00.900+00:00",
            "2025-01-01T00:00:00.900-00:00",
            "2025-01-01T05:45:00.900+05:45",
            "2024-12-31T14:00:00.900-10:00",
            "2024-12-31T14:00:00.900-1000",
        ] {
            assert_eq!(read_rfc3339(text).unwrap().as_millisecond(), NOW.0, "{text}");
        }
        // A leap second is the last one of its minute.
        assert_eq!(read_rfc3339("2016-12-31T23:59:60Z"), read_rfc3339("2016-12-31T23:59:59Z"));
    }

    #[test]
    fn distant_times_are_outside_the_window() {
        for (format, texts) in [
            (TimestampFormat::Unix, ["0", "999999999999999999", "9223372036854775807", "-1"]),
            (TimestampFormat::UnixMillis, ["0", "999999999999999999", "18446744073709551616", "-1735689600900"]),
            (
                TimestampFormat::Rfc3339,
                ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "99999-12-31T23:59:59Z"],
            ),
        ] {
            for text in texts {
                assert!(!fresh(format, text), "{format:?} {text}");
            }
        }
    }

    #[test]
    fn malformed_text_is_rejected() {
        for text in [
            "",
            " 1735689600",
            "+1735689600",
            "-1735689600",
            "01735689600",
            "0001735689600",
            "1735689600.0",
            "1.7356896e9",
            "0x67748580",
            "now",
            "١٧٣٥٦٨٩٦٠٠",
        ] {
            assert!(!fresh(TimestampFormat::Unix, text), "{text}");
        }
        assert!(!fresh(TimestampFormat::Unix, "9999999999999999999"));
        for text in [
            "2025-01-01",
            "2025-01-01T00:00:00",
            "2025-01-01 00:00:00Z",
            "20250101T000000Z0000",
            "2025-01-01T00:00Z00000",
            "2025-01-01T00:00:00Z[UTC]",
            "2025-01-01T00:00:00+00",
            "2025-01-01T00:00:00+00:00:00",
            "2025-01-01T00:00:00 +00:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00,5Z",
            "2025-01-01T00:00:00.0000000000Z",
            "2025-01-01T00:00:00.5.5Z",
            "2025-01-01T00:00:00+24:60",
            "2025-01-01T24:00:00Z",
            "2025-02-29T00:00:00Z",
            "+2025-01-01T00:00:00Z",
            "2025-W01-3T00:00:00Z",
            "２025-01-01T00:00:00Z",
            " 2025-01-01T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "1735689600",
        ] {
            assert!(!fresh(TimestampFormat::Rfc3339, text), "{text}");
        }
    }
}
