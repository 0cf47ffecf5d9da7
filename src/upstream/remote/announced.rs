//! What a remote engine announced by a callback: the status of its operation, read from the engine itself.

use super::Remote;
use super::settle::{Settled, Signer};
use super::v1::is_final;
use crate::failure::Failure;
use crate::rules::RuleSet;
use crate::store::Entry;

/// How an operation stands whose result was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// It has a result, which the journal holds now.
    Known,
    /// The engine has none yet.
    Pending,
    /// There is no such operation: the engine refuses the create.
    Gone,
}

impl Remote {
    /// Asks how the operation of an entry stands, and keeps it. An entry without an answer is settled first: its callback
    /// may be faster than the answer to its create, or the only one of the two that arrived. It is sent whatever its age,
    /// since the engine has just said that it has the operation.
    ///
    /// # Errors
    /// The engine or the store could not answer, or nobody's key is left to sign with.
    pub async fn announced(&self, rules: &RuleSet, entry: Entry) -> Result<Announced, Failure> {
        let signer = Signer::of(rules, &entry.intent)
            .ok_or_else(|| Failure::Internal { cause: "no key of the merchant has a v2_secret".to_owned() })?;
        let deadline = self.deadline();
        let intent = &entry.intent;
        let _turn = self.parts.orders.turn(&intent.merchant, intent.direction, &intent.order_id, deadline).await?;
        let found = self.journal().entry(&intent.merchant, intent.direction, &intent.order_id).await?;
        let Some(entry) = found.filter(|found| found.id == entry.id) else { return Ok(Announced::Gone) };
        let entry = if entry.is_answered() {
            entry
        } else {
            match self.settle(&signer, entry, false, deadline).await? {
                Settled::Made(entry) => *entry,
                Settled::Declined(_) => return Ok(Announced::Gone),
            }
        };
        let entry = self.heard(signer.key(), entry, deadline).await?;
        Ok(if is_final(&entry) { Announced::Known } else { Announced::Pending })
    }
}
