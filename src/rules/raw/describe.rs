//! Makes the JSON Schema of a table out of its keys, for `raw_table!`.

use schemars::Schema;
use serde_json::{Map, Value, json};

/// What holds when a file does not say a key.
#[derive(Debug)]
pub(super) enum Absent {
    /// Nothing; or what the key's docs say.
    Unsaid,
    /// This value.
    Default(Value),
    /// The table is wrong.
    Wrong,
}

/// What stands after the type of a key in `raw_table!`, as an [`Absent`].
macro_rules! absent {
    () => {
        crate::rules::raw::describe::Absent::Unsaid
    };
    (required) => {
        crate::rules::raw::describe::Absent::Wrong
    };
    ($default:tt) => {
        crate::rules::raw::describe::Absent::Default(serde_json::json!($default))
    };
}
pub(super) use absent;

/// The schema of a table in the making.
#[derive(Debug)]
pub(super) struct Table {
    about: String,
    keys: Map<String, Value>,
    required: Vec<Value>,
    more: Map<String, Value>,
}

impl Table {
    /// A table without keys; any key that is not added is refused.
    pub fn new(about: &[&str]) -> Self {
        Self { about: prose(about), keys: Map::new(), required: Vec::new(), more: Map::new() }
    }

    /// Adds a key.
    pub fn key(&mut self, name: &str, about: &[&str], schema: Schema, absent: Absent) {
        let Value::Object(mut schema) = schema.to_value() else { return };
        let mut about = prose(about);
        match absent {
            Absent::Unsaid => {}
            Absent::Wrong => {
                about.push_str("\n\nRequired.");
                self.required.push(name.into());
            }
            Absent::Default(value) => {
                about.extend(["\n\nDefault: `", &toml(&value), "`"]);
                schema.insert("default".into(), value);
            }
        }
        schema.insert("description".into(), about.into());
        self.keys.insert(name.to_owned(), Value::Object(schema));
    }

    /// Adds keywords to a key's schema, or sets them anew.
    pub fn key_says(&mut self, name: &str, more: Value) {
        if let (Some(Value::Object(schema)), Value::Object(more)) = (self.keys.get_mut(name), more) {
            schema.extend(more);
        }
    }

    /// Adds keywords to the schema of the whole table.
    pub fn says(&mut self, more: Value) {
        if let Value::Object(more) = more {
            self.more.extend(more);
        }
    }

    /// The schema.
    pub fn into_schema(self) -> Schema {
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("description".into(), self.about.into());
        schema.insert("properties".into(), self.keys.into());
        schema.insert("additionalProperties".into(), false.into());
        if !self.required.is_empty() {
            schema.insert("required".into(), self.required.into());
        }
        schema.extend(self.more);
        schema.into()
    }
}

/// Doc comments as Markdown: the lines of a paragraph become one.
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

/// A default as a rule file writes it.
fn toml(value: &Value) -> String {
    let all = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(elements) => format!("[{}]", all(elements.iter().map(toml).collect())),
        Value::Object(keys) if keys.is_empty() => "{}".to_owned(),
        Value::Object(keys) => {
            format!("{{ {} }}", all(keys.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect()))
        }
        plain => plain.to_string(),
    }
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
    fn defaults_are_shown_as_they_are_written() {
        for (value, shown) in [
            (json!("30s"), "\"30s\""),
            (json!(false), "false"),
            (json!(["a", 1]), "[\"a\", 1]"),
            (json!({}), "{}"),
            (json!({ "a": 1, "b": "c" }), "{ a = 1, b = \"c\" }"),
        ] {
            assert_eq!(toml(&value), shown);
        }
    }
}
