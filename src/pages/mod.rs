//! The pages of a deposit's customer (promises P176 to P191; contract section 9): the entry link, the return
//! link and the sandbox's hosted page. Viewing a page changes nothing; only the sandbox's Pay and Decline do.

mod decision;
mod entry;
mod page;
mod render;
mod sandbox;
#[cfg(test)]
mod tests;

pub use self::decision::Decision;
pub use self::page::{HtmlPage, LinkKind, PageReply, PageRequest, PageResponse, Payment, Refresh};
pub use self::render::Html;

use self::page::DepositPage;
use crate::engine::Engine;
use crate::error::{AdmissionError, ApiError};

impl PageRequest {
    /// Answers the request.
    ///
    /// # Errors
    /// [`AdmissionError::Link`] if the deposit does not exist (any more); or the store is unavailable.
    pub async fn answer(self, engine: &Engine) -> Result<PageReply, ApiError> {
        let stored = engine.store().by_id(self.link.id).await?;
        let operation = stored.map(|stored| stored.operation);
        // An id that names no deposit is refused like a link that was never issued.
        let opened = operation
            .and_then(|operation| DepositPage::new(engine, &self, operation))
            .ok_or(AdmissionError::Link(None))?;
        let merchant = opened.operation.merchant.clone();
        let step = match (self.kind, self.decision) {
            (LinkKind::Return, _) => opened.destination(opened.operation.state.status()),
            (LinkKind::Entry, _) => entry::step(engine, &self, opened).await?,
            (LinkKind::Sandbox, None) => sandbox::page(engine, &self, opened).await?,
            (LinkKind::Sandbox, Some(decision)) => sandbox::decide(engine, &self, opened, decision).await?,
        };
        Ok(PageReply { merchant, transaction_id: self.link.id, step })
    }
}
