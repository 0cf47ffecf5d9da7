//! The endpoints of the API: the rules, readiness for v2, refused requests, and callbacks.

use std::sync::Arc;

use serde::Serialize;

use super::actions::{self, Audited, SLICE};
use super::console::requests::RequestFilter;
use super::context::{AdminContext, HandlerResult};
use super::parameters::{CallbackFilter, FilterWords, given, pending_of, sample_request};
use super::refused::Refused;
use super::reply;
use super::source::AdminSource;
use crate::callback::listing::{
    CallbackDetail, DEFAULT_LIMIT, MAX_CALLBACKS, Slice, pasted_order_id, read_cursor, read_state, sample_document,
    write_cursor,
};
use crate::callback::resend::Resending;
use crate::domain::{Direction, MerchantId};
use crate::error::RequestError;
use crate::shadow::reported_merchants;
use crate::store::{CallbackId, CallbackQuery, CallbackState, PendingQuery, Resent};
use crate::telemetry::RefusedRequest;
use crate::v1::query::parameters;
use crate::wire::members::read_parameter;

const WORDS: FilterWords = FilterWords {
    states: "must be a list of `pending`, `delivered` and `failed`, separated by commas",
    order_without_merchant: "requires `merchant`",
    after: "must be the `next` of an earlier reply",
};

/// Answers `POST /api/rules/reload`.
pub(super) async fn reload(context: &AdminContext<'_>) -> HandlerResult {
    let reloaded = actions::reload(context).await?;
    let too_slow = || Refused::Unavailable("the reload takes long and continues".to_owned());
    let info = reloaded.done.ok_or_else(too_slow)?;
    Ok(if info.error.is_none() { reply::document(&info) } else { reply::unprocessable(&info) })
}

/// Answers `GET /api/readiness`, for one merchant or for those whose v1 service is still the old one; `shop` and `kind`
/// select rows.
pub(super) async fn readiness(context: &AdminContext<'_>) -> HandlerResult {
    let [merchant, shop, kind] = given(context.request.query, ["merchant", "shop", "kind"])?;
    let kind = read_parameter("kind", &kind, "must be payin or payout", |kind| Direction::parse(kind).ok())?;
    let rules = context.source.rule_set();
    let merchants = if merchant.is_empty() {
        reported_merchants(&rules)
    } else {
        let unknown = || Refused::NotFound(Some(rules.no_such_merchant(&merchant)));
        vec![Arc::clone(rules.merchants.get(&*merchant).ok_or_else(unknown)?)]
    };
    // A report's rows with an empty shop are those of shops that no rule has.
    let shop = (!shop.is_empty()).then(|| shop.trim());
    if let Some(shop) = shop.filter(|shop| !shop.is_empty() && !rules.shops.contains_key(*shop)) {
        return Err(Refused::NotFound(Some(rules.no_such_shop(shop))));
    }
    let report = context.source.readiness(merchants).await?;
    Ok(reply::document(&report.selected(shop, kind)))
}

#[derive(Serialize)]
struct RequestsDocument {
    requests: Vec<Arc<RefusedRequest>>,
}

/// Answers `GET /api/requests`: the last refused and failed requests of this process, the newest first.
pub(super) fn requests(context: &AdminContext<'_>) -> HandlerResult {
    let [request_id, merchant, reason, limit] =
        given(context.request.query, ["request_id", "merchant", "reason", "limit"])?;
    let limit = read_limit(&limit)?.unwrap_or(DEFAULT_LIMIT);
    let query = RequestFilter::of([request_id, merchant, reason]).query(limit)?;
    Ok(reply::document(&RequestsDocument { requests: context.source.refused().find(&query) }))
}

/// Answers `GET /api/callbacks`: a slice of the list, the newest first.
pub(super) async fn callbacks(context: &AdminContext<'_>) -> HandlerResult {
    let source = &**context.source;
    let names = ["state", "merchant", "order_id", "since", "until", "limit", "after"];
    let [state, merchant, order_id, since, until, limit, after] = given(context.request.query, names)?;
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
async fn check_merchant(source: &dyn AdminSource, merchant: Option<&MerchantId>) -> Result<(), Refused> {
    let (rules, store) = (source.rule_set(), source.store());
    let Some(unknown) = merchant.filter(|id| !rules.merchants.contains_key(*id)) else { return Ok(()) };
    let any = CallbackQuery { merchant: Some(unknown.clone()), ..CallbackQuery::of(CallbackState::ALL, 1) };
    if store.count_callbacks(any).await? > 0 || !store.balances(unknown).await?.is_empty() {
        return Ok(());
    }
    Err(Refused::NotFound(Some(rules.no_such_merchant(unknown.as_str()))))
}

/// Answers `GET /api/callbacks/{id}`: one callback with its tries and its body.
pub(super) async fn callback(context: &AdminContext<'_>) -> HandlerResult {
    let (source, now) = (&**context.source, context.source.now());
    let detail = CallbackDetail::find(source.store(), &source.rule_set(), id(context)?, now).await?;
    Ok(reply::document(&detail.ok_or_else(no_callback)?.document(now)))
}

fn id(context: &AdminContext<'_>) -> Result<CallbackId, Refused> {
    CallbackId::parse(context.request.id).ok_or_else(no_callback)
}

fn no_callback() -> Refused {
    Refused::NotFound(Some("there is no such callback".to_owned()))
}

/// Answers `POST /api/callbacks/{id}/resend`: requeues the callback, and returns its new state.
pub(super) async fn resend(context: &AdminContext<'_>) -> HandlerResult {
    parameters(context.request.query, [])?;
    match done(actions::resend(context, id(context)?).await?)?? {
        Resent::Queued => callback(context).await,
        Resent::UnderWay => Ok(reply::conflict("the callback is being sent now: try again later")),
        Resent::Unknown => Err(no_callback()),
    }
}

/// Answers `POST /api/callbacks/resend`: requeues failed callbacks, or pending ones of a receiver, a slice for each request.
pub(super) async fn resend_matching(context: &AdminContext<'_>) -> HandlerResult {
    let [state] = context.parameters(["state"])?;
    // Required, so that a request without parameters does not resend everything.
    let resending = match read_state(&state) {
        Some(CallbackState::Failed) => failed(context).await?,
        Some(CallbackState::Pending) => pending(context).await?,
        _ => return Err(RequestError::member("state", "is required and must be `failed` or `pending`").into()),
    };
    let (resent, ended) = done(actions::resend_matching(context, resending, true).await?)?;
    let next = ended?.map(write_cursor);
    Ok(reply::document(&serde_json::json!({ "resent": resent, "next": next })))
}

/// Reads a slice of the failed callbacks.
async fn failed(context: &AdminContext<'_>) -> Result<Resending, Refused> {
    let names = ["state", "merchant", "since", "until", "limit", "after"];
    let [state, merchant, since, until, limit, after] = given(context.request.query, names)?;
    let filter = CallbackFilter::of([state, merchant, String::new(), since, until]);
    let query = filter.query(&WORDS, &after, read_limit(&limit)?.unwrap_or(SLICE), context.source.now())?;
    check_merchant(&**context.source, query.merchant.as_ref()).await?;
    Ok(Resending::Failed(query))
}

/// Reads a slice of the pending callbacks of a receiver.
async fn pending(context: &AdminContext<'_>) -> Result<Resending, Refused> {
    let names = ["state", "receiver", "merchant", "limit", "after"];
    let [_, receiver, merchant, limit, after] = given(context.request.query, names)?;
    let pending = pending_of(&receiver, &merchant)?;
    let (limit, after) =
        (read_limit(&limit)?.unwrap_or(SLICE), read_parameter("after", &after, WORDS.after, read_cursor)?);
    check_merchant(&**context.source, pending.merchant.as_ref()).await?;
    let query = pending.query(&context.source.rule_set(), limit);
    Ok(Resending::Pending(pending, PendingQuery { after, ..query }))
}

/// Answers `POST /api/callbacks/sample`: sends a sample to a merchant's receiver, and returns the outcome.
pub(super) async fn sample(context: &AdminContext<'_>) -> HandlerResult {
    let [merchant, key, kind, url] = given(context.request.query, ["merchant", "key", "kind", "url"])?;
    if merchant.is_empty() {
        return Err(RequestError::member("merchant", "is required").into());
    }
    let sample = sample_request(&merchant, &key, &kind, &url)?;
    let sampled = done(actions::sample(context, sample).await?)?.map_err(RequestError::body)?;
    Ok(reply::document(&sample_document(&sampled)))
}

/// Returns what an action did. The requests of programs have no form that could be sent twice.
pub(super) fn done<T>(audited: Audited<T>) -> Result<T, Refused> {
    let too_slow =
        || Refused::Unavailable("this takes long and continues: the audit trail shows its outcome".to_owned());
    audited.done.ok_or_else(too_slow)
}

fn read_limit(text: &str) -> Result<Option<usize>, RequestError> {
    let limit = |text: &str| text.parse().ok().filter(|limit| (1..=MAX_CALLBACKS).contains(limit));
    read_parameter("limit", text, "must be a number from 1 to 1000", limit)
}
