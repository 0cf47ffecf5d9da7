//! The statements that PostgreSQL has its own.

use super::errors::PgError;
use super::ledger::{self, fold};
use super::transaction::PgTransaction;
use super::{insert, tasks};
use crate::domain::{Balance, Currency, FailureCause, LedgerAccount, MerchantId, Posting, State, UnixDay, UnixMillis};
use crate::store::rows::ledger::LedgerEntry;
use crate::store::rows::operation::NewRow;
use crate::store::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskQueue};
use crate::store::transaction::OwnStatements;

impl OwnStatements for PgTransaction<'_> {
    fn due(&self, at: UnixMillis) -> UnixMillis {
        UnixMillis(at.0.saturating_sub(self.ahead))
    }

    async fn insert_operation(
        &self,
        new: &NewRow,
        state: &State,
        failure: Option<FailureCause>,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, PgError> {
        insert::insert_context(self, new).await?;
        insert::insert_operation(self.executor, new, state, failure, counted_day).await
    }

    /// The changes of a busy account are folded while it is locked anyway.
    async fn balance(
        &self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        lock: bool,
    ) -> Result<i64, PgError> {
        if lock {
            ledger::lock(self, merchant, currency, account).await?;
        }
        let (balance, changes) = ledger::balance(self, merchant, currency, account).await?;
        if lock && changes >= fold::MANY {
            fold::own(self.executor, merchant, currency, account).await?;
        }
        Ok(balance)
    }

    async fn balances(&self, merchant: &MerchantId) -> Result<Vec<(Currency, Balance)>, PgError> {
        ledger::balances(self, merchant).await
    }

    async fn post(&self, postings: &[Posting], entry: LedgerEntry<'_>) -> Result<(), PgError> {
        ledger::post(self, postings, entry).await
    }

    async fn claim_tasks(&self, claim: &TaskClaim) -> Result<Vec<ClaimedTask>, PgError> {
        tasks::claim(self.executor, claim).await
    }

    async fn task_queues(&self, list: &QueueList) -> Result<Vec<TaskQueue>, PgError> {
        tasks::queues(self.executor, list).await
    }
}
