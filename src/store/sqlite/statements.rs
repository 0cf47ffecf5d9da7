//! The statements that SQLite has its own.

use super::transaction::SqliteTransaction;
use super::{ledger, tasks};
use crate::domain::{Balance, Currency, FailureCause, LedgerAccount, MerchantId, Posting, State, UnixDay, UnixMillis};
use crate::store::homes::{self, Home};
use crate::store::rows::context::NewContext;
use crate::store::rows::ledger::LedgerEntry;
use crate::store::rows::operation::{NewRow, new_operation_columns};
use crate::store::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskQueue};
use crate::store::sql::{Sql, Transaction, sql};
use crate::store::transaction::OwnStatements;

const INSERT: Sql = sql!(concat!(
    "INSERT INTO operations (",
    new_operation_columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING"
));

impl OwnStatements for SqliteTransaction<'_> {
    /// One process serves the file, so there is no other clock.
    fn due(&self, at: UnixMillis) -> UnixMillis {
        at
    }

    async fn insert_operation(
        &self,
        new: &NewRow,
        state: &State,
        failure: Option<FailureCause>,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<bool> {
        let order = new.order_key();
        if !homes::claim(self, order, Home::Operation(new.draft().operation.id)).await? {
            return Ok(false);
        }
        if self.execute(INSERT, &new.columns(state, failure, counted_day)).await? == 0 {
            homes::release(self, order).await?;
            return Ok(false);
        }
        if !new.context.is_known() {
            NewContext::of(new.draft()).insert(self, &new.context).await?;
        }
        Ok(true)
    }

    async fn balance(
        &self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        _lock: bool,
    ) -> rusqlite::Result<i64> {
        ledger::balance(self, merchant.as_str(), currency.as_str(), account).await
    }

    async fn balances(&self, merchant: &MerchantId) -> rusqlite::Result<Vec<(Currency, Balance)>> {
        ledger::balances(self, merchant).await
    }

    async fn post(&self, postings: &[Posting], entry: LedgerEntry<'_>) -> rusqlite::Result<()> {
        ledger::post(self, postings, entry).await
    }

    async fn claim_tasks(&self, claim: &TaskClaim) -> rusqlite::Result<Vec<ClaimedTask>> {
        tasks::claim(self, claim).await
    }

    async fn task_queues(&self, list: &QueueList) -> rusqlite::Result<Vec<TaskQueue>> {
        tasks::queues(self, list).await
    }
}
