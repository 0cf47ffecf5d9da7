//! The rules that a merchant's v1 creates are checked by, as one hash: counts of checked creates belong to it.

use std::collections::{BTreeSet, HashMap};

use toml::de::{DeTable, DeValue};

use super::Context;
use super::dialect::RawDialect;
use super::shop::RawShop;
use crate::domain::{Fingerprint, FingerprintInput, MerchantId, ShopCode};
use crate::rules::files::FileRole;
use crate::rules::raw::FromToml;
use crate::rules::setting::DeclaredKey;
use crate::rules::{ApiKey, Dialect, Shop, ShopAccess};

/// The parts of a merchant that decide about its creates.
pub(super) struct CreateRules<'m> {
    pub id: &'m MerchantId,
    pub default_shop: Option<&'m ShopCode>,
    pub shops: &'m HashMap<ShopCode, ShopAccess>,
    pub api_keys: &'m [ApiKey],
    pub dialect: &'m Dialect,
    /// `[v1]` of its file.
    pub v1: Option<&'m DeValue<'m>>,
    /// The keys that are declared for it.
    pub v1_keys: Vec<DeclaredKey>,
}

impl Context<'_> {
    /// Hashes the file of a dialect.
    pub(super) fn hash_dialect(&mut self, name: &str, document: &DeValue<'_>) {
        let mut input = FingerprintInput::of("dialect");
        add_checking(&mut input, document, &RawDialect::keys());
        self.hashes.dialects.insert(name.into(), input.unkeyed());
    }

    /// Hashes the file of a shop with its schemas.
    pub(super) fn hash_shop(&mut self, shop: &Shop, document: &DeValue<'_>) {
        let mut input = FingerprintInput::of("shop");
        add_checking(&mut input, document, &RawShop::keys());
        for rules in [&shop.payin, &shop.payout] {
            let schema = self.files.get(&FileRole::Schema(rules.schema_file.as_ref().into()));
            input.optional(schema.map(|file| &file.hash[..]));
        }
        self.hashes.shops.insert(shop.code.clone(), input.unkeyed());
    }

    /// Hashes what the creates of a merchant are checked by. Keys that are declared to check no create, secrets, limits
    /// and other merchants' files do not change it.
    pub(super) fn rules_fingerprint(&self, rules: &CreateRules<'_>) -> Fingerprint {
        let mut input = FingerprintInput::of("rules of v1 creates");
        input.part(&[u8::from(self.is_embedded)]);
        input.optional(rules.default_shop.map(|code| code.as_str().as_bytes()));
        if let Some(v1) = rules.v1 {
            add_checking(&mut input, v1, &rules.v1_keys);
        }
        input.optional(self.hashes.dialects.get(&rules.dialect.name).map(|hash| &hash.0[..]));
        let mut shops: Vec<_> = rules.shops.iter().collect();
        shops.sort_unstable_by_key(|(code, _)| code.as_str());
        for (code, access) in shops {
            input.part(code.as_str().as_bytes());
            input.part(&[u8::from(access.payin), u8::from(access.payout)]);
            input.optional(self.hashes.shops.get(code).map(|hash| &hash.0[..]));
            self.add_lists(&mut input, rules.id, &access.shop);
        }
        let limited = rules.api_keys.iter().filter_map(|key| Some((&key.key, key.shops.as_ref()?)));
        let mut limited: Vec<_> = limited.collect();
        limited.sort_unstable_by_key(|(key, _)| *key);
        for (key, shops) in limited {
            input.part(key.as_bytes());
            let shops: BTreeSet<&str> = shops.iter().map(ShopCode::as_str).collect();
            for code in shops {
                input.part(code.as_bytes());
            }
        }
        input.unkeyed()
    }

    /// Adds the allowed-value lists of a shop as they are for a merchant.
    fn add_lists(&self, input: &mut FingerprintInput, merchant: &MerchantId, shop: &Shop) {
        for schema in [&shop.payin, &shop.payout].into_iter().filter_map(|rules| rules.schema.as_ref()) {
            for name in schema.lists() {
                let role = |merchant| FileRole::List { merchant, name: name.as_ref().into() };
                let own = self.files.get(&role(Some(merchant.as_str().to_owned())));
                let file = own.or_else(|| self.files.get(&role(None)));
                input.part(name.as_bytes());
                input.optional(file.map(|file| &file.hash[..]));
            }
        }
    }
}

/// Adds a table without the keys that are declared to check no create; they may hold secrets.
fn add_checking(input: &mut FingerprintInput, table: &DeValue<'_>, keys: &[DeclaredKey]) {
    let checks_no_create = |key: &&DeclaredKey| key.on_change.is_some_and(|on_change| !on_change.checks_creates);
    let without: Vec<&str> = keys.iter().filter(checks_no_create).map(|key| key.name).collect();
    if let Some(table) = table.as_table() {
        add_table(input, table, &without);
    }
}

/// Adds a table without some of its keys. Comments, the order of keys and the form of tables do not count.
fn add_table(input: &mut FingerprintInput, table: &DeTable<'_>, without: &[&str]) {
    let entries = table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()));
    let mut entries: Vec<_> = entries.filter(|(key, _)| !without.contains(key)).collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in entries {
        input.part(b"key");
        input.part(key.as_bytes());
        add_value(input, value);
    }
    input.part(b"end");
}

fn add_value(input: &mut FingerprintInput, value: &DeValue<'_>) {
    match value {
        DeValue::String(text) => input.part(text.as_bytes()),
        DeValue::Integer(number) => input.part(number.to_string().as_bytes()),
        DeValue::Float(number) => input.part(number.to_string().as_bytes()),
        DeValue::Boolean(flag) => input.part(&[u8::from(*flag)]),
        DeValue::Datetime(time) => input.part(time.to_string().as_bytes()),
        DeValue::Array(items) => {
            for item in items {
                add_value(input, item.get_ref());
            }
            input.part(b"end");
        }
        DeValue::Table(table) => add_table(input, table, &[]),
    }
}
