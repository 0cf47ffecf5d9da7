//! Where operations live. [`Store`] is the seam between the engine and a backend: few methods named for what the engine
//! means, each one transaction. The same conformance suite runs over every backend.
//!
//! ```text
//! create, complete,  what happens in a transaction, once: over row operations that each of them declares
//! callbacks, homes,
//! journal, tasks
//! backend            what a database does for the core; store, journal and outbox stand over it, in files named kept
//! audit              what must hold of the rows, once
//! rows, vault        what rows mean, and what is sealed in them
//! sqlite, postgres   connections, batches and SQL
//! ```
//!
//! Every backend seals account numbers, payer accounts and `fields` at rest and compares what must be compared by keyed
//! hashes (contract section 11); the engine hands over and receives plain domain values.

mod audit;
mod backend;
mod callbacks;
mod complete;
#[cfg(test)]
mod conformance;
mod copy;
mod create;
mod homes;
mod journal;
mod kept;
mod open;
mod outbox;
pub mod postgres;
mod rows;
mod secret_file;
pub mod sqlite;
mod tasks;
mod transaction;
pub mod vault;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use audit::{Audit, AuditProgress};
pub use copy::CopyError;
pub use journal::{
    EngineAnswer, EntryId, EntryProgress, Journal, JournalEntry, JournalOutcome, NotKept, PendingCreate,
    RemoteOperation, StatusUpdate, V1Lookup,
};
pub use open::{Holds, OpenError, Opened, Rewrapped, open_beside, open_store, rewrap_keys};
pub use outbox::{
    CallbackClaim, CallbackCursor, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue,
    CallbackRecord, CallbackState, CallbackSubject, CallbackTarget, CallbackTry, ExpireRequest, Outbox, OutboxSize,
    RelayTarget, Relayed, Resent, ResultChange, TryOutcome,
};
pub use secret_file::secret_file;
pub use vault::VaultError;

use crate::domain::{
    Amount, Balance, CallbackUrl, Currency, Direction, Fingerprint, FingerprintKey, HistoryQuery, MemberFingerprints,
    MerchantId, Operation, OperationView, OrderId, Outcome, Page, Preparation, SchemaFields, ShopCode, Status,
    StatusRecord, TransactionId, UnixDay, UnixMillis,
};

/// The future of a store's answer.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not answer. Nothing was acknowledged, and the same request may be sent again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk is full or failing, the database is away or busy, the writer's queue is full. It passes.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be understood: a defect, or a store that was tampered with.
    #[error("the store holds what it should not: {0}")]
    Corrupt(String),
}

/// The durable home of operations, and of what passed through to a remote engine.
pub trait Store: Journal + Outbox + Send + Sync + 'static {
    /// The keyed hash that comparisons use; its key never changes in the life of a store.
    fn fingerprint_key(&self) -> &FingerprintKey;

    /// Stores a new operation with everything that belongs to it in one commit, unless its merchant, direction and
    /// `order_id` name one already or are reserved. Resolves only after the commit is on disk.
    ///
    /// In that commit, in this order: the merchant's opening balances, if the merchant is not known yet; for a pending operation
    /// the customer's daily limit and then, for a withdrawal, the balance (either may turn it FAILED, see [`CreateOutcome`]);
    /// the operation; the hold of a pending withdrawal; the provider job of a pending operation; what must be told of a
    /// finished one.
    fn create(&self, draft: NewOperation) -> StoreFuture<'_, InsertOutcome>;

    /// What stands under a merchant's `order_id`.
    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, OrderLookup>;

    /// The operation of an id, whoever owns it.
    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>>;

    /// What a v1 merchant is told of the operation that its v1 request made under an `order_id`; `None` when there is
    /// none, or one that was made through v2. It says what [`Store::by_order`] does, at a part of its cost.
    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>>;

    /// What a v2 merchant is told of its operation of an id; `None` when there is none, or it is another merchant's. It
    /// says what [`Store::by_id`] does, at a part of its cost.
    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>>;

    /// The `fields` of an operation, unsealed.
    fn fields(&self, id: TransactionId) -> StoreFuture<'_, Option<Fields>>;

    /// Books a result in one commit with its ledger entries, with what must be told of it, with the daily usage that a
    /// failure gives back, and with the end of the operation's provider job and preparation. A repeated result changes
    /// nothing.
    fn complete(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> StoreFuture<'_, CompletionOutcome>;

    /// Keeps what a provider prepared for the customer of a pending deposit, in place of what it prepared before, and
    /// ends the operation's provider job, in one commit. `false` when there is no such pending deposit: nothing was kept.
    fn prepare(&self, id: TransactionId, preparation: Preparation) -> StoreFuture<'_, bool>;

    /// What a provider prepared for a deposit that is still pending.
    fn preparation(&self, id: TransactionId) -> StoreFuture<'_, Option<Preparation>>;

    /// The shops that have provider jobs, each with the time when its earliest one is due (leased ones count with the end
    /// of their lease).
    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>>;

    /// Takes a shop's provider jobs that are due, earliest first, and hides them from other claims until the lease ends:
    /// the work of a process that died is taken up again then.
    fn claim_provider_jobs(&self, claim: Claim) -> StoreFuture<'_, Vec<ProviderJob>>;

    /// Makes a claimed provider job due at another time; nothing happens when it has ended.
    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> StoreFuture<'_, ()>;

    /// Ends the provider job of an operation without a result (there is nothing left to do for it).
    fn end_provider_job(&self, id: TransactionId) -> StoreFuture<'_, ()>;

    /// Reserves `order_id`s for v1 in one commit; those that name an operation or an entry of the journal here are left
    /// alone (contract section 7, `import-ids`).
    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations>;

    /// Books a merchant's opening balances on their own, unless the merchant is known: it has operations, or its ledger
    /// was opened before. Resolves only after the commit is on disk.
    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()>;

    /// A merchant's balances, by currency, sorted; currencies without any entry are absent.
    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>>;

    /// A page of a merchant's operations that were made through v1, newest first, all of one moment. It is read along one
    /// index, which holds all that its filters ask, and then its rows; entries that are left out cost some 0.1 us each. Two
    /// lists are read at once, away from the threads that serve; one that takes over two seconds, or waits as long for its
    /// turn, is answered [`StoreError::Unavailable`].
    ///
    /// Times are those that the `transaction_id`s tell (see [`TransactionId::first_of`]): to the millisecond `created_at`.
    fn history(&self, query: HistoryQuery) -> StoreFuture<'_, Page<Operation>>;

    /// Proves on one snapshot, beside whoever writes: the entries of a merchant and currency sum to zero and its accounts are
    /// their sums; every operation has the postings that its state demands, and no posting lacks its operation; what
    /// must be told is queued; callbacks and their tries are of something that has a result to tell, and of its target;
    /// jobs and preparations belong to pending operations; entries of the journal are what their states demand; what is
    /// sealed opens. `progress` is called now and then, from another thread.
    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit>;

    /// Proves that the store can still commit.
    fn probe(&self) -> StoreFuture<'_, ()>;

    /// Finishes what was accepted, then closes. Later calls are answered [`StoreError::Unavailable`].
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// An operation about to be stored.
#[derive(Debug)]
pub struct NewOperation {
    /// The operation; its state may already be finished ("created FAILED").
    pub operation: Operation,
    /// What the store's [`FingerprintKey::order_key`] makes of the operation's order, where whoever drafts has asked already.
    pub order_key: Option<Fingerprint>,
    /// The key it was created with, which signs its callbacks.
    pub api_key: Box<str>,
    /// The `fields` of the request.
    pub fields: Fields,
    /// What a repeat is compared with.
    pub comparison: RequestFingerprint,
    /// Of an operation that was translated from v1: where its merchant is called back.
    pub v1: Option<CallbackSender>,
    /// When the provider has to be asked; `None` when it has nothing to do.
    pub provider_job: Option<UnixMillis>,
    /// `balance.opening`: booked in the same commit if the store does not know the merchant yet. `None`: it is known to.
    pub opening: Option<Arc<[(Currency, Amount)]>>,
    /// A withdrawal that the available balance does not cover is created FAILED.
    pub enforce_balance: bool,
    /// The customer's limits, when the operation names a customer and its shop has limits.
    pub daily_limit: Option<DailyLimit>,
}

/// What a customer (`customer_account_id` of a merchant) may do in a shop and direction on one UTC day. Operations that
/// are pending or succeeded count; one that would exceed a limit is created FAILED and does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyLimit {
    /// The day, which is the one of the operation's creation.
    pub day: UnixDay,
    /// At most so many operations.
    pub operations: Option<u32>,
    /// At most this much in all.
    pub amount: Option<Amount>,
}

/// The JSON text of an operation's `fields`. `Debug` shows nothing: they hold customer data.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    /// The object as the caller sent it, less the members that the schema dropped.
    pub sent: Box<str>,
    /// The object of members that the schema's defaults added.
    pub defaults: Box<str>,
    /// What of the v1 request that the operation was translated from it holds nowhere else.
    pub v1_members: MemberFingerprints,
}

impl Default for Fields {
    fn default() -> Self {
        Self { sent: "{}".into(), defaults: "{}".into(), v1_members: MemberFingerprints::default() }
    }
}

impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fields(..)")
    }
}

/// What a repeat of an operation is compared with (contract section 7, "repeat").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFingerprint {
    /// The keyed hash of the canonical request; of an operation that was translated from v1, of its v1 body.
    pub fingerprint: Fingerprint,
    /// Which members of `fields` the schema in force at creation kept.
    pub kept: SchemaFields,
}

/// What the gateway keeps of a v1 create that became a v2 request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Request {
    /// The keyed hash of what the v1 body said, decoded and canonical.
    pub fingerprint: Fingerprint,
    /// What of the body the v2 request does not hold.
    pub members: MemberFingerprints,
    /// Who tells the merchant of the result.
    pub sender: CallbackSender,
    /// The [`FingerprintKey::order_key`] of its order.
    pub order: Fingerprint,
}

/// Who tells a merchant of the result of an operation that was made from v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackSender {
    /// The engine itself, as v2 tells: the merchant's rules said `callbacks = "v2"`. The journal does not keep this: it is
    /// a remote engine's own affair, and read back as nobody's.
    Directly,
    /// The relay, at this address of the merchant's, in its dialect. `None`: there is none, and nobody is told.
    Relayed(Option<CallbackUrl>),
}

impl CallbackSender {
    /// The merchant's address that the relay calls.
    #[must_use]
    pub const fn relayed_to(&self) -> Option<&CallbackUrl> {
        match self {
            Self::Relayed(url) => url.as_ref(),
            Self::Directly => None,
        }
    }
}

/// An operation as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The operation.
    pub operation: Operation,
    /// The key it was created with.
    pub api_key: Box<str>,
    /// What a repeat is compared with.
    pub comparison: RequestFingerprint,
    /// Present when it was translated from v1.
    pub v1: Option<CallbackSender>,
}

/// What stands under an `order_id`.
#[derive(Debug, PartialEq, Eq)]
pub enum OrderLookup {
    /// Nothing.
    Free,
    /// An operation.
    Operation(Box<Stored>),
    /// A reservation for v1: the old service has an operation of this name.
    Reserved,
}

impl OrderLookup {
    /// The operation, if it is one.
    #[must_use]
    pub fn operation(self) -> Option<Stored> {
        match self {
            Self::Operation(stored) => Some(*stored),
            Self::Free | Self::Reserved => None,
        }
    }
}

/// What became of a [`NewOperation`].
#[derive(Debug)]
pub enum InsertOutcome {
    /// It is on disk.
    Created(CreateOutcome),
    /// The order exists: nothing was stored, and this is what stands.
    Existing(Box<Stored>),
    /// The order is reserved for v1: nothing was stored.
    Reserved,
    /// Another operation has this transaction id: nothing was stored; draw another id.
    IdTaken,
}

/// How a created operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// As its draft says.
    AsDrafted,
    /// Created FAILED: over the customer's daily limit.
    OverDailyLimit,
    /// Created FAILED: not covered by the available balance.
    NotCovered,
}

/// What became of ids to be reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Reserved now.
    pub new: u64,
    /// Reserved before.
    pub known: u64,
    /// They name an operation, or an entry of the journal, and were left alone.
    pub operations: u64,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionOutcome {
    /// It was booked now.
    Completed,
    /// The same result was booked before.
    AlreadyCompleted,
    /// The other result was booked before; it stands.
    Contradicts(Status),
    /// There is no such operation.
    Unknown,
}

/// A piece of work for a provider.
#[derive(Debug, Clone)]
pub struct ProviderJob {
    /// The operation to be moved.
    pub operation: Operation,
    /// How often it was claimed before.
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

impl ProviderQueue {
    fn of(queue: tasks::TaskQueue) -> Result<Self, StoreError> {
        let tasks::TaskQueue { queue, due_at, .. } = queue;
        match ShopCode::new(&queue) {
            Ok(shop) => Ok(Self { shop, due: due_at }),
            Err(_) => Err(StoreError::Corrupt("a provider job names no shop".to_owned())),
        }
    }
}

/// Which provider jobs to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Of this shop.
    pub shop: ShopCode,
    /// Due at this time.
    pub now: UnixMillis,
    /// Hidden until this time.
    pub lease_until: UnixMillis,
    /// At most so many.
    pub limit: usize,
}
