//! What a provider says of an operation, asked or by itself: booked once, repeats change nothing, contradictions are
//! refused and told to the operator (contract sections 7 and 8).

use super::Engine;
use crate::domain::{Direction, Operation, Outcome, Preparation, ProviderKind, ShopCode, Status, TransactionId};
use crate::store::{CompletionOutcome, StoreError};

/// What a provider says of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// No result yet, and nothing for the customer.
    Pending,
    /// No result yet; this is how a deposit's customer goes on. A withdrawal has no customer who could: for it, this says
    /// no more than [`Report::Pending`].
    Prepared(Preparation),
    /// A terminal result.
    Finished(Outcome),
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It was taken: booked, or kept for the customer, or there was nothing to keep.
    Taken,
    /// It says what is known, or what a finished operation has no more use for.
    Repeated,
    /// The operation has the other result; it stands.
    Contradicts(Status),
    /// This shop has no such operation.
    Unknown,
}

impl Engine {
    /// Takes what the provider of a shop, of this kind, says of an operation that was made for it. When it is taken, the
    /// provider's job ends in the same commit.
    ///
    /// # Errors
    /// The store could not answer: nothing was taken, and the report may be made again.
    pub async fn report(
        &self,
        provider: ProviderKind,
        shop: &ShopCode,
        id: TransactionId,
        report: Report,
    ) -> Result<Reported, StoreError> {
        let stored = self.store.by_id(id).await?;
        let own = |operation: &Operation| operation.shop == *shop && operation.provider == provider;
        let Some(stored) = stored.filter(|stored| own(&stored.operation)) else { return Ok(Reported::Unknown) };
        let status = stored.operation.state.status();
        match report {
            Report::Finished(outcome) => self.finish(provider, shop, id, outcome).await,
            _ if status != Status::Pending => Ok(Reported::Repeated),
            Report::Prepared(_) if stored.operation.direction() == Direction::Payout => self.end_job(id).await,
            Report::Pending => self.end_job(id).await,
            Report::Prepared(preparation) => {
                let kept = self.store.prepare(id, preparation).await?;
                Ok(if kept { Reported::Taken } else { Reported::Repeated })
            }
        }
    }

    /// There is nothing to keep, and nothing left to ask.
    async fn end_job(&self, id: TransactionId) -> Result<Reported, StoreError> {
        self.store.end_provider_job(id).await.map(|()| Reported::Taken)
    }

    async fn finish(
        &self,
        provider: ProviderKind,
        shop: &ShopCode,
        id: TransactionId,
        outcome: Outcome,
    ) -> Result<Reported, StoreError> {
        match self.store.complete(id, outcome, self.clock.now()).await? {
            CompletionOutcome::Completed => Ok(Reported::Taken),
            CompletionOutcome::AlreadyCompleted => Ok(Reported::Repeated),
            CompletionOutcome::Unknown => Ok(Reported::Unknown),
            CompletionOutcome::Contradicts(booked) => {
                let (shop, booked_as) = (shop.as_str(), booked.as_str());
                match provider {
                    // Whoever has a page of the sandbox open can press both of its buttons: that is no trouble.
                    ProviderKind::Sandbox => {
                        tracing::debug!(transaction_id = %id, shop, booked = booked_as, "a contradicting choice was refused");
                    }
                    ProviderKind::Http => {
                        tracing::warn!(transaction_id = %id, shop, booked = booked_as, "a contradicting result was refused");
                    }
                }
                Ok(Reported::Contradicts(booked))
            }
        }
    }
}
