//! The headers of forwarded requests and of their replies: what belongs to one connection stays there.

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::v2::ForwardedHeaders;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Headers of a connection (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers in which proxies name the address of their client. An old service might take it for the caller's, and compare
/// it with its allow-list.
const CLIENT_ADDRESSES: [&str; 19] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
];

/// Returns the headers of a forwarded request, with the caller's address in `X-Forwarded-For` and in
/// `client_address_headers`, and in no other. `Host` and `Content-Length` are set when it is sent.
pub(super) fn of_request(
    sent: &HeaderMap,
    address: IpAddr,
    client_address_headers: &[HeaderName],
    forwarded: &ForwardedHeaders,
    via: Option<HeaderValue>,
) -> HeaderMap {
    let mut headers = sent.clone();
    remove_hop_by_hop(&mut headers);
    let replaced = [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::FORWARDED, X_REQUEST_ID, TRACEPARENT];
    for name in replaced {
        headers.remove(name);
    }
    let is_replaced = |name: &HeaderName| {
        let same = |other: &HeaderName| spelled(other.as_str()) == spelled(name.as_str());
        is_of_proxies(&spelled(name.as_str())) || client_address_headers.iter().any(same)
    };
    let of_proxies = headers.keys().filter(|name| is_replaced(name)).cloned();
    for name in of_proxies.collect::<Vec<_>>() {
        headers.remove(name);
    }
    join_cookies(&mut headers);
    if let Ok(address) = HeaderValue::try_from(address.to_canonical().to_string()) {
        for name in client_address_headers.iter().chain([&X_FORWARDED_FOR]) {
            headers.insert(name, address.clone());
        }
    }
    for (name, value) in [
        (X_FORWARDED_PROTO, Some(HeaderValue::from_static("https"))),
        (X_REQUEST_ID, forwarded.request_id.clone()),
        (TRACEPARENT, forwarded.traceparent.clone()),
    ] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if let Some(via) = via {
        headers.append(header::VIA, via);
    }
    headers
}

/// Returns a header's name as CGI and its successors read it, which take `_` for `-`.
fn spelled(name: &str) -> Cow<'_, str> {
    if name.contains('_') { name.replace('_', "-").into() } else { name.into() }
}

/// Reports whether a header is a proxy's: the way of the request, its client's address, or the path that a server should
/// take for the request's.
fn is_of_proxies(name: &str) -> bool {
    name.starts_with("x-forwarded-")
        || ["forwarded", "x-original-url", "x-rewrite-url"].contains(&name)
        || CLIENT_ADDRESSES.binary_search(&name).is_ok()
}

/// Removes from a reply what is not passed on. Its length is set anew, but for a reply to HEAD and for 304, whose bodies
/// are elsewhere.
pub(super) fn remove_from_reply(headers: &mut HeaderMap, is_without_body: bool) {
    remove_hop_by_hop(headers);
    headers.remove(header::ALT_SVC);
    if !is_without_body {
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Reports whether a request passed a proxy of this name.
pub(super) fn is_via(headers: &HeaderMap, pseudonym: &str) -> bool {
    let entries = headers.get_all(header::VIA).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut names = entries.filter_map(|entry| {
        let mut words = entry.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(1)
    });
    names.any(|name| name == pseudonym.as_bytes())
}

/// Removes the headers of a connection, and those that `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = values.flat_map(|value| value.split(',')).map(str::trim);
    let named: Vec<HeaderName> = named.filter_map(|name| HeaderName::try_from(name).ok()).collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Joins cookies, which HTTP/2 may split into several headers, and HTTP/1 may not (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn appended(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        all
    }

    #[test]
    fn no_header_of_the_callers_names_its_address() {
        assert!(CLIENT_ADDRESSES.is_sorted());
        let address = "198.51.100.7".parse().unwrap();
        let named = [HeaderName::from_static("x-real-ip"), HeaderName::from_static("x_caller"), X_FORWARDED_FOR];
        let forwarded = ForwardedHeaders::default();
        let mut sent =
            appended(&[("x-caller", "203.0.113.9"), ("x_caller", "203.0.113.9"), ("x-forwarded-for", "203.0.113.9")]);
        for name in CLIENT_ADDRESSES {
            for name in [name.to_owned(), name.replace('-', "_")] {
                sent.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("203.0.113.9"));
            }
        }
        let https = ("x-forwarded-proto", "https");
        let expected = appended(&[("x-forwarded-for", "198.51.100.7"), https]);
        let mut without = sent.clone();
        for name in ["x-caller", "x_caller"] {
            without.remove(name);
        }
        assert_eq!(of_request(&without, address, &[], &forwarded, None), expected);
        let expected = appended(&[
            ("x-real-ip", "198.51.100.7"),
            ("x_caller", "198.51.100.7"),
            ("x-forwarded-for", "198.51.100.7"),
            https,
        ]);
        assert_eq!(of_request(&sent, address, &named, &forwarded, None), expected);
    }

    #[test]
    fn a_loop_is_recognized_by_its_name() {
        for (via, expected) in [
            ("1.1 paybridge-1", true),
            ("1.0 fred, 2 paybridge-1 (comment)", true),
            ("HTTP/1.1 \tpaybridge-1", true),
            ("1.1 paybridge-12", false),
            ("paybridge-1", false),
        ] {
            assert_eq!(is_via(&headers(&[("via", via)]), "paybridge-1"), expected, "{via}");
        }
        assert!(is_via(&appended(&[("via", "1.1 a"), ("via", "1.1 paybridge-1")]), "paybridge-1"));
    }
}
