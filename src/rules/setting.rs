//! Settings: the values of a rule file's keys, in a form that is compared and one that is shown, and what the change
//! of a key means. [`OnChange`] is declared with the key, in its table (`raw_table`).
//!
//! Settings are as written, with defaults filled in, and not as compiled: secrets are not fetched, and paths are
//! relative to directories that differ.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::GatewayRules;

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

/// How the effect of a change is found.
#[derive(Debug, Clone, Copy)]
pub(super) enum EffectRule {
    /// Always this effect.
    Always(Effect),
    /// A larger number allows more; no number means no bound.
    More,
    /// A value where there was none allows more; any other change refuses.
    Opens,
    /// The first effect when the new value is this word, the second one otherwise.
    When(&'static str, Effect, Effect),
    /// For a list: the effects of an added and of a removed entry.
    Entries(Effect, Effect),
    /// For secrets: what the first one, and the removal of the last one, mean. Never shows a secret.
    Secret {
        /// Where there was none.
        first: (Effect, &'static str),
        /// Where none is left.
        last: (Effect, &'static str),
    },
    /// The key names the element of a list of tables: another name is another element.
    Name,
}

/// What the change of a key means.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnChange {
    /// How its effect is found.
    pub rule: EffectRule,
    /// An explanation where the values alone are not clear; empty for none.
    pub meaning: &'static str,
    /// How an absent value is shown.
    pub absent: &'static str,
    /// The explanation of a change that does not show in the values, and has no effect on callers.
    pub unseen: Option<&'static str>,
    /// Reads a value for comparison, from its text and the directory of its file. `None`: as its type does.
    pub entry: Option<fn(&str, &Path) -> SettingEntry>,
    /// Whether upper and lower case are the same.
    pub in_any_case: bool,
    /// Returns the value of an absent key, where it depends on the settings read so far or on the file's name.
    pub otherwise: Option<fn(&Settings, &SettingPlace<'_>) -> Option<String>>,
    /// For a key that only a restart changes: its value in the compiled rules.
    pub restart: Option<RestartValue>,
    /// Whether the key counts in [`Merchant::rules_fingerprint`](super::Merchant::rules_fingerprint).
    pub checks_creates: bool,
}

impl OnChange {
    /// Describes a key whose change has always this effect.
    pub(super) const fn always(effect: Effect) -> Self {
        Self::by(EffectRule::Always(effect))
    }

    /// Describes a number: a larger one allows more, and none is no bound.
    pub(super) const fn more() -> Self {
        Self::by(EffectRule::More)
    }

    /// Describes a key that allows more where it is added; any other change refuses.
    pub(super) const fn opens() -> Self {
        Self::by(EffectRule::Opens)
    }

    /// Describes a key whose change to `word` has one effect, and any other change another one.
    pub(super) const fn when(word: &'static str, then: Effect, otherwise: Effect) -> Self {
        Self::by(EffectRule::When(word, then, otherwise))
    }

    /// Describes a list, by the effects of an added and of a removed entry.
    pub(super) const fn entries(added: Effect, removed: Effect) -> Self {
        Self::by(EffectRule::Entries(added, removed))
    }

    /// Describes the key that names an element of a list of tables: another name is another element.
    pub(super) const fn name() -> Self {
        Self::by(EffectRule::Name)
    }

    /// Describes a secret whose first and last value have no meaning of their own.
    pub(super) const fn secret() -> Self {
        Self::secret_with((Effect::Allows, ""), (Effect::TakesAway, ""))
    }

    /// Describes a secret, by what its first value and the removal of the last one mean.
    pub(super) const fn secret_with(first: (Effect, &'static str), last: (Effect, &'static str)) -> Self {
        Self::by(EffectRule::Secret { first, last })
    }

    const fn by(rule: EffectRule) -> Self {
        Self {
            rule,
            meaning: "",
            absent: "none",
            unseen: None,
            entry: None,
            in_any_case: false,
            otherwise: None,
            restart: None,
            checks_creates: true,
        }
    }

    /// Explains a change.
    pub(super) const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// Names what an absent value stands for.
    pub(super) const fn absent(self, absent: &'static str) -> Self {
        Self { absent, ..self }
    }

    /// Explains a change that does not show in the values.
    pub(super) const fn unseen(self, unseen: &'static str) -> Self {
        Self { unseen: Some(unseen), ..self }
    }

    /// Reads values with `entry`.
    pub(super) const fn read_by(self, entry: fn(&str, &Path) -> SettingEntry) -> Self {
        Self { entry: Some(entry), ..self }
    }

    /// Takes upper and lower case for the same.
    pub(super) const fn in_any_case(self) -> Self {
        Self { in_any_case: true, ..self }
    }

    /// Takes the value of an absent key from `otherwise`.
    pub(super) const fn or_else(self, otherwise: fn(&Settings, &SettingPlace<'_>) -> Option<String>) -> Self {
        Self { otherwise: Some(otherwise), ..self }
    }

    /// Lets a change wait for a restart.
    pub(super) const fn restart(self, value: RestartValue) -> Self {
        Self { restart: Some(value), ..self }
    }

    /// Leaves the key out of the fingerprint of what v1 creates are checked by.
    pub(super) const fn checks_no_create(self) -> Self {
        Self { checks_creates: false, ..self }
    }
}

/// The value, in the compiled rules, of a key that only a restart changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RestartValue {
    /// Reports whether the running and the new rules have the same value.
    pub is_same: fn(&GatewayRules, &GatewayRules) -> bool,
    /// Copies the value to the new rules, from the running ones.
    pub keep: fn(&mut GatewayRules, &GatewayRules),
}

/// Makes the [`RestartValue`] of a field of the compiled rules. Its values are compared by the function given, or by `==`.
macro_rules! restart_value {
    ($($field:ident).+) => { restart_value!($($field).+, |running, new| running.$($field).+ == new.$($field).+) };
    ($($field:ident).+, $is_same:expr) => {
        $crate::rules::setting::RestartValue {
            is_same: $is_same,
            keep: |new, running| new.$($field).+.clone_from(&running.$($field).+),
        }
    };
}
pub(super) use restart_value;

/// A key of a table, as declared.
pub(super) struct DeclaredKey {
    /// Its name.
    pub name: &'static str,
    /// Its default, as TOML writes it.
    pub default: Option<&'static str>,
    /// What its change means; `None`: what a change of its table means.
    pub on_change: Option<OnChange>,
    /// Returns the keys of the table that is its value; none for other values.
    pub keys: fn() -> Vec<Self>,
    /// Adds the settings of its value.
    pub settings: fn(Option<&DeValue<'_>>, &SettingPlace<'_>, &mut Settings),
}

/// The place of a setting while a file is read.
pub(super) struct SettingPlace<'a> {
    /// The keys from the top of the file, joined by dots.
    path: String,
    /// What its change means.
    on_change: OnChange,
    /// The path of the file.
    file: &'a Path,
}

impl<'a> SettingPlace<'a> {
    /// Returns the top of a file, or of a table that is compared on its own.
    pub(super) const fn top(file: &'a Path) -> Self {
        Self { path: String::new(), on_change: OnChange::always(Effect::Refuses), file }
    }

    /// Returns the place of a key below this one.
    pub(super) fn below(&self, name: &str, declared: Option<OnChange>) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{name}", self.path);
        Self { path, on_change: declared.unwrap_or(self.on_change), file: self.file }
    }

    /// Returns the dotted name of another key of the same table.
    pub(super) fn beside(&self, name: &str) -> String {
        let table = self.path.rsplit_once('.').map(|(table, _)| table);
        table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"))
    }

    /// Returns the file's name without its ending: the id of a merchant, or the code of a shop.
    pub(super) fn file_stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the place of an entry whose name the operator chose.
    pub(super) fn named(&self, name: &str) -> Self {
        if self.on_change.in_any_case { self.below(&name.to_ascii_uppercase(), None) } else { self.below(name, None) }
    }
}

/// One value, in the form that is compared and in the form that is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SettingEntry {
    /// Equal for all spellings of the same value.
    pub same: String,
    /// Without secrets and control characters.
    pub shown: String,
}

impl SettingEntry {
    /// Returns a value that has one spelling.
    pub(super) fn new(text: &str) -> Self {
        Self::spelled(text, text.to_owned())
    }

    /// Returns a value that has several spellings: `same` is the one that is compared.
    pub(super) fn spelled(text: &str, same: String) -> Self {
        Self { same, shown: if text.contains("://") { url(text) } else { plain(text) } }
    }
}

/// The content of a setting: one value, or the entries of a list.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The values.
    pub entries: Vec<SettingEntry>,
    /// What its change means.
    pub on_change: OnChange,
}

/// The settings of a file or a table.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// By dotted name.
    pub values: BTreeMap<String, Setting>,
    /// The tables of lists, by the list's dotted name: each with its name, in the file's order.
    tables: BTreeMap<String, Vec<(String, Self)>>,
}

impl Settings {
    /// Returns the first value of a setting, in the form that is compared.
    pub(super) fn first(&self, path: &str) -> Option<&str> {
        self.values.get(path)?.entries.first().map(|entry| entry.same.as_str())
    }

    /// Returns the tables of a list, in the file's order.
    pub(super) fn tables(&self, path: &str) -> &[(String, Self)] {
        self.tables.get(path).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of the tables of a list.
    pub(super) fn names(&self, path: &str) -> impl Iterator<Item = &String> {
        self.tables(path).iter().map(|(name, _)| name)
    }

    /// Returns a table of a list.
    pub(super) fn table(&self, path: &str, name: &str) -> Option<&Self> {
        self.tables(path).iter().find(|(known, _)| known == name).map(|(_, settings)| settings)
    }

    /// Adds a table, with the defaults of the keys that it does not have.
    pub(super) fn add_table(&mut self, keys: &[DeclaredKey], table: Option<&DeTable<'_>>, at: &SettingPlace<'_>) {
        for key in keys.iter().filter(|key| !key.is_name()) {
            let default = key.default.and_then(|written| DeValue::parse(written).ok());
            let value = table.and_then(|table| table.get(key.name)).or(default.as_ref()).map(Spanned::get_ref);
            (key.settings)(value, &at.below(key.name, key.on_change), self);
        }
    }

    /// Adds a table of a list, with a name.
    pub(super) fn add_to_list(
        &mut self,
        at: &SettingPlace<'_>,
        name: &str,
        add: impl FnOnce(&SettingPlace<'_>, &mut Self),
    ) {
        let mut settings = Self::default();
        add(&SettingPlace::top(at.file), &mut settings);
        self.tables.entry(at.path.clone()).or_default().push((name.to_owned(), settings));
    }

    /// Adds a value that `entry` reads: a single one, a list of values, or a table whose keys are not declared.
    pub(super) fn add(&mut self, value: &DeValue<'_>, at: &SettingPlace<'_>, entry: fn(&str) -> SettingEntry) {
        match value {
            DeValue::Table(table) => {
                for (name, value) in table {
                    self.add(value.get_ref(), &at.below(name.get_ref(), None), entry);
                }
            }
            DeValue::Array(_)
            | DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => self.add_texts(texts(value), at, entry),
        }
    }

    /// Adds the value that an absent key has, where its declaration states one.
    pub(super) fn add_absent(&mut self, at: &SettingPlace<'_>, entry: fn(&str) -> SettingEntry) {
        if let Some(text) = at.on_change.otherwise.and_then(|otherwise| otherwise(self, at)) {
            self.add_texts(vec![text], at, entry);
        }
    }

    /// Adds the values with these texts.
    pub(super) fn add_texts(&mut self, texts: Vec<String>, at: &SettingPlace<'_>, entry: fn(&str) -> SettingEntry) {
        let folder = at.file.parent().unwrap_or(Path::new(""));
        let read = |text: String| {
            let mut read = at.on_change.entry.map_or_else(|| entry(&text), |read| read(&text, folder));
            if at.on_change.in_any_case {
                read.same.make_ascii_lowercase();
            }
            read
        };
        let entries = texts.into_iter().map(read).collect();
        self.values.insert(at.path.clone(), Setting { entries, on_change: at.on_change });
    }
}

impl DeclaredKey {
    /// Reports whether the key names the element of a list of tables.
    pub(super) fn is_name(&self) -> bool {
        self.on_change.is_some_and(|on_change| matches!(on_change.rule, EffectRule::Name))
    }
}

/// Returns the texts of a value: those of a list's elements, or its own.
pub(super) fn texts(value: &DeValue<'_>) -> Vec<String> {
    match value {
        DeValue::Array(elements) => elements.iter().flat_map(|element| texts(element.get_ref())).collect(),
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            vec![read.map_or_else(|_| number.to_string(), |number| number.to_string())]
        }
        DeValue::Float(number) => {
            let read = number.as_str().parse::<f64>();
            vec![read.map_or_else(|_| number.to_string(), |number| toml::Value::Float(number).to_string())]
        }
        DeValue::Boolean(flag) => vec![flag.to_string()],
        DeValue::Datetime(time) => vec![time.to_string()],
        DeValue::Table(_) => Vec::new(),
    }
}

/// The longest part of a value that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 120;

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
