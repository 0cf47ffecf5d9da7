//! What v1 create bodies say, compared (contract section 2, "Live reload"): whether two say the same is told by one keyed
//! hash, and in which members they differ by a short one of each.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use super::{MEMBERS, OPTIONAL, PAYMENT_DATA, RETURN_URL, USER_IP, V1Create, payment_data};
use crate::domain::{BrowserUrl, Direction};
use crate::store::{Comparer, Digest, Kept, Parts, V1Members};
use crate::wire::canonical;
use crate::wire::json::{self, Member, Node, Object, Value};
use crate::wire::members::present;

/// What conflicts call the top-level members that v1 does not know: which of them were sent first is not kept.
const UNKNOWN: &str = "unknown fields";

/// What a member's hash is for.
const MEMBER: &str = "v1 member";
/// What the hash of all others is for.
const UNKNOWN_MEMBERS: &str = "v1 unknown members";

/// The member that is compared by its value and not by its text.
const AMOUNT: &str = "amount";

/// What became of the `paymentData` of an earlier body.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'s> {
    /// The JSON text of the `fields` that were stored.
    pub fields: &'s str,
    /// Which members the schema of then kept.
    pub kept: &'s Kept,
    /// A deposit's browser destination.
    pub return_url: Option<&'s BrowserUrl>,
}

/// What a body says, in the one spelling that is hashed.
pub struct Compared {
    parts: Parts,
    digest: Digest,
    /// Where each of the [`MEMBERS`] stands, in their order; empty: it is absent, or `amount`.
    known: [Range<usize>; MEMBERS.len()],
    /// Where the others stand.
    unknown: Vec<Range<usize>>,
    amount: [u8; 8],
}

impl Compared {
    /// The keyed hash of what the body says: decoded values, the order of keys and the spelling of the amount aside.
    /// `null` is like absent where the contract says so, and so is `paymentData` without members, PHP's empty list
    /// included: all of these become the same v2 body.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Short hashes of what the [`MEMBERS`] say, in their order, and of all others together. The place of the first, the
    /// `external_id`, stays empty: bodies are held against each other when it is the same.
    #[must_use]
    pub fn members(&self, comparer: &Comparer) -> V1Members {
        let mut all = [[0; V1Members::SHORT]; 10];
        let prefix = Parts::of(MEMBER);
        let prefix = prefix.between(&(0..prefix.length()));
        let mut missing = Parts::of("");
        for ((short, place), name) in all.iter_mut().zip(&self.known).zip(MEMBERS).skip(1) {
            *short = if place.is_empty() {
                missing.restart(MEMBER);
                missing.part(name.as_bytes());
                if name == AMOUNT {
                    missing.part(&self.amount);
                } else {
                    missing.optional(None);
                }
                comparer.short(&missing)
            } else {
                comparer.short_of([prefix, self.parts.between(place)])
            };
        }
        missing.restart(UNKNOWN_MEMBERS);
        canonical::begin_object(&mut missing, self.unknown.len());
        let start = missing.between(&(0..missing.length()));
        let unknown = self.unknown.iter().map(|place| self.parts.between(place));
        all[MEMBERS.len()] = comparer.short_of(iter::once(start).chain(unknown));
        V1Members::of(all)
    }
}

impl<'a> V1Create<'a> {
    /// What the body says, to be hashed.
    #[must_use]
    pub fn compared(&self, comparer: &Comparer) -> Compared {
        let body = self.compared_body();
        let amount = self.amount.hundredths().to_le_bytes();
        let mut parts = Parts::of("v1 create");
        parts.part(self.direction.as_str().as_bytes());
        parts.part(&amount);
        let mut known = [const { 0..0 }; MEMBERS.len()];
        let mut unknown = Vec::new();
        let keep = |member: &Member<'_>| {
            let name = member.name.as_ref();
            name != AMOUNT
                && (member.value.node != Node::Null || !OPTIONAL.contains(&name))
                && (name != PAYMENT_DATA || holds_payment_data(&body))
        };
        canonical::hash_members_noting(&mut parts, &body, keep, |member, place| {
            match MEMBERS.iter().position(|name| *name == member.name) {
                Some(which) => known[which] = place,
                None => unknown.push(place),
            }
        });
        let digest = comparer.digest(&parts);
        Compared { parts, digest, known, unknown, amount }
    }

    /// The body without a `null` address in `paymentData`, which is like an absent one.
    fn compared_body(&self) -> Cow<'_, Object<'a>> {
        let is_null = |member: &Member<'_>| member.name == USER_IP && member.value.node == Node::Null;
        if !payment_data(&self.body).is_some_and(|fields| fields.0.iter().any(is_null)) {
            return Cow::Borrowed(&self.body);
        }
        let mut body = self.body.clone();
        for member in &mut body.0 {
            if let (PAYMENT_DATA, Node::Object(fields)) = (member.name.as_ref(), &mut member.value.node) {
                fields.0.retain(|member| !is_null(member));
            }
        }
        Cow::Owned(body)
    }

    /// The members in which this body differs from an earlier one, whose short hashes are given, in the order of
    /// [`MEMBERS`]. Those of `paymentData` are named one by one where it is known what became of them.
    #[must_use]
    pub fn differing(&self, comparer: &Comparer, earlier: &V1Members, moved: Option<Moved<'_>>) -> Vec<String> {
        let own = self.compared(comparer).members(comparer);
        let places: Vec<_> = own.differing(earlier).collect();
        let outer_ip_differs = places.iter().any(|place| MEMBERS.get(*place) == Some(&USER_IP));
        let mut names = Vec::new();
        for place in places {
            match (MEMBERS.get(place), moved) {
                (Some(&PAYMENT_DATA), Some(moved)) => {
                    names.extend(self.differing_payment_data(moved, outer_ip_differs));
                }
                (Some(name), _) => names.push((*name).to_owned()),
                (None, _) => names.push(UNKNOWN.to_owned()),
            }
        }
        names
    }

    /// The members of `paymentData` that are known to differ, or `paymentData` itself where none is: the schema may have
    /// dropped what was sent first, and the merchant's rules may have filled in what was not.
    fn differing_payment_data(&self, moved: Moved<'_>, outer_ip_differs: bool) -> Vec<String> {
        let nothing = Object::default();
        let stored = stored_object(moved.fields);
        let own = payment_data(&self.body).unwrap_or(&nothing);
        let is_return_url = |name: &str| self.direction == Direction::Payin && name == RETURN_URL;
        let mut names = canonical::differing_names(own, &stored, |member| {
            moved.kept.keeps(&member.name) && member.name != USER_IP && !is_return_url(&member.name)
        });
        let stored_ip = match present(&stored, USER_IP) {
            Some(Value { node: Node::String(text), .. }) => Some(text.as_ref()),
            _ => None,
        };
        let own_ip = self.merchant_user_ip.as_ref().map(crate::domain::CustomerIp::as_str);
        if own_ip != stored_ip && (!outer_ip_differs || present(own, USER_IP).is_some()) {
            names.push(USER_IP.to_owned());
        }
        let all_known = *moved.kept == Kept::Everything && own_ip.is_none() && stored_ip.is_none();
        let only_return_url_is_left = names.is_empty() && all_known && self.direction == Direction::Payin;
        let other_return_url = self.return_user_url.is_some() && self.return_user_url.as_ref() != moved.return_url;
        if other_return_url || only_return_url_is_left {
            names.push(RETURN_URL.to_owned());
        }
        if names.is_empty() {
            return vec![PAYMENT_DATA.to_owned()];
        }
        names.into_iter().map(|name| format!("{PAYMENT_DATA}.{name}")).collect()
    }
}

/// Whether there is anything in `paymentData`.
fn holds_payment_data(body: &Object<'_>) -> bool {
    payment_data(body).is_some_and(|fields| !fields.0.is_empty())
}

fn stored_object(text: &str) -> Object<'_> {
    match json::read(text.as_bytes()) {
        Ok(Value { node: Node::Object(object), .. }) => object,
        _ => Object::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1::read_create;

    const BODY: &str = r#"{"external_id":"o1","amount":"10.50","currency":"EUR","shop_code":null,"extra":[1.50,{"a":-0}],
        "callback_url":"https://a.example/cb","merchant_user_id":"42","paymentData":{"merchant_user_ip":"::1",
        "return_user_url":"https://a.example/r","level":3,"ratio":0.250e3,"none":null,"yes":true}}"#;

    // What stands in stores.
    #[test]
    fn hashes_stay_what_they_are() {
        let comparer = Comparer::new(&[3; 32]);
        let create = read_create(Direction::Payin, BODY.as_bytes()).unwrap();
        assert_eq!(
            u128::from_be_bytes(create.compared(&comparer).digest().0),
            0xeb2e_88da_b8cf_98f5_e925_008e_650c_3e55
        );
        let shorts =
            |members: V1Members| members.0.as_chunks().0.iter().map(|short| u32::from_be_bytes(*short)).collect();
        let members: Vec<u32> = shorts(create.compared(&comparer).members(&comparer));
        assert_eq!(
            members,
            [
                0,
                0x4073_91d3,
                0xa544_7fdc,
                0x1986_859f,
                0x3139_776d,
                0x4d1b_dc31,
                0x1311_aa2c,
                0x8334_bc85,
                0x4c7c_a252,
                0xb456_0431
            ]
        );
    }

    #[test]
    fn what_differs_is_told() {
        let comparer = Comparer::new(&[3; 32]);
        let read = |body: &'static str| read_create(Direction::Payin, body.as_bytes()).unwrap();
        let first = read(BODY);
        let other = BODY.replace("10.50", "10.51").replace("\"42\"", "43").replace("level\":3", "level\":4");
        let other = read_create(Direction::Payin, other.as_bytes()).unwrap();
        let earlier = first.compared(&comparer).members(&comparer);
        assert_eq!(first.differing(&comparer, &earlier, None), [""; 0]);
        assert_eq!(other.differing(&comparer, &earlier, None), ["amount", "merchant_user_id", "paymentData"]);
    }
}
