//! Secrets: where they are, or themselves.

use std::fmt;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{FromToml, List, Reader};

/// The pattern of a secret: a reference that names something, or a text that does not look like a reference.
const ONE_SECRET: &str = r"^(env:[^=]+|file:[\s\S]+|(?![ \t]*([Ee][Nn][Vv]|[Ff][Ii][Ll][Ee])[ \t]*:)[\s\S]+)$";

/// Where a secret is.
#[derive(Clone)]
pub(in crate::rules) enum RawSecret {
    /// `env:NAME`.
    Environment(String),
    /// `file:PATH`, relative to the rule file.
    File(String),
    /// The secret itself.
    Literal(Box<str>),
}

impl fmt::Debug for RawSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawSecret(..)")
    }
}

impl RawSecret {
    /// Reads where a secret is.
    ///
    /// # Errors
    /// What is wrong with the text, as the end of a sentence that begins with what was read. It holds nothing of the text.
    pub(in crate::rules) fn parse(text: &str) -> Result<Self, &'static str> {
        let (secret, name) = match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
            (Some(name), _) => (Self::Environment(name.into()), name),
            (_, Some(path)) => (Self::File(path.into()), path),
            _ if nearly_a_reference(text) => {
                return Err("looks like a reference, which is written \"env:NAME\" or \"file:PATH\": in lowercase, \
                            without a space before the colon");
            }
            _ => (Self::Literal(text.into()), text),
        };
        if name.is_empty() || name.contains('\0') || matches!(&secret, Self::Environment(_) if name.contains('=')) {
            return Err("must not be empty: write \"env:NAME\", \"file:PATH\" or the secret itself");
        }
        Ok(secret)
    }
}

impl FromToml for RawSecret {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.findings.hide_value(reader.file, value);
        let text = reader.text(value, "a secret: \"env:NAME\", \"file:PATH\" or the secret itself")?;
        Self::parse(text).map_err(|reason| reader.wrong(value.span(), reason)).ok()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": ONE_SECRET })
    }
}

/// Whether a text that is no reference must have been meant as one: taken for the secret itself, it would be one that
/// anybody can guess.
fn nearly_a_reference(text: &str) -> bool {
    let kind = text.split_once(':').map_or("", |(kind, _)| kind.trim());
    ["env", "file"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// One secret, or a list: the first signs, any verifies.
#[derive(Debug, Clone)]
pub(in crate::rules) struct RawSecrets(pub Vec<Spanned<RawSecret>>);

impl FromToml for RawSecrets {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.findings.hide_value(reader.file, value);
        let Some(array) = value.get_ref().as_array() else {
            return RawSecret::from_toml(value, reader).map(|secret| Self(vec![Spanned::new(value.span(), secret)]));
        };
        if array.is_empty() {
            reader.wrong(value.span(), "must name at least one secret");
            return None;
        }
        let list = List::<RawSecret>::from_toml(value, reader)?.0;
        if list.is_empty() { None } else { Some(Self(list)) }
    }

    fn schema() -> Value {
        // Flat, not one of two: so what is wrong is told of the value itself.
        json!({
            "type": ["string", "array"],
            "pattern": ONE_SECRET,
            "minItems": 1,
            "items": RawSecret::schema(),
            "examples": ["env:NAME", "file:../secrets/name", ["env:NEW", "env:OLD"]],
        })
    }
}
