//! The proof types of authentication, in the order in which a request gets them (contract section 3, steps 4 to 6):
//! [`KnownKey`], [`AdmittedKey`], [`Caller`] with [`SignedBody`]. Each is created only from the one before. And the address
//! from which a request comes, behind trusted proxies ([`client_address`]).
//!
//! They contain the whole rule set with its API keys, so their `Debug` shows only the merchant and the address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::Arc;

use bytes::Bytes;
use governor::clock::Clock as _;
use ipnet::IpNet;

use super::signatures::{self, V1Input, is_fresh};
use crate::domain::{CallbackSignature, Secrets, UnixMillis, canonical_ip};
use crate::error::{AdmissionError, ApiError, AuthenticationFailure};
use crate::rules::{ApiKey, KeyEntry, Merchant, RuleSet};

/// The API version, which decides which of a key's secrets sign a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Signed by the recipe of the merchant's dialect.
    V1,
    /// Signed by v2's recipe.
    V2,
}

impl Interface {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Returns its name: `v1`, `v2`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// A key that exists and has a secret for an interface. The sender is not authenticated yet.
pub struct KnownKey {
    rules: Arc<RuleSet>,
    entry: KeyEntry,
    interface: Interface,
    secrets: Secrets,
}

impl KnownKey {
    /// Finds the key of a request.
    ///
    /// # Errors
    /// No such key, or it has no secret for this interface.
    pub fn find(rules: &Arc<RuleSet>, interface: Interface, key: &str) -> Result<Self, AuthenticationFailure> {
        let entry = rules.api_key(key).ok_or(AuthenticationFailure::UnknownKey)?;
        let secrets = match interface {
            Interface::V1 => &entry.api_key().v1_secrets,
            Interface::V2 => &entry.api_key().v2_secrets,
        };
        let secrets = secrets.clone().ok_or(AuthenticationFailure::UnknownKey)?;
        Ok(Self { rules: Arc::clone(rules), entry: entry.clone(), interface, secrets })
    }

    /// Returns the merchant of the key. The sender is not authenticated as this merchant yet.
    #[must_use]
    pub fn merchant(&self) -> &Arc<Merchant> {
        &self.entry.merchant
    }

    /// Admits a request from `address` with this key, and counts it against the key's rate limit.
    ///
    /// # Errors
    /// The key is not enabled for v2, the address is not on its allow-list, or the rate limit is exceeded.
    pub fn admit(self, address: IpAddr) -> Result<AdmittedKey, AdmissionError> {
        let key = self.entry.api_key();
        if self.interface == Interface::V2 && !key.v2 {
            return Err(AdmissionError::Unauthenticated(AuthenticationFailure::V2NotEnabled));
        }
        if !key.allowed_ips.contains(address) {
            return Err(AdmissionError::AddressNotAllowed);
        }
        if let Some(rate) = &key.rate_limit {
            rate.limiter.check().map_err(|not_until| AdmissionError::RateLimited {
                retry_after: not_until.wait_time_from(rate.limiter.clock().now()),
            })?;
        }
        Ok(AdmittedKey { key: self, address: canonical_ip(address) })
    }
}

/// A known key, used from an allowed address and within its rate limit.
pub struct AdmittedKey {
    key: KnownKey,
    address: IpAddr,
}

impl AdmittedKey {
    /// Returns the merchant of the key. The sender is not authenticated as this merchant yet.
    #[must_use]
    pub fn merchant(&self) -> &Arc<Merchant> {
        self.key.merchant()
    }

    /// Authenticates the caller by a v2 signature over the raw body.
    ///
    /// # Errors
    /// None of the key's v2 secrets made the signature.
    pub fn verify_v2(self, body: Bytes, signature: &[u8]) -> Result<(Caller, SignedBody), AuthenticationFailure> {
        if signatures::verify_v2(&self.key.secrets, &body, signature) {
            Ok(self.authenticated(body))
        } else {
            Err(AuthenticationFailure::WrongSignature)
        }
    }

    /// Authenticates the caller by a v1 signature, made by the recipe of the merchant's dialect.
    ///
    /// # Errors
    /// The timestamp is outside the window around `now`, or none of the key's v1 secrets made the signature.
    pub fn verify_v1(
        self,
        head: &V1Head<'_>,
        body: Bytes,
        now: UnixMillis,
    ) -> Result<(Caller, SignedBody), AuthenticationFailure> {
        let recipe = &self.key.entry.merchant.v1.dialect.signature;
        if !is_fresh(recipe, head.timestamp.as_bytes(), now) {
            return Err(AuthenticationFailure::StaleTimestamp);
        }
        let input = V1Input {
            timestamp: head.timestamp,
            method: head.method,
            path: head.path,
            query: head.query,
            api_key: &self.key.entry.api_key().key,
            body: &body,
        };
        if signatures::verify_v1(recipe, &self.key.secrets, &input, head.signature) {
            Ok(self.authenticated(body))
        } else {
            Err(AuthenticationFailure::WrongSignature)
        }
    }

    fn authenticated(self, body: Bytes) -> (Caller, SignedBody) {
        let Self { key, address } = self;
        (Caller { rules: key.rules, entry: key.entry, address }, SignedBody(body))
    }
}

/// The parts of a request's head that a v1 signature covers, and the signature.
#[derive(Clone, Copy)]
pub struct V1Head<'a> {
    /// The text of the timestamp header.
    pub timestamp: &'a str,
    /// The text of the signature header.
    pub signature: &'a [u8],
    /// The method, in upper case.
    pub method: &'a str,
    /// The path as sent.
    pub path: &'a str,
    /// The query as sent, without `?`.
    pub query: Option<&'a str>,
}

/// An authenticated caller: its key is known, its address allowed, its signature verified. Contains the rule set that
/// serves its request.
#[derive(Clone)]
pub struct Caller {
    rules: Arc<RuleSet>,
    entry: KeyEntry,
    address: IpAddr,
}

impl Caller {
    /// Returns the merchant.
    #[must_use]
    pub fn merchant(&self) -> &Arc<Merchant> {
        &self.entry.merchant
    }

    /// Returns the key of the request.
    #[must_use]
    pub fn api_key(&self) -> &ApiKey {
        self.entry.api_key()
    }

    /// Returns the rule set that serves this request.
    #[must_use]
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Returns the caller's address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }
}

/// The proof that a body is signed: a caller's signature over these bytes was verified, or this process made one just now.
#[derive(Clone)]
pub struct SignedBody(Bytes);

impl SignedBody {
    /// Signs a v2 body that was made for a caller, with its key's first v2 secret. The signature itself is not kept: it does
    /// not leave this process.
    ///
    /// # Errors
    /// The key has no v2 secret.
    pub fn sign(caller: &Caller, body: Bytes) -> Result<Self, ApiError> {
        sign_v2(caller.api_key(), &body)?;
        Ok(Self(body))
    }

    /// Returns the bytes exactly as signed.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for KnownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownKey(of {})", self.entry.merchant.id.as_str())
    }
}

impl fmt::Debug for AdmittedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdmittedKey(of {} from {})", self.key.entry.merchant.id.as_str(), self.address)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({} from {})", self.entry.merchant.id.as_str(), self.address)
    }
}

impl fmt::Debug for SignedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedBody({} bytes)", self.0.len())
    }
}

/// Signs a v2 body with a key's first v2 secret.
///
/// # Errors
/// The key has no v2 secret.
pub fn sign_v2(key: &ApiKey, body: &[u8]) -> Result<String, ApiError> {
    let secrets = key.v2_secrets.as_ref();
    let secrets = secrets.ok_or_else(|| ApiError::Internal { cause: "the calling key has no v2_secret".to_owned() })?;
    Ok(signatures::sign_v2(secrets.signing(), body))
}

/// Verifies that a callback comes from the v2 engine, which holds one of these secrets. `head` has what else the recipe
/// may sign; its `body` is ignored.
///
/// # Errors
/// None of the secrets made the signature.
pub fn verify_callback(
    recipe: &CallbackSignature,
    secrets: &Secrets,
    head: &V1Input<'_>,
    body: Bytes,
    signature: &[u8],
) -> Result<SignedBody, AuthenticationFailure> {
    if signatures::verify_callback(recipe, secrets, &V1Input { body: &body, ..*head }, signature) {
        Ok(SignedBody(body))
    } else {
        Err(AuthenticationFailure::WrongSignature)
    }
}

/// Verifies a body signed with one of these secrets by v2's recipe, as HTTP providers sign.
///
/// # Errors
/// None of the secrets made the signature.
pub fn verify_signed_by(secrets: &Secrets, body: Bytes, signature: &[u8]) -> Result<SignedBody, AuthenticationFailure> {
    if signatures::verify_v2(secrets, &body, signature) {
        Ok(SignedBody(body))
    } else {
        Err(AuthenticationFailure::WrongSignature)
    }
}

/// Returns the caller's address. `peer` is the other end of the connection, and `forwarded` has the values of all
/// `X-Forwarded-For` lines in order. Together they are one list, to which each proxy appends the address of its client.
///
/// The list is trusted from its end for as long as its entries are trusted proxies: the caller is the rightmost entry
/// that is not a trusted proxy. An untrusted peer is itself the caller. At an entry that is not an address, the caller
/// is the last trusted proxy, because nothing vouches for the entries left of it. Addresses may have a port, and IPv6
/// brackets, as some proxies write them.
///
/// `Forwarded`, `X-Real-IP` and similar headers never count.
#[must_use]
pub fn client_address<'a>(
    peer: IpAddr,
    trusted_proxies: &[IpNet],
    forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> IpAddr {
    let mut caller = canonical_ip(peer);
    if !is_trusted(trusted_proxies, caller) {
        return caller;
    }
    for entry in forwarded.rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
        let Some(address) = entry_address(entry) else { break };
        caller = address;
        if !is_trusted(trusted_proxies, caller) {
            break;
        }
    }
    caller
}

/// Reports whether a canonical address is a trusted proxy's. Rules may contain IPv4 prefixes in IPv6-mapped form.
fn is_trusted(trusted_proxies: &[IpNet], address: IpAddr) -> bool {
    let mapped = match address {
        IpAddr::V4(address) => IpAddr::V6(address.to_ipv6_mapped()),
        IpAddr::V6(_) => address,
    };
    trusted_proxies.iter().any(|prefix| prefix.contains(&address) || prefix.contains(&mapped))
}

fn entry_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim_matches([' ', '\t']);
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        IpAddr::V6(address.parse::<Ipv6Addr>().ok().filter(|_| port_fits)?)
    } else if let Ok(address) = text.parse::<Ipv4Addr>() {
        IpAddr::V4(address)
    } else if let Ok(with_port) = text.parse::<SocketAddrV4>() {
        IpAddr::V4(*with_port.ip())
    } else {
        IpAddr::V6(text.parse::<Ipv6Addr>().ok()?)
    };
    Some(canonical_ip(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(peer: &str, trusted: &[&str], lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &trusted, lines.iter().map(|line| line.as_bytes())).to_string()
    }

    #[test]
    fn forwarding_headers_count_only_from_trusted_proxies() {
        assert_eq!(caller("192.0.2.1", &[], &["203.0.113.7"]), "192.0.2.1", "no proxy is trusted");
        assert_eq!(caller("192.0.2.1", &["10.0.0.0/8"], &["203.0.113.7"]), "192.0.2.1", "another proxy is trusted");
        assert_eq!(caller("::ffff:192.0.2.1", &[], &[]), "192.0.2.1", "canonical");
    }

    #[test]
    fn the_rightmost_untrusted_entry_is_the_caller() {
        let trusted = ["10.0.0.0/8", "2001:db8:aaaa::/48"];
        for (lines, expected) in [
            (&[][..], "10.0.0.1"),
            (&["203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1", "203.0.113.7"], "203.0.113.7"),
            (&["203.0.113.7", "10.9.9.9,10.8.8.8"], "203.0.113.7"),
            (&["198.51.100.1,203.0.113.7\t, 10.9.9.9", "2001:db8:aaaa::9"], "203.0.113.7"),
            (&["10.9.9.9, 10.8.8.8"], "10.9.9.9"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            (&["203.0.113.7, ::ffff:10.9.9.9"], "203.0.113.7"),
            (&["2001:db8::7"], "2001:db8::7"),
            (&["203.0.113.7:4711"], "203.0.113.7"),
            (&["[2001:db8::7]"], "2001:db8::7"),
            (&["[2001:db8::7]:4711"], "2001:db8::7"),
        ] {
            assert_eq!(caller("10.0.0.1", &trusted, lines), expected, "{lines:?}");
            assert_eq!(caller("::ffff:10.0.0.1", &trusted, lines), expected, "{lines:?}");
        }
        assert_eq!(caller("10.0.0.1", &["::ffff:10.0.0.0/104"], &["203.0.113.7"]), "203.0.113.7");
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_walk_at_the_last_trusted_proxy() {
        for bad in
            ["", "unknown", "_hidden", "203.0.113.7/32", "203.0.113", "203.0.113.7:x", "[::1", "[::1]x", "\u{e9}"]
        {
            let line = format!("198.51.100.1, {bad}, 10.9.9.9");
            assert_eq!(caller("10.0.0.1", &["10.0.0.0/8"], &[&line]), "10.9.9.9", "{bad}");
            assert_eq!(caller("10.0.0.1", &["10.0.0.0/8"], &["198.51.100.1", bad]), "10.0.0.1", "{bad}");
        }
    }
}
