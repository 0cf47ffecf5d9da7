//! What fingerprints and other stored keys are made of, as a value: it changes with every change of that. What a body's
//! fingerprint has of it is decided above this module; it is here as the results for fixed bodies, which tests there compare.

use super::canonical::{hash_members, hash_value};
use super::{
    Bucket, Direction, Fingerprint, FingerprintInput, FingerprintKey, MemberFingerprints, MerchantId, OrderId,
    RequestFields, SchemaFields, TransactionId, UnixMillis, dropped_members,
};
use crate::json::{Node, Object, Value, read};

/// Members of every kind of value.
const SAMPLE: &str = r#"{"text":"a\u00e9\/","empty":"","zero":-0.0,"number":-12.50e3,"huge":1e99999999999999999999,
    "yes":true,"no":false,"none":null,"list":[1,"1",[],{}],"object":{"b":2,"a":{"c":[null]}},"merchant_user_ip":null,
    "return_user_url":"https://merchant.example/return"}"#;

/// The results for fixed bodies under the key of 32 threes, of which other builds' stores have others.
pub struct PinnedFingerprints {
    /// Of v2 creates: a deposit, a withdrawal.
    pub v2: [u128; 2],
    /// Of a v1 create.
    pub v1: u128,
    /// Of members of that v1 create: what v1 does not know, an address outside of `paymentData`, one inside.
    pub v1_members: [u32; 3],
}

/// The [`PinnedFingerprints`] of this build. A change of them makes stores of earlier unreleased builds be refused.
pub const PINNED_FINGERPRINTS: PinnedFingerprints = PinnedFingerprints {
    v2: [0xd1db_b8c4_03c6_4bc6_e1dd_8183_0173_cc11, 0xffcd_ffdf_d414_f58f_798d_2bc5_4330_f0cc],
    v1: 0xc2ed_58e3_3a3d_c3b1_28e6_0bef_d1eb_22d6,
    v1_members: [0xfdb7_e31c, 0x17f7_06d6, 0x7f38_07e7],
};

/// Returns a hash of what is computed from fixed samples under a fixed key: the canonical form, the fingerprints of
/// creates, members and orders, and the stored form of members, ids and buckets.
#[must_use]
pub fn fingerprint_recipe() -> Fingerprint {
    let mut results = FingerprintInput::of("fingerprint recipe");
    let Ok(Value { node: Node::Object(sample), .. }) = read(SAMPLE.as_bytes()) else { return results.unkeyed() };
    let key = FingerprintKey::new(&[7; 32]);
    add_creates(&mut results, &key, &sample);
    add_members(&mut results, &key, &sample);
    add_ids(&mut results, &key);
    let PinnedFingerprints { v2, v1, v1_members } = PINNED_FINGERPRINTS;
    for fingerprint in v2.into_iter().chain([v1]) {
        results.part(&fingerprint.to_be_bytes());
    }
    for short in v1_members {
        results.part(&short.to_be_bytes());
    }
    results.unkeyed()
}

/// Adds the fingerprints of bodies.
fn add_creates(results: &mut FingerprintInput, key: &FingerprintKey, sample: &Object<'_>) {
    let some = SchemaFields::Names(["number", "text"].map(Into::into).into());
    for kept in [&SchemaFields::Everything, &some] {
        let mut input = FingerprintInput::of("v2 create");
        input.part(&1050_u64.to_le_bytes());
        input.optional(None);
        input.optional(Some(b"card"));
        RequestFields::new(sample.clone(), None).hash(&mut input, kept);
        results.part(&key.fingerprint(&input).0);
    }
    let mut input = FingerprintInput::of("v1 create");
    hash_members(&mut input, sample, |member| member.value.node != Node::Null);
    results.part(&key.fingerprint(&input).0);
    results.part(&input.unkeyed().0);
}

/// Adds the short hashes of members, as they are stored.
fn add_members(results: &mut FingerprintInput, key: &FingerprintKey, sample: &Object<'_>) {
    let mut members = MemberFingerprints::default();
    for (number, member) in (0..).zip(&sample.0) {
        let mut input = FingerprintInput::of("v1 member");
        input.part(member.name.as_bytes());
        hash_value(&mut input, &member.value);
        members.add(number, key.short(&input));
    }
    let none = SchemaFields::Names([].into());
    for direction in [Direction::Payin, Direction::Payout] {
        if let Some(dropped) = dropped_members(key, direction, sample, &none) {
            members.add(MemberFingerprints::PAYMENT_DATA, dropped);
        }
    }
    let mut stored = Vec::new();
    members.write_to(&mut stored);
    results.part(&stored);
}

/// Adds the keys of orders, and ids with the buckets in them.
fn add_ids(results: &mut FingerprintInput, key: &FingerprintKey) {
    for (merchant, order) in [("acme", "order-1"), ("b.o_l-t", "\u{e9}")] {
        let (Ok(merchant), Ok(order)) = (MerchantId::new(merchant), OrderId::new(order)) else { continue };
        for direction in [Direction::Payin, Direction::Payout] {
            results.part(&key.order_key(&merchant, direction, &order).0);
        }
        let id = TransactionId::compose(UnixMillis(1_800_000_000_000), Bucket::of(&merchant), 0x123);
        results.part(&id.to_stored().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_are_read_and_all_count() {
        let Ok(Value { node: Node::Object(sample), .. }) = read(SAMPLE.as_bytes()) else { panic!() };
        let key = FingerprintKey::new(&[7; 32]);
        let without = |add: &dyn Fn(&mut FingerprintInput)| {
            let mut results = FingerprintInput::of("");
            add(&mut results);
            results
        };
        let nothing = FingerprintInput::of("");
        assert_ne!(without(&|results| add_creates(results, &key, &sample)), nothing);
        assert_ne!(without(&|results| add_members(results, &key, &sample)), nothing);
        assert_ne!(without(&|results| add_ids(results, &key)), nothing);
        // The outcome is of the samples alone.
        assert_eq!(fingerprint_recipe(), fingerprint_recipe());
        assert_ne!(fingerprint_recipe(), FingerprintInput::of("fingerprint recipe").unkeyed());
    }
}
