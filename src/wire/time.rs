//! Points in time as text: RFC 3339, dates, and seconds as the console shows them.

use jiff::{Timestamp, civil};

use crate::domain::UnixMillis;

/// Writes a point in time in UTC with milliseconds, `2026-01-02T03:04:05.678Z`: as exact as it is stored, so that it can be
/// used as a filter. A time beyond the years of RFC 3339 is written as the last of them.
#[must_use]
pub fn rfc3339(at: UnixMillis) -> String {
    let earliest = -62_167_219_200_000; // 0000-01-01T00:00:00Z
    let latest = Timestamp::MAX.as_millisecond();
    let at = Timestamp::from_millisecond(at.0.clamp(earliest, latest)).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

/// Reads an RFC 3339 time: `T` and `Z` in either case, a fraction of up to nine digits, an offset as `+02:00` or, as the
/// usual formatters of Python and PHP write it, `+0200`. Other spellings that the parser accepts are refused: ISO 8601's basic
/// format, a space for the `T`, hours without minutes, annotations in brackets, and a second 60 that is not the last of a
/// day in UTC. Times of the year 9999 after the last one that can be written are read as that one.
#[must_use]
pub fn read_rfc3339(text: &str) -> Option<Timestamp> {
    let (seconds, rest) = text.split_at_checked(19)?;
    let (fraction, offset) = rest.split_at(rest.find(|c: char| c != '.' && !c.is_ascii_digit())?);
    let fraction_fits = match fraction.strip_prefix('.') {
        Some(digits) => (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => fraction.is_empty(),
    };
    if !is_shaped(seconds, "0000-00-00T00:00:00") || !fraction_fits || !is_offset(offset) {
        return None;
    }
    let last = || seconds.parse().ok().filter(|at: &civil::DateTime| at.year() == 9999).map(|_| Timestamp::MAX);
    let time: Timestamp = text.parse().ok().or_else(last)?;
    let ends_a_day = time.as_second().rem_euclid(86_400) == 86_399;
    (!seconds.ends_with("60") || ends_a_day).then_some(time)
}

/// Reads a date, `2026-01-02`, as the first and the last millisecond of that day in UTC.
#[must_use]
pub fn read_date(text: &str) -> Option<[UnixMillis; 2]> {
    let is_date = is_shaped(text, "0000-00-00");
    let first = is_date.then(|| read_rfc3339(&format!("{text}T00:00:00Z"))).flatten()?.as_millisecond();
    Some([UnixMillis(first), UnixMillis(first + 86_399_999)])
}

/// Reads a second in UTC as the console shows it, `2026-01-02 03:04:05`, as its first and its last millisecond.
#[must_use]
pub fn read_second(text: &str) -> Option<[UnixMillis; 2]> {
    let is_second = is_shaped(text, "0000-00-00 00:00:00");
    let written = || format!("{}Z", text.replace(' ', "T"));
    let first = is_second.then(|| read_rfc3339(&written())).flatten()?.as_millisecond();
    Some([UnixMillis(first), UnixMillis(first + 999)])
}

/// Reports whether a text is `Z`, or an offset of hours below 24 and minutes below 60.
fn is_offset(text: &str) -> bool {
    let spelled = ["Z", "+00:00", "-00:00", "+0000", "-0000"].into_iter().any(|shape| is_shaped(text, shape));
    let hours = text.get(1..3).is_none_or(|hours| hours < "24");
    let minutes = text.len().checked_sub(2).and_then(|start| text.get(start..)).is_none_or(|minutes| minutes < "60");
    spelled && hours && minutes
}

/// Reports whether a text has a shape, in which `0` means any digit and a letter either case of it.
fn is_shaped(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte.eq_ignore_ascii_case(&other),
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
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

    #[test]
    fn the_edges_of_times() {
        for (text, at) in [
            ("9999-12-31T23:59:59Z", Some(Timestamp::MAX)),
            ("9999-12-31T23:59:59.999+00:00", Some(Timestamp::MAX)),
            ("9999-12-30T22:00:00Z", Some(Timestamp::from_second(253_402_207_200).unwrap())),
            ("9999-12-31T24:00:00Z", None),
            ("9999-12-32T00:00:00Z", None),
            ("1970-01-02T00:59:60+01:00", Some(Timestamp::from_second(86_399).unwrap())),
            ("1970-01-01T12:30:60Z", None),
            ("1970-01-01T23:59:60+01:00", None),
            ("1970-01-01T23:59:00+23:59", Some(Timestamp::UNIX_EPOCH)),
            ("1970-01-01T00:00:00+24:00", None),
            ("1970-01-01T00:00:00-25:00", None),
            ("1970-01-01T00:00:00+00:60", None),
            ("1970-01-01T00:00:00+0060", None),
        ] {
            assert_eq!(read_rfc3339(text), at, "{text}");
        }
    }

    #[test]
    fn a_date_is_a_whole_day_in_utc() {
        let day = read_date("2026-11-25").map(|edges| edges.map(rfc3339));
        assert_eq!(day.unwrap(), ["2026-11-25T00:00:00.000Z", "2026-11-25T23:59:59.999Z"]);
        assert!(read_date("2028-02-29").is_some());
        for wrong in ["", "2026-02-29", "2026-13-01", "2026-11-00", "2026-1-2", "20261125", "2026-11-25Z", "26-11-25"] {
            assert_eq!(read_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_second_is_read_as_the_console_shows_it() {
        let second = read_second("2026-11-25 21:13:15").map(|edges| edges.map(rfc3339));
        assert_eq!(second.unwrap(), ["2026-11-25T21:13:15.000Z", "2026-11-25T21:13:15.999Z"]);
        for wrong in [
            "",
            "2026-11-25",
            "2026-11-25T21:13:15",
            "2026-11-25 21:13",
            "2026-11-25 21:13:15Z",
            "2026-11-25 24:13:15",
            "2026-02-29 21:13:15",
            "2026-11-25  21:13:15",
        ] {
            assert_eq!(read_second(wrong), None, "{wrong}");
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
            let _ = (read_rfc3339(&text), read_date(&text), read_second(&text));
        }
    }
}
