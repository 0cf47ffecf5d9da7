//! The entry link: how the customer of a deposit goes on now.

use super::{Opened, PREPARING_SECONDS, Page, Refresh, STOPPED_SECONDS, Step, Visit};
use crate::engine::{CustomerWay, Engine};
use crate::failure::Failure;
use crate::rules::PageState;

pub(super) async fn step(engine: &Engine, visit: &Visit, opened: Opened) -> Result<Step, Failure> {
    let page = match opened.way(engine, &visit.rules).await? {
        CustomerWay::Finished(status) => return Ok(opened.destination(status)),
        CustomerWay::Page(url) => return Ok(Step::Away(url)),
        CustomerWay::SandboxPage => {
            return Ok(Step::Link(engine.links().sandbox_link(&visit.rules.gateway, visit.link)));
        }
        CustomerWay::Preparing => {
            let refresh = Some(Refresh::again(PREPARING_SECONDS));
            Page { refresh, here: Some(visit.target.clone()), ..opened.page(PageState::Preparing) }
        }
        CustomerWay::Instructions(instructions) => Page {
            instructions: Some(instructions),
            here: Some(visit.target.clone()),
            ..opened.page(PageState::Instructions)
        },
        CustomerWay::Stopped => Page {
            refresh: Some(Refresh::again(STOPPED_SECONDS)),
            here: Some(visit.target.clone()),
            ..opened.page(PageState::Stopped)
        },
    };
    Ok(Step::Page(Box::new(page)))
}
