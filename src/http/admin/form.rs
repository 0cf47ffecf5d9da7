//! Reads the bodies of forms.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::reply::Rejection;
use crate::store::IdempotencyKey;
use crate::v1::query::form_fields;

/// The field with the idempotency key of a form.
const KEY_FIELD: &str = "form";

/// The largest form, in bytes.
pub(super) const LARGEST_FORM: usize = 128 * 1024;

/// How long a form may take to arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The bounds of the sign-in form, which every client may send: a connection that waits for it takes one from probes.
const LARGEST_SIGN_IN: usize = 8 * 1024;
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(2);

const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form, each given once.
#[derive(Debug, Default)]
pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    /// Returns the value of a field; `None` when the form does not have it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the idempotency key of the form; `None` when it has none, as the requests of programs.
    pub(super) fn idempotency_key(&self) -> Option<IdempotencyKey> {
        self.get(KEY_FIELD).and_then(IdempotencyKey::parse)
    }

    /// Returns the names and values, as they are used, of all fields but the key, sorted by name.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter(|(name, _)| *name != KEY_FIELD).map(|(name, value)| (name.as_str(), cleaned(name, value)))
    }

    /// Parses the text of a form.
    fn parse(body: &[u8]) -> Result<Self, Rejection> {
        let text = std::str::from_utf8(body).map_err(|_| Rejection::WrongForm("the form must be UTF-8"))?;
        let mut fields = BTreeMap::new();
        for field in form_fields(text) {
            let (name, value) = field.ok_or(Rejection::WrongForm("the form must be percent-encoded UTF-8"))?;
            if fields.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(Rejection::WrongForm("a field of the form is given twice"));
            }
        }
        Ok(Self(fields))
    }
}

/// Returns a value as it is used: order ids, and what is searched for, may begin and end with white space, which a paste
/// brings along for others.
pub(super) fn cleaned<'t>(name: &str, text: &'t str) -> &'t str {
    if matches!(name, "order_id" | "q") { text } else { text.trim() }
}

/// Reads a form, within [`LARGEST_FORM`] and [`FORM_TIMEOUT`], or less without a user.
pub(super) async fn read_form(headers: &HeaderMap, body: Incoming, has_user: bool) -> Result<Form, Rejection> {
    let (largest, longest) = if has_user { (LARGEST_FORM, FORM_TIMEOUT) } else { (LARGEST_SIGN_IN, SIGN_IN_TIMEOUT) };
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM_TYPE) {
        return Err(Rejection::NoForm);
    }
    let read = timeout(longest, Limited::new(body, largest).collect()).await;
    match read.map_err(|_| Rejection::SlowForm)? {
        Ok(body) => Form::parse(&body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Rejection::LargeForm),
        Err(_) => Err(Rejection::WrongForm("the form did not arrive whole")),
    }
}

/// The largest body of a request of the API, in bytes.
const LARGEST_BODY: usize = 16 * 1024;

/// Reads the body of a request of the API, within [`LARGEST_BODY`] and [`FORM_TIMEOUT`].
pub(super) async fn read_body(body: Incoming) -> Result<Bytes, Rejection> {
    let read = timeout(FORM_TIMEOUT, Limited::new(body, LARGEST_BODY).collect()).await;
    match read.map_err(|_| Rejection::SlowForm)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Rejection::LargeForm),
        Err(_) => Err(Rejection::WrongForm("the body did not arrive whole")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forms_key_is_none_of_its_values() {
        let form = Form::parse(b"url=b&form=000102030405060708090a0b0c0d0e0f&kind=&order_id=+o+").unwrap();
        assert_eq!(form.idempotency_key(), IdempotencyKey::parse("000102030405060708090a0b0c0d0e0f"));
        let values = [("kind", ""), ("order_id", " o "), ("url", "b")];
        assert_eq!(form.values().collect::<Vec<_>>(), values);
        let pasted = Form::parse(b"url=+b%0A&kind=+&order_id=+o+").unwrap();
        assert_eq!(pasted.values().collect::<Vec<_>>(), values, "white space is no part of them");
        let programs = Form::default();
        assert_eq!((programs.idempotency_key(), programs.values().count()), (None, 0));
    }

    #[test]
    fn fields_are_decoded_and_given_once() {
        let form = Form::parse(b"token=a%2Bb+c&to=%2Frules%3Fx%3D1&empty=&&bare").unwrap();
        let fields = ["token", "to", "empty", "bare", "other"].map(|name| form.get(name));
        assert_eq!(fields, [Some("a+b c"), Some("/rules?x=1"), Some(""), Some(""), None]);
        for wrong in [&b"a=1&a=1"[..], b"a=1&%61=2", b"a=%", b"a=%ff", b"%zz=1", b"a=\xff"] {
            assert!(Form::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
