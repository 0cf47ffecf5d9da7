//! The `/api/callbacks` endpoints: list, show and resend callbacks, and send samples.

use std::sync::Arc;

use super::console::{self, Audited};
use super::parameters::{CallbackFilter, FilterWords, given, read, sample_request};
use super::reply::{self, AdminReply};
use super::request::AdminRequest;
use super::source::AdminSource;
use crate::callback::listing::{
    DEFAULT_LIMIT, MAX_CALLBACKS, Slice, document, pasted_order_id, sample_document, write_cursor,
};
use crate::domain::MerchantId;
use crate::error::RequestError;
use crate::store::{CallbackId, CallbackQuery, CallbackState, Resent, StoreError};
use crate::v1::query::parameters;

/// How many failed callbacks one request requeues without a `limit`.
const RESEND_LIMIT: usize = 500;

const WORDS: FilterWords = FilterWords {
    states: "must be a list of `pending`, `delivered` and `failed`, separated by commas",
    order_without_merchant: "requires `merchant`",
    after: "must be the `next` of an earlier reply",
};

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
    let [state, merchant, order_id, since, until, limit, after] = given(query, names)?;
    let filter = CallbackFilter::of([state, merchant, order_id, since, until]);
    // One more shows whether there is a next slice.
    let limit = read_limit(&limit)?.unwrap_or(DEFAULT_LIMIT);
    let mut query = filter.query(&WORDS, &after, limit + 1, source.now())?;
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
    let [state, merchant, since, until, limit, after] =
        given(request.query, ["state", "merchant", "since", "until", "limit", "after"])?;
    // Required, so that a request without parameters does not resend everything.
    if state != CallbackState::Failed.as_str() {
        return Err(RequestError::member("state", "is required and must be `failed`").into());
    }
    let filter = CallbackFilter::of([state, merchant, String::new(), since, until]);
    let limit = read_limit(&limit)?.unwrap_or(RESEND_LIMIT);
    let query = filter.query(&WORDS, &after, limit, source.now())?;
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
    let [merchant, key, kind, url] = given(request.query, ["merchant", "key", "kind", "url"])?;
    if merchant.is_empty() {
        return Err(RequestError::member("merchant", "is required").into());
    }
    let sample = sample_request(&merchant, &key, &kind, &url)?;
    let sampled = done(console::sample(source, request, sample).await?)?;
    Ok(reply::document(&sample_document(&sampled.map_err(Refusal::NotSampled)?)))
}

/// Returns what an action did. The requests of programs have no form that could be sent twice.
fn done<T>(audited: Audited<T>) -> Result<T, Refusal> {
    audited.done.ok_or(Refusal::TooSlow)
}

fn read_limit(text: &str) -> Result<Option<usize>, RequestError> {
    let limit = |text: &str| text.parse().ok().filter(|limit| (1..=MAX_CALLBACKS).contains(limit));
    read("limit", text, "must be a number from 1 to 1000", limit)
}
