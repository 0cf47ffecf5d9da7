//! The access log: one line per request, formatted by hand into a reused buffer. Through the subscriber's JSON layer a
//! line costs thirty times as much, more than the signature that it reports.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use super::cards::without_cards;
use crate::domain::UnixMillis;

/// The target by which `RUST_LOG` filters access lines; their level is info.
pub const TARGET: &str = "paybridge::access";

/// The fields of an access line. None is secret: there is no query, no body, and no header but the caller's request id.
#[derive(Debug, Clone, Copy)]
pub struct AccessLine<'a> {
    /// `X-Request-Id`.
    pub request_id: &'a str,
    /// The merchant, once its key is known.
    pub merchant: Option<&'a str>,
    /// The route's name, not the path.
    pub route: &'static str,
    /// The request method.
    pub method: &'a str,
    /// The reply's status.
    pub status: u16,
    /// Why the request was refused or failed, of a status from 400; more precise than the reply.
    pub reason: Option<&'static str>,
    /// The member at fault, in the caller's words; of a conflict all that differ, by commas.
    pub member: Option<&'a str>,
    /// The operation that was created, found or in conflict. Never masked.
    pub transaction_id: Option<&'a str>,
    /// The time from the head to the reply.
    pub duration: Duration,
    /// The version of the rule set that served the request.
    pub rules_version: &'a str,
    /// The client's address.
    pub peer: IpAddr,
    /// The trace id of a valid `traceparent`.
    pub trace: Option<&'a str>,
    /// When the request was replied to.
    pub time: UnixMillis,
}

/// Receives a line for each request that was replied to. Never blocks.
pub trait AccessLog: Send + Sync + 'static {
    /// Logs one request.
    fn line(&self, line: &AccessLine<'_>);
}

/// The format of the log (`--log-format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people: `time level target: key=value ...`
    #[default]
    Text,
    /// For programs: one JSON object per line
    Json,
}

impl AccessLine<'_> {
    /// Formats the line, newline included, and passes it to `take`.
    pub(super) fn with_text<T>(&self, format: LogFormat, take: impl FnOnce(&[u8]) -> T) -> T {
        thread_local! {
            static BUFFER: RefCell<String> = RefCell::new(String::with_capacity(512));
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            match format {
                LogFormat::Text => self.write_text(buffer),
                LogFormat::Json => self.write_json(buffer),
            }
            buffer.push('\n');
            take(buffer.as_bytes())
        })
    }

    fn write_json(&self, out: &mut String) {
        out.push_str(r#"{"timestamp":""#);
        write_time(out, self.time);
        out.push_str(r#"","level":"INFO","target":"paybridge::access","request_id":"#);
        write_json_string(out, &loggable(self.request_id));
        out.push_str(r#","merchant":"#);
        write_json_option(out, self.merchant);
        out.push_str(r#","route":"#);
        write_json_string(out, self.route);
        out.push_str(r#","method":"#);
        write_json_string(out, self.method);
        out.push_str(r#","status":"#);
        out.push_str(itoa::Buffer::new().format(self.status));
        out.push_str(r#","reason":"#);
        write_json_option(out, self.reason);
        out.push_str(r#","member":"#);
        write_json_option(out, self.member.map(without_cards).as_deref());
        out.push_str(r#","transaction_id":"#);
        write_json_option(out, self.transaction_id);
        out.push_str(r#","duration_ms":"#);
        write_milliseconds(out, self.duration);
        out.push_str(r#","rules_version":"#);
        write_json_string(out, self.rules_version);
        out.push_str(r#","peer":""#);
        write_address(out, self.peer);
        out.push_str(r#"","trace":"#);
        write_json_option(out, self.trace.map(without_cards).as_deref());
        out.push('}');
    }

    fn write_text(&self, out: &mut String) {
        write_time(out, self.time);
        out.push_str("  INFO paybridge::access: request_id=");
        write_word(out, &loggable(self.request_id));
        out.push_str(" merchant=");
        write_word(out, self.merchant.unwrap_or("-"));
        out.push_str(" route=");
        write_word(out, self.route);
        out.push_str(" method=");
        write_word(out, self.method);
        out.push_str(" status=");
        out.push_str(itoa::Buffer::new().format(self.status));
        if let Some(reason) = self.reason {
            out.push_str(" reason=");
            write_word(out, reason);
        }
        if let Some(member) = self.member {
            out.push_str(" member=");
            write_word(out, &without_cards(member));
        }
        if let Some(transaction_id) = self.transaction_id {
            out.push_str(" transaction_id=");
            write_word(out, transaction_id);
        }
        out.push_str(" duration_ms=");
        write_milliseconds(out, self.duration);
        out.push_str(" rules_version=");
        write_word(out, self.rules_version);
        out.push_str(" peer=");
        write_address(out, self.peer);
        if let Some(trace) = self.trace {
            out.push_str(" trace=");
            write_word(out, &without_cards(trace));
        }
    }
}

fn write_address(out: &mut String, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push('.');
                }
                out.push_str(itoa::Buffer::new().format(octet));
            }
        }
        // Writing to a String does not fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

fn write_json_option(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => write_json_string(out, text),
        None => out.push_str("null"),
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Appends text as it is if it needs no quotes, else as a JSON string, so that a line can be split unambiguously and no
/// caller can forge a field.
fn write_word(out: &mut String, text: &str) {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'=');
    // Not `all`: without an early exit, the compiler checks many bytes at a time.
    let all_plain = text.bytes().fold(0, |found, b| found | u8::from(!plain(b))) == 0;
    if !text.is_empty() && all_plain { out.push_str(text) } else { write_json_string(out, text) }
}

/// Appends the inside of a JSON string. Escapes control characters and line separators; the rest stays UTF-8.
fn write_escaped(out: &mut String, text: &str) {
    if text.bytes().all(|b| (b.is_ascii_graphic() || b == b' ') && b != b'"' && b != b'\\') {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// Returns a request id as it may be logged: callers choose it, and could send a card number.
#[must_use]
pub fn loggable(request_id: &str) -> Cow<'_, str> {
    without_cards(request_id)
}

/// Appends milliseconds with three decimals, without a float.
fn write_milliseconds(out: &mut String, duration: Duration) {
    let mut digits = itoa::Buffer::new();
    let micros = duration.as_micros();
    out.push_str(digits.format(micros / 1000));
    out.push('.');
    write_padded(out, u32::try_from(micros % 1000).unwrap_or(0), 3);
}

fn write_padded(out: &mut String, number: u32, width: usize) {
    let mut digits = itoa::Buffer::new();
    let text = digits.format(number);
    for _ in text.len()..width {
        out.push('0');
    }
    out.push_str(text);
}

/// Appends a time in RFC 3339, in UTC with milliseconds.
pub(super) fn write_time(out: &mut String, time: UnixMillis) {
    thread_local! {
        /// The last second that was written, with its text: most lines fall into the same second.
        static WRITTEN: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    // Four digits can write the years 0 to 9999; the clock is always within them.
    let millis = time.0.clamp(-62_167_219_200_000, 253_402_300_799_999);
    let second = millis.div_euclid(1000);
    WRITTEN.with_borrow_mut(|(written, text)| {
        if *written != second {
            text.clear();
            write_second(text, second);
            *written = second;
        }
        out.push_str(text);
    });
    out.push('.');
    write_padded(out, u32::try_from(millis.rem_euclid(1000)).unwrap_or(0), 3);
    out.push('Z');
}

/// Appends date and time of a second since 1970, in the years 0 to 9999.
fn write_second(out: &mut String, second: i64) {
    let (days, of_day) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let part = |number: i64| u32::try_from(number).unwrap_or(0);
    write_padded(out, part(year), 4);
    for (separator, number) in
        [('-', month), ('-', day), ('T', of_day / 3_600), (':', of_day / 60 % 60), (':', of_day % 60)]
    {
        out.push(separator);
        write_padded(out, part(number), 2);
    }
}

/// Converts days since 1970-01-01 to year, month and day (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
const fn civil_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line() -> AccessLine<'static> {
        AccessLine {
            request_id: "5f0e2a",
            merchant: Some("acme"),
            route: "payin",
            method: "POST",
            status: 200,
            reason: None,
            member: None,
            transaction_id: None,
            duration: Duration::from_micros(12_034),
            rules_version: "00aa11bb22cc33dd",
            peer: "203.0.113.9".parse().unwrap(),
            trace: None,
            time: UnixMillis(1_772_409_600_007),
        }
    }

    fn text_of(line: &AccessLine<'_>, format: LogFormat) -> String {
        line.with_text(format, |bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn text_lines() {
        assert_eq!(
            text_of(&line(), LogFormat::Text),
            "2026-03-02T00:00:00.007Z  INFO paybridge::access: request_id=5f0e2a merchant=acme route=payin method=POST \
             status=200 duration_ms=12.034 rules_version=00aa11bb22cc33dd peer=203.0.113.9\n"
        );
        let refused = AccessLine { status: 401, reason: Some("timestamp"), ..line() };
        assert!(text_of(&refused, LogFormat::Text).contains(" status=401 reason=timestamp duration_ms="));
        assert!(text_of(&refused, LogFormat::Json).contains(r#""status":401,"reason":"timestamp","member":null,"#));
        let conflict = AccessLine {
            status: 409,
            reason: Some("conflict"),
            member: Some("amount,currency"),
            transaction_id: Some("4111111111111111"),
            ..line()
        };
        let expected =
            " status=409 reason=conflict member=amount,currency transaction_id=4111111111111111 duration_ms=";
        assert!(text_of(&conflict, LogFormat::Text).contains(expected));
        let expected = r#""reason":"conflict","member":"amount,currency","transaction_id":"4111111111111111","#;
        assert!(text_of(&conflict, LogFormat::Json).contains(expected));
        let unknown = AccessLine { merchant: None, trace: Some("4bf92f3577b34da6"), ..line() };
        let text = text_of(&unknown, LogFormat::Text);
        assert!(text.contains(" merchant=- ") && text.ends_with(" trace=4bf92f3577b34da6\n"), "{text}");
    }

    #[test]
    fn json_lines() {
        assert_eq!(
            text_of(&line(), LogFormat::Json),
            concat!(
                r#"{"timestamp":"2026-03-02T00:00:00.007Z","level":"INFO","target":"paybridge::access","#,
                r#""request_id":"5f0e2a","merchant":"acme","route":"payin","method":"POST","status":200,"reason":null,"#,
                r#""member":null,"transaction_id":null,"duration_ms":12.034,"rules_version":"00aa11bb22cc33dd","peer":"203.0.113.9","trace":null}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_caller_cannot_forge_a_line_or_a_key() {
        let forged = AccessLine { request_id: "x\" merchant=evil\n2026", method: "A=B", ..line() };
        let text = text_of(&forged, LogFormat::Text);
        assert!(text.contains(r#"request_id="x\" merchant=evil\u000a2026" merchant=acme"#), "{text}");
        assert!(text.contains(r#"method="A=B""#), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_card_number_as_request_id_is_masked() {
        let number = "aaaaaaaaaaaaaaaa4111111111111111";
        let card = AccessLine { request_id: "order-4111-1111-1111-1111", trace: Some(number), ..line() };
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = text_of(&card, format);
            assert!(text.contains("order-4111-11**-****-1111") && !text.contains("11111111"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_lines_keep_the_values(id in "\\PC{0,40}[\"\\\\\u{0}-\u{1f}\u{7f}]{0,5}", merchant in "[^0-9]{0,20}") {
            prop_assume!(without_cards(&id) == id);
            let line = AccessLine { request_id: &id, merchant: Some(&merchant), ..line() };
            let text = text_of(&line, LogFormat::Json);
            prop_assert_eq!(text.matches('\n').count(), 1);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(value["request_id"].as_str(), Some(id.as_str()));
            prop_assert_eq!(value["merchant"].as_str(), Some(merchant.as_str()));
        }

        #[test]
        fn times_match_jiff(millis in -62_167_219_200_000_i64..=253_402_207_200_999) {
            let mut text = String::new();
            write_time(&mut text, UnixMillis(millis));
            let expected = jiff::Timestamp::from_millisecond(millis).unwrap();
            prop_assert_eq!(text, format!("{expected:.3}"));
        }
    }
}
