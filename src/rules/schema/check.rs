//! Checks the structure of a schema of `fields` before it is compiled: references, keywords and nesting. Also finds the
//! members that the schema names.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::problem::{ALLOWED_LIST, SchemaProblem};
use crate::names::{did_you_mean, quoted};

/// The most problems that are reported for one schema.
pub(super) const MOST_PROBLEMS: usize = 50;

/// The formats of the draft. All of them are asserted.
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

/// Keywords that are not supported, because they change what a reference means.
const UNSUPPORTED: &[&str] =
    &["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];

/// Keywords whose values are data, not schemas.
const DATA: &[&str] = &["const", "default", "enum", "examples"];

/// Keywords whose values are objects of schemas by name. The names are no keywords.
const BY_NAME: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords that check or structure. Those too short to tell a misspelling from another name are left out.
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

/// Other known keywords of JSON Schema, which are never taken for a misspelling.
const OTHERS: &[&str] = &["$comment", "$defs", "$ref", "$schema", "definitions", "description", "if", "not", "title"];

/// The lists that a schema uses, each with the path of its name.
pub(super) type UsedLists = Vec<(Vec<String>, String)>;

/// Checks the structure of a schema; returns the lists that it uses.
pub(super) fn check_structure(schema: &Value) -> Result<UsedLists, Vec<SchemaProblem>> {
    let Some(top) = schema.as_object() else {
        return Err(vec![problem(&[], "must be a JSON object")]);
    };
    let mut check_structure = StructureCheck::default();
    check_structure.top(top);
    check_structure.schema(schema);
    check_structure.references(schema);
    if !check_structure.problems.is_empty() {
        check_structure.problems.truncate(MOST_PROBLEMS);
        return Err(check_structure.problems);
    }
    let mut nesting = NestingCheck { root: schema, at: Vec::new(), open: Vec::new(), deepest: HashMap::new() };
    match nesting.schema(schema, 0) {
        Ok(()) => Ok(check_structure.lists),
        Err(reason) => Err(vec![problem(&nesting.at, reason)]),
    }
}

fn problem(at: &[String], message: impl Into<String>) -> SchemaProblem {
    SchemaProblem { at: at.to_vec(), message: message.into(), suggestion: None }
}

/// Returns the path of keys and indices of a reference into the same file.
fn steps(target: &str) -> Vec<String> {
    target.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// Returns the schemas in a keyword's value, each with its name or index where there can be several.
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
struct StructureCheck {
    /// The path of keys and indices to the current value.
    at: Vec<String>,
    problems: Vec<SchemaProblem>,
    lists: UsedLists,
    /// Paths and targets of `$ref`.
    references: Vec<(Vec<String>, String)>,
    /// How many unknown keywords enclose the current schema.
    unknown_depth: usize,
    /// The addresses of all schemas.
    schemas: HashSet<*const Value>,
}

impl StructureCheck {
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
            ("$ref", _) => self.add_problem("must point into this file, such as \"#/$defs/name\"", None),
            ("format", Some(name)) if self.unknown_depth == 0 => self.format(name),
            ("format", None) if self.unknown_depth == 0 => {
                self.add_problem("must be the name of a format, a string", None);
            }
            (ALLOWED_LIST, Some(name)) => self.lists.push((self.at.clone(), name.to_owned())),
            (ALLOWED_LIST, None) => self.add_problem("must be the name of a list, a string", None),
            _ if UNSUPPORTED.contains(&keyword) => {
                self.add_problem(format!("{} is not supported here", quoted(keyword)), None);
            }
            _ if DATA.contains(&keyword) => {}
            _ => self.schemas_in(keyword, value),
        }
    }

    fn schemas_in(&mut self, keyword: &str, value: &Value) {
        // Names inside an unknown keyword are not checked.
        let is_unknown = keyword == "dependentRequired" || !(CHECKING.contains(&keyword) || OTHERS.contains(&keyword));
        if is_unknown && self.unknown_depth == 0 {
            self.check_spelling(keyword);
        }
        self.unknown_depth += usize::from(is_unknown);
        let above = self.at.len();
        for (step, schema) in schemas_in(keyword, value) {
            self.at.extend(step);
            self.schema(schema);
            self.at.truncate(above);
        }
        self.unknown_depth -= usize::from(is_unknown);
    }

    /// Notes an unknown format, which would check nothing.
    fn format(&mut self, name: &str) {
        if !FORMATS.contains(&name) {
            let suggestion = did_you_mean(name, FORMATS.iter().copied());
            self.add_problem(format!("{} is no format of JSON Schema", quoted(name)), suggestion);
        }
    }

    /// Notes a misspelt keyword. JSON Schema ignores unknown keywords, so its check would silently be skipped.
    fn check_spelling(&mut self, keyword: &str) {
        if !CHECKING.contains(&keyword)
            && self.problems.len() < MOST_PROBLEMS
            && let Some(suggestion) = did_you_mean(keyword, CHECKING.iter().copied())
        {
            self.add_problem(format!("unknown keyword {}", quoted(keyword)), Some(suggestion));
        }
    }

    /// Notes references that do not lead to a schema.
    fn references(&mut self, schema: &Value) {
        for (at, target) in std::mem::take(&mut self.references) {
            match schema.pointer(&target[1..]) {
                None => self.problems.push(problem(&at, "refers to nothing in this file")),
                Some(place) if !self.schemas.contains(&std::ptr::from_ref(place)) => {
                    self.problems.push(problem(&at, "refers to no schema"));
                }
                Some(_) => {}
            }
        }
    }

    fn add_problem(&mut self, message: impl Into<String>, suggestion: Option<String>) {
        self.problems.push(SchemaProblem { at: self.at.clone(), message: message.into(), suggestion });
    }
}

/// The deepest nesting of schemas. Compiling and validating them is recursive, and a stack overflow would end the
/// process.
const DEEPEST: usize = 64;

/// Checks that schemas do not nest too deep, references followed.
struct NestingCheck<'s> {
    root: &'s Value,
    /// The path of keys and indices to the current schema. On failure it stays at the failing one.
    at: Vec<String>,
    /// The targets of the references that are being followed.
    open: Vec<&'s str>,
    /// The largest depth at which each target has passed: at this depth or above, it is not checked again.
    deepest: HashMap<&'s str, usize>,
}

impl<'s> NestingCheck<'s> {
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
        // `StructureCheck::references` has checked that references lead somewhere.
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

/// The members of the `fields` object that a schema names and requires, including through `$ref`, `allOf`, `if` and the
/// like; each with its path.
pub(super) struct CheckedMembers<'s> {
    /// The names in `properties`.
    pub named: BTreeMap<&'s str, Vec<String>>,
    /// The names that are required, always or conditionally, such as in a branch of `anyOf`. Names below `if` and `not`
    /// require nothing.
    pub required: Vec<(&'s str, Vec<String>)>,
}

/// Finds the members that a schema names and requires, after [`check_structure`] has passed.
pub(super) fn members(schema: &Value) -> CheckedMembers<'_> {
    let found = CheckedMembers { named: BTreeMap::new(), required: Vec::new() };
    let mut finder = MemberFinder { root: schema, at: Vec::new(), seen: HashSet::new(), found };
    finder.schema(schema, true);
    finder.found
}

struct MemberFinder<'s> {
    root: &'s Value,
    at: Vec<String>,
    /// The references that were followed, and whether names below them were required.
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
    fn misspelt_keywords_are_found_and_unknown_ones_ignored() {
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
            let problems = check_structure(&schema).unwrap_err();
            assert_eq!(problems.len(), 1, "{schema}");
            assert_eq!(problems[0].at, at, "{schema}");
            assert_eq!(problems[0].suggestion.as_deref(), Some(&*format!("did you mean `{meant}`?")));
        }
        for schema in [
            json!({"example": 1, "note": "x", "comment": "x", "id": 1, "x-order": 1, "readOnly": true, "nullable": true}),
            json!({"x-ours": {"requierd": 1}, "dependentRequired": {"typ": ["requierd"]}}),
            json!({"properties": {"requierd": {}, "typ": {}}, "default": {"typ": 1}}),
        ] {
            assert!(check_structure(&schema).is_ok(), "{schema}");
        }
    }
}
