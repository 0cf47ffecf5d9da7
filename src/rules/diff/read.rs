//! Reads a rules directory as settings, for comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;

use super::schemas::{SIDES, named_lists, plain_schema};
use crate::domain::UnixMillis;
use crate::rules::compile::{BUILT_IN_DIALECT, FileSettings, RawDialect, lists};
use crate::rules::files::{self, FileRole};
use crate::rules::load::{compile_once, finish};
use crate::rules::problems::Diagnostics;
use crate::rules::setting::Settings;
use crate::rules::{LoadOptions, Problem, Problems, RuleSet, raw};

/// The settings of a valid rules directory, for comparison with another one. Secrets are not fetched.
pub struct ReadRules {
    pub(super) rules: RuleSet,
    pub(super) gateway: Settings,
    pub(super) merchants: BTreeMap<String, Settings>,
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
        let (options, mut settings) = (LoadOptions { check_secrets: false }, FileSettings::new());
        let rules = compile_once(directory, &files, now, options, Some(&mut settings), &mut diagnostics);
        let mut read = Self {
            rules: finish(directory, rules, diagnostics)?,
            gateway: Settings::default(),
            merchants: BTreeMap::new(),
            shops: BTreeMap::new(),
            schemas: BTreeMap::new(),
            dialects: BTreeMap::new(),
            lists: BTreeMap::new(),
            list_users: BTreeMap::new(),
        };
        for (role, file) in &files {
            read.add(role, &file.text, settings.remove(&file.path).unwrap_or_default());
        }
        // The built-in dialect exists without a file, too.
        let built_in = || raw::settings::<RawDialect>(None, directory);
        read.dialects.entry(BUILT_IN_DIALECT.into()).or_insert_with(built_in);
        read.list_users = read.found_list_users();
        Ok(read)
    }

    fn found_list_users(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for code in self.shops.keys() {
            for (_, schema) in SIDES.iter().filter_map(|(key, _)| self.schema(code, key)) {
                let mut lists = BTreeSet::new();
                named_lists(schema, &mut lists);
                for list in lists {
                    users.entry(list.to_owned()).or_default().insert(code.clone());
                }
            }
        }
        users
    }

    /// Adds a file, with its settings if it is in TOML.
    fn add(&mut self, role: &FileRole, text: &str, settings: Settings) {
        let text = text.trim_start_matches('\u{feff}');
        match role {
            FileRole::Gateway => self.gateway = settings,
            FileRole::Dialect(name) => drop(self.dialects.insert(name.clone(), settings)),
            FileRole::Merchant(id) => drop(self.merchants.insert(id.clone(), settings)),
            FileRole::Shop(code) => drop(self.shops.insert(code.clone(), settings)),
            FileRole::Schema(name) => {
                // A schema that no shop names is not checked and may be invalid.
                let schema = serde_json::from_str(text).ok();
                self.schemas.extend(schema.map(|schema| (name.clone(), plain_schema(schema))));
            }
            FileRole::List { merchant, name } => {
                let values = lists::values(text).into_iter().map(String::from).collect();
                self.lists.insert((merchant.clone(), name.clone()), values);
            }
            // Pages are compared in compiled form.
            FileRole::PageTexts(_) => {}
        }
    }

    /// Returns the warnings.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.rules.warnings
    }

    /// Returns the ids of the merchants whose files match.
    pub(super) fn merchants(&self, matches: impl Fn(&Settings) -> bool) -> impl Iterator<Item = &String> {
        self.merchants.iter().filter(move |(_, file)| matches(file)).map(|(id, _)| id)
    }

    /// Returns the merchant of an API key.
    pub(super) fn owner(&self, key: &str) -> Option<&str> {
        self.rules.api_key(key).map(|entry| entry.merchant.id.as_str())
    }

    /// Returns the file name and the content of the schema of a shop's direction.
    pub(super) fn schema(&self, code: &str, key: &str) -> Option<(&str, &Json)> {
        let name = self.shops.get(code)?.first(key)?;
        Some((name, self.schemas.get(name)?))
    }

    /// Returns the shops whose schemas name a list, in either directory.
    pub(super) fn users<'a>(&'a self, other: &'a Self, list: &str) -> BTreeSet<&'a String> {
        let users = |read: &'a Self| read.list_users.get(list).into_iter().flatten();
        users(self).chain(users(other)).collect()
    }
}
