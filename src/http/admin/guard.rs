//! Keeps web pages of others away from the admin listener.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};

use super::request::ConnectionEnds;
use crate::http::request_ids::only;

/// What a browser reports about the page behind a request. Browsers send `Origin` with requests that may change
/// something, and `Sec-Fetch-Site` with every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// Neither header: no browser, or an old one.
    Unknown,
    /// A page of this listener, or the person alone.
    Own,
    /// A link on a page of another site, which the browser opens as a page of its own.
    ForeignLink,
    /// Anything else by a page of another site.
    Foreign,
}

impl RequestOrigin {
    /// Reads the headers. `host`: the value of `Host`. `hosts`: the names that a proxy with TLS may serve.
    pub(super) fn of(host: &str, headers: &HeaderMap, ends: ConnectionEnds, hosts: &[Box<str>]) -> Self {
        let own = |origin: &HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            let port = |scheme: &str| match scheme {
                "http" => (!ends.is_tls).then_some(":80"),
                "https" => (ends.is_tls || is_configured(host, hosts)).then_some(":443"),
                _ => None,
            };
            // Browsers leave the scheme's own port out.
            let is_host = |sent: &str, port: &str| sent.eq_ignore_ascii_case(host.strip_suffix(port).unwrap_or(host));
            origin.is_some_and(|(scheme, sent)| port(scheme).is_some_and(|port| is_host(sent, port)))
        };
        let site = HeaderName::from_static("sec-fetch-site");
        let same = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
        let names = |name: &'static str, value: &str| only_text(headers, &HeaderName::from_static(name)) == Some(value);
        if headers.get_all(ORIGIN).iter().any(|origin| !own(origin)) {
            Self::Foreign
        } else if headers.get_all(&site).iter().any(|site| !same(site)) {
            let opens_a_page = names("sec-fetch-mode", "navigate") && names("sec-fetch-dest", "document");
            if opens_a_page { Self::ForeignLink } else { Self::Foreign }
        } else if headers.contains_key(ORIGIN) || headers.contains_key(&site) {
            Self::Own
        } else {
            Self::Unknown
        }
    }
}

/// Returns the value of a header that was sent exactly once, as text.
pub(super) fn only_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    only(headers, name)?.to_str().ok()
}

/// Returns the only `Host`; an absolute request target must name the same host. HTTP/1.0 requests may have none, which counts
/// as an empty name: load balancers send such probes.
pub(super) fn host_of<'a>(uri: &Uri, version: Version, headers: &'a HeaderMap) -> Option<&'a str> {
    let may_lack = version == Version::HTTP_10 && !headers.contains_key(HOST);
    let host = if may_lack { "" } else { only_text(headers, &HOST)? };
    uri.authority().is_none_or(|authority| authority.as_str() == host).then_some(host)
}

/// Reports whether `Host`, with or without a port, is a name of this listener. Names under an attacker's control that
/// resolve to this address are none.
pub(super) fn is_own_name(host: &str, local: Option<IpAddr>, hosts: &[Box<str>]) -> bool {
    let Some(name) = without_port(host) else { return false };
    let is_own = |address: IpAddr| {
        address.is_loopback() || local.is_some_and(|local| address.to_canonical() == local.to_canonical())
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(is_own) || is_configured(host, hosts)
}

/// Reports whether `Host` is one of `[admin] hosts`.
fn is_configured(host: &str, hosts: &[Box<str>]) -> bool {
    let Some(name) = without_port(host) else { return false };
    let address: Option<IpAddr> = name.parse().ok();
    hosts.iter().any(|own| name.eq_ignore_ascii_case(own) || (address.is_some() && own.parse().ok() == address))
}

/// Returns the name or address in a `Host`, without brackets and port.
fn without_port(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(_, port)| is_port(port)).map(|(address, _)| address),
        None => host.find(':').map_or(Some(host), |at| is_port(&host[at..]).then_some(&host[..at])),
    }
}

/// Reports whether the text is empty, or a colon and a port.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}
