//! What a database backend implements: transactions over rows, and reads outside of them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::Notify;

use super::checks::{CheckColumns, CheckRows};
use super::create::{Home, InsertedRow, OrderRow};
use super::journal::moves::EntryRows;
use super::rows::CorruptRow;
use super::rows::context::Contexts;
use super::rows::entry::EntryRow;
use super::rows::operation::{NewRow, StoredRow, V1Status, V2Status};
use super::tasks::{ClaimedTask, QueueList, TaskClaim, TaskKind, TaskQueue, TaskState};
use super::trail::ActionRows;
use super::transaction::Rows;
use super::vault::Vault;
use super::{
    ActionQuery, ActionRecord, Audit, AuditProgress, CallbackCursor, CallbackQuery, CallbackRecord, CallbackSubject,
    CallbackTry, EntryId, Misdated, OutboxSize, RelayTarget, StoreError, Unanswered,
};
use crate::clock::Random;
use crate::domain::{
    Balance, Currency, Direction, Fingerprint, HistoryQuery, MerchantId, Page, TransactionId, UnixMillis,
};

/// A database, its connections and its transactions.
pub(super) trait Backend: Send + Sync + 'static {
    type Error: From<CorruptRow>;
    type Rows<'a>: Rows<Error = Self::Error>
        + EntryRows<Error = Self::Error>
        + CheckRows<Error = Self::Error>
        + ActionRows<Error = Self::Error>;

    fn vault(&self) -> &Vault;

    fn contexts(&self) -> &Contexts;

    /// Returns how often a server was lost, perhaps with commits that no other server has.
    fn losses(&self) -> u64;

    fn random(&self) -> &dyn Random;

    /// Returns the notification to send after a commit that queued a callback or made one due.
    fn queued(&self) -> &Notify;

    /// Fails if this node's clock is known to be wrong, for work that depends on it.
    fn require_right_clock(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs `work` in a transaction and waits for its commit. Runs it again after a conflict with other transactions,
    /// or when the outcome of the commit was lost.
    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut Self::Rows<'_>) -> Result<T, Self::Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Creates an operation in a transaction. Queues it before returning the future. `nonce` becomes part of its
    /// callback's id.
    fn insert(
        &self,
        new: NewRow,
        nonce: u64,
    ) -> impl Future<Output = Result<InsertedRow, StoreError>> + Send + use<Self>;

    /// Reads what is stored under an order.
    fn order_row(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<OrderRow, StoreError>> + Send;

    /// Reads an operation.
    fn operation_row(&self, id: TransactionId) -> impl Future<Output = Result<Option<StoredRow>, StoreError>> + Send;

    /// Reads operations by their ids; leaves out those that are missing or cannot be read.
    fn operation_rows(&self, ids: Vec<i64>)
    -> impl Future<Output = Result<HashMap<i64, StoredRow>, StoreError>> + Send;

    /// Reads the v1 status of the operation that was created through v1 under an order.
    fn v1_status_row(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<V1Status>, StoreError>> + Send;

    /// Reads the v2 status of an operation, if this merchant created it through v2.
    fn v2_status_row(
        &self,
        merchant: &MerchantId,
        id: TransactionId,
    ) -> impl Future<Output = Result<Option<V2Status>, StoreError>> + Send;

    /// Reads the sealed details of an operation, without its payer.
    fn sealed_details(&self, id: TransactionId) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;

    /// Reads the sealed preparation of a pending operation.
    fn sealed_preparation(&self, id: TransactionId)
    -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;

    /// Reads a page of a merchant's v1 list, newest first, between two ids. `listed` is the merchant's number.
    fn listed_rows(
        &self,
        query: HistoryQuery,
        within: RangeInclusive<i64>,
        listed: i64,
    ) -> impl Future<Output = Result<Page<StoredRow>, StoreError>> + Send;

    /// Reports whether a merchant is known.
    fn is_known_merchant(&self, merchant: &MerchantId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Reads a merchant's balances, by currency, sorted.
    fn balances_of(
        &self,
        merchant: &MerchantId,
    ) -> impl Future<Output = Result<Vec<(Currency, Balance)>, StoreError>> + Send;

    /// Audits the store: see [`Store::audit`](super::Store::audit).
    fn run_audit(
        &self,
        progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
    ) -> impl Future<Output = Result<Audit, StoreError>> + Send;

    /// Commits a change, to check that the store can.
    fn commit_probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Finishes the accepted work, then closes.
    fn finish(&self) -> impl Future<Output = ()> + Send;

    /// Claims the home of an order, together with other claims, and returns its home.
    fn claim_home(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send;

    /// Reads the home of an order.
    fn home(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<Home>, StoreError>> + Send;

    /// Reads an entry.
    fn entry_row(&self, id: EntryId) -> impl Future<Output = Result<Option<EntryRow>, StoreError>> + Send;

    /// Reads the entry with the engine's `transaction_id`, which is digits.
    fn entry_row_of_transaction(
        &self,
        transaction_id: &str,
    ) -> impl Future<Output = Result<Option<EntryRow>, StoreError>> + Send;

    /// Counts entries without an answer, up to `most` in each state.
    fn count_unanswered(&self, most: u16) -> impl Future<Output = Result<Unanswered, StoreError>> + Send;

    /// Reads open entries after a number, ascending, each with its number and, if it cannot be read, an error.
    fn open_rows(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<NumberedEntry>, StoreError>> + Send;

    /// Reads a page of a merchant's answered entries, newest first.
    fn answered_rows(&self, query: HistoryQuery) -> impl Future<Output = Result<Page<EntryRow>, StoreError>> + Send;

    /// Reads the counts of checked creates of a merchant under the rules with a hash.
    fn check_columns(
        &self,
        merchant: &MerchantId,
        rules: Fingerprint,
    ) -> impl Future<Output = Result<Vec<CheckColumns>, StoreError>> + Send;

    /// Reports whether a merchant's ids of a direction are marked as complete.
    fn is_marked_complete(
        &self,
        merchant: &MerchantId,
        direction: Direction,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Claims tasks that are due.
    fn claim_tasks(&self, claim: TaskClaim) -> impl Future<Output = Result<Vec<ClaimedTask>, StoreError>> + Send;

    /// Reads the state of a task.
    fn task_state(
        &self,
        kind: TaskKind,
        key: i64,
    ) -> impl Future<Output = Result<Option<TaskState>, StoreError>> + Send;

    /// Reads queues with tasks.
    fn task_queues(&self, list: QueueList) -> impl Future<Output = Result<Vec<TaskQueue>, StoreError>> + Send;

    /// Makes claimed tasks that cannot be decoded due at another time.
    fn postpone_tasks(
        &self,
        kind: TaskKind,
        keys: Vec<i64>,
        lease_until: UnixMillis,
        until: UnixMillis,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes misdated tasks due; returns how many.
    fn make_tasks_due(&self, misdated: Misdated) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Reads the nonces and subjects of callbacks by their keys; leaves out those that are missing or cannot be read.
    fn subjects(&self, keys: Vec<i64>)
    -> impl Future<Output = Result<HashMap<i64, (i64, Subject)>, StoreError>> + Send;

    /// Deletes callbacks that were delivered or given up: see
    /// [`Outbox::forget_callbacks`](super::Outbox::forget_callbacks).
    fn forget_delivered(
        &self,
        until: UnixMillis,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Reads the target of an order, if it was created through v1 with the relay's address.
    fn relay_target_of(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> impl Future<Output = Result<Option<RelayTarget>, StoreError>> + Send;

    /// Reads the callback of a subject with its tries.
    fn callback_record(
        &self,
        subject: CallbackSubject,
    ) -> impl Future<Output = Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError>> + Send;

    /// Reads a slice of the list of callbacks from one snapshot.
    fn callback_slice(
        &self,
        query: CallbackQuery,
        scope: Scope,
    ) -> impl Future<Output = Result<Vec<ListedCallback>, StoreError>> + Send;

    /// Reads the positions of a slice of the list of callbacks.
    fn callback_places(
        &self,
        query: CallbackQuery,
        scope: Scope,
    ) -> impl Future<Output = Result<Vec<CallbackCursor>, StoreError>> + Send;

    /// Counts the callbacks of a slice of the list.
    fn callback_count(
        &self,
        query: CallbackQuery,
        scope: Scope,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Counts the pending and the failed callbacks.
    fn callback_counts(&self) -> impl Future<Output = Result<OutboxSize, StoreError>> + Send;

    /// Reads a page of actions, newest first.
    fn action_list(&self, query: ActionQuery) -> impl Future<Output = Result<Vec<ActionRecord>, StoreError>> + Send;
}

/// The number of an entry and its row, or an error if it cannot be read.
pub(super) type NumberedEntry = (i64, Result<EntryRow, StoreError>);

/// A position in the list of callbacks with its record, or the name of a column with an invalid value.
pub(super) type ListedCallback = (CallbackCursor, Result<CallbackRecord, &'static str>);

/// The subject of a callback, as read and still encrypted.
pub(super) enum Subject {
    Operation(Box<StoredRow>),
    Entry(Box<EntryRow>),
}

/// The callbacks that a query covers.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    All,
    Merchant(MerchantId),
    /// Those of the orders with these keys, which belong to this merchant.
    Orders(MerchantId, [Fingerprint; 2]),
    Nothing,
}
