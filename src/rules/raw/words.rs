//! Keys whose value is one of a few words.

use toml::Spanned;
use toml::de::DeValue;

use super::RawReader;
use crate::names::{did_you_mean, quoted};

/// Reads one of `words`, or notes which are allowed.
pub(in crate::rules) fn word<T: Copy>(
    value: &Spanned<DeValue<'_>>,
    reader: &mut RawReader<'_>,
    words: &[(&str, T)],
) -> Option<T> {
    let text = reader.text(value, "a string")?;
    let parsed = words.iter().find(|(word, _)| *word == text).map(|(_, parsed)| *parsed);
    if parsed.is_none() {
        let known: Vec<String> = words.iter().map(|(word, _)| quoted(word)).collect();
        let suggestion = did_you_mean(text, words.iter().map(|(word, _)| *word));
        reader.wrong_with(value.span(), format_args!("must be {}", known.join(" or ")), suggestion);
    }
    parsed
}

/// Implements `FromToml` for enums, each variant with its word.
macro_rules! from_words {
    ($($type:ty { $($word:literal => $parsed:expr,)* })*) => {$(
        impl crate::rules::raw::FromToml for $type {
            fn from_toml(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut crate::rules::raw::RawReader<'_>,
            ) -> Option<Self> {
                crate::rules::raw::word(value, reader, &[$(($word, $parsed)),*])
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($word),*] })
            }
        }
    )*};
}
pub(in crate::rules) use from_words;
