//! Types of single values in rule files: strings, numbers, durations, sizes, addresses and lists.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, RawReader};
use crate::domain::{Amount, BrowserUrl, Currency, ShopCode, is_deceptive};
use crate::rules::limits::canonical_prefix;
use crate::rules::setting::SettingEntry;

/// The pattern of names that are also file names: of shops, merchants and dialects.
pub(in crate::rules) const NAME: &str = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$";

/// The pattern of currencies, in either case.
pub(in crate::rules) const CURRENCY: &str = "^[A-Za-z]{3}$";

/// The pattern of absolute `http` and `https` URLs.
pub(in crate::rules) const WEB_URL: &str = "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$";

/// The pattern of language tags.
pub(in crate::rules) const LANGUAGE_TAG: &str = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$";

/// The pattern of amounts, as strings.
const AMOUNT: &str = r"^[0-9]+(\.[0-9]{1,2})?$";

impl FromToml for String {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        reader.text(value, "a string").map(str::to_owned)
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl FromToml for bool {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        reader.flag(value, "true or false")
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

/// A whole number from 1 to 1,000,000: rates, bursts and connections.
impl FromToml for u32 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let number = integer(value.get_ref()).filter(|number| (1..=1_000_000).contains(number));
        if number.is_none() {
            reader.wrong(value.span(), "must be a whole number from 1 to 1000000");
        }
        number.and_then(|number| Self::try_from(number).ok())
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 })
    }
}

/// A signed whole number of 64 bits: customers' ids.
impl FromToml for i64 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
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

/// A span of time: a whole number and a unit.
impl FromToml for Duration {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let expected = "a span of time such as \"250ms\", \"30s\", \"5m\", \"1h\" or \"7d\", at most \"3650d\"";
        reader.parsed(value, expected, duration)
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" })
    }

    fn entry(text: &str) -> SettingEntry {
        let millis = duration(text).map(|span| span.as_millis().to_string());
        SettingEntry::spelled(text, millis.unwrap_or_else(|| text.to_owned()))
    }
}

/// A span of time from `LEAST` to `MOST` milliseconds, a multiple of `STEP`.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct BoundedDuration<const LEAST: u64 = 1, const MOST: u64 = MAX_MILLIS, const STEP: u64 = 1>(
    pub Duration,
);

/// A lifetime of links, which carry it in whole seconds.
pub(in crate::rules) type WholeSeconds = BoundedDuration<1000, MAX_MILLIS, 1000>;

impl<const LEAST: u64, const MOST: u64, const STEP: u64> FromToml for BoundedDuration<LEAST, MOST, STEP> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let span = Duration::from_toml(value, reader)?;
        let millis = span.as_millis();
        let fits = (LEAST.into()..=MOST.into()).contains(&millis) && millis.is_multiple_of(STEP.into());
        if !fits {
            let (least, most, step) =
                (format_millis(LEAST), format_millis(MOST), if STEP == 1000 { ", in whole seconds" } else { "" });
            reader.wrong(value.span(), format_args!("must be from \"{least}\" to \"{most}\"{step}"));
        }
        fits.then_some(Self(span))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^0*[1-9][0-9]*(ms|s|m|h|d)$" })
    }

    fn entry(text: &str) -> SettingEntry {
        Duration::entry(text)
    }
}

/// The units of spans of time, in milliseconds, the longest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The longest span of time, in milliseconds: ten years.
const MAX_MILLIS: u64 = 3650 * UNITS[0].1;

/// Formats milliseconds as rule files write them.
fn format_millis(millis: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| millis.is_multiple_of(*unit));
    unit.map_or_else(String::new, |(name, unit)| format!("{}{name}", millis / unit))
}

/// Parses a span of time: a whole number and a unit, ten years at most.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, named) = number_and_unit(text)?;
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == named)?;
    number.checked_mul(*unit).filter(|millis| *millis <= MAX_MILLIS).map(Duration::from_millis)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    Some((number.parse().ok()?, unit))
}

/// The largest size, in bytes.
const LARGEST: usize = 64 << 20;

/// A number of bytes, from `LEAST` to 64 MiB.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Size<const LEAST: usize = 1>(pub usize);

impl<const LEAST: usize> FromToml for Size<LEAST> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let size = match value.get_ref().as_str() {
            Some(text) => size(text),
            None => integer(value.get_ref()).and_then(|bytes| usize::try_from(bytes).ok()),
        };
        let size = size.filter(|bytes| (LEAST..=LARGEST).contains(bytes));
        if size.is_none() {
            let reason =
                format_args!("must be a size such as \"64KiB\", \"1MiB\" or 65536, from {LEAST} bytes to 64 MiB");
            reader.wrong_with(value.span(), reason, value.get_ref().as_str().and_then(suggested_size));
        }
        size.map(Self)
    }

    fn schema() -> Value {
        json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+(B|KiB|MiB)?$",
            "minimum": LEAST,
            "maximum": LARGEST,
            "examples": ["64KiB", "1MiB"],
        })
    }

    fn entry(text: &str) -> SettingEntry {
        SettingEntry::spelled(text, size(text).map_or_else(|| text.to_owned(), |bytes| bytes.to_string()))
    }
}

/// Suggests the size that was probably meant by one with an unknown unit.
fn suggested_size(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        _ => return None,
    };
    Some(format!("did you mean \"{number}{unit}\"?"))
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

/// A network, or one address as a network of its own size.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Cidr(pub IpNet);

impl FromToml for Cidr {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
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

    /// Aggregates networks, so that another spelling of the same addresses is no change.
    fn united(texts: Vec<String>) -> Vec<String> {
        let networks: Vec<IpNet> = texts.iter().filter_map(|text| network(text)).collect();
        let text = |net: &IpNet| {
            let is_address = net.prefix_len() == net.max_prefix_len();
            if is_address { net.addr().to_string() } else { net.to_string() }
        };
        IpNet::aggregate(&networks).iter().map(text).collect()
    }
}

/// Parses a network or a single address.
pub(in crate::rules) fn network(text: &str) -> Option<IpNet> {
    let net = text.parse::<IpNet>().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()));
    net.map(canonical_prefix)
}

/// A calendar day.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Date(pub jiff::civil::Date);

impl FromToml for Date {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let date = match value.get_ref() {
            DeValue::String(text) if text.len() == 10 => text.parse().ok(),
            DeValue::Datetime(literal) if literal.time.is_none() => literal.to_string().parse().ok(),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
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

/// A text of 1 to `MOST` visible ASCII characters.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Visible<const MOST: usize>(pub Box<str>);

impl<const MOST: usize> FromToml for Visible<MOST> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let visible = |text: &str| (1..=MOST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let expected = format!("1 to {MOST} visible ASCII characters");
        reader.parsed(value, &expected, |text| visible(text).then(|| Self(text.into())))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[!-~]+$", "maxLength": MOST })
    }
}

/// The most characters of a name that people read.
const LONGEST_NAME: usize = 100;

/// A name that people read.
#[derive(Debug, Clone)]
pub(in crate::rules) struct DisplayName(pub Box<str>);

impl FromToml for DisplayName {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let expected = format!(
            "1 to {LONGEST_NAME} readable characters: no control characters, and none that are invisible or change the order of \
             others"
        );
        let text = reader.text(value, &expected)?;
        // No correction is suggested: upper case and white space belong to a name.
        if !is_readable(text, LONGEST_NAME, &[]) {
            reader.wrong(value.span(), format_args!("must be {expected}"));
            return None;
        }
        Some(Self(text.into()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_NAME })
    }
}

/// Reports whether people can read a text as it is meant: 1 to `most` characters, not only white space, and no
/// character that is invisible, a control character or changes the order of others, except those in `allowed`.
pub(in crate::rules) fn is_readable(text: &str, most: usize, allowed: &[char]) -> bool {
    let wrong = |c: char| (c.is_control() || is_deceptive(c)) && !allowed.contains(&c);
    !text.trim().is_empty() && text.chars().count() <= most && !text.contains(wrong)
}

/// The name of a header, which HTTP compares without regard to case, and how the file spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct FieldName {
    name: HeaderName,
    /// As written.
    pub spelled: Box<str>,
}

impl FieldName {
    fn new(text: &str) -> Option<Self> {
        let name = text.parse().ok().filter(|_| text.len() <= 128)?;
        Some(Self { name, spelled: text.into() })
    }
}

impl Deref for FieldName {
    type Target = HeaderName;

    fn deref(&self) -> &HeaderName {
        &self.name
    }
}

/// `METHOD /path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct RouteKey {
    /// `GET` or `POST`.
    pub method: Method,
    /// The path, without a query.
    pub path: Box<str>,
}

const ROUTE_EXPECTED: &str = "a method and a path such as \"POST /api/v1/payin\": GET or POST, one space, and a path of letters, \
                       digits and `-._~!$&'()*+,;=:@`, without query, percent-encoding and empty or dot segments";

fn route(text: &str) -> Option<RouteKey> {
    let (method, path) = text.split_once(' ')?;
    let method = match method {
        "GET" => Method::GET,
        "POST" => Method::POST,
        _ => return None,
    };
    plain_path(path).then(|| RouteKey { method, path: path.into() })
}

/// Reports whether a path has only one spelling, since it is compared with requests byte by byte. A slash may end it.
fn plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    let segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(plain);
    let segments = path.strip_prefix('/').map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    path.len() <= 255 && segments.is_some_and(|segments| segments.split('/').all(segment))
}

/// Implements `FromToml` for types that are parsed from strings: what is expected, the parser, the JSON Schema, and the
/// spelling that is compared.
macro_rules! from_text {
    ($($type:ty, $expected:expr => $read:expr, $schema:tt, $same:expr;)*) => {$(
        impl FromToml for $type {
            fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
                reader.parsed(value, $expected, $read)
            }

            fn schema() -> Value {
                json!($schema)
            }

            fn entry(text: &str) -> SettingEntry {
                let same: fn(&str) -> String = $same;
                SettingEntry::spelled(text, same(text))
            }
        }
    )*};
}

from_text! {
    SocketAddr, "an IP address and port such as \"127.0.0.1:8443\" or \"[::1]:8443\"" => |text| text.parse().ok(), {
        "type": "string",
        "pattern": r"^([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+$",
        "examples": ["127.0.0.1:8443", "[::]:8443"],
    }, |text| text.parse::<SocketAddr>().map_or_else(|_| text.to_owned(), |address| address.to_string());
    FieldName, "a header name such as \"X-Signature\"" => FieldName::new, {
        "type": "string",
        "pattern": r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$",
        "examples": ["X-Signature"],
    }, str::to_ascii_lowercase;
    RouteKey, ROUTE_EXPECTED => route, {
        "type": "string", "pattern": r"^(GET|POST) (/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?$", "maxLength": 260,
    }, str::to_owned;
}

/// Implements `FromToml` for types of the domain, whose constructors return the problem: with the JSON Schema, and the
/// spelling that is compared.
macro_rules! from_domain {
    ($($type:ty, $expected:literal => $construct:path, $schema:tt, $same:expr;)*) => {$(
        impl FromToml for $type {
            fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
                let text = reader.text(value, $expected)?;
                $construct(text).map_err(|invalid| reader.wrong(value.span(), invalid.reason())).ok()
            }

            fn schema() -> Value {
                json!($schema)
            }

            fn entry(text: &str) -> SettingEntry {
                let same: fn(&str) -> String = $same;
                SettingEntry::spelled(text, same(text))
            }
        }
    )*};
}

from_domain! {
    Amount, "an amount as a string, such as \"10000.00\"" => Amount::from_decimal_string, { "type": "string", "pattern": AMOUNT, "examples": ["10000.00"] },
        |text| Amount::from_decimal_string(text).map_or_else(|_| text.to_owned(), |amount| amount.hundredths().to_string());
    ShopCode, "a string" => ShopCode::new, { "type": "string", "pattern": NAME }, str::to_owned;
    Currency, "a string" => Currency::new, { "type": "string", "pattern": CURRENCY, "examples": ["EUR", "KES"] }, str::to_ascii_lowercase;
    BrowserUrl, "a string" => BrowserUrl::new, { "type": "string", "pattern": WEB_URL, "maxLength": 2048 }, str::to_owned;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
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
    fn sizes_are_parsed() {
        for (text, bytes) in [("64KiB", 65536), ("1MiB", 1 << 20), ("100", 100), ("7B", 7)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "KiB", "64KB", "64 KiB", "64kib", "-1", "99999999999999999999MiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn paths_of_routes_are_checked() {
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
