//! Secrets as rule files name them: never printed, ready to sign with.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit};
use sha2::{Sha256, Sha512};

/// A secret's bytes with the keyed hash states made from them once. `Debug` shows nothing.
#[derive(Clone)]
pub struct Secret(Arc<Inner>);

struct Inner {
    bytes: Box<[u8]>,
    sha256: Hmac<Sha256>,
    sha512: Hmac<Sha512>,
}

impl Secret {
    /// Takes the bytes of a secret.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let sha256 = Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length");
        let sha512 = Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length");
        Self(Arc::new(Inner { bytes: bytes.into(), sha256, sha512 }))
    }

    /// The bytes themselves, for the places that need them raw.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0.bytes
    }

    /// An HMAC-SHA256 keyed with this secret.
    #[must_use]
    pub fn sha256(&self) -> Hmac<Sha256> {
        self.0.sha256.clone()
    }

    /// An HMAC-SHA512 keyed with this secret.
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

/// One or more secrets: the first signs, any of them verifies (contract section 2), so that a secret is rotated without
/// a refused request.
#[derive(Debug, Clone)]
pub struct Secrets(Arc<[Secret]>);

impl Secrets {
    /// Takes a list of secrets; `None` when it is empty.
    #[must_use]
    pub fn new(list: Vec<Secret>) -> Option<Self> {
        if list.is_empty() { None } else { Some(Self(list.into())) }
    }

    /// The secret that signs.
    #[must_use]
    pub fn signing(&self) -> &Secret {
        &self.0[0]
    }

    /// The secrets that verify.
    pub fn verifying(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}
