//! The durable store of operations, callbacks and journal entries. The engine uses it through [`Store`], a trait with
//! few methods, each one transaction. Every backend passes the same conformance suite.
//!
//! ```text
//! create, complete, homes, usage,       each transaction and read, with its statements, written once for both databases
//! callbacks, outbox, journal, tasks,
//! lookups, pages, export, checks,
//! trail, audit, upgrade
//! sql                                   what the SQL of both has in common: a text, its parameters, the columns of a row
//! transaction                           the few statements that each database has its own
//! operations, jobs                      the trait Store, and the queue of providers' jobs; each trait is implemented once, for
//!                                       every backend
//! backend                               what a database implements
//! rows, vault                           the columns, and their conversion to domain values; encryption
//! answers                               how the callers of a batch are answered
//! format                                the formats of stores: which releases serve which
//! backup_mark                           the mark of a backup that was not adopted
//! sqlite, postgres                      connections, batches, schema, and what is one database's alone
//! ```
//!
//! Every backend encrypts account numbers, payer accounts and `fields` at rest and compares requests by keyed hashes
//! (contract section 11). The engine passes and receives plain domain values.

mod answers;
mod attention;
mod audit;
mod backend;
mod backup_mark;
mod callback_id;
mod callbacks;
mod checks;
mod complete;
#[cfg(test)]
mod conformance;
mod copy;
mod create;
mod export;
mod format;
mod homes;
mod jobs;
mod journal;
mod list;
mod list_indexes;
mod lookups;
mod open;
mod opened;
mod operations;
mod outbox;
mod pages;
pub mod postgres;
mod resolve;
mod rows;
mod secret_file;
mod sql;
pub mod sqlite;
mod tasks;
mod trail;
mod transaction;
mod upgrade;
mod usage;
pub mod vault;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use attention::{AttentionCounts, AttentionReason, LateRule};
pub use audit::{Audit, AuditProgress};
pub use backup_mark::BackupMark;
pub use callback_id::{CallbackId, CallbackSubject};
pub use checks::{CheckClass, CheckCount, CheckCounts};
pub use complete::ResultSource;
pub use copy::CopyError;
pub use create::OpeningBalances;
pub use export::{
    ExportKeys, ExportPage, ExportQuery, ExportTable, ExportedEntry, ExportedOperation, Exports, OrderName, Turns,
};
pub use format::{FORMAT, StoreFormat, locked_out};
pub use homes::{FoundHome, HomeClaim, OrderHome, OrderHomes};
pub use jobs::{AskOutcome, Claim, EndedJob, JobEnd, ProviderJob, ProviderJobState, ProviderJobs, ProviderQueue};
pub use journal::{
    Backlog, EngineAnswer, EntryId, EntryProgress, Journal, JournalEntry, JournalOutcome, NotKept, PendingCreate,
    RemoteOperation, StatusUpdate, Unanswered,
};
pub use list::{ListedOperation, OperationList, OperationQuery};
pub use lookups::OrderLookups;
pub use open::{open_beside, open_store, read_format, rewrap_keys};
pub use opened::{Holds, OpenError, Opened, StoreAccess};
pub use operations::Store;
pub use outbox::{
    CallbackClaim, CallbackCursor, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue,
    CallbackRecord, CallbackState, CallbackTarget, CallbackTry, ExpireRequest, NextAttempt, Outbox, OutboxSize,
    PendingQuery, RelayTarget, Relayed, Resent, ResultChange, TryOutcome,
};
pub use resolve::{
    ConfirmOutcome, ContradictionRecord, NewResolution, OperationDetail, ResolutionId, ResolutionRecord,
    ResolutionState, Resolutions, ResolveOutcome,
};
pub use rows::task::TaskKind;
pub use secret_file::secret_file;
pub use tasks::{Misdated, MisdatedWaits};
pub use trail::{ActionEnd, ActionId, ActionQuery, ActionRecord, AuditTrail, BeginOutcome, IdempotencyKey, NewAction};
pub use upgrade::{UNTOUCHED, Upgrade, UpgradeWait, finish_upgrade};
pub use vault::Rewrapped;
pub use vault::VaultError;

use crate::domain::{
    Amount, CallbackSender, Currency, FailureCause, Fields, Fingerprint, MemberFingerprints, Operation, SchemaFields,
    Status, UnixDay, UnixMillis,
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
    /// A list had to pass over too much: it can be narrowed.
    #[error("the search takes over two seconds")]
    TooLong,
    /// Stored data cannot be decoded: a defect, or the store was tampered with.
    #[error("the store holds invalid data: {0}")]
    Corrupt(String),
}

/// An operation about to be stored.
#[derive(Debug, Clone)]
pub struct NewOperation {
    /// The operation; its state may already be finished ("created FAILED").
    pub operation: Operation,
    /// The store's [`order_key`](crate::domain::FingerprintKey::order_key) of the operation's order, if the caller has
    /// computed it already.
    pub order_key: Option<Fingerprint>,
    /// The key it was created with, which signs its callbacks.
    pub api_key: Arc<str>,
    /// Why it is created FAILED, if it is.
    pub failure: Option<FailureCause>,
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
    /// The [`order_key`](crate::domain::FingerprintKey::order_key) of its order.
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
    /// Another home than an operation, most often the old v1 service; or it is lost.
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

/// The outcome of storing a [`NewOperation`]; `O` is an existing operation.
#[derive(Debug)]
pub enum InsertOutcome<O = Stored> {
    /// The operation is on disk.
    Created(CreateOutcome),
    /// The order exists: nothing was stored. Holds the existing operation.
    Existing(Box<O>),
    /// The order is at home elsewhere, or lost: nothing was stored.
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

impl CreateOutcome {
    /// Returns why the store created an operation FAILED that was drafted as pending.
    #[must_use]
    pub const fn failure(self) -> Option<FailureCause> {
        match self {
            Self::AsDrafted => None,
            Self::OverDailyLimit => Some(FailureCause::DailyLimit),
            Self::NotCovered => Some(FailureCause::Balance),
        }
    }
}

/// The outcome of reserving ids, for the old v1 service or as lost: how many of them were found in which state.
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
