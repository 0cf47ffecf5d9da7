//! What a schema of `fields` must look like before it is compiled: what it may refer to, which words it uses, and which
//! members it names.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::problem::{ALLOWED_LIST, SchemaProblem};
use crate::rules::problems::{did_you_mean, quoted};

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
const CHECKING: &[&str] = &[
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
pub(super) fn outline(schema: &Value) -> Result<UsedLists, Vec<SchemaProblem>> {
    let Some(top) = schema.as_object() else {
        return Err(vec![problem(&[], "must be a JSON object")]);
    };
    let mut outline = Outline::default();
    outline.top(top);
    outline.schema(schema);
    outline.references(schema);
    if !outline.problems.is_empty() {
        outline.problems.truncate(MOST_PROBLEMS);
        return Err(outline.problems);
    }
    let mut nesting = Nesting { root: schema, at: Vec::new(), open: Vec::new(), deepest: HashMap::new() };
    match nesting.schema(schema, 0) {
        Ok(()) => Ok(outline.lists),
        Err(reason) => Err(vec![problem(&nesting.at, reason)]),
    }
}

fn problem(at: &[String], message: impl Into<String>) -> SchemaProblem {
    SchemaProblem { at: at.to_vec(), message: message.into(), suggestion: None }
}

/// The keys and indices of a reference into the same file.
fn steps(target: &str) -> Vec<String> {
    target.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// The schemas that a keyword holds, each with its name or index where there can be several.
fn schemas_in<'s>(keyword: &str, value: &'s Value) -> Vec<(Option<String>, &'s Value)> {
    match value {
        _ if DATA.contains(&keyword) => Vec::new(),
        Value::Object(schemas) if BY_NAME.contains(&keyword) => {
            schemas.iter().map(|(name, schema)| (Some(name.clone()), schema)).collect()
        }
        Value::Array(schemas) => {
            schemas.iter().enumerate().map(|(index, schema)| (Some(index.to_string()), schema)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![(None, value)],
    }
}

#[derive(Default)]
struct Outline {
    /// The keys and indices that lead to what is being looked at.
    at: Vec<String>,
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

    fn schema(&mut self, schema: &Value) {
        self.schemas.insert(std::ptr::from_ref(schema));
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            self.at.push(keyword.clone());
            self.keyword(keyword, value);
            self.at.pop();
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value) {
        match (keyword, value.as_str()) {
            ("$ref", Some(target)) if target.starts_with("#/") => {
                self.references.push((self.at.clone(), target.to_owned()));
            }
            ("$ref", _) => self.tell("must point into this file, such as \"#/$defs/name\"", None),
            ("format", Some(name)) if self.foreign == 0 => self.format(name),
            ("format", None) if self.foreign == 0 => self.tell("must be the name of a format, a string", None),
            (ALLOWED_LIST, Some(name)) => self.lists.push((self.at.clone(), name.to_owned())),
            (ALLOWED_LIST, None) => self.tell("must be the name of a list, a string", None),
            _ if UNSUPPORTED.contains(&keyword) => {
                self.tell(format!("{} is not supported here", quoted(keyword)), None);
            }
            _ if DATA.contains(&keyword) => {}
            _ => self.schemas_in(keyword, value),
        }
    }

    fn schemas_in(&mut self, keyword: &str, value: &Value) {
        // What is inside a keyword of somebody's own is theirs to name.
        let foreign = keyword == "dependentRequired" || !(CHECKING.contains(&keyword) || OTHERS.contains(&keyword));
        if foreign && self.foreign == 0 {
            self.misspelt(keyword);
        }
        self.foreign += usize::from(foreign);
        let above = self.at.len();
        for (step, schema) in schemas_in(keyword, value) {
            self.at.extend(step);
            self.schema(schema);
            self.at.truncate(above);
        }
        self.foreign -= usize::from(foreign);
    }

    /// An unknown format would be asserted of nothing.
    fn format(&mut self, name: &str) {
        if !FORMATS.contains(&name) {
            let suggestion = did_you_mean(name, FORMATS.iter().copied());
            self.tell(format!("{} is no format of JSON Schema", quoted(name)), suggestion);
        }
    }

    /// JSON Schema passes over unknown keywords, and so over a misspelt one: what it was to check would go unchecked.
    fn misspelt(&mut self, keyword: &str) {
        if !CHECKING.contains(&keyword)
            && self.problems.len() < MOST_PROBLEMS
            && let Some(suggestion) = did_you_mean(keyword, CHECKING.iter().copied())
        {
            self.tell(format!("unknown keyword {}", quoted(keyword)), Some(suggestion));
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

    fn tell(&mut self, message: impl Into<String>, suggestion: Option<String>) {
        self.problems.push(SchemaProblem { at: self.at.clone(), message: message.into(), suggestion });
    }
}

/// How deep schemas may stand in each other: what compiles and applies them goes down a stack, whose end is the process's.
const DEEPEST: usize = 64;

/// Sees that schemas do not stand too deep in each other, references followed.
struct Nesting<'s> {
    root: &'s Value,
    /// The keys and indices that lead to what is being looked at. Left as it is where that fails.
    at: Vec<String>,
    /// The targets of references that are being looked at.
    open: Vec<&'s str>,
    /// How deep targets stood at most where all was well below them: there they need no second look.
    deepest: HashMap<&'s str, usize>,
}

impl<'s> Nesting<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<(), &'static str> {
        let Value::Object(members) = schema else { return Ok(()) };
        if depth > DEEPEST {
            return Err("nests deeper than 64 schemas, references followed");
        }
        for (keyword, value) in members {
            self.at.push(keyword.clone());
            if let ("$ref", Value::String(target)) = (keyword.as_str(), value) {
                self.reference(target, depth + 1)?;
            } else {
                let above = self.at.len();
                for (step, schema) in schemas_in(keyword, value) {
                    self.at.extend(step);
                    self.schema(schema, depth + 1)?;
                    self.at.truncate(above);
                }
            }
            self.at.pop();
        }
        Ok(())
    }

    fn reference(&mut self, target: &'s str, depth: usize) -> Result<(), &'static str> {
        if self.open.contains(&target) {
            return Err("leads back to itself: recursive schemas are not supported");
        }
        if self.deepest.get(target).is_some_and(|known| depth <= *known) {
            return Ok(());
        }
        // That references lead somewhere was seen.
        let Some(schema) = self.root.pointer(&target[1..]) else { return Ok(()) };
        let from = std::mem::replace(&mut self.at, steps(target));
        self.open.push(target);
        self.schema(schema, depth)?;
        self.open.pop();
        self.at = from;
        self.deepest.insert(target, depth);
        Ok(())
    }
}

/// What a schema says of the members of the `fields` object itself, also by way of `$ref`, `allOf`, `if` and their like; each
/// with its place.
pub(super) struct CheckedMembers<'s> {
    /// The names in `properties`.
    pub named: BTreeMap<&'s str, Vec<String>>,
    /// The names that are required: always, or when something else holds, such as a branch of `anyOf`. What stands below `if`
    /// and `not` requires nothing.
    pub required: Vec<(&'s str, Vec<String>)>,
}

/// Finds the members that a schema names and requires, once its outline was checked.
pub(super) fn members(schema: &Value) -> CheckedMembers<'_> {
    let found = CheckedMembers { named: BTreeMap::new(), required: Vec::new() };
    let mut finder = MemberFinder { root: schema, at: Vec::new(), seen: HashSet::new(), found };
    finder.schema(schema, true);
    finder.found
}

struct MemberFinder<'s> {
    root: &'s Value,
    at: Vec<String>,
    /// References that were followed, and whether what they lead to can require something.
    seen: HashSet<(&'s str, bool)>,
    found: CheckedMembers<'s>,
}

impl<'s> MemberFinder<'s> {
    fn schema(&mut self, schema: &'s Value, requires: bool) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            self.at.push(keyword.clone());
            self.keyword(keyword, value, requires);
            self.at.pop();
        }
    }

    fn keyword(&mut self, keyword: &str, value: &'s Value, requires: bool) {
        match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                for name in properties.keys() {
                    let at = self.place(name);
                    self.found.named.entry(name).or_insert(at);
                }
            }
            ("required", names) if requires => self.required(names),
            ("dependentRequired", Value::Object(dependents)) if requires => {
                for (member, names) in dependents {
                    self.at.push(member.clone());
                    self.required(names);
                    self.at.pop();
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "then" | "else", _) => {
                let above = self.at.len();
                for (step, schema) in schemas_in(keyword, value) {
                    self.at.extend(step);
                    self.schema(schema, requires);
                    self.at.truncate(above);
                }
            }
            ("if" | "not", schema) => self.schema(schema, false),
            ("$ref", Value::String(target)) if self.seen.insert((target, requires)) => {
                if let Some(schema) = self.root.pointer(&target[1..]) {
                    let from = std::mem::replace(&mut self.at, steps(target));
                    self.schema(schema, requires);
                    self.at = from;
                }
            }
            _ => {}
        }
    }

    fn required(&mut self, names: &'s Value) {
        for (index, name) in names.as_array().into_iter().flatten().enumerate() {
            if let Some(name) = name.as_str() {
                let at = self.place(&index.to_string());
                self.found.required.push((name, at));
            }
        }
    }

    fn place(&self, step: &str) -> Vec<String> {
        self.at.iter().cloned().chain([step.to_owned()]).collect()
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
            let problems = outline(&schema).unwrap_err();
            assert_eq!(problems.len(), 1, "{schema}");
            assert_eq!(problems[0].at, at, "{schema}");
            assert_eq!(problems[0].suggestion.as_deref(), Some(&*format!("did you mean `{meant}`?")));
        }
        for schema in [
            json!({"example": 1, "note": "x", "comment": "x", "id": 1, "x-order": 1, "readOnly": true, "nullable": true}),
            json!({"x-ours": {"requierd": 1}, "dependentRequired": {"typ": ["requierd"]}}),
            json!({"properties": {"requierd": {}, "typ": {}}, "default": {"typ": 1}}),
        ] {
            assert!(outline(&schema).is_ok(), "{schema}");
        }
    }
}
