//! The sandbox's hosted page (contract section 8): Pay and Decline, safe to send twice, booked like a provider's report.

use std::time::Duration;

use super::{FINISHED_SECONDS, HtmlPage, Opened, PageRequest, PageResponse, Refresh};
use crate::domain::{AccountNumber, Outcome, ProviderKind, Status};
use crate::engine::{Engine, NextAction, Report, Reported};
use crate::failure::{AdmissionError, ApiError, RequestError};
use crate::rules::PageState;

/// The account that Pay pays from.
const PAYER: &str = "4111111111111111";

/// What the form sends, and under which name.
const DECISION: &str = "decision";
const NO_DECISION: &str = "must be sent once, as `pay` or `decline`";

/// What was chosen on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The deposit succeeds.
    Pay,
    /// The deposit fails.
    Decline,
}

impl Decision {
    /// Reads the form's `application/x-www-form-urlencoded` body; other members are ignored.
    ///
    /// # Errors
    /// `decision` is missing, there twice, or neither `pay` nor `decline`.
    pub fn read(body: &[u8]) -> Result<Self, RequestError> {
        let mut values = body.split(|byte| *byte == b'&').filter_map(|pair| {
            let rest = pair.strip_prefix(DECISION.as_bytes())?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"=") }
        });
        match (values.next(), values.next()) {
            (Some(b"pay"), None) => Ok(Self::Pay),
            (Some(b"decline"), None) => Ok(Self::Decline),
            _ => Err(RequestError::member(DECISION, NO_DECISION)),
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::Pay => Outcome::Success { payer: AccountNumber::new(PAYER).ok() },
            Self::Decline => Outcome::Failed,
        }
    }

    const fn status(self) -> Status {
        match self {
            Self::Pay => Status::Success,
            Self::Decline => Status::Failed,
        }
    }
}

/// The page with its form. What has another way by now goes that one.
pub(super) async fn page(engine: &Engine, visit: &PageRequest, opened: Opened) -> Result<PageResponse, ApiError> {
    match opened.way(engine, &visit.rules).await? {
        NextAction::SandboxPage => {
            let page = HtmlPage { action: Some(visit.target.clone()), ..opened.page(PageState::Sandbox) };
            Ok(PageResponse::Page(Box::new(page)))
        }
        NextAction::Finished(status) => Ok(opened.destination(status)),
        NextAction::Preparing | NextAction::Page(_) | NextAction::Instructions(_) | NextAction::Stopped => {
            Ok(PageResponse::Link(opened.deposit.redirect_url))
        }
    }
}

/// Books what was chosen. The page that answers goes on to the return link by itself, since a form may not be redirected to
/// another origin.
pub(super) async fn decide(
    engine: &Engine,
    visit: &PageRequest,
    opened: Opened,
    decision: Decision,
) -> Result<PageResponse, ApiError> {
    // What the page does not offer (any more) is not taken either: a shop may have got another provider meanwhile.
    if !matches!(opened.way(engine, &visit.rules).await?, NextAction::SandboxPage | NextAction::Finished(_)) {
        return Ok(PageResponse::Link(opened.deposit.redirect_url));
    }
    let Opened { operation, .. } = &opened;
    let report = Report::Finished(decision.outcome());
    let (status, contradicts) =
        match engine.report(ProviderKind::Sandbox, &operation.shop, operation.id, report).await? {
            Reported::Taken | Reported::Repeated => (decision.status(), false),
            Reported::Contradicts(booked) => (booked, true),
            // It was made for another provider.
            Reported::Unknown => return Err(AdmissionError::Link.into()),
        };
    let state = if status == Status::Success { PageState::Success } else { PageState::Failed };
    let page = opened.page(state);
    let after = Duration::from_secs(FINISHED_SECONDS);
    let refresh = page.return_url.clone().map(|to| Refresh { after, to: Some(to) });
    Ok(PageResponse::Page(Box::new(HtmlPage { refresh, contradicts, ..page })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_was_chosen() {
        for (body, expected) in [
            ("decision=pay", Some(Decision::Pay)),
            ("decision=decline", Some(Decision::Decline)),
            ("a=b&decision=pay", Some(Decision::Pay)),
            ("decision=pay&decisions=decline", Some(Decision::Pay)),
            ("", None),
            ("decision", None),
            ("decision=", None),
            ("decision=Pay", None),
            ("decision=pay&decision=pay", None),
            ("decision=pay&decision", None),
            ("decision=p%61y", None),
            ("{\"decision\":\"pay\"}", None),
        ] {
            assert_eq!(Decision::read(body.as_bytes()).ok(), expected, "{body}");
        }
        assert_eq!(Decision::Pay.outcome(), Outcome::Success { payer: Some(AccountNumber::new(PAYER).unwrap()) });
    }
}
