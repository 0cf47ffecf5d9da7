//! What one file says, key by key, defaults filled in: two spellings of a value are one value.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::keys::{Key, Kind};
use super::networks::Networks;
use super::words;
use crate::domain::{Amount, Currency};
use crate::rules::PostgresUrl;
use crate::rules::compile::folded;
use crate::rules::pages::tag::canonical;
use crate::rules::problems::{names_a_secret, quoted};
use crate::rules::raw::{self, Date, FromToml, List, Prefix, RawQuota, RawSecret, RawSecrets, Size};

/// What a key holds.
#[derive(Clone)]
pub(super) enum Value {
    /// What is compared and said as it is.
    Plain {
        /// What tells it from others.
        same: String,
        /// What is said of it.
        shown: String,
        /// What it is compared by, where more is more.
        measure: Option<u128>,
    },
    /// So many a second, and so many at once.
    Rate(u32, u32),
    /// A database.
    Database(Box<PostgresUrl>),
    /// Networks.
    Addresses(Vec<IpNet>),
    /// Secrets, as written.
    Secrets(Vec<RawSecret>),
    /// Names without an order.
    Names(BTreeSet<String>),
    /// Whole numbers without an order.
    Numbers(BTreeSet<i64>),
    /// Amounts by currency.
    Amounts(BTreeMap<String, String>),
}

impl Value {
    /// A text that stands for itself.
    pub fn text(text: &str) -> Self {
        Self::of(text, words::plain(text))
    }

    fn of(same: impl Into<String>, shown: impl Into<String>) -> Self {
        Self::Plain { same: same.into(), shown: shown.into(), measure: None }
    }

    fn measured(measure: u128, shown: impl Into<String>) -> Self {
        Self::Plain { same: measure.to_string(), shown: shown.into(), measure: Some(measure) }
    }

    /// Whether both mean the same.
    pub fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain { same: one, .. }, Self::Plain { same: two, .. }) => one == two,
            (Self::Rate(one, burst), Self::Rate(two, other)) => (one, burst) == (two, other),
            (Self::Database(one), Self::Database(two)) => one == two,
            (Self::Addresses(one), Self::Addresses(two)) => {
                Networks::difference(one, two).is_empty() && Networks::difference(two, one).is_empty()
            }
            (Self::Secrets(one), Self::Secrets(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same_secret(one, two))
            }
            (Self::Names(one), Self::Names(two)) => one == two,
            (Self::Numbers(one), Self::Numbers(two)) => one == two,
            (Self::Amounts(one), Self::Amounts(two)) => one == two,
            _ => false,
        }
    }

    /// What is said of it; of secrets, nothing but where they are.
    pub fn shown(&self) -> String {
        match self {
            Self::Plain { shown, .. } => shown.clone(),
            Self::Rate(per_second, burst) => format!("{per_second} a second (burst {burst})"),
            Self::Database(url) => words::plain(&url.to_string()),
            Self::Addresses(list) => Networks::difference(list, &[]).named().0,
            Self::Secrets(list) => {
                let shown: Vec<String> = list.iter().map(place_of).collect();
                shown.join(", ")
            }
            Self::Names(names) => words::listed(names.iter().map(String::as_str), "name", false).0,
            Self::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                words::listed(numbers.iter().map(String::as_str), "number", false).0
            }
            Self::Amounts(amounts) if amounts.is_empty() => "none".into(),
            Self::Amounts(amounts) => {
                let shown: Vec<String> = amounts.iter().map(|(code, amount)| format!("{amount} {code}")).collect();
                words::listed(shown.iter().map(String::as_str), "amount", false).0
            }
        }
    }

    /// What tells a plain value from others.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Plain { same, .. } => Some(same),
            _ => None,
        }
    }
}

/// Whether two secrets are written the same; nothing is looked up.
pub(super) fn same_secret(one: &RawSecret, two: &RawSecret) -> bool {
    match (one, two) {
        (RawSecret::Environment(one), RawSecret::Environment(two)) | (RawSecret::File(one), RawSecret::File(two)) => {
            one == two
        }
        (RawSecret::Literal(one), RawSecret::Literal(two)) => one == two,
        _ => false,
    }
}

/// Where a secret is: the reference, never the secret.
pub(super) fn place_of(secret: &RawSecret) -> String {
    match secret {
        RawSecret::Environment(name) => format!("env:{}", words::plain(name)),
        RawSecret::File(path) => format!("file:{}", words::plain(path)),
        RawSecret::Literal(_) => "a secret in the file itself".into(),
    }
}

/// The keys of a file or of a table in it, by their dotted names.
#[derive(Default, Clone)]
pub(super) struct Settings(BTreeMap<String, Value>);

impl Settings {
    /// Reads a table of a file that was found right, and fills in what it leaves out.
    pub fn of(table: &DeTable<'_>, keys: &[Key]) -> Self {
        let mut settings = Self::default();
        settings.walk("", table, keys);
        for key in keys {
            if let Some(default) = key.default
                && !settings.0.contains_key(key.path)
                && let Some(value) = default_of(key.kind, default)
            {
                settings.0.insert(key.path.into(), value);
            }
        }
        settings
    }

    fn walk(&mut self, prefix: &str, table: &DeTable<'_>, keys: &[Key]) {
        for (name, value) in table {
            let path = format!("{prefix}{}", name.get_ref());
            match (keys.iter().find(|key| key.path == path), value.get_ref()) {
                (Some(Key { kind: Kind::Elsewhere, .. }), _) => {}
                (Some(key), _) => {
                    let read = read(key.kind, value).unwrap_or_else(|| unknown(&path, value.get_ref()));
                    self.0.insert(path, read);
                }
                (None, DeValue::Table(inner)) => self.walk(&format!("{path}."), inner, keys),
                (None, other) => {
                    let read = unknown(&path, other);
                    self.0.insert(path, read);
                }
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.0.get(path)
    }

    /// What tells the value of a key from others.
    pub fn word(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(Value::word)
    }

    /// Says what a key means that the file leaves to another one.
    pub fn fill(&mut self, path: &str, value: Value) {
        self.0.entry(path.into()).or_insert(value);
    }

    /// Drops keys.
    pub fn drop_where(&mut self, useless: impl Fn(&str) -> bool) {
        self.0.retain(|path, _| !useless(path));
    }

    /// The keys that differ, with both values, in their order.
    pub fn changed<'a>(&'a self, new: &'a Self) -> Vec<(&'a str, Option<&'a Value>, Option<&'a Value>)> {
        let paths: BTreeSet<&str> = self.0.keys().chain(new.0.keys()).map(String::as_str).collect();
        let both = paths.into_iter().map(|path| (path, self.get(path), new.get(path)));
        both.filter(|(_, old, new)| match (old, new) {
            (Some(old), Some(new)) => !old.means(new),
            (old, new) => old.is_some() != new.is_some(),
        })
        .collect()
    }
}

fn default_of(kind: Kind, text: &str) -> Option<Value> {
    let line = format!("k = {text}");
    let table = DeTable::parse(&line).ok()?;
    read(kind, table.get_ref().get("k")?)
}

fn read(kind: Kind, value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Some(match kind {
        Kind::Elsewhere => return None,
        Kind::Text => Value::text(&typed::<String>(value)?),
        Kind::Url => address_of(typed::<String>(value)?.as_str()),
        Kind::Origin => address_of(typed::<String>(value)?.trim_end_matches('/')),
        Kind::Template => Value::of(typed::<String>(value)?, "another template"),
        Kind::Flag => Value::text(if typed::<bool>(value)? { "true" } else { "false" }),
        Kind::Number => {
            let number = typed::<u32>(value)?;
            Value::measured(number.into(), number.to_string())
        }
        Kind::Span => span(typed::<Duration>(value)?),
        Kind::Size => size(typed::<Size>(value)?.0),
        Kind::Date => Value::text(&typed::<Date>(value)?.0.to_string()),
        Kind::Socket => Value::text(&typed::<SocketAddr>(value)?.to_string()),
        Kind::Header => Value::text(&typed::<String>(value)?.to_ascii_lowercase()),
        Kind::Currency => Value::text(Currency::new(&typed::<String>(value)?).ok()?.as_str()),
        Kind::Language => Value::text(&canonical(&typed::<String>(value)?)?),
        Kind::Path => path(&typed::<String>(value)?),
        Kind::Store => store(&typed::<String>(value)?),
        Kind::Paths => {
            let paths = typed::<List<String>>(value)?.0;
            let paths: Vec<String> = paths.iter().map(|path| folded_text(path.get_ref())).collect();
            Value::of(paths.join("\n"), words::listed(paths.iter().map(String::as_str), "file", false).0)
        }
        Kind::Addresses => {
            Value::Addresses(typed::<List<Prefix>>(value)?.0.iter().map(|prefix| prefix.get_ref().0).collect())
        }
        Kind::Secrets => Value::Secrets(typed::<RawSecrets>(value)?.0.into_iter().map(Spanned::into_inner).collect()),
        Kind::Rate => {
            let rate = typed::<RawQuota>(value)?;
            let per_second = *rate.per_second.get()?;
            Value::Rate(per_second, rate.burst.or(per_second))
        }
        Kind::Amount => {
            let amount = Amount::from_decimal_string(&typed::<String>(value)?).ok()?;
            Value::measured(amount.hundredths().into(), amount.to_string())
        }
        Kind::Amounts => Value::Amounts(amounts(value)?),
        Kind::Names => Value::Names(typed::<List<String>>(value)?.0.into_iter().map(Spanned::into_inner).collect()),
        Kind::Numbers => Value::Numbers(typed::<List<i64>>(value)?.0.into_iter().map(Spanned::into_inner).collect()),
        Kind::Account => account(value)?,
    })
}

fn typed<T: FromToml>(value: &Spanned<DeValue<'_>>) -> Option<T> {
    raw::value(value)
}

/// A URL, or a word in its place.
fn address_of(text: &str) -> Value {
    Value::of(text, words::url(text))
}

/// The largest unit that a span is a whole number of.
fn span(span: Duration) -> Value {
    let millis = span.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let whole = units.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    let shown = match whole {
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None if millis == 0 => "0s".to_owned(),
        None => format!("{millis}ms"),
    };
    Value::measured(millis, shown)
}

fn size(bytes: usize) -> Value {
    let shown = match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    };
    Value::measured(bytes as u128, shown)
}

fn folded_text(path: &str) -> String {
    let schemes = ["sqlite:", "file:"];
    let scheme = schemes.into_iter().find(|scheme| path.starts_with(scheme)).unwrap_or_default();
    format!("{scheme}{}", folded(Path::new(&path[scheme.len()..])).display())
}

fn path(text: &str) -> Value {
    Value::text(&folded_text(text))
}

fn store(text: &str) -> Value {
    match PostgresUrl::parse(text, |roots| folded(Path::new(roots))) {
        Ok(url) => Value::Database(Box::new(url)),
        // One that is wrong may hold a password all the same.
        Err(_) if text.contains("://") => Value::of(text, words::url(text)),
        Err(_) => path(text),
    }
}

fn amounts(value: &Spanned<DeValue<'_>>) -> Option<BTreeMap<String, String>> {
    let table = value.get_ref().as_table()?;
    let read = |(code, amount): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let amount = Amount::from_decimal_string(amount.get_ref().as_str()?).ok()?;
        Some((Currency::new(code.get_ref()).ok()?.to_string(), amount.to_string()))
    };
    table.iter().map(read).collect()
}

fn account(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    match value.get_ref() {
        DeValue::String(text) => Some(Value::text(text)),
        DeValue::Table(table) => {
            let pattern = table.get("pattern")?.get_ref().as_str()?;
            Some(Value::of(format!("pattern {pattern}"), format!("the pattern {}", quoted(pattern))))
        }
        _ => None,
    }
}

/// A key that no table here knows: told all the same, and not shown when it may hold a secret.
fn unknown(path: &str, value: &DeValue<'_>) -> Value {
    let same = spelled(value);
    let shown = if names_a_secret(path) { "(not shown)".to_owned() } else { words::plain(&same) };
    Value::of(same, shown)
}

fn spelled(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(|_| integer.to_string(), |n| n.to_string()),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(datetime) => datetime.to_string(),
        DeValue::Array(array) => {
            let elements: Vec<String> = array.iter().map(|element| spelled(element.get_ref())).collect();
            format!("[{}]", elements.join(", "))
        }
        DeValue::Table(table) => {
            let members: BTreeMap<String, String> =
                table.iter().map(|(key, value)| (key.get_ref().to_string(), spelled(value.get_ref()))).collect();
            let members: Vec<String> = members.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}
