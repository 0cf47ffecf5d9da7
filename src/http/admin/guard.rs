//! Decides which requests may use the admin listener.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};

use super::reply::{self, AdminReply};
use crate::domain::{Secret, Secrets};

/// Rejects requests from web pages and, if a token is configured, requests without it.
pub(super) struct Guard {
    /// The bearer token, if one is configured.
    pub token: Option<Secrets>,
    /// Names that `Host` may have besides loopback and the listening address, in lower case.
    pub hosts: Vec<Box<str>>,
}

impl Guard {
    /// Returns the reply that refuses a request, or `None` if it is allowed. `is_open`: the path needs no token.
    /// `local`: the address on which its connection was accepted.
    pub(super) fn refuse(
        &self,
        is_open: bool,
        local: SocketAddr,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<AdminReply> {
        let Some(host) = host_of(uri, headers) else {
            return Some(reply::bad_request("send exactly one Host"));
        };
        let with_token = self.has_token(headers);
        if !with_token && !self.is_own_name(host, local.ip()) {
            return Some(reply::forbidden("Host must be localhost, the listening address or one of [admin] hosts"));
        }
        if comes_from_another_site(host, headers) {
            return Some(reply::forbidden("web pages of other origins may not use this listener"));
        }
        let is_open = is_open || self.token.is_none();
        (!is_open && !with_token).then(reply::unauthorized)
    }

    /// Reports whether `Host`, with or without a port, is a name of this listener. Names under an attacker's control
    /// that resolve to this address are none.
    fn is_own_name(&self, host: &str, local: IpAddr) -> bool {
        let Some(name) = without_port(host) else { return false };
        let is_own = |address: IpAddr| address.is_loopback() || address.to_canonical() == local.to_canonical();
        let address: Option<IpAddr> = name.parse().ok();
        let is_configured =
            |own: &str| name.eq_ignore_ascii_case(own) || (address.is_some() && own.parse().ok() == address);
        name.eq_ignore_ascii_case("localhost")
            || address.is_some_and(is_own)
            || self.hosts.iter().any(|own| is_configured(own))
    }

    /// Reports whether the request carries the token; false when none is configured.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let (Some(token), Some(credentials)) = (&self.token, only(headers, &AUTHORIZATION)) else { return false };
        let Some((scheme, sent)) = credentials.split_once(' ') else { return false };
        // Every secret is compared, so that the time does not reveal which of them is close.
        let equal = |secret: &Secret| verify_slices_are_equal(secret.expose(), sent.as_bytes()).is_ok();
        let matching = token.verifying().filter(|secret| equal(secret)).count();
        scheme.eq_ignore_ascii_case("bearer") && matching > 0
    }
}

/// Returns the value of a header that was sent exactly once, as text.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns the only `Host`; an absolute request target must name the same host.
fn host_of<'a>(uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = only(headers, &HOST)?;
    uri.authority().is_none_or(|authority| authority.as_str() == host).then_some(host)
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

/// Reports whether a web page of another site made the request. Browsers send `Origin` with requests that may change
/// something, and newer ones `Sec-Fetch-Site` with every request.
fn comes_from_another_site(host: &str, headers: &HeaderMap) -> bool {
    let own =
        |origin: &HeaderValue| origin.as_bytes().strip_prefix(b"http://").is_some_and(|rest| rest == host.as_bytes());
    let same = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get_all(ORIGIN).iter().any(|origin| !own(origin))
        || headers.get_all("sec-fetch-site").iter().any(|site| !same(site))
}
