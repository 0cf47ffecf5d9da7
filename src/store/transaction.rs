//! The statements of a transaction that each database has its own, with the reasons where they are implemented. All others
//! are written once, beside the logic that runs them.

use super::rows::ledger::LedgerEntry;
use super::rows::operation::NewRow;
use super::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskQueue};
use super::sql::Transaction;
use crate::domain::{Balance, Currency, FailureCause, LedgerAccount, MerchantId, Posting, State, UnixDay, UnixMillis};

/// The statements that differ between the databases.
pub(super) trait OwnStatements: Transaction {
    /// Returns when a task is due for all nodes that this node wants to be due at a time: earlier, if its clock is wrongly
    /// ahead.
    fn due(&self, at: UnixMillis) -> UnixMillis;

    /// Inserts an operation in a state (`failure`: why it is FAILED), counted for its customer on a day, and claims the home of its order. Returns
    /// `false` when the order has a home or the id exists; the transaction must not be committed then.
    async fn insert_operation(
        &self,
        new: &NewRow,
        state: &State,
        failure: Option<FailureCause>,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, Self::Error>;

    /// Reads the balance of an account, zero if nothing was posted. Locks it if `lock` is set.
    async fn balance(
        &self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        lock: bool,
    ) -> Result<i64, Self::Error>;

    /// Reads a merchant's balances by currency, sorted.
    async fn balances(&self, merchant: &MerchantId) -> Result<Vec<(Currency, Balance)>, Self::Error>;

    /// Inserts ledger entries and updates the balances of their accounts.
    async fn post(&self, postings: &[Posting], entry: LedgerEntry<'_>) -> Result<(), Self::Error>;

    /// Claims tasks that are due, in the order of the queues and earliest first.
    async fn claim_tasks(&self, claim: &TaskClaim) -> Result<Vec<ClaimedTask>, Self::Error>;

    /// Lists queues with tasks: one step into the index for each queue, however many tasks wait.
    async fn task_queues(&self, list: &QueueList) -> Result<Vec<TaskQueue>, Self::Error>;
}
