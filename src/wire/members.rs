//! How members of a body are read, with errors that name the member.

use std::borrow::Cow;

use crate::domain::InvalidValue;
use crate::error::RequestError;
use crate::json::{self, JsonError, Node, Object, Value};

/// Reads a body that must be one JSON object.
///
/// # Errors
/// The body is not strict JSON, or not an object.
pub fn read_object(body: &[u8]) -> Result<Object<'_>, RequestError> {
    match json::read(body) {
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
    object: &Object<'_>,
    parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<T, RequestError> {
    let value = object.get(path).ok_or_else(|| required(path))?;
    parsed(path, value, parse)
}

/// Returns a member that is present and not `null`.
#[must_use]
pub fn present<'v, 'a>(object: &'v Object<'a>, name: &str) -> Option<&'v Value<'a>> {
    object.get(name).filter(|value| value.node != Node::Null)
}
