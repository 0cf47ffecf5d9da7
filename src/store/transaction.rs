//! The row operations of one open transaction: what a database does, and nothing that decides. What happens in a transaction
//! is said over them, once for every backend.

use crate::domain::{
    Currency, Direction, LedgerAccount, MerchantId, Posting, State, Status, TransactionId, UnixDay, UnixMillis,
};
use crate::store::callbacks::CallbackRow;
use crate::store::homes::Home;
use crate::store::rows::NotOurs;
use crate::store::rows::entry::{EntryRow, NewEntry};
use crate::store::rows::operation::NewRow;
use crate::store::rows::posting::{Booking, Occasion};
use crate::store::tasks::{NewTask, TaskKind};
use crate::store::{
    CallbackId, CallbackState, CallbackSubject, CallbackTarget, CallbackTry, Digest, EngineAnswer, EntryId, TryOutcome,
};

/// One open transaction. What an operation says is locked stays so to the transaction's end, in a database where others write
/// meanwhile.
pub(super) trait Rows {
    type Error: From<NotOurs>;

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

    /// Claims a home for each of some orders of one merchant; gives for each where it lives already.
    async fn claim_homes(&mut self, orders: &[Digest], home: Home) -> Result<Vec<Option<Home>>, Self::Error>;

    /// Reads where an order lives.
    async fn home(&mut self, merchant: &MerchantId, order: Digest) -> Result<Option<Home>, Self::Error>;

    /// Gives the home of an entry up that is locked.
    async fn release_home(&mut self, entry: &EntryRow) -> Result<(), Self::Error>;

    /// Inserts an operation in a state, which counts for its customer on a day, and claims the home of its order; `false`, and
    /// nothing is to stay: its order has a home, or its id exists.
    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, Self::Error>;

    /// Posts entries and changes the balances of their accounts.
    async fn post(&mut self, postings: &[Posting], booking: Booking<'_>) -> Result<(), Self::Error>;

    /// Whether anything was posted with this.
    async fn has_entries(&mut self, occasion: Occasion) -> Result<bool, Self::Error>;

    /// Inserts a callback and its task, due at once. An error when its subject has one.
    async fn queue_callback(&mut self, callback: NewCallback<'_>) -> Result<(), Self::Error>;

    /// Reads a callback and its task; locked.
    async fn locked_callback(&mut self, subject: CallbackSubject) -> Result<Option<CallbackRow>, Self::Error>;

    /// Inserts a try of a callback.
    async fn insert_try(
        &mut self,
        subject: CallbackSubject,
        number: i64,
        tried: &CallbackTry,
    ) -> Result<(), Self::Error>;

    /// Whether a try of a number is there and is this one.
    async fn is_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry)
    -> Result<bool, Self::Error>;

    /// Removes the tries of a callback up to a number.
    async fn remove_tries(&mut self, subject: CallbackSubject, until: i64) -> Result<(), Self::Error>;

    /// Writes the state of a callback, how many tries there were, and what came of the last one.
    async fn set_tried(
        &mut self,
        subject: CallbackSubject,
        state: CallbackState,
        tries: i64,
        outcome: &TryOutcome,
    ) -> Result<(), Self::Error>;

    /// Writes how many tries of a callback there were.
    async fn count_try(&mut self, subject: CallbackSubject, tries: i64) -> Result<(), Self::Error>;

    /// Makes a callback pending, with nothing known of it but its tries; its task is queued beside.
    async fn set_queued(
        &mut self,
        subject: CallbackSubject,
        target: &CallbackTarget,
        queued_at: UnixMillis,
    ) -> Result<(), Self::Error>;

    /// Queues a task, in place of one that there is.
    async fn put_task(&mut self, task: NewTask<'_>) -> Result<(), Self::Error>;

    /// Ends the lease of a task, if it is there, with another time to be due at.
    async fn release_task(&mut self, kind: TaskKind, key: i64, due: UnixMillis) -> Result<(), Self::Error>;

    /// Ends a task, if it is there.
    async fn end_task(&mut self, kind: TaskKind, key: i64) -> Result<(), Self::Error>;

    /// Keeps the sealed preparation of an operation, in place of an earlier one.
    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> Result<(), Self::Error>;

    /// Removes the preparation of an operation, if it has one.
    async fn remove_preparation(&mut self, id: TransactionId) -> Result<(), Self::Error>;

    /// Inserts an open entry of the journal under a number, and claims the home of its order; `false`, and nothing was
    /// inserted: its order has a home, or its number exists.
    async fn insert_entry(&mut self, new: &NewEntry, id: EntryId) -> Result<bool, Self::Error>;

    /// Reads an entry.
    async fn entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, Self::Error>;

    /// Reads an entry; locked.
    async fn locked_entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, Self::Error>;

    /// Whether the engine's name for an operation was given to another order than this; the name is locked.
    async fn is_another_orders(&mut self, transaction_id: &str, order: Digest) -> Result<bool, Self::Error>;

    /// Writes the engine's answer into an entry without one.
    async fn answer_entry(&mut self, id: EntryId, answer: &EngineAnswer) -> Result<(), Self::Error>;

    /// Writes the state of an entry without an answer, and when a request for it was last given up or sent again.
    async fn set_doubt(&mut self, id: EntryId, state: i64, doubted_at: i64) -> Result<(), Self::Error>;

    /// Writes the shop, the status and the account of an entry.
    async fn set_heard(&mut self, entry: &EntryRow) -> Result<(), Self::Error>;

    /// Removes an entry that is locked.
    async fn remove_entry(&mut self, id: EntryId) -> Result<(), Self::Error>;

    /// Removes a callback with its tries and its task, if there is one.
    async fn remove_callback(&mut self, subject: CallbackSubject) -> Result<(), Self::Error>;

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
