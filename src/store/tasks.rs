//! The durable queue: what has to be done, by when, and who is at it. Provider jobs wait in the queues of their shops, callbacks
//! in those of their targets.
//!
//! A claim leases what is due: it is hidden from other claims until the lease ends. The work of a process that died is taken up
//! again then; whoever comes back late finds another claim.

use super::transaction::Transaction;
use crate::domain::{ShopCode, TransactionId, UnixMillis};

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// A provider has to be asked of an operation.
    ProviderJob,
    /// A merchant has to be told of a result.
    Callback,
}

impl TaskKind {
    /// `tasks.kind`.
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::ProviderJob => 0,
            Self::Callback => 1,
        }
    }
}

/// A task about to be queued, in place of one that there is.
#[derive(Debug)]
pub(super) struct NewTask<'a> {
    pub(super) kind: TaskKind,
    /// What it is about: see [`CallbackSubject::key`](super::CallbackSubject::key).
    pub(super) key: i64,
    pub(super) queue: &'a str,
    pub(super) queued_at: UnixMillis,
    pub(super) due_at: UnixMillis,
}

impl<'a> NewTask<'a> {
    /// The provider job of an operation.
    pub(super) fn provider_job(
        id: TransactionId,
        shop: &'a ShopCode,
        created_at: UnixMillis,
        due_at: UnixMillis,
    ) -> Self {
        let (kind, key) = (TaskKind::ProviderJob, id.to_stored());
        Self { kind, key, queue: shop.as_str(), queued_at: created_at, due_at }
    }
}

/// How a task stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskState {
    pub(super) queued_at: UnixMillis,
    /// While it is leased: when the lease ends.
    pub(super) due_at: UnixMillis,
    pub(super) is_leased: bool,
    /// How often it was claimed since it was queued.
    pub(super) attempts: i64,
}

/// Which tasks to take, and how many of each queue.
#[derive(Debug)]
pub(super) struct TaskClaim {
    pub(super) kind: TaskKind,
    pub(super) shares: Vec<(Box<str>, usize)>,
    pub(super) now: UnixMillis,
    pub(super) lease_until: UnixMillis,
}

/// A claimed task.
#[derive(Debug)]
pub(super) struct ClaimedTask {
    pub(super) key: i64,
    pub(super) queue: Box<str>,
    pub(super) queued_at: UnixMillis,
    /// How often it was claimed before, since it was queued.
    pub(super) attempts: u32,
}

/// A queue with tasks.
#[derive(Debug)]
pub(super) struct TaskQueue {
    pub(super) queue: String,
    /// When its earliest task is due.
    pub(super) due_at: UnixMillis,
    /// Whether that one was claimed before.
    pub(super) tried: bool,
}

/// What a transaction does with tasks.
pub(super) trait TaskRows: Transaction {
    /// Queues a task, in place of one that there is.
    async fn put_task(&mut self, task: NewTask<'_>) -> Result<(), Self::Error>;

    /// Ends the lease of a task, if it is there, with another time to be due at.
    async fn release_task(&mut self, kind: TaskKind, key: i64, due: UnixMillis) -> Result<(), Self::Error>;

    /// Ends a task, if it is there.
    async fn end_task(&mut self, kind: TaskKind, key: i64) -> Result<(), Self::Error>;
}
