//! What a backend does for the core: it runs work over the rows of a transaction, and reads beside.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::Notify;

use super::create::InsertedRow;
use super::homes::{Home, OrderRow};
use super::journal::moves::EntryRows;
use super::rows::CorruptRow;
use super::rows::context::Contexts;
use super::rows::entry::EntryRow;
use super::rows::operation::{NewRow, StoredRow};
use super::rows::status::{V1Status, V2Status};
use super::tasks::{ClaimedTask, TaskClaim, TaskKind, TaskQueue};
use super::transaction::Rows;
use super::vault::Vault;
use super::{
    Audit, AuditProgress, CallbackCursor, CallbackId, CallbackQuery, CallbackRecord, CallbackTry, EntryId, OutboxSize,
    RelayTarget, StoreError,
};
use crate::clock::Random;
use crate::domain::{Balance, Currency, Fingerprint, HistoryQuery, MerchantId, Page, TransactionId, UnixMillis};

/// A database, its connections and its transactions.
pub(super) trait Backend: Send + Sync + 'static {
    type Error: From<CorruptRow>;
    type Rows<'a>: Rows<Error = Self::Error> + EntryRows<Error = Self::Error>;

    fn vault(&self) -> &Vault;

    fn contexts(&self) -> &Contexts;

    /// Counts how often a server was lost, perhaps with commits that no other server has.
    fn losses(&self) -> u64;

    fn random(&self) -> &dyn Random;

    /// Told after a commit that queued a callback or made one due.
    fn queued(&self) -> &Notify;

    /// Refuses work that goes by a clock which is known to be wrong.
    fn require_right_clock(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs work in a transaction and waits for its commit. The work is run again where others were in its way, or the word of
    /// its commit was lost.
    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut Self::Rows<'_>) -> Result<T, Self::Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Creates an operation in a transaction, which is queued at once; `nonce` is of its callback's name.
    fn insert(
        &self,
        new: NewRow,
        nonce: u64,
    ) -> impl Future<Output = Result<InsertedRow, StoreError>> + Send + use<Self>;

    /// Reads what stands under an order.
    fn standing(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<OrderRow, StoreError>> + Send;

    /// Reads an operation.
    fn operation_row(&self, id: TransactionId) -> impl Future<Output = Result<Option<StoredRow>, StoreError>> + Send;

    /// Reads operations, as far as they are there and readable, by their ids.
    fn operation_rows(&self, ids: Vec<i64>)
    -> impl Future<Output = Result<HashMap<i64, StoredRow>, StoreError>> + Send;

    /// Reads what v1 tells of the operation that a v1 request made under an order.
    fn v1_status_row(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<V1Status>, StoreError>> + Send;

    /// Reads what v2 tells of an operation, if it is this merchant's.
    fn v2_status_row(
        &self,
        merchant: &MerchantId,
        id: TransactionId,
    ) -> impl Future<Output = Result<Option<V2Status>, StoreError>> + Send;

    /// Reads what is sealed of an operation, its payer aside.
    fn sealed_details(&self, id: TransactionId) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;

    /// Reads the sealed preparation of an operation that is pending.
    fn sealed_preparation(&self, id: TransactionId)
    -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;

    /// Reads a page of a merchant's v1 list, newest first, between two ids; `listed` is the merchant's number.
    fn listed_rows(
        &self,
        query: HistoryQuery,
        within: RangeInclusive<i64>,
        listed: i64,
    ) -> impl Future<Output = Result<Page<StoredRow>, StoreError>> + Send;

    /// Reads whether a merchant is known.
    fn knows(&self, merchant: &MerchantId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Reads a merchant's balances, by currency, sorted.
    fn balances_of(
        &self,
        merchant: &MerchantId,
    ) -> impl Future<Output = Result<Vec<(Currency, Balance)>, StoreError>> + Send;

    /// Audits the store: see [`Store::audit`](super::Store::audit).
    fn look_at_everything(
        &self,
        progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
    ) -> impl Future<Output = Result<Audit, StoreError>> + Send;

    /// Commits something, to prove that it can.
    fn commit_probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Finishes what was accepted, then closes.
    fn finish(&self) -> impl Future<Output = ()> + Send;

    /// Reads where an order lives.
    fn home(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<Home>, StoreError>> + Send;

    /// Reads an entry.
    fn entry_row(&self, id: EntryId) -> impl Future<Output = Result<Option<EntryRow>, StoreError>> + Send;

    /// Reads so many open entries after a number, in the order of their numbers, each with its number; some cannot be read.
    fn open_rows(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<NumberedEntry>, StoreError>> + Send;

    /// Reads a page of a merchant's answered entries, newest first.
    fn answered_rows(&self, query: HistoryQuery) -> impl Future<Output = Result<Page<EntryRow>, StoreError>> + Send;

    /// Takes tasks that are due.
    fn claim_tasks(&self, claim: TaskClaim) -> impl Future<Output = Result<Vec<ClaimedTask>, StoreError>> + Send;

    /// Reads the queues with tasks.
    fn task_queues(&self, kind: TaskKind) -> impl Future<Output = Result<Vec<TaskQueue>, StoreError>> + Send;

    /// Makes claimed tasks due at another time that cannot be understood.
    fn put_off(
        &self,
        kind: TaskKind,
        keys: Vec<i64>,
        lease_until: UnixMillis,
        until: UnixMillis,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads the random numbers of callbacks and what they are about, as far as it is there and readable, by their keys.
    fn subjects(&self, keys: Vec<i64>)
    -> impl Future<Output = Result<HashMap<i64, (i64, Subject)>, StoreError>> + Send;

    /// Removes callbacks that were delivered or given up: see [`Outbox::forget_callbacks`](super::Outbox::forget_callbacks).
    fn forget_delivered(
        &self,
        until: UnixMillis,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Reads whom an order names, if it was made from v1 with the relay's address.
    fn addressee_of(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<RelayTarget>, StoreError>> + Send;

    /// Reads a callback with its tries.
    fn callback_record(
        &self,
        id: CallbackId,
    ) -> impl Future<Output = Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError>> + Send;

    /// Reads a slice of the list of callbacks, all of one moment.
    fn callback_slice(
        &self,
        query: CallbackQuery,
        scope: Scope,
    ) -> impl Future<Output = Result<Vec<ListedCallback>, StoreError>> + Send;

    /// Reads the places of a slice of the list of callbacks.
    fn callback_places(
        &self,
        query: CallbackQuery,
        scope: Scope,
    ) -> impl Future<Output = Result<Vec<CallbackCursor>, StoreError>> + Send;

    /// Counts what waits and what was given up.
    fn callback_counts(&self) -> impl Future<Output = Result<OutboxSize, StoreError>> + Send;
}

/// An entry and its number; some cannot be read.
pub(super) type NumberedEntry = (i64, Result<EntryRow, StoreError>);

/// A place in the list of callbacks and what stands there, or the column of it that holds what was never written there.
pub(super) type ListedCallback = (CallbackCursor, Result<CallbackRecord, &'static str>);

/// What a callback is about, still sealed.
pub(super) enum Subject {
    Operation(Box<StoredRow>),
    Entry(Box<EntryRow>),
}

/// Among which callbacks a query looks.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    All,
    Merchant(MerchantId),
    /// Those of the orders of these keys, which are this merchant's.
    Orders(MerchantId, [Fingerprint; 2]),
    Nothing,
}
