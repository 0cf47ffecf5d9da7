//! Lists, and tables whose keys are names that the operator chooses.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, RawReader, kind};
use crate::rules::setting::{SettingPlace, Settings, texts};

/// A list. Wrong elements are noted and left out.
#[derive(Debug, Clone)]
pub(in crate::rules) struct List<T>(pub Vec<Spanned<T>>);

impl<T> List<T> {
    /// Returns the elements without their places.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(Spanned::get_ref)
    }
}

impl<T: FromToml> FromToml for List<T> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let Some(array) = value.get_ref().as_array() else {
            let advice = if value.get_ref().is_table() {
                "a list of tables is written with two brackets, `[[...]]`"
            } else {
                "a list is written in brackets, `[...]`"
            };
            if value.get_ref().is_table() || !T::keys().is_empty() {
                reader.diagnostics.hide_value(reader.file, value);
            }
            let reason = format_args!("must be a list, not {}", kind(value.get_ref()));
            reader.wrong_with(value.span(), reason, Some(advice.to_owned()));
            return None;
        };
        let read = |(at, element): (usize, &Spanned<DeValue<'_>>)| {
            let parsed = reader.at(format!("[{at}]"), |reader| T::from_toml(element, reader))?;
            Some(Spanned::new(element.span(), parsed))
        };
        Some(Self(array.iter().enumerate().filter_map(read).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn settings(value: Option<&DeValue<'_>>, at: &SettingPlace<'_>, settings: &mut Settings) {
        let keys = T::keys();
        let Some(name) = keys.iter().find(|key| key.is_name()).map(|key| key.name) else {
            if let Some(value) = value {
                settings.add_texts(T::united(texts(value)), at, T::entry);
            }
            return;
        };
        for element in value.and_then(DeValue::as_array).into_iter().flat_map(|elements| elements.iter()) {
            let element = element.get_ref();
            let named = element.as_table().and_then(|table| table.get(name)?.get_ref().as_str());
            settings
                .add_to_list(at, named.unwrap_or_default(), |at, settings| T::settings(Some(element), at, settings));
        }
    }
}

/// A table whose keys are names that the operator chooses. Wrong entries are noted and left out.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Entries<T>(pub Vec<(Spanned<String>, T)>);

impl<T: FromToml> FromToml for Entries<T> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let mut entries = Vec::new();
        for (key, value) in reader.table(value)? {
            if let Some(entry) = reader.under(key.get_ref(), |reader| T::from_toml(value, reader)) {
                entries.push((Spanned::new(key.span(), key.get_ref().to_string()), entry));
            }
        }
        Some(Self(entries))
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }

    fn settings(value: Option<&DeValue<'_>>, at: &SettingPlace<'_>, settings: &mut Settings) {
        for (name, value) in value.and_then(DeValue::as_table).into_iter().flatten() {
            let (name, value) = (name.get_ref(), Some(value.get_ref()));
            if T::keys().is_empty() {
                T::settings(value, &at.named(name), settings);
            } else {
                settings.add_to_list(at, name, |at, settings| T::settings(value, at, settings));
            }
        }
    }
}
