//! Where operations live. [`Store`] is the seam between the engine and a backend: few methods named for what the engine
//! means, each one transaction. The same conformance suite runs over every backend.
//!
//! Every backend seals account numbers, payer accounts and `fields` at rest and compares what must be compared by keyed
//! hashes (contract section 11); the engine hands over and receives plain domain values.

mod compare;
#[cfg(test)]
mod conformance;
mod open;
mod secret_file;
pub mod sqlite;
mod vault;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use compare::{Comparer, Digest, Hashing};
pub use open::{OpenError, Opened, open_store};
pub use secret_file::secret_file;
pub use vault::VaultError;

use crate::domain::{
    CallbackUrl, Direction, MerchantId, Operation, OrderId, Outcome, Status, TransactionId, UnixMillis,
};

/// The future of a store's answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

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

/// The durable home of operations.
pub trait Store: Send + Sync + 'static {
    /// The keyed hash that comparisons use; its key never changes in the life of a store.
    fn comparer(&self) -> &Comparer;

    /// Stores a new operation with everything that belongs to it in one commit, unless its merchant, direction and
    /// `order_id` name one already. Resolves only after the commit is on disk.
    fn create(&self, draft: Draft) -> Answer<'_, Creation>;

    /// The operation that a merchant's `order_id` names.
    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<Stored>>;

    /// The operation of an id, whoever owns it.
    fn by_id(&self, id: TransactionId) -> Answer<'_, Option<Stored>>;

    /// The `fields` of an operation, unsealed.
    fn fields(&self, id: TransactionId) -> Answer<'_, Option<Fields>>;

    /// Books a result and ends the operation's provider job, in one commit. A repeated result changes nothing.
    fn settle(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Answer<'_, Settlement>;

    /// Takes up to `limit` provider jobs that are due at `now`, earliest first, and hides them from other claims until
    /// `lease_until`: the work of a process that died is taken up again then.
    fn claim_provider_jobs(
        &self,
        now: UnixMillis,
        lease_until: UnixMillis,
        limit: usize,
    ) -> Answer<'_, Vec<ProviderJob>>;

    /// Ends the provider job of an operation without a result (there is nothing left to do for it).
    fn end_provider_job(&self, id: TransactionId) -> Answer<'_, ()>;

    /// When the earliest provider job is due, leased ones included.
    fn next_provider_job(&self) -> Answer<'_, Option<UnixMillis>>;

    /// Proves that the store can still commit.
    fn probe(&self) -> Answer<'_, ()>;

    /// Finishes what was accepted, then closes. Later calls are answered [`StoreError::Unavailable`].
    fn close(&self) -> Answer<'_, ()>;
}

/// An operation about to be stored.
#[derive(Debug)]
pub struct Draft {
    /// The operation; its state may already be finished ("created FAILED").
    pub operation: Operation,
    /// The key it was created with, which signs its callbacks.
    pub api_key: Box<str>,
    /// The `fields` of the request.
    pub fields: Fields,
    /// What a repeat is compared with.
    pub comparison: Comparison,
    /// What the gateway keeps of the v1 request that this operation was translated from.
    pub v1: Option<V1Part>,
    /// When the provider has to be asked; `None` when it has nothing to do.
    pub provider_job: Option<UnixMillis>,
}

/// The JSON text of an operation's `fields`. `Debug` shows nothing: they hold customer data.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    /// The object as the caller sent it, less the members that the schema dropped.
    pub sent: Box<str>,
    /// The object of members that the schema's defaults added.
    pub defaults: Box<str>,
}

impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fields(..)")
    }
}

/// What a repeat of an operation is compared with (contract section 7, "repeat").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The keyed hash of the canonical request.
    pub digest: Digest,
    /// Which members of `fields` the schema in force at creation kept.
    pub kept: Kept,
}

/// The members of `fields` that a schema keeps; the others are left out of comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// There was no schema: all of them.
    Everything,
    /// These names, sorted. Shared between the operations of a schema, and stored once.
    Names(Arc<[Box<str>]>),
}

impl Kept {
    /// Whether a member of this name is kept.
    #[must_use]
    pub fn keeps(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(names) => names.binary_search_by(|kept| kept.as_ref().cmp(name)).is_ok(),
        }
    }
}

/// What the gateway keeps of a v1 request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Part {
    /// The keyed hash of what the v1 body said, decoded and canonical.
    pub digest: Digest,
    /// The merchant's own callback address, which the relay calls.
    pub callback_url: Option<CallbackUrl>,
}

/// An operation as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The operation.
    pub operation: Operation,
    /// The key it was created with.
    pub api_key: Box<str>,
    /// What a repeat is compared with.
    pub comparison: Comparison,
    /// Present when it was translated from v1.
    pub v1: Option<V1Part>,
}

/// What became of a [`Draft`].
#[derive(Debug)]
pub enum Creation {
    /// It is on disk.
    Created,
    /// The order exists: nothing was stored, and this is what stands.
    Existing(Box<Stored>),
    /// Another operation has this transaction id: nothing was stored; draw another id.
    IdTaken,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It was booked now.
    Booked,
    /// The same result was booked before.
    AlreadyBooked,
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
