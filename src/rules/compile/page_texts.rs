//! Reads `pages/<language tag>.toml`: the texts of customers' pages in a language.

use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::domain::is_deceptive;
use crate::rules::pages::languages::KNOWN;
use crate::rules::raw::{Absent, FromToml, RawReader, SchemaTable, is_readable, word};

/// The most characters of a text.
const LONGEST_TEXT: usize = 500;

/// The most characters of a separator in amounts.
const LONGEST_SEPARATOR: usize = 4;

/// Zero-width joiners and non-joiners, which some languages cannot be written without (Persian, Hindi): they are
/// allowed in an operator's texts.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// The settings and text tables of a file.
#[derive(Debug, Default)]
pub(in crate::rules) struct RawTexts(pub Map<String, Value>);

impl FromToml for RawTexts {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        members(&KNOWN, value, reader, |name, value, reader| match KNOWN.get(name) {
            Some(Value::Object(known)) => members(known, value, reader, text).map(Value::from),
            _ if name == "direction" => word(value, reader, &[("ltr", "ltr"), ("rtl", "rtl")]).map(Value::from),
            _ => separator(name, value, reader),
        })
        .map(Self)
    }

    fn schema() -> Value {
        let mut all = SchemaTable::new(&[
            "`pages/<language tag>.toml`: the texts of customers' pages in a language. Every key may be left out: a built-in",
            "language then has its own text, any other the English one.",
        ]);
        for (name, english) in &*KNOWN {
            let schema = match (english, name.as_str()) {
                (Value::Object(keys), _) => table_schema(keys),
                (_, "direction") => json!({ "type": "string", "enum": ["ltr", "rtl"] }),
                (_, "decimal") => json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_SEPARATOR }),
                _ => json!({ "type": "string", "maxLength": LONGEST_SEPARATOR }),
            };
            let about = match name.as_str() {
                "direction" => "The direction in which the language is written: `ltr` (from left to right) or `rtl`.",
                "decimal" => "The separator between whole units and hundredths of an amount: 1 to 4 characters.",
                "group" => "The separator between thousands of an amount: at most 4 characters.",
                "labels" => "The labels of values.",
                "actions" => "The texts of links and buttons.",
                _ => "The texts of the page in this state.",
            };
            all.key(name, &[about], schema, Absent::Unspecified);
        }
        all.into_schema()
    }
}

fn table_schema(keys: &Map<String, Value>) -> Value {
    let mut texts = SchemaTable::new(&[]);
    for (name, english) in keys {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_TEXT });
        let english = english.as_str().unwrap_or("none");
        let about = format!("1 to {LONGEST_TEXT} characters. English: {english}");
        texts.key(name, &[&about], schema, Absent::Unspecified);
    }
    texts.into_schema()
}

/// Reads the members of a table; notes unknown ones.
fn members(
    known: &Map<String, Value>,
    value: &Spanned<DeValue<'_>>,
    reader: &mut RawReader<'_>,
    read: impl Fn(&str, &Spanned<DeValue<'_>>, &mut RawReader<'_>) -> Option<Value>,
) -> Option<Map<String, Value>> {
    let mut members = Map::new();
    for (key, value) in reader.table(value)? {
        let name = key.get_ref().as_ref();
        if !known.contains_key(name) {
            reader.unknown_key(key, value, &known.keys().map(String::as_str).collect::<Vec<_>>());
        } else if let Some(read) = reader.under(name, |reader| read(name, value, reader)) {
            members.insert(name.to_owned(), read);
        }
    }
    Some(members)
}

/// Reads a separator of amounts. `decimal` must not be empty.
fn separator(name: &str, value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Value> {
    let text = reader.text(value, "a string")?;
    let wrong = |c: char| c.is_control() || is_deceptive(c) || c.is_alphanumeric();
    let reason = if text.is_empty() && name == "decimal" {
        "must not be empty"
    } else if text.chars().count() > LONGEST_SEPARATOR || text.contains(wrong) {
        "must be at most 4 characters without letters, digits, control characters and invisible ones"
    } else {
        return Some(text.into());
    };
    reader.wrong(value.span(), reason);
    None
}

/// Reads a text. Titles, labels and actions have one line.
fn text(name: &str, value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Value> {
    let (breaks, but): (&[char], _) = match name {
        "text" | "hint" => (&['\n'], " other than line breaks"),
        _ => (&[], ""),
    };
    let expected = format!(
        "1 to {LONGEST_TEXT} readable characters: no control characters{but}, and none that are invisible or change \
         the order of others"
    );
    let allowed = [&JOINERS[..], breaks].concat();
    reader.parsed(value, &expected, |text| is_readable(text, LONGEST_TEXT, &allowed).then(|| text.into()))
}
