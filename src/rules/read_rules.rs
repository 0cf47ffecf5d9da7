//! Reads a rules directory as settings, in one spelling and without secrets, for comparison by
//! [`diff()`](super::diff()).
//!
//! Settings are as written, with the defaults of their files' JSON Schemas filled in, and not as compiled: secrets are
//! not fetched, and the paths are relative to directories that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ipnet::IpNet;
use serde_json::Value as Json;

use super::compile::{BUILT_IN_DIALECT, folded, lists};
use super::describe::{FileKind, file_schema};
use super::files::{self, FileRole};
use super::limits::canonical_prefix;
use super::load::{compile_once, finish};
use super::problems::Diagnostics;
use super::schema::ALLOWED_LIST;
use super::{LoadOptions, Problem, Problems, RuleSet, read_span};
use crate::domain::{Amount, UnixMillis};
use crate::store_settings::PostgresUrl;

/// The longest part of a value that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 120;

/// A merchant's file.
#[derive(Default)]
pub(super) struct MerchantFile {
    pub(super) settings: Settings,
    /// API keys by name, in the file's order.
    pub(super) api_keys: Vec<(String, Settings)>,
    /// Access to shops, by code.
    pub(super) shops: BTreeMap<String, Settings>,
}

impl MerchantFile {
    pub(super) fn api_key(&self, key: &str) -> Option<&Settings> {
        self.api_keys.iter().find(|(name, _)| name == key).map(|(_, settings)| settings)
    }
}

/// The settings of a valid rules directory, for comparison with another one. Secrets are not fetched.
pub struct ReadRules {
    pub(super) rules: RuleSet,
    pub(super) gateway: Settings,
    /// The users of the console, by name.
    pub(super) admin_users: BTreeMap<String, Settings>,
    pub(super) merchants: BTreeMap<String, MerchantFile>,
    pub(super) shops: BTreeMap<String, Settings>,
    /// Schemas, by file name.
    schemas: BTreeMap<String, Json>,
    pub(super) dialects: BTreeMap<String, Settings>,
    /// The values of lists, by merchant (`None`: common to all) and name.
    pub(super) lists: BTreeMap<(Option<String>, String), BTreeSet<String>>,
    /// The codes of the shops whose schemas name a list, by list name.
    list_users: BTreeMap<String, BTreeSet<String>>,
}

impl ReadRules {
    /// Reads a rules directory, as `check --no-secrets` does. Reads files and may block.
    ///
    /// # Errors
    /// All problems of the files.
    pub fn read(directory: &Path, now: UnixMillis) -> Result<Self, Problems> {
        let mut diagnostics = Diagnostics::default();
        let (files, _) = files::read(directory, &mut diagnostics);
        let rules = compile_once(directory, &files, now, LoadOptions { check_secrets: false }, &mut diagnostics);
        let mut read = Self {
            rules: finish(directory, rules, diagnostics)?,
            gateway: Settings::new(),
            admin_users: BTreeMap::new(),
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
            // The file was compiled without errors, so it parses.
            let table = || text.parse::<toml::Table>().unwrap_or_default();
            match role {
                FileRole::Gateway => {
                    let mut table = table();
                    read.admin_users = admin_users(&mut table, folder);
                    read.gateway = settings(&table, &gateway, folder);
                }
                FileRole::Dialect(name) => {
                    read.dialects.insert(name.clone(), settings(&table(), &dialect, folder));
                }
                FileRole::Merchant(id) => {
                    read.merchants.insert(id.clone(), merchant_file(id, table(), &merchant, folder));
                }
                FileRole::Shop(code) => {
                    read.shops.insert(code.clone(), shop_file(code, &table(), &shop, folder));
                }
                FileRole::Schema(name) => {
                    // A schema that no shop names is not checked and may be invalid.
                    let schema = serde_json::from_str(text).ok();
                    read.schemas.extend(schema.map(|schema| (name.clone(), plain_schema(schema))));
                }
                FileRole::List { merchant, name } => {
                    let values = lists::values(text).into_iter().map(String::from).collect();
                    read.lists.insert((merchant.clone(), name.clone()), values);
                }
                // Pages are compared in compiled form.
                FileRole::PageTexts(_) => {}
            }
        }
        // The built-in dialect exists without a file, too.
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

    /// Returns the warnings.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.rules.warnings
    }

    /// Returns the ids of the merchants whose files match.
    pub(super) fn merchants(&self, matches: impl Fn(&MerchantFile) -> bool) -> impl Iterator<Item = &String> {
        self.merchants.iter().filter(move |(_, file)| matches(file)).map(|(id, _)| id)
    }

    /// Returns the merchant of an API key.
    pub(super) fn owner(&self, key: &str) -> Option<&str> {
        self.rules.api_key(key).map(|entry| entry.merchant.id.as_str())
    }

    /// Returns the file name and the content of the schema of a shop's side.
    pub(super) fn schema(&self, code: &str, key: &str) -> Option<(&str, &Json)> {
        let name = first_value(self.shops.get(code)?, key)?;
        Some((name, self.schemas.get(name)?))
    }

    /// Returns the shops whose schemas name a list, in either directory.
    pub(super) fn users<'a>(&'a self, other: &'a Self, list: &str) -> BTreeSet<&'a String> {
        let users = |read: &'a Self| read.list_users.get(list).into_iter().flatten();
        users(self).chain(users(other)).collect()
    }
}

/// The shop keys that name schemas, and what each schema checks.
pub(super) const SIDES: [(&str, &str); 2] = [("payin.schema", "deposits"), ("payout.schema", "withdrawals")];

/// Takes the users of the console out of `gateway.toml`.
fn admin_users(table: &mut toml::Table, folder: &Path) -> BTreeMap<String, Settings> {
    let admin = table.get_mut("admin").and_then(toml::Value::as_table_mut);
    let users = admin.and_then(|admin| admin.remove("users")?.try_into::<Vec<toml::Table>>().ok());
    let user = |mut user: toml::Table| {
        let name = user.remove("name")?.as_str()?.to_owned();
        Some((name, settings(&user, &Json::Null, folder)))
    };
    users.into_iter().flatten().filter_map(user).collect()
}

fn merchant_file(id: &str, mut table: toml::Table, schema: &Json, folder: &Path) -> MerchantFile {
    let mut merchant = MerchantFile::default();
    if let Some(toml::Value::Array(entries)) = table.remove("api_keys") {
        for mut entry in entries.into_iter().filter_map(|entry| entry.try_into::<toml::Table>().ok()) {
            let key = entry.remove("key").and_then(|key| key.as_str().map(str::to_owned)).unwrap_or_default();
            let schema = schema.pointer("/properties/api_keys/items").unwrap_or(&Json::Null);
            merchant.api_keys.push((key, settings(&entry, schema, folder)));
        }
    }
    if let Some(toml::Value::Table(shops)) = table.remove("shops") {
        for (code, access) in shops {
            let schema = schema.pointer("/properties/shops/additionalProperties").unwrap_or(&Json::Null);
            let mut access = settings(access.as_table().unwrap_or(&toml::Table::new()), schema, folder);
            // `v2 = true` means both directions, and so does a direction that is not named.
            let both = access.remove("v2").and_then(|v2| Some(v2.first()?.same.clone()));
            for direction in ["v2.payin", "v2.payout"] {
                fill_in(&mut access, direction, both.as_deref().unwrap_or("true"));
            }
            merchant.shops.insert(code, access);
        }
    }
    let settings = settings(&table, schema, folder).into_iter();
    // Currency codes are compared case-insensitively.
    let upper = |(path, value): (String, Setting)| match path.strip_prefix("balance.opening.") {
        Some(code) => (format!("balance.opening.{}", code.to_ascii_uppercase()), value),
        None => (path, value),
    };
    merchant.settings = settings.map(upper).collect();
    fill_in(&mut merchant.settings, "name", id);
    merchant
}

/// Reads a shop's file, and fills in the defaults that depend on its code and payment method.
fn shop_file(code: &str, table: &toml::Table, schema: &Json, folder: &Path) -> Settings {
    let mut shop = settings(table, schema, folder);
    fill_in(&mut shop, "name", code);
    if !shop.contains_key("payout.account.pattern") {
        let method = first_value(&shop, "payment_method").filter(|method| ["card", "mobile"].contains(method));
        let account = method.unwrap_or("any").to_owned();
        fill_in(&mut shop, "payout.account", &account);
    }
    shop
}

/// Reports whether a setting holds secrets.
pub(super) fn is_secret(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    name == "keys" || ["secret", "token", "password"].iter().any(|word| name.contains(word))
}

/// One value, in the form that is compared and in the form that is shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleEntry {
    pub(super) same: String,
    pub(super) shown: String,
}

/// The content of a setting: one value, or the entries of a list.
pub(super) type Setting = Vec<RuleEntry>;

/// The settings of a file or table, by dotted name.
pub(super) type Settings = BTreeMap<String, Setting>;

pub(super) fn first_value<'a>(settings: &'a Settings, path: &str) -> Option<&'a str> {
    settings.get(path)?.first().map(|entry| entry.same.as_str())
}

/// Reads the settings of a table and fills in the defaults of its JSON Schema.
fn settings(table: &toml::Table, schema: &Json, folder: &Path) -> Settings {
    let mut settings = Settings::new();
    for (name, value) in table {
        insert(&mut settings, name.clone(), value, folder);
    }
    defaults(&mut settings, "", schema, folder);
    let rate = |(path, value): (&String, &Setting)| Some((path.strip_suffix("per_second")?.to_owned(), value.clone()));
    let rates: Vec<(String, Setting)> = settings.iter().filter_map(rate).collect();
    for (rate, per_second) in rates {
        settings.entry(format!("{rate}burst")).or_insert(per_second);
    }
    settings
}

fn insert(settings: &mut Settings, path: String, value: &toml::Value, folder: &Path) {
    let text_of = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        toml::Value::Table(inner) => {
            for (name, value) in inner {
                insert(settings, format!("{path}.{name}"), value, folder);
            }
        }
        toml::Value::Array(elements) => {
            let texts: Vec<String> = elements.iter().map(text_of).collect();
            let networks: Option<Vec<IpNet>> = texts.iter().map(|text| network(text)).collect();
            // Aggregated, so that another spelling of the same networks is no change.
            let texts = match networks.filter(|_| ADDRESSES.contains(&path.as_str())) {
                Some(list) => IpNet::aggregate(&list).iter().map(network_text).collect(),
                None => texts,
            };
            let entries = texts.iter().map(|text| entry(&path, text, folder)).collect();
            settings.insert(path, entries);
        }
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => {
            let entries = vec![entry(&path, &text_of(value), folder)];
            settings.insert(path, entries);
        }
    }
}

/// Fills in a schema's defaults for absent settings.
fn defaults(settings: &mut Settings, prefix: &str, schema: &Json, folder: &Path) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let below = format!("{path}.");
        let is_set = settings.keys().any(|known| *known == path || known.starts_with(&below));
        // TOML has no null, so a key without a default is not added.
        if let Ok(default) = toml::Value::try_from(&schema["default"])
            && !is_set
        {
            insert(settings, path, &default, folder);
        }
        defaults(settings, &below, schema, folder);
    }
}

/// Fills in a default that the schema does not have.
fn fill_in(settings: &mut Settings, path: &str, text: &str) {
    settings.entry(path.into()).or_insert_with(|| vec![entry(path, text, Path::new(""))]);
}

/// Parses a network or a single address.
pub(super) fn network(text: &str) -> Option<IpNet> {
    let net = text.parse::<IpNet>().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()));
    net.map(canonical_prefix)
}

fn network_text(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

/// The settings that are lists of networks.
const ADDRESSES: [&str; 3] = ["allowed_ips", "checks.refused_addresses", "clients.trusted_proxies"];

/// Reads one value of the setting at `path`, normalised so that another spelling of the same value is no change.
pub(super) fn entry(path: &str, text: &str, folder: &Path) -> RuleEntry {
    let mut shown = if text.contains("://") { url(text) } else { plain(text) };
    let same = match path {
        "store.url" => match PostgresUrl::parse(text, |roots| folded(Path::new(roots))) {
            Ok(url) => {
                shown = plain(&url.to_string());
                let config = url.config();
                format!("{config:?} {:?} {:?} {:?}", config.get_password(), url.tls(), url.roots())
            }
            Err(_) => folded_text(text),
        },
        "server.public_url" | "engine.url" => text.trim_end_matches('/').to_owned(),
        "server.listen" | "admin.listen" => {
            let other = || text.strip_prefix("unix:").map_or_else(|| text.into(), folded_text);
            text.parse::<SocketAddr>().map_or_else(|_| other(), |at| at.to_string())
        }
        "signature.api_key"
        | "signature.signature"
        | "signature.timestamp"
        | "engine.callback_signature.header"
        | "admin.hosts"
        | "currency"
        | "pages.language" => text.to_ascii_lowercase(),
        "payin.schema" | "payout.schema" => text.strip_prefix("./").unwrap_or(text).to_owned(),
        "tls.certificate" | "tls.key" => folded_text(text),
        // Files of trusted certificates are compared by content, too.
        _ if path == "tls.client_ca" || path.ends_with("trust") => {
            let content = files::read_bounded(&folder.join(text), files::LARGEST_FILE).ok();
            format!("{} {:?}", folded_text(text), content.map(|bytes| files::content_hash(&bytes)))
        }
        _ if is_secret(path) => {
            if !text.starts_with("env:") && !text.starts_with("file:") {
                "a literal secret".clone_into(&mut shown);
            }
            text.to_owned()
        }
        _ if path.ends_with("amount_per_day") || path.starts_with("balance.opening.") => {
            Amount::from_decimal_string(text).map_or_else(|_| text.into(), |amount| amount.hundredths().to_string())
        }
        "name" | "pages.name" => text.to_owned(),
        _ => normalized_measure(text),
    };
    if path.starts_with("replies.") {
        "a template".clone_into(&mut shown);
    }
    RuleEntry { same, shown }
}

/// Normalises a duration to milliseconds and a size to bytes; returns any other text unchanged.
fn normalized_measure(text: &str) -> String {
    let size = |unit: &str, bytes: u128| Some(text.strip_suffix(unit)?.parse::<u128>().ok()? * bytes);
    let span = read_span(text).map(|span| span.as_millis());
    let measure = span.or_else(|| size("KiB", 1 << 10)).or_else(|| size("MiB", 1 << 20)).or_else(|| size("B", 1));
    measure.map_or_else(|| text.to_owned(), |measure| measure.to_string())
}

fn folded_text(text: &str) -> String {
    let scheme = if text.starts_with("sqlite:") { "sqlite:" } else { "" };
    format!("{scheme}{}", folded(Path::new(&text[scheme.len()..])).display())
}

/// Escapes control characters in an operator's text, and truncates it.
pub(super) fn plain(text: &str) -> String {
    // Quotes and backslashes are harmless and frequent in patterns.
    let escaped = |c: char| if "\"'\\".contains(c) { c.to_string() } else { c.escape_debug().collect() };
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).map(escaped).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Shows a URL without its credentials and query, which may be secret.
fn url(text: &str) -> String {
    let (before, query) = match text.find(['?', '#']) {
        // The text before it could be a host or the start of a password.
        Some(at) if text[at..].contains('@') => (text.split_once("://").map_or("", |(scheme, _)| scheme), "://***"),
        Some(at) => (&text[..at], "?***"),
        None => (text, ""),
    };
    match before.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
        Some((scheme, Some((_, host)))) => plain(&format!("{scheme}://***@{host}")) + query,
        _ => plain(before) + query,
    }
}

/// Schema keywords that do not affect validation.
const ANNOTATIONS: [&str; 9] =
    ["$schema", "$id", "$comment", "title", "description", "examples", "deprecated", "readOnly", "writeOnly"];

/// Removes annotations and sorts `required`, in a schema and in those of its properties.
fn plain_schema(mut schema: Json) -> Json {
    if let Json::Object(keywords) = &mut schema {
        keywords.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
        if let Some(Json::Array(required)) = keywords.get_mut("required") {
            required.sort_by_key(ToString::to_string);
        }
        keywords.retain(|name, value| name != "required" || *value != Json::Array(Vec::new()));
        if let Some(Json::Object(properties)) = keywords.get_mut("properties") {
            for property in properties.values_mut() {
                *property = plain_schema(std::mem::take(property));
            }
        }
    }
    schema
}

/// Collects the lists of allowed values that a schema names.
fn named_lists<'a>(schema: &'a Json, lists: &mut BTreeSet<&'a str>) {
    match schema {
        Json::Object(members) => {
            lists.extend(members.get(ALLOWED_LIST).and_then(Json::as_str));
            members.values().for_each(|value| named_lists(value, lists));
        }
        Json::Array(elements) => elements.iter().for_each(|element| named_lists(element, lists)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_credentials() {
        for (text, shown) in [
            ("https://a.example/x", "https://a.example/x"),
            ("https://u:p@a.example/x", "https://***@a.example/x"),
            ("https://a.example/x?token=abc#d", "https://a.example/x?***"),
            ("https://a.example/x#abc", "https://a.example/x?***"),
            ("https://u:p?w@a.example/x", "https://***"),
            ("https://a/\u{7}", "https://a/\\u{7}"),
        ] {
            assert_eq!(url(text), shown);
        }
    }
}
