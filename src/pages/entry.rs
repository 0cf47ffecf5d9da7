//! The entry link: leads the customer of a deposit to the current next action.

use super::page::{DepositPage, HtmlPage, PREPARING_SECONDS, PageRequest, PageResponse, STOPPED_SECONDS};
use crate::engine::{Engine, NextAction};
use crate::error::ApiError;
use crate::rules::PageState;

pub(super) async fn step(engine: &Engine, visit: &PageRequest, opened: DepositPage) -> Result<PageResponse, ApiError> {
    let page = match opened.way(engine, &visit.rules).await? {
        NextAction::Finished(status) => return Ok(opened.destination(status)),
        NextAction::Page(url) => return Ok(PageResponse::Away(url)),
        NextAction::SandboxPage => {
            return Ok(PageResponse::Link(engine.links().sandbox_link(&visit.rules.gateway, visit.link)));
        }
        NextAction::Preparing => opened.waiting(PageState::Preparing, visit, PREPARING_SECONDS),
        NextAction::Stopped => opened.waiting(PageState::Stopped, visit, STOPPED_SECONDS),
        NextAction::Instructions(instructions) => HtmlPage {
            instructions: Some(instructions),
            here: Some(visit.target.clone()),
            ..opened.page(PageState::Instructions)
        },
    };
    Ok(PageResponse::Page(Box::new(page)))
}
