//! Whether a text is JSON that every reader reads alike, as requests have to be (contract section 7).

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// How many levels deep values may be in each other: as many as requests may have.
const DEEPEST: usize = 32;

/// Whether a text is one JSON value that says no member twice and is not too deep.
///
/// # Errors
/// Where it is not; the text shows no value and no name.
pub(super) fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Strict { levels: DEEPEST }.deserialize(&mut reader)?;
    reader.end()
}

/// Passes one value.
#[derive(Clone, Copy)]
struct Strict {
    /// How many may still be in each other.
    levels: usize,
}

impl Strict {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom(format_args!("more than {DEEPEST} levels")))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while list.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = members.next_key()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member is there twice"));
            }
            members.next_value_seed(inside)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_readers_read_alike_passes() {
        let deep = format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        for text in ["null", " [1, -2.5e3, \"\\ud83d\\ude00\", true] ", r#"{"a":{"b":1},"b":{"b":1}}"#, &deep] {
            assert!(check(text).is_ok(), "{text}");
        }
        let too_deep = format!("[{deep}]");
        for (text, reason) in [
            (r#"{"a":1,"a":1}"#, "a member is there twice"),
            (r#"[{"b":{"a":1,"\u0061":2}}]"#, "a member is there twice"),
            (too_deep.as_str(), "more than 32 levels"),
            (r#""\ud83d""#, "end of hex escape"),
            ("\u{feff}1", "expected value"),
            ("1 1", "trailing characters"),
            ("", "EOF"),
            ("NaN", "expected value"),
        ] {
            let refused = check(text).unwrap_err().to_string();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
