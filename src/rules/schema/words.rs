//! Words the refusals of a schema. The library's own messages would repeat the value.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;

use super::problem::{ALLOWED_LIST, FieldProblem, FieldRule, UNIQUE_ITEMS};
use crate::names::masked;

const OTHER_MEMBERS: &str = "must have no other members than those agreed for this shop";

/// Returns the refused member and the reason; `is_known` reports whether the schema has a name.
pub(super) fn field_problem(error: &ValidationError<'_>, is_known: impl Fn(&str) -> bool) -> FieldProblem {
    let mut path: Vec<String> = error.instance_path().segments().map(|segment| segment_text(&segment)).collect();
    let shown = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Property(name) if is_known(&name) => name.into_owned(),
        LocationSegment::Property(name) => masked(&name),
        LocationSegment::Index(_) => "#".to_owned(),
    };
    let mut member: Vec<String> = error.instance_path().segments().map(shown).collect();
    if let ValidationErrorKind::Required { property } = error.kind()
        && let Some(name) = property.as_str()
    {
        path.push(name.to_owned());
        member.push(name.to_owned());
    }
    // A closed object is recognised by the path of the `false` that closes it.
    let closed = error.schema_path().segments().last().is_some_and(|segment| {
        matches!(&segment, LocationSegment::Property(name) if name == "additionalProperties" || name == "unevaluatedProperties")
    });
    let reason = if closed { OTHER_MEMBERS.into() } else { reason(error.kind()) };
    let keyword: Vec<String> = error.schema_path().segments().map(|segment| segment_text(&segment)).collect();
    let rule = FieldRule { member: member.join("."), keyword: keyword.join("."), list: list_file(error.kind()) };
    FieldProblem { path: path.join("."), reason, rule }
}

/// Returns the file of the list that a value is not on: `x-allowed-list` puts it into its error.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other kind has a list")]
fn list_file(kind: &ValidationErrorKind) -> Option<String> {
    match kind {
        ValidationErrorKind::Custom { keyword, message } if keyword == ALLOWED_LIST && !message.is_empty() => {
            Some(message.clone())
        }
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds have the general message")]
fn reason(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Required { .. } => "is required".into(),
        ValidationErrorKind::Type { kind } => format!("must be {}", type_words(kind)),
        ValidationErrorKind::Custom { keyword, .. } if keyword == UNIQUE_ITEMS => {
            "must not hold an element twice".into()
        }
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

/// Returns a segment of a path as text.
pub(super) fn segment_text(segment: &LocationSegment<'_>) -> String {
    match segment {
        LocationSegment::Property(name) => name.to_string(),
        LocationSegment::Index(index) => index.to_string(),
    }
}
