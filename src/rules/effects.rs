//! What the change of a setting means: its effect, and sentences that describe it.
//!
//! [`setting_rule`] classifies the change of each setting; a change of a setting unknown to it counts as
//! [`Effect::Refuses`]. The properties of JSON Schemas are compared by name, not by what they accept.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::read_rules::{RuleEntry, Setting, is_secret, network};
use crate::names::quoted;
use Effect::{Allows, Neither, Refuses, TakesAway};

/// The effect of a change on its audience, the most dangerous first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It refuses or changes what worked before.
    Refuses,
    /// It takes something away.
    TakesAway,
    /// It allows more.
    Allows,
    /// None of these.
    Neither,
}

/// The most names that a sentence lists.
const MOST_NAMED: usize = 8;

/// How the effect of a change of a setting is found.
#[derive(Clone, Copy)]
enum SettingRule {
    /// Always this effect.
    As(Effect),
    /// A larger number allows more; no number means no bound.
    More,
    /// A value where there was none allows more; any other change refuses.
    Opens,
    /// The first effect when the new value is this word, the second one otherwise.
    When(&'static str, Effect, Effect),
    /// For a list: the effects of an added and of a removed entry.
    Entries(Effect, Effect),
}

/// Returns how the effect of a change of the setting at `path` is found, and an explanation where the values alone are
/// not clear; empty for none.
fn setting_rule(path: &str) -> (SettingRule, &'static str) {
    use SettingRule::{As, Entries, More, Opens, When};
    match path {
        "name" => (As(Neither), "what customers read on payment pages"),
        "v1.deprecated_since" | "v1.sunset" | "v1.migration_url" => (As(Neither), "a header of v1 replies"),
        "pages.language" | "pages.name" | "pages.color" | "pages.logo" => (As(Neither), "customers' pages show it"),
        "tls.generate"
        | "payin.browser_return"
        | "server.shutdown_grace"
        | "server.drain_delay"
        | "callbacks.timeout"
        | "provider.delay" => (As(Neither), ""),
        _ if path.ends_with(".first_retry") || path.ends_with(".max_retry") => (As(Neither), ""),
        _ if path.starts_with("balance.opening.") => (As(Neither), "posted only when a merchant is first seen"),
        "store.connections" | "pages.link_lifetime" | "pages.return_lifetime" | "signature.window" => (More, ""),
        _ if path.starts_with("limits.") || path.starts_with("rate_limit.") || path.ends_with("_per_day") => (More, ""),
        _ if path.ends_with(".timeout") || path.ends_with(".give_up_after") || path.ends_with(".forget_after") => {
            (More, "")
        }
        "active" => (When("true", Allows, TakesAway), "whether new operations are accepted"),
        "payin" => (When("true", Allows, TakesAway), "whether deposits are enabled"),
        "payout" => (When("true", Allows, TakesAway), "whether withdrawals are enabled"),
        "v2" => (When("true", Allows, Refuses), "whether the key may call v2; if not, its callers get 401"),
        "v2.payin" => (When("true", Allows, Refuses), "whether v2 requests may create deposits"),
        "v2.payout" => (When("true", Allows, Refuses), "whether v2 requests may create withdrawals"),
        "balance.enforce" => (When("false", Allows, Refuses), "whether the available balance bounds withdrawals"),
        "callbacks.allow_private_addresses" => {
            (When("true", Allows, Refuses), "whether loopback and private targets are called")
        }
        "v1.allow_http_callbacks" | "requests.empty_list_is_object" => (When("true", Allows, Refuses), ""),
        "v1.unknown_fields" => (When("ignore", Allows, Refuses), ""),
        "v1.non_numeric_user_id" => (When("omit", Allows, Refuses), ""),
        "payout.account" => (When("any", Allows, Refuses), ""),
        "default_shop" => (Opens, "where requests go that name no shop"),
        "v1.return_url" => (Opens, "for deposits that name no return address"),
        "allowed_ips" | "shops" => (Entries(Allows, TakesAway), ""),
        "checks.refused_accounts" | "checks.refused_addresses" => {
            (Entries(Refuses, Allows), "operations of these are created FAILED")
        }
        "admin.hosts" => (Entries(Allows, Refuses), "the host names that the admin listener accepts"),
        "admin.read_only" => (When("false", Allows, Refuses), "whether the admin listener refuses every action"),
        "admin.plain" => (When("true", Allows, Refuses), "whether plain HTTP is allowed beyond loopback"),
        "role" => (When("operator", Allows, TakesAway), "what the user may do"),
        "clients.trusted_proxies" => (Entries(Refuses, Refuses), "whose X-Forwarded-For is trusted"),
        "server.listen" => (As(Refuses), "callers reach the gateway only there"),
        "server.public_url" => (As(Refuses), "new links begin with it"),
        "tls.client_ca" => (As(Refuses), "callers without a certificate that it signed are refused"),
        "store.url" => (As(Refuses), "operations in the old store are not found"),
        "engine.url" => (As(Refuses), "a store belongs to one kind of engine"),
        "clients.proxy_protocol" => (As(Refuses), "connections of the other kind are refused"),
        "currency" => (As(Refuses), "operations in the old currency get 400"),
        "payment_method" => (As(Refuses), "`method` of a status whose request named no shop"),
        "provider.kind" => (As(Refuses), "pending operations of the other kind keep waiting for it"),
        "provider.url" => (As(Refuses), "pending operations are sent there too"),
        "v1.mode" => (As(Refuses), "where its orders without a home are made"),
        "v1.percent" | "v1.percent.payin" | "v1.percent.payout" => {
            (As(Refuses), "the share of its new orders that mode `staged` makes here")
        }
        "legacy.url" => (As(Refuses), "requests are forwarded there"),
        "legacy.reply_limit" => (More, ""),
        "legacy.paths" => (Entries(Allows, TakesAway), "further v1 paths that are forwarded"),
        "legacy.client_address_headers" => {
            (Entries(Neither, Refuses), "headers that name the caller's address to the old v1 service")
        }
        "v1.dialect" => (As(Refuses), "its v1 requests are read in the new dialect"),
        "v1.callback_url" => (As(Refuses), "for requests that name no address"),
        _ if path.starts_with("signature.") => (As(Refuses), "requests signed in the old way are refused"),
        _ if path.starts_with("routes.") => (As(Refuses), "requests to the old path get 404"),
        _ if path.starts_with("statuses.") => {
            (As(Refuses), "replies, callbacks and the `status` filter use the new word")
        }
        _ if path.starts_with("replies.") => (As(Refuses), "the shape of that reply changes"),
        _ => (As(Refuses), ""),
    }
}

pub(super) fn is_equivalent(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    // The order of secrets matters: the first one signs.
    let same = old.iter().map(|entry| &entry.same).eq(new.iter().map(|entry| &entry.same));
    same || (!is_secret(path) && missing(old, new).is_empty() && missing(new, old).is_empty())
}

/// Returns the entries of one list that another one does not have.
fn missing<'a>(of: &'a [RuleEntry], from: &[RuleEntry]) -> BTreeSet<&'a RuleEntry> {
    of.iter().filter(|entry| !from.iter().any(|had| had.same == entry.same)).collect()
}

pub(super) fn shown<'a>(entries: impl IntoIterator<Item = &'a RuleEntry>) -> String {
    listed(entries.into_iter().map(|entry| entry.shown.clone()))
}

pub(super) fn sentences(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> Vec<(Effect, String)> {
    if is_secret(path) {
        return vec![secrets(path, old, new)];
    }
    let (rule, meaning) = setting_rule(path);
    let meaning = if meaning.is_empty() { String::new() } else { format!(": {meaning}") };
    if let (SettingRule::Entries(added, gone), Some(before), Some(after)) = (rule, old, new) {
        // A removed network that a remaining larger one contains is not gone.
        let covered = |entry: &&RuleEntry| {
            let net = network(&entry.shown);
            net.is_some_and(|net| after.iter().filter_map(|new| network(&new.shown)).any(|new| new.contains(&net)))
        };
        let (mut less, more) = (missing(before, after), missing(after, before));
        less.retain(|entry| !covered(entry));
        let none_left = if after.is_empty() { ", and none is left" } else { "" };
        let less = (!less.is_empty()).then(|| (gone, format!("{} removed{none_left}{meaning}", shown(less))));
        let more = (!more.is_empty()).then(|| (added, format!("{} added{meaning}", shown(more))));
        return less.into_iter().chain(more).collect();
    }
    let absent = if path == "shops" { "all" } else { "none" };
    let shown_or_absent =
        |setting: Option<&Setting>| setting.map_or_else(|| absent.to_owned(), |setting| or_none(shown(setting)));
    if path == "store.url" && shown_or_absent(old) == shown_or_absent(new) {
        return vec![(
            Neither,
            format!("{} as before, but its user, password or parameters changed", shown_or_absent(new)),
        )];
    }
    let word = |setting: Option<&Setting>| setting.and_then(|setting| Some(setting.first()?.same.clone()));
    let effect = match (rule, old, new) {
        (SettingRule::As(effect), ..) => effect,
        (SettingRule::More | SettingRule::Entries(..), Some(_), None) | (SettingRule::Opens, None, Some(_)) => Allows,
        (SettingRule::More | SettingRule::Entries(..), None, _) => TakesAway,
        (SettingRule::More, ..) => {
            let number = |setting| word(setting).and_then(|same| same.parse::<u128>().ok());
            if number(new) > number(old) { Allows } else { TakesAway }
        }
        (SettingRule::When(known, then, otherwise), ..) => {
            if word(new).as_deref() == Some(known) {
                then
            } else {
                otherwise
            }
        }
        (SettingRule::Opens | SettingRule::Entries(..), ..) => Refuses,
    };
    vec![(effect, format!("{}{meaning}", arrow(&shown_or_absent(old), &shown_or_absent(new))))]
}

/// Describes a change of secrets: how many there are, where they are kept and which one signs. Never shows a secret or
/// a part of one.
fn secrets(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> (Effect, String) {
    let (before, after) = (old.map_or(&[][..], Vec::as_slice), new.map_or(&[][..], Vec::as_slice));
    let gone = missing(before, after).len();
    let (effect, meaning) = match (path, before.is_empty(), after.is_empty()) {
        ("admin.token", true, _) => (Refuses, "the admin listener now requires a token"),
        ("admin.token", _, true) => (Allows, "the admin listener no longer requires a token"),
        ("pages.secret", true, _) => (Refuses, "links signed with pages.key beside the store's key no longer verify"),
        ("pages.secret", _, true) => {
            (Refuses, "pages.key beside the store's key signs: earlier links no longer verify")
        }
        ("v1_secret", true, _) => (Allows, "the key can now call v1"),
        ("v1_secret", _, true) => (TakesAway, "the key can no longer call v1: 401"),
        (_, true, _) => (Allows, ""),
        (_, _, true) => (TakesAway, ""),
        _ if gone == before.len() => (Refuses, "the old secret no longer verifies"),
        _ if before.first().map(|entry| &entry.same) != after.first().map(|entry| &entry.same) => {
            (Refuses, "another secret signs")
        }
        _ if gone > 0 => (TakesAway, "an old secret no longer verifies"),
        _ if !missing(after, before).is_empty() => (Allows, "one more verifies (a rotation)"),
        _ => (Neither, "the same secrets in another order"),
    };
    let colon = if meaning.is_empty() { "" } else { ": " };
    (effect, format!("{}{colon}{meaning}", arrow(&or_none(shown(before)), &or_none(shown(after)))))
}

/// "a, b and c", or "a, b and 31 more".
pub(super) fn listed(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names.by_ref().take(MOST_NAMED).collect();
    match names.count() {
        0 => {}
        more => shown.push(format!("{more} more")),
    }
    match shown.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

pub(super) fn or_none(shown: String) -> String {
    if shown.is_empty() { "none".to_owned() } else { shown }
}

/// Returns "old -> new", or "new changed" when both are shown alike.
fn arrow(old: &str, new: &str) -> String {
    if old == new { format!("{new} changed") } else { format!("{old} -> {new}") }
}

/// Describes which properties of a schema were added, removed, made required or changed.
pub(super) fn schema_changes(old: Option<&Json>, new: Option<&Json>) -> Vec<(Effect, String)> {
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec![(Refuses, "a schema now checks `fields`; any object passed before".to_owned())],
        (Some(_), None) => return vec![(Allows, "no schema checks `fields` any more: any object passes".to_owned())],
        (Some(old), Some(new)) => (old, new),
    };
    let none = Map::new();
    let properties = |schema: &'_ Json| schema["properties"].as_object().unwrap_or(&none).clone();
    let required = |schema: &Json| {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    // The keywords that apply to all properties together, or to those that are not listed.
    let rest = |schema: &Json| {
        let keywords = schema.as_object().unwrap_or(&none).clone().into_iter();
        keywords.filter(|(name, _)| !["type", "properties", "required"].contains(&name.as_str())).collect::<Map<_, _>>()
    };
    let (before, after, rest) = (properties(old), properties(new), (rest(old), rest(new)));
    let alone = rest.1.keys().all(|name| name == "$defs");
    let mut effects = Vec::new();
    for name in union(before.keys(), after.keys()) {
        let shown = quoted(name);
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(_), Some(_)) => {
                effects.push((Refuses, format!("{shown} is changed: it may refuse what was accepted")));
            }
            (None, Some(added)) => {
                let anything = *added == Json::Bool(true) || added.as_object().is_some_and(Map::is_empty);
                let effect = if anything && alone { Allows } else { Refuses };
                effects.push((effect, format!("{shown} is added: it is passed on and checked now, it was dropped")));
            }
            _ => {
                let effect = if alone { Neither } else { Refuses };
                effects.push((effect, format!("{shown} is removed: it is dropped now, it was passed on")));
            }
        }
    }
    let (before, after) = (required(old), required(new));
    for name in after.difference(&before) {
        effects.push((Refuses, format!("{} is required now: requests without it are refused", quoted(name))));
    }
    for name in before.difference(&after) {
        effects.push((Allows, format!("{} is no longer required", quoted(name))));
    }
    for name in union(rest.0.keys(), rest.1.keys()).filter(|name| rest.0.get(*name) != rest.1.get(*name)) {
        effects.push((Refuses, format!("the keyword {} is changed: it may refuse what was accepted", quoted(name))));
    }
    if old["type"] != new["type"] || old.is_object() != new.is_object() {
        effects.push((Refuses, "the type is changed: it may refuse what was accepted".to_owned()));
    }
    effects
}

/// Returns the items of both iterators, sorted and without duplicates.
pub(super) fn union<'a, T: Ord + 'a>(
    old: impl Iterator<Item = &'a T>,
    new: impl Iterator<Item = &'a T>,
) -> impl Iterator<Item = &'a T> {
    old.chain(new).collect::<BTreeSet<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read_rules::entry;
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let list = |count: usize| listed((0..count).map(|name| name.to_string()));
        assert_eq!([list(0), list(1), list(3)], ["", "0", "0, 1 and 2"]);
        assert_eq!(list(10), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

    #[test]
    fn secrets_are_reported_and_never_shown() {
        use std::fmt::Write as _;
        let list = |texts: &[&str]| {
            let entries: Setting = texts.iter().map(|text| entry("v2_secret", text, Path::new(""))).collect();
            (!entries.is_empty()).then_some(entries)
        };
        let mut report = String::new();
        for (old, new) in [
            (&["hush-a"][..], &["hush-b"][..]),
            (&["env:A"], &["env:B"]),
            (&["env:A"], &["env:A", "hush-b"]),
            (&["env:A"], &["env:B", "env:A"]),
            (&["env:A", "env:B"], &["env:B", "env:A"]),
            (&["env:A", "env:B"], &["env:B"]),
            (&["env:A", "env:B"], &["env:A"]),
            (&["env:A"], &["env:A", "env:B", "env:C"]),
            (&["env:A", "env:B"], &["env:A", "env:C"]),
            (&["env:A", "env:B", "env:C"], &["env:A", "env:C", "env:B"]),
            (&[], &["hush-a"]),
            (&["hush-a"], &[]),
        ] {
            let (effect, what) = secrets("v2_secret", list(old).as_ref(), list(new).as_ref());
            let _ = writeln!(report, "{effect:?}: {what}");
        }
        assert!(!report.contains("hush"), "{report}");
        insta::assert_snapshot!(report);
    }
}
