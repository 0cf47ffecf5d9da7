//! What changes for merchants: keys, addresses, shops, and how their v1 traffic is completed.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{API_KEY, MERCHANT, SHOP_ACCESS};
use super::page::{Changed, Page, Place};
use super::read::{MerchantFile, ReadRules};
use super::settings::{Settings, Value};
use super::words::{self, listed};
use super::{Effect, Group, Who};

/// One group for each merchant that is in either directory.
pub(super) fn groups(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let ids: BTreeSet<&String> = old.merchants.keys().chain(new.merchants.keys()).collect();
    ids.into_iter().map(|id| group(id, old, new)).collect()
}

fn group(id: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let mut page = Page::of(format!("merchants/{id}.toml"));
    let none = MerchantFile { settings: Settings::default(), api_keys: Vec::new(), shops: BTreeMap::new() };
    let (before, after) = (old.merchants.get(id), new.merchants.get(id));
    let name = after.or(before).and_then(|file| file.settings.word("name")).unwrap_or(id).to_owned();
    match (before, after) {
        (None, Some(after)) => added(&mut page, after),
        (Some(_), None) => page.tell(Effect::TakesAway, "", "the merchant is removed"),
        _ => {}
    }
    let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
    api_keys(&mut page, id, (before, after), (old, new));
    if new.merchants.contains_key(id) {
        shops(&mut page, before, after);
    }
    if old.merchants.contains_key(id) && new.merchants.contains_key(id) {
        page.settings(MERCHANT, Place::FILE, (&before.settings, &after.settings), special);
    }
    super::lists::own(&mut page, id, old, new);
    Group { who: Who::Merchant { id: id.into(), name: words::plain(&name) }, changes: page.changes }
}

/// A merchant that was not there: its keys and shops are told one by one, the rest in short.
fn added(page: &mut Page, after: &MerchantFile) {
    let dialect = after.settings.word("v1.dialect").unwrap_or_default();
    let what = format!("the merchant is new: it speaks the dialect {}", words::plain(dialect));
    page.tell(Effect::Allows, "", what);
}

fn special(page: &mut Page, changed: &Changed<'_>) -> bool {
    let (old, new) = (changed.old.and_then(Value::word), changed.new.and_then(Value::word));
    match (changed.path, old, new) {
        ("default_shop", old, new) => {
            let (effect, what) = match (old, new) {
                (Some(_), None) => (Effect::Refuses, "requests that name no shop are 400"),
                (None, _) => (Effect::Allows, "requests that name no shop go there, they were 400"),
                _ => (Effect::Refuses, "requests that name no shop go to another shop"),
            };
            let shown = |shop: Option<&str>| shop.map_or_else(|| "none".to_owned(), words::plain);
            page.tell(effect, "default_shop", format!("default_shop: {} -> {}: {what}", shown(old), shown(new)));
        }
        ("v1.return_url", None, Some(_)) => {
            let to = changed.new.map(Value::shown).unwrap_or_default();
            let what = format!("[v1] return_url: none -> {to}: deposits that name no return address are no longer 400");
            page.tell(Effect::Allows, changed.path, what);
        }
        ("v1.return_url", Some(_), None) => {
            let what = "[v1] return_url is gone: deposits that name no return address are 400";
            page.tell(Effect::Refuses, changed.path, what);
        }
        _ => return false,
    }
    true
}

fn api_keys(
    page: &mut Page,
    id: &str,
    (before, after): (&MerchantFile, &MerchantFile),
    (old, new): (&ReadRules, &ReadRules),
) {
    for (key, _) in &before.api_keys {
        match new.owner(key) {
            Some(owner) if owner == id => {}
            owner => gone(page, key, owner),
        }
    }
    let known: BTreeMap<&str, &Settings> = before.api_keys.iter().map(|(key, said)| (key.as_str(), said)).collect();
    for (key, said) in &after.api_keys {
        let shown = words::plain(key);
        if let Some(before) = known.get(key.as_str()) {
            api_key(page, key, before, said);
        } else if let Some(owner) = old.owner(key) {
            let what = format!("key {shown} comes from merchant {owner}: its callers act for this merchant now");
            page.tell(Effect::Refuses, format!("api_keys.{key}"), what);
            let theirs = old.merchants.get(owner).map_or(&[][..], |file| file.api_keys.as_slice());
            if let Some((_, before)) = theirs.iter().find(|(name, _)| name == key) {
                api_key(page, key, before, said);
            }
        } else {
            page.tell(Effect::Allows, format!("api_keys.{key}"), new_key(&shown, said));
        }
    }
    order(page, before, after);
}

fn gone(page: &mut Page, key: &str, owner: Option<&str>) {
    let shown = words::plain(key);
    let what = match owner {
        Some(owner) => format!("key {shown} goes to merchant {owner}: its callers no longer act for this merchant"),
        None => format!("key {shown} is revoked: its callers get 401"),
    };
    page.tell(Effect::TakesAway, format!("api_keys.{key}"), what);
}

/// Some things are signed by the first key of a merchant when theirs is gone.
fn order(page: &mut Page, before: &MerchantFile, after: &MerchantFile) {
    let names = |file: &MerchantFile| file.api_keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let (old, new) = (names(before), names(after));
    let kept = |list: &[String], other: &[String]| {
        list.iter().filter(|key| other.contains(key)).cloned().collect::<Vec<String>>()
    };
    if kept(&old, &new) != kept(&new, &old) {
        let what = "the keys stand in another order: what was created by a key that is gone is signed by the first one";
        page.tell(Effect::Neither, "api_keys", what);
    }
}

fn new_key(shown: &str, said: &Settings) -> String {
    let calls = if said.get("v1_secret").is_some() { "v1 and v2" } else { "v2 alone" };
    let from = match said.get("allowed_ips").map(Value::shown) {
        Some(networks) if !networks.is_empty() => format!("from {networks}"),
        _ => "from nowhere".to_owned(),
    };
    let rate = said.get("rate_limit").map_or_else(String::new, |rate| format!(", at most {}", rate.shown()));
    let shops = match said.get("shops") {
        Some(Value::Names(names)) if names.is_empty() => ", for no shop".to_owned(),
        Some(names) => format!(", for {} alone", names.shown()),
        None => String::new(),
    };
    format!("key {shown} is added ({calls}), {from}{rate}{shops}")
}

fn api_key(page: &mut Page, key: &str, before: &Settings, after: &Settings) {
    let shown = words::plain(key);
    let (said, above) = (format!("key {shown}: "), format!("api_keys.{key}."));
    let place = Place { said: &said, above: &above };
    let empty =
        |settings: &Settings| matches!(settings.get("allowed_ips"), Some(Value::Addresses(list)) if list.is_empty());
    page.settings(API_KEY, place, (before, after), |page, changed| match (changed.path, changed.old, changed.new) {
        ("v1_secret", Some(_), None) => {
            page.tell(Effect::TakesAway, format!("{above}v1_secret"), format!("{said}it can no longer call v1: 401"));
            true
        }
        ("v1_secret", None, Some(_)) => {
            page.tell(Effect::Allows, format!("{above}v1_secret"), format!("{said}it can call v1 now"));
            true
        }
        ("shops", old, new) => {
            key_shops(page, &said, &above, names(old), names(new));
            true
        }
        _ => false,
    });
    if empty(after) && !empty(before) {
        let what = format!("{said}no address is left: it can be used from nowhere");
        page.tell(Effect::TakesAway, format!("{above}allowed_ips"), what);
    }
}

fn names(value: Option<&Value>) -> Option<&BTreeSet<String>> {
    match value {
        Some(Value::Names(names)) => Some(names),
        _ => None,
    }
}

fn key_shops(page: &mut Page, said: &str, above: &str, old: Option<&BTreeSet<String>>, new: Option<&BTreeSet<String>>) {
    let key = format!("{above}shops");
    let list = |names: &BTreeSet<String>| match names.len() {
        0 => "no shop".to_owned(),
        _ => listed(names.iter().map(String::as_str), "shop", false).0,
    };
    match (old, new) {
        (Some(old), None) => {
            let what = format!("{said}it may use all shops of the merchant, it was for {}", list(old));
            page.tell(Effect::Allows, key, what);
        }
        (None, Some(new)) => {
            let alone = if new.is_empty() { "" } else { " alone" };
            let what = format!("{said}it may use {}{alone}, it was for all shops of the merchant", list(new));
            page.tell(Effect::TakesAway, key, what);
        }
        (Some(old), Some(new)) => {
            let gone: BTreeSet<String> = old.difference(new).cloned().collect();
            let opened: BTreeSet<String> = new.difference(old).cloned().collect();
            if !gone.is_empty() {
                page.tell(Effect::TakesAway, key.clone(), format!("{said}it may no longer use {}", list(&gone)));
            }
            if !opened.is_empty() {
                page.tell(Effect::Allows, key, format!("{said}it may use {} now", list(&opened)));
            }
        }
        (None, None) => {}
    }
}

fn shops(page: &mut Page, before: &MerchantFile, after: &MerchantFile) {
    let codes: BTreeSet<&String> = before.shops.keys().chain(after.shops.keys()).collect();
    for code in codes {
        let key = format!("shops.{code}");
        match (before.shops.get(code), after.shops.get(code)) {
            (Some(old), Some(new)) => directions(page, code, old, new),
            (None, Some(new)) => {
                page.tell(Effect::Allows, key, format!("shop {code} is enabled: {}", enabled(new)));
            }
            (Some(_), None) => {
                page.tell(Effect::TakesAway, key, format!("shop {code} is taken away: requests for it are 400"));
            }
            (None, None) => {}
        }
    }
}

fn enabled(access: &Settings) -> &'static str {
    match (access.word("payin"), access.word("payout")) {
        (Some("true"), Some("true")) => "deposits and withdrawals",
        (Some("true"), _) => "deposits alone",
        (_, Some("true")) => "withdrawals alone",
        _ => "neither deposits nor withdrawals",
    }
}

fn directions(page: &mut Page, code: &str, old: &Settings, new: &Settings) {
    let (said, above) = (format!("shop {code}: "), format!("shops.{code}."));
    let place = Place { said: &said, above: &above };
    page.settings(SHOP_ACCESS, place, (old, new), |page, changed| {
        let direction = match changed.path {
            "payin" => "deposits",
            "payout" => "withdrawals",
            _ => return false,
        };
        let on = changed.new.and_then(Value::word) == Some("true");
        let (effect, how) = if on { (Effect::Allows, "on") } else { (Effect::TakesAway, "off") };
        page.tell(effect, format!("{above}{}", changed.path), format!("{said}{direction} are switched {how}"));
        true
    });
}
