//! Secrets in rule files: references to them, or the secrets themselves.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, List, RawReader};
use crate::rules::secret::SecretRef;
use crate::rules::setting::{OnChange, SettingEntry};

/// The pattern of a secret: a reference with a name, or a text that does not look like a reference.
const ONE_SECRET: &str = r"^(env:[^=]+|file:[\s\S]+|(?![ \t]*([Ee][Nn][Vv]|[Ff][Ii][Ll][Ee])[ \t]*:)[\s\S]+)$";

impl FromToml for SecretRef {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        reader.diagnostics.hide_value(reader.file, value);
        let text = reader.text(value, "a secret: \"env:NAME\", \"file:PATH\" or the secret itself")?;
        Self::parse(text).map_err(|reason| reader.wrong(value.span(), reason)).ok()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": ONE_SECRET })
    }
}

/// One secret, or a list: the first signs, any verifies.
#[derive(Debug, Clone)]
pub(in crate::rules) struct RawSecrets(pub Vec<Spanned<SecretRef>>);

impl FromToml for RawSecrets {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        reader.diagnostics.hide_value(reader.file, value);
        let Some(array) = value.get_ref().as_array() else {
            return SecretRef::from_toml(value, reader).map(|secret| Self(vec![Spanned::new(value.span(), secret)]));
        };
        if array.is_empty() {
            reader.wrong(value.span(), "must name at least one secret");
            return None;
        }
        let list = List::<SecretRef>::from_toml(value, reader)?.0;
        if list.is_empty() { None } else { Some(Self(list)) }
    }

    fn schema() -> Value {
        // Flat instead of `anyOf`, so that editors show the problem at the value itself.
        json!({
            "type": ["string", "array"],
            "pattern": ONE_SECRET,
            "minItems": 1,
            "items": SecretRef::schema(),
            "examples": ["env:NAME", "file:../secrets/name", ["env:NEW", "env:OLD"]],
        })
    }

    fn on_change() -> Option<OnChange> {
        Some(OnChange::secret())
    }

    /// Shows a reference, and of a secret only that it is one.
    fn entry(text: &str) -> SettingEntry {
        match SecretRef::parse(text) {
            Ok(SecretRef::Environment(_) | SecretRef::File(_)) => SettingEntry::new(text),
            Ok(SecretRef::Literal(_)) | Err(_) => {
                SettingEntry { same: text.to_owned(), shown: "a literal secret".to_owned() }
            }
        }
    }
}
