//! The pages of the console: each handler makes the document of its page, which a template of [`crate::console`] shows.

mod actions;
mod audit;
mod callbacks;
mod context;
mod explain;
mod merchants;
mod operations;
mod overview;
mod rules;
mod samples;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::timeout;

use self::context::{PageError, PageResult};
use super::reply::{AdminReply, Rejection};
use super::routes::ConsolePage as Route;
use crate::store::StoreError;

pub(super) use self::actions::{Audited, reload, resend, resend_slice, sample};
pub(super) use self::context::PageContext;
pub(super) use self::samples::RecentSamples;

/// How long a page waits for the store: with the probe for its banner, less than a connection may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(12);

/// Answers a request for a page, or for an action on one.
pub(super) async fn answer(route: Route, context: &PageContext<'_>) -> AdminReply {
    let answered = timeout(PAGE_TIMEOUT, handle(route, context)).await;
    let too_slow = || Err(PageError::Store(StoreError::Unavailable("it did not answer in time".to_owned())));
    match answered.unwrap_or_else(|_| too_slow()) {
        Ok(reply) => reply,
        Err(error) => context.refused(error).await,
    }
}

/// Answers the request of a user that does not reach its handler: with a page that has the navigation.
pub(super) async fn refused(context: &PageContext<'_>, rejection: &Rejection) -> AdminReply {
    let (error, detail) = rejection.page();
    rejection.reply_with(context.error_page(error, detail).await)
}

async fn handle(route: Route, context: &PageContext<'_>) -> PageResult {
    match route {
        Route::Overview => overview::show(context).await,
        Route::Rules => rules::show(context).await,
        Route::Reload => rules::reload(context).await,
        Route::Merchants => merchants::list(context).await,
        Route::Merchant => merchants::show(context).await,
        Route::Operations => operations::search(context).await,
        Route::Operation => operations::show(context).await,
        Route::Callbacks => callbacks::list(context).await,
        Route::Callback => callbacks::show(context).await,
        Route::ConfirmResend => callbacks::confirm(context).await,
        Route::ResendOne => callbacks::resend_one(context).await,
        Route::ResendMatching => callbacks::resend_matching(context).await,
        Route::SampleForm => callbacks::sample_form(context).await,
        Route::Sample => callbacks::sample(context).await,
        Route::ExplainForm => explain::form(context).await,
        Route::Explain => explain::explain(context).await,
        Route::Audit => audit::list(context).await,
    }
}
