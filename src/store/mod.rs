//! The durable store of operations, callbacks and journal entries. The engine uses it through [`Store`], a trait with
//! few methods, each one transaction. Every backend passes the same conformance suite.
//!
//! ```text
//! create, complete,  the logic of each transaction, written once; each file declares the row operations that it needs
//! callbacks, journal,
//! checks, tasks, trail
//! backend            what a database implements; the files named blanket implement Store, Journal, Outbox and AuditTrail for it
//! audit              the invariants of the rows
//! answers            how the callers of a batch are answered
//! format             recognizes stores of unreleased builds
//! rows, vault        conversion between domain values and columns; encryption
//! sqlite, postgres   connections, batches and SQL
//! ```
//!
//! Every backend encrypts account numbers, payer accounts and `fields` at rest and compares requests by keyed hashes
//! (contract section 11). The engine passes and receives plain domain values.

mod answers;
mod audit;
mod backend;
mod blanket;
mod callback_id;
mod callbacks;
mod checks;
mod complete;
#[cfg(test)]
mod conformance;
mod copy;
mod create;
mod format;
mod journal;
mod open;
mod opened;
mod outbox;
pub mod postgres;
mod rows;
mod secret_file;
pub mod sqlite;
mod tasks;
mod trail;
mod transaction;
mod url;
pub mod vault;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use audit::{Audit, AuditProgress};
pub use callback_id::{CallbackId, CallbackSubject};
pub use checks::{CheckClass, CheckCount};
pub use copy::CopyError;
pub use create::{HomeClaim, OpeningBalances, OrderHome};
pub use journal::{
    Backlog, EngineAnswer, EntryId, EntryProgress, Journal, JournalEntry, JournalOutcome, NotKept, PendingCreate,
    RemoteOperation, StatusUpdate, Unanswered,
};
pub use open::{StoreSettings, open_beside, open_store, rewrap_keys};
pub use opened::{Holds, OpenError, Opened};
pub use outbox::{
    CallbackClaim, CallbackCursor, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue,
    CallbackRecord, CallbackState, CallbackTarget, CallbackTry, ExpireRequest, NextAttempt, Outbox, OutboxSize,
    RelayTarget, Relayed, Resent, ResultChange, TryOutcome,
};
pub use secret_file::{StoreKeys, secret_file};
pub use tasks::{Misdated, MisdatedWaits, TaskKind};
pub use trail::{ActionEnd, ActionId, ActionQuery, ActionRecord, AuditTrail, BeginOutcome, FormKey, NewAction};
pub use url::{PostgresTls, PostgresUrl, StoreUrl};
pub use vault::Rewrapped;
pub use vault::VaultError;

use crate::domain::{
    Amount, Balance, CallbackSender, Currency, Direction, Fields, Fingerprint, FingerprintKey, HistoryQuery,
    MemberFingerprints, MerchantId, Operation, OperationView, OrderId, Outcome, Page, Preparation, SchemaFields,
    ShopCode, Status, StatusRecord, TransactionId, UnixDay, UnixMillis,
};

/// The future that a store method returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store operation failed. Nothing was acknowledged, and the caller may send the same request again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A temporary failure: the disk is full or failing, the database is unreachable or busy, or the writer's queue is
    /// full.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Stored data cannot be decoded: a defect, or the store was tampered with.
    #[error("the store holds invalid data: {0}")]
    Corrupt(String),
}

/// The durable store of operations, of callbacks, of the journal of creates that were forwarded to a remote engine, and
/// of the audit trail.
pub trait Store: Journal + Outbox + AuditTrail + Send + Sync + 'static {
    /// Returns the key of the hashes that requests are compared by. It never changes during the life of a store.
    fn fingerprint_key(&self) -> &FingerprintKey;

    /// Stores a new operation with everything that belongs to it in one commit, unless its merchant, direction and
    /// `order_id` already name an operation or are reserved. Resolves only after the commit is on disk.
    ///
    /// The commit contains, in this order: the merchant's opening balances, if the merchant is not known yet; for a
    /// pending operation the checks of the customer's daily limit and then, for a withdrawal, of the balance (either
    /// may turn it FAILED, see [`CreateOutcome`]); the operation; the hold of a pending withdrawal; the provider job of
    /// a pending operation; the callback of a finished one.
    fn create(&self, draft: NewOperation) -> StoreFuture<'_, InsertOutcome>;

    /// Returns what is stored under a merchant's `order_id`.
    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, OrderLookup>;

    /// Returns an operation by its id, of any merchant.
    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>>;

    /// Returns the v1 status of the operation that the merchant created through v1 under an `order_id`; `None` when
    /// there is none, or it was created through v2. Cheaper than [`Store::by_order`].
    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>>;

    /// Returns the v2 status of an operation that the merchant created through v2; `None` when there is none, or it is
    /// another merchant's or was created through v1. Cheaper than [`Store::by_id`].
    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>>;

    /// Returns the decrypted `fields` of an operation.
    fn fields(&self, id: TransactionId) -> StoreFuture<'_, Option<Fields>>;

    /// Completes an operation. One commit writes the result, its ledger entries and its callback, gives back the daily
    /// usage of a failed operation, and removes the provider job and the preparation. A repeated result changes
    /// nothing.
    fn complete(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> StoreFuture<'_, CompletionOutcome>;

    /// Stores what a provider prepared for the customer of a pending deposit, replacing an earlier preparation, and
    /// ends the operation's provider job, in one commit. Returns `false`, with nothing stored, when there is no such
    /// pending deposit.
    fn prepare(&self, id: TransactionId, preparation: Preparation) -> StoreFuture<'_, bool>;

    /// Returns what a provider prepared for a deposit that is still pending.
    fn preparation(&self, id: TransactionId) -> StoreFuture<'_, Option<Preparation>>;

    /// Returns the shops that have provider jobs, each with the time when its earliest job is due (for a leased job,
    /// when its lease ends).
    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>>;

    /// Claims a shop's due provider jobs, earliest first, and hides them from other claims until the lease ends. After
    /// that the jobs of a process that died can be claimed again.
    fn claim_provider_jobs(&self, claim: Claim) -> StoreFuture<'_, Vec<ProviderJob>>;

    /// Returns the state of an operation's provider job; `None` if nothing is left to do for it. One indexed read.
    fn provider_job(&self, id: TransactionId) -> StoreFuture<'_, Option<ProviderJobState>>;

    /// Makes a claimed provider job due at another time. Does nothing if the job has ended.
    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> StoreFuture<'_, ()>;

    /// Ends an operation's provider job without a result, because nothing is left to do for it.
    fn end_provider_job(&self, id: TransactionId) -> StoreFuture<'_, ()>;

    /// Makes tasks due whose times cannot be right; returns how many. They keep their attempts.
    fn make_due(&self, misdated: Misdated) -> StoreFuture<'_, usize>;

    /// Reserves `order_id`s for v1 in one commit. Ids that already name an operation or a journal entry are left
    /// unchanged (contract section 7, `import-ids`). A commit that reserves any id also removes the mark of
    /// [`Store::mark_complete`].
    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations>;

    /// Marks a merchant's reserved ids of a direction as complete: legacy has no others that did not pass this gateway.
    fn mark_complete<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()>;

    /// Reports whether a merchant's reserved ids of a direction are marked as complete. One indexed read.
    fn ids_complete<'a>(&'a self, merchant: &'a MerchantId, direction: Direction) -> StoreFuture<'a, bool>;

    /// Adds counts of checked creates to the stored ones in one commit: the sum of the counts, the earliest `since`,
    /// and different samples up to [`CheckCount::MAX_SAMPLES`]. Also deletes the counts of the same merchants under
    /// rules that nothing was added to for an hour before `at`. Counts may be added twice when a database server is
    /// lost during the commit.
    fn add_check_counts(&self, counts: Vec<CheckCount>, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Returns the counts of a merchant under the rules with a hash, sorted by shop, direction, class, count
    /// (descending), member and reason.
    fn check_counts<'a>(&'a self, merchant: &'a MerchantId, rules: Fingerprint) -> StoreFuture<'a, Vec<CheckCount>>;

    /// Claims an order that has no home, and returns its home. Resolves only after the claim is on disk; claims share a
    /// commit (contract section 6, "Homes and modes").
    fn claim<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
        claim: HomeClaim,
        at: UnixMillis,
    ) -> StoreFuture<'a, OrderHome>;

    /// Returns the home of a merchant's order, if it has one.
    fn order_home<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OrderHome>>;

    /// Posts a merchant's opening balances on their own, unless the merchant is known: it has operations, or its ledger
    /// was opened before. Resolves only after the commit is on disk.
    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()>;

    /// Returns a merchant's balances, sorted by currency. Currencies without any ledger entry are absent.
    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>>;

    /// Returns a page of a merchant's operations created through v1, newest first, from one snapshot. The query scans
    /// one index, which covers all filters, and then reads the matching rows; skipped index entries cost some 0.1 us
    /// each. Two lists are read at a time, on threads that serve no requests. A query that takes over two seconds, or
    /// waits as long for its turn, fails with [`StoreError::Unavailable`].
    ///
    /// Times are the ones encoded in the `transaction_id`s (see [`TransactionId::first_of`]): `created_at` to the
    /// millisecond.
    fn history(&self, query: HistoryQuery) -> StoreFuture<'_, Page<Operation>>;

    /// Checks the invariants on one snapshot, without blocking writers: the entries of a merchant and currency sum to
    /// zero, and its accounts are their sums; every operation has the postings that its state requires, and no posting
    /// lacks its operation; every result has its callback; callbacks and their tries belong to a completed operation or
    /// entry, and to its target; jobs and preparations belong to pending operations; journal entries match their
    /// states; everything sealed can be decrypted. `progress` is called from time to time, from another thread.
    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit>;

    /// Checks that the store can still commit.
    fn probe(&self) -> StoreFuture<'_, ()>;

    /// Finishes the accepted work, then closes. Later calls fail with [`StoreError::Unavailable`].
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// An operation about to be stored.
#[derive(Debug)]
pub struct NewOperation {
    /// The operation; its state may already be finished ("created FAILED").
    pub operation: Operation,
    /// The store's [`FingerprintKey::order_key`] of the operation's order, if the caller has computed it already.
    pub order_key: Option<Fingerprint>,
    /// The key it was created with, which signs its callbacks.
    pub api_key: Arc<str>,
    /// The `fields` of the request.
    pub fields: Fields,
    /// What a repeated request is compared with.
    pub comparison: RequestFingerprint,
    /// How the merchant is called back, for an operation translated from v1.
    pub v1: Option<CallbackSender>,
    /// When the provider job is due; `None` when the provider has nothing to do.
    pub provider_job: Option<UnixMillis>,
    /// `balance.opening`: posted in the same commit if the store does not know the merchant yet. `None`: the merchant
    /// is known to the store.
    pub opening: Option<Arc<[(Currency, Amount)]>>,
    /// A withdrawal that the available balance does not cover is created FAILED.
    pub enforce_balance: bool,
    /// The customer's limits, when the operation names a customer and its shop has limits.
    pub daily_limit: Option<DailyLimit>,
}

/// The limits of a customer (`customer_account_id` of a merchant) in a shop and direction on one UTC day. Pending and
/// succeeded operations count. An operation that would exceed a limit is created FAILED and does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyLimit {
    /// The day on which the operation is created.
    pub day: UnixDay,
    /// The most operations.
    pub operations: Option<u32>,
    /// The highest total amount.
    pub amount: Option<Amount>,
}

/// What a repeated request is compared with (contract section 7, "repeat").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFingerprint {
    /// The keyed hash of the canonical request; for an operation translated from v1, of the v1 body.
    pub fingerprint: Fingerprint,
    /// The members of `fields` that the schema in force at creation kept.
    pub kept: SchemaFields,
}

/// What the gateway stores of a v1 create that became a v2 request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Request {
    /// The keyed hash of the v1 body, decoded and canonical.
    pub fingerprint: Fingerprint,
    /// Fingerprints of the body's members that the v2 request does not hold.
    pub members: MemberFingerprints,
    /// How the merchant receives the result.
    pub sender: CallbackSender,
    /// The [`FingerprintKey::order_key`] of its order.
    pub order: Fingerprint,
}

/// An operation as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The operation.
    pub operation: Operation,
    /// The key it was created with.
    pub api_key: Box<str>,
    /// What a repeated request is compared with.
    pub comparison: RequestFingerprint,
    /// How the merchant is called back; present when the operation was translated from v1.
    pub v1: Option<CallbackSender>,
}

/// What is stored under an `order_id`.
#[derive(Debug, PartialEq, Eq)]
pub enum OrderLookup {
    /// Nothing.
    Free,
    /// An operation.
    Operation(Box<Stored>),
    /// Another home than an operation, most often the old v1 service.
    Reserved,
}

impl OrderLookup {
    /// Returns the operation, if there is one.
    #[must_use]
    pub fn operation(self) -> Option<Stored> {
        match self {
            Self::Operation(stored) => Some(*stored),
            Self::Free | Self::Reserved => None,
        }
    }
}

/// The outcome of storing a [`NewOperation`].
#[derive(Debug)]
pub enum InsertOutcome {
    /// The operation is on disk.
    Created(CreateOutcome),
    /// The order exists: nothing was stored. Holds the existing operation.
    Existing(Box<Stored>),
    /// The order is at home with the old v1 service: nothing was stored.
    Reserved,
    /// Another operation has this transaction id: nothing was stored. The caller has to draw another id.
    IdTaken,
}

/// The result of the limit checks of a created operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// Created in the state of its draft.
    AsDrafted,
    /// Created FAILED: over the customer's daily limit.
    OverDailyLimit,
    /// Created FAILED: not covered by the available balance.
    NotCovered,
}

/// The outcome of reserving ids: how many of them were found in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Reserved now.
    pub new: u64,
    /// Reserved before.
    pub known: u64,
    /// Left unchanged: they name an operation or a journal entry.
    pub operations: u64,
}

/// The outcome of completing an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionOutcome {
    /// The result was stored now.
    Completed,
    /// The same result was stored before.
    AlreadyCompleted,
    /// The opposite result was stored before, and is kept.
    Contradicts(Status),
    /// There is no such operation.
    Unknown,
}

/// A claimed task of a provider.
#[derive(Debug, Clone)]
pub struct ProviderJob {
    /// The operation to process.
    pub operation: Operation,
    /// How often the job was claimed before.
    pub attempts: u32,
}

/// The state of a provider job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderJobState {
    /// When it was queued.
    pub queued_at: UnixMillis,
    /// When it is due; when its lease ends, while it is claimed.
    pub due: UnixMillis,
    /// Whether it has been claimed; the lease may be over.
    pub is_claimed: bool,
    /// How often it was claimed.
    pub attempts: u32,
}

/// A shop's queue of provider jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderQueue {
    /// The shop.
    pub shop: ShopCode,
    /// When its earliest job is due.
    pub due: UnixMillis,
}

/// Selects the provider jobs to claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The shop whose jobs to claim.
    pub shop: ShopCode,
    /// The current time: jobs due by then are claimed.
    pub now: UnixMillis,
    /// When the lease ends.
    pub lease_until: UnixMillis,
    /// The most jobs to claim.
    pub limit: usize,
}
