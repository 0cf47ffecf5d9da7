//! What a remote engine announced by a callback: the status of its operation, read from the engine itself.

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::resolve::{Delivered, Signer, Unresolved};
use super::v1::is_final;
use crate::failure::ApiError;
use crate::rules::RuleSet;
use crate::store::JournalEntry;

/// How an operation stands whose result was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineCallback {
    /// It has a result, which the journal holds now.
    Known,
    /// The engine has none yet.
    Pending,
    /// The entry is gone or was replaced: there is nothing to be asked for.
    Gone,
}

impl Remote {
    /// Asks how the operation of an entry stands, and keeps it. An entry without an answer is settled first: its callback
    /// may be faster than the answer to its create, or the only one of the two that arrived. It is sent whatever its age,
    /// since the engine has just said that it has the operation.
    ///
    /// # Errors
    /// The engine or the store could not answer, or nobody's key is left to sign with.
    pub async fn announced(&self, rules: &RuleSet, entry: JournalEntry) -> Result<EngineCallback, ApiError> {
        let signer = Signer::of(rules, &entry.intent)
            .ok_or_else(|| ApiError::Internal { cause: "no key of the merchant has a v2_secret".to_owned() })?;
        let deadline = self.deadline();
        let intent = &entry.intent;
        let _turn = self.parts.orders.turn(&intent.merchant, intent.direction, &intent.order_id, deadline).await?;
        let found = self.journal().entry(&intent.merchant, intent.direction, &intent.order_id).await?;
        let Some(entry) = found.filter(|found| found.id == entry.id) else { return Ok(EngineCallback::Gone) };
        let entry = if entry.is_answered() { entry } else { self.sent_as_announced(&signer, entry, deadline).await? };
        let entry = self.with_status(signer.key(), entry, deadline).await?;
        Ok(if is_final(&entry) { EngineCallback::Known } else { EngineCallback::Pending })
    }

    /// An entry with the answer to its create, which is sent again. That it is refused proves nothing: the engine has just
    /// said that it has the operation.
    async fn sent_as_announced(
        &self,
        signer: &Signer,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<JournalEntry, ApiError> {
        self.journal().sent_again(entry.id, self.parts.clock.now()).await?;
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
