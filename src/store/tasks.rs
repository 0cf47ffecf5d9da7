//! The durable task queue. A task has a time when it is due, and may be leased. Provider jobs wait in the queues of their
//! shops, callbacks in those of their targets. The text of a queue up to the first space is its group: a merchant's queues
//! are one.
//!
//! A claim leases due tasks: they are hidden from other claims until the lease ends. After that the tasks of a process
//! that died can be claimed again. A late worker finds that another claim has replaced its own.

use super::rows::CorruptRow;
use super::rows::task::TaskKind;
use super::sql::{Columns, Parameter, Sql, Transaction, params, sql};
use super::transaction::OwnStatements;
use crate::domain::{ShopCode, TransactionId, UnixMillis};

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

/// Selects the columns of [`TaskState::read`].
macro_rules! state_columns {
    () => {
        "SELECT queued_at, due_at, state, attempts"
    };
}

/// The values of `tasks.state`.
pub(super) const WAITING: i64 = 0;
pub(super) const LEASED: i64 = 1;

const PUT: Sql = sql!(
    "INSERT INTO tasks (kind, key, queue, queued_at, due_at, state, attempts) VALUES (?1, ?2, ?3, ?4, ?5, 0, 0) \
     ON CONFLICT (kind, key) DO UPDATE SET queue = excluded.queue, queued_at = excluded.queued_at, \
     due_at = excluded.due_at, state = 0, attempts = 0"
);

impl<'a> NewTask<'a> {
    fn columns(&self, tx: &impl OwnStatements) -> [Parameter<'a>; 5] {
        params![self.kind.number(), self.key, self.queue, self.queued_at, tx.due(self.due_at)]
    }
}

/// Inserts a task, or replaces the existing one.
pub(super) async fn put<T: OwnStatements>(tx: &T, task: NewTask<'_>) -> Result<(), T::Error> {
    tx.execute(PUT, &task.columns(tx)).await.map(drop)
}

/// Inserts or replaces tasks.
pub(super) async fn put_each<T: OwnStatements>(
    tx: &T,
    tasks: impl IntoIterator<Item = NewTask<'_>>,
) -> Result<(), T::Error> {
    let sets: Vec<_> = tasks.into_iter().map(|task| task.columns(tx)).collect();
    tx.execute_each(PUT, &sets).await.map(drop)
}

const RELEASE: Sql = sql!("UPDATE tasks SET due_at = ?3, state = 0 WHERE kind = ?1 AND key = ?2");

/// Ends the lease of a task and makes it due at another time, if it exists.
pub(super) async fn release<T: OwnStatements>(
    tx: &T,
    kind: TaskKind,
    key: i64,
    due: UnixMillis,
) -> Result<(), T::Error> {
    tx.execute(RELEASE, &params![kind.number(), key, tx.due(due)]).await.map(drop)
}

/// A provider job as one claim had it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimedJob {
    pub(super) id: TransactionId,
    pub(super) queued_at: UnixMillis,
    /// With this claim.
    pub(super) attempts: i64,
}

/// Where a provider job is that was claimed, unless it has ended, is a later one or was claimed again. Parameters: its
/// operation, when it was queued, its attempts.
macro_rules! claimed_job {
    () => {
        "WHERE kind = 0 AND key = ?1 AND queued_at = ?2 AND attempts = ?3"
    };
}

const POSTPONE_JOB: Sql = sql!(concat!(
    "UPDATE tasks SET due_at = ?4, state = 0, failed_at = coalesce(?5, failed_at), failure = coalesce(?6, failure) ",
    claimed_job!()
));

/// Ends the lease of a claimed provider job and makes it due at another time. `failed`: when and why there was no result; `None`:
/// nothing was requested.
pub(super) async fn postpone_job<T: OwnStatements>(
    tx: &T,
    job: ClaimedJob,
    due: UnixMillis,
    failed: Option<(UnixMillis, &str)>,
) -> Result<(), T::Error> {
    let ClaimedJob { id, queued_at, attempts } = job;
    let (failed_at, failure) = failed.map(|(at, failure)| (at.0, failure)).unzip();
    tx.execute(POSTPONE_JOB, &params![id, queued_at, attempts, tx.due(due), failed_at, failure]).await.map(drop)
}

const END: Sql = sql!("DELETE FROM tasks WHERE kind = ?1 AND key = ?2");

/// Deletes a task, if it exists.
pub(super) async fn end<T: Transaction>(tx: &T, kind: TaskKind, key: i64) -> Result<(), T::Error> {
    tx.execute(END, &params![kind.number(), key]).await.map(drop)
}

/// A provider job, which may have ended.
#[derive(Debug, Clone)]
pub(super) struct JobState {
    pub(super) kind: TaskKind,
    pub(super) task: TaskState,
    /// Why an attempt last gave no result.
    pub(super) failure: Option<Box<str>>,
    /// When it did.
    pub(super) failed_at: Option<UnixMillis>,
}

impl JobState {
    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        let kind = TaskKind::of_job(row.get(4)?).ok_or(CorruptRow::new("kind"))?;
        Ok(Self { kind, task: TaskState::read(row)?, failure: row.get(5)?, failed_at: row.get(6)? })
    }
}

/// Returns `job_attempts`, `job_ended_at`, `job_kind` and `job_failure` of a job that is removed, if there is one and it has called.
pub(super) fn ended_columns(job: Option<&JobState>, removed_at: UnixMillis) -> [Parameter<'_>; 4] {
    let has_called = |job: &&JobState| job.kind != TaskKind::ProviderJob || job.task.attempts > 0;
    let Some(JobState { kind, task, failure, failed_at }) = job.filter(has_called) else {
        return params![None::<i64>, None::<i64>, None::<i64>, None::<&str>];
    };
    let TaskState { due_at, is_leased, attempts, .. } = *task;
    let ended_at = match kind {
        // The call that is under way may be the one that was answered.
        TaskKind::ProviderJob if is_leased && removed_at <= due_at => Some(removed_at.0),
        // Of a claim whose process died it is not known whether it called.
        TaskKind::ProviderJob => failed_at.map(|at| at.0),
        TaskKind::ReportAwaited | TaskKind::GivenUp | TaskKind::CustomerAwaited | TaskKind::Callback => Some(due_at.0),
    };
    params![attempts, ended_at, kind.number(), failure.as_deref()]
}

pub(super) const JOB: Sql =
    sql!(concat!(state_columns!(), ", kind, failure, failed_at FROM tasks WHERE kind IN (0, 2, 3, 4) AND key = ?1"));

/// Reads an operation's provider job, also one that has ended.
pub(super) async fn job<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<JobState>, T::Error> {
    tx.query_opt(JOB, &params![id], JobState::read).await
}

const REMOVE_JOB: Sql = sql!(
    "DELETE FROM tasks WHERE kind IN (0, 2, 3, 4) AND key = ?1 \
     RETURNING queued_at, due_at, state, attempts, kind, failure, failed_at"
);

/// Deletes an operation's provider job, also one that has ended; returns its last state.
pub(super) async fn remove_job<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<JobState>, T::Error> {
    tx.query_opt(REMOVE_JOB, &params![id], JobState::read).await
}

const END_JOB: Sql = sql!(
    "UPDATE tasks SET kind = ?2, state = 0, due_at = ?3 WHERE kind IN (0, 2, 3, 4) AND key = ?1 AND (kind <> 4 OR ?4 = 1)"
);

/// Ends an operation's provider job, if it has one. `replaces`: what the customer was to do is replaced.
pub(super) async fn end_job<T: Transaction>(
    tx: &T,
    id: TransactionId,
    end: TaskKind,
    at: UnixMillis,
    replaces: bool,
) -> Result<(), T::Error> {
    tx.execute(END_JOB, &params![id, end.number(), at, i64::from(replaces)]).await.map(drop)
}

const GIVE_UP_JOB: Sql =
    sql!(concat!("UPDATE tasks SET kind = 3, state = 0, due_at = ?4, failure = ?5 ", claimed_job!()));

/// Gives up a claimed provider job. Reports whether it did.
pub(super) async fn give_up_job<T: Transaction>(
    tx: &T,
    job: ClaimedJob,
    at: UnixMillis,
    failure: &str,
) -> Result<bool, T::Error> {
    let ClaimedJob { id, queued_at, attempts } = job;
    tx.execute(GIVE_UP_JOB, &params![id, queued_at, attempts, at, failure]).await.map(|changed| changed > 0)
}

/// Deletes tasks.
pub(super) async fn end_each<T: Transaction>(tx: &T, kind: TaskKind, keys: &[i64]) -> Result<(), T::Error> {
    let sets: Vec<_> = keys.iter().map(|key| params![kind.number(), *key]).collect();
    tx.execute_each(END, &sets).await.map(drop)
}

const LOCKED: Sql = sql!(
    concat!(state_columns!(), " FROM tasks WHERE kind = ?1 AND key = ?2"),
    postgres adds "FOR UPDATE"
);

/// Reads and locks the state of a task.
pub(super) async fn locked<T: Transaction>(tx: &T, kind: TaskKind, key: i64) -> Result<Option<TaskState>, T::Error> {
    tx.query_opt(LOCKED, &params![kind.number(), key], TaskState::read).await
}

impl TaskState {
    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        let is_leased = match row.get(2)? {
            WAITING => false,
            LEASED => true,
            _ => return Err(CorruptRow::new("state")),
        };
        Ok(Self { queued_at: row.get(0)?, due_at: row.get(1)?, is_leased, attempts: row.get(3)? })
    }
}

const POSTPONE: Sql =
    sql!("UPDATE tasks SET due_at = ?4, state = 0 WHERE kind = ?1 AND key = ?2 AND state = 1 AND due_at = ?3");

/// Postpones claimed tasks that cannot be decoded, except those that another node has claimed since.
pub(super) async fn postpone<T: Transaction>(
    tx: &T,
    kind: TaskKind,
    keys: &[i64],
    lease_until: UnixMillis,
    until: UnixMillis,
) -> Result<(), T::Error> {
    let sets: Vec<_> = keys.iter().map(|key| params![kind.number(), *key, lease_until, until]).collect();
    tx.execute_each(POSTPONE, &sets).await.map(drop)
}

/// The most recently queued tasks of a kind that wait, queued after a time.
pub(super) const QUEUED_AFTER: Sql = sql!(
    "SELECT key FROM tasks WHERE kind = ?1 AND state = 0 AND due_at > ?2 AND queued_at > ?3 LIMIT ?4",
    postgres adds "FOR UPDATE SKIP LOCKED"
);

/// The tasks of a queue that wait for longer than any may, earliest first.
pub(super) const OVERLONG: Sql = sql!(
    "SELECT key FROM tasks", indexed by "tasks_by_due",
    "WHERE kind = ?1 AND queue = ?2 AND due_at > ?3 ORDER BY due_at, key LIMIT ?4",
    postgres adds "FOR UPDATE SKIP LOCKED",
);

/// Reads and locks misdated tasks; returns their keys. Skips those that another node has locked.
pub(super) async fn misdated<T: Transaction>(tx: &T, misdated: &Misdated) -> Result<Vec<i64>, T::Error> {
    let (kind, limit) = (misdated.kind.number(), i64::try_from(misdated.limit).unwrap_or(i64::MAX));
    match &misdated.waits {
        MisdatedWaits::QueuedAfter(after) => {
            tx.query(QUEUED_AFTER, &params![kind, misdated.now, *after, limit], |row| row.get(0)).await
        }
        MisdatedWaits::Overlong(queues) => {
            let sets: Vec<_> = queues.iter().map(|(queue, latest)| params![kind, queue, *latest, limit]).collect();
            let mut found = tx.query_each(OVERLONG, &sets, |row| row.get(0)).await?.concat();
            found.truncate(misdated.limit);
            Ok(found)
        }
    }
}

/// Makes misdated tasks due; returns how many.
pub(super) async fn make_due<T: Transaction>(tx: &T, given: &Misdated) -> Result<usize, T::Error> {
    let found = misdated(tx, given).await?;
    let sets: Vec<_> = found.iter().map(|key| params![given.kind.number(), *key, given.now]).collect();
    tx.execute_each(RELEASE, &sets).await?;
    Ok(found.len())
}
