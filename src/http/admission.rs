//! What a request must bring before its body is looked at (contract section 3, steps 3 to 6), as functions that the gateway
//! calls in the contract's order.
//!
//! Where the contract names no place in that order:
//!
//! - `Content-Encoding` is refused beside the other header that describes a body, in step 3; `identity` too, which nobody
//!   has to send.
//! - A body on GET and a repeated authentication header are refused before step 4: a request that may be read in two ways
//!   has no key to look up. Both are 400.
//! - A missing signature or timestamp is refused with the wrong ones, in step 6, and like them.
//! - A query on POST is refused first thing after step 6: what is wrong with a request is told to nobody but its merchant.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body::Body;

use super::router::{Route, RouteMatch};
use crate::auth::callers::{verify_callback, verify_signed_by};
use crate::auth::signatures::V1Input;
use crate::auth::{AdmittedKey, Caller, Interface, KnownKey, SignedBody, V1Head};
use crate::domain::UnixMillis;
use crate::failure::{AdmissionError, AuthenticationFailure};
use crate::rules::{CallbackSignature, Limits, RuleSet, Secrets, Segment};

const V2_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const V2_SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// The header that `{timestamp}` names in an engine's `callback_signature`.
const V2_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");

const BODY_ON_GET: AdmissionError = AdmissionError::Malformed("a GET request must not have a body");
const REPEATED: AdmissionError = AdmissionError::Malformed("an authentication header was sent more than once");
const MISSING: AdmissionError = AdmissionError::Unauthenticated(AuthenticationFailure::MissingCredentials);
const WRONG: AdmissionError = AdmissionError::Unauthenticated(AuthenticationFailure::WrongSignature);

/// Step 3: the body that the head announces.
///
/// # Errors
/// It is not of the route's media type as it is, it is too long, or it belongs to a GET.
pub fn announced_body<B: Body>(
    head: &Parts,
    body: &B,
    found: RouteMatch<'_>,
    limits: &Limits,
) -> Result<(), AdmissionError> {
    let is_post = head.method == Method::POST;
    let (media_type, refusal) = match found {
        RouteMatch::Own(Route::Page { .. }, _) => ("application/x-www-form-urlencoded", AdmissionError::NotForm),
        RouteMatch::Own(..) | RouteMatch::V1(_) => ("application/json", AdmissionError::NotJson),
    };
    if is_post && !is_of(media_type, &head.headers) {
        return Err(refusal);
    }
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(AdmissionError::Encoded);
    }
    if !is_post && !body.is_end_stream() {
        return Err(BODY_ON_GET);
    }
    let limit = u64::try_from(limits.body).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit { Err(AdmissionError::BodyTooLarge) } else { Ok(()) }
}

/// The signature of a v2 request whose caller is proven by it.
#[must_use]
pub fn v2_signature(head: &Parts) -> HeaderValue {
    head.headers.get(V2_SIGNATURE).cloned().unwrap_or(HeaderValue::from_static(""))
}

/// Exactly one `Content-Type`: this one in any case, with any parameters.
fn is_of(media_type: &str, headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let sent = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    sent.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes())
}

/// The authentication headers of a request, none of them repeated. `Debug` shows which are there, not what they say.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    interface: Interface,
    api_key: Option<&'a HeaderValue>,
    signature: Option<&'a HeaderValue>,
    timestamp: Option<&'a HeaderValue>,
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("interface", &self.interface)
            .field("api_key", &self.api_key.is_some())
            .field("signature", &self.signature.is_some())
            .field("timestamp", &self.timestamp.is_some())
            .finish()
    }
}

impl<'a> Credentials<'a> {
    /// Takes the headers that the route authenticates by.
    ///
    /// # Errors
    /// One of them was sent more than once.
    pub fn of(rules: &RuleSet, found: RouteMatch<'_>, headers: &'a HeaderMap) -> Result<Self, AdmissionError> {
        let one = |name| at_most_one(headers, name);
        let RouteMatch::V1(v1) = found else {
            let (api_key, signature) = (one(&V2_API_KEY)?, one(&V2_SIGNATURE)?);
            return Ok(Self { interface: Interface::V2, api_key, signature, timestamp: None });
        };
        // Dialects that share a route share header names, so that any of them knows the others' too.
        let dialect = v1.endpoints.first().and_then(|(dialect, _)| rules.dialects.get(dialect));
        let (signature, timestamp) = match dialect {
            Some(dialect) => (one(&dialect.signature.signature)?, one(&dialect.signature.timestamp)?),
            None => (None, None),
        };
        Ok(Self { interface: Interface::V1, api_key: one(&v1.api_key)?, signature, timestamp })
    }

    /// Step 4, first half: the key.
    ///
    /// # Errors
    /// There is none, or it is not known for this interface.
    pub fn known_key(&self, rules: &Arc<RuleSet>) -> Result<KnownKey, AdmissionError> {
        let key = self.api_key.and_then(|value| value.to_str().ok()).ok_or(MISSING)?;
        KnownKey::find(rules, self.interface, key).map_err(AdmissionError::Unauthenticated)
    }

    /// Step 6: the signature over the body that was read.
    ///
    /// # Errors
    /// A header is missing, the timestamp is outside the window, or the signature is not one of the key's.
    pub fn prove(
        &self,
        key: AdmittedKey,
        head: &Parts,
        body: Bytes,
        now: UnixMillis,
    ) -> Result<(Caller, SignedBody), AdmissionError> {
        let signature = self.signature.ok_or(MISSING)?.as_bytes();
        let proven = match self.interface {
            Interface::V2 => key.verify_v2(body, signature),
            Interface::V1 => {
                let timestamp = self.timestamp.and_then(|value| value.to_str().ok()).ok_or(MISSING)?;
                let (method, path, query) = (head.method.as_str(), head.uri.path(), head.uri.query());
                key.verify_v1(&V1Head { timestamp, signature, method, path, query }, body, now)
            }
        };
        proven.map_err(AdmissionError::Unauthenticated)
    }
}

/// The signature of a provider's report: v2's header, and no key beside it.
///
/// # Errors
/// It was sent more than once.
pub fn report_signature(headers: &HeaderMap) -> Result<Option<&HeaderValue>, AdmissionError> {
    at_most_one(headers, &V2_SIGNATURE)
}

/// Step 6 for the report of a provider that signs with one of these secrets.
///
/// # Errors
/// The signature is missing, or none of the secrets made it.
pub fn prove_report(
    secrets: &Secrets,
    body: Bytes,
    signature: Option<&HeaderValue>,
) -> Result<SignedBody, AdmissionError> {
    let signature = signature.ok_or(MISSING)?.as_bytes();
    verify_signed_by(secrets, body, signature).map_err(AdmissionError::Unauthenticated)
}

/// The headers that a v2 engine's callback is proven by, none of them repeated.
pub struct CallbackHeaders<'a> {
    signature: Option<&'a HeaderValue>,
    timestamp: Option<&'a HeaderValue>,
}

impl<'a> CallbackHeaders<'a> {
    /// Takes the headers that the engine's recipe names.
    ///
    /// # Errors
    /// One of them was sent more than once.
    pub fn of(recipe: &CallbackSignature, headers: &'a HeaderMap) -> Result<Self, AdmissionError> {
        let one = |name| at_most_one(headers, name);
        Ok(Self { signature: one(&recipe.header)?, timestamp: one(&V2_TIMESTAMP)? })
    }

    /// Step 6: the signature over the body that was read, by one of these secrets, which belong to an API key.
    ///
    /// # Errors
    /// A header is missing, nobody's secrets are known, or none of them made the signature.
    pub fn prove(
        &self,
        recipe: &CallbackSignature,
        secrets: Option<(&str, &Secrets)>,
        head: &Parts,
        body: Bytes,
    ) -> Result<SignedBody, AdmissionError> {
        let signature = self.signature.ok_or(MISSING)?.as_bytes();
        let (api_key, secrets) = secrets.ok_or(WRONG)?;
        let timestamp = match (self.timestamp, recipe.payload.contains(&Segment::Timestamp)) {
            (Some(value), true) => value.to_str().map_err(|_| WRONG)?,
            (None, true) => return Err(MISSING),
            (_, false) => "",
        };
        let (method, path, query) = (head.method.as_str(), head.uri.path(), head.uri.query());
        let head = V1Input { timestamp, method, path, query, api_key, body: &[] };
        verify_callback(recipe, secrets, &head, body, signature).map_err(AdmissionError::Unauthenticated)
    }
}

fn at_most_one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, AdmissionError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() { Err(REPEATED) } else { Ok(value) }
}

/// Step 7 begins: no query on POST, whose parameters might be taken for members of the body.
///
/// # Errors
/// The target has a `?`.
pub fn no_query_on_post(head: &Parts) -> Result<(), AdmissionError> {
    if head.method == Method::POST && head.uri.query().is_some() { Err(AdmissionError::QueryOnPost) } else { Ok(()) }
}
