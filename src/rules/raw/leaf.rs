//! The values that keys hold: read and checked one by one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, Reader, kind};
use crate::domain::{BrowserUrl, Currency, ShopCode};
use crate::rules::problems::{did_you_mean, quoted};
use crate::rules::{Algorithm, CallbackStyle, Encoding, IdPolicy, TimestampFormat, UnknownFields};

impl FromToml for String {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.text(value, "a string").map(str::to_owned)
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
}

/// A whole number from 1 to 1,000,000: rates, bursts and connections.
impl FromToml for u32 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        const RANGE: std::ops::RangeInclusive<u32> = 1..=1_000_000;
        let number = integer(value.get_ref()).and_then(|number| Self::try_from(number).ok());
        let number = number.filter(|number| RANGE.contains(number));
        if number.is_none() {
            reader.wrong(value.span(), "must be a whole number from 1 to 1000000");
        }
        number
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
}

fn duration(text: &str) -> Option<Duration> {
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

/// A number of bytes: 1 to 64 MiB.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Size(pub usize);

impl FromToml for Size {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let size = match value.get_ref() {
            DeValue::String(text) => size(text),
            other => integer(other).and_then(|bytes| usize::try_from(bytes).ok()),
        };
        let size = size.filter(|bytes| (1..=64 << 20).contains(bytes));
        if size.is_none() {
            let reason = "must be a size such as \"64KiB\", \"1MiB\" or 65536 (bytes), from 1 to 64 MiB";
            reader.wrong_with(value.span(), reason, value.get_ref().as_str().and_then(meant_size));
        }
        size.map(Self)
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
        const EXPECTED: &str = "an IP address and port such as \"127.0.0.1:8443\" or \"[::1]:8443\"";
        let text = reader.text(value, EXPECTED)?;
        let address = text.parse().ok();
        if address.is_none() {
            reader.wrong(value.span(), format_args!("must be {EXPECTED}"));
        }
        address
    }
}

/// A network, or one address as a network of its own.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Prefix(pub IpNet);

impl FromToml for Prefix {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        const EXPECTED: &str =
            "an address or a network such as \"198.51.100.7\", \"203.0.113.0/24\" or \"2001:db8::/32\"";
        let text = reader.text(value, EXPECTED)?;
        let prefix = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        let Some(prefix) = prefix else {
            reader.wrong(value.span(), format_args!("must be {EXPECTED}"));
            return None;
        };
        if prefix.addr() != prefix.network() {
            let suggestion = format!("the network is `{}`", prefix.trunc());
            reader.wrong_with(value.span(), "has address bits set beyond its prefix length", Some(suggestion));
            return None;
        }
        Some(Self(prefix))
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
}

/// Where a secret is.
#[derive(Clone)]
pub(in crate::rules) enum RawSecret {
    /// `env:NAME`.
    Environment(String),
    /// `file:PATH`, relative to the rule file.
    File(String),
    /// The secret itself.
    Literal(Box<str>),
}

impl fmt::Debug for RawSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawSecret(..)")
    }
}

impl FromToml for RawSecret {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.findings.hide(reader.file, value.span());
        let text = reader.text(value, "a secret: \"env:NAME\", \"file:PATH\" or the secret itself")?;
        let (secret, name) = match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
            (Some(name), _) => (Self::Environment(name.into()), name),
            (_, Some(path)) => (Self::File(path.into()), path),
            _ if nearly_a_reference(text) => {
                let reason = "looks like a reference, which is written \"env:NAME\" or \"file:PATH\": in lowercase, \
                              without a space before the colon";
                reader.wrong(value.span(), reason);
                return None;
            }
            _ => (Self::Literal(text.into()), text),
        };
        if name.is_empty() || name.contains('\0') || matches!(&secret, Self::Environment(_) if name.contains('=')) {
            reader.wrong(value.span(), "must not be empty: write \"env:NAME\", \"file:PATH\" or the secret itself");
            return None;
        }
        Some(secret)
    }
}

/// Whether a text that is no reference must have been meant as one: taken for the secret itself, it would be one that
/// anybody can guess.
fn nearly_a_reference(text: &str) -> bool {
    let kind = text.split_once(':').map_or("", |(kind, _)| kind.trim());
    ["env", "file"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// One secret, or a list: the first signs, any verifies.
#[derive(Debug, Clone)]
pub(in crate::rules) struct RawSecrets(pub Vec<Spanned<RawSecret>>);

impl FromToml for RawSecrets {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.findings.hide(reader.file, value.span());
        let Some(array) = value.get_ref().as_array() else {
            return RawSecret::from_toml(value, reader).map(|secret| Self(vec![Spanned::new(value.span(), secret)]));
        };
        if array.is_empty() {
            reader.wrong(value.span(), "must name at least one secret");
            return None;
        }
        let list = List::<RawSecret>::from_toml(value, reader)?.0;
        if list.is_empty() { None } else { Some(Self(list)) }
    }
}

/// A list; elements that are wrong are noted and left out.
#[derive(Debug, Clone)]
pub(in crate::rules) struct List<T>(pub Vec<Spanned<T>>);

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
            let meant = reader.element(at, |reader| T::from_toml(element, reader))?;
            Some(Spanned::new(element.span(), meant))
        };
        Some(Self(array.iter().enumerate().filter_map(read).collect()))
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
}

/// The dialect's words for the v2 statuses.
#[derive(Debug, Default)]
pub(in crate::rules) struct Words {
    /// For PENDING.
    pub pending: Option<Spanned<String>>,
    /// For SUCCESS.
    pub success: Option<Spanned<String>>,
    /// For FAILED.
    pub failed: Option<Spanned<String>>,
}

impl FromToml for Words {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut words = Self::default();
        for (key, value) in reader.table(value)? {
            let word = match key.get_ref().as_ref() {
                "PENDING" => &mut words.pending,
                "SUCCESS" => &mut words.success,
                "FAILED" => &mut words.failed,
                _ => {
                    reader.unknown_key(key, value.span(), &["PENDING", "SUCCESS", "FAILED"]);
                    continue;
                }
            };
            let text = reader.under(key.get_ref(), |reader| String::from_toml(value, reader));
            *word = text.map(|text| Spanned::new(value.span(), text));
        }
        Some(words)
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
        const EXPECTED: &str = "a method and a path such as \"POST /api/v1/payin\"";
        let text = reader.text(value, EXPECTED)?;
        let route = text.split_once(' ').and_then(|(method, path)| {
            let method = match method {
                "GET" => Method::GET,
                "POST" => Method::POST,
                _ => return None,
            };
            plain_path(path).then(|| Self { method, path: path.into() })
        });
        if route.is_none() {
            reader.wrong(
                value.span(),
                format_args!(
                    "must be {EXPECTED}: GET or POST, one space, and a path of letters, digits and `-._~!$&'()*+,;=:@`, \
                     without query, percent-encoding and empty or dot segments"
                ),
            );
        }
        route
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
        let text = reader.text(value, "a header name such as \"X-Signature\"")?;
        let name = Self::from_bytes(text.as_bytes()).ok().filter(|name| name.as_str().len() <= 128);
        if name.is_none() {
            reader.wrong(value.span(), "must be a header name such as \"X-Signature\"");
        }
        name
    }
}

macro_rules! from_text {
    ($($type:ty => $construct:path,)*) => {$(
        impl FromToml for $type {
            fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = reader.text(value, "a string")?;
                $construct(text).map_err(|invalid| reader.wrong(value.span(), invalid.reason())).ok()
            }
        }
    )*};
}

from_text! {
    ShopCode => ShopCode::new,
    Currency => Currency::new,
    BrowserUrl => BrowserUrl::new,
}

/// Reads one of a few words.
fn word<T: Copy>(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>, words: &[(&str, T)]) -> Option<T> {
    let text = reader.text(value, "a string")?;
    let meant = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
    if meant.is_none() {
        let known: Vec<String> = words.iter().map(|(word, _)| quoted(word)).collect();
        let suggestion = did_you_mean(text, words.iter().map(|(word, _)| *word));
        reader.wrong_with(value.span(), format_args!("must be {}", known.join(" or ")), suggestion);
    }
    meant
}

macro_rules! from_words {
    ($($type:ty { $($word:literal => $meant:expr,)* })*) => {$(
        impl super::FromToml for $type {
            fn from_toml(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut super::Reader<'_>,
            ) -> Option<Self> {
                super::leaf::word(value, reader, &[$(($word, $meant)),*])
            }
        }
    )*};
}

from_words! {
    TimestampFormat {
        "unix" => TimestampFormat::Unix,
        "unix-ms" => TimestampFormat::UnixMillis,
        "rfc3339" => TimestampFormat::Rfc3339,
    }
    Algorithm {
        "hmac-sha256" => Algorithm::HmacSha256,
        "hmac-sha512" => Algorithm::HmacSha512,
    }
    Encoding {
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
    }
    CallbackStyle {
        "v1" => CallbackStyle::V1,
        "v2" => CallbackStyle::V2,
    }
    IdPolicy {
        "reject" => IdPolicy::Reject,
        "omit" => IdPolicy::Omit,
    }
    UnknownFields {
        "reject" => UnknownFields::Reject,
        "ignore" => UnknownFields::Ignore,
    }
    super::Mode {
        "translate" => super::Mode::Translate,
        "shadow" => super::Mode::Shadow,
        "legacy" => super::Mode::Legacy,
    }
    super::ProviderKind {
        "sandbox" => super::ProviderKind::Sandbox,
        "http" => super::ProviderKind::Http,
    }
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
