//! The row operations of one open transaction: what a database does, and nothing that decides. What happens in a transaction
//! is said over them, once for every backend.

use crate::domain::{
    Currency, Direction, LedgerAccount, MerchantId, Posting, State, Status, TransactionId, UnixDay, UnixMillis,
};
use crate::store::CallbackId;
use crate::store::callbacks::CallbackRows;
use crate::store::rows::CorruptRow;
use crate::store::rows::operation::NewRow;
use crate::store::rows::posting::{LedgerEntry, PostingSource};

/// An open transaction of a database.
pub(super) trait Transaction {
    type Error: From<CorruptRow>;
}

/// One open transaction, and what creates and results do with its rows. What an operation says is locked stays so to the transaction's end, in a database where others write
/// meanwhile.
pub(super) trait Rows: CallbackRows {
    /// Whether a merchant is not known yet; locked.
    async fn is_new_merchant(&mut self, merchant: &MerchantId) -> Result<bool, Self::Error>;

    /// Makes a merchant known that is new.
    async fn add_merchant(&mut self, merchant: &MerchantId) -> Result<(), Self::Error>;

    /// Reads what a customer did on a day; locked.
    async fn usage(&mut self, customer: Customer<'_>, day: UnixDay) -> Result<Usage, Self::Error>;

    /// Writes what a customer did on a day. Some rows of days long ago are removed.
    async fn set_usage(&mut self, customer: Customer<'_>, day: UnixDay, usage: Usage) -> Result<(), Self::Error>;

    /// Takes an operation out of what a customer did on a day, down to nothing; does nothing where the day was removed.
    async fn reduce_usage(&mut self, customer: Customer<'_>, day: UnixDay, amount: i64) -> Result<(), Self::Error>;

    /// Reads the balance of an account, zero when nothing was posted; locked if `lock` says so.
    async fn balance(
        &mut self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        lock: bool,
    ) -> Result<i64, Self::Error>;

    /// Inserts an operation in a state, which counts for its customer on a day, and claims the home of its order; `false`, and
    /// nothing is to stay: its order has a home, or its id exists.
    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, Self::Error>;

    /// Posts entries and changes the balances of their accounts.
    async fn post(&mut self, postings: &[Posting], booking: LedgerEntry<'_>) -> Result<(), Self::Error>;

    /// Whether anything was posted with this.
    async fn has_entries(&mut self, source: PostingSource) -> Result<bool, Self::Error>;

    /// Keeps the sealed preparation of an operation, in place of an earlier one.
    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> Result<(), Self::Error>;

    /// Removes the preparation of an operation, if it has one.
    async fn remove_preparation(&mut self, id: TransactionId) -> Result<(), Self::Error>;

    /// Reads what decides about the result of an operation; locked.
    async fn unfinished(&mut self, id: TransactionId) -> Result<Option<OperationState>, Self::Error>;

    /// Writes the result of an operation and the day for which it still counts.
    async fn finish(
        &mut self,
        id: TransactionId,
        finished: &State,
        payer: Option<&[u8]>,
        counted_day: Option<UnixDay>,
    ) -> Result<(), Self::Error>;
}

/// Whose usage is counted together, beside its day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Customer<'a> {
    pub(super) merchant: &'a str,
    pub(super) shop: &'a str,
    pub(super) direction: Direction,
    pub(super) account_id: i64,
}

/// What a customer did on a day: how many operations, of how many hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) operations: i64,
    pub(super) amount: i64,
}

/// A callback about to be queued.
#[derive(Debug)]
pub(super) struct NewCallback<'a> {
    pub(super) id: CallbackId,
    pub(super) merchant: &'a str,
    /// As [`CallbackTarget::as_str`](crate::store::CallbackTarget::as_str) says it.
    pub(super) target: &'a str,
    pub(super) at: UnixMillis,
}

/// What of an operation decides about its result.
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
    /// Where its merchant is called back; `None`: nowhere.
    pub(super) callback_url: Option<Box<str>>,
}
