//! The keyed hash by which requests are compared without keeping what they said.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::domain::{Direction, MerchantId, OrderId};

/// A keyed hash of a canonical request: the first 16 bytes of HMAC-SHA256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

/// Short keyed hashes of the members of a v1 body, [`V1Members::SHORT`] bytes each, in an order that never changes (see
/// [`crate::wire::v1`]). They tell in which members two bodies differ; whether they differ is the [`Digest`]'s to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct V1Members(pub [u8; 40]);

impl V1Members {
    /// How many bytes a member has.
    pub const SHORT: usize = 4;

    /// The hash of each of the members, in their order.
    #[must_use]
    pub fn of(members: [Digest; 10]) -> Self {
        let mut all = [0; 40];
        for (short, digest) in all.chunks_exact_mut(Self::SHORT).zip(members) {
            short.copy_from_slice(&digest.0[..Self::SHORT]);
        }
        Self(all)
    }

    /// The places of the members in which two bodies differ.
    pub fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = usize> + 'a {
        let shorts = |members: &'a Self| members.0.chunks_exact(Self::SHORT);
        shorts(self).zip(shorts(other)).enumerate().filter(|(_, (one, other))| one != other).map(|(place, _)| place)
    }
}

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

    /// The short key of an order: what makes an operation unique. Sixteen bytes, whatever the length of the `order_id`.
    #[must_use]
    pub fn order_key(&self, merchant: &MerchantId, direction: Direction, order: &OrderId) -> Digest {
        let mut hashing = self.start("order");
        hashing.part(merchant.as_str().as_bytes());
        hashing.part(direction.as_str().as_bytes());
        hashing.part(order.as_str().as_bytes());
        hashing.finish()
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
