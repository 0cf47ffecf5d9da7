//! The `fields` object of a create request (promises P040 to P071): the names in it that every shop knows, and its
//! members as a shop's schema keeps them and as repeats compare them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::canonical::{differing_names, hash_members};
use super::{CustomerIp, Direction, FingerprintInput, FingerprintKey, MemberFingerprint, MemberFingerprints};
use crate::json::{Member, Node, Object, Value};

/// The member with the customer's address; every shop accepts it.
pub const MERCHANT_USER_IP: &str = "merchant_user_ip";

/// The member of v1's `paymentData` that names where the browser returns to; v2 has other names for it, outside of `fields`.
pub const RETURN_USER_URL: &str = "return_user_url";

/// The members with customer details that every shop accepts, in both directions: strings, unless they are empty.
pub const CUSTOMER_FIELDS: [&str; 5] = ["first_name", "last_name", "middle_name", "email", "phone"];

/// Returns the names that must not appear inside `fields`.
#[must_use]
pub const fn reserved_names(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Payin => {
            &["method", "customer_account_id", "success_url", "pending_url", "fail_url", "return_user_url"]
        }
        Direction::Payout => {
            &["method", "customer_account_id", "account_channel", "recipient_account", "account_number"]
        }
    }
}

/// The members of `fields` that a schema keeps; the others are left out of comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFields {
    /// All of them: there was no schema.
    Everything,
    /// These names, sorted. Shared between the operations of a schema, and stored once.
    Names(Arc<[Box<str>]>),
}

impl SchemaFields {
    /// Reports whether the schema keeps a member of this name.
    #[must_use]
    pub fn keeps(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(names) => names.binary_search_by(|kept| kept.as_ref().cmp(name)).is_ok(),
        }
    }
}

/// The `fields` object of a create request, after the checks that need no rule file. `Debug` shows no value.
#[derive(PartialEq)]
pub struct RequestFields<'a> {
    object: Object<'a>,
    /// `fields.merchant_user_ip`, when it is there and not `null`.
    pub customer_ip: Option<CustomerIp>,
}

impl fmt::Debug for RequestFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestFields({} members)", self.object.0.len())
    }
}

impl<'a> RequestFields<'a> {
    /// Holds an object that was checked, and the customer's address in it.
    #[must_use]
    pub const fn new(object: Object<'a>, customer_ip: Option<CustomerIp>) -> Self {
        Self { object, customer_ip }
    }

    /// Reports whether there are more members than the kept ones.
    #[must_use]
    pub const fn exceed(&self, kept: &KeptFields<'_>) -> bool {
        self.object.0.len() > kept.0.len()
    }

    /// The members that `kept` keeps, a `null` `merchant_user_ip` left out (it is like absent).
    pub fn members<'s>(&'s self, kept: &'s SchemaFields) -> impl Iterator<Item = &'s Member<'s>> {
        self.object.0.iter().filter(move |member| is_compared(&member.name, &member.value, kept))
    }

    /// The [`RequestFields::members`], looked for once.
    #[must_use]
    pub fn reduced<'s>(&'s self, kept: &'s SchemaFields) -> KeptFields<'s> {
        let mut members = Vec::with_capacity(self.object.0.len());
        members.extend(self.members(kept));
        KeptFields(members)
    }

    /// Adds the kept members to a hash.
    pub fn hash(&self, parts: &mut FingerprintInput, kept: &SchemaFields) {
        hash_members(parts, &self.object, |member| is_compared(&member.name, &member.value, kept));
    }

    /// Returns the short hash of the members that a schema drops; `None` when it drops none.
    #[must_use]
    pub fn dropped(
        &self,
        fingerprint_key: &FingerprintKey,
        direction: Direction,
        kept: &SchemaFields,
    ) -> Option<MemberFingerprint> {
        dropped_members(fingerprint_key, direction, &self.object, kept)
    }

    /// The names of kept members in which these fields differ from stored ones, as paths.
    #[must_use]
    pub fn differences(&self, kept: &SchemaFields, stored: &Object<'_>) -> Vec<String> {
        let names = differing_names(&self.object, stored, |member| is_compared(&member.name, &member.value, kept));
        names.into_iter().map(|name| format!("fields.{name}")).collect()
    }
}

/// Those members of `fields` that a schema keeps.
pub struct KeptFields<'s>(Vec<&'s Member<'s>>);

impl<'s> KeptFields<'s> {
    /// One after the other, in the order sent.
    #[must_use = "an iterator does nothing by itself"]
    pub fn members(&self) -> impl ExactSizeIterator<Item = &'s Member<'s>> {
        self.0.iter().copied()
    }

    /// They as JSON text, every value byte for byte as sent.
    #[must_use]
    pub fn text(&self) -> String {
        let length: usize = self.members().map(|member| member.raw_name.len() + member.value.raw.len() + 2).sum();
        let mut text = String::with_capacity(length + 2);
        text.push('{');
        for member in self.members() {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(member.raw_name);
            text.push(':');
            text.push_str(member.value.raw);
        }
        text.push('}');
        text
    }
}

fn is_compared(name: &str, value: &Value<'_>, kept: &SchemaFields) -> bool {
    kept.keeps(name) && !(name == MERCHANT_USER_IP && value.node == Node::Null)
}

/// Returns the short hash of the members that a schema drops, of `fields` or of the `paymentData` that becomes it; `None`
/// when it drops none. The customer's address and the return address are compared on their own.
#[must_use]
pub fn dropped_members(
    fingerprint_key: &FingerprintKey,
    direction: Direction,
    fields: &Object<'_>,
    kept: &SchemaFields,
) -> Option<MemberFingerprint> {
    let is_dropped = |member: &Member<'_>| {
        let destination = direction == Direction::Payin && member.name == RETURN_USER_URL;
        !kept.keeps(&member.name) && member.name != MERCHANT_USER_IP && !destination
    };
    fields.0.iter().any(is_dropped).then(|| {
        let mut parts = FingerprintInput::of("v1 member");
        parts.part(b"paymentData");
        hash_members(&mut parts, fields, is_dropped);
        fingerprint_key.short(&parts)
    })
}

/// The JSON text of an operation's `fields`. `Debug` prints none of it: they hold customer data.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    /// The object as the caller sent it, less the members that the schema dropped.
    pub sent: Cow<'static, str>,
    /// The object of members that the schema's defaults added.
    pub defaults: Cow<'static, str>,
    /// Fingerprints of v1 request members that the translated operation does not hold otherwise.
    pub v1_members: MemberFingerprints,
}

impl Default for Fields {
    fn default() -> Self {
        Self { sent: "{}".into(), defaults: "{}".into(), v1_members: MemberFingerprints::default() }
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fields(..)")
    }
}
