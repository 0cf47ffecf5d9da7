//! The project's own keywords: `x-allowed-list`, and `uniqueItems` in place of the library's.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use jsonschema::json::Node as _;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

use super::fields::{FieldNumber, FieldValue, FieldsJson};
use super::problem::AllowedValues;
use crate::domain::MerchantId;

/// `uniqueItems` with its value, in time that depends only on the size of the array. The library's implementation puts
/// elements into a hash table by a hash that callers can make collide: `[[],[[]]]` and `[[[]],[]]` have the same one.
struct UniqueItems(bool);

impl<'i> Keyword<'i, FieldsJson> for UniqueItems {
    fn validate(&self, instance: FieldValue<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom("holds an element twice")) }
    }

    fn is_valid(&self, instance: FieldValue<'i>) -> bool {
        if !self.0 || instance.as_array().is_none() {
            return true;
        }
        if let Value::Array(elements) = &*instance.to_value() { are_unique(elements) } else { true }
    }
}

fn are_unique(elements: &[Value]) -> bool {
    // The standard library keys its hash at random.
    let mut seen = HashSet::with_capacity(elements.len());
    elements.iter().all(|element| {
        let mut text = String::new();
        write_canonical(element, &mut text);
        seen.insert(text)
    })
}

/// Writes a value in a canonical form: two values have the same text exactly if they are equal.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push('n'),
        Value::Bool(flag) => text.push(if *flag { 't' } else { 'f' }),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write_canonical(element, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                write_string(name, text);
                write_canonical(value, text);
            }
            text.push('}');
        }
    }
}

/// Writes a string with its length, so that it is not confused with what follows. Writing to a `String` cannot fail.
fn write_string(string: &str, text: &mut String) {
    let _ = write!(text, "{}\"{string}", string.len());
}

/// Writes a number: `1`, `1.0` and `10e-1` have the same text.
fn write_number(number: &Number, text: &mut String) {
    /// Below this, an [`i64`] holds every float without a fraction.
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let _ = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => write!(text, "{integer};"),
        (None, Some(integer), _) => write!(text, "{integer};"),
        (None, None, Some(float)) if float.fract() == 0.0 && float.abs() < TWO_TO_63 => {
            #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the bound was just checked")]
            let integer = float as i64;
            write!(text, "{integer};")
        }
        _ => write!(text, "{number};"),
    };
}

/// Builds `uniqueItems` from its value in a schema.
pub(super) fn unique_items<'a>(
    _: &'a Map<String, Value>,
    wanted: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i, FieldsJson>>, ValidationError<'a>> {
    match wanted.as_bool() {
        Some(wanted) => Ok(Box::new(UniqueItems(wanted))),
        None => Err(ValidationError::schema("uniqueItems must be true or false")),
    }
}

/// Builds `x-allowed-list` from its value in a schema. `own` replaces lists of the same names in `common`: those of a
/// merchant.
pub(super) fn allowed_list<'a>(
    common: &HashMap<String, AllowedValues>,
    own: Option<&(MerchantId, HashMap<String, AllowedValues>)>,
    name: &'a Value,
) -> Result<Box<dyn for<'i> Keyword<'i, FieldsJson>>, ValidationError<'a>> {
    let Some(name) = name.as_str() else { return Err(no_list()) };
    let own = own.and_then(|(merchant, lists)| Some((lists.get(name)?, format!("lists/{merchant}/{name}.txt"))));
    match own.or_else(|| Some((common.get(name)?, format!("lists/{name}.txt")))) {
        Some((values, file)) => Ok(Box::new(AllowedList { values: Arc::clone(values), file })),
        None => Err(no_list()),
    }
}

fn no_list() -> ValidationError<'static> {
    ValidationError::schema("x-allowed-list names no list")
}

/// `x-allowed-list`: a string, or the JSON text of a number, must be a line of the list.
struct AllowedList {
    values: AllowedValues,
    /// The list's file, relative to the rules directory: the message of its errors.
    file: String,
}

impl<'i> Keyword<'i, FieldsJson> for AllowedList {
    fn validate(&self, instance: FieldValue<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let could_be_listed = instance.as_string().is_some() || instance.is_number();
        Err(ValidationError::custom(if could_be_listed { self.file.as_str() } else { "" }))
    }

    fn is_valid(&self, instance: FieldValue<'i>) -> bool {
        match (instance.as_string(), instance.as_number()) {
            (Some(text), _) => self.values.contains(&*text),
            (None, Some(FieldNumber(number))) => self.values.contains(number.to_string().as_str()),
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unique(value: &Value) -> bool {
        UniqueItems(true).is_valid(FieldValue::Given(value))
    }

    #[test]
    fn equality_follows_json_schema() {
        for twice in [
            json!([1, 1]),
            json!([1, 1.0]),
            json!([0, -0.0]),
            json!([1e3, 1000]),
            json!(["a", 5, "a"]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]),
            json!([[], []]),
            json!([null, null]),
            json!([18_446_744_073_709_551_615_u64, 18_446_744_073_709_551_615_u64]),
            json!([1e300, 1e300]),
        ] {
            assert!(!unique(&twice), "{twice}");
        }
        for once in [
            json!([]),
            json!([1, "1", true, null, [1], {"1": 1}]),
            json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64]),
            json!(["1\"a", "1\"", "a"]),
            json!([["a", "b"], ["ab"], ["a\"1\"b"]]),
            json!([[[], [[]]], [[[]], []]]),
            json!([{"a": 1}, {"a": "1"}, {"b": 1}]),
            json!([0.1, 0.2]),
            json!({"a": 1}),
            json!("aa"),
        ] {
            assert!(unique(&once), "{once}");
        }
        assert!(UniqueItems(false).is_valid(FieldValue::Given(&json!([1, 1]))));
    }
}
