//! The audit trail.

use serde::Serialize;

use crate::callback::listing::SpanEnd;
use crate::console::ConsolePage;
use crate::domain::UnixMillis;
use crate::error::RequestError;
use crate::http::admin::context::{AdminContext, HandlerResult, ROWS, labelled};
use crate::http::admin::parameters::moment;
use crate::store::{ActionId, ActionQuery, ActionRecord};
use crate::wire::members::read_parameter;

/// A page of the audit trail.
#[derive(Debug, Default, Serialize)]
pub(super) struct AuditPage {
    pub filter: AuditFilter,
    /// What is wrong with the filter.
    pub problem: Option<String>,
    /// The rows of this page, newest first.
    pub rows: Vec<ActionRecord>,
    /// The parameter `after` of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub is_continued: bool,
}

/// The filter of the audit trail, as it was sent; empty: any.
#[derive(Debug, Default, Serialize)]
pub(super) struct AuditFilter {
    pub user: String,
    pub action: String,
    pub since: String,
    pub until: String,
}

/// Answers `GET /audit`.
pub(in crate::http::admin) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let [user, action, since, until, after] = context.parameters(["user", "action", "since", "until", "after"])?;
    let filter = AuditFilter { user, action, since, until };
    let mut view = AuditPage { filter, is_continued: !after.is_empty(), ..AuditPage::default() };
    match query(&view.filter, &after, context.source.now()) {
        Ok(query) => {
            view.rows = context.source.store().actions(query).await?;
            let has_more = view.rows.len() > ROWS;
            view.rows.truncate(ROWS);
            view.next = view.rows.last().filter(|_| has_more).map(|row| row.id.0.to_string());
        }
        Err(error) => view.problem = Some(labelled(&error, &[("after", "after")])),
    }
    context.form_page(ConsolePage::Audit, &view, view.problem.is_some()).await
}

fn query(filter: &AuditFilter, after: &str, now: UnixMillis) -> Result<ActionQuery, RequestError> {
    let named = |text: &str| (!text.is_empty()).then(|| text.into());
    Ok(ActionQuery {
        user: named(&filter.user),
        action: named(&filter.action),
        since: moment(SpanEnd::Since, &filter.since, now)?,
        until: moment(SpanEnd::Until, &filter.until, now)?,
        after: read_parameter("after", after, "must be the link of an earlier page", |text| {
            text.parse().map(ActionId).ok()
        })?,
        limit: ROWS + 1,
    })
}
