//! URLs and hosts that merchants and rules name, checked on the raw string.
//!
//! WHATWG URL parsers repair their input: they drop tabs and newlines, replace backslashes, decode percent signs in
//! hosts and read `0x7f.1` as an address. Nothing is repaired here: text that is not RFC 3986 as sent is rejected
//! (contract section 7, "URLs"), and accepted text is kept byte for byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fluent_uri::{ParseError, ParseErrorKind, Uri};

use super::InvalidValue;

/// The longest URL in bytes.
const MAX_BYTES: usize = 2048;

/// A callback URL: absolute, `https`, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallbackUrl(Arc<str>);

impl CallbackUrl {
    /// Accepts an absolute HTTPS URL.
    ///
    /// # Errors
    /// Anything that is not an absolute RFC 3986 `https` URL with a host and without credentials.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        match scheme(checked(text)?) {
            Scheme::Https => Ok(Self(text.into())),
            Scheme::Http => Err(InvalidValue::new("must be an https:// URL")),
        }
    }

    /// Accepts the URL of a v1 callback, which may be plain `http` if the merchant's rules allow it.
    ///
    /// # Errors
    /// As [`CallbackUrl::new`], but `http` is accepted.
    pub fn new_allowing_http(text: &str) -> Result<Self, InvalidValue> {
        checked(text).map(|text| Self(text.into()))
    }

    /// Holds an address that is made of parts which were checked.
    pub(super) fn of_checked(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the URL as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether the scheme is plain `http`.
    #[must_use]
    pub fn is_plain_http(&self) -> bool {
        matches!(scheme(&self.0), Scheme::Http)
    }

    /// Returns scheme, host and port in one canonical spelling, such as `https://shop.example:443`.
    #[must_use]
    pub fn origin(&self) -> String {
        let (scheme, default_port) = match scheme(&self.0) {
            Scheme::Http => ("http", "80"),
            Scheme::Https => ("https", "443"),
        };
        let host = host_of(&self.0);
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let after = authority.rsplit_once(']').map_or(authority, |(_, after)| after);
        let port = after.split_once(':').map_or(default_port, |(_, port)| port);
        match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("{scheme}://[{address}]:{port}"),
            // A name with a trailing dot is a different name for resolvers, so the dot is kept.
            Err(_) => format!("{scheme}://{}:{port}", host.to_ascii_lowercase()),
        }
    }
}

/// A URL for a customer's browser: absolute, `http` or `https`, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BrowserUrl(Arc<str>);

impl BrowserUrl {
    /// Accepts an absolute HTTP(S) URL.
    ///
    /// # Errors
    /// Anything that is not an absolute RFC 3986 `http` or `https` URL with a host and without credentials.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        checked(text).map(|text| Self(text.into()))
    }

    /// Returns the URL as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether the scheme is plain `http`.
    #[must_use]
    pub fn is_plain_http(&self) -> bool {
        matches!(scheme(&self.0), Scheme::Http)
    }
}

/// Accepts the `https` URL of a whole service: `https://host[:port]`. Drops a trailing slash.
///
/// # Errors
/// Anything else.
pub fn service_url(text: &str) -> Result<Box<str>, InvalidValue> {
    let text = text.strip_suffix('/').unwrap_or(text);
    match (scheme(checked(text)?), text.split_once("://")) {
        (Scheme::Https, Some((_, rest))) if !rest.contains(['/', '?', '#']) => Ok(text.into()),
        _ => Err(InvalidValue::new("must be an https:// URL without a path, such as \"https://pay.example.com\"")),
    }
}

/// Reports whether the host of a valid URL is this machine, judging by the text alone: resolution of a name can change.
#[must_use]
pub fn names_loopback(url: &str) -> bool {
    let host = host_of(url);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the host of a valid URL, an IPv6 address without its brackets. For invalid text the result is unspecified.
#[must_use]
pub fn host_of(url: &str) -> &str {
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((literal, _)) => literal,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

enum Scheme {
    Http,
    Https,
}

/// Returns the scheme of a text that [`checked`] accepted.
fn scheme(text: &str) -> Scheme {
    if text.as_bytes().get(4) == Some(&b':') { Scheme::Http } else { Scheme::Https }
}

const NOT_ABSOLUTE: InvalidValue = InvalidValue::new("must be an absolute URL (https://host/...)");
const BAD_CHARACTER: InvalidValue =
    InvalidValue::new("must not contain whitespace, control characters, backslashes or characters outside RFC 3986");
const BAD_HOST: InvalidValue = InvalidValue::new("must name a host (RFC 3986)");
const BAD_PORT: InvalidValue = InvalidValue::new("must name a port from 1 to 65535, or none");
const CREDENTIALS: InvalidValue = InvalidValue::new("must not contain credentials");

/// Returns the text if it is an absolute `http` or `https` URL by RFC 3986.
fn checked(text: &str) -> Result<&str, InvalidValue> {
    if text.is_empty() {
        return Err(InvalidValue::new("must not be empty"));
    }
    if text.len() > MAX_BYTES {
        return Err(InvalidValue::new("must be at most 2048 characters"));
    }
    let uri = Uri::parse(text).map_err(|error| malformed(text, error))?;
    let scheme = uri.scheme().as_str();
    let authority = uri.authority().ok_or(NOT_ABSOLUTE)?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(NOT_ABSOLUTE);
    }
    if authority.has_userinfo() {
        return Err(CREDENTIALS);
    }
    match authority.host().strip_prefix('[') {
        None => check_name(authority.host())?,
        Some(literal) => {
            let address = literal.strip_suffix(']').and_then(|literal| literal.parse::<Ipv6Addr>().ok());
            address.ok_or(BAD_HOST)?;
        }
    }
    authority.port().map_or(Ok(()), |port| check_port(port.as_str()))?;
    Ok(text)
}

/// Returns why a text is no URI, in words for its author.
fn malformed(text: &str, error: ParseError) -> InvalidValue {
    if !text.bytes().all(is_url_byte) {
        return BAD_CHARACTER;
    }
    if error.kind() == ParseErrorKind::InvalidPctEncodedOctet {
        return InvalidValue::new("must have two hexadecimal digits after every %");
    }
    let (valid, rest) = text.split_at_checked(error.index()).unwrap_or((text, ""));
    match valid.split_once("://") {
        None => NOT_ABSOLUTE,
        Some((_, authority)) if authority.contains(['/', '?', '#']) => BAD_CHARACTER,
        Some(_) if rest.split(['/', '?', '#']).next().is_some_and(|rest| rest.contains('@')) => CREDENTIALS,
        Some((_, authority)) => match authority.rsplit_once(':') {
            Some((host, _)) if !host.starts_with('[') || host.ends_with(']') => BAD_PORT,
            _ => BAD_HOST,
        },
    }
}

/// Reports whether RFC 3986 allows the byte: unreserved, reserved, or `%`.
const fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%' | b'#' | b'[' | b']')
        || matches!(
            byte,
            b':' | b'/' | b'?' | b'@' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}

/// Checks a registered name or a dotted IPv4 address. If the last label is numeric, a WHATWG parser would read the
/// whole name as an address; then it must be one in the plain spelling.
fn check_name(host: &str) -> Result<(), InvalidValue> {
    if host.is_empty() || host.len() > 253 {
        return Err(BAD_HOST);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.is_empty() || !name.split('.').all(is_label) {
        return Err(BAD_HOST);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
        && last[2..].bytes().all(|b| b.is_ascii_hexdigit());
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || hexadecimal;
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err(BAD_HOST);
    }
    Ok(())
}

/// Reports whether `host` is a DNS name or an IP address, without brackets and port.
#[must_use]
pub fn is_host(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok() || check_name(host).is_ok()
}

/// Reports whether a DNS name can have this label: letters, digits and inner hyphens, and valid Punycode after `xn--`.
fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let plain = (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && !bytes.starts_with(b"-")
        && !bytes.ends_with(b"-");
    let encoded = bytes.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case(b"xn--")).map(|_| &label[4..]);
    plain && encoded.is_none_or(|encoded| !encoded.is_empty() && idna::punycode::decode(encoded).is_some())
}

fn check_port(port: &str) -> Result<(), InvalidValue> {
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
    if digits && port.parse::<u16>().is_ok() { Ok(()) } else { Err(BAD_PORT) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_refusal_says_what_is_wrong() {
        for (text, reason) in [
            ("https://acme.example/a b", BAD_CHARACTER),
            ("https://bücher.example/", BAD_CHARACTER),
            ("https://acme.example/[x]", BAD_CHARACTER),
            ("https://acme.example/#a#b", BAD_CHARACTER),
            ("/cb", NOT_ABSOLUTE),
            ("acme.example/cb", NOT_ABSOLUTE),
            ("ftp://acme.example/", NOT_ABSOLUTE),
            ("javascript:alert(1)", NOT_ABSOLUTE),
            ("https:/acme.example", NOT_ABSOLUTE),
            ("https://user:pw@acme.example/", CREDENTIALS),
            ("https://user:pw[@acme.example/", CREDENTIALS),
            ("https://acme..example/", BAD_HOST),
            ("https://[::1/", BAD_HOST),
            ("https://[::1]x/", BAD_HOST),
            ("https://[v1.x]/", BAD_HOST),
            ("https://acme.example:x/", BAD_PORT),
            ("https://acme.example:x/@me", BAD_PORT),
            ("https://acme.example:0/", BAD_PORT),
            ("https://[::1]:x/", BAD_PORT),
            ("https://acme.example/%2", InvalidValue::new("must have two hexadecimal digits after every %")),
        ] {
            assert_eq!(BrowserUrl::new(text), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn hosts_without_a_url() {
        for (host, valid) in [
            ("console.example", true),
            ("localhost", true),
            ("10.1.2.3", true),
            ("::1", true),
            ("console.example:443", false),
            ("[::1]", false),
            ("https://console.example", false),
            ("*.example", false),
            ("", false),
        ] {
            assert_eq!(is_host(host), valid, "{host}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(https?://)?\\PC{0,60}") {
            let _ = BrowserUrl::new(&text);
        }
    }

    #[test]
    fn loopback_hosts() {
        for url in [
            "http://127.0.0.1",
            "http://127.9.8.7:80/x",
            "http://[::1]:9/x",
            "http://localhost/",
            "HTTP://LocalHost:1?a=b",
            "http://[0:0::1]",
            "http://localhost#x",
        ] {
            assert!(names_loopback(url), "{url}");
        }
        for url in [
            "http://a.example/127.0.0.1",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://[::2]/",
            "http://[::ffff:10.0.0.1]/",
            "http://128.0.0.1/",
            "http://a.example?http://localhost",
            "http://a.example#http://localhost",
            "http://localhost.",
        ] {
            assert!(!names_loopback(url), "{url}");
        }
    }

    #[test]
    fn hosts() {
        for (url, host) in [
            ("https://Pay.example", "Pay.example"),
            ("https://pay.example:8443/x:y", "pay.example"),
            ("https://pay.example?x=1:2", "pay.example"),
            ("https://pay.example#x:y", "pay.example"),
            ("https://[2001:db8::1]:8443/x", "2001:db8::1"),
            ("https://[::1]", "::1"),
            ("https://203.0.113.7/", "203.0.113.7"),
            ("embedded", ""),
            ("", ""),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
    }

    #[test]
    fn an_origin_has_one_spelling() {
        for (url, origin) in [
            ("https://A.example/cb?x=y:1", "https://a.example:443"),
            ("HTTPS://A.example.:443", "https://a.example.:443"),
            ("https://a.example:8443#:1", "https://a.example:8443"),
            ("http://a.example", "http://a.example:80"),
            ("http://192.0.2.1:443/", "http://192.0.2.1:443"),
            ("https://[2001:DB8:0::1]/cb", "https://[2001:db8::1]:443"),
            ("https://[::1]:8443?a", "https://[::1]:8443"),
        ] {
            assert_eq!(CallbackUrl::new_allowing_http(url).unwrap().origin(), origin, "{url}");
        }
    }
}
