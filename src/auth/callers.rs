//! The proof types of authentication, in the order in which a request gets them (contract section 3, steps 4 to 6):
//! [`KnownKey`], [`AdmittedKey`], [`Caller`] with [`SignedBody`]. Each is created only from the one before.
//!
//! They contain the whole rule set with its API keys, so their `Debug` shows only the merchant and the address.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use governor::clock::Clock as _;

use super::signatures::{self, V1Input, is_fresh};
use crate::domain::{CallbackSignature, Secrets, UnixMillis, canonical_ip};
use crate::error::{AdmissionError, AuthenticationFailure};
use crate::rules::{ApiKey, KeyEntry, Merchant, RuleSet};

/// The API version, which decides which of a key's secrets sign a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Signed by the recipe of the merchant's dialect.
    V1,
    /// Signed by v2's recipe.
    V2,
}

/// A key that exists and has a secret for an interface. The sender is not authenticated yet.
pub struct KnownKey {
    rules: Arc<RuleSet>,
    entry: KeyEntry,
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
        Ok(Self { rules: Arc::clone(rules), entry: entry.clone(), secrets })
    }

    /// Returns the merchant of the key. The sender is not authenticated as this merchant yet.
    #[must_use]
    pub fn merchant(&self) -> &Arc<Merchant> {
        &self.entry.merchant
    }

    /// Admits a request from `address` with this key, and counts it against the key's rate limit.
    ///
    /// # Errors
    /// The address is not on the key's allow-list, or the rate limit is exceeded.
    pub fn admit(self, address: IpAddr) -> Result<AdmittedKey, AdmissionError> {
        let key = self.entry.api_key();
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

/// The bytes of a body whose signature was verified.
#[derive(Clone)]
pub struct SignedBody(Bytes);

impl SignedBody {
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

/// Verifies the v2 signature of a body that the gateway forwards for a caller.
///
/// # Errors
/// The key has no v2 secret, or none of its secrets made the signature.
pub fn verify_forwarded(caller: &Caller, body: Bytes, signature: &str) -> Result<SignedBody, AuthenticationFailure> {
    let secrets = caller.api_key().v2_secrets.as_ref().ok_or(AuthenticationFailure::UnknownKey)?;
    if signatures::verify_v2(secrets, &body, signature.as_bytes()) {
        Ok(SignedBody(body))
    } else {
        Err(AuthenticationFailure::WrongSignature)
    }
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
