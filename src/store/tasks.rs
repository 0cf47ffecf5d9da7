//! The durable task queue: what has to be done, when it is due, and whether it is leased. Provider jobs wait in the
//! queues of their shops, callbacks in those of their targets. The text of a queue up to the first space is its group:
//! a merchant's queues are one.
//!
//! A claim leases due tasks: they are hidden from other claims until the lease ends. After that the tasks of a process
//! that died can be claimed again. A late worker finds that another claim has replaced its own.

use super::rows::Transaction;
use crate::domain::{ShopCode, TransactionId, UnixMillis};

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Work of a provider on an operation.
    ProviderJob,
    /// A callback to a merchant.
    Callback,
}

impl TaskKind {
    /// Returns the value of `tasks.kind`.
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::ProviderJob => 0,
            Self::Callback => 1,
        }
    }
}

/// A task about to be queued. Replaces an existing one.
#[derive(Debug)]
pub(super) struct NewTask<'a> {
    pub(super) kind: TaskKind,
    /// The number of its subject: see [`CallbackSubject::key`](super::CallbackSubject::key).
    pub(super) key: i64,
    pub(super) queue: &'a str,
    pub(super) queued_at: UnixMillis,
    pub(super) due_at: UnixMillis,
}

impl<'a> NewTask<'a> {
    /// Makes the provider job of an operation.
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

/// The state of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskState {
    pub(super) queued_at: UnixMillis,
    /// When the task is due; when the lease ends, while it is leased.
    pub(super) due_at: UnixMillis,
    pub(super) is_leased: bool,
    /// How often it was claimed since it was queued.
    pub(super) attempts: i64,
}

/// Selects the tasks to claim, with the most for each queue.
#[derive(Debug)]
pub(super) struct TaskClaim {
    pub(super) kind: TaskKind,
    pub(super) shares: Vec<(Box<str>, usize)>,
    pub(super) now: UnixMillis,
    pub(super) lease_until: UnixMillis,
}

/// Selects tasks that wait for a time which cannot be right: a clock was wrong when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misdated {
    /// The kind of the tasks.
    pub kind: TaskKind,
    /// The current time, from which they are due.
    pub now: UnixMillis,
    /// Which of them.
    pub waits: MisdatedWaits,
    /// The most tasks to correct.
    pub limit: usize,
}

/// The waits that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MisdatedWaits {
    /// Of tasks queued after this time. One that is leased is under way.
    QueuedAfter(UnixMillis),
    /// In each of these queues, waits and leases that end after the time beside it.
    Overlong(Vec<(Box<str>, UnixMillis)>),
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

/// Selects the queues to list.
#[derive(Debug)]
pub(super) struct QueueList {
    pub(super) kind: TaskKind,
    /// Queues after which the lists of their groups begin.
    pub(super) after: Vec<Box<str>>,
    /// The most queues of each group.
    pub(super) limit: usize,
}

/// Returns the group of a queue.
pub(super) fn group_of(queue: &str) -> &str {
    queue.split_once(' ').map_or(queue, |(group, _)| group)
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

/// The row operations on tasks.
pub(super) trait TaskRows: Transaction {
    /// Inserts a task, or replaces the existing one.
    async fn put_task(&mut self, task: NewTask<'_>) -> Result<(), Self::Error>;

    /// Ends the lease of a task and makes it due at another time, if it exists.
    async fn release_task(&mut self, kind: TaskKind, key: i64, due: UnixMillis) -> Result<(), Self::Error>;

    /// Deletes a task, if it exists.
    async fn end_task(&mut self, kind: TaskKind, key: i64) -> Result<(), Self::Error>;
}
