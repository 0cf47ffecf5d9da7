//! What a schema of `fields` must look like before it is compiled: what it may refer to, and which words
//! it uses.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::problems::{did_you_mean, quoted};
use super::schema::{ALLOWED_LIST, SchemaProblem};

/// How many problems of one schema are told: more would bury the first ones.
pub(super) const MOST_PROBLEMS: usize = 50;

/// The formats of the draft: all of them are asserted.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Keywords that this service does not support: they move what a reference means.
const UNSUPPORTED: &[&str] =
    &["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];

/// Keywords whose values are data, not schemas.
const DATA: &[&str] = &["const", "default", "enum", "examples"];

/// Keywords whose values are objects of schemas by name: the names are no keywords.
const BY_NAME: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords that check or structure, as far as they are long enough to tell a misspelling from a name of its own.
pub(super) const CHECKING: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    ALLOWED_LIST,
];

/// Other keywords of JSON Schema, and those of others that are near one that checks.
const OTHERS: &[&str] = &["$comment", "$defs", "$ref", "$schema", "definitions", "description", "if", "not", "title"];

/// The lists that a schema uses, each with the place of its name.
pub(super) type UsedLists = Vec<(Vec<String>, String)>;

/// Checks a schema's outline; finds the lists it uses.
pub(super) fn check(schema: &Value) -> Result<UsedLists, Vec<SchemaProblem>> {
    let Some(top) = schema.as_object() else {
        return Err(vec![problem(&[], "must be a JSON object")]);
    };
    let mut outline = Outline::default();
    outline.top(top);
    outline.schema(schema, &mut Vec::new());
    outline.references(schema);
    if !outline.problems.is_empty() {
        outline.problems.truncate(MOST_PROBLEMS);
        return Err(outline.problems);
    }
    let mut nesting = Nesting { root: schema, known: HashMap::new(), open: Vec::new(), at: Vec::new() };
    match nesting.height(schema, 0) {
        Ok(_) => Ok(outline.lists),
        Err(reason) => Err(vec![problem(&nesting.at, reason)]),
    }
}

fn problem(at: &[String], message: impl Into<String>) -> SchemaProblem {
    SchemaProblem { at: at.to_vec(), message: message.into(), suggestion: None }
}

/// The keys and indices of a reference into the same file.
pub(super) fn steps(target: &str) -> Vec<String> {
    target.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

#[derive(Default)]
struct Outline {
    problems: Vec<SchemaProblem>,
    lists: UsedLists,
    /// Places and targets of `$ref`.
    references: Vec<(Vec<String>, String)>,
    /// How many unknown keywords are above.
    foreign: usize,
    /// Where schemas stand, by address.
    schemas: HashSet<*const Value>,
}

impl Outline {
    fn top(&mut self, top: &Map<String, Value>) {
        const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
        if let Some(dialect) = top.get("$schema")
            && dialect.as_str().map(|text| text.trim_end_matches('#')) != Some(DIALECT)
        {
            self.problems.push(problem(&["$schema".into()], format!("must be \"{DIALECT}\"")));
        }
        if top.get("type").is_some_and(|kind| kind != "object") {
            self.problems.push(problem(&["type".into()], "must be \"object\": the schema describes all of `fields`"));
        }
    }

    fn schema(&mut self, schema: &Value, at: &mut Vec<String>) {
        self.schemas.insert(std::ptr::from_ref(schema));
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    at.push(key.clone());
                    self.keyword(key, value, at);
                    at.pop();
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    at.push(index.to_string());
                    self.schema(element, at);
                    at.pop();
                }
            }
            _ => {}
        }
    }

    fn keyword(&mut self, key: &str, value: &Value, at: &mut Vec<String>) {
        if DATA.contains(&key) {
            return;
        }
        if UNSUPPORTED.contains(&key) {
            self.problems.push(problem(at, format!("{} is not supported here", quoted(key))));
        } else if key == "$ref" {
            self.reference(value, at);
        } else if key == "format" && self.foreign == 0 {
            self.format(value, at);
        } else if key == ALLOWED_LIST {
            match value.as_str() {
                Some(name) => self.lists.push((at.clone(), name.to_owned())),
                None => self.problems.push(problem(at, "must be the name of a list, a string")),
            }
        } else if BY_NAME.contains(&key)
            && let Some(schemas) = value.as_object()
        {
            for (name, schema) in schemas {
                at.push(name.clone());
                self.schema(schema, at);
                at.pop();
            }
        } else {
            // What is inside a keyword of somebody's own is theirs to name.
            let foreign = key == "dependentRequired" || !(CHECKING.contains(&key) || OTHERS.contains(&key));
            if foreign && self.foreign == 0 {
                self.misspelt(key, at);
            }
            self.foreign += usize::from(foreign);
            self.schema(value, at);
            self.foreign -= usize::from(foreign);
        }
    }

    /// An unknown format would be asserted of nothing.
    fn format(&mut self, value: &Value, at: &[String]) {
        match value.as_str() {
            Some(name) if FORMATS.contains(&name) => {}
            Some(name) => {
                let message = format!("{} is no format of JSON Schema", quoted(name));
                let suggestion = did_you_mean(name, FORMATS.iter().copied());
                self.problems.push(SchemaProblem { at: at.to_vec(), message, suggestion });
            }
            None => self.problems.push(problem(at, "must be the name of a format, a string")),
        }
    }

    /// JSON Schema passes over unknown keywords, and so over a misspelt one: what it was to check would go unchecked.
    fn misspelt(&mut self, key: &str, at: &[String]) {
        if !CHECKING.contains(&key)
            && self.problems.len() < MOST_PROBLEMS
            && let Some(suggestion) = did_you_mean(key, CHECKING.iter().copied())
        {
            let message = format!("unknown keyword {}", quoted(key));
            self.problems.push(SchemaProblem { at: at.to_vec(), message, suggestion: Some(suggestion) });
        }
    }

    fn reference(&mut self, value: &Value, at: &[String]) {
        match value.as_str() {
            Some(target) if target.starts_with("#/") => self.references.push((at.to_vec(), target.to_owned())),
            _ => self.problems.push(problem(at, "must point into this file, such as \"#/$defs/name\"")),
        }
    }

    /// References must lead to a schema.
    fn references(&mut self, schema: &Value) {
        for (at, target) in std::mem::take(&mut self.references) {
            match schema.pointer(&target[1..]) {
                None => self.problems.push(problem(&at, "points at nothing in this file")),
                Some(place) if !self.schemas.contains(&std::ptr::from_ref(place)) => {
                    self.problems.push(problem(&at, "points at no schema"));
                }
                Some(_) => {}
            }
        }
    }
}

/// How deep schemas may stand in each other: what compiles and applies them goes down a stack, whose end is the process's.
const DEEPEST: usize = 64;

/// Finds how deep schemas stand in each other, references followed.
struct Nesting<'s> {
    root: &'s Value,
    /// How deep it goes below the targets of references.
    known: HashMap<&'s str, usize>,
    /// The targets that are being looked at.
    open: Vec<&'s str>,
    /// The keys and indices that lead to what is being looked at. Left as it is where that fails.
    at: Vec<String>,
}

impl<'s> Nesting<'s> {
    fn height(&mut self, schema: &'s Value, depth: usize) -> Result<usize, &'static str> {
        let Value::Object(members) = schema else { return Ok(0) };
        if depth > DEEPEST {
            return Err("nests deeper than 64 schemas, references followed");
        }
        let mut height = 0;
        for (keyword, value) in members {
            self.at.push(keyword.clone());
            let below = match (keyword.as_str(), value) {
                (keyword, _) if DATA.contains(&keyword) => 0,
                ("$ref", Value::String(target)) => self.reference(target, depth + 1)? + 1,
                (keyword, Value::Object(schemas)) if BY_NAME.contains(&keyword) => self.highest(schemas, depth + 1)?,
                (_, Value::Object(_)) => self.height(value, depth + 1)? + 1,
                (_, Value::Array(schemas)) => {
                    let mut highest = 0;
                    for (index, schema) in schemas.iter().enumerate() {
                        highest = highest.max(self.below(index.to_string(), schema, depth + 1)?);
                    }
                    highest
                }
                _ => 0,
            };
            self.at.pop();
            height = height.max(below);
        }
        Ok(height)
    }

    /// Of several schemas by name.
    fn highest(&mut self, schemas: &'s Map<String, Value>, depth: usize) -> Result<usize, &'static str> {
        let mut highest = 0;
        for (name, schema) in schemas {
            highest = highest.max(self.below(name.clone(), schema, depth)?);
        }
        Ok(highest)
    }

    fn below(&mut self, step: String, schema: &'s Value, depth: usize) -> Result<usize, &'static str> {
        self.at.push(step);
        let height = self.height(schema, depth)? + 1;
        self.at.pop();
        Ok(height)
    }

    fn reference(&mut self, target: &'s str, depth: usize) -> Result<usize, &'static str> {
        if self.open.contains(&target) {
            return Err("leads back to itself: recursive schemas are not supported");
        }
        if let Some(height) = self.known.get(target).copied().filter(|height| depth + height <= DEEPEST) {
            return Ok(height);
        }
        // That references lead somewhere was seen.
        let Some(schema) = self.root.pointer(&target[1..]) else { return Ok(0) };
        let from = std::mem::replace(&mut self.at, steps(target));
        self.open.push(target);
        let height = self.height(schema, depth)?;
        self.open.pop();
        self.at = from;
        self.known.insert(target, height);
        Ok(height)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misspelt_keywords_are_found_and_foreign_ones_left() {
        for (schema, at, meant) in [
            (json!({"requierd": ["a"]}), vec!["requierd"], "required"),
            (json!({"propertys": {}}), vec!["propertys"], "properties"),
            (
                json!({"properties": {"a": {"x-alowed-list": "l"}}}),
                vec!["properties", "a", "x-alowed-list"],
                ALLOWED_LIST,
            ),
            (json!({"anyOf": [{"maxLenght": 1}]}), vec!["anyOf", "0", "maxLenght"], "maxLength"),
        ] {
            let problems = check(&schema).unwrap_err();
            assert_eq!(problems.len(), 1, "{schema}");
            assert_eq!(problems[0].at, at, "{schema}");
            assert_eq!(problems[0].suggestion.as_deref(), Some(&*format!("did you mean `{meant}`?")));
        }
        for schema in [
            json!({"example": 1, "note": "x", "comment": "x", "id": 1, "x-order": 1, "readOnly": true, "nullable": true}),
            json!({"x-ours": {"requierd": 1}, "dependentRequired": {"typ": ["requierd"]}}),
            json!({"properties": {"requierd": {}, "typ": {}}, "default": {"typ": 1}}),
        ] {
            assert!(check(&schema).is_ok(), "{schema}");
        }
    }
}
