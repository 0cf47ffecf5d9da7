//! The entry link: leads the customer of a deposit to the current next action.

use super::page::{DepositPage, HtmlPage, PREPARING_SECONDS, PageRequest, PageResponse, STOPPED_SECONDS};
use crate::engine::{Engine, NextAction};
use crate::error::ApiError;
use crate::rules::PageState;

pub(super) async fn step(
    engine: &Engine,
    request: &PageRequest,
    opened: DepositPage,
) -> Result<PageResponse, ApiError> {
    let page = match opened.next_action(engine, &request.rules).await? {
        NextAction::Finished(status) => return Ok(opened.destination(status)),
        NextAction::Page(url) => return Ok(PageResponse::Away(url)),
        NextAction::SandboxPage => {
            return Ok(PageResponse::Link(engine.sandbox_link(&request.rules.gateway, request.link)));
        }
        NextAction::Preparing => opened.waiting(PageState::Preparing, request, PREPARING_SECONDS),
        NextAction::Stopped => opened.waiting(PageState::Stopped, request, STOPPED_SECONDS),
        NextAction::Instructions(instructions) => HtmlPage {
            instructions: Some(instructions),
            here: Some(request.target.clone()),
            ..opened.page(PageState::Instructions)
        },
    };
    Ok(PageResponse::Page(Box::new(page)))
}
