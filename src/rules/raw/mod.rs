//! What rule files say: one plain struct for each kind of table, one field for each key, with its place.
//!
//! Reading never stops at a problem: a key that is wrong is noted and counts as [`Field::Wrong`], so that one run shows
//! everything that is wrong. What the values mean together is `compile`'s.

mod describe;
mod dialect;
mod gateway;
mod leaf;
mod merchant;
mod page_texts;
mod secret;
mod shop;
mod syntax;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

use schemars::{Schema, SchemaGenerator};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) use dialect::{RawDialect, RawReplies, RawRoutes, RawSignature};
pub(super) use gateway::{
    MOST_CONNECTIONS, RawAdmin, RawCallbacks, RawClients, RawEngine, RawGateway, RawLimits, RawPages, RawServer,
    RawStore, RawTls,
};
pub(crate) use leaf::duration;
pub(super) use leaf::{Date, Entries, List, Prefix, Route, Size};
pub(super) use merchant::{Located, Mode, RawApiKey, RawBalance, RawMerchant, RawQuota, RawShopAccess, RawV1};
pub(super) use page_texts::{RawTexts, Separator, TABLES, TextKey};
pub(super) use secret::{RawSecret, RawSecrets};
pub(super) use shop::{ProviderKind, RawAccount, RawChecks, RawDailyLimits, RawPayout, RawProvider, RawShop};
pub(super) use words::Words;

use super::problems::{FileId, Findings, Span, names_a_secret, nearest, quoted};

/// Keys of merchants' and shops' files that belong to no table, and that an editor easily adds below one.
const TOP_KEYS: &[&str] = &["active", "currency", "default_shop", "name", "payment_method"];

/// A key of a table: not there, there but wrong (and noted), or there.
#[derive(Debug, Default)]
pub(super) enum Field<T> {
    /// The file does not say it.
    #[default]
    Absent,
    /// The file says something else; the problem is noted.
    Wrong,
    /// The file says this, here.
    Given(Spanned<T>),
}

impl<T> Field<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Self
    where
        T: FromToml,
    {
        T::from_toml(value, reader).map_or(Self::Wrong, |meant| Self::Given(Spanned::new(value.span(), meant)))
    }

    /// The value with its place, when there is one.
    pub const fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The value, when there is one.
    pub fn get(&self) -> Option<&T> {
        self.given().map(Spanned::get_ref)
    }

    /// Whether the file says nothing about it.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, or the default of the key.
    pub fn or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.get().cloned().unwrap_or(default)
    }
}

/// Something that can be read from a TOML value, and that editors can be told of.
pub(super) trait FromToml: Sized {
    /// Reads a value; what is wrong is told to the reader.
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self>;

    /// What a value looks like. The schema may take more than is read, never less: a red line under what is right would
    /// be worse than none.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

/// Reads one file and notes what is wrong with it.
pub(super) struct Reader<'a> {
    findings: &'a mut Findings,
    file: FileId,
    /// The keys above the value that is being read.
    path: Vec<String>,
}

impl Reader<'_> {
    /// Notes that the value being read is wrong; `reason` follows the key's name: "must be ...".
    fn wrong(&mut self, span: Span, reason: impl fmt::Display) {
        self.wrong_with(span, reason, None);
    }

    fn wrong_with(&mut self, span: Span, reason: impl fmt::Display, suggestion: Option<String>) {
        if self.findings.is_full(self.file) {
            self.findings.add(self.file, span, "wrong");
            return;
        }
        let message = format!("{} {reason}", quoted(&self.path.concat()));
        self.findings.add_with(self.file, span, message, suggestion);
    }

    /// Reads something below a key.
    fn under<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path.push(format!("{dot}{key}"));
        let value = read(self);
        self.path.pop();
        value
    }

    /// Reads an element of a list.
    fn element<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(format!("[{index}]"));
        let value = read(self);
        self.path.pop();
        value
    }

    fn table<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(value.span(), format_args!("must be a table, not {}", kind(value.get_ref())));
        }
        table
    }

    fn text<'v>(&mut self, value: &'v Spanned<DeValue<'_>>, expected: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(value.span(), format_args!("must be {expected}, not {}", kind(value.get_ref())));
        }
        text
    }

    /// Notes a key that its table does not have. Its value is not shown when the key may be a misspelt one with a secret.
    fn unknown_key(&mut self, key: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>, known: &[&str]) {
        let name = key.get_ref().as_ref();
        let near = nearest(name, known.iter().copied());
        if names_a_secret(name) || near.is_some_and(names_a_secret) {
            self.findings.hide_value(self.file, value);
        }
        if self.findings.is_full(self.file) {
            self.findings.add(self.file, key.span(), "unknown key");
            return;
        }
        let place = if self.path.is_empty() { String::new() } else { format!(" in {}", quoted(&self.path.concat())) };
        let suggestion = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if !self.path.is_empty() && TOP_KEYS.contains(&name) => {
                format!("`{name}` stands at the top of the file, above the first `[table]`")
            }
            None => format!("known here: {}", known.join(", ")),
        };
        self.findings.add_with(self.file, key.span(), format!("unknown key {}{place}", quoted(name)), Some(suggestion));
    }
}

/// What a value is, in words.
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

/// Reads a whole file. A file that is no TOML gives nothing but its problems.
pub(super) fn read<T: FromToml>(text: &str, file: FileId, findings: &mut Findings) -> Option<T> {
    let document = syntax::parse(text, file, findings)?;
    T::from_toml(&document, &mut Reader { findings, file, path: Vec::new() })
}

/// Declares a table: a struct with one [`Field`] for each key, read by the keys' names, and the JSON Schema that editors
/// check it by. The docs of a key are what they show for it, in Markdown, so they are written for operators.
///
/// `key: Type = "default"` tells the default, `key: Type = required` that the table is wrong without it; `where { ... }`
/// adds keywords of JSON Schema to what the type says, of a key or of the whole table.
macro_rules! raw_table {
    (
        $(#[doc = $about:literal])*
        struct $name:ident $(where $rules:tt)? {
            $($(#[doc = $key_about:literal])* $key:ident: $type:ty $(= $absent:tt)? $(where $more:tt)?,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Default)]
        pub(in crate::rules) struct $name {
            $($(#[doc = $key_about])* pub $key: crate::rules::raw::Field<$type>,)*
        }

        impl crate::rules::raw::FromToml for $name {
            fn from_toml(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut crate::rules::raw::Reader<'_>,
            ) -> Option<Self> {
                let mut raw = Self::default();
                for (key, value) in reader.table(value)? {
                    match key.get_ref().as_ref() {
                        $(stringify!($key) => {
                            raw.$key = reader.under(stringify!($key), |reader| {
                                crate::rules::raw::Field::read(value, reader)
                            });
                        })*
                        _ => reader.unknown_key(key, value, &[$(stringify!($key)),*]),
                    }
                }
                Some(raw)
            }

            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                generator.subschema_for::<Self>()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            /// Editors show the docs of a key best where no reference stands between.
            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut table = crate::rules::raw::describe::Table::new(&[$($about),*]);
                $(
                    let schema = <$type as crate::rules::raw::FromToml>::schema(generator);
                    let absent = crate::rules::raw::describe::absent!($($absent)?);
                    table.key(stringify!($key), &[$($key_about),*], schema, absent);
                    $(table.key_says(stringify!($key), serde_json::json!($more));)?
                )*
                $(table.says(serde_json::json!($rules));)?
                table.into_schema()
            }
        }
    };
}
use raw_table;
