//! Secrets, which are never printed and are ready to sign with.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit};
use sha2::{Sha256, Sha512};

/// A secret's bytes with precomputed keyed hash states. `Debug` shows nothing of it.
#[derive(Clone)]
pub struct Secret(Arc<Inner>);

struct Inner {
    bytes: Box<[u8]>,
    sha256: Hmac<Sha256>,
    sha512: Hmac<Sha512>,
}

impl Secret {
    /// Creates a secret from its bytes.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let sha256 = Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length");
        let sha512 = Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length");
        Self(Arc::new(Inner { bytes: bytes.into(), sha256, sha512 }))
    }

    /// Returns the bytes, for uses other than HMAC.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns an HMAC-SHA256 keyed with this secret.
    #[must_use]
    pub fn sha256(&self) -> Hmac<Sha256> {
        self.0.sha256.clone()
    }

    /// Returns an HMAC-SHA512 keyed with this secret.
    #[must_use]
    pub fn sha512(&self) -> Hmac<Sha512> {
        self.0.sha512.clone()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// One or more secrets: the first signs and all verify (contract section 2), so that a secret can be rotated without
/// rejecting a request.
#[derive(Debug, Clone)]
pub struct Secrets(Arc<[Secret]>);

impl Secrets {
    /// Creates it from a list; returns `None` for an empty one.
    #[must_use]
    pub fn new(list: Vec<Secret>) -> Option<Self> {
        if list.is_empty() { None } else { Some(Self(list.into())) }
    }

    /// Returns the secret that signs.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "an empty list is refused by the constructor")]
    pub fn signing(&self) -> &Secret {
        &self.0[0]
    }

    /// Returns the secrets that verify.
    pub fn verifying(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}
