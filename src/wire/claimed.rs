//! The `external_id` that the old v1 service may read from a create, which is claimed before it is forwarded (contract
//! section 6, "Which id is claimed"). The body is read as leniently as any service may: only the id has to be clear.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::domain::OrderId;
use crate::error::RequestError;

const NAME: &str = "external_id";

/// Returns the order that a v1 create names: the decoded text of its `external_id`, or the digits of an integer. `None` when
/// it names none that could be made here: absent, `null`, empty, too long, or with U+0000.
///
/// # Errors
/// The body is no JSON object, names the member twice, or with a value of another type: the old service might read an order
/// there that is not claimed.
pub fn claimed_id(body: &[u8]) -> Result<Option<OrderId>, RequestError> {
    claimed(NAME, body)
}

/// Returns the order that a native create names, as a remote engine may read it.
///
/// # Errors
/// As [`claimed_id`].
pub fn claimed_order_id(body: &[u8]) -> Result<Option<OrderId>, RequestError> {
    claimed("order_id", body)
}

fn claimed(name: &'static str, body: &[u8]) -> Result<Option<OrderId>, RequestError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let Ids(values) = de::Deserializer::deserialize_map(&mut reader, IdsVisitor(name))
        .and_then(|ids| reader.end().map(|()| ids))
        .map_err(|_| RequestError::body("the body must be a JSON object"))?;
    let mut values = values.into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(RequestError::member(name, "must be given once"));
    }
    let raw = value.get();
    if raw == "null" {
        return Ok(None);
    }
    let text = if raw.starts_with('"') { serde_json::from_str(raw).ok() } else { integer(raw).map(str::to_owned) };
    let text = text.ok_or_else(|| RequestError::member(name, "must be a string"))?;
    Ok(OrderId::new(&text).ok())
}

/// Returns a JSON integer as sent.
fn integer(raw: &str) -> Option<&str> {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(raw)
}

/// The values of all members with a name in some case: services differ in whether they mind it.
struct Ids(Vec<Box<RawValue>>);

/// Finds the members with this name.
struct IdsVisitor(&'static str);

impl<'de> Visitor<'de> for IdsVisitor {
    type Value = Ids;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Ids, M::Error> {
        let mut ids = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.eq_ignore_ascii_case(self.0) {
                let value: Box<RawValue> = members.next_value()?;
                if ids.len() < 2 {
                    ids.push(value);
                }
            } else {
                members.next_value::<&RawValue>()?;
            }
        }
        Ok(Ids(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(body: &str) -> Option<String> {
        claimed_id(body.as_bytes()).unwrap().map(|id| id.as_str().to_owned())
    }

    #[test]
    fn the_decoded_text_or_the_digits_are_claimed() {
        for (body, id) in [
            (r#"{"external_id":"o-1"}"#, "o-1"),
            (r#" {"a":{"external_id":"x"},"external\u005fid":"\u006f\/\"é","b":[1,{"b":1,"b":2}]} "#, "o/\"é"),
            (r#"{"external_id":12345678901234567890123}"#, "12345678901234567890123"),
            (r#"{"external_id":-5}"#, "-5"),
            (r#"{"External_ID":"o-1"}"#, "o-1"),
            (r#"{"external_id":" o "}"#, " o "),
            (r#"{"a":"\ud800","external_id":"o","a":1e999}"#, "o"),
        ] {
            assert_eq!(claimed(body).as_deref(), Some(id), "{body}");
        }
        let deep = format!("{{\"deep\":{}1{},\"external_id\":\"o\"}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(claimed(&deep).as_deref(), Some("o"));
    }

    #[test]
    fn none_is_claimed_that_could_not_be_made_here() {
        let long = format!(r#"{{"external_id":"{}"}}"#, "x".repeat(256));
        for body in ["{}", r#"{"external_id":null}"#, r#"{"external_id":""}"#, r#"{"external_id":"a\u0000"}"#, &long] {
            assert_eq!(claimed(body), None, "{body}");
        }
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        for body in [
            "",
            "x",
            "[]",
            "\"external_id\"",
            "\u{feff}{}",
            "{} {}",
            "{\"external_id\":\"a\"",
            r#"{"external_id":"a","external_id":"a"}"#,
            r#"{"external_id":"a","EXTERNAL_ID":"b"}"#,
            r#"{"external_id":null,"external_id":"b"}"#,
            r#"{"external_id":1.0}"#,
            r#"{"external_id":1e3}"#,
            r#"{"external_id":true}"#,
            r#"{"external_id":["a"]}"#,
            r#"{"external_id":{"a":1}}"#,
            r#"{"external_id":"\ud800"}"#,
        ] {
            assert!(claimed_id(body.as_bytes()).is_err(), "{body}");
        }
        assert!(claimed_id(b"{\"external_id\":\"\xff\"}").is_err());
    }
}
