//! Callbacks: lists, attempts, and sending again.

use super::actions::{self, Audited};
use super::audit::moment;
use super::context::{PageContext, PageError, PageResult, ROWS, labelled, see_result, sentence, unknown_note};
use crate::auth::Interface;
use crate::callback::Sampled;
use crate::callback::listing::{
    DEFAULT_STATES, Slice, SpanEnd, pasted_order_id, read_cursor, read_states, write_cursor,
};
use crate::console::{
    AttemptItem, CallbackItem, CallbackSearch, CallbackView, CallbacksView, PageView, ResendAllView, SampleResult,
    SampleView, Tone,
};
use crate::domain::{CallbackUrl, MerchantId, OrderId, UnixMillis};
use crate::error::RequestError;
use crate::http::admin::source::SampleRequest;
use crate::store::{CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackTry, NextAttempt};
use crate::wire::time::rfc3339;

/// How many failed callbacks are counted before they are sent again.
const MOST_COUNTED: usize = 10_000;

const FILTER: [&str; 5] = ["state", "merchant", "order_id", "since", "until"];

/// The labels of the fields of the filter, and of the form of a sample.
const LABELS: [(&str, &str); 5] = [
    ("state", "State"),
    ("merchant", "Merchant"),
    ("order_id", "Order id"),
    ("since", "Queued since"),
    ("until", "Until"),
];
const SAMPLE_LABELS: [(&str, &str); 3] = [("merchant", "Merchant"), ("kind", "Format"), ("url", "Address")];

/// Answers `GET /callbacks`.
pub(super) async fn list(context: &PageContext<'_>) -> PageResult {
    let [state, merchant, order_id, since, until] = context.parameters(FILTER)?;
    let [after] = context.parameters(["after"])?;
    let filter = CallbackSearch { state, merchant, order_id, since, until };
    let view = listed(context, filter, &after).await?;
    Ok(context.form_page(PageView::Callbacks(&view), view.problem.is_some()).await)
}

/// Returns a filter without the white space around its order id, which a paste brings along, unless the merchant has
/// callbacks of the id as it is: it may be a part of it.
async fn trimmed(context: &PageContext<'_>, mut filter: CallbackSearch) -> Result<CallbackSearch, PageError> {
    if let (Ok(merchant), Ok(exact)) = (MerchantId::new(&filter.merchant), OrderId::new(&filter.order_id)) {
        let order_id = pasted_order_id(context.source.store(), &merchant, exact).await?;
        order_id.as_str().clone_into(&mut filter.order_id);
    }
    Ok(filter)
}

/// Returns a page of the list; `after`: the end of the page before, or empty.
async fn listed(context: &PageContext<'_>, filter: CallbackSearch, after: &str) -> Result<CallbacksView, PageError> {
    let filter = trimmed(context, filter).await?;
    let unknown = context.unknown_merchant(&filter.merchant);
    let (open, open_circuits) = context.source.open_circuits();
    let mut view = CallbacksView {
        is_continued: !after.is_empty(),
        more_circuits: open.saturating_sub(open_circuits.len()),
        open_circuits,
        ..CallbacksView::default()
    };
    match slice_query(&filter, after, context.source.now()) {
        Ok(query) => {
            let slice = Slice::of(context.source.store().callbacks(query).await?, ROWS);
            let now = context.source.now();
            view.callbacks = slice.callbacks.iter().map(|callback| item(callback, now)).collect();
            view.next = slice.next.map(write_cursor);
            view.note = unknown.map(|reason| unknown_note(&reason, !view.callbacks.is_empty()));
        }
        Err(error) => {
            view.problem = Some(unknown.map_or_else(|| labelled(&error, &LABELS), |reason| sentence(&reason)));
        }
    }
    view.filter = filter;
    Ok(view)
}

fn slice_query(filter: &CallbackSearch, after: &str, now: UnixMillis) -> Result<CallbackQuery, RequestError> {
    let wrong = || RequestError::member("after", "must be the link of an earlier page");
    let after = (!after.is_empty()).then(|| read_cursor(after).ok_or_else(wrong)).transpose()?;
    Ok(CallbackQuery { after, limit: ROWS + 1, ..query(filter, now)? })
}

/// Reads a filter.
fn query(filter: &CallbackSearch, now: UnixMillis) -> Result<CallbackQuery, RequestError> {
    let wrong = |name: &'static str, expected: &'static str| move |_| RequestError::member(name, expected);
    let merchant = (!filter.merchant.is_empty()).then(|| MerchantId::new(&filter.merchant));
    let merchant = merchant.transpose().map_err(wrong("merchant", "must be the id of a merchant"))?;
    let order_id = (!filter.order_id.is_empty()).then(|| OrderId::new(&filter.order_id));
    let order_id = order_id.transpose().map_err(wrong("order_id", "must be 1 to 255 characters"))?;
    if order_id.is_some() && merchant.is_none() {
        return Err(RequestError::member("order_id", "requires the merchant"));
    }
    let states =
        if filter.state.is_empty() { Some(DEFAULT_STATES.into()) } else { read_states(&filter.state.replace(' ', "")) };
    Ok(CallbackQuery {
        states: states.ok_or_else(|| RequestError::member("state", "must be pending, delivered or failed"))?,
        merchant,
        order_id,
        since: moment(SpanEnd::Since, &filter.since, now)?,
        until: moment(SpanEnd::Until, &filter.until, now)?,
        after: None,
        limit: ROWS,
    })
}

/// Answers `GET /callbacks/{id}`.
pub(super) async fn show(context: &PageContext<'_>) -> PageResult {
    let id = CallbackId::parse(context.request.id).ok_or(PageError::NotFound)?;
    let view = one(context, id).await?;
    Ok(context.page(PageView::Callback(&view)).await)
}

async fn one(context: &PageContext<'_>, id: CallbackId) -> Result<CallbackView, PageError> {
    let found = context.source.store().callback(id).await?;
    let (callback, tries) = found.ok_or(PageError::NotFound)?;
    let now = context.source.now();
    Ok(CallbackView {
        callback: item(&callback, now),
        transaction_id: callback.transaction_id.as_deref().map(str::to_owned),
        // Its query and path are the merchant's: they may hold a token.
        url: callback.url.origin(),
        format: if callback.is_v1 { "v1" } else { "v2" }.to_owned(),
        is_under_way: callback.is_under_way(now),
        attempts: tries.iter().rev().map(attempt).collect(),
    })
}

/// Answers `POST /callbacks/{id}/resend`.
pub(super) async fn resend_one(context: &PageContext<'_>) -> PageResult {
    let id = CallbackId::parse(context.request.id).ok_or(PageError::NotFound)?;
    let resent = actions::resend(context.source, context.request, id).await?;
    Ok(see_result(&format!("/callbacks/{id}"), &[], resent.id))
}

/// Answers `GET /callbacks/resend`: how many failed callbacks the filter matches.
pub(super) async fn confirm(context: &PageContext<'_>) -> PageResult {
    let [state, merchant, order_id, since, until] = context.parameters(FILTER)?;
    let filter = trimmed(context, CallbackSearch { state, merchant, order_id, since, until }).await?;
    let (now, unknown) = (context.source.now(), context.unknown_merchant(&filter.merchant));
    let query = match failed(&filter, now) {
        Ok(query) => CallbackQuery { limit: MOST_COUNTED, ..query },
        Err(error) => {
            let problem = unknown.map_or_else(|| labelled(&error, &LABELS), |reason| sentence(&reason));
            return not_counted(context, filter, problem).await;
        }
    };
    let (since, until) = (query.since, query.until.map_or(now, |until| until.min(now)));
    let count = context.source.store().count_callbacks(query).await?;
    if let Some(unknown) = unknown.filter(|_| count == 0) {
        return not_counted(context, filter, sentence(&unknown)).await;
    }
    // What fails after the count was shown is not resent: the form has the times, and no ages.
    let (since, until) = (since.map(rfc3339).unwrap_or_default(), rfc3339(until));
    let view = ResendAllView {
        filter: CallbackSearch { since, until, ..filter },
        problem: None,
        count: u64::try_from(count).unwrap_or(u64::MAX),
        has_more: count == MOST_COUNTED,
    };
    Ok(context.page(PageView::ResendAll(&view)).await)
}

/// Shows a filter that counts nothing, to be corrected.
async fn not_counted(context: &PageContext<'_>, filter: CallbackSearch, problem: String) -> PageResult {
    let view = ResendAllView { filter, problem: Some(problem), ..ResendAllView::default() };
    Ok(context.form_page(PageView::ResendAll(&view), true).await)
}

/// Reads a filter for the failed callbacks alone.
fn failed(filter: &CallbackSearch, now: UnixMillis) -> Result<CallbackQuery, RequestError> {
    let any_state = CallbackSearch { state: String::new(), ..filter.clone() };
    Ok(CallbackQuery { states: vec![CallbackState::Failed], ..query(&any_state, now)? })
}

/// Answers `POST /callbacks/resend`: sends all failed callbacks again that the filter matches.
pub(super) async fn resend_matching(context: &PageContext<'_>) -> PageResult {
    let sent = FILTER.map(|name| context.field(name));
    let members: Vec<_> = FILTER.into_iter().zip(sent.iter().map(String::as_str)).collect();
    let [state, merchant, order_id, since, until] = sent.clone();
    if state != CallbackState::Failed.as_str() {
        // Required, so that a form without fields does not resend everything.
        return Err(RequestError::member("state", "is required and must be `failed`").into());
    }
    let filter = CallbackSearch { state, merchant, order_id, since, until };
    let query = match failed(&filter, context.source.now()) {
        Ok(query) => query,
        Err(error) => return not_counted(context, filter, labelled(&error, &LABELS)).await,
    };
    let resent = actions::resend_matching(context.source, context.request, query).await?;
    Ok(see_result("/callbacks", &members, resent.id))
}

/// Answers `GET /callbacks/sample`: the form, and the sample that was sent with it.
pub(super) async fn sample_form(context: &PageContext<'_>) -> PageResult {
    let [merchant, kind] = context.parameters(["merchant", "kind"])?;
    let result = context.result_id().and_then(|id| context.samples.get(id, &merchant));
    let view = SampleView { merchant, kind, result, ..SampleView::default() };
    Ok(context.page(PageView::Sample(&view)).await)
}

/// Answers `POST /callbacks/sample`: sends a sample.
pub(super) async fn sample(context: &PageContext<'_>) -> PageResult {
    let [merchant, kind, url] = ["merchant", "kind", "url"].map(|name| context.field(name));
    let mut view = SampleView { merchant, kind, url, ..SampleView::default() };
    let sample = match sample_request(&view) {
        Ok(sample) => sample,
        Err(error) => {
            view.problem =
                Some(context.unknown_merchant(&view.merchant).unwrap_or_else(|| labelled(&error, &SAMPLE_LABELS)));
            return Ok(context.form_page(PageView::Sample(&view), true).await);
        }
    };
    let sampled = actions::sample(context.source, context.request, sample).await?;
    if let Audited { id: Some(id), done: Some(Ok(sampled)) } = sampled {
        context.samples.keep(id, &view.merchant, sample_result(sampled));
    }
    Ok(see_result("/callbacks/sample", &[("merchant", &view.merchant), ("kind", &view.kind)], sampled.id))
}

fn sample_request(view: &SampleView) -> Result<SampleRequest, RequestError> {
    let merchant = MerchantId::new(&view.merchant);
    let through = Interface::ALL.into_iter().find(|through| through.as_str() == view.kind);
    if through.is_none() && !view.kind.is_empty() {
        return Err(RequestError::member("kind", "must be `v1` or `v2`"));
    }
    let url = (!view.url.is_empty()).then(|| CallbackUrl::new_allowing_http(&view.url));
    Ok(SampleRequest {
        merchant: merchant.map_err(|_| RequestError::member("merchant", "must be the id of a merchant"))?,
        api_key: None,
        through,
        url: url.transpose().map_err(|invalid| RequestError::invalid("url", &invalid))?,
    })
}

fn sample_result(sampled: Sampled) -> SampleResult {
    let Sampled { id, url, body, tried, .. } = sampled;
    // Its path and query may hold a token.
    SampleResult { id, url: url.origin(), body, attempt: attempt(&tried) }
}

fn item(callback: &CallbackRecord, now: UnixMillis) -> CallbackItem {
    let next = callback.next_attempt(now);
    CallbackItem {
        id: callback.id.to_string(),
        merchant: callback.merchant.to_string(),
        order_id: callback.order_id.as_str().to_owned(),
        direction: callback.direction.as_str().to_owned(),
        state: callback.state.as_str().to_owned(),
        attempts: callback.tries,
        queued_at: callback.queued_at,
        next_attempt_at: if let NextAttempt::At(due) = next { Some(due) } else { None },
        waits_for_receiver: next == NextAttempt::WaitsForReceiver,
        last_outcome: callback.last.as_ref().map(ToString::to_string),
    }
}

/// Shows an attempt.
pub(super) fn attempt(tried: &CallbackTry) -> AttemptItem {
    let is_delivered = tried.outcome.is_delivered();
    AttemptItem {
        at: tried.at,
        duration_ms: u64::try_from(tried.duration.as_millis()).unwrap_or(u64::MAX),
        outcome: tried.outcome.to_string(),
        tone: if is_delivered { Tone::Good } else { Tone::Bad },
    }
}
