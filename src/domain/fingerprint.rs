//! Keyed hashes, by which requests are compared without storing their content.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use super::{Direction, MerchantId, OrderId, wide};

/// A hash of canonical content: the first 16 bytes of HMAC-SHA256, or of SHA-256 where there is nothing to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Returns the first eight bytes as a number, an identifier of the hashed content.
    #[must_use]
    pub fn number(self) -> i64 {
        let mut first = [0; 8];
        first.copy_from_slice(self.0.split_at(8).0);
        i64::from_be_bytes(first)
    }
}

/// Short keyed hashes of the members of a v1 body whose text the translated v2 request does not contain: they were
/// dropped, filled in by a rule, or spelled differently. Usually there are none. They show in which members two bodies
/// differ; the [`Fingerprint`] decides whether they differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberFingerprints(Vec<(u8, MemberFingerprint)>);

/// The short keyed hash of one member.
pub type MemberFingerprint = [u8; 4];

impl MemberFingerprints {
    /// The number of v1's `paymentData`.
    pub const PAYMENT_DATA: u8 = 8;

    /// Adds the hash of the member of a number (see `crate::v1`, which numbers them).
    pub fn add(&mut self, member: u8, short: MemberFingerprint) {
        self.0.push((member, short));
    }

    /// Returns the hash of a member, if it was added.
    #[must_use]
    pub fn get(&self, member: u8) -> Option<MemberFingerprint> {
        self.0.iter().find(|(known, _)| *known == member).map(|(_, short)| *short)
    }

    /// Appends the hashes in the stored format: their count, then five bytes each.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        // There are fewer than 256 members.
        bytes.push(u8::try_from(self.0.len()).unwrap_or(u8::MAX));
        for (member, short) in &self.0 {
            bytes.push(*member);
            bytes.extend_from_slice(short);
        }
    }

    /// Parses what [`MemberFingerprints::write_to`] wrote; returns the rest of the bytes too.
    #[must_use]
    pub fn read_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (count, rest) = bytes.split_first()?;
        let (all, rest) = rest.split_at_checked(usize::from(*count) * 5)?;
        let (all, []) = all.as_chunks::<5>() else { return None };
        Some((Self(all.iter().map(|[member, short @ ..]| (*member, *short)).collect()), rest))
    }
}

/// Computes [`Fingerprint`]s with the store's comparison key, which never changes.
#[derive(Clone)]
pub struct FingerprintKey {
    keyed: Hmac<Sha256>,
    /// A SHA-256 state that has absorbed one secret block derived from the key.
    short: Sha256,
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(..)")
    }
}

impl FingerprintKey {
    /// Creates the key from its 32 bytes.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        let keyed: Hmac<Sha256> = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        let mut secret_block = [0; 64];
        let derived = keyed.clone().chain_update(&FingerprintInput::of("short hashes").0).finalize().into_bytes();
        let (start, _) = secret_block.split_at_mut(derived.len());
        start.copy_from_slice(&derived);
        Self { keyed, short: Sha256::new_with_prefix(secret_block) }
    }

    /// Returns the fingerprint of an input.
    #[must_use]
    pub fn fingerprint(&self, parts: &FingerprintInput) -> Fingerprint {
        let full = self.keyed.clone().chain_update(&parts.0).finalize().into_bytes();
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(full.split_at(16).0);
        Fingerprint(fingerprint)
    }

    /// Returns a short hash of an input: a hint at what differs, not a proof of equality. HMAC's outer hash is left
    /// out, which saves half of the work for a short text. It protects against extending a known hash, and at most six
    /// bytes of this hash are ever revealed.
    #[must_use]
    pub fn short(&self, parts: &FingerprintInput) -> MemberFingerprint {
        self.first_bytes(parts)
    }

    /// Returns the first bytes of such a hash, which is never revealed as a whole.
    fn first_bytes<const LENGTH: usize>(&self, parts: &FingerprintInput) -> [u8; LENGTH] {
        let whole = self.short.clone().chain_update(&parts.0).finalize();
        let mut first = [0; LENGTH];
        first.copy_from_slice(whole.split_at(LENGTH).0);
        first
    }

    /// Returns the key that makes an operation unique: sixteen bytes for an `order_id` of any length.
    ///
    /// The last ten bytes are a hash of the order. The first six are a hash of the `order_id` without its last two
    /// characters: orders with consecutive numbers are neighbours in the index, and a commit changes few of its pages.
    #[must_use]
    pub fn order_key(&self, merchant: &MerchantId, direction: Direction, order: &OrderId) -> Fingerprint {
        let mut parts = FingerprintInput::of("order");
        parts.part(merchant.as_str().as_bytes());
        parts.part(direction.as_str().as_bytes());
        parts.part(order.as_str().as_bytes());
        let Fingerprint(of_order) = self.fingerprint(&parts);
        parts.restart("neighbours");
        parts.part(merchant.as_str().as_bytes());
        parts.part(direction.as_str().as_bytes());
        parts.part(stem(order.as_str()).as_bytes());
        let of_neighbours: [u8; 6] = self.first_bytes(&parts);
        let mut key = [0; 16];
        key[..6].copy_from_slice(&of_neighbours);
        key[6..].copy_from_slice(&of_order[..10]);
        Fingerprint(key)
    }
}

/// Returns the text without its last two characters.
fn stem(text: &str) -> &str {
    let mut characters = text.chars();
    characters.nth_back(1);
    characters.as_str()
}

/// The input of a hash: parts, each preceded by its length, and tags of one byte, so that different lists of parts never
/// collide. They are concatenated first, since hashing one long text is much faster than hashing many short ones.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FingerprintInput(Vec<u8>);

impl FingerprintInput {
    /// Begins an input; `purpose` separates hashes of different things.
    #[must_use]
    pub fn of(purpose: &str) -> Self {
        let mut parts = Self(Vec::with_capacity(1024));
        parts.restart(purpose);
        parts
    }

    /// Clears the input and begins another one.
    pub fn restart(&mut self, purpose: &str) {
        self.0.clear();
        self.part(purpose.as_bytes());
    }

    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Adds a tag, by which the kinds of what follows differ.
    pub fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    /// Adds a length or a count: one byte, of which the greatest announces eight more.
    pub fn count(&mut self, count: usize) {
        match u8::try_from(count) {
            Ok(short) if short < u8::MAX => self.0.push(short),
            _ => {
                self.0.push(u8::MAX);
                self.0.extend_from_slice(&wide(count).to_le_bytes());
            }
        }
    }

    /// Returns a hash without a key, for content that is no secret.
    #[must_use]
    pub fn unkeyed(&self) -> Fingerprint {
        let whole = Sha256::digest(&self.0);
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(whole.split_at(16).0);
        Fingerprint(fingerprint)
    }

    /// Adds a part that may be absent; absent and empty differ.
    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => {
                self.tag(1);
                self.part(bytes);
            }
            None => self.tag(0),
        }
    }
}

/// Shows the length only: the content must not be logged.
impl fmt::Debug for FingerprintInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FingerprintInput({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(merchant: &str, direction: Direction, order: &str) -> [u8; 16] {
        let (merchant, order) = (MerchantId::new(merchant).unwrap(), OrderId::new(order).unwrap());
        FingerprintKey::new(&[3; 32]).order_key(&merchant, direction, &order).0
    }

    #[test]
    fn consecutive_orders_are_neighbours() {
        let payin = |order: &str| key("acme", Direction::Payin, order);
        for (one, other) in [("order-1700", "order-1799"), ("order-1é", "order-ü7"), ("a", "xy")] {
            assert_eq!(payin(one)[..6], payin(other)[..6], "{one}, {other}");
            assert_ne!(payin(one)[6..], payin(other)[6..], "{one}, {other}");
        }
        assert_ne!(payin("order-1799")[..6], payin("order-1800")[..6]);
        assert_ne!(payin("order-17")[..6], key("bolt", Direction::Payin, "order-17")[..6]);
        assert_ne!(payin("order-17")[..6], key("acme", Direction::Payout, "order-17")[..6]);
        assert_ne!(payin("order-17")[6..], key("acme", Direction::Payout, "order-17")[6..]);
        assert_eq!(payin("order-17"), payin("order-17"));
    }

    #[test]
    fn lengths_of_one_byte_and_of_nine_never_collide() {
        let input = |parts: &[usize]| {
            let mut input = FingerprintInput::of("test");
            for length in parts {
                input.part(&vec![u8::MAX; *length]);
            }
            input
        };
        let mut inputs: Vec<_> =
            [0, 1, 7, 8, 9, 254, 255, 256, 262, 263, 264, 65_536].map(|length| input(&[length])).into();
        inputs.extend([[0, 254], [254, 0], [8, 255], [255, 8]].map(|lengths| input(&lengths)));
        for (place, one) in inputs.iter().enumerate() {
            assert!(inputs.iter().skip(place + 1).all(|other| one != other));
        }
        assert_eq!(input(&[254]).0.len() + 1 + 8, input(&[255]).0.len());
    }

    #[test]
    fn the_stem_ends_at_a_character() {
        for (text, expected) in [("", ""), ("a", ""), ("ab", ""), ("abc", "a"), ("aéü", "a"), ("éüx", "é")] {
            assert_eq!(stem(text), expected, "{text}");
        }
    }
}
