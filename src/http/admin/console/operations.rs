//! Operations: the list, the search box, one operation, and what operators do about it.

use serde::Serialize;

use crate::callback::listing::SpanEnd;
use crate::console::{self, ConsolePage};
use crate::domain::TransactionId;
use crate::error::RequestError;
use crate::http::admin::actions;
use crate::http::admin::context::{AdminContext, HandlerResult, ROWS, labelled, see_result, sentence};
use crate::http::admin::operations_api::{cannot_resolve, check_resolver, id, resolution, resolution_id, shown};
use crate::http::admin::parameters::named_moment;
use crate::http::admin::refused::Refused;
use crate::http::admin::reply;
use crate::operations::{OperationFilter, OperationTimeline, OperationsDocument, find};
use crate::store::{ActionId, CallbackId};
use crate::telemetry::RefusedQuery;
use crate::telemetry::access::loggable;
use crate::wire::time::rfc3339;

/// A page of the list of operations.
#[derive(Debug, Serialize)]
pub(super) struct OperationsPage {
    pub filter: OperationFilter,
    pub problem: Option<String>,
    /// That the merchant is unknown: one that was removed may have operations.
    pub unknown: Option<String>,
    #[serde(flatten)]
    pub list: OperationsDocument,
    pub is_continued: bool,
}

/// One operation.
#[derive(Debug, Serialize)]
pub(super) struct OperationPage {
    #[serde(flatten)]
    pub document: OperationTimeline,
    /// Whether a resolution needs another operator.
    pub needs_second: bool,
    /// Why the user cannot resolve it; `None`: an operator can.
    pub cannot_resolve: Option<String>,
    /// The reason as it was sent, and what is wrong with it.
    pub reason: String,
    pub problem: Option<String>,
}

/// Answers `GET /operations`.
pub(in crate::http::admin) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let mut filter = OperationFilter::of(context.parameters(OperationFilter::NAMES)?);
    let [after] = context.parameters(["after"])?;
    let unknown = context.unknown_merchant(&filter.merchant);
    let (list, problem) = match listed(context, &filter, &after).await {
        Ok(found) => (found, None),
        Err(Refused::Invalid(error)) => {
            let problem = unknown.as_deref().map_or_else(|| labelled(&error, &LABELS), sentence);
            (OperationsDocument::default(), Some(problem))
        }
        Err(refused) => return Err(refused),
    };
    // It may have been found without the white space that a paste brought along.
    if let Some(found) = list.operations.first().filter(|_| !filter.order_id.is_empty()) {
        filter.order_id.clone_from(&found.order_id);
    }
    let unknown = unknown.filter(|_| problem.is_none()).as_deref().map(sentence);
    let is_continued = !after.is_empty();
    let view = OperationsPage { filter, problem, unknown, list, is_continued };
    context.form_page(ConsolePage::Operations, &view, view.problem.is_some()).await
}

/// The labels of fields whose names differ.
const LABELS: [(&str, &str); 3] =
    [("created_from", "Created from"), ("created_to", "Created before"), ("after", "after")];

/// Searches for a page of the list. Times are read as those of the console's other lists are.
async fn listed(
    context: &AdminContext<'_>,
    filter: &OperationFilter,
    after: &str,
) -> Result<OperationsDocument, Refused> {
    let source = &**context.source;
    let read = |name, text: &str| named_moment(name, SpanEnd::Since, text, source.now());
    let time = |name, text: &str| read(name, text).map(|at| at.map(rfc3339).unwrap_or_default());
    let created_from = time("created_from", &filter.created_from)?;
    let created_to = time("created_to", &filter.created_to)?;
    let search = OperationFilter { created_from, created_to, ..filter.clone() }.search(after, ROWS)?;
    Ok(find(source.store(), &source.rule_set(), &search, &source.overdue()).await?)
}

/// Answers `GET /search`: leads to the page of what an id names, of an operation, an order, a callback or a request.
pub(in crate::http::admin) async fn search(context: &AdminContext<'_>) -> HandlerResult {
    let [pasted] = context.parameters(["q"])?;
    let text = pasted.trim();
    let (source, store) = (&**context.source, context.source.store());
    if text.is_empty() {
        return Ok(reply::see_other("/operations"));
    }
    if let Some(id) = CallbackId::parse(text)
        && store.callback(id).await?.is_some()
    {
        return Ok(reply::see_other(&format!("/callbacks/{id}")));
    }
    let is_operation = match TransactionId::parse(text) {
        Ok(id) => store.by_id(id).await?.is_some(),
        Err(_) => false,
    };
    if is_operation || store.entry_of_transaction(text).await?.is_some() {
        return Ok(reply::see_other(&format!("/operations/{}", console::percent_encoded(text))));
    }
    let filter = OperationFilter { order_id: pasted.clone(), ..OperationFilter::default() };
    let found = match listed(context, &filter, "").await {
        Ok(found) => found,
        // A text that is no order id is none of the others either: the list shows it.
        Err(Refused::Invalid(_)) => OperationsDocument::default(),
        Err(refused) => return Err(refused),
    };
    // After orders: a caller chooses the id of its request.
    let refused = RefusedQuery { request_id: Some(loggable(text).into()), limit: 1, ..RefusedQuery::default() };
    let is_order = !found.operations.is_empty() || !found.other_homes.is_empty();
    if !is_order && !source.refused().find(&refused).is_empty() {
        return Ok(reply::see_other(&console::address("/requests", &[("request_id", text)])));
    }
    let only = found.operations.first().filter(|_| found.operations.len() == 1 && found.other_homes.is_empty());
    let to = match only.and_then(|only| only.transaction_id.as_deref()) {
        Some(id) => format!("/operations/{}", console::percent_encoded(id)),
        None => console::address("/operations", &[("order_id", &*pasted)]),
    };
    Ok(reply::see_other(&to))
}

/// Answers `GET /operations/{transaction_id}`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    page(context, String::new(), None).await
}

/// Renders an operation, with the form that was sent and what is wrong with it.
async fn page(context: &AdminContext<'_>, reason: String, problem: Option<String>) -> HandlerResult {
    let source = &**context.source;
    let view = OperationPage {
        document: shown(context).await?,
        needs_second: source.rule_set().gateway.admin.second_operator,
        cannot_resolve: cannot_resolve(context).map(|refusal| sentence(refusal.reason())),
        reason,
        problem,
    };
    context.form_page(ConsolePage::Operation, &view, view.problem.is_some()).await
}

/// Answers `POST /operations/{transaction_id}/ask`.
pub(in crate::http::admin) async fn ask(context: &AdminContext<'_>) -> HandlerResult {
    let id = id(context)?;
    Ok(see(id, actions::ask(context, id).await?.id))
}

/// Answers `POST /operations/{transaction_id}/resolve`.
pub(in crate::http::admin) async fn resolve(context: &AdminContext<'_>) -> HandlerResult {
    let (id, reason) = (id(context)?, context.field("reason"));
    let new = match resolution(context, id, &context.field("status"), &reason) {
        Ok(new) => new,
        Err(Refused::Invalid(error)) => return page(context, reason, Some(labelled(&error, &[]))).await,
        Err(refused) => return Err(refused),
    };
    Ok(see(id, actions::resolve(context, new).await?.id))
}

/// Answers `POST /operations/{transaction_id}/confirm`.
pub(in crate::http::admin) async fn confirm(context: &AdminContext<'_>) -> HandlerResult {
    let id = id(context)?;
    check_resolver(context)?;
    let number = context.field("resolution");
    if number.is_empty() {
        return Err(RequestError::member("resolution", "is required").into());
    }
    Ok(see(id, actions::confirm(context, id, resolution_id(&number)).await?.id))
}

/// Answers `POST /operations/{transaction_id}/acknowledge`.
pub(in crate::http::admin) async fn acknowledge(context: &AdminContext<'_>) -> HandlerResult {
    let id = id(context)?;
    Ok(see(id, actions::acknowledge(context, id).await?.id))
}

fn see(id: TransactionId, action: Option<ActionId>) -> reply::AdminReply {
    see_result(&format!("/operations/{id}"), &[], action)
}
