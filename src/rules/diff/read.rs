//! A rules directory as it is compared: what its files say, key by key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustls::pki_types::CertificateDer;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Key};
use super::lists as list_changes;
use super::schema::Schema;
use super::settings::{Settings, Value};
use crate::domain::{Direction, UnixMillis};
use crate::rules::compile::{BUILT_IN_DIALECT, lists};
use crate::rules::files::{self, Role, RuleFiles};
use crate::rules::load::{compile_once, whole};
use crate::rules::problems::Findings;
use crate::rules::{EngineRules, LoadOptions, Problem, Problems, ProviderRules, RuleSet};

/// A merchant's file.
pub(super) struct MerchantFile {
    pub settings: Settings,
    /// By key, in the file's order.
    pub api_keys: Vec<(String, Settings)>,
    /// By code.
    pub shops: BTreeMap<String, Settings>,
}

/// A rules directory without problems, ready to be compared with another one. Secrets are not looked up.
pub struct ReadRules {
    pub(super) rules: RuleSet,
    pub(super) gateway: Settings,
    pub(super) merchants: BTreeMap<String, MerchantFile>,
    pub(super) shops: BTreeMap<String, Settings>,
    /// The schemas by the names of their files.
    pub(super) schemas: BTreeMap<String, Json>,
    pub(super) dialects: BTreeMap<String, Settings>,
    /// The values of lists, by merchant (none: everybody's) and name.
    pub(super) lists: BTreeMap<(Option<String>, String), BTreeSet<String>>,
    /// The sides of shops whose schemas name a list, by its name.
    pub(super) list_users: BTreeMap<String, BTreeSet<(String, &'static str)>>,
    client_ca: Option<Vec<u8>>,
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
        let rules = whole(directory, rules, findings)?;
        Ok(Self::of(rules, &files))
    }

    /// What is no reason to refuse the rules, and would fail requests.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.rules.warnings
    }

    fn of(rules: RuleSet, files: &RuleFiles) -> Self {
        let mut read = Self {
            client_ca: client_ca(&rules),
            rules,
            gateway: Settings::default(),
            merchants: BTreeMap::new(),
            shops: BTreeMap::new(),
            schemas: BTreeMap::new(),
            dialects: BTreeMap::new(),
            lists: BTreeMap::new(),
            list_users: BTreeMap::new(),
        };
        for (role, file) in files {
            read.take(role, &file.text);
        }
        // It is there without its file, too.
        read.dialects.entry(BUILT_IN_DIALECT.into()).or_insert_with(|| settings("", keys::DIALECT));
        read.list_users = read.users_of_lists();
        read
    }

    fn users_of_lists(&self) -> BTreeMap<String, BTreeSet<(String, &'static str)>> {
        let lists = |schema: &Json| {
            let mut lists = BTreeSet::new();
            list_changes::named(schema, &mut lists);
            lists
        };
        let by_schema: BTreeMap<&str, BTreeSet<String>> =
            self.schemas.iter().map(|(name, schema)| (name.as_str(), lists(schema))).collect();
        let mut users: BTreeMap<String, BTreeSet<(String, &'static str)>> = BTreeMap::new();
        for (code, shop) in &self.shops {
            for (direction, key) in [("payin", "payin.schema"), ("payout", "payout.schema")] {
                let named = shop.word(key).and_then(|schema| by_schema.get(schema));
                for list in named.into_iter().flatten() {
                    users.entry(list.clone()).or_default().insert((code.clone(), direction));
                }
            }
        }
        users
    }

    fn take(&mut self, role: &Role, text: &str) {
        match role {
            Role::Gateway => self.gateway = settings(text, keys::GATEWAY),
            Role::Dialect(name) => {
                self.dialects.insert(name.clone(), settings(text, keys::DIALECT));
            }
            Role::Merchant(id) => {
                self.merchants.insert(id.clone(), merchant(id, text));
            }
            Role::Shop(code) => {
                self.shops.insert(code.clone(), shop(code, text));
            }
            Role::Schema(name) => {
                // One that no shop names may be anything.
                if let Ok(schema) = serde_json::from_str(text) {
                    self.schemas.insert(name.clone(), schema);
                }
            }
            Role::List { merchant, name } => {
                let values = lists::values(text).into_iter().map(String::from).collect();
                self.lists.insert((merchant.clone(), name.clone()), values);
            }
            // Compared by what they were compiled to.
            Role::PageTexts(_) => {}
        }
    }

    /// The schema that a shop names for a direction.
    pub(super) fn schema(&self, code: &str, direction: Direction) -> Option<Schema<'_>> {
        let name = self.shops.get(code)?.word(&format!("{direction}.schema"))?;
        let compiled = self.rules.shops.get(code)?.side(direction).schema.as_ref()?;
        Some(Schema { written: self.schemas.get(name)?, compiled })
    }

    /// What is trusted beside the system's roots, where the engine is a remote one.
    pub(super) fn engine_trust(&self) -> Vec<Vec<u8>> {
        match &self.rules.gateway.engine {
            EngineRules::Remote(engine) => bytes(&engine.trust),
            EngineRules::Embedded => Vec::new(),
        }
    }

    /// What callback targets are trusted by.
    pub(super) fn callback_trust(&self) -> Vec<Vec<u8>> {
        bytes(&self.rules.gateway.callbacks.trust)
    }

    /// What a shop's provider is trusted by.
    pub(super) fn provider_trust(&self, code: &str) -> Vec<Vec<u8>> {
        match self.rules.shops.get(code).map(|shop| &shop.provider) {
            Some(ProviderRules::Http(provider)) => bytes(&provider.trust),
            _ => Vec::new(),
        }
    }

    /// The bytes of the file that `tls.client_ca` names.
    pub(super) fn client_ca(&self) -> Option<&[u8]> {
        self.client_ca.as_deref()
    }

    /// The merchants that have a shop, sorted.
    pub(super) fn merchants_of<'a>(&'a self, code: &'a str) -> impl Iterator<Item = &'a str> {
        self.merchants.iter().filter(move |(_, file)| file.shops.contains_key(code)).map(|(id, _)| id.as_str())
    }

    /// The merchants that speak a dialect, sorted.
    pub(super) fn speakers<'a>(&'a self, dialect: &'a str) -> impl Iterator<Item = &'a str> {
        let speaks = move |file: &MerchantFile| file.settings.word("v1.dialect") == Some(dialect);
        self.merchants.iter().filter(move |(_, file)| speaks(file)).map(|(id, _)| id.as_str())
    }

    /// Whose an API key is.
    pub(super) fn owner(&self, key: &str) -> Option<&str> {
        self.rules.api_key(key).map(|entry| entry.merchant.id.as_str())
    }
}

fn bytes(certificates: &[CertificateDer<'_>]) -> Vec<Vec<u8>> {
    certificates.iter().map(|certificate| certificate.to_vec()).collect()
}

/// What the file holds that the snapshot knows by its path alone.
fn client_ca(rules: &RuleSet) -> Option<Vec<u8>> {
    let path = rules.gateway.tls.client_ca.as_deref()?;
    Some(files::read_bounded(path, files::LARGEST_FILE).unwrap_or_default())
}

/// Reads a file that was found right.
fn table<T>(text: &str, take: impl FnOnce(&DeTable<'_>) -> T) -> Option<T> {
    DeTable::parse(text).ok().map(|table| take(table.get_ref()))
}

fn settings(text: &str, keys: &[Key]) -> Settings {
    table(text, |table| Settings::of(table, keys)).unwrap_or_default()
}

fn merchant(id: &str, text: &str) -> MerchantFile {
    let read = table(text, |table| {
        let mut settings = Settings::of(table, keys::MERCHANT);
        settings.fill("name", Value::text(id));
        MerchantFile { settings, api_keys: api_keys(table), shops: shop_access(table) }
    });
    read.unwrap_or_else(|| MerchantFile { settings: Settings::default(), api_keys: Vec::new(), shops: BTreeMap::new() })
}

fn api_keys(table: &DeTable<'_>) -> Vec<(String, Settings)> {
    let entries = table.get("api_keys").and_then(|entries| entries.get_ref().as_array());
    let read = |entry: &DeTable<'_>| {
        let name = entry.get("key")?.get_ref().as_str()?.to_owned();
        Some((name, Settings::of(entry, keys::API_KEY)))
    };
    entries.into_iter().flatten().filter_map(|entry| read(entry.get_ref().as_table()?)).collect()
}

fn shop_access(table: &DeTable<'_>) -> BTreeMap<String, Settings> {
    let shops = table.get("shops").and_then(|shops| shops.get_ref().as_table());
    let read = |(code, access): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let code: &toml::de::DeString<'_> = code.get_ref();
        Some((code.to_string(), Settings::of(access.get_ref().as_table()?, keys::SHOP_ACCESS)))
    };
    shops.into_iter().flatten().filter_map(read).collect()
}

/// A shop's file; what it leaves to its code, to its payment method and to its kind of provider is filled in.
fn shop(code: &str, text: &str) -> Settings {
    let mut settings = settings(text, keys::SHOP);
    settings.fill("name", Value::text(code));
    let by_method = match settings.word("payment_method") {
        Some(method @ ("card" | "mobile")) => method.to_owned(),
        _ => "any".to_owned(),
    };
    settings.fill("payout.account", Value::text(&by_method));
    let http = settings.word("provider.kind") == Some("http");
    let sandbox = |path: &str| path == "provider.delay";
    settings.drop_where(|path| match path {
        "provider.kind" => false,
        path if path.starts_with("provider.") => http == sandbox(path),
        _ => false,
    });
    for direction in ["payin", "payout"] {
        let path = format!("{direction}.schema");
        if let Some(name) = settings.word(&path).and_then(|name| name.strip_prefix("./")) {
            let name = Value::text(name);
            settings.drop_where(|other| other == path);
            settings.fill(&path, name);
        }
    }
    settings
}
