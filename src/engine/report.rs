//! Reports of providers, in a reply or sent by themselves: a result is posted once, repeats change nothing, contradictions
//! are refused and logged, and kept for operators (contract sections 7, 8 and 14).

use super::Engine;
use crate::domain::{
    Direction, Operation, Outcome, Preparation, ProviderKind, ProviderReason, ShopCode, Status, TransactionId,
};
use crate::store::{CompletionOutcome, JobEnd, ResultSource, StoreError};

/// A provider's report about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// No result yet, and nothing for the customer.
    Pending,
    /// No result yet; the next step of a deposit's customer. For a withdrawal, the same as [`Report::Pending`].
    Prepared(Preparation),
    /// A terminal result, with the provider's words about a failure.
    Finished(Outcome, ProviderReason),
}

/// A result whose provider gives no reason.
impl From<Outcome> for Report {
    fn from(outcome: Outcome) -> Self {
        Self::Finished(outcome, ProviderReason::default())
    }
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
            Report::Finished(outcome, reason) => self.finish(provider, shop, id, outcome, reason).await,
            _ if status != Status::Pending => Ok(Reported::Repeated),
            Report::Prepared(_) if stored.operation.direction() == Direction::Payout => {
                self.end_job(&stored.operation).await
            }
            Report::Pending => self.end_job(&stored.operation).await,
            Report::Prepared(preparation) => {
                let (end, now) = (end_with(&preparation), self.deps.clock.now());
                let kept = self.deps.store.prepare(id, preparation, end, now).await?;
                Ok(if kept { Reported::Taken } else { Reported::Repeated })
            }
        }
    }

    /// Ends the provider's job: there is nothing to store.
    async fn end_job(&self, operation: &Operation) -> Result<Reported, StoreError> {
        let end = match (operation.direction(), operation.provider) {
            (Direction::Payout, _) => JobEnd::ReportAwaited,
            (Direction::Payin, ProviderKind::Sandbox) => JobEnd::CustomerAwaited,
            (Direction::Payin, ProviderKind::Http) => {
                let prepared = self.deps.store.preparation(operation.id).await?;
                prepared.as_ref().map_or(JobEnd::ReportAwaited, end_with)
            }
        };
        let ended = self.deps.store.end_provider_job(operation.id, end, self.deps.clock.now());
        ended.await.map(|()| Reported::Taken)
    }

    async fn finish(
        &self,
        provider: ProviderKind,
        shop: &ShopCode,
        id: TransactionId,
        outcome: Outcome,
        reason: ProviderReason,
    ) -> Result<Reported, StoreError> {
        let (now, reported) = (self.deps.clock.now(), outcome.status());
        match self.deps.store.complete(id, outcome, ResultSource::Provider(reason.clone()), now).await? {
            CompletionOutcome::Completed => Ok(Reported::Taken),
            CompletionOutcome::AlreadyCompleted => Ok(Reported::Repeated),
            CompletionOutcome::Unknown => Ok(Reported::Unknown),
            CompletionOutcome::Contradicts(status) => {
                let (shop, completed_as) = (shop.as_str(), status.as_str());
                match provider {
                    // A customer of the sandbox's page may press both of its buttons: no reason for a warning.
                    ProviderKind::Sandbox => {
                        tracing::debug!(transaction_id = %id, shop, posted = completed_as, "a contradicting choice was refused");
                    }
                    ProviderKind::Http => {
                        self.deps.store.keep_contradiction(id, reported, now).await?;
                        let (reported, ProviderReason { code, text }) = (reported.as_str(), reason);
                        tracing::warn!(transaction_id = %id, shop, posted = completed_as, reported, ?code, ?text,
                            "a contradicting result was refused");
                    }
                }
                Ok(Reported::Contradicts(status))
            }
        }
    }
}

/// Returns how a deposit's job ends when its provider prepared this for the customer.
const fn end_with(preparation: &Preparation) -> JobEnd {
    match preparation {
        Preparation::Page(_) | Preparation::Instructions(_) => JobEnd::CustomerAwaited,
        Preparation::Stopped => JobEnd::ReportAwaited,
    }
}
