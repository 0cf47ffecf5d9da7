//! Keys that take one of a few words, and the words of a dialect.

use schemars::{Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::describe::{Absent, Table};
use super::{FromToml, Mode, ProviderKind, Reader};
use crate::rules::problems::{did_you_mean, quoted};
use crate::rules::{Algorithm, CallbackStyle, Encoding, IdPolicy, TextDirection, TimestampFormat, UnknownFields};

/// Reads one of a few words.
fn word<T: Copy>(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>, words: &[(&str, T)]) -> Option<T> {
    let text = reader.text(value, "a string")?;
    let meant = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
    if meant.is_none() {
        let known: Vec<String> = words.iter().map(|(word, _)| quoted(word)).collect();
        let suggestion = did_you_mean(text, words.iter().map(|(word, _)| *word));
        reader.wrong_with(value.span(), format_args!("must be {}", known.join(" or ")), suggestion);
    }
    meant
}

macro_rules! from_words {
    ($($type:ty { $($word:literal => $meant:expr,)* })*) => {$(
        impl FromToml for $type {
            fn from_toml(
                value: &Spanned<DeValue<'_>>,
                reader: &mut Reader<'_>,
            ) -> Option<Self> {
                word(value, reader, &[$(($word, $meant)),*])
            }

            fn schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    )*};
}

from_words! {
    TimestampFormat {
        "unix" => TimestampFormat::Unix,
        "unix-ms" => TimestampFormat::UnixMillis,
        "rfc3339" => TimestampFormat::Rfc3339,
    }
    Algorithm {
        "hmac-sha256" => Algorithm::HmacSha256,
        "hmac-sha512" => Algorithm::HmacSha512,
    }
    Encoding {
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
    }
    CallbackStyle {
        "v1" => CallbackStyle::V1,
        "v2" => CallbackStyle::V2,
    }
    IdPolicy {
        "reject" => IdPolicy::Reject,
        "omit" => IdPolicy::Omit,
    }
    UnknownFields {
        "reject" => UnknownFields::Reject,
        "ignore" => UnknownFields::Ignore,
    }
    Mode {
        "translate" => Mode::Translate,
        "shadow" => Mode::Shadow,
        "legacy" => Mode::Legacy,
    }
    TextDirection {
        "ltr" => TextDirection::Ltr,
        "rtl" => TextDirection::Rtl,
    }
    ProviderKind {
        "sandbox" => ProviderKind::Sandbox,
        "http" => ProviderKind::Http,
    }
}

/// The v2 statuses.
const STATUSES: [&str; 3] = ["PENDING", "SUCCESS", "FAILED"];

/// The dialect's words for the v2 statuses.
#[derive(Debug, Default)]
pub(in crate::rules) struct Words {
    /// For PENDING.
    pub pending: Option<Spanned<String>>,
    /// For SUCCESS.
    pub success: Option<Spanned<String>>,
    /// For FAILED.
    pub failed: Option<Spanned<String>>,
}

impl FromToml for Words {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut words = Self::default();
        for (key, value) in reader.table(value)? {
            let word = match key.get_ref().as_ref() {
                "PENDING" => &mut words.pending,
                "SUCCESS" => &mut words.success,
                "FAILED" => &mut words.failed,
                _ => {
                    reader.unknown_key(key, value, &STATUSES);
                    continue;
                }
            };
            let text = reader.under(key.get_ref(), |reader| String::from_toml(value, reader));
            *word = text.map(|text| Spanned::new(value.span(), text));
        }
        Some(words)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let mut table = Table::new(&[]);
        for status in STATUSES {
            let word = json_schema!({ "type": "string", "minLength": 1, "maxLength": 64 });
            let about = format!("The dialect's word for the v2 status `{status}`, 1 to 64 bytes.");
            let again = "Replies and callbacks show it, and the `status` filter of `transactions` is read by it. \
                         The three words must differ.";
            table.key(status, &[&about, again], word, Absent::Default(status.into()));
        }
        table.into_schema()
    }
}
