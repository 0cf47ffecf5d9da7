//! How members of a body are read, with errors that name the member.

use std::borrow::Cow;

use crate::domain::InvalidValue;
use crate::error::RequestError;
use crate::json::{self, JsonError, KnownMembers, Node, Object, Value};

/// Reads a body that must be one JSON object.
///
/// # Errors
/// The body is not strict JSON, or not an object.
pub fn read_object(body: &[u8]) -> Result<Object<'_>, RequestError> {
    read_members(body, &mut ())
}

/// Reads a body that must be one JSON object: the members that `known` knows go to their places; returns the others, in the
/// order sent.
///
/// # Errors
/// The body is not strict JSON, or not an object.
pub fn read_members<'a>(body: &'a [u8], known: &mut impl KnownMembers<'a>) -> Result<Object<'a>, RequestError> {
    match json::read_into(body, known) {
        Ok(Value { node: Node::Object(object), .. }) => Ok(object),
        Ok(other) => Err(RequestError::body(format!("the body must be a JSON object, not {}", other.kind()))),
        Err(JsonError::DuplicateKey(path)) => {
            Err(RequestError::member(String::from(path), "is named twice in one object"))
        }
        Err(error) => Err(RequestError::body(error.to_string())),
    }
}

/// Makes the error about a required member that is absent.
#[must_use]
pub fn required(path: &'static str) -> RequestError {
    RequestError::member(path, "is required")
}

/// Returns the string of a member.
///
/// # Errors
/// The value is not a string.
pub fn string<'v>(path: impl Into<Cow<'static, str>>, value: &'v Value<'_>) -> Result<&'v str, RequestError> {
    value.as_str().ok_or_else(|| RequestError::member(path, format!("must be a string, not {}", value.kind())))
}

/// Returns the object of a member.
///
/// # Errors
/// The value is not an object.
pub fn object<'v, 'a>(path: &'static str, value: &'v Value<'a>) -> Result<&'v Object<'a>, RequestError> {
    value.as_object().ok_or_else(|| RequestError::member(path, format!("must be a JSON object, not {}", value.kind())))
}

/// Reads a string member by a domain type's constructor.
///
/// # Errors
/// The member is not a string, or the constructor refuses it.
pub fn parsed<T>(
    path: &'static str,
    value: &Value<'_>,
    parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<T, RequestError> {
    parse(string(path, value)?).map_err(|invalid| RequestError::invalid(path, &invalid))
}

/// Reads a required string member by a domain type's constructor.
///
/// # Errors
/// The member is absent, not a string, or the constructor refuses it.
pub fn required_parsed<T>(
    path: &'static str,
    value: Option<&Value<'_>>,
    parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<T, RequestError> {
    parsed(path, value.ok_or_else(|| required(path))?, parse)
}

/// Reads a parameter; empty: not given. `expected` is the error message if it is malformed.
///
/// # Errors
/// `parse` refuses it.
pub fn read_parameter<T>(
    name: &'static str,
    text: &str,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, RequestError> {
    if text.is_empty() {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| RequestError::member(name, expected))
}

/// Returns a member that is present and not `null`.
#[must_use]
pub fn present<'v, 'a>(object: &'v Object<'a>, name: &str) -> Option<&'v Value<'a>> {
    not_null(object.get(name))
}

/// Returns a value that is not `null`.
#[must_use]
pub fn not_null<'v, 'a>(value: Option<&'v Value<'a>>) -> Option<&'v Value<'a>> {
    value.filter(|value| value.node != Node::Null)
}
