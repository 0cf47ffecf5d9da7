//! Callbacks of a remote engine: the result that one announces is read from the engine itself.

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::resolve::{Delivered, Signer, Unresolved};
use super::v1::is_final;
use crate::error::ApiError;
use crate::rules::RuleSet;
use crate::store::JournalEntry;

/// The state of an operation whose result was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineCallback {
    /// The result is known and in the journal.
    Known,
    /// The engine has no result yet.
    Pending,
    /// The entry is gone or was replaced: there is nothing to request.
    Gone,
}

impl Remote {
    /// Requests the status of an entry's operation, and stores it. An entry without a response is resolved first: its callback
    /// may be faster than the response to its create, or the only one of the two that arrived. The create is sent
    /// regardless of its age, since the engine has just announced the operation.
    ///
    /// # Errors
    /// The engine or the store could not answer, or the merchant has no key left to sign with.
    pub async fn announced(&self, rules: &RuleSet, entry: JournalEntry) -> Result<EngineCallback, ApiError> {
        let signer = Signer::of(rules, &entry.create)
            .ok_or_else(|| ApiError::Internal { cause: "no key of the merchant has a v2_secret".to_owned() })?;
        let deadline = self.deadline();
        let create = &entry.create;
        let _guard = self.parts.orders.lock(&create.merchant, create.direction, &create.order_id, deadline).await?;
        let found = self.journal().entry(&create.merchant, create.direction, &create.order_id).await?;
        let Some(entry) = found.filter(|found| found.id == entry.id) else { return Ok(EngineCallback::Gone) };
        let entry = if entry.is_answered() { entry } else { self.sent_as_announced(&signer, entry, deadline).await? };
        let entry = self.with_status(signer.key(), entry, deadline).await?;
        Ok(if is_final(&entry) { EngineCallback::Known } else { EngineCallback::Pending })
    }

    /// Sends the create of an entry again. A refusal proves nothing: the engine has just announced the operation.
    async fn sent_as_announced(
        &self,
        signer: &Signer,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<JournalEntry, ApiError> {
        self.journal().sent_again(entry.id, self.parts.deps.clock.now()).await?;
        let Delivered { outcome, .. } = self.deliver(signer.key(), &entry, deadline).await;
        match outcome {
            Ok(answer) => self.keep(entry, answer).await,
            Err(Unresolved::Failed(failure)) => Err(failure),
            Err(Unresolved::Declined(_)) => {
                let cause = "it refuses the create of the operation whose result it announced".to_owned();
                Err(ApiError::BadEngineReply { cause })
            }
        }
    }
}
