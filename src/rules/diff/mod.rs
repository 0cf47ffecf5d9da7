//! What changes for whom between two rule directories, in words, without a secret.
//!
//! The files are compared as they are written, key by key ([`mod@settings`]), and not as they were compiled: what a secret refers
//! to is not looked up, and paths are relative to directories that differ.

mod schema;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;

use self::schema::{named_lists, plain_schema, schema_changes};
use self::settings::{
    Setting, Settings, fill, listed, means_the_same, or_none, plain, sentences, settings, shown, word,
};
use super::compile::{BUILT_IN_DIALECT, lists};
use super::describe::{FileKind, file_schema};
use super::files::{self, Role};
use super::load::{compile_once, whole};
use super::problems::{Findings, quoted};
use super::{LoadOptions, Problem, Problems, RuleSet, restart};
use crate::domain::UnixMillis;

/// What a change does to those that it concerns. The most dangerous first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It refuses, or changes, what worked before.
    Refuses,
    /// It takes away.
    TakesAway,
    /// It allows more.
    Allows,
    /// None of these.
    Neither,
}

use Effect::{Allows, Neither, Refuses, TakesAway};

/// Whom changes concern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// One merchant.
    Merchant {
        /// Its id.
        id: String,
        /// For people.
        name: String,
    },
    /// Those who may use a shop.
    Shop {
        /// Its code.
        code: String,
        /// The merchants that may use it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// Those whose shops use a list.
    List {
        /// Its name.
        name: String,
        /// The shops whose schemas name it, sorted.
        shops: Vec<String>,
    },
    /// Those who speak a dialect.
    Dialect {
        /// Its name.
        name: String,
        /// The merchants that speak it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// Customers who see pages.
    Pages,
    /// Everybody.
    Gateway,
}

/// One change, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it does.
    pub effect: Effect,
    /// The file that says it, below the rules directory.
    pub file: String,
    /// The key in it, with the tables above; of schemas and lists, the key that names them.
    pub key: String,
    /// The change in a sentence.
    pub what: String,
    /// Whether it waits for the next start of the process.
    pub at_next_start: bool,
}

/// What changes for one of those concerned; never empty, the most dangerous first.
#[derive(Debug, Clone)]
pub struct Group {
    /// Whom it concerns.
    pub who: Who,
    /// What changes.
    pub changes: Vec<Change>,
}

impl Group {
    const fn new(who: Who) -> Self {
        Self { who, changes: Vec::new() }
    }

    fn tell(&mut self, file: &str, effect: Effect, key: impl Into<String>, what: impl Into<String>) {
        let key = key.into();
        let at_next_start = self.who == Who::Gateway && restart::waits(&key);
        self.changes.push(Change { effect, file: file.to_owned(), key, what: what.into(), at_next_start });
    }

    /// Tells every setting that differs. `said` stands before each sentence, `above` before each key.
    fn settings(&mut self, file: &str, (said, above): (&str, &str), old: &Settings, new: &Settings) {
        for path in union(old.keys(), new.keys()) {
            let (old, new) = (old.get(path), new.get(path));
            if !means_the_same(path, old, new) {
                let name = if said.is_empty() { sectioned(path) } else { plain(path) };
                for (effect, what) in sentences(path, old, new) {
                    self.tell(file, effect, format!("{above}{path}"), format!("{said}{name}: {what}"));
                }
            }
        }
    }
}

/// Returns what changes from one directory to another: nothing, when both mean the same. Groups with the most dangerous
/// changes come first.
#[must_use]
pub fn diff(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let mut groups: Vec<Group> =
        union(old.merchants.keys(), new.merchants.keys()).map(|id| merchant(id, old, new)).collect();
    groups.extend(union(old.shops.keys(), new.shops.keys()).map(|code| shop(code, old, new)));
    groups.extend(union(old.dialects.keys(), new.dialects.keys()).map(|name| dialect(name, old, new)));
    groups.extend(common_lists(old, new));
    groups.push(pages(old, new));
    let mut gateway = Group::new(Who::Gateway);
    gateway.settings("gateway.toml", ("", ""), &old.gateway, &new.gateway);
    groups.push(gateway);
    groups.retain(|group| !group.changes.is_empty());
    for group in &mut groups {
        group.changes.sort_by_key(|change| change.effect);
    }
    groups.sort_by(|one, other| {
        let worst = |group: &Group| group.changes.first().map(|change| change.effect);
        (worst(one), &one.who).cmp(&(worst(other), &other.who))
    });
    groups
}

/// A merchant's file.
#[derive(Default)]
struct MerchantFile {
    settings: Settings,
    /// By key, in the file's order.
    api_keys: Vec<(String, Settings)>,
    /// By code.
    shops: BTreeMap<String, Settings>,
}

impl MerchantFile {
    fn api_key(&self, key: &str) -> Option<&Settings> {
        self.api_keys.iter().find(|(name, _)| name == key).map(|(_, settings)| settings)
    }
}

/// A rules directory without problems, ready to be compared with another one. Secrets are not looked up.
pub struct ReadRules {
    rules: RuleSet,
    gateway: Settings,
    merchants: BTreeMap<String, MerchantFile>,
    shops: BTreeMap<String, Settings>,
    /// By the names of their files.
    schemas: BTreeMap<String, Json>,
    dialects: BTreeMap<String, Settings>,
    /// The values of lists, by merchant (none: everybody's) and name.
    lists: BTreeMap<(Option<String>, String), BTreeSet<String>>,
    /// The shops whose schemas name a list, by its name.
    list_users: BTreeMap<String, BTreeSet<String>>,
}

impl ReadRules {
    /// Reads a rules directory, as `check --no-secrets` does. Reads files and may block.
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn read(directory: &Path, now: UnixMillis) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        let (files, _) = files::read(directory, &mut findings);
        let rules = compile_once(directory, &files, now, LoadOptions { check_secrets: false }, &mut findings);
        let mut read = Self {
            rules: whole(directory, rules, findings)?,
            gateway: Settings::new(),
            merchants: BTreeMap::new(),
            shops: BTreeMap::new(),
            schemas: BTreeMap::new(),
            dialects: BTreeMap::new(),
            lists: BTreeMap::new(),
            list_users: BTreeMap::new(),
        };
        let [gateway, merchant, shop, dialect] =
            [FileKind::Gateway, FileKind::Merchant, FileKind::Shop, FileKind::Dialect].map(file_schema);
        for (role, file) in &files {
            let folder = file.path.parent().unwrap_or(directory);
            let text = file.text.trim_start_matches('\u{feff}');
            // A file that was found right.
            let table = || text.parse::<toml::Table>().unwrap_or_default();
            match role {
                Role::Gateway => read.gateway = settings(&table(), &gateway, folder),
                Role::Dialect(name) => {
                    read.dialects.insert(name.clone(), settings(&table(), &dialect, folder));
                }
                Role::Merchant(id) => {
                    read.merchants.insert(id.clone(), merchant_file(id, table(), &merchant, folder));
                }
                Role::Shop(code) => {
                    read.shops.insert(code.clone(), shop_file(code, &table(), &shop, folder));
                }
                Role::Schema(name) => {
                    // One that no shop names may be anything.
                    let schema = serde_json::from_str(text).ok();
                    read.schemas.extend(schema.map(|schema| (name.clone(), plain_schema(schema))));
                }
                Role::List { merchant, name } => {
                    let values = lists::values(text).into_iter().map(String::from).collect();
                    read.lists.insert((merchant.clone(), name.clone()), values);
                }
                // Pages are compared by what they were compiled to.
                Role::PageTexts(_) => {}
            }
        }
        // It is there without its file, too.
        let built_in = || settings(&toml::Table::new(), &dialect, directory);
        read.dialects.entry(BUILT_IN_DIALECT.into()).or_insert_with(built_in);
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for code in read.shops.keys() {
            for (_, schema) in SIDES.iter().filter_map(|(key, _)| read.schema(code, key)) {
                let mut lists = BTreeSet::new();
                named_lists(schema, &mut lists);
                for list in lists {
                    users.entry(list.to_owned()).or_default().insert(code.clone());
                }
            }
        }
        read.list_users = users;
        Ok(read)
    }

    /// What is no reason to refuse the rules, and would fail requests.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.rules.warnings
    }

    /// The merchants whose files are so.
    fn merchants(&self, so: impl Fn(&MerchantFile) -> bool) -> impl Iterator<Item = &String> {
        self.merchants.iter().filter(move |(_, file)| so(file)).map(|(id, _)| id)
    }

    /// Whose an API key is.
    fn owner(&self, key: &str) -> Option<&str> {
        self.rules.api_key(key).map(|entry| entry.merchant.id.as_str())
    }

    /// The name and the text of the schema of a shop's side.
    fn schema(&self, code: &str, key: &str) -> Option<(&str, &Json)> {
        let name = word(self.shops.get(code)?, key)?;
        Some((name, self.schemas.get(name)?))
    }

    /// The shops whose schemas name a list, here or there.
    fn users<'a>(&'a self, other: &'a Self, list: &str) -> BTreeSet<&'a String> {
        let users = |read: &'a Self| read.list_users.get(list).into_iter().flatten();
        users(self).chain(users(other)).collect()
    }
}

/// The keys of a shop that name schemas, and what they check.
const SIDES: [(&str, &str); 2] = [("payin.schema", "deposits"), ("payout.schema", "withdrawals")];

fn merchant_file(id: &str, mut table: toml::Table, schema: &Json, folder: &Path) -> MerchantFile {
    let mut merchant = MerchantFile::default();
    if let Some(toml::Value::Array(entries)) = table.remove("api_keys") {
        for mut entry in entries.into_iter().filter_map(|entry| entry.try_into::<toml::Table>().ok()) {
            let key = entry.remove("key").and_then(|key| key.as_str().map(str::to_owned)).unwrap_or_default();
            let schema = &schema["properties"]["api_keys"]["items"];
            merchant.api_keys.push((key, settings(&entry, schema, folder)));
        }
    }
    if let Some(toml::Value::Table(shops)) = table.remove("shops") {
        for (code, access) in shops {
            let schema = &schema["properties"]["shops"]["additionalProperties"];
            let access = settings(access.as_table().unwrap_or(&toml::Table::new()), schema, folder);
            merchant.shops.insert(code, access);
        }
    }
    let settings = settings(&table, schema, folder).into_iter();
    // Codes of currencies are compared without their case.
    let upper = |(path, value): (String, Setting)| match path.strip_prefix("balance.opening.") {
        Some(code) => (format!("balance.opening.{}", code.to_ascii_uppercase()), value),
        None => (path, value),
    };
    merchant.settings = settings.map(upper).collect();
    fill(&mut merchant.settings, "name", id);
    merchant
}

/// Reads a shop's file; what it leaves to its code and to its payment method is filled in.
fn shop_file(code: &str, table: &toml::Table, schema: &Json, folder: &Path) -> Settings {
    let mut shop = settings(table, schema, folder);
    fill(&mut shop, "name", code);
    if !shop.contains_key("payout.account.pattern") {
        let method = word(&shop, "payment_method").filter(|method| ["card", "mobile"].contains(method));
        let account = method.unwrap_or("any").to_owned();
        fill(&mut shop, "payout.account", &account);
    }
    shop
}

fn merchant(id: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let none = MerchantFile::default();
    let (was, is) = (old.merchants.get(id), new.merchants.get(id));
    let (before, after) = (was.unwrap_or(&none), is.unwrap_or(&none));
    let name = plain(is.or(was).and_then(|file| word(&file.settings, "name")).unwrap_or(id));
    let mut group = Group::new(Who::Merchant { id: id.into(), name });
    let file = format!("merchants/{id}.toml");
    match (was, is) {
        (None, _) => group.tell(&file, Allows, "", "the merchant is new"),
        (_, None) => group.tell(&file, TakesAway, "", "the merchant is removed"),
        _ => group.settings(&file, ("", ""), &before.settings, &after.settings),
    }
    for (key, _) in before.api_keys.iter().filter(|(key, _)| new.owner(key) != Some(id)) {
        let what = match new.owner(key) {
            Some(owner) => format!("goes to merchant {owner}: its callers no longer act for this merchant"),
            None => "is revoked: its callers get 401".to_owned(),
        };
        group.tell(&file, TakesAway, format!("api_keys.{key}"), format!("key {} {what}", plain(key)));
    }
    for (key, said) in &after.api_keys {
        let shown = plain(key);
        let theirs = old.owner(key).filter(|owner| *owner != id);
        if let Some(owner) = theirs {
            let what = format!("key {shown} comes from merchant {owner}: its callers act for this merchant now");
            group.tell(&file, Refuses, format!("api_keys.{key}"), what);
        }
        let known = theirs.map_or(was, |owner| old.merchants.get(owner)).and_then(|file| file.api_key(key));
        if let Some(known) = known {
            group.settings(&file, (&format!("key {shown}: "), &format!("api_keys.{key}.")), known, said);
        } else {
            group.tell(&file, Allows, format!("api_keys.{key}"), format!("key {shown} is added {}", new_key(said)));
        }
    }
    // Some things are signed by the first key of a merchant when theirs is gone.
    let order = |file: &MerchantFile, other: &MerchantFile| {
        let names = file.api_keys.iter().map(|(key, _)| key.clone());
        names.filter(|key| other.api_key(key).is_some()).collect::<Vec<_>>()
    };
    if order(before, after) != order(after, before) {
        let what = "the keys stand in another order: what was created by a key that is gone is signed by the first one";
        group.tell(&file, Neither, "api_keys", what);
    }
    for code in union(before.shops.keys(), after.shops.keys()).filter(|_| is.is_some()) {
        let (key, said) = (format!("shops.{code}"), format!("shop {code}: "));
        match (before.shops.get(code), after.shops.get(code)) {
            (Some(old), Some(new)) => group.settings(&file, (&said, &format!("{key}.")), old, new),
            (None, Some(new)) => {
                let on = [("payin", "deposits"), ("payout", "withdrawals")];
                let on = on.into_iter().filter(|(key, _)| word(new, key) == Some("true")).map(|(_, on)| on.to_owned());
                group.tell(&file, Allows, key, format!("shop {code} is added for {}", or_none(listed(on))));
            }
            _ => group.tell(&file, TakesAway, key, format!("shop {code} is taken away: requests for it are 400")),
        }
    }
    own_lists(&mut group, id, old, new);
    group
}

fn new_key(said: &Settings) -> String {
    let calls = if said.contains_key("v1_secret") { "v1 and v2" } else { "v2 alone" };
    let from = or_none(said.get("allowed_ips").map(shown).unwrap_or_default());
    let shops = said.get("shops").map_or_else(String::new, |shops| format!(", for shops: {}", or_none(shown(shops))));
    format!("({calls}), from {from}{shops}")
}

fn shop(code: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let has = |file: &MerchantFile| file.shops.contains_key(code);
    let merchants = union(old.merchants(has), new.merchants(has)).cloned().collect();
    let mut group = Group::new(Who::Shop { code: code.into(), merchants });
    let file = format!("shops/{code}.toml");
    match (old.shops.get(code), new.shops.get(code)) {
        (None, Some(after)) => {
            let [currency, kind] =
                ["currency", "provider.kind"].map(|key| after.get(key).map(shown).unwrap_or_default());
            group.tell(&file, Allows, "", format!("the shop is new: {currency}, with the provider {kind} behind it"));
        }
        (Some(before), Some(after)) => {
            // Schemas are told by what is in them.
            let but_schemas = |settings: &Settings| {
                let mut settings = settings.clone();
                settings.retain(|path, _| !path.ends_with(".schema"));
                settings
            };
            group.settings(&file, ("", ""), &but_schemas(before), &but_schemas(after));
            for (key, said) in SIDES {
                let (was, is) = (old.schema(code, key), new.schema(code, key));
                let named = is.or(was).map_or_else(|| file.clone(), |(name, _)| format!("shops/{name}"));
                for (effect, what) in schema_changes(was.map(|(_, schema)| schema), is.map(|(_, schema)| schema)) {
                    group.tell(&named, effect, key, format!("{said}: {what}"));
                }
            }
        }
        _ => group.tell(&file, TakesAway, "", "the shop is removed"),
    }
    group
}

fn common_lists(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let names = union(old.lists.keys(), new.lists.keys()).filter(|(merchant, _)| merchant.is_none());
    let group = |key: &(Option<String>, String)| {
        let name = &key.1;
        let shops = old.users(new, name);
        let mut group =
            Group::new(Who::List { name: name.clone(), shops: shops.iter().map(ToString::to_string).collect() });
        // What nobody uses changes nothing.
        if !shops.is_empty() {
            list_values(&mut group, &format!("lists/{name}.txt"), ("", ""), old.lists.get(key), new.lists.get(key));
        }
        group
    };
    names.map(group).collect()
}

/// Tells a merchant's own lists, which stand in the place of common ones.
fn own_lists(group: &mut Group, merchant: &str, old: &ReadRules, new: &ReadRules) {
    let keys = union(old.lists.keys(), new.lists.keys()).filter(|(owner, _)| owner.as_deref() == Some(merchant));
    for key in keys.filter(|(_, name)| !old.users(new, name).is_empty()) {
        let (name, common) = (&key.1, (None, key.1.clone()));
        let file = format!("lists/{merchant}/{name}.txt");
        match (old.lists.contains_key(key), new.lists.contains_key(key)) {
            (false, _) => group.tell(&file, Neither, name, format!("list `{name}` is its own now, not the common one")),
            (_, false) => group.tell(&file, Neither, name, format!("list `{name}` is the common one now, not its own")),
            _ => {}
        }
        let values = |read: &'_ ReadRules| read.lists.get(key).or_else(|| read.lists.get(&common)).cloned();
        let said = format!("its list `{name}`: ");
        list_values(group, &file, (&said, name), values(old).as_ref(), values(new).as_ref());
    }
}

fn list_values(
    group: &mut Group,
    file: &str,
    (said, key): (&str, &str),
    old: Option<&BTreeSet<String>>,
    new: Option<&BTreeSet<String>>,
) {
    let none = BTreeSet::new();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    for (effect, one, other, what) in [(Refuses, old, new, "removed"), (Allows, new, old, "added")] {
        let names = listed(one.difference(other).map(|value| quoted(value)));
        if !names.is_empty() {
            group.tell(file, effect, key, format!("{said}{names} {what}"));
        }
    }
}

fn dialect(name: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let speaks = |file: &MerchantFile| word(&file.settings, "v1.dialect") == Some(name);
    let merchants = union(old.merchants(speaks), new.merchants(speaks)).cloned().collect();
    let mut group = Group::new(Who::Dialect { name: name.into(), merchants });
    let file = format!("dialects/{name}.toml");
    match (old.dialects.get(name), new.dialects.get(name)) {
        (Some(before), Some(after)) => group.settings(&file, ("", ""), before, after),
        (None, _) => group.tell(&file, Allows, "", "the dialect is new"),
        _ => group.tell(&file, TakesAway, "", "the dialect is removed: its paths are no longer served"),
    }
    group
}

fn pages(old: &ReadRules, new: &ReadRules) -> Group {
    let mut group = Group::new(Who::Pages);
    // Everything that each language says, by key.
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
                    group.tell(&file, Neither, key, format!("language {tag}: {names} changed"));
                }
            }
            (None, _) => {
                let instead = &old.rules.pages.language(tag).tag;
                let what = format!("language {tag} is added: customers who ask for it no longer read {instead}");
                group.tell(&file, Allows, "", what);
            }
            _ => {
                let instead = &new.rules.pages.language(tag).tag;
                let what = format!("language {tag} is removed: customers who ask for it read {instead}");
                group.tell(&file, TakesAway, "", what);
            }
        }
    }
    group
}

/// What is in either, each once and sorted.
fn union<'a, T: Ord + 'a>(
    old: impl Iterator<Item = &'a T>,
    new: impl Iterator<Item = &'a T>,
) -> impl Iterator<Item = &'a T> {
    old.chain(new).collect::<BTreeSet<_>>().into_iter()
}

/// `limits.body` as people look for it: `[limits] body`.
fn sectioned(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) => format!("[{}] {}", plain(section), plain(key)),
        None => plain(path),
    }
}
