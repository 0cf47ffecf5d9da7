//! Reports of providers, in a reply or sent by themselves: a result is posted once, repeats change nothing, contradictions
//! are refused and logged (contract sections 7 and 8).

use super::Engine;
use crate::domain::{Direction, Operation, Outcome, Preparation, ProviderKind, ShopCode, Status, TransactionId};
use crate::store::{CompletionOutcome, StoreError};

/// A provider's report about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// No result yet, and nothing for the customer.
    Pending,
    /// No result yet; the next step of a deposit's customer. For a withdrawal, the same as [`Report::Pending`].
    Prepared(Preparation),
    /// A terminal result.
    Finished(Outcome),
}

/// The outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It was accepted: posted, or stored for the customer, or there was nothing to store.
    Taken,
    /// It holds nothing new, or nothing that a completed operation needs.
    Repeated,
    /// The operation has the other result, which stays.
    Contradicts(Status),
    /// This shop has no such operation.
    Unknown,
}

impl Engine {
    /// Applies a report of a shop's provider, of this kind, about an operation that was created for it. When it is accepted,
    /// the provider's job ends in the same commit.
    ///
    /// # Errors
    /// The store could not answer: nothing was changed, and the report may be sent again.
    pub async fn report(
        &self,
        provider: ProviderKind,
        shop: &ShopCode,
        id: TransactionId,
        report: Report,
    ) -> Result<Reported, StoreError> {
        let stored = self.deps.store.by_id(id).await?;
        let own = |operation: &Operation| operation.shop == *shop && operation.provider == provider;
        let Some(stored) = stored.filter(|stored| own(&stored.operation)) else { return Ok(Reported::Unknown) };
        let status = stored.operation.state.status();
        match report {
            Report::Finished(outcome) => self.finish(provider, shop, id, outcome).await,
            _ if status != Status::Pending => Ok(Reported::Repeated),
            Report::Prepared(_) if stored.operation.direction() == Direction::Payout => self.end_job(id).await,
            Report::Pending => self.end_job(id).await,
            Report::Prepared(preparation) => {
                let kept = self.deps.store.prepare(id, preparation).await?;
                Ok(if kept { Reported::Taken } else { Reported::Repeated })
            }
        }
    }

    /// Ends the provider's job: there is nothing to store.
    async fn end_job(&self, id: TransactionId) -> Result<Reported, StoreError> {
        self.deps.store.end_provider_job(id).await.map(|()| Reported::Taken)
    }

    async fn finish(
        &self,
        provider: ProviderKind,
        shop: &ShopCode,
        id: TransactionId,
        outcome: Outcome,
    ) -> Result<Reported, StoreError> {
        match self.deps.store.complete(id, outcome, self.deps.clock.now()).await? {
            CompletionOutcome::Completed => Ok(Reported::Taken),
            CompletionOutcome::AlreadyCompleted => Ok(Reported::Repeated),
            CompletionOutcome::Unknown => Ok(Reported::Unknown),
            CompletionOutcome::Contradicts(status) => {
                let (shop, completed_as) = (shop.as_str(), status.as_str());
                match provider {
                    // A customer of the sandbox's page may press both of its buttons: no reason for a warning.
                    ProviderKind::Sandbox => {
                        tracing::debug!(transaction_id = %id, shop, booked = completed_as, "a contradicting choice was refused");
                    }
                    ProviderKind::Http => {
                        tracing::warn!(transaction_id = %id, shop, booked = completed_as, "a contradicting result was refused");
                    }
                }
                Ok(Reported::Contradicts(status))
            }
        }
    }
}
