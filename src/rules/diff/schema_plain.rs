//! A schema as it is compared: references followed, words that check nothing left out, one spelling for what can be
//! spelled in several ways.

use serde_json::{Map, Value, json};

use crate::rules::schema::ALLOWED_LIST;
use crate::rules::schema_shape::CHECKING;

/// How many values a schema may become: one that refers to the same place again and again grows.
const MOST_VALUES: usize = 200_000;

/// Keywords that check, beside those that a misspelling is told from.
const OTHERS: &[&str] = &["if", "not", "contentEncoding", "contentMediaType"];

/// Keywords that hold one schema.
pub(super) const ONE: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that hold a list of schemas.
pub(super) const SEVERAL: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords that hold schemas by name.
const NAMED: &[&str] = &["dependentSchemas", "patternProperties", "properties"];

/// Keywords whose meaning depends on others beside them: what stands with one cannot be moved.
const BOUND: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "maxContains",
    "minContains",
    "prefixItems",
    "patternProperties",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The schema as it is compared; nothing, when it grows too large.
pub(super) fn plain(root: &Value) -> Option<Value> {
    let mut plain = Plain { root, left: MOST_VALUES }.schema(root)?;
    // `fields` is an object, whether the schema says so or not.
    if let Some(top) = plain.as_object_mut() {
        top.remove("type");
    }
    Some(plain)
}

struct Plain<'a> {
    root: &'a Value,
    left: usize,
}

impl Plain<'_> {
    fn schema(&mut self, schema: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let Value::Object(members) = schema else {
            return Some(if schema == &Value::Bool(true) { json!({}) } else { schema.clone() });
        };
        let mut plain = Map::new();
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            if keyword != "allOf" && (CHECKING.contains(&keyword) || OTHERS.contains(&keyword)) {
                let value = self.keyword(keyword, value)?;
                if !asks_nothing(keyword, &value) {
                    plain.insert(keyword.to_owned(), value);
                }
            }
        }
        let mut parts = Vec::new();
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            // References were seen to lead somewhere, and to end.
            parts.push(self.schema(target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))?)?);
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            parts.push(self.schema(part)?);
        }
        Some(Value::Object(joined(plain, parts)))
    }

    fn keyword(&mut self, keyword: &str, value: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(values(value))?;
        Some(match value {
            _ if ONE.contains(&keyword) => self.schema(value)?,
            Value::Array(schemas) if SEVERAL.contains(&keyword) => {
                Value::Array(schemas.iter().map(|schema| self.schema(schema)).collect::<Option<_>>()?)
            }
            Value::Object(schemas) if NAMED.contains(&keyword) => {
                let plain = |(name, schema): (&String, &Value)| Some((name.clone(), self.schema(schema)?));
                Value::Object(schemas.iter().map(plain).collect::<Option<_>>()?)
            }
            Value::Array(names) if keyword == "required" => sorted(names),
            Value::Object(names) if keyword == "dependentRequired" => {
                let list = |(name, names): (&String, &Value)| {
                    (name.clone(), names.as_array().map_or_else(|| names.clone(), |names| sorted(names)))
                };
                Value::Object(names.iter().map(list).collect())
            }
            Value::Array(kinds) if keyword == "type" => sorted(kinds),
            Value::String(kind) if keyword == "type" => json!([kind]),
            Value::String(name) if keyword == ALLOWED_LIST => json!(name),
            _ => number(value),
        })
    }
}

/// Keywords that say what holds without them.
fn asks_nothing(keyword: &str, value: &Value) -> bool {
    match keyword {
        "required" | "properties" | "dependentRequired" | "dependentSchemas" => {
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
        }
        "items" | "propertyNames" => *value == json!({}),
        "minLength" | "minItems" | "minProperties" => *value == json!(0),
        "uniqueItems" => *value == json!(false),
        _ => false,
    }
}

/// What applies together, in one schema as far as nothing is in its way.
fn joined(mut plain: Map<String, Value>, parts: Vec<Value>) -> Map<String, Value> {
    let mut apart = Vec::new();
    for part in parts {
        match part {
            Value::Object(part) if part.is_empty() => {}
            Value::Object(part) if fits(&plain, &part) => join(&mut plain, part),
            part => apart.push(part),
        }
    }
    if !apart.is_empty() {
        let said = plain.remove("allOf").and_then(|said| said.as_array().cloned()).unwrap_or_default();
        plain.insert("allOf".to_owned(), Value::Array(said.into_iter().chain(apart).collect()));
    }
    plain
}

fn fits(plain: &Map<String, Value>, part: &Map<String, Value>) -> bool {
    let bound = |schema: &Map<String, Value>| schema.keys().any(|keyword| BOUND.contains(&keyword.as_str()));
    if !plain.is_empty() && (bound(plain) || bound(part)) {
        return false;
    }
    part.iter().all(|(keyword, value)| match (keyword.as_str(), plain.get(keyword)) {
        (_, None) | ("required" | "allOf", _) => true,
        ("properties", Some(Value::Object(said))) => {
            value.as_object().is_some_and(|value| value.keys().all(|name| !said.contains_key(name)))
        }
        (_, Some(said)) => said == value,
    })
}

fn join(plain: &mut Map<String, Value>, part: Map<String, Value>) {
    for (keyword, value) in part {
        match (plain.get_mut(&keyword), value) {
            (Some(Value::Object(said)), Value::Object(value)) if keyword == "properties" => said.extend(value),
            (Some(Value::Array(said)), Value::Array(value)) if keyword == "required" || keyword == "allOf" => {
                said.extend(value);
                if keyword == "required" {
                    let names = sorted(said);
                    plain.insert(keyword, names);
                }
            }
            (_, value) => {
                plain.insert(keyword, value);
            }
        }
    }
}

/// Names without an order, each once.
fn sorted(names: &[Value]) -> Value {
    let mut names = names.to_vec();
    names.sort_by_key(Value::to_string);
    names.dedup();
    Value::Array(names)
}

/// `1.0` and `1` are one number.
pub(super) fn number(value: &Value) -> Value {
    match value {
        Value::Number(said) => match said.as_f64() {
            Some(float) if said.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("{float:.0}").parse::<i64>().map_or_else(|_| value.clone(), Value::from)
            }
            _ => value.clone(),
        },
        Value::Array(elements) => Value::Array(elements.iter().map(number).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), number(value))).collect())
        }
        _ => value.clone(),
    }
}

fn values(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_schema_are_one() {
        for (one, other) in [
            (json!({"items": {"type": "string"}}), json!({"items": {"type": ["string"], "title": "x", "x-note": 1}})),
            (json!({}), json!({"type": "object", "required": [], "properties": {}})),
            (
                json!({"not": {"type": "string"}}),
                json!({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}}),
            ),
            (json!({"allOf": [{"required": ["b"]}], "required": ["a"]}), json!({"required": ["b", "a", "a"]})),
            (json!({"allOf": [{"items": {"type": "string"}}]}), json!({"items": {"type": "string"}})),
            (
                json!({"allOf": [{"properties": {"a": {}}}], "properties": {"b": true}}),
                json!({"properties": {"a": true, "b": {}}}),
            ),
            (json!({"minimum": 1.0}), json!({"minimum": 1})),
            (json!({"items": {"default": 1}}), json!({"items": true})),
        ] {
            assert_eq!(plain(&one), plain(&other), "{one} {other}");
        }
        for (one, other) in [
            (json!({"not": {"type": "string"}}), json!({"not": {"type": ["string", "null"]}})),
            (
                json!({"allOf": [{"additionalProperties": false}], "properties": {"a": {}}}),
                json!({"additionalProperties": false, "properties": {"a": {}}}),
            ),
            (json!({"allOf": [{"minLength": 2}], "minLength": 1}), json!({"minLength": 1})),
            (json!({"allOf": [false]}), json!({})),
            (json!({"minimum": 1.5}), json!({"minimum": 1})),
        ] {
            assert_ne!(plain(&one), plain(&other), "{one} {other}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let mut definitions = Map::new();
        for step in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
            definitions.insert(format!("d{step}"), json!({ "properties": { "a": next, "b": next } }));
        }
        definitions.insert("d40".into(), json!({}));
        assert_eq!(plain(&json!({ "$ref": "#/$defs/d0", "$defs": definitions })), None);
    }
}
