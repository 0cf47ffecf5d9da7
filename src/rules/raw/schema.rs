//! Builds the JSON Schema of a table from its keys.

use serde_json::{Map, Value, json};

use crate::rules::problems::{ShownKeys, names_a_secret};

/// What an absent key means.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) enum Absent {
    /// Nothing, or what the key's description states.
    Unspecified,
    /// This default, as TOML writes it.
    Default(&'static str),
    /// The table is wrong.
    Wrong,
}

impl Absent {
    /// Reports whether a table is wrong without the key.
    pub(crate) const fn is_wrong(self) -> bool {
        matches!(self, Self::Wrong)
    }

    /// Returns the default.
    pub(crate) const fn default(self) -> Option<&'static str> {
        match self {
            Self::Default(written) => Some(written),
            Self::Unspecified | Self::Wrong => None,
        }
    }
}

/// A builder of the schema of a table.
#[derive(Debug)]
pub(in crate::rules) struct SchemaTable {
    about: String,
    keys: Map<String, Value>,
    required: Vec<Value>,
    more: Value,
}

impl SchemaTable {
    /// Creates a table without keys; the schema refuses every key that is not added.
    pub(crate) fn new(about: &[&str]) -> Self {
        Self { about: prose(about), keys: Map::new(), required: Vec::new(), more: json!({}) }
    }

    /// Adds a key.
    pub(crate) fn key(&mut self, name: &str, about: &[&str], mut schema: Value, absent: Absent) {
        let mut about = prose(about);
        match absent {
            Absent::Unspecified => {}
            Absent::Wrong => {
                about.push_str("\n\nRequired.");
                self.required.push(name.into());
            }
            Absent::Default(written) => {
                about.extend(["\n\nDefault: `", written, "`"]);
                add(&mut schema, json!({ "default": json_of(written) }));
            }
        }
        add(&mut schema, json!({ "description": about }));
        self.keys.insert(name.to_owned(), schema);
    }

    /// Adds or replaces keywords of a key's schema.
    pub(crate) fn extend_key(&mut self, name: &str, more: Value) {
        add(self.keys.get_mut(name).expect("the key was added before it is extended"), more);
    }

    /// Adds keywords to the schema of the whole table.
    pub(crate) fn extend(&mut self, more: Value) {
        add(&mut self.more, more);
    }

    /// Returns the schema.
    pub(crate) fn into_schema(self) -> Value {
        let Self { about, keys, required, more } = self;
        let mut schema =
            json!({ "type": "object", "description": about, "properties": keys, "additionalProperties": false });
        if !required.is_empty() {
            add(&mut schema, json!({ "required": required }));
        }
        add(&mut schema, more);
        schema
    }
}

/// Returns the keys of a file by its schema, each with whether its value may be shown of a line that cannot be parsed: nothing of
/// this name is a secret, or has one below it. `None`: the file holds no secret.
pub(super) fn shown_keys(schema: &Value) -> Option<ShownKeys> {
    let mut keys = ShownKeys::new();
    let holds_secret = holds_secret(schema, &mut keys);
    // One may write `v2` for `v2_secret`.
    let secrets: Vec<_> = keys.keys().filter(|name| names_a_secret(name)).cloned().collect();
    for (name, is_shown) in &mut keys {
        *is_shown &= !secrets.iter().any(|secret| secret.starts_with(name));
    }
    holds_secret.then_some(keys)
}

/// Adds the keys of a schema, and reports whether there is a secret: what may be read from a file.
fn holds_secret(schema: &Value, keys: &mut ShownKeys) -> bool {
    let mut holds = schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("file:"));
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        let is_secret = holds_secret(key, keys);
        *keys.entry(name.clone()).or_insert(true) &= !is_secret && !names_a_secret(name);
        holds |= is_secret;
    }
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    for nested in choices.chain(schema.get("additionalProperties")).chain(schema.get("items")) {
        holds |= holds_secret(nested, keys);
    }
    holds
}

/// Adds keywords to a schema, or sets them anew.
pub(in crate::rules) fn add(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}

/// Converts a value from TOML text to JSON.
fn json_of(written: &str) -> Value {
    let document: Option<toml::Table> = format!("x = {written}").parse().ok();
    document.and_then(|document| serde_json::to_value(document.get("x")?).ok()).unwrap_or_default()
}

/// Converts the lines of a doc comment to Markdown, joining the lines of each paragraph.
fn prose(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().map(|line| line.trim()) {
        let begins = text.is_empty() || text.ends_with('\n');
        match line {
            "" => text.push_str("\n\n"),
            _ if line.starts_with("- ") && !begins => text.extend(["\n", line]),
            _ if begins => text.push_str(line),
            _ => text.extend([" ", line]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_become_markdown() {
        let lines = [" One sentence", " on two lines.", "", " A list:", " - one", "   of two lines", " - two"];
        assert_eq!(prose(&lines), "One sentence on two lines.\n\nA list:\n- one of two lines\n- two");
    }

    #[test]
    fn defaults_are_converted_to_json() {
        for (written, expected) in [
            ("\"30s\"", json!("30s")),
            ("false", json!(false)),
            ("[\"a\", 1]", json!(["a", 1])),
            ("{}", json!({})),
            ("{ a = 1, b = \"c\" }", json!({ "a": 1, "b": "c" })),
        ] {
            assert_eq!(json_of(written), expected);
        }
    }
}
