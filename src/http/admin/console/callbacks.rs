//! Callbacks: lists, attempts, and sending again.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::callback::listing::{CallbackDetail, DetailDocument, ListDocument, Slice, sample_document};
use crate::callback::resend::Resending;
use crate::console::ConsolePage;
use crate::domain::UnixMillis;
use crate::error::RequestError;
use crate::http::admin::actions::{self, Audited, SLICE};
use crate::http::admin::context::{AdminContext, HandlerResult, ROWS, labelled, see_result, sentence};
use crate::http::admin::parameters::{CallbackFilter, FilterWords, order_id, pending_of, sample_request};
use crate::http::admin::refused::Refused;
use crate::store::{CallbackId, CallbackQuery, CallbackState, CallbackTarget};
use crate::wire::time::rfc3339;

/// How many callbacks are counted before they are sent again.
const MOST_COUNTED: usize = 10_000;

/// The labels of fields of the filter and of the form of a sample. The end of a page is no field.
const LABELS: [(&str, &str); 4] =
    [("since", "Queued since"), ("kind", "Format"), ("url", "Address"), ("after", "after")];

const WORDS: FilterWords = FilterWords {
    states: "must be pending, delivered or failed",
    order_without_merchant: "requires the merchant",
    after: "must be the link of an earlier page",
};

/// A page of the list of callbacks.
#[derive(Serialize)]
pub(super) struct CallbacksPage<'a> {
    pub filter: &'a CallbackFilter,
    pub problem: Option<String>,
    /// That the merchant is unknown: one that was removed may have callbacks.
    pub note: Option<String>,
    #[serde(flatten)]
    pub list: ListDocument<'a>,
    pub is_continued: bool,
    /// The receivers of these callbacks, if the filter is for pending ones alone.
    pub receivers: Vec<String>,
    /// How many receivers' circuits are open, and the first of them.
    pub open_circuits: (usize, Vec<String>),
}

/// One callback. Its form has no field but `form`.
#[derive(Serialize)]
pub(super) struct CallbackPage<'a> {
    pub callback: DetailDocument<'a>,
    /// How many attempts were made, those that are no longer stored included.
    pub attempts: u32,
}

/// The count of the failed callbacks that a filter matches, or of the pending ones of a receiver, before they are resent. Its
/// form sends the filter again.
#[derive(Default, Serialize)]
pub(super) struct ResendPage {
    pub filter: CallbackFilter,
    /// The receiver whose pending callbacks are to be sent; empty: failed ones that match the filter.
    pub receiver: String,
    /// What is wrong with the filter, so that nothing was counted.
    pub problem: Option<String>,
    /// How many callbacks match.
    pub count: usize,
    /// Whether there are more than were counted.
    pub has_more: bool,
}

/// The form of a sample, as it was sent, and the outcome.
#[derive(Default, Serialize)]
pub(super) struct SamplePage<R> {
    pub merchant: String,
    /// The format `v1` or `v2`; empty: as the merchant's rules have it.
    pub kind: String,
    /// The address; empty: the merchant's own.
    pub url: String,
    /// Why nothing was sent.
    pub problem: Option<String>,
    /// The document of the sample that was sent.
    pub result: Option<R>,
}

/// Answers `GET /callbacks`.
pub(in crate::http::admin) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let mut filter = CallbackFilter::of(context.parameters(CallbackFilter::NAMES)?);
    let [after] = context.parameters(["after"])?;
    filter.trim(&**context.source).await?;
    let unknown = context.unknown_merchant(&filter.merchant);
    let (slice, problem) = match query(&filter, &after, ROWS + 1, context.source.now()) {
        Ok(query) => (Slice::of(context.source.store().callbacks(query).await?, ROWS), None),
        Err(error) => (Slice::default(), Some(problem(&error, unknown.as_deref()))),
    };
    let view = CallbacksPage {
        receivers: pending_receivers(&filter, &slice),
        filter: &filter,
        note: unknown.filter(|_| problem.is_none()).as_deref().map(sentence),
        list: slice.document(context.source.now()),
        is_continued: !after.is_empty(),
        open_circuits: context.source.open_circuits(),
        problem,
    };
    context.form_page(ConsolePage::Callbacks, &view, view.problem.is_some()).await
}

/// Returns the receivers of a list of pending callbacks, without remote engines.
fn pending_receivers(filter: &CallbackFilter, slice: &Slice) -> Vec<String> {
    let targets = slice.callbacks.iter().map(|callback| &callback.target);
    let of_merchants = targets.filter(|target| filter.state == CallbackState::Pending.as_str() && !target.is_engine());
    of_merchants.map(CallbackTarget::origin).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

fn problem(error: &RequestError, unknown: Option<&str>) -> String {
    unknown.map_or_else(|| labelled(error, &LABELS), sentence)
}

/// Reads a filter, whose states a person may have separated by spaces, too.
fn query(filter: &CallbackFilter, after: &str, limit: usize, now: UnixMillis) -> Result<CallbackQuery, RequestError> {
    order_id(&filter.order_id)?;
    CallbackFilter { state: filter.state.replace(' ', ""), ..filter.clone() }.query(&WORDS, after, limit, now)
}

/// Answers `GET /callbacks/{id}`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    let id = CallbackId::parse(context.request.id).ok_or(Refused::NotFound(None))?;
    let (source, now) = (&**context.source, context.source.now());
    let detail = CallbackDetail::find(source.store(), &source.rule_set(), id, now).await?;
    let detail = detail.ok_or(Refused::NotFound(None))?;
    let view = CallbackPage { callback: detail.document(now), attempts: detail.record.tries };
    context.page(ConsolePage::Callback, &view).await
}

/// Answers `POST /callbacks/{id}/resend`.
pub(in crate::http::admin) async fn resend_one(context: &AdminContext<'_>) -> HandlerResult {
    let id = CallbackId::parse(context.request.id).ok_or(Refused::NotFound(None))?;
    let resent = actions::resend(context, id).await?;
    Ok(see_result(&format!("/callbacks/{id}"), &[], resent.id))
}

/// Answers `GET /callbacks/resend`: how many failed callbacks the filter matches, or how many are pending for a receiver.
pub(in crate::http::admin) async fn confirm(context: &AdminContext<'_>) -> HandlerResult {
    let mut filter = CallbackFilter::of(context.parameters(CallbackFilter::NAMES)?);
    let [receiver] = context.parameters(["receiver"])?;
    if !receiver.is_empty() {
        return confirm_pending(context, filter, receiver).await;
    }
    filter.trim(&**context.source).await?;
    let (now, unknown) = (context.source.now(), context.unknown_merchant(&filter.merchant));
    let query = match failed(&filter, MOST_COUNTED, now) {
        Ok(query) => query,
        Err(error) => return not_counted(context, filter, problem(&error, unknown.as_deref())).await,
    };
    let (since, until) = (query.since, query.until.map_or(now, |until| until.min(now)));
    let count = context.source.store().count_callbacks(query).await?;
    if let Some(unknown) = unknown.filter(|_| count == 0) {
        return not_counted(context, filter, sentence(&unknown)).await;
    }
    // What fails after the count was shown is not resent: the form has the times, and no ages.
    let (since, until) = (since.map(rfc3339).unwrap_or_default(), rfc3339(until));
    let filter = CallbackFilter { since, until, ..filter };
    let has_more = count == MOST_COUNTED;
    let view = ResendPage { filter, receiver, problem: None, count, has_more };
    context.page(ConsolePage::ResendAll, &view).await
}

async fn confirm_pending(context: &AdminContext<'_>, filter: CallbackFilter, receiver: String) -> HandlerResult {
    let unknown = context.unknown_merchant(&filter.merchant);
    let pending = match pending_of(&receiver, &filter.merchant) {
        Ok(pending) => pending,
        Err(error) => return not_counted(context, filter, problem(&error, unknown.as_deref())).await,
    };
    let query = pending.query(&context.source.rule_set(), MOST_COUNTED);
    let count = context.source.store().count_pending(query, context.source.now()).await?;
    if let Some(unknown) = unknown.filter(|_| count == 0) {
        return not_counted(context, filter, sentence(&unknown)).await;
    }
    let has_more = count == MOST_COUNTED;
    let view = ResendPage { filter, receiver: pending.receiver.into(), problem: None, count, has_more };
    context.page(ConsolePage::ResendAll, &view).await
}

/// Shows a filter that counts nothing, to be corrected.
async fn not_counted(context: &AdminContext<'_>, filter: CallbackFilter, problem: String) -> HandlerResult {
    let view = ResendPage { filter, problem: Some(problem), ..ResendPage::default() };
    context.form_page(ConsolePage::ResendAll, &view, true).await
}

/// Reads a filter for the failed callbacks alone.
fn failed(filter: &CallbackFilter, limit: usize, now: UnixMillis) -> Result<CallbackQuery, RequestError> {
    query(&CallbackFilter { state: CallbackState::Failed.as_str().to_owned(), ..filter.clone() }, "", limit, now)
}

/// Answers `POST /callbacks/resend`: sends all failed callbacks again that the filter matches, or all pending ones of a receiver
/// now.
pub(in crate::http::admin) async fn resend_matching(context: &AdminContext<'_>) -> HandlerResult {
    let sent = CallbackFilter::NAMES.map(|name| context.field(name));
    let members: Vec<_> = CallbackFilter::NAMES.into_iter().zip(sent.iter().map(String::as_str)).collect();
    let filter = CallbackFilter::of(sent.clone());
    let read = match &*filter.state {
        "failed" => failed(&filter, SLICE, context.source.now()).map(Resending::Failed),
        "pending" => pending_of(&context.field("receiver"), &filter.merchant).map(|pending| {
            let query = pending.query(&context.source.rule_set(), SLICE);
            Resending::Pending(pending, query)
        }),
        // Required, so that a form without fields does not resend everything.
        _ => return Err(RequestError::member("state", "is required and must be `failed` or `pending`").into()),
    };
    let resending = match read {
        Ok(resending) => resending,
        Err(error) => return not_counted(context, filter, labelled(&error, &LABELS)).await,
    };
    let resent = actions::resend_matching(context, resending, false).await?;
    Ok(see_result("/callbacks", &members, resent.id))
}

/// Answers `GET /callbacks/sample`: the form, and the sample that was sent with it.
pub(in crate::http::admin) async fn sample_form(context: &AdminContext<'_>) -> HandlerResult {
    let [merchant, kind] = context.parameters(["merchant", "kind"])?;
    let sampled = context.result_id().and_then(|id| context.samples.get(id, &merchant));
    let result = sampled.as_ref().map(sample_document);
    context.page(ConsolePage::Sample, &SamplePage { merchant, kind, url: String::new(), problem: None, result }).await
}

/// Answers `POST /callbacks/sample`: sends a sample.
pub(in crate::http::admin) async fn sample(context: &AdminContext<'_>) -> HandlerResult {
    let [merchant, kind, url] = ["merchant", "kind", "url"].map(|name| context.field(name));
    let sample = match sample_request(&merchant, "", &kind, &url) {
        Ok(sample) => sample,
        Err(error) => {
            let problem = context.unknown_merchant(&merchant).unwrap_or_else(|| labelled(&error, &LABELS));
            let view = SamplePage::<()> { merchant, kind, url, problem: Some(problem), result: None };
            return context.form_page(ConsolePage::Sample, &view, true).await;
        }
    };
    let sampled = actions::sample(context, sample).await?;
    if let Audited { id: Some(id), done: Some(Ok(sampled)) } = sampled {
        context.samples.keep(id, &merchant, sampled);
    }
    Ok(see_result("/callbacks/sample", &[("merchant", &merchant), ("kind", &kind)], sampled.id))
}
