//! Values that an environment variable may hold: `"env:NAME"`.

use std::path::Path;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, RawReader, add};
use crate::rules::problems::Diagnostics;
use crate::rules::secret::SecretRef;
use crate::rules::setting::SettingEntry;

/// The pattern of a reference to a variable, for keys that have a pattern of their own.
pub(in crate::rules) const VARIABLE: &str = "^env:[^=]+$";

/// A value as written, or the name of the environment variable that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) enum OrVariable<T> {
    /// The value.
    Written(T),
    /// The variable's name.
    Variable(String),
}

impl<T: FromToml> FromToml for OrVariable<T> {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        match value.get_ref().as_str().filter(|text| text.starts_with("env:")).map(SecretRef::parse) {
            Some(Ok(SecretRef::Environment(name))) => Some(Self::Variable(name)),
            Some(_) => {
                reader.wrong(value.span(), "must name an environment variable after \"env:\"");
                None
            }
            None => T::from_toml(value, reader).map(Self::Written),
        }
    }

    fn schema() -> Value {
        let mut schema = T::schema();
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let either = format!("{pattern}|{VARIABLE}");
            add(&mut schema, json!({ "pattern": either }));
        }
        if let Some(examples) = schema.get_mut("examples").and_then(Value::as_array_mut) {
            examples.push("env:NAME".into());
        }
        schema
    }

    fn entry(text: &str) -> SettingEntry {
        T::entry(text)
    }
}

/// Reads the text of an environment variable as a rule file's value.
///
/// # Errors
/// What is wrong, beginning with the variable's name in backquotes.
pub(in crate::rules) fn read_variable<T: FromToml>(name: &str, text: String) -> Result<T, String> {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.file(Path::new(""), "");
    let mut reader = RawReader { diagnostics: &mut diagnostics, file, path: vec![name.to_owned()] };
    let read = T::from_toml(&Spanned::new(0..0, DeValue::String(text.into())), &mut reader);
    let problems = diagnostics.into_problems();
    let first = problems.err().and_then(|problems| problems.first().map(|problem| problem.message.clone()));
    read.ok_or_else(|| first.unwrap_or_else(|| "cannot be read".to_owned()))
}
