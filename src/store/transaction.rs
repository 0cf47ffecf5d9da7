//! The row operations of one open transaction, implemented by each backend. They make no decisions: the logic over them
//! is written once for all backends.

use crate::domain::{Currency, Direction, LedgerAccount, MerchantId, Posting, State, Status, TransactionId, UnixDay};
use crate::store::callbacks::CallbackRows;
use crate::store::rows::ledger::{LedgerEntry, PostingSource};
use crate::store::rows::operation::NewRow;

/// The row operations that creating and completing operations need. Rows documented as locked stay locked until the end
/// of the transaction, in a database with concurrent writers.
pub(super) trait Rows: CallbackRows {
    /// Reports whether a merchant is not known yet, and locks it. A backend may insert its row for that.
    async fn is_new_merchant(&mut self, merchant: &MerchantId) -> Result<bool, Self::Error>;

    /// Inserts a merchant for which [`Rows::is_new_merchant`] returned `true`.
    async fn add_merchant(&mut self, merchant: &MerchantId) -> Result<(), Self::Error>;

    /// Reads and locks a customer's usage on a day.
    async fn usage(&mut self, customer: Customer<'_>, day: UnixDay) -> Result<Usage, Self::Error>;

    /// Writes a customer's usage on a day. Also deletes some rows of days long past.
    async fn set_usage(&mut self, customer: Customer<'_>, day: UnixDay, usage: Usage) -> Result<(), Self::Error>;

    /// Subtracts an operation from a customer's usage on a day, down to zero. Does nothing if the day's row was
    /// deleted.
    async fn reduce_usage(&mut self, customer: Customer<'_>, day: UnixDay, amount: i64) -> Result<(), Self::Error>;

    /// Reads the balance of an account, zero if nothing was posted. Locks it if `lock` is set.
    async fn balance(
        &mut self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        lock: bool,
    ) -> Result<i64, Self::Error>;

    /// Inserts an operation in a state, counted for its customer on a day, and claims the home of its order. Returns
    /// `false` when the order has a home or the id exists; the transaction must not be committed then.
    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, Self::Error>;

    /// Inserts ledger entries and updates the balances of their accounts.
    async fn post(&mut self, postings: &[Posting], entry: LedgerEntry<'_>) -> Result<(), Self::Error>;

    /// Reports whether any entry was posted under this source.
    async fn has_entries(&mut self, source: PostingSource) -> Result<bool, Self::Error>;

    /// Writes the sealed preparation of an operation, replacing an earlier one.
    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> Result<(), Self::Error>;

    /// Deletes the preparation of an operation, if it has one.
    async fn remove_preparation(&mut self, id: TransactionId) -> Result<(), Self::Error>;

    /// Reads and locks the columns that completing an operation needs.
    async fn unfinished(&mut self, id: TransactionId) -> Result<Option<OperationState>, Self::Error>;

    /// Writes the result of an operation, and the day for which it still counts.
    async fn finish(
        &mut self,
        id: TransactionId,
        finished: &State,
        payer: Option<&[u8]>,
        counted_day: Option<UnixDay>,
    ) -> Result<(), Self::Error>;
}

/// Identifies the operations whose usage is counted together, with the day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Customer<'a> {
    pub(super) merchant: &'a str,
    pub(super) shop: &'a str,
    pub(super) direction: Direction,
    pub(super) account_id: i64,
}

/// A customer's usage on a day: the count of operations and their sum in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) operations: i64,
    pub(super) amount: i64,
}

/// The columns that completing an operation needs.
#[derive(Debug)]
pub(super) struct OperationState {
    pub(super) direction: Direction,
    pub(super) status: Status,
    pub(super) finished_at: Option<i64>,
    pub(super) amount: i64,
    pub(super) merchant: Box<str>,
    pub(super) currency: Box<str>,
    pub(super) shop: Box<str>,
    pub(super) customer_account_id: Option<i64>,
    pub(super) counted_day: Option<UnixDay>,
    /// The merchant's callback address; `None`: the merchant is not called back.
    pub(super) callback_url: Option<Box<str>>,
}
