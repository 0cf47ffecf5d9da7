//! The entry link: how the customer of a deposit goes on now.

use super::{Opened, PREPARING_SECONDS, Page, STOPPED_SECONDS, Step, Visit};
use crate::engine::{CustomerWay, Engine};
use crate::failure::ApiError;
use crate::rules::PageState;

pub(super) async fn step(engine: &Engine, visit: &Visit, opened: Opened) -> Result<Step, ApiError> {
    let page = match opened.way(engine, &visit.rules).await? {
        CustomerWay::Finished(status) => return Ok(opened.destination(status)),
        CustomerWay::Page(url) => return Ok(Step::Away(url)),
        CustomerWay::SandboxPage => {
            return Ok(Step::Link(engine.links().sandbox_link(&visit.rules.gateway, visit.link)));
        }
        CustomerWay::Preparing => opened.waiting(PageState::Preparing, visit, PREPARING_SECONDS),
        CustomerWay::Stopped => opened.waiting(PageState::Stopped, visit, STOPPED_SECONDS),
        CustomerWay::Instructions(instructions) => Page {
            instructions: Some(instructions),
            here: Some(visit.target.clone()),
            ..opened.page(PageState::Instructions)
        },
    };
    Ok(Step::Page(Box::new(page)))
}
