//! Compares two rules directories and describes the changes in sentences, union, grouped by audience, without secrets.

mod read;
mod schemas;
mod sentences;

use std::collections::{BTreeMap, BTreeSet};

pub use self::read::ReadRules;
use self::schemas::{SIDES, schema_changes};
use self::sentences::{is_equivalent, listed, or_none, sentences, shown, union};
use super::setting::Effect::{self, Allows, Neither, Refuses, TakesAway};
use super::setting::{Settings, plain};
use crate::names::quoted;

/// The lists of tables, by their keys: of a merchant's file, and of `gateway.toml`.
const API_KEYS: &str = "api_keys";
const SHOPS: &str = "shops";
const ADMIN_USERS: &str = "admin.users";

/// The audience of changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// One merchant.
    Merchant {
        /// Its id.
        id: String,
        /// Its display name.
        name: String,
    },
    /// The merchants that may use a shop.
    Shop {
        /// Its code.
        code: String,
        /// The merchants that may use it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// The merchants whose shops use a list.
    List {
        /// Its name.
        name: String,
        /// The shops whose schemas name it, sorted.
        shops: Vec<String>,
    },
    /// The merchants that use a dialect.
    Dialect {
        /// Its name.
        name: String,
        /// The merchants that use it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// The customers who see pages.
    Pages,
    /// All callers and customers.
    Gateway,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its effect.
    pub effect: Effect,
    /// The file that contains it, relative to the rules directory.
    pub file: String,
    /// The key in the file, with the tables above it; for schemas and lists, the key that names them.
    pub key: String,
    /// The change as a sentence.
    pub what: String,
    /// Whether it takes effect only at the next start of the process.
    pub at_next_start: bool,
}

/// The changes for one audience; never empty, the most dangerous first.
#[derive(Debug, Clone)]
pub struct Group {
    /// The audience.
    pub audience: Audience,
    /// The changes.
    pub changes: Vec<Change>,
}

impl Group {
    const fn new(audience: Audience) -> Self {
        Self { audience, changes: Vec::new() }
    }

    fn add(&mut self, file: &str, effect: Effect, key: impl Into<String>, what: impl Into<String>) {
        let (file, key, what) = (file.to_owned(), key.into(), what.into());
        self.changes.push(Change { effect, file, key, what, at_next_start: false });
    }

    /// Adds a change for every setting that differs. The label is put before each sentence, `above` before each key.
    fn settings(&mut self, file: &str, (label, above): (&str, &str), old: &Settings, new: &Settings) {
        for path in union(old.values.keys(), new.values.keys()) {
            let (old, new) = (old.values.get(path), new.values.get(path));
            if !is_equivalent(old, new) {
                let name = if label.is_empty() { with_section(path) } else { plain(path) };
                let at_next_start = new.or(old).is_some_and(|setting| setting.on_change.restart.is_some());
                for (effect, what) in sentences(old, new) {
                    let (key, what) = (format!("{above}{path}"), format!("{label}{name}: {what}"));
                    self.changes.push(Change { effect, file: file.to_owned(), key, what, at_next_start });
                }
            }
        }
    }
}

/// Returns the changes from one directory to another; empty when both mean the same. Groups with the most dangerous
/// changes come first.
#[must_use]
pub fn diff(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let mut groups: Vec<Group> =
        union(old.merchants.keys(), new.merchants.keys()).map(|id| merchant(id, old, new)).collect();
    groups.extend(union(old.shops.keys(), new.shops.keys()).map(|code| shop(code, old, new)));
    groups.extend(union(old.dialects.keys(), new.dialects.keys()).map(|name| dialect(name, old, new)));
    groups.extend(common_lists(old, new));
    groups.push(pages(old, new));
    let mut gateway = Group::new(Audience::Gateway);
    gateway.settings("gateway.toml", ("", ""), &old.gateway, &new.gateway);
    admin_users(&mut gateway, old, new);
    groups.push(gateway);
    groups.retain(|group| !group.changes.is_empty());
    for group in &mut groups {
        group.changes.sort_by_key(|change| change.effect);
    }
    groups.sort_by(|one, other| {
        let worst = |group: &Group| group.changes.first().map(|change| change.effect);
        (worst(one), &one.audience).cmp(&(worst(other), &other.audience))
    });
    groups
}

fn merchant(id: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let none = Settings::default();
    let (was, is) = (old.merchants.get(id), new.merchants.get(id));
    let (before, after) = (was.unwrap_or(&none), is.unwrap_or(&none));
    let name = plain(is.or(was).and_then(|file| file.first("name")).unwrap_or(id));
    let mut group = Group::new(Audience::Merchant { id: id.into(), name });
    let file = format!("merchants/{id}.toml");
    match (was, is) {
        (None, _) => group.add(&file, Allows, "", "the merchant is new"),
        (_, None) => group.add(&file, TakesAway, "", "the merchant is removed"),
        _ => group.settings(&file, ("", ""), before, after),
    }
    for (key, _) in before.tables(API_KEYS).iter().filter(|(key, _)| new.owner(key) != Some(id)) {
        let what = match new.owner(key) {
            Some(owner) => format!("moves to merchant {owner}: its callers no longer act for this merchant"),
            None => "is revoked: its callers get 401".to_owned(),
        };
        group.add(&file, TakesAway, format!("api_keys.{key}"), format!("key {} {what}", plain(key)));
    }
    for (key, settings) in after.tables(API_KEYS) {
        let shown = plain(key);
        let other_owner = old.owner(key).filter(|owner| *owner != id);
        if let Some(owner) = other_owner {
            let what = format!("key {shown} moves here from merchant {owner}: its callers now act for this merchant");
            group.add(&file, Refuses, format!("api_keys.{key}"), what);
        }
        let known =
            other_owner.map_or(was, |owner| old.merchants.get(owner)).and_then(|file| file.table(API_KEYS, key));
        if let Some(known) = known {
            group.settings(&file, (&format!("key {shown}: "), &format!("api_keys.{key}.")), known, settings);
        } else {
            group.add(&file, Allows, format!("api_keys.{key}"), format!("key {shown} is added {}", new_key(settings)));
        }
    }
    // When an operation's key is gone, its merchant's first key signs instead: see `Merchant::signing_key`.
    let order = |file: &Settings, other: &Settings| {
        let names = file.tables(API_KEYS).iter().map(|(key, _)| key.clone());
        names.filter(|key| other.table(API_KEYS, key).is_some()).collect::<Vec<_>>()
    };
    if order(before, after) != order(after, before) {
        let what = "the keys are in another order: the first one signs for operations whose own key is gone";
        group.add(&file, Neither, "api_keys", what);
    }
    for code in union(before.names(SHOPS), after.names(SHOPS)).filter(|_| is.is_some()) {
        let (key, label) = (format!("shops.{code}"), format!("shop {code}: "));
        match (before.table(SHOPS, code), after.table(SHOPS, code)) {
            (Some(old), Some(new)) => group.settings(&file, (&label, &format!("{key}.")), old, new),
            (None, Some(new)) => {
                let on = [("payin", "deposits"), ("payout", "withdrawals")];
                let on = on.into_iter().filter(|(key, _)| new.first(key) == Some("true")).map(|(_, on)| on.to_owned());
                group.add(&file, Allows, key, format!("shop {code} is added for {}", or_none(listed(on))));
            }
            _ => group.add(&file, TakesAway, key, format!("shop {code} is removed: requests for it get 400")),
        }
    }
    own_lists(&mut group, id, old, new);
    group
}

fn new_key(settings: &Settings) -> String {
    let calls = match (settings.values.contains_key("v1_secret"), settings.first("v2")) {
        (_, Some("false")) => "v1 alone",
        (true, _) => "v1 and v2",
        (false, _) => "v2 alone",
    };
    let listed = |path: &str| settings.values.get(path).map(|setting| or_none(shown(&setting.entries)));
    let from = listed("allowed_ips").unwrap_or_else(|| or_none(String::new()));
    let shops = listed("shops").map_or_else(String::new, |shops| format!(", for shops: {shops}"));
    format!("({calls}), from {from}{shops}")
}

fn shop(code: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let has = |file: &Settings| file.table(SHOPS, code).is_some();
    let merchants = union(old.merchants(has), new.merchants(has)).cloned().collect();
    let mut group = Group::new(Audience::Shop { code: code.into(), merchants });
    let file = format!("shops/{code}.toml");
    match (old.shops.get(code), new.shops.get(code)) {
        (None, Some(after)) => {
            let [currency, kind] = ["currency", "provider.kind"]
                .map(|key| after.values.get(key).map(|setting| shown(&setting.entries)).unwrap_or_default());
            group.add(&file, Allows, "", format!("the shop is new: {currency}, with the provider {kind} behind it"));
        }
        (Some(before), Some(after)) => {
            group.settings(&file, ("", ""), before, after);
            // Schemas are compared by their content, not by the names of their files.
            group.changes.retain(|change| !SIDES.iter().any(|(key, _)| change.key == *key));
            for (key, operations) in SIDES {
                let (was, is) = (old.schema(code, key), new.schema(code, key));
                let named = is.or(was).map_or_else(|| file.clone(), |(name, _)| format!("shops/{name}"));
                for (effect, what) in schema_changes(was.map(|(_, schema)| schema), is.map(|(_, schema)| schema)) {
                    group.add(&named, effect, key, format!("{operations}: {what}"));
                }
            }
        }
        _ => group.add(&file, TakesAway, "", "the shop is removed"),
    }
    group
}

fn common_lists(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let names = union(old.lists.keys(), new.lists.keys()).filter(|(merchant, _)| merchant.is_none());
    let group = |key: &(Option<String>, String)| {
        let name = &key.1;
        let shops = old.users(new, name);
        let mut group =
            Group::new(Audience::List { name: name.clone(), shops: shops.iter().map(ToString::to_string).collect() });
        // A list that no shop uses has no effect.
        if !shops.is_empty() {
            list_values(&mut group, &format!("lists/{name}.txt"), ("", ""), old.lists.get(key), new.lists.get(key));
        }
        group
    };
    names.map(group).collect()
}

/// Adds the changes of a merchant's own lists, which replace the common ones of the same name.
fn own_lists(group: &mut Group, merchant: &str, old: &ReadRules, new: &ReadRules) {
    let keys = union(old.lists.keys(), new.lists.keys()).filter(|(owner, _)| owner.as_deref() == Some(merchant));
    for key in keys.filter(|(_, name)| !old.users(new, name).is_empty()) {
        let (name, common) = (&key.1, (None, key.1.clone()));
        let file = format!("lists/{merchant}/{name}.txt");
        match (old.lists.contains_key(key), new.lists.contains_key(key)) {
            (false, _) => group.add(&file, Neither, name, format!("list `{name}` is now its own, not the common one")),
            (_, false) => group.add(&file, Neither, name, format!("list `{name}` is now the common one, not its own")),
            _ => {}
        }
        let values = |read: &'_ ReadRules| read.lists.get(key).or_else(|| read.lists.get(&common)).cloned();
        let label = format!("its list `{name}`: ");
        list_values(group, &file, (&label, name), values(old).as_ref(), values(new).as_ref());
    }
}

fn list_values(
    group: &mut Group,
    file: &str,
    (label, key): (&str, &str),
    old: Option<&BTreeSet<String>>,
    new: Option<&BTreeSet<String>>,
) {
    let none = BTreeSet::new();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    for (effect, one, other, what) in [(Refuses, old, new, "removed"), (Allows, new, old, "added")] {
        let names = listed(one.difference(other).map(|value| quoted(value)));
        if !names.is_empty() {
            group.add(file, effect, key, format!("{label}{names} {what}"));
        }
    }
}

fn dialect(name: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let uses_dialect = |file: &Settings| file.first("v1.dialect") == Some(name);
    let merchants = union(old.merchants(uses_dialect), new.merchants(uses_dialect)).cloned().collect();
    let mut group = Group::new(Audience::Dialect { name: name.into(), merchants });
    let file = format!("dialects/{name}.toml");
    match (old.dialects.get(name), new.dialects.get(name)) {
        (Some(before), Some(after)) => group.settings(&file, ("", ""), before, after),
        (None, _) => group.add(&file, Allows, "", "the dialect is new"),
        _ => group.add(&file, TakesAway, "", "the dialect is removed: its paths are no longer served"),
    }
    group
}

fn pages(old: &ReadRules, new: &ReadRules) -> Group {
    let mut group = Group::new(Audience::Pages);
    // All texts and settings of each language, by key.
    let texts = |read: &ReadRules| {
        let all = read.rules.pages.languages().iter().map(|language| {
            let [direction, decimal, group] = ["direction", "decimal", "group"].map(str::to_owned);
            let mut texts = BTreeMap::from([
                (direction, format!("{:?}", language.direction)),
                (decimal, language.decimal.to_string()),
                (group, language.group.to_string()),
            ]);
            for (table, keys) in language.texts.as_object().into_iter().flatten() {
                let keys = keys.as_object().into_iter().flatten();
                texts.extend(keys.map(|(key, text)| (format!("{table}.{key}"), text.to_string())));
            }
            (language.tag.to_string(), texts)
        });
        all.collect::<BTreeMap<_, _>>()
    };
    let (before, after) = (texts(old), texts(new));
    for tag in union(before.keys(), after.keys()) {
        let file = format!("pages/{tag}.toml");
        match (before.get(tag), after.get(tag)) {
            (Some(one), Some(other)) => {
                let changed = union(one.keys(), other.keys()).filter(|key| one.get(*key) != other.get(*key));
                let changed: Vec<&String> = changed.collect();
                if let [first, more @ ..] = &changed[..] {
                    let key = if more.is_empty() { first.as_str() } else { "" };
                    let names = listed(changed.iter().map(|key| plain(key)));
                    group.add(&file, Neither, key, format!("language {tag}: {names} changed"));
                }
            }
            (None, _) => {
                let fallback = &old.rules.pages.language(tag).tag;
                let what = format!("language {tag} is added: customers who prefer it no longer get {fallback}");
                group.add(&file, Allows, "", what);
            }
            _ => {
                let fallback = &new.rules.pages.language(tag).tag;
                let what = format!("language {tag} is removed: customers who prefer it get {fallback}");
                group.add(&file, TakesAway, "", what);
            }
        }
    }
    group
}

/// Adds the changes of the console's users.
fn admin_users(group: &mut Group, old: &ReadRules, new: &ReadRules) {
    let has_users = |read: &ReadRules| !read.gateway.tables(ADMIN_USERS).is_empty();
    let needs_no_user = |read: &ReadRules| !has_users(read) && !read.gateway.values.contains_key("admin.token");
    for name in union(old.gateway.names(ADMIN_USERS), new.gateway.names(ADMIN_USERS)) {
        let (key, shown) = (format!("admin.users.{name}"), plain(name));
        match (old.gateway.table(ADMIN_USERS, name), new.gateway.table(ADMIN_USERS, name)) {
            (Some(was), Some(is)) => {
                group.settings("gateway.toml", (&format!("user {shown}: "), &format!("{key}.")), was, is);
            }
            (None, Some(is)) => {
                let role = is.first("role").unwrap_or_default();
                group.add("gateway.toml", Allows, key, format!("user {shown} is added: {role}"));
            }
            _ => group.add("gateway.toml", TakesAway, key, format!("user {shown} is removed: its sessions end")),
        }
    }
    if needs_no_user(old) && has_users(new) {
        group.add("gateway.toml", Refuses, "admin.users", "the admin listener now requires a user");
    } else if has_users(old) && needs_no_user(new) {
        group.add("gateway.toml", Allows, "admin.users", "the admin listener no longer requires a user");
    }
}

/// Writes the setting `limits.body` as `[limits] body`.
fn with_section(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) => format!("[{}] {}", plain(section), plain(key)),
        None => plain(path),
    }
}
