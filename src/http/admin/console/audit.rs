//! The audit trail.

use std::collections::BTreeMap;

use super::context::{PageContext, PageResult, ROWS, labelled, shortened};
use crate::callback::listing::{Moment, SpanEnd};
use crate::console::{AuditItem, AuditSearch, AuditView, Fact, PageView};
use crate::domain::UnixMillis;
use crate::error::RequestError;
use crate::store::{ActionEnd, ActionId, ActionQuery, ActionRecord};

/// Answers `GET /audit`.
pub(super) async fn list(context: &PageContext<'_>) -> PageResult {
    let [user, action, since, until, after] = context.parameters(["user", "action", "since", "until", "after"])?;
    let filter = AuditSearch { user, action, since, until };
    let mut view = AuditView { filter, is_continued: !after.is_empty(), ..AuditView::default() };
    match query(&view.filter, &after, context.source.now()) {
        Ok(query) => {
            let mut rows = context.source.store().actions(query).await?;
            let has_more = rows.len() > ROWS;
            rows.truncate(ROWS);
            view.next = rows.last().filter(|_| has_more).map(|row| row.id.0.to_string());
            view.rows = rows.into_iter().map(item).collect();
        }
        Err(error) => view.problem = Some(labelled(&error, &[("since", "Since"), ("until", "Until")])),
    }
    Ok(context.form_page(PageView::Audit(&view), view.problem.is_some()).await)
}

fn query(filter: &AuditSearch, after: &str, now: UnixMillis) -> Result<ActionQuery, RequestError> {
    let named = |text: &str| (!text.is_empty()).then(|| text.into());
    let after = (!after.is_empty()).then(|| after.parse().map(ActionId));
    Ok(ActionQuery {
        user: named(&filter.user),
        action: named(&filter.action),
        since: moment(SpanEnd::Since, &filter.since, now)?,
        until: moment(SpanEnd::Until, &filter.until, now)?,
        after: after.transpose().map_err(|_| RequestError::member("after", "must be the link of an earlier page"))?,
        limit: ROWS + 1,
    })
}

/// Reads a time of a filter; empty: any.
pub(super) fn moment(end: SpanEnd, text: &str, now: UnixMillis) -> Result<Option<UnixMillis>, RequestError> {
    if text.is_empty() {
        return Ok(None);
    }
    match Moment::parse(text, end) {
        Some(moment) => Ok(Some(moment.before(now))),
        None => Err(RequestError::member(end.as_str(), Moment::EXPECTED)),
    }
}

/// The most characters of an outcome in the list. The store bounds all other texts.
const MAX_OUTCOME_CHARS: usize = 300;

fn item(row: ActionRecord) -> AuditItem {
    AuditItem {
        at: row.at,
        user: row.user.into(),
        role: row.role.into(),
        address: row.address.into(),
        request_id: row.request_id.into(),
        action: row.action.into(),
        target: row.target.into(),
        parameters: parameters(&row.parameters),
        is_failed: row.end.as_ref().is_some_and(ActionEnd::is_failure),
        outcome: row.end.map(|end| shortened(&end.outcome, MAX_OUTCOME_CHARS)),
        rules_version: row.rules_version.into(),
    }
}

/// Reads the parameters of an action, a JSON object of texts.
fn parameters(json: &str) -> Vec<Fact> {
    let members: BTreeMap<String, String> = serde_json::from_str(json).unwrap_or_default();
    members.into_iter().map(|(label, value)| Fact { label, value }).collect()
}
