//! The JSON Schema of a shop's `fields`, compiled once per rule set.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::problems::{did_you_mean, quoted};
use super::schema_shape;
use crate::domain::{self, Direction, MERCHANT_USER_IP, MerchantId};

/// The keyword that names an allowed-value list (contract section 2).
pub(super) const ALLOWED_LIST: &str = "x-allowed-list";

/// The values of one list.
pub(super) type AllowedValues = Arc<HashSet<Box<str>>>;

/// The allowed-value lists of a rule set.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// By name.
    pub common: HashMap<String, AllowedValues>,
    /// By merchant, then by name: used in place of the common ones.
    pub own: HashMap<String, HashMap<String, AllowedValues>>,
}

/// What is wrong with a schema, and where: the keys and indices that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaProblem {
    pub at: Vec<String>,
    pub message: String,
    pub suggestion: Option<String>,
}

/// A compiled schema of `fields`.
#[derive(Debug)]
pub struct FieldsSchema {
    kept: Arc<[Box<str>]>,
    defaults: Map<String, Value>,
    /// Whether the schema says anything about `merchant_user_ip`, wherever; if not, it is not shown to it.
    names_ip: bool,
    common: Validator,
    /// For merchants with lists of their own.
    own: HashMap<MerchantId, Validator>,
}

/// What a schema refused: never with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The member's path below `fields`, dots between names; empty for the object as a whole.
    pub path: String,
    /// Half a sentence: "is required", "must be a string", "must be one of the values agreed for this shop".
    pub reason: String,
}

impl FieldsSchema {
    /// Compiles the schema of one direction of a shop.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn compile(schema: &Value, direction: Direction, lists: &Lists) -> Result<Self, Vec<SchemaProblem>> {
        let used_lists = schema_shape::check(schema)?;
        let mut problems = reserved_names(schema, direction);
        problems.extend(missing_lists(&used_lists, lists));
        let named = property_names(schema);
        problems.extend(unnamed_required(schema, &named));
        if !problems.is_empty() {
            return Err(problems);
        }
        let names_ip = mentions(schema, MERCHANT_USER_IP);
        let kept: BTreeSet<Box<str>> = named.into_iter().chain([MERCHANT_USER_IP]).map(Box::from).collect();
        let defaults = defaults(schema);
        let common = validator(schema, None, lists).map_err(|problem| vec![problem])?;
        check_defaults(&common, &defaults)?;
        let mut own = HashMap::new();
        for (merchant, theirs) in &lists.own {
            if let Ok(merchant) = MerchantId::new(merchant)
                && used_lists.iter().any(|(_, name)| theirs.contains_key(name))
            {
                let validator = validator(schema, Some(theirs), lists).map_err(|problem| vec![problem])?;
                own.insert(merchant, validator);
            }
        }
        Ok(Self { kept: kept.into_iter().collect(), defaults, names_ip, common, own })
    }

    /// The member names that the schema keeps, sorted: its `properties`, and `merchant_user_ip`.
    #[must_use]
    pub fn kept(&self) -> &Arc<[Box<str>]> {
        &self.kept
    }

    /// Uses another schema's list of names when it is the same, so that equal lists are kept once.
    pub(super) fn share_kept(&mut self, known: &mut HashSet<Arc<[Box<str>]>>) {
        if let Some(same) = known.get(&self.kept) {
            self.kept = Arc::clone(same);
        } else {
            known.insert(Arc::clone(&self.kept));
        }
    }

    /// Checks members (already reduced to the kept ones, a `null` `merchant_user_ip` removed) for a merchant, whose own
    /// allowed-value lists go before the common ones. Returns the members that the schema's defaults add, as an object.
    ///
    /// # Errors
    /// The first member that the schema refuses.
    pub fn check(
        &self,
        merchant: &MerchantId,
        members: &Map<String, Value>,
    ) -> Result<Map<String, Value>, FieldProblem> {
        let mut added = self.defaults.clone();
        added.retain(|name, _| !members.contains_key(name));
        let mut whole = members.clone();
        if !self.names_ip {
            whole.remove(MERCHANT_USER_IP);
        }
        whole.extend(added.iter().map(|(name, value)| (name.clone(), value.clone())));
        let whole = Value::Object(whole);
        let validator = self.own.get(merchant).unwrap_or(&self.common);
        validator.validate(&whole).map_err(|error| field_problem(&error))?;
        Ok(added)
    }
}

/// Whether a name stands anywhere in a schema, as a key or as a value.
fn mentions(schema: &Value, name: &str) -> bool {
    match schema {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(members) => members.iter().any(|(key, value)| key == name || mentions(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The names in the schema's `properties`.
fn property_names(schema: &Value) -> BTreeSet<&str> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// A schema that offers or asks for a name which v2 refuses inside `fields` could never be met.
fn reserved_names(schema: &Value, direction: Direction) -> Vec<SchemaProblem> {
    let reserved = |name: &str| domain::reserved_names(direction).contains(&name);
    let message = |name: &str| format!("{} is reserved by v2 and cannot be a member of `fields`", quoted(name));
    let properties = property_names(schema).into_iter().filter(|name| reserved(name)).map(|name| SchemaProblem {
        at: vec!["properties".into(), name.into()],
        message: message(name),
        suggestion: None,
    });
    let required = required(schema).enumerate().filter(|(_, name)| reserved(name)).map(|(index, name)| SchemaProblem {
        at: vec!["required".into(), index.to_string()],
        message: message(name),
        suggestion: None,
    });
    properties.chain(required).collect()
}

/// Members that `properties` does not name are dropped before the schema is applied, so that requiring one refuses all.
fn unnamed_required(schema: &Value, named: &BTreeSet<&str>) -> Vec<SchemaProblem> {
    let unnamed = |name: &str| name != MERCHANT_USER_IP && !named.contains(name);
    let required = required(schema).enumerate().filter(|(_, name)| unnamed(name));
    let problem = |(index, name): (usize, &str)| SchemaProblem {
        at: vec!["required".into(), index.to_string()],
        message: format!("{} is required, but `properties` does not name it: it would always be dropped", quoted(name)),
        suggestion: did_you_mean(name, named.iter().copied()),
    };
    required.map(problem).collect()
}

fn missing_lists(used: &[(Vec<String>, String)], lists: &Lists) -> Vec<SchemaProblem> {
    let missing = used.iter().filter(|(_, name)| !lists.common.contains_key(name));
    let problem = |(at, name): &(Vec<String>, String)| SchemaProblem {
        at: at.clone(),
        message: format!("there is no list lists/{}.txt", quoted(name).trim_matches('`')),
        suggestion: did_you_mean(name, lists.common.keys().map(String::as_str)),
    };
    missing.map(problem).collect()
}

/// The defaults of the schema's own properties. Those of nested objects are annotations only, and one for
/// `merchant_user_ip` is ignored.
fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let default = |(name, property): (&String, &Value)| {
        let default = property.get("default")?.clone();
        (name != MERCHANT_USER_IP).then(|| (name.clone(), default))
    };
    properties.filter_map(default).collect()
}

fn check_defaults(validator: &Validator, defaults: &Map<String, Value>) -> Result<(), Vec<SchemaProblem>> {
    let instance = Value::Object(defaults.clone());
    let mut problems = Vec::new();
    for error in validator.iter_errors(&instance) {
        let mut segments = error.instance_path().segments();
        if let Some(LocationSegment::Property(name)) = segments.next() {
            problems.push(SchemaProblem {
                at: vec!["properties".into(), name.to_string(), "default".into()],
                message: format!("the default {}", field_problem(&error).reason),
                suggestion: None,
            });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// A validator that asserts formats, fetches nothing, matches patterns in linear time and knows the lists.
fn validator(
    schema: &Value,
    own: Option<&HashMap<String, AllowedValues>>,
    lists: &Lists,
) -> Result<Validator, SchemaProblem> {
    let mut known = lists.common.clone();
    known.extend(own.into_iter().flatten().map(|(name, values)| (name.clone(), Arc::clone(values))));
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .with_keyword(ALLOWED_LIST, move |_, name, _| allowed_list(&known, name))
        .build(schema)
        .map_err(|error| compile_problem(&error))
}

fn allowed_list<'a>(
    known: &HashMap<String, AllowedValues>,
    name: &'a Value,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match name.as_str().and_then(|name| known.get(name)) {
        Some(values) => Ok(Box::new(AllowedList(Arc::clone(values)))),
        None => Err(ValidationError::schema("x-allowed-list names no list")),
    }
}

/// `x-allowed-list`: a string, or a number by its JSON text, must be a line of the list.
struct AllowedList(AllowedValues);

impl<'i> Keyword<'i> for AllowedList {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom("not on the list")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        match instance {
            Value::String(text) => self.0.contains(text.as_str()),
            Value::Number(number) => self.0.contains(number.to_string().as_str()),
            _ => false,
        }
    }
}

/// Why a schema does not compile. The schema is the operator's text, so that its parts may be named.
fn compile_problem(error: &ValidationError<'_>) -> SchemaProblem {
    let path = |location: &Location| -> Vec<String> { location.segments().map(|s| segment_text(&s)).collect() };
    let at = if error.instance_path().is_empty() { path(error.schema_path()) } else { path(error.instance_path()) };
    let mut message: String = error.to_string().chars().filter(|c| !c.is_control()).take(300).collect();
    if let ValidationErrorKind::Format { format } = error.kind()
        && format == "regex"
    {
        message = "is not a regular expression that is matched in linear time (no look-around, no references)".into();
    }
    SchemaProblem { at, message: format!("not a usable JSON Schema: {message}"), suggestion: None }
}

fn segment_text(segment: &LocationSegment<'_>) -> String {
    match segment {
        LocationSegment::Property(name) => name.to_string(),
        LocationSegment::Index(index) => index.to_string(),
    }
}

const OTHER_MEMBERS: &str = "must have no other members than those agreed for this shop";

/// What was refused, in words of our own: the library's would repeat the value.
fn field_problem(error: &ValidationError<'_>) -> FieldProblem {
    let mut path: Vec<String> = error.instance_path().segments().map(|segment| segment_text(&segment)).collect();
    if let ValidationErrorKind::Required { property } = error.kind()
        && let Some(name) = property.as_str()
    {
        path.push(name.to_owned());
    }
    // A closed object is told by the place of the `false` that closes it.
    let closed = error.schema_path().segments().last().is_some_and(|segment| {
        matches!(&segment, LocationSegment::Property(name) if name == "additionalProperties" || name == "unevaluatedProperties")
    });
    let reason = if closed { OTHER_MEMBERS.into() } else { reason(error.kind()) };
    FieldProblem { path: path.join("."), reason }
}

fn reason(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Required { .. } => "is required".into(),
        ValidationErrorKind::Type { kind } => format!("must be {}", type_words(kind)),
        ValidationErrorKind::Enum { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::Custom { .. } => "must be one of the values agreed for this shop".into(),
        ValidationErrorKind::Format { format } => format!("must be {}", format_words(format)),
        ValidationErrorKind::Pattern { .. } => "must have the format agreed for this shop".into(),
        ValidationErrorKind::MinLength { limit } => format!("must be at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must be at most {limit} characters"),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} elements"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} elements"),
        ValidationErrorKind::AdditionalItems { limit } => format!("must have at most {limit} elements"),
        ValidationErrorKind::UniqueItems => "must not hold an element twice".into(),
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {limit} members"),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {limit} members"),
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. } => {
            OTHER_MEMBERS.into()
        }
        ValidationErrorKind::FalseSchema => "is not accepted by this shop".into(),
        _ => "must be as agreed for this shop".into(),
    }
}

fn type_words(kind: &TypeKind) -> String {
    let word = |name: &str| match name {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    match kind {
        TypeKind::Single(one) => word(one.as_str()),
        TypeKind::Multiple(many) => many.iter().map(|one| word(one.as_str())).collect::<Vec<_>>().join(" or "),
    }
}

fn format_words(format: &str) -> String {
    match format {
        "email" | "idn-email" => "an email address".into(),
        "date" => "a date (YYYY-MM-DD)".into(),
        "time" => "a time (RFC 3339)".into(),
        "date-time" => "a date and time (RFC 3339)".into(),
        "uri" | "iri" => "an absolute URI".into(),
        "uuid" => "a UUID".into(),
        "ipv4" => "an IPv4 address".into(),
        "ipv6" => "an IPv6 address".into(),
        "hostname" | "idn-hostname" => "a host name".into(),
        other => format!("of the format {other}"),
    }
}
