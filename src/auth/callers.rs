//! The proof types of authentication.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

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
