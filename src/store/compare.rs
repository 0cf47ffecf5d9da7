//! The keyed hash by which requests are compared without keeping what they said.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A keyed hash of a canonical request: the first 16 bytes of HMAC-SHA256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

/// Makes [`Digest`]s with the store's comparison key, which never changes.
#[derive(Clone)]
pub struct Comparer(Hmac<Sha256>);

impl fmt::Debug for Comparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Comparer(..)")
    }
}

impl Comparer {
    /// Uses `key` from now on.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// Begins a hash; `purpose` keeps hashes of different things apart.
    #[must_use]
    pub fn start(&self, purpose: &str) -> Hashing {
        let mut hashing = Hashing(self.0.clone());
        hashing.part(purpose.as_bytes());
        hashing
    }
}

/// A hash being made of parts. Parts are length-prefixed: no two lists of parts hash alike.
#[derive(Debug)]
pub struct Hashing(Hmac<Sha256>);

impl Hashing {
    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a part that may be absent; absent and empty differ.
    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => {
                self.0.update(&[1]);
                self.part(bytes);
            }
            None => self.0.update(&[0]),
        }
    }

    /// The hash of all parts.
    #[must_use]
    pub fn finish(self) -> Digest {
        let full = self.0.finalize().into_bytes();
        let mut digest = [0; 16];
        digest.copy_from_slice(&full[..16]);
        Digest(digest)
    }
}
