//! The check of one v1 create: translation, shape and today's rules, as a pure function.

use std::collections::HashSet;
use std::sync::Arc;

use crate::auth::Interface;
use crate::domain::{CallbackUrl, CreateRequest, Direction, Fingerprint, SchemaFields, ShopCode};
use crate::engine::{RefusingRule, RuleRefusal, check_rules};
use crate::error::RequestError;
use crate::json::{self, JsonError};
use crate::names::masked;
use crate::rules::{ApiKey, EngineRules, FieldRule, Merchant, RuleSet, Shop};
use crate::v1::translate::{Origins, RuleError, TranslateError, translate};
use crate::wire::members::present;
use crate::wire::v1::{MEMBERS, PAYMENT_DATA, V1Create, read_create};

/// The most losses of one create that are named; the others count as one.
const MOST_LOSSES: usize = 200;

/// The reason of members that a schema drops.
const NOT_IN_SCHEMA: &str = "dropped: the shop's schema does not name it";

/// What v2 would do with a v1 create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVerdict {
    /// The code of the selected shop; empty if no rule has it.
    pub shop: Box<str>,
    /// Why it would be refused; `None`: it would be created.
    pub refusal: Option<Refusal>,
    /// Its members that the operation would not have.
    pub losses: Vec<Loss>,
}

/// Why a v1 create would be refused. It holds no value that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Refusal {
    /// The member by its v1 name; empty for the body as a whole. Names that no rule has are masked.
    pub member: Box<str>,
    /// What is wrong with it.
    pub reason: Box<str>,
    /// The rule file whose change would let it pass, relative to the rules directory; empty: no rule would.
    pub file: Box<str>,
    /// The key in that file, or the place in a schema, or the name of a list.
    pub key: Box<str>,
    /// Whether rules or the interfaces have the member's name; others are counted up to a bound.
    pub is_named: bool,
}

/// A member of a v1 create that the operation would not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loss {
    /// Its v1 name. Names that no rule has are masked.
    pub member: Box<str>,
    /// Why it is left out.
    pub reason: Box<str>,
}

/// Checks a v1 create as v2 would, except for its order and the balance: nothing is created or claimed. A create that the
/// payment checks would let fail is accepted. Before a remote engine, the check ends with the shape of the v2 request.
#[must_use]
pub fn verdict(
    rules: &RuleSet,
    merchant: &Merchant,
    api_key: &ApiKey,
    direction: Direction,
    body: &[u8],
) -> CreateVerdict {
    let create = match read_create(direction, body) {
        Ok(create) => create,
        Err(error) => return unreadable(rules, merchant, body, &error),
    };
    let shop = selected_shop(rules, merchant, create.shop_code.as_deref());
    let relay = sample_relay_url(rules, merchant, direction);
    let checked = Check { rules, merchant, api_key, create: &create, shop };
    let mut origins = Origins::default();
    let (refusal, losses) = match translate(&create, &merchant.v1, &relay, &mut origins) {
        Ok(translated) => (checked.check_v2(&translated.request), checked.losses(&origins)),
        Err(TranslateError::Shape(error)) => {
            let member = error.path().map(|path| create.v1_name(path)).unwrap_or_default();
            (Some(refusal(member, error.reason(), ("", ""))), checked.losses(&origins))
        }
        Err(TranslateError::Rule(error)) => (Some(checked.not_translated(&error)), Vec::new()),
    };
    CreateVerdict { shop: code(shop), refusal, losses }
}

/// Returns the relay's address for any order: the code in it is a hash of the order, which decides nothing here. Only the
/// store can compute it, and zeros stand for it.
pub(super) fn sample_relay_url(rules: &RuleSet, merchant: &Merchant, direction: Direction) -> CallbackUrl {
    CallbackUrl::of_relay(&rules.gateway.server.public_url, &merchant.id, direction, Fingerprint([0; 16]))
}

/// Returns the verdict on a body whose shape is wrong.
fn unreadable(rules: &RuleSet, merchant: &Merchant, body: &[u8], error: &RequestError) -> CreateVerdict {
    let mut member = error.path().unwrap_or_default();
    let (shop, reason) = match json::read(body) {
        Ok(body) => {
            let shop_code = body.as_object().map(|body| present(body, "shop_code"));
            let shop = match shop_code {
                Some(None) => selected_shop(rules, merchant, None),
                Some(Some(value)) => value.as_str().and_then(|code| selected_shop(rules, merchant, Some(code))),
                None => None,
            };
            (shop, error.reason())
        }
        // Of its path, only v1's own names are kept.
        Err(JsonError::DuplicateKey(path)) => {
            let first = path.split('.').next().unwrap_or_default();
            member = MEMBERS.into_iter().find(|known| *known == first).unwrap_or_default();
            let reason = match member {
                "" => "the body names a member twice in one object",
                whole if whole.len() == path.len() => "is named twice in one object",
                _ => "names a member twice in one object",
            };
            (None, reason)
        }
        // Bodies that are malformed at different places count as one.
        Err(_) => (None, error.reason().split(" (at byte ").next().unwrap_or_default()),
    };
    let refusal = refusal(member, reason, ("", ""));
    CreateVerdict { shop: code(shop), refusal: Some(refusal), losses: Vec::new() }
}

/// Returns the shop that a body names, or the merchant's default one, if the rules have it, whether the merchant may use it
/// or not.
pub(super) fn selected_shop<'r>(
    rules: &'r RuleSet,
    merchant: &Merchant,
    shop_code: Option<&str>,
) -> Option<&'r Arc<Shop>> {
    let default = || merchant.default_shop.as_ref().map(ShopCode::as_str);
    rules.shops.get(shop_code.or_else(default)?)
}

fn code(shop: Option<&Arc<Shop>>) -> Box<str> {
    shop.map_or("", |shop| shop.code.as_str()).into()
}

fn refusal(member: impl AsRef<str>, reason: &str, (file, key): (impl AsRef<str>, impl AsRef<str>)) -> Refusal {
    let (member, file, key) = (member.as_ref().into(), file.as_ref().into(), key.as_ref().into());
    Refusal { member, reason: reason.into(), file, key, is_named: true }
}

/// A v1 create whose shape is right, and what it is checked by.
struct Check<'c> {
    rules: &'c RuleSet,
    merchant: &'c Merchant,
    api_key: &'c ApiKey,
    create: &'c V1Create<'c>,
    shop: Option<&'c Arc<Shop>>,
}

impl Check<'_> {
    fn not_translated(&self, error: &RuleError) -> Refusal {
        let file = match error.key {
            key if key.starts_with("requests.") => format!("dialects/{}.toml", self.merchant.v1.dialect.name),
            _ => self.merchant_file(),
        };
        // v1's own names are short and without digits.
        let path = error.error.path().unwrap_or_default();
        let refusal = refusal(masked(path), error.error.reason(), (file, error.key));
        Refusal { is_named: self.create.unknown().get(path).is_none(), ..refusal }
    }

    /// Checks the v2 request by the embedded engine's rules.
    fn check_v2(&self, request: &CreateRequest<'_>) -> Option<Refusal> {
        match self.rules.gateway.engine {
            EngineRules::Embedded => {
                let checked = check_rules(self.merchant, self.api_key, request, Interface::V1);
                checked.err().map(|error| self.refused(&error))
            }
            EngineRules::Remote(_) => None,
        }
    }

    fn refused(&self, RuleRefusal { error, rule }: &RuleRefusal) -> Refusal {
        let mut refusal =
            refusal(self.create.v1_name(error.path().unwrap_or_default()), error.reason(), self.place(rule));
        // Only a schema refuses members whose names no rule may have.
        if let RefusingRule::Schema(FieldRule { member, .. }) = rule {
            let path = if member.is_empty() { "fields".to_owned() } else { format!("fields.{member}") };
            refusal.member = self.create.v1_name(&path).as_ref().into();
            let schema = self.shop.and_then(|shop| shop.rules_of(self.create.direction).schema.as_ref());
            let is_known = |name: &str| name == "#" || schema.is_some_and(|schema| schema.has_name(name));
            refusal.is_named = member.is_empty() || member.split('.').all(is_known);
        }
        refusal
    }

    /// Returns the file and the key of a rule.
    fn place(&self, rule: &RefusingRule) -> (String, String) {
        let shop = self.shop.map_or("", |shop| shop.code.as_str());
        let of_merchant = |key: String| (self.merchant_file(), key);
        let of_shop = |key: &str| (format!("shops/{shop}.toml"), key.to_owned());
        match rule {
            RefusingRule::NoDefaultShop => of_merchant("default_shop".to_owned()),
            RefusingRule::NotOfMerchant if shop.is_empty() => of_merchant("shops".to_owned()),
            RefusingRule::NotOfMerchant => of_merchant(format!("shops.{shop}")),
            RefusingRule::NotEnabled => of_merchant(format!("shops.{shop}.{}", self.create.direction)),
            RefusingRule::NotOfKey => of_merchant("api_keys.shops".to_owned()),
            RefusingRule::Inactive => of_shop("active"),
            RefusingRule::Currency => of_shop("currency"),
            RefusingRule::Account => of_shop("payout.account"),
            RefusingRule::Schema(FieldRule { list: Some(file), .. }) => {
                let name = file.rsplit('/').next().and_then(|file| file.strip_suffix(".txt"));
                (file.clone(), name.unwrap_or_default().to_owned())
            }
            RefusingRule::Schema(FieldRule { keyword, .. }) => {
                let schema = self.shop.map(|shop| &*shop.rules_of(self.create.direction).schema_file);
                (format!("shops/{}", schema.unwrap_or_default()), keyword.clone())
            }
        }
    }

    fn merchant_file(&self) -> String {
        format!("merchants/{}.toml", self.merchant.id)
    }

    /// Returns the members that the translation leaves out, then those that the shop's schema does.
    fn losses(&self, origins: &Origins<'_>) -> Vec<Loss> {
        let left_out = origins.left_out.iter().filter(|left_out| left_out.is_loss);
        let left_out = left_out.map(|left_out| (masked(left_out.name), left_out.reason));
        let schema = match self.rules.gateway.engine {
            EngineRules::Embedded => self.shop.and_then(|shop| shop.rules_of(self.create.direction).schema.as_ref()),
            EngineRules::Remote(_) => None,
        };
        let dropped = schema.into_iter().flat_map(|schema| {
            let kept = SchemaFields::Names(Arc::clone(schema.kept()));
            self.create.moved_members().filter(move |member| !kept.keeps(&member.name))
        });
        let dropped = dropped.map(|member| (format!("{PAYMENT_DATA}.{}", masked(&member.name)), NOT_IN_SCHEMA));
        let (mut losses, mut seen) = (Vec::new(), HashSet::new());
        for (member, reason) in left_out.chain(dropped) {
            let member = if losses.len() < MOST_LOSSES { member } else { String::new() };
            let loss = Loss { member: member.into(), reason: reason.into() };
            if seen.insert(loss.clone()) {
                losses.push(loss);
            }
        }
        losses
    }
}
