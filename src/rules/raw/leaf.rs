//! The values that keys hold: read and checked one by one.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, Reader, kind};
use crate::domain::{BrowserUrl, Currency, ShopCode};

/// The pattern of names that are those of files, too: of shops, merchants and dialects.
pub(in crate::rules) const NAME: &str = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$";

/// The pattern of currencies, in either case.
pub(in crate::rules) const CURRENCY: &str = "^[A-Za-z]{3}$";

/// The pattern of absolute `http` and `https` URLs.
pub(in crate::rules) const WEB_URL: &str = "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$";

/// The pattern of language tags.
pub(in crate::rules) const LANGUAGE_TAG: &str = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$";

/// The pattern of amounts, written as strings.
pub(in crate::rules) const AMOUNT: &str = r"^[0-9]+(\.[0-9]{1,2})?$";

/// The pattern of texts of visible ASCII characters.
pub(in crate::rules) const VISIBLE: &str = "^[!-~]+$";

impl FromToml for String {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.text(value, "a string").map(str::to_owned)
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl FromToml for bool {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            let meant = match value.get_ref().as_str().map(str::to_ascii_lowercase).as_deref() {
                Some("true" | "yes" | "on") => Some("write `true`, without quotation marks".to_owned()),
                Some("false" | "no" | "off") => Some("write `false`, without quotation marks".to_owned()),
                _ => None,
            };
            let reason = format_args!("must be true or false, not {}", kind(value.get_ref()));
            reader.wrong_with(value.span(), reason, meant);
        }
        flag
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

/// What a `u32` may be.
const SMALL_NUMBERS: RangeInclusive<u32> = 1..=1_000_000;

/// A whole number from 1 to 1,000,000: rates, bursts and connections.
impl FromToml for u32 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let number = integer(value.get_ref()).and_then(|number| Self::try_from(number).ok());
        let number = number.filter(|number| SMALL_NUMBERS.contains(number));
        if number.is_none() {
            reader.wrong(value.span(), "must be a whole number from 1 to 1000000");
        }
        number
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": SMALL_NUMBERS.start(), "maximum": SMALL_NUMBERS.end() })
    }
}

/// A whole number of 64 bits with a sign: customers' ids.
impl FromToml for i64 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let number = integer(value.get_ref());
        if number.is_none() {
            reader.wrong(value.span(), "must be a whole number within 64 bits");
        }
        number
    }

    fn schema() -> Value {
        json!({ "type": "integer" })
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Spans of time: a whole number and a unit.
impl FromToml for Duration {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        const EXPECTED: &str = "a span of time such as \"250ms\", \"30s\", \"5m\", \"1h\" or \"7d\"";
        let text = reader.text(value, EXPECTED)?;
        let parsed = duration(text);
        if parsed.is_none() {
            let tidy: String = text.chars().filter(|c| !c.is_whitespace()).take(24).collect::<String>().to_lowercase();
            let meant = duration(&tidy).map(|_| format!("did you mean \"{tidy}\"?"));
            reader.wrong_with(value.span(), format_args!("must be {EXPECTED}, at most \"3650d\""), meant);
        }
        parsed
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" })
    }
}

/// The pattern of spans of time that may not be zero.
pub(in crate::rules) const LONGER_THAN_ZERO: &str = "^0*[1-9][0-9]*(ms|s|m|h|d)$";

/// A span of time that is longer than zero.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Lasting(pub Duration);

impl FromToml for Lasting {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let span = Duration::from_toml(value, reader)?;
        if span.is_zero() {
            reader.wrong(value.span(), "must be longer than 0");
        }
        (!span.is_zero()).then_some(Self(span))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": LONGER_THAN_ZERO })
    }
}

/// A span of time as rule files and operators write it: a whole number and a unit, ten years at most.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_hours(24 * 3650);
    let (number, unit) = number_and_unit(text)?;
    let millis = number.checked_mul(match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })?;
    Some(Duration::from_millis(millis)).filter(|span| *span <= LONGEST)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    Some((number.parse().ok()?, unit))
}

/// What a size may be, in bytes.
const SIZES: RangeInclusive<usize> = 1..=64 << 20;

/// A number of bytes: 1 to 64 MiB.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Size(pub usize);

impl FromToml for Size {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let size = match value.get_ref() {
            DeValue::String(text) => size(text),
            other => integer(other).and_then(|bytes| usize::try_from(bytes).ok()),
        };
        let size = size.filter(|bytes| SIZES.contains(bytes));
        if size.is_none() {
            let reason = "must be a size such as \"64KiB\", \"1MiB\" or 65536 (bytes), from 1 to 64 MiB";
            reader.wrong_with(value.span(), reason, value.get_ref().as_str().and_then(meant_size));
        }
        size.map(Self)
    }

    fn schema() -> Value {
        json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+(B|KiB|MiB)?$",
            "minimum": SIZES.start(),
            "maximum": SIZES.end(),
            "examples": ["64KiB", "1MiB"],
        })
    }
}

/// What was meant by a size in units that are not known here.
fn meant_size(text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "b" | "bytes" => "B",
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    size(&meant).map(|_| format!("did you mean \"{meant}\"?"))
}

fn size(text: &str) -> Option<usize> {
    let (number, unit) = number_and_unit(text)?;
    let bytes = number.checked_mul(match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    })?;
    usize::try_from(bytes).ok()
}

impl FromToml for SocketAddr {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let expected = "an IP address and port such as \"127.0.0.1:8443\" or \"[::1]:8443\"";
        reader.parsed(value, expected, |text| text.parse().ok())
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+$",
            "examples": ["127.0.0.1:8443", "[::]:8443"],
        })
    }
}

/// A network, or one address as a network of its own.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Prefix(pub IpNet);

impl FromToml for Prefix {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let expected = "an address or a network such as \"198.51.100.7\", \"203.0.113.0/24\" or \"2001:db8::/32\"";
        let prefix = reader.parsed(value, expected, |text| {
            text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        })?;
        if prefix.addr() != prefix.network() {
            let suggestion = format!("the network is `{}`", prefix.trunc());
            reader.wrong_with(value.span(), "has address bits set beyond its prefix length", Some(suggestion));
            return None;
        }
        Some(Self(prefix))
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^([0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)(/[0-9]+)?$",
            "examples": ["198.51.100.7", "203.0.113.0/24", "2001:db8::/32"],
        })
    }
}

/// A calendar day.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Date(pub jiff::civil::Date);

impl FromToml for Date {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let date = match value.get_ref() {
            DeValue::String(text) if text.len() == 10 => text.parse().ok(),
            DeValue::Datetime(literal) if literal.time.is_none() => literal.to_string().parse().ok(),
            _ => None,
        };
        if date.is_none() {
            reader.wrong(value.span(), "must be a date such as \"2027-06-30\"");
        }
        date.map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "examples": ["2027-06-30"] })
    }
}

/// A list; elements that are wrong are noted and left out.
#[derive(Debug, Clone)]
pub(in crate::rules) struct List<T>(pub Vec<Spanned<T>>);

impl<T> List<T> {
    /// Returns the elements without their places.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(Spanned::get_ref)
    }
}

impl<T: FromToml> FromToml for List<T> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(array) = value.get_ref().as_array() else {
            let advice = match value.get_ref() {
                DeValue::Table(_) => "a list of tables is written with two brackets, `[[...]]`",
                _ => "a list is written in brackets, `[...]`",
            };
            let reason = format_args!("must be a list, not {}", kind(value.get_ref()));
            reader.wrong_with(value.span(), reason, Some(advice.to_owned()));
            return None;
        };
        let read = |(at, element): (usize, &Spanned<DeValue<'_>>)| {
            let meant = reader.at(format!("[{at}]"), |reader| T::from_toml(element, reader))?;
            Some(Spanned::new(element.span(), meant))
        };
        Some(Self(array.iter().enumerate().filter_map(read).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// A table whose keys are names of the operator's; entries that are wrong are noted and left out.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Entries<T>(pub Vec<(Spanned<String>, T)>);

impl<T: FromToml> FromToml for Entries<T> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut entries = Vec::new();
        for (key, value) in reader.table(value)? {
            if let Some(entry) = reader.under(key.get_ref(), |reader| T::from_toml(value, reader)) {
                entries.push((Spanned::new(key.span(), key.get_ref().to_string()), entry));
            }
        }
        Some(Self(entries))
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

/// The text of an amount with its place.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Located(pub Spanned<String>);

impl FromToml for Located {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = reader.text(value, "an amount as a string, such as \"10000.00\"")?;
        Some(Self(Spanned::new(value.span(), text.to_owned())))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": AMOUNT, "examples": ["10000.00"] })
    }
}

/// `METHOD /path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct Route {
    /// `GET` or `POST`.
    pub method: Method,
    /// The path, without a query.
    pub path: Box<str>,
}

impl FromToml for Route {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        const EXPECTED: &str = "a method and a path such as \"POST /api/v1/payin\": GET or POST, one space, and a path of \
                                letters, digits and `-._~!$&'()*+,;=:@`, without query, percent-encoding and empty or dot \
                                segments";
        reader.parsed(value, EXPECTED, |text| {
            let (method, path) = text.split_once(' ')?;
            let method = match method {
                "GET" => Method::GET,
                "POST" => Method::POST,
                _ => return None,
            };
            plain_path(path).then(|| Self { method, path: path.into() })
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^(GET|POST) (/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?$", "maxLength": 260 })
    }
}

/// A path that has one spelling: it is compared with what is sent, byte by byte. A slash may end it.
fn plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    let segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(plain);
    let segments = path.strip_prefix('/').map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    path.len() <= 255 && segments.is_some_and(|segments| segments.split('/').all(segment))
}

impl FromToml for HeaderName {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.parsed(value, "a header name such as \"X-Signature\"", |text| {
            Self::from_bytes(text.as_bytes()).ok().filter(|name| name.as_str().len() <= 128)
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$", "examples": ["X-Signature"] })
    }
}

macro_rules! from_text {
    ($($type:ty => $construct:path, $schema:tt;)*) => {$(
        impl FromToml for $type {
            fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = reader.text(value, "a string")?;
                $construct(text).map_err(|invalid| reader.wrong(value.span(), invalid.reason())).ok()
            }

            fn schema() -> Value {
                json!($schema)
            }
        }
    )*};
}

from_text! {
    ShopCode => ShopCode::new, { "type": "string", "pattern": NAME };
    Currency => Currency::new, { "type": "string", "pattern": CURRENCY, "examples": ["EUR", "KES"] };
    BrowserUrl => BrowserUrl::new, { "type": "string", "pattern": WEB_URL, "maxLength": 2048 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in
            [("250ms", 250), ("0s", 0), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("7d", 604_800_000)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "30", "30 s", "-1s", "1.5s", "1w", "1h30m", "3651d", "99999999999999999999s", "١s", "+1s"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("64KiB", 65536), ("1MiB", 1 << 20), ("100", 100), ("7B", 7)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "KiB", "64KB", "64 KiB", "64kib", "-1", "99999999999999999999MiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn paths_of_routes() {
        for path in
            ["/a", "/a/", "/api/v1/payin", "/A-b_c.d~e", "/index.php/pay", "/v1/payins:create", "/a(b),c;d=e@f!$&'*+"]
        {
            assert!(plain_path(path), "{path}");
        }
        for path in [
            "", "/", "a", "//", "//a", "/a//", "/a//b", "/.", "/a/./", "/../a", "/a?b", "/a#b", "/a%20", "/a b", "/ä",
            "/{x}", "/a\\b",
        ] {
            assert!(!plain_path(path), "{path}");
        }
    }
}
