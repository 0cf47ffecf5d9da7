//! Reads rule files. Each table is one declaration ([`raw_table`]), which defines how it is read, its defaults and its
//! JSON Schema.
//!
//! Reading never stops at a problem: every wrong key is added to the diagnostics, so that one run shows them all. What
//! the values mean together is checked in `compile`, where the tables are declared.

mod leaf;
mod list;
mod schema;
mod secret;
mod syntax;
#[cfg(test)]
mod tests;
mod variable;
mod words;

use std::fmt;
use std::ops::Deref;
use std::path::Path;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use leaf::duration;
pub(super) use leaf::{
    BoundedDuration, CURRENCY, Cidr, Date, DisplayName, FieldName, LANGUAGE_TAG, NAME, RouteKey, Size, Visible,
    WEB_URL, WholeSeconds, is_readable, network,
};
pub(super) use list::{Entries, List};
pub(super) use schema::{Absent, SchemaTable, add};
pub(super) use secret::RawSecrets;
pub(super) use syntax::parse;
pub(super) use variable::{OrVariable, read_variable};
pub(super) use words::{from_words, word};

use super::problems::{Diagnostics, FileId, Span, names_a_secret};
use super::setting::{DeclaredKey, OnChange, SettingEntry, SettingPlace, Settings};
use crate::names::{did_you_mean, meant, quoted};

/// Top-level keys of merchants' and shops' files, which are easily added below a table by mistake.
const TOP_KEYS: &[&str] = &["active", "currency", "default_shop", "name", "payment_method"];

/// The value of a key without a default.
#[derive(Debug, Clone, Default)]
pub(super) enum Field<T> {
    /// The file does not have the key.
    #[default]
    Absent,
    /// The file has another value; the problem is noted.
    Wrong,
    /// The value, with its place in the file.
    Given(Spanned<T>),
}

impl<T> Field<T> {
    /// Returns the value with its place, if there is one.
    pub(super) const fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Returns the value, if there is one.
    pub(super) fn get(&self) -> Option<&T> {
        self.given().map(Spanned::get_ref)
    }

    /// Returns the place of the value, if there is one.
    pub(super) fn place(&self) -> Option<Span> {
        self.given().map(Spanned::span)
    }

    /// Reports whether the file does not have the key.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Reports whether the file has another value; the problem is noted.
    pub(super) const fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong)
    }
}

impl<T: FromToml> Field<T> {
    pub(super) fn read(&mut self, name: &str, value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) {
        let read = reader.under(name, |reader| T::from_toml(value, reader));
        *self = read.map_or(Self::Wrong, |parsed| Self::Given(Spanned::new(value.span(), parsed)));
    }
}

/// The value of a key with a default, which is used where the key is absent or wrong.
#[derive(Debug, Clone)]
pub(super) struct Key<T> {
    value: T,
    /// Whether the file has another value; the problem is noted.
    pub is_wrong: bool,
    place: Option<Span>,
}

impl<T> Key<T> {
    pub(super) const fn absent(default: T) -> Self {
        Self { value: default, is_wrong: false, place: None }
    }

    /// Returns the place of the value, if the file has the key.
    pub(super) fn place(&self) -> Option<Span> {
        self.place.clone()
    }

    /// Reports whether the file does not have the key.
    pub(super) const fn is_absent(&self) -> bool {
        self.place.is_none() && !self.is_wrong
    }

    /// Returns the value with its place; for a default, that is the start of the file.
    pub(super) fn spanned(&self) -> Spanned<&T> {
        Spanned::new(self.place().unwrap_or_default(), &self.value)
    }

    /// Returns the value with its place, if the file has the key.
    pub(super) fn given(&self) -> Option<Spanned<&T>> {
        Some(Spanned::new(self.place()?, &self.value))
    }
}

impl<T: FromToml> Key<T> {
    pub(super) fn read(&mut self, name: &str, value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) {
        match reader.under(name, |reader| T::from_toml(value, reader)) {
            Some(parsed) => *self = Self { value: parsed, is_wrong: false, place: Some(value.span()) },
            None => self.is_wrong = true,
        }
    }
}

impl<T> Deref for Key<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A type that is read from a TOML value and described by a JSON Schema.
pub(super) trait FromToml: Sized {
    /// Reads a value; notes problems in `reader`.
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self>;

    /// Returns the JSON Schema of a value. It may accept more than [`Self::from_toml`] does, never less: an editor must
    /// not mark a correct value as wrong.
    fn schema() -> Value;

    /// Returns the keys of a table; none for a value of another kind.
    fn keys() -> Vec<DeclaredKey> {
        Vec::new()
    }

    /// Returns what the change of a key of this type means, where the key's declaration does not state it. `None`: what
    /// a change of its table means.
    fn on_change() -> Option<OnChange> {
        None
    }

    /// Reads the text of a value for comparison with another one.
    fn entry(text: &str) -> SettingEntry {
        SettingEntry::new(text)
    }

    /// Returns the texts of a list in one spelling.
    fn united(texts: Vec<String>) -> Vec<String> {
        texts
    }

    /// Adds the settings of a value, or of an absent one.
    fn settings(value: Option<&DeValue<'_>>, at: &SettingPlace<'_>, settings: &mut Settings) {
        match value {
            Some(value) => settings.add(value, at, Self::entry),
            None => settings.add_absent(at, Self::entry),
        }
    }
}

/// The longest value, in bytes, to which a correction is suggested.
const LONGEST_SUGGESTED: usize = 80;

/// Reads one file and notes its problems.
pub(super) struct RawReader<'a> {
    diagnostics: &'a mut Diagnostics,
    file: FileId,
    /// The keys above the value that is being read.
    path: Vec<String>,
}

impl RawReader<'_> {
    /// Notes that the value being read is wrong; `reason` follows the key's name: "must be ...".
    pub(super) fn wrong(&mut self, span: Span, reason: impl fmt::Display) {
        self.wrong_with(span, reason, None);
    }

    /// Notes that the value being read is wrong, with a suggestion.
    pub(super) fn wrong_with(&mut self, span: Span, reason: impl fmt::Display, suggestion: Option<String>) {
        let message = format!("{} {reason}", quoted(&self.path.concat()));
        self.diagnostics.add_with(self.file, span, message, suggestion);
    }

    /// Calls `read` for a value below `key`.
    pub(super) fn under<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.at(format!("{dot}{key}"), read)
    }

    fn at<T>(&mut self, step: String, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    /// Returns the value as a table, or notes that it is none.
    pub(super) fn table<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            if value.get_ref().is_str() || value.get_ref().is_array() {
                // It may be the secret of this table.
                self.diagnostics.hide_value(self.file, value);
            }
            self.wrong(value.span(), format_args!("must be a table, not {}", kind(value.get_ref())));
        }
        table
    }

    /// Returns the value as a string, or notes that it is none.
    pub(super) fn text<'v>(&mut self, value: &'v Spanned<DeValue<'_>>, expected: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(value.span(), format_args!("must be {expected}, not {}", kind(value.get_ref())));
        }
        text
    }

    /// Returns the value as a boolean, or notes that it is none.
    pub(super) fn flag(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<bool> {
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            let quoted = value.get_ref().as_str().filter(|text| ["true", "false"].contains(text));
            let suggestion = quoted.map(|text| format!("write `{text}`, without quotation marks"));
            if value.get_ref().is_array() || value.get_ref().as_str().is_some_and(|text| text.len() > "false".len()) {
                // `v2` may stand for `v2_secret`.
                self.diagnostics.hide_value(self.file, value);
            }
            self.wrong_with(
                value.span(),
                format_args!("must be {expected}, not {}", kind(value.get_ref())),
                suggestion,
            );
        }
        flag
    }

    /// Parses a string, or notes that it must be `expected`.
    pub(super) fn parsed<T>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(value, expected)?;
        let parsed = parse(text);
        if parsed.is_none() {
            // White space and upper case are the most common mistakes. Of a long text a part alone could be shown, and
            // would be no help.
            let normalized: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
            let is_short = text.len() <= LONGEST_SUGGESTED;
            let suggestion = parse(&normalized).filter(|_| is_short).map(|_| format!("did you mean \"{normalized}\"?"));
            self.wrong_with(value.span(), format_args!("must be {expected}"), suggestion);
        }
        parsed
    }

    /// Notes an unknown key. Its value is not shown when the key may be the misspelt name of a secret, or of a table with one: it
    /// is a table, or in a table with secrets and resembles the key of nothing else.
    pub(super) fn unknown_key(&mut self, key: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>, known: &[&str]) {
        let name = key.get_ref().as_ref();
        let mut secrets = known.iter().filter(|key| names_a_secret(key));
        let may_be_secret = match meant(name, known.iter().copied()) {
            Some(meant) => names_a_secret(meant) || secrets.any(|secret| secret.starts_with(name)),
            None => secrets.next().is_some(),
        };
        if holds_table(value) || names_a_secret(name) || may_be_secret {
            self.diagnostics.hide_value(self.file, value);
        }
        let place = if self.path.is_empty() { String::new() } else { format!(" in {}", quoted(&self.path.concat())) };
        let suggestion = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
            if !self.path.is_empty() && TOP_KEYS.contains(&name) {
                format!("`{name}` belongs at the top of the file, above the first `[table]`")
            } else {
                format!("known keys: {}", known.join(", "))
            }
        });
        self.diagnostics.add_with(
            self.file,
            key.span(),
            format!("unknown key {}{place}", quoted(name)),
            Some(suggestion),
        );
    }
}

/// Reports whether a value is a table, or a list with one.
fn holds_table(value: &Spanned<DeValue<'_>>) -> bool {
    let elements = || value.get_ref().as_array().into_iter().flat_map(|array| array.iter());
    value.get_ref().is_table() || elements().any(holds_table)
}

/// Returns the type of a value for messages.
const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Reads a whole file. Notes its problems.
pub(super) fn read<T: FromToml>(
    document: &Spanned<DeValue<'_>>,
    file: FileId,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    T::from_toml(document, &mut RawReader { diagnostics, file, path: Vec::new() })
}

/// Returns the settings of a whole file; `None`: those of a file without any key.
pub(super) fn settings<T: FromToml>(document: Option<&DeValue<'_>>, path: &Path) -> Settings {
    let mut settings = Settings::default();
    T::settings(document, &SettingPlace::top(path), &mut settings);
    settings
}

/// Parses the default of a key's declaration.
pub(super) fn default_of<T: FromToml>(written: &str) -> T {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.file(Path::new(""), "");
    let mut reader = RawReader { diagnostics: &mut diagnostics, file, path: Vec::new() };
    let read = DeValue::parse(written).ok().and_then(|written| T::from_toml(&written, &mut reader));
    read.expect("a default is a value of its key's type")
}

/// Declares a table: a struct with one [`Field`] or [`Key`] for each key, its reader, its defaults, the JSON Schema
/// that editors check it by, and what a change of each key means. The doc comment of a key is its description in the
/// schema, in Markdown, so it is written for operators.
///
/// `key: Type = "30s"` gives a default as TOML writes it. `key: Type = section` is a table that is read as empty when
/// it is absent. `key: Type = required` makes the table wrong without the key. `where { ... }` adds JSON Schema
/// keywords to those of the type, for a key or for the whole table. `=> change`, an [`OnChange`], is what a change of the
/// key means, and of every key below it that does not state its own; without any, it refuses what worked before.
/// `key "NAME": Type` is for a key whose name is no Rust identifier.
macro_rules! raw_table {
    (
        $(#[doc = $about:literal])*
        struct $name:ident $(where $rules:tt)? {
            $($(#[doc = $key_about:literal])* $key:ident $($name_of_key:literal)?: $type:ty $(= $absent:tt)? $(where $more:tt)? $(=> $change:expr)?,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone)]
        pub(in crate::rules) struct $name {
            $($(#[doc = $key_about])* pub $key: crate::rules::raw::raw_table!(@field $type $(= $absent)?),)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: crate::rules::raw::raw_table!(@default $type $(= $absent)?),)* }
            }
        }

        impl crate::rules::raw::FromToml for $name {
            fn from_toml(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut crate::rules::raw::RawReader<'_>,
            ) -> Option<Self> {
                let mut raw = Self::default();
                for (key, value) in reader.table(value)? {
                    match key.get_ref().as_ref() {
                        $(crate::rules::raw::raw_table!(@name $key $($name_of_key)?) => {
                            raw.$key.read(key.get_ref(), value, reader);
                        })*
                        _ => reader.unknown_key(key, value, &[$(crate::rules::raw::raw_table!(@name $key $($name_of_key)?)),*]),
                    }
                }
                $(if crate::rules::raw::raw_table!(@absent $($absent)?).is_wrong() && raw.$key.is_absent() {
                    let name = crate::rules::raw::raw_table!(@name $key $($name_of_key)?);
                    reader.under(name, |reader| reader.wrong(value.span(), "is required"));
                })*
                Some(raw)
            }

            fn schema() -> serde_json::Value {
                let mut table = crate::rules::raw::SchemaTable::new(&[$($about),*]);
                $(
                    let absent = crate::rules::raw::raw_table!(@absent $($absent)?);
                    let schema = <$type as crate::rules::raw::FromToml>::schema();
                    let name = crate::rules::raw::raw_table!(@name $key $($name_of_key)?);
                    table.key(name, &[$($key_about),*], schema, absent);
                    $(table.extend_key(name, serde_json::json!($more));)?
                )*
                $(table.extend(serde_json::json!($rules));)?
                table.into_schema()
            }

            fn keys() -> Vec<crate::rules::setting::DeclaredKey> {
                vec![$(crate::rules::setting::DeclaredKey {
                    name: crate::rules::raw::raw_table!(@name $key $($name_of_key)?),
                    default: crate::rules::raw::raw_table!(@absent $($absent)?).default(),
                    on_change: crate::rules::raw::raw_table!(@change $type $(=> $change)?),
                    keys: <$type as crate::rules::raw::FromToml>::keys,
                    settings: <$type as crate::rules::raw::FromToml>::settings,
                },)*]
            }

            fn settings(
                value: Option<&toml::de::DeValue<'_>>,
                at: &crate::rules::setting::SettingPlace<'_>,
                settings: &mut crate::rules::setting::Settings,
            ) {
                settings.add_table(&Self::keys(), value.and_then(toml::de::DeValue::as_table), at);
            }
        }
    };

    (@name $key:ident) => { stringify!($key) };
    (@name $key:ident $name:literal) => { $name };

    (@change $type:ty) => { <$type as crate::rules::raw::FromToml>::on_change() };
    (@change $type:ty => $change:expr) => { Some($change) };

    (@field $type:ty) => { crate::rules::raw::Field<$type> };
    (@field $type:ty = required) => { crate::rules::raw::Field<$type> };
    (@field $type:ty = $default:tt) => { crate::rules::raw::Key<$type> };

    (@default $type:ty) => { crate::rules::raw::Field::Absent };
    (@default $type:ty = required) => { crate::rules::raw::Field::Absent };
    (@default $type:ty = section) => { crate::rules::raw::Key::absent(<$type>::default()) };
    (@default $type:ty = $default:tt) => {{
        static DEFAULT: std::sync::LazyLock<$type> =
            std::sync::LazyLock::new(|| crate::rules::raw::default_of(stringify!($default)));
        crate::rules::raw::Key::absent(DEFAULT.clone())
    }};

    (@absent) => { crate::rules::raw::Absent::Unspecified };
    (@absent section) => { crate::rules::raw::Absent::Unspecified };
    (@absent required) => { crate::rules::raw::Absent::Wrong };
    (@absent $default:tt) => { crate::rules::raw::Absent::Default(stringify!($default)) };
}
pub(super) use raw_table;
