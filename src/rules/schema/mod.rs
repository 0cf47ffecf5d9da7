//! The JSON Schema of a shop's `fields`, compiled once per rule set. [`check`] checks its structure, then the library
//! compiles it with the project's own [`keywords`]. It is applied to [`fields`], and refusals are worded by [`words`].

mod check;
mod fields;
mod keywords;
mod problem;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::json::Node as _;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use regex_syntax::ast::ErrorKind;
use serde_json::{Map, Value};

use self::check::{CheckedMembers, MOST_PROBLEMS};
pub(super) use self::fields::FieldValue;
pub use self::fields::FieldsSchema;
#[cfg(test)]
pub(super) use self::fields::given;
use self::fields::{FieldsJson, SchemaDefault};
use self::keywords::{allowed_list, unique_items};
use self::problem::UNIQUE_ITEMS;
pub(super) use self::problem::{ALLOWED_LIST, AllowedValues, SchemaProblem};
pub use self::problem::{FieldProblem, FieldRule};
use self::words::{field_problem, segment_text};
use super::json_places::Places;
use super::problems::Span;
use crate::domain::{self, CUSTOMER_FIELDS, Direction, MERCHANT_USER_IP, MerchantId};
use crate::names::{did_you_mean, quoted};

/// The allowed-value lists of a rule set.
#[derive(Debug, Default)]
pub(super) struct AllowedLists {
    /// The lists for all merchants, by name.
    pub common: HashMap<String, AllowedValues>,
    /// The lists of single merchants, by name, then by merchant. They replace the common ones.
    pub own: HashMap<String, BTreeMap<String, AllowedValues>>,
}

impl AllowedLists {
    /// Returns the merchants' own lists of this name, by merchant.
    pub(super) fn own_of(&self, name: &str) -> impl Iterator<Item = (&String, &AllowedValues)> {
        self.own.get(name).into_iter().flatten()
    }
}

/// A problem in the text of a schema, and its place.
#[derive(Debug)]
pub(super) struct TextProblem {
    pub span: Span,
    pub message: String,
    pub suggestion: Option<String>,
}

impl FieldsSchema {
    /// Reads and compiles the schema file of one direction of a shop.
    ///
    /// # Errors
    /// All problems of the schema.
    pub(super) fn read(text: &str, direction: Direction, lists: &AllowedLists) -> Result<Self, Vec<TextProblem>> {
        // As every rule file, a schema may begin with a byte order mark, which is no JSON.
        let json = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mark = text.len() - json.len();
        let shifted = |mut problem: TextProblem| {
            problem.span = problem.span.start + mark..problem.span.end + mark;
            problem
        };
        Self::read_json(json, direction, lists).map_err(|problems| problems.into_iter().map(shifted).collect())
    }

    fn read_json(text: &str, direction: Direction, lists: &AllowedLists) -> Result<Self, Vec<TextProblem>> {
        let problem = |span, message| TextProblem { span, message, suggestion: None };
        let schema: Value = serde_json::from_str(text).map_err(|error| {
            // The parser's columns count bytes. Its message names the place, which is shown already.
            let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let (at, words) = ((before + error.column().saturating_sub(1)).min(text.len()), error.to_string());
            let reason = words.split(" at line ").next().unwrap_or_default();
            vec![problem(at..at + 1, format!("not valid JSON: {reason}"))]
        })?;
        let places = Places::of(text);
        let duplicate = |(key, span): &(String, Span)| problem(span.clone(), format!("duplicate key {}", quoted(key)));
        let mut problems: Vec<_> = places.duplicates.iter().map(duplicate).collect();
        let compiled = Self::compile(&schema, direction, lists);
        problems.extend(compiled.as_ref().err().into_iter().flatten().map(|problem| TextProblem {
            span: places.nearest(&problem.at),
            message: format!("{} (the {direction} schema of a shop)", problem.message),
            suggestion: problem.suggestion.clone(),
        }));
        match compiled {
            Ok(schema) if problems.is_empty() => Ok(schema),
            _ => Err(problems),
        }
    }

    /// Compiles the schema of one direction of a shop.
    ///
    /// # Errors
    /// All problems of the schema.
    pub(super) fn compile(
        schema: &Value,
        direction: Direction,
        lists: &AllowedLists,
    ) -> Result<Self, Vec<SchemaProblem>> {
        let used_lists = check::check_structure(schema)?;
        let members = check::members(schema);
        let mut problems = reserved_names(&members, direction);
        problems.extend(missing_lists(&used_lists, lists));
        problems.extend(unnamed_required(&members, direction));
        let defaults = defaults(schema);
        problems.extend(customer_defaults(&defaults));
        problems.truncate(MOST_PROBLEMS);
        if !problems.is_empty() {
            return Err(problems);
        }
        let kept: BTreeSet<Box<str>> = members.named.into_keys().chain([MERCHANT_USER_IP]).map(Box::from).collect();
        let PreparedSchema { schema, requires_ip, names_ip } = prepared(schema);
        let common = validator(&schema, None, lists).map_err(|problem| vec![problem])?;
        check_defaults(&common, &defaults)?;
        let used: BTreeSet<String> = used_lists.into_iter().map(|(_, name)| name).collect();
        let mut own = HashMap::new();
        for (merchant, lists_of_merchant) in own_lists(&used, lists) {
            if let Ok(merchant) = MerchantId::new(merchant) {
                let own_lists = Some((merchant.clone(), lists_of_merchant));
                let validator = validator(&schema, own_lists, lists).map_err(|problem| vec![problem])?;
                own.insert(merchant, validator);
            }
        }
        let (kept, lists) = (kept.into_iter().collect(), used.into_iter().map(String::into).collect());
        let mut names = HashSet::new();
        add_names(&schema, &mut names);
        let defaults = defaults.into_iter().map(|(name, value)| SchemaDefault::new(name, value)).collect();
        Ok(Self { kept, names, lists, defaults, requires_ip, names_ip, common, own })
    }
}

/// Returns the merchants with own lists among the used ones, each with these lists.
fn own_lists<'l>(
    used: &BTreeSet<String>,
    lists: &'l AllowedLists,
) -> BTreeMap<&'l str, HashMap<String, AllowedValues>> {
    let mut own: BTreeMap<&str, HashMap<String, AllowedValues>> = BTreeMap::new();
    for name in used {
        for (merchant, values) in lists.own_of(name) {
            own.entry(merchant).or_default().insert(name.clone(), Arc::clone(values));
        }
    }
    own
}

/// A schema in the form in which it is validated.
struct PreparedSchema {
    schema: Value,
    requires_ip: bool,
    names_ip: bool,
}

/// Removes `merchant_user_ip` from `required`, which is checked separately. If other parts of the schema name it, adds
/// it to `properties`, so that it does not count as an unknown member.
fn prepared(schema: &Value) -> PreparedSchema {
    let mut schema = schema.clone();
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    let requires_ip = required.is_some_and(|names| {
        let before = names.len();
        names.retain(|name| name != MERCHANT_USER_IP);
        names.len() < before
    });
    let names_ip = mentions(&schema, MERCHANT_USER_IP);
    if names_ip && let Some(top) = schema.as_object_mut() {
        let properties = top.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Some(properties) = properties.as_object_mut() {
            properties.entry(MERCHANT_USER_IP).or_insert(Value::Bool(true));
        }
    }
    PreparedSchema { schema, requires_ip, names_ip }
}

/// Adds the names of members that a schema names or requires, at any depth.
fn add_names(schema: &Value, names: &mut HashSet<Box<str>>) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        names.extend(properties.keys().map(|name| Box::from(name.as_str())));
                    }
                    ("required", Value::Array(required)) => {
                        names.extend(required.iter().filter_map(Value::as_str).map(Box::from));
                    }
                    _ => {}
                }
                add_names(value, names);
            }
        }
        Value::Array(schemas) => {
            for schema in schemas {
                add_names(schema, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reports whether a name occurs anywhere in a schema, as a key or as a value.
fn mentions(schema: &Value, name: &str) -> bool {
    match schema {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(members) => members.iter().any(|(key, value)| key == name || mentions(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a problem for each member that v2 reserves: no request could have it in `fields`.
fn reserved_names(members: &CheckedMembers<'_>, direction: Direction) -> Vec<SchemaProblem> {
    let named = members.named.iter().map(|(name, at)| (*name, at));
    let required = members.required.iter().map(|(name, at)| (*name, at));
    let reserved = named.chain(required).filter(|(name, _)| domain::reserved_names(direction).contains(name));
    let problem = |(name, at): (&str, &Vec<String>)| SchemaProblem {
        at: at.clone(),
        message: format!("{} is reserved by v2 and cannot be a member of `fields`", quoted(name)),
        suggestion: None,
    };
    reserved.map(problem).collect()
}

/// Returns a problem for each required member that no `properties` name. Such members are dropped before validation, so
/// that every request would be refused.
fn unnamed_required(members: &CheckedMembers<'_>, direction: Direction) -> Vec<SchemaProblem> {
    let CheckedMembers { named, required } = members;
    // Reserved members are reported by `reserved_names`.
    let reserved = domain::reserved_names(direction);
    let unnamed = |name: &str| name != MERCHANT_USER_IP && !named.contains_key(name) && !reserved.contains(&name);
    let required = required.iter().filter(|(name, _)| unnamed(name)).take(MOST_PROBLEMS);
    let problem = |(name, at): &(&str, Vec<String>)| SchemaProblem {
        at: at.clone(),
        message: format!("{} is required, but `properties` does not name it: it would always be dropped", quoted(name)),
        suggestion: did_you_mean(name, named.keys().copied()),
    };
    required.map(problem).collect()
}

fn missing_lists(used: &[(Vec<String>, String)], lists: &AllowedLists) -> Vec<SchemaProblem> {
    let missing = used.iter().filter(|(_, name)| !lists.common.contains_key(name)).take(MOST_PROBLEMS);
    let problem = |(at, name): &(Vec<String>, String)| SchemaProblem {
        at: at.clone(),
        message: format!("there is no list lists/{}.txt", quoted(name).trim_matches('`')),
        suggestion: did_you_mean(name, lists.common.keys().map(String::as_str)),
    };
    missing.map(problem).collect()
}

/// Returns the defaults of the top-level properties, or of the schemas to which they refer. Defaults of nested objects
/// are only annotations, and one of `merchant_user_ip` is ignored.
fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let default = |(name, property): (&String, &Value)| {
        let default = default_of(schema, property)?.clone();
        (name != MERCHANT_USER_IP).then(|| (name.clone(), default))
    };
    properties.filter_map(default).collect()
}

fn default_of<'s>(root: &'s Value, mut property: &'s Value) -> Option<&'s Value> {
    loop {
        if let Some(default) = property.get("default") {
            return Some(default);
        }
        // References end: `check` has refused recursive ones.
        let target = property.get("$ref")?.as_str()?;
        property = root.pointer(target.strip_prefix('#')?)?;
    }
}

/// Returns a problem for each default of a customer member that requests could not send either.
fn customer_defaults(defaults: &Map<String, Value>) -> Vec<SchemaProblem> {
    let wrong = defaults.iter().filter(|(name, default)| {
        CUSTOMER_FIELDS.contains(&name.as_str()) && !(default.is_string() || default.is_null())
    });
    let problem = |(name, _): (&String, &Value)| SchemaProblem {
        at: vec!["properties".into(), name.clone(), "default".into()],
        message: format!("the default of {} must be a string, as v2 requires", quoted(name)),
        suggestion: None,
    };
    wrong.map(problem).collect()
}

fn check_defaults(validator: &Validator<FieldsJson>, defaults: &Map<String, Value>) -> Result<(), Vec<SchemaProblem>> {
    let instance = Value::Object(defaults.clone());
    let mut problems = Vec::new();
    for error in validator.iter_errors(FieldValue::Given(&instance)) {
        let mut segments = error.instance_path().segments();
        if let Some(LocationSegment::Property(name)) = segments.next() {
            problems.push(SchemaProblem {
                at: vec!["properties".into(), name.to_string(), "default".into()],
                message: format!("the default {}", field_problem(&error, |_| true).reason),
                suggestion: None,
            });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Builds a validator that asserts formats, fetches nothing, matches patterns in linear time and knows the lists.
fn validator(
    schema: &Value,
    own: Option<(MerchantId, HashMap<String, AllowedValues>)>,
    lists: &AllowedLists,
) -> Result<Validator<FieldsJson>, SchemaProblem> {
    let common = lists.common.clone();
    jsonschema::options_for::<FieldsJson>()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .with_keyword(UNIQUE_ITEMS, unique_items)
        .with_keyword(ALLOWED_LIST, move |_, name, _| allowed_list(&common, own.as_ref(), name))
        .build(schema)
        .map_err(|error| compile_problem(&error))
}

/// Returns why a schema does not compile. Parts of the schema may be named, since it is the operator's own text.
fn compile_problem(error: &ValidationError<'_>) -> SchemaProblem {
    let path = |location: &Location| -> Vec<String> { location.segments().map(|s| segment_text(&s)).collect() };
    let at = if error.instance_path().is_empty() { path(error.schema_path()) } else { path(error.instance_path()) };
    let mut message: String = error.to_string().chars().filter(|c| !c.is_control()).take(300).collect();
    if let ValidationErrorKind::Format { format } = error.kind()
        && format == "regex"
    {
        message = pattern_problem(error.instance().as_str().unwrap_or_default());
    }
    SchemaProblem { at, message: format!("not a usable JSON Schema: {message}"), suggestion: None }
}

/// Returns why a pattern does not compile.
fn pattern_problem(pattern: &str) -> String {
    const UNSUPPORTED: &str =
        "is not a regular expression that is matched in linear time (no look-around, no references)";
    match (regex_syntax::parse(pattern), regex::Regex::new(pattern)) {
        (Err(regex_syntax::Error::Parse(error)), _)
            if matches!(error.kind(), ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference) =>
        {
            UNSUPPORTED.into()
        }
        (Err(error), _) => format!("is no usable regular expression: {}", parser_message(&error)),
        (Ok(_), Err(regex::Error::CompiledTooBig(limit))) => {
            format!("is no usable regular expression: it takes more than {} KiB of memory", limit >> 10)
        }
        // The library reads some escapes as ECMAScript does, and the parser does not.
        (Ok(_), _) => "is no usable regular expression".into(),
    }
}

/// Returns the parser's own message about a pattern, without the place.
pub(super) fn parser_message(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        error => error.to_string(),
    }
}
