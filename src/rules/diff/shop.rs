//! What changes for those who may use a shop.

use std::collections::BTreeSet;

use super::keys::SHOP;
use super::page::{Changed, Page, Place};
use super::read::ReadRules;
use super::settings::{Settings, Value};
use super::words::{self, is, listed};
use super::{Effect, Group, Who, lists, schema};
use crate::domain::Direction;

/// One group for each shop that is in either directory and differs.
pub(super) fn groups(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let codes: BTreeSet<&String> = old.shops.keys().chain(new.shops.keys()).collect();
    codes.into_iter().filter_map(|code| group(code, old, new)).collect()
}

fn group(code: &str, old: &ReadRules, new: &ReadRules) -> Option<Group> {
    let mut page = Page::of(file(code));
    match (old.shops.get(code), new.shops.get(code)) {
        (Some(before), Some(after)) => both(&mut page, code, (before, after), (old, new)),
        (None, Some(after)) => page.tell(Effect::Allows, "", added(after)),
        (Some(_), None) => page.tell(Effect::TakesAway, "", "the shop is removed"),
        (None, None) => {}
    }
    if page.changes.is_empty() {
        return None;
    }
    let merchants: BTreeSet<&str> = old.merchants_of(code).chain(new.merchants_of(code)).collect();
    let merchants = merchants.into_iter().map(str::to_owned).collect();
    Some(Group { who: Who::Shop { code: code.into(), merchants }, changes: page.changes })
}

fn file(code: &str) -> String {
    format!("shops/{code}.toml")
}

fn added(after: &Settings) -> String {
    let word = |key| after.get(key).map(Value::shown).unwrap_or_default();
    let provider = match after.word("provider.kind") {
        Some("http") => format!("the provider at {}", word("provider.url")),
        _ => "the sandbox, which moves no money,".to_owned(),
    };
    let off = if after.word("active") == Some("false") { "; it is switched off" } else { "" };
    format!("the shop is new: {}, with {provider} behind it{off}", word("currency"))
}

fn both(page: &mut Page, code: &str, (before, after): (&Settings, &Settings), (old, new): (&ReadRules, &ReadRules)) {
    let other_kind = before.word("provider.kind") != after.word("provider.kind");
    page.settings(SHOP, Place::FILE, (before, after), |page, changed| match changed.path {
        // Told by what is in them.
        "payin.schema" | "payout.schema" => true,
        // The kind says what the rest belongs to.
        path if other_kind && path.starts_with("provider.") => {
            if path == "provider.kind" {
                page.tell(Effect::Refuses, path, kind(before, after));
            }
            true
        }
        "checks.refused_accounts" => {
            refused_accounts(page, changed);
            true
        }
        _ => false,
    });
    if !other_kind && old.provider_trust(code) != new.provider_trust(code) {
        let told = page.changes.iter().any(|change| change.key == "provider.trust");
        if !told {
            page.tell(Effect::Refuses, "provider.trust", "[provider] trust: the certificates in it are others");
        }
    }
    for (direction, said) in [(Direction::Payin, "deposits"), (Direction::Payout, "withdrawals")] {
        let key = format!("{direction}.schema");
        if let Some(name) = after.word(&key) {
            page.turn(format!("shops/{name}"));
        }
        schema::side(page, &key, said, (old.schema(code, direction), new.schema(code, direction)));
        lists::of_side(page, code, direction, said, (old, new));
        page.turn(file(code));
    }
}

/// The kinds are too different for their keys to be compared.
fn kind(before: &Settings, after: &Settings) -> String {
    let kind = |settings: &Settings| match settings.word("provider.kind") {
        Some("http") => {
            format!("http ({})", settings.get("provider.url").map(Value::shown).unwrap_or_default())
        }
        other => words::plain(other.unwrap_or_default()),
    };
    let what = "operations that wait for the other kind go on waiting";
    format!("[provider] kind: {} -> {}: {what}", kind(before), kind(after))
}

fn refused_accounts(page: &mut Page, changed: &Changed<'_>) {
    let set = |value: Option<&Value>| match value {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        _ => BTreeSet::new(),
    };
    let (old, new) = (set(changed.old), set(changed.new));
    let named = |one: &BTreeSet<i64>, other: &BTreeSet<i64>| {
        let numbers: Vec<String> = one.difference(other).map(i64::to_string).collect();
        listed(numbers.iter().map(String::as_str), "customer", false)
    };
    let (added, count) = named(&new, &old);
    if count > 0 {
        let what = format!("customers: {added} {} refused now (operations are created FAILED)", is(count > 1));
        page.tell(Effect::Refuses, changed.path, what);
    }
    let (gone, count) = named(&old, &new);
    if count > 0 {
        page.tell(Effect::Allows, changed.path, format!("customers: {gone} {} no longer refused", is(count > 1)));
    }
}
