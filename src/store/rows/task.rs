//! The tasks of the durable queue, and what claims and lists of them select.

use crate::domain::UnixMillis;

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Work of a provider on an operation.
    ProviderJob,
    /// A callback to a merchant.
    Callback,
    /// An ended provider job: the provider is to report the result by itself.
    ReportAwaited,
    /// An ended provider job: the provider gave no answer, and was given up.
    GivenUp,
    /// An ended provider job: the customer is to pay.
    CustomerAwaited,
}

impl TaskKind {
    /// The kinds of provider jobs, those that have ended included.
    pub(in crate::store) const JOBS: [Self; 4] =
        [Self::ProviderJob, Self::ReportAwaited, Self::GivenUp, Self::CustomerAwaited];

    /// Returns the value of `tasks.kind`.
    pub(in crate::store) const fn number(self) -> i64 {
        match self {
            Self::ProviderJob => 0,
            Self::Callback => 1,
            Self::ReportAwaited => 2,
            Self::GivenUp => 3,
            Self::CustomerAwaited => 4,
        }
    }

    /// Decodes the value of `tasks.kind` of a provider job, which may have ended.
    pub(in crate::store) const fn of_job(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::ProviderJob),
            2 => Some(Self::ReportAwaited),
            3 => Some(Self::GivenUp),
            4 => Some(Self::CustomerAwaited),
            _ => None,
        }
    }
}

/// Selects the tasks to claim, with the most for each queue.
#[derive(Debug)]
pub(in crate::store) struct TaskClaim {
    pub(in crate::store) kind: TaskKind,
    pub(in crate::store) shares: Vec<(Box<str>, usize)>,
    pub(in crate::store) now: UnixMillis,
    pub(in crate::store) lease_until: UnixMillis,
}

/// A claimed task.
#[derive(Debug)]
pub(in crate::store) struct ClaimedTask {
    pub(in crate::store) key: i64,
    pub(in crate::store) queue: Box<str>,
    pub(in crate::store) queued_at: UnixMillis,
    /// How often it was claimed before, since it was queued.
    pub(in crate::store) attempts: u32,
}

/// Selects the queues to list.
#[derive(Debug)]
pub(in crate::store) struct QueueList {
    pub(in crate::store) kind: TaskKind,
    /// Queues after which the lists of their groups begin.
    pub(in crate::store) after: Vec<Box<str>>,
    /// The most queues of each group.
    pub(in crate::store) limit: usize,
}

/// Returns the group of a queue.
pub(in crate::store) fn group_of(queue: &str) -> &str {
    queue.split_once(' ').map_or(queue, |(group, _)| group)
}

/// A queue with tasks.
#[derive(Debug)]
pub(in crate::store) struct TaskQueue {
    pub(in crate::store) queue: String,
    /// When its earliest task is due.
    pub(in crate::store) due_at: UnixMillis,
    /// Whether that one was claimed before.
    pub(in crate::store) tried: bool,
}
