//! The last requests that were refused or failed.

use std::sync::Arc;

use serde::Serialize;

use crate::console::ConsolePage;
use crate::error::RequestError;
use crate::http::admin::context::{AdminContext, HandlerResult, ROWS, labelled};
use crate::http::admin::parameters::merchant;
use crate::telemetry::access::loggable;
use crate::telemetry::{RefusedQuery, RefusedRequest};

/// The page of refused requests.
#[derive(Debug, Default, Serialize)]
pub(super) struct RequestsPage {
    pub filter: RequestFilter,
    /// What is wrong with the filter.
    pub problem: Option<String>,
    /// The newest that match.
    pub requests: Vec<Arc<RefusedRequest>>,
    /// Whether older ones match, too.
    pub has_more: bool,
}

/// The filter of refused requests, as it was sent; empty: any.
#[derive(Debug, Default, Serialize)]
pub(in crate::http::admin) struct RequestFilter {
    pub request_id: String,
    pub merchant: String,
    pub reason: String,
}

impl RequestFilter {
    pub(in crate::http::admin) const NAMES: [&'static str; 3] = ["request_id", "merchant", "reason"];

    /// Makes the filter of the values of [`RequestFilter::NAMES`].
    pub(in crate::http::admin) fn of([request_id, merchant, reason]: [String; 3]) -> Self {
        Self { request_id, merchant, reason }
    }

    /// Reads the filter.
    ///
    /// # Errors
    /// A member is malformed.
    pub(in crate::http::admin) fn query(&self, limit: usize) -> Result<RefusedQuery, RequestError> {
        let given = |text: &str| (!text.is_empty()).then(|| text.into());
        Ok(RefusedQuery {
            request_id: given(&loggable(&self.request_id)),
            merchant: merchant(&self.merchant)?.map(|id| id.as_str().into()),
            reason: given(&self.reason),
            limit,
        })
    }
}

/// Answers `GET /requests`.
pub(in crate::http::admin) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let filter = RequestFilter::of(context.parameters(RequestFilter::NAMES)?);
    let mut view = RequestsPage { filter, ..RequestsPage::default() };
    match view.filter.query(ROWS + 1) {
        Ok(query) => view.requests = context.source.refused().find(&query),
        Err(error) => view.problem = Some(labelled(&error, &[])),
    }
    view.has_more = view.requests.len() > ROWS;
    view.requests.truncate(ROWS);
    context.form_page(ConsolePage::Requests, &view, view.problem.is_some()).await
}
