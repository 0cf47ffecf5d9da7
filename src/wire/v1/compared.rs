//! What v1 create bodies say, compared (contract section 2, "Live reload"): whether two say the same is told by one keyed
//! hash, and in which members they differ by a short one of each.

use std::borrow::Cow;

use super::{MEMBERS, OPTIONAL, PAYMENT_DATA, RETURN_URL, USER_IP, V1Create, payment_data};
use crate::domain::{BrowserUrl, Direction};
use crate::store::{Comparer, Digest, Kept, V1Members};
use crate::wire::canonical;
use crate::wire::json::{self, Member, Node, Object, Value};
use crate::wire::members::present;

/// What conflicts call the top-level members that v1 does not know: which of them were sent first is not kept.
const UNKNOWN: &str = "unknown fields";

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

impl<'a> V1Create<'a> {
    /// The keyed hash of what the body says: decoded values, the order of keys and the spelling of the amount aside.
    /// `null` is like absent where the contract says so, and so is `paymentData` without members, PHP's empty list
    /// included: all of these become the same v2 body.
    #[must_use]
    pub fn digest(&self, comparer: &Comparer) -> Digest {
        let body = self.compared_body();
        let mut hashing = comparer.start("v1 create");
        hashing.part(self.direction.as_str().as_bytes());
        hashing.part(&self.amount.hundredths().to_le_bytes());
        canonical::hash_members(&mut hashing, &body, |name| {
            name != "amount"
                && (!OPTIONAL.contains(&name) || present(&body, name).is_some())
                && (name != PAYMENT_DATA || holds_payment_data(&body))
        });
        // A place that nothing takes any more. Stored digests have it.
        hashing.optional(None);
        hashing.finish()
    }

    /// Short hashes of what the [`MEMBERS`] say, in their order, and of all others together.
    #[must_use]
    pub fn members(&self, comparer: &Comparer) -> V1Members {
        let body = self.compared_body();
        let [m0, m1, m2, m3, m4, m5, m6, m7, m8] = MEMBERS.map(|name| self.member(comparer, &body, name));
        let mut unknown = comparer.start("v1 unknown members");
        canonical::hash_members(&mut unknown, &body, |name| !MEMBERS.contains(&name));
        V1Members::of([m0, m1, m2, m3, m4, m5, m6, m7, m8, unknown.finish()])
    }

    fn member(&self, comparer: &Comparer, body: &Object<'_>, name: &str) -> Digest {
        let mut hashing = comparer.start("v1 member");
        hashing.part(name.as_bytes());
        let value = match name {
            PAYMENT_DATA => body.get(name).filter(|_| holds_payment_data(body)),
            _ if OPTIONAL.contains(&name) => present(body, name),
            _ => body.get(name),
        };
        match value {
            None => hashing.optional(None),
            Some(_) if name == "amount" => hashing.part(&self.amount.hundredths().to_le_bytes()),
            Some(value) => canonical::hash_value(&mut hashing, value),
        }
        hashing.finish()
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
        let own = self.members(comparer);
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
