//! The proof types of authentication.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::signatures;
use crate::failure::AuthenticationFailure;
use crate::rules::{ApiKey, KeyEntry, Merchant, RuleSet};

/// A caller whose key is known, whose address is allowed and whose signature was verified, with the rule set that its
/// request is served by.
#[derive(Debug, Clone)]
pub struct Caller {
    rules: Arc<RuleSet>,
    entry: KeyEntry,
    address: IpAddr,
}

impl Caller {
    /// The merchant.
    #[must_use]
    pub fn merchant(&self) -> &Arc<Merchant> {
        &self.entry.merchant
    }

    /// The key it called with.
    #[must_use]
    pub fn api_key(&self) -> &ApiKey {
        self.entry.api_key()
    }

    /// The one snapshot that serves this request.
    #[must_use]
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Where it calls from.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }
}

/// The bytes of a body whose signature was verified.
#[derive(Clone)]
pub struct SignedBody(Bytes);

impl SignedBody {
    /// The bytes, exactly as signed.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl std::fmt::Debug for SignedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SignedBody({} bytes)", self.0.len())
    }
}

/// Verifies the v2 signature of a body that the gateway forwards for a caller.
///
/// # Errors
/// The key has no v2 secret, or none of its secrets made the signature.
pub fn verify_forwarded(caller: &Caller, body: Bytes, signature: &str) -> Result<SignedBody, AuthenticationFailure> {
    let secrets = caller.api_key().v2_secrets.as_ref().ok_or(AuthenticationFailure::UnknownKey)?;
    if secrets.verifying().any(|secret| signatures::verify_v2(secret, &body, signature)) {
        Ok(SignedBody(body))
    } else {
        Err(AuthenticationFailure::WrongSignature)
    }
}
