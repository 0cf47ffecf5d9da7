//! The sandbox's hosted page (contract section 8): Pay and Decline are safe to send twice, and are recorded like a
//! provider's report.

use std::time::Duration;

use super::decision::Decision;
use super::page::{DepositPage, FINISHED_SECONDS, HtmlPage, PageRequest, PageResponse, Refresh};
use crate::domain::{ProviderKind, Status};
use crate::engine::{Engine, NextAction, Report, Reported};
use crate::error::{AdmissionError, ApiError};
use crate::rules::PageState;

/// Returns the page with its form, or a redirect if the deposit has another next action by now.
pub(super) async fn page(
    engine: &Engine,
    request: &PageRequest,
    opened: DepositPage,
) -> Result<PageResponse, ApiError> {
    match opened.next_action(engine, &request.rules).await? {
        NextAction::SandboxPage => {
            let page = HtmlPage { action: Some(request.target.clone()), ..opened.page(PageState::Sandbox) };
            Ok(PageResponse::Page(Box::new(page)))
        }
        NextAction::Finished(status) => Ok(opened.destination(status)),
        NextAction::Preparing | NextAction::Page(_) | NextAction::Instructions(_) | NextAction::Stopped => {
            Ok(PageResponse::Link(opened.deposit.redirect_url))
        }
    }
}

/// Completes the deposit as decided. The result page goes to the return link by itself, since a form's reply may not
/// redirect to another origin.
pub(super) async fn decide(
    engine: &Engine,
    request: &PageRequest,
    opened: DepositPage,
    decision: Decision,
) -> Result<PageResponse, ApiError> {
    // A decision that the page does not offer (any more) is ignored: the shop may have got another provider meanwhile.
    if !matches!(opened.next_action(engine, &request.rules).await?, NextAction::SandboxPage | NextAction::Finished(_)) {
        return Ok(PageResponse::Link(opened.deposit.redirect_url));
    }
    let DepositPage { operation, .. } = &opened;
    let report = Report::from(decision.outcome());
    let (status, contradicts) =
        match engine.report(ProviderKind::Sandbox, &operation.shop, operation.id, report).await? {
            Reported::Taken | Reported::Repeated => (decision.status(), false),
            Reported::Contradicts(completed) => (completed, true),
            // The operation was created for another provider.
            Reported::Unknown => return Err(AdmissionError::Link(None).into()),
        };
    let state = if status == Status::Success { PageState::Success } else { PageState::Failed };
    let page = opened.page(state);
    let after = Duration::from_secs(FINISHED_SECONDS);
    let refresh = page.return_url.clone().map(|to| Refresh { after, to: Some(to) });
    Ok(PageResponse::Page(Box::new(HtmlPage { refresh, contradicts, ..page })))
}
