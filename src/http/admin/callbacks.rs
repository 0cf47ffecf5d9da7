//! The `/api/callbacks` endpoints: list, show and resend callbacks, and send samples.

use std::borrow::Cow;
use std::sync::Arc;

use super::console::{self, Audited};
use super::reply::{self, AdminReply};
use super::request::AdminRequest;
use super::source::{AdminSource, SampleRequest};
use crate::auth::Interface;
use crate::callback::Sampled;
use crate::callback::listing::{
    DEFAULT_LIMIT, DEFAULT_STATES, MAX_CALLBACKS, Moment, Slice, SpanEnd, document, pasted_order_id, read_cursor,
    read_states, sample_document, write_cursor,
};
use crate::domain::{CallbackUrl, MerchantId, OrderId, UnixMillis};
use crate::error::RequestError;
use crate::store::{CallbackCursor, CallbackId, CallbackQuery, CallbackState, Resent, StoreError};
use crate::v1::query::parameters;

/// How many failed callbacks one request requeues without a `limit`.
const RESEND_LIMIT: usize = 500;

/// Why a request is refused.
enum Refusal {
    /// A parameter is wrong.
    Parameter(RequestError),
    /// No sample was sent, for this reason.
    NotSampled(String),
    /// The receiver of a sample takes too long.
    TooSlow,
    /// No such callback exists.
    Unknown,
    /// Neither the rules nor the store know the merchant: the words for the caller.
    NoMerchant(String),
    /// The callback is being sent at this moment.
    UnderWay,
    Store(StoreError),
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        Self::Parameter(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for AdminReply {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Parameter(error) => reply::bad_request(&error.to_string()),
            Refusal::NotSampled(reason) => reply::bad_request(&reason),
            Refusal::TooSlow => reply::unavailable("this takes long and continues: the audit trail shows its outcome"),
            Refusal::Unknown => reply::not_found("there is no such callback"),
            Refusal::NoMerchant(reason) => reply::not_found(&reason),
            Refusal::UnderWay => reply::conflict("the callback is being sent now: try again later"),
            Refusal::Store(error) => reply::unavailable(&error.to_string()),
        }
    }
}

/// Answers `GET /api/callbacks`: a slice of the list, the newest first.
pub(super) async fn list(source: &dyn AdminSource, query: Option<&str>) -> AdminReply {
    try_list(source, query).await.unwrap_or_else(AdminReply::from)
}

async fn try_list(source: &dyn AdminSource, query: Option<&str>) -> Result<AdminReply, Refusal> {
    let names = ["state", "merchant", "order_id", "since", "until", "limit", "after"];
    let [state, merchant, order_id, since, until, limit, after] = parameters(query, names)?;
    if order_id.is_some() && merchant.is_none() {
        return Err(RequestError::member("order_id", "requires `merchant`").into());
    }
    let now = source.now();
    let limit = parse("limit", limit, LIMIT, read_limit)?.unwrap_or(DEFAULT_LIMIT);
    let mut query = CallbackQuery {
        states: parse("state", state, STATES, read_states)?.unwrap_or_else(|| DEFAULT_STATES.into()),
        merchant: parse("merchant", merchant, MERCHANT, |text| MerchantId::new(text).ok())?,
        order_id: order_id
            .map(|text| OrderId::new(&text))
            .transpose()
            .map_err(|invalid| RequestError::invalid("order_id", &invalid))?,
        since: time(SpanEnd::Since, since, now)?,
        until: time(SpanEnd::Until, until, now)?,
        after: cursor(after)?,
        // One more shows whether there is a next slice.
        limit: limit + 1,
    };
    check_merchant(source, query.merchant.as_ref()).await?;
    if let (Some(merchant), Some(order_id)) = (&query.merchant, query.order_id.take()) {
        query.order_id = Some(pasted_order_id(source.store(), merchant, order_id).await?);
    }
    let slice = Slice::of(source.store().callbacks(query).await?, limit);
    Ok(reply::document(&slice.document(source.now())))
}

/// Checks that the rules or the store know a merchant: the store may have rows of a removed one.
async fn check_merchant(source: &dyn AdminSource, merchant: Option<&MerchantId>) -> Result<(), Refusal> {
    let (rules, store) = (source.rule_set(), source.store());
    let Some(unknown) = merchant.filter(|id| !rules.merchants.contains_key(*id)) else { return Ok(()) };
    let any = CallbackQuery {
        states: CallbackState::ALL.into(),
        merchant: Some(unknown.clone()),
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: 1,
    };
    if store.count_callbacks(any).await? > 0 || !store.balances(unknown).await?.is_empty() {
        return Ok(());
    }
    Err(Refusal::NoMerchant(rules.no_such_merchant(unknown.as_str())))
}

/// Answers `GET /api/callbacks/{id}`: one callback with its tries.
pub(super) async fn show(source: &dyn AdminSource, id: &str) -> AdminReply {
    try_show(source, id).await.unwrap_or_else(AdminReply::from)
}

async fn try_show(source: &dyn AdminSource, id: &str) -> Result<AdminReply, Refusal> {
    let id = CallbackId::parse(id).ok_or(Refusal::Unknown)?;
    let (callback, tries) = source.store().callback(id).await?.ok_or(Refusal::Unknown)?;
    Ok(reply::document(&document(&callback, &tries, source.now())))
}

/// Answers `POST /api/callbacks/{id}/resend`: requeues the callback, and returns its new state.
pub(super) async fn resend(source: &Arc<dyn AdminSource>, request: &AdminRequest<'_>) -> AdminReply {
    let resent = async {
        parameters(request.query, [])?;
        let known = CallbackId::parse(request.id).ok_or(Refusal::Unknown)?;
        match done(console::resend(source, request, known).await?)?? {
            Resent::Queued => try_show(&**source, request.id).await,
            Resent::UnderWay => Err(Refusal::UnderWay),
            Resent::Unknown => Err(Refusal::Unknown),
        }
    };
    resent.await.unwrap_or_else(AdminReply::from)
}

/// Answers `POST /api/callbacks/resend`: requeues failed callbacks, a slice for each request.
pub(super) async fn resend_failed(source: &Arc<dyn AdminSource>, request: &AdminRequest<'_>) -> AdminReply {
    try_resend_failed(source, request).await.unwrap_or_else(AdminReply::from)
}

async fn try_resend_failed(source: &Arc<dyn AdminSource>, request: &AdminRequest<'_>) -> Result<AdminReply, Refusal> {
    let names = ["state", "merchant", "since", "until", "limit", "after"];
    let [state, merchant, since, until, limit, after] = parameters(request.query, names)?;
    // Required, so that a request without parameters does not resend everything.
    if state.as_deref() != Some(CallbackState::Failed.as_str()) {
        return Err(RequestError::member("state", "is required and must be `failed`").into());
    }
    let now = source.now();
    let limit = parse("limit", limit, LIMIT, read_limit)?.unwrap_or(RESEND_LIMIT);
    let query = CallbackQuery {
        states: vec![CallbackState::Failed],
        merchant: parse("merchant", merchant, MERCHANT, |text| MerchantId::new(text).ok())?,
        order_id: None,
        since: time(SpanEnd::Since, since, now)?,
        until: time(SpanEnd::Until, until, now)?,
        after: cursor(after)?,
        limit,
    };
    check_merchant(&**source, query.merchant.as_ref()).await?;
    let (resent, last) = done(console::resend_slice(source, request, query).await?)??;
    let next = last.map(write_cursor);
    Ok(reply::document(&serde_json::json!({ "resent": resent, "next": next })))
}

/// Answers `POST /api/callbacks/sample`: sends a sample to a merchant's receiver, and returns the outcome.
pub(super) async fn sample(source: &Arc<dyn AdminSource>, request: &AdminRequest<'_>) -> AdminReply {
    try_sample(source, request).await.unwrap_or_else(AdminReply::from)
}

async fn try_sample(source: &Arc<dyn AdminSource>, request: &AdminRequest<'_>) -> Result<AdminReply, Refusal> {
    let [merchant, key, through, url] = parameters(request.query, ["merchant", "key", "kind", "url"])?;
    let merchant = parse("merchant", merchant, MERCHANT, |text| MerchantId::new(text).ok())?;
    let sample = SampleRequest {
        merchant: merchant.ok_or_else(|| RequestError::member("merchant", "is required"))?,
        api_key: key.map(Cow::into_owned),
        through: parse("kind", through, "must be `v1` or `v2`", |text| {
            Interface::ALL.into_iter().find(|through| through.as_str() == text)
        })?,
        url: url
            .map(|text| CallbackUrl::new_allowing_http(text.trim()))
            .transpose()
            .map_err(|invalid| RequestError::invalid("url", &invalid))?,
    };
    let sampled = done(console::sample(source, request, sample).await?)?;
    let Sampled { id, through, url, body, tried } = sampled.map_err(Refusal::NotSampled)?;
    Ok(reply::document(&sample_document(&id, through.as_str(), &url, &body, &tried)))
}

/// Returns what an action did. The requests of programs have no form that could be sent twice.
fn done<T>(audited: Audited<T>) -> Result<T, Refusal> {
    audited.done.ok_or(Refusal::TooSlow)
}

const LIMIT: &str = "must be a number from 1 to 1000";
const MERCHANT: &str = "must be the id of a merchant";
const STATES: &str = "must be a list of `pending`, `delivered` and `failed`, separated by commas";

/// Parses an optional parameter, without white space around it: it may have been pasted. `expected` is the error message if
/// it is malformed.
fn parse<T>(
    name: &'static str,
    text: Option<Cow<'_, str>>,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, RequestError> {
    text.map(|text| parse(text.trim()).ok_or_else(|| RequestError::member(name, expected))).transpose()
}

fn read_limit(text: &str) -> Option<usize> {
    text.parse().ok().filter(|limit| (1..=MAX_CALLBACKS).contains(limit))
}

fn time(end: SpanEnd, text: Option<Cow<'_, str>>, now: UnixMillis) -> Result<Option<UnixMillis>, RequestError> {
    let time = parse(end.as_str(), text, Moment::EXPECTED, |text| Moment::parse(text, end))?;
    Ok(time.map(|time| time.before(now)))
}

fn cursor(text: Option<Cow<'_, str>>) -> Result<Option<CallbackCursor>, RequestError> {
    parse("after", text, "must be the `next` of an earlier reply", read_cursor)
}
