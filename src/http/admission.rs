//! Admission (contract section 3, steps 2 to 7): from a request's head and body to a request that may be served, with the
//! proof of its caller.
//!
//! Where the contract names no place in its order:
//!
//! - `Content-Encoding` is refused in step 3, with the other header that describes a body; `identity` too, which no client
//!   has to send.
//! - A body on GET and a repeated authentication header are refused before step 4: a request that may be read in two ways
//!   has no key to look up. Both are 400.
//! - A missing signature or timestamp is refused with the wrong ones, in step 6, and like them.
//! - A query on POST is refused right after step 6: only the merchant learns what is wrong with its request.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body::Body;

use super::context::{self, GatewayState, RequestContext};
use super::listener::HeadCheck;
use super::request_ids::forwarded_headers;
use super::router::{self, MerchantRoute, Route, RouteMatch};
use crate::auth::callers::{verify_callback, verify_signed_by};
use crate::auth::signatures::V1Input;
use crate::auth::{AdmittedKey, Caller, Interface, KnownKey, SignedBody, V1Head};
use crate::callback::relay;
use crate::domain::{CallbackSignature, Recipe, Secrets, Segment, ShopCode, UnixMillis};
use crate::engine::Engine;
use crate::error::{AdmissionError, ApiError, AuthenticationFailure};
use crate::legacy::RequestHead;
use crate::pages::{Decision, LinkKind, PageRequest};
use crate::provider::events;
use crate::reply_room::ReplyRoom;
use crate::rules::{Limits, RuleSet};
use crate::store::RelayTarget;
use crate::telemetry::Stage;
use crate::v2::ForwardedHeaders;

/// The longest form of a customer's page, in bytes.
const LONGEST_FORM: usize = 1024;

/// A request that may be served, with the proof of its caller.
pub(super) enum Admitted {
    /// A merchant's.
    Merchant(MerchantRequest),
    /// A report of the HTTP provider of a shop.
    Provider(Arc<Engine>, ShopCode, SignedBody),
    /// A callback of the v2 engine for an order that was made from v1.
    Relayed(RelayTarget, SignedBody),
    /// A customer's request for a page.
    Customer(Arc<Engine>, PageRequest),
}

/// A merchant's request with everything that its handler needs, so that it can outlive the connection.
pub(super) struct MerchantRequest {
    pub(super) caller: Caller,
    pub(super) route: MerchantRoute,
    /// The variable segment of the path, as sent.
    pub(super) segment: Box<str>,
    pub(super) query: Option<Box<str>>,
    pub(super) body: SignedBody,
    /// The v2 signature that was verified; empty for v1.
    pub(super) signature: HeaderValue,
    pub(super) forwarded: ForwardedHeaders,
    /// Present for v1 where there is an old v1 service.
    pub(super) head: Option<Box<RequestHead>>,
}

impl GatewayState {
    /// Takes a request through the steps in the contract's order; what becomes known of it is noted in the context.
    ///
    /// Until the signature is proven, no reply depends on the merchant whose key was named: a caller that guesses keys learns
    /// neither the dialect nor the paths nor the notices of a merchant, and every wrong guess is counted.
    pub(super) async fn admit<B>(
        &self,
        context: &mut RequestContext,
        head: &Parts,
        body: B,
        head_check: HeadCheck,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        if let Some(refusal) = head_check.refusal() {
            context.close = context.http1;
            return Err(refusal.into());
        }
        let address = context.address;
        let rules = Arc::clone(&context.rules);
        let limits = &rules.gateway.limits;
        let path = head.uri.path();
        if context.client_hints.is_some() {
            let allowed = self.page_requests.count(address, limits.pages_per_ip);
            let allowed = allowed.map_err(|retry_after| AdmissionError::PagesTooOften { retry_after });
            allowed.inspect_err(|_| context.route = router::name_of_path(&rules, path))?;
        }
        let found = router::find(&rules, &head.method, path)
            .inspect_err(|_| context.route = router::name_of_path(&rules, path))?;
        context.route = found.name();
        let may_be_forwarded = found.is_v1() && rules.gateway.legacy.is_some();
        announced_body(head, &body, found, limits, may_be_forwarded)?;
        let segment = match found {
            RouteMatch::Own(Route::Page { kind, decides }, _) => {
                return self.admit_customer(context, head, body, kind, decides).await;
            }
            RouteMatch::Own(Route::ProviderEvents, shop) => {
                return self.admit_report(context, head, body, shop, address).await;
            }
            RouteMatch::Own(Route::Relay, token) => {
                return self.admit_relayed(context, head, body, token, address).await;
            }
            RouteMatch::Own(Route::Merchant(_), segment) => segment,
            RouteMatch::V1(_) | RouteMatch::Legacy(_) => "",
        };
        let credentials = Credentials::of(&rules, found, &head.headers)?;
        let throttled = |refusal| self.throttled(refusal, address, &rules);

        context.interface = Some(credentials.interface);
        let key = credentials.known_key(&rules).map_err(throttled)?;
        context.merchant = Some(Arc::clone(key.merchant()));
        let key = key.admit(address).map_err(throttled)?;
        let route = found.for_merchant(key.merchant());
        context.route = route.map_or(context.route, |route| Route::Merchant(route).name());
        context.names_order = route.is_some_and(MerchantRoute::names_order);
        context.stage_ended(Stage::Admission);

        let body = whole_body(context, body, limits).await?;

        let (caller, body) = credentials.prove(key, head, body, self.deps.clock.now()).map_err(throttled)?;
        context.authenticated()?;
        let route = route.ok_or(AdmissionError::UnknownPath)?;
        no_query_on_post(head)?;
        let (segment, query) = (segment.into(), head.uri.query().map(Into::into));
        let signature = v2_signature(head);
        let forwarded = match self.services.engine {
            Some(_) if !may_be_forwarded => ForwardedHeaders::default(),
            Some(_) | None => forwarded_headers(&context.request_id, &head.headers),
        };
        let head = may_be_forwarded.then(|| Box::new(request_head(head, address, context.reply_room())));
        Ok(Admitted::Merchant(MerchantRequest { caller, route, segment, query, body, signature, forwarded, head }))
    }

    /// Admits a report of a shop's provider: the shop in the path takes the place of a key, from any address.
    async fn admit_report<B>(
        &self,
        context: &mut RequestContext,
        head: &Parts,
        body: B,
        shop: &str,
        address: IpAddr,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&context.rules);
        let limits = &rules.gateway.limits;
        let signature = report_signature(&head.headers)?;
        // Counted like a wrong signature, so that guessing shop codes is throttled.
        let unknown = || self.count_failure(AdmissionError::UnknownPath, address, &rules);
        let engine = self.services.engine.as_ref().ok_or_else(unknown)?;
        let (shop, provider) = events::provider_of(&rules, shop).ok_or_else(unknown)?;

        context.stage_begins();
        let body = whole_body(context, body, limits).await?;

        let body = prove_report(&provider.secrets, body, signature)
            .map_err(|refusal| self.throttled(refusal, address, &rules))?;
        context.authenticated()?;
        no_query_on_post(head)?;
        Ok(Admitted::Provider(Arc::clone(engine), shop.clone(), body))
    }

    /// Admits a customer's browser: its signed link takes the place of a key and a signature, from any address.
    async fn admit_customer<B>(
        &self,
        context: &mut RequestContext,
        head: &Parts,
        body: B,
        kind: LinkKind,
        decides: bool,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&context.rules);
        let limits = &rules.gateway.limits;
        let engine = self.services.engine.as_ref().ok_or(AdmissionError::UnknownPath)?;
        let uri = head.uri.path_and_query().map_or("", |uri| uri.as_str());
        let mut page = PageRequest::verified(engine, &rules, kind, uri, self.deps.clock.now())?;
        if decides {
            let form = context::read_body(body, limits.body.min(LONGEST_FORM), limits.body_timeout).await?;
            context.close = false;
            page.decision = Some(Decision::read(&form)?);
        } else if head.method == Method::POST {
            // What a bank sends back with its customer is left unread.
            context.close = context.http1;
        }
        context.stage_begins();
        Ok(Admitted::Customer(Arc::clone(engine), page))
    }

    /// Admits a callback of a remote engine (contract sections 3 and 10): the order in the path takes the place of a key,
    /// from any address. Guessing relay addresses or signatures is throttled.
    async fn admit_relayed<B>(
        &self,
        context: &mut RequestContext,
        head: &Parts,
        body: B,
        token: &str,
        address: IpAddr,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&context.rules);
        let limits = &rules.gateway.limits;
        let recipe = &self.callback_signature;
        let headers = CallbackHeaders::of(recipe, &head.headers)?;
        let target = relay::relay_target(&*self.deps.store, token).await?;
        let target = target.ok_or_else(|| self.count_failure(AdmissionError::UnknownPath, address, &rules))?;
        context.merchant = rules.merchants.get(&target.merchant).cloned();

        context.stage_begins();
        let body = whole_body(context, body, limits).await?;

        let body = headers
            .prove(recipe, relay::secrets(&rules, &target), head, body)
            .map_err(|refusal| self.throttled(refusal, address, &rules))?;
        context.authenticated()?;
        no_query_on_post(head)?;
        Ok(Admitted::Relayed(target, body))
    }

    /// Counts a failed authentication against its address, and turns it into a 429 when there were too many.
    fn throttled(&self, refusal: AdmissionError, address: IpAddr, rules: &RuleSet) -> AdmissionError {
        if matches!(refusal, AdmissionError::Unauthenticated(_) | AdmissionError::AddressNotAllowed) {
            self.count_failure(refusal, address, rules)
        } else {
            refusal
        }
    }

    fn count_failure(&self, refusal: AdmissionError, address: IpAddr, rules: &RuleSet) -> AdmissionError {
        match self.failed_authentications.count(address, rules.gateway.limits.unauthenticated_per_ip) {
            Ok(()) => refusal,
            Err(retry_after) => AdmissionError::FailedTooOften { retry_after },
        }
    }
}

/// Reads a whole body, within the limits of size and time.
async fn whole_body<B>(context: &mut RequestContext, body: B, limits: &Limits) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
{
    let body = context::read_body(body, limits.body, limits.body_timeout).await?;
    let read_in = context.stage_ended(Stage::Body);
    context.body_at_hand = Some(context::was_body_at_hand(body.len(), read_in));
    Ok(body)
}

const V2_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const V2_SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// The header that `{timestamp}` names in an engine's `callback_signature`.
const V2_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");

const BODY_ON_GET: AdmissionError = AdmissionError::Malformed("a GET request must not have a body");
const REPEATED: AdmissionError = AdmissionError::Malformed("an authentication header was sent more than once");
const MISSING: AdmissionError = AdmissionError::Unauthenticated(AuthenticationFailure::MissingCredentials);
const WRONG: AdmissionError = AdmissionError::Unauthenticated(AuthenticationFailure::WrongSignature);

/// Step 3: the body that the head announces. Of one that is left unread, only the length counts.
///
/// # Errors
/// It is not of the route's media type as it is, it is too long, or it belongs to a GET.
fn announced_body<B: Body>(
    head: &Parts,
    body: &B,
    found: RouteMatch<'_>,
    limits: &Limits,
    may_be_forwarded: bool,
) -> Result<(), AdmissionError> {
    let is_post = head.method == Method::POST;
    let is_left_unread = is_post && matches!(found, RouteMatch::Own(Route::Page { decides: false, .. }, _));
    let has_body = is_post
        || (matches!(found, RouteMatch::Legacy(_))
            && [Method::PUT, Method::PATCH, Method::DELETE].contains(&head.method));
    let (media_type, refusal) = match found {
        RouteMatch::Own(Route::Page { .. }, _) => ("application/x-www-form-urlencoded", AdmissionError::NotForm),
        RouteMatch::Own(..) | RouteMatch::V1(_) | RouteMatch::Legacy(_) => {
            ("application/json", AdmissionError::NotJson)
        }
    };
    if is_post && !is_left_unread && !is_media_type(media_type, &head.headers) {
        return Err(refusal);
    }
    if may_be_forwarded && head.headers.get_all(header::CONTENT_TYPE).iter().any(is_of_other_charset) {
        return Err(AdmissionError::NotJson);
    }
    if !is_left_unread && head.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(AdmissionError::Encoded);
    }
    if !has_body && !body.is_end_stream() {
        return Err(BODY_ON_GET);
    }
    let limit = u64::try_from(limits.body).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit { Err(AdmissionError::BodyTooLarge) } else { Ok(()) }
}

/// The head of a request that may be forwarded to the old v1 service.
fn request_head(head: &Parts, address: IpAddr, room: ReplyRoom) -> RequestHead {
    let mut extensions = head.extensions.clone();
    extensions.insert(room);
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    RequestHead {
        method: head.method.clone(),
        target: target.into(),
        headers: head.headers.clone(),
        extensions,
        address,
    }
}

/// The signature of a v2 request whose caller is proven by it.
fn v2_signature(head: &Parts) -> HeaderValue {
    head.headers.get(V2_SIGNATURE).cloned().unwrap_or(HeaderValue::from_static(""))
}

/// Exactly one `Content-Type`: this one in any case, with any parameters.
fn is_media_type(media_type: &str, headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let sent = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    sent.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes())
}

/// Reports whether a media type names another charset than JSON's own: the old v1 service may read a body by it, and find
/// another order than the one that is claimed.
fn is_of_other_charset(value: &HeaderValue) -> bool {
    let parameters = value.as_bytes().split(|byte| *byte == b';').skip(1);
    parameters.map(|parameter| parameter.trim_ascii().to_ascii_lowercase()).any(|parameter| {
        let Some(charset) = parameter.strip_prefix(b"charset") else { return false };
        let charset = charset.trim_ascii_start().strip_prefix(b"=").unwrap_or_default().trim_ascii();
        !matches!(charset, b"utf-8" | b"\"utf-8\"" | b"us-ascii" | b"\"us-ascii\"")
    })
}

/// The authentication headers of a request, none of them repeated. `Debug` shows which are present, not their values.
#[derive(Clone, Copy)]
pub(super) struct Credentials<'a> {
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
    pub(super) fn of(rules: &RuleSet, found: RouteMatch<'_>, headers: &'a HeaderMap) -> Result<Self, AdmissionError> {
        let one = |name| at_most_one(headers, name);
        // Dialects that share a route share header names, so that any of them knows the others' too.
        let dialect = match found {
            RouteMatch::Own(..) => {
                let (api_key, signature) = (one(&V2_API_KEY)?, one(&V2_SIGNATURE)?);
                return Ok(Self { interface: Interface::V2, api_key, signature, timestamp: None });
            }
            RouteMatch::V1(v1) => {
                v1.endpoints.first().and_then(|(name, _)| rules.dialects.get(name)).map(|found| &**found)
            }
            RouteMatch::Legacy(dialect) => Some(dialect),
        };
        let Some(Recipe { api_key, signature, timestamp, .. }) = dialect.map(|dialect| &dialect.signature) else {
            return Ok(Self { interface: Interface::V1, api_key: None, signature: None, timestamp: None });
        };
        let (signature, timestamp) = (one(signature)?, one(timestamp)?);
        Ok(Self { interface: Interface::V1, api_key: one(api_key)?, signature, timestamp })
    }

    /// Step 4, first half: the key.
    ///
    /// # Errors
    /// There is none, or it is not known for this interface.
    pub(super) fn known_key(&self, rules: &Arc<RuleSet>) -> Result<KnownKey, AdmissionError> {
        let key = self.api_key.and_then(|value| value.to_str().ok()).ok_or(MISSING)?;
        KnownKey::find(rules, self.interface, key).map_err(AdmissionError::Unauthenticated)
    }

    /// Step 6: the signature over the body that was read.
    ///
    /// # Errors
    /// A header is missing, the timestamp is outside the window, or the signature is not one of the key's.
    pub(super) fn prove(
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
fn report_signature(headers: &HeaderMap) -> Result<Option<&HeaderValue>, AdmissionError> {
    at_most_one(headers, &V2_SIGNATURE)
}

/// Step 6 for the report of a provider that signs with one of these secrets.
///
/// # Errors
/// The signature is missing, or none of the secrets made it.
fn prove_report(secrets: &Secrets, body: Bytes, signature: Option<&HeaderValue>) -> Result<SignedBody, AdmissionError> {
    let signature = signature.ok_or(MISSING)?.as_bytes();
    verify_signed_by(secrets, body, signature).map_err(AdmissionError::Unauthenticated)
}

/// The headers that a v2 engine's callback is proven by, none of them repeated.
pub(super) struct CallbackHeaders<'a> {
    signature: Option<&'a HeaderValue>,
    timestamp: Option<&'a HeaderValue>,
}

impl<'a> CallbackHeaders<'a> {
    /// Takes the headers that the engine's recipe names.
    ///
    /// # Errors
    /// One of them was sent more than once.
    pub(super) fn of(recipe: &CallbackSignature, headers: &'a HeaderMap) -> Result<Self, AdmissionError> {
        let one = |name| at_most_one(headers, name);
        Ok(Self { signature: one(&recipe.header)?, timestamp: one(&V2_TIMESTAMP)? })
    }

    /// Step 6: the signature over the body that was read, by one of these secrets, which belong to an API key.
    ///
    /// # Errors
    /// A header is missing, there are no secrets, or none of them made the signature.
    pub(super) fn prove(
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
fn no_query_on_post(head: &Parts) -> Result<(), AdmissionError> {
    if head.method == Method::POST && head.uri.query().is_some() { Err(AdmissionError::QueryOnPost) } else { Ok(()) }
}
