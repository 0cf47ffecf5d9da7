//! The jobs of providers: tasks in the queues of their shops.

use super::backend::{Backend, ReadKind};
use super::rows::status_of;
use super::rows::task::{QueueList, TaskClaim, TaskKind, TaskQueue};
use super::sql::{Columns, CorruptRow, Sql, params, sql};
use super::tasks::{self, ClaimedJob, JobState, NewTask, TaskState};
use super::transaction::OwnStatements;
use super::{Misdated, StoreError, StoreFuture, lookups};
use crate::domain::{Operation, ShopCode, Status, TransactionId, UnixMillis};

/// The durable queue of the providers' jobs.
pub trait ProviderJobs: Send + Sync + 'static {
    /// Returns the shops that have provider jobs, each with the time when its earliest job is due (for a leased job,
    /// when its lease ends).
    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>>;

    /// Claims a shop's due provider jobs, earliest first, and hides them from other claims until the lease ends. After
    /// that the jobs of a process that died can be claimed again.
    fn claim_provider_jobs(&self, claim: Claim) -> StoreFuture<'_, Vec<ProviderJob>>;

    /// Makes a claimed provider job due at another time, and keeps when and why there was no result; `None`: nothing was requested.
    /// Does nothing if the job has ended, or this claim of it.
    fn postpone_provider_job<'a>(
        &'a self,
        job: &'a ProviderJob,
        due: UnixMillis,
        failed: Option<(UnixMillis, &'a str)>,
    ) -> StoreFuture<'a, ()>;

    /// Ends an operation's provider job without a result. What is known of it is kept until the operation has a result.
    fn end_provider_job(&self, id: TransactionId, end: JobEnd, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Makes a pending operation's provider job due now: the one that waits, or a new one where it has ended (contract
    /// section 14).
    fn ask_again(&self, id: TransactionId, at: UnixMillis) -> StoreFuture<'_, AskOutcome>;

    /// Makes tasks due whose times cannot be right; returns how many. They keep their attempts.
    fn make_due(&self, misdated: Misdated) -> StoreFuture<'_, usize>;
}

impl<B: Backend> ProviderJobs for B {
    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>> {
        Box::pin(async move {
            // A shop is a group of its own, with one queue.
            let list = QueueList { kind: TaskKind::ProviderJob, after: Vec::new(), limit: 1 };
            let queues = self.read(ReadKind::Rows, async move |tx| tx.task_queues(&list).await).await?;
            queues.into_iter().map(ProviderQueue::of).collect()
        })
    }

    fn claim_provider_jobs(&self, jobs: Claim) -> StoreFuture<'_, Vec<ProviderJob>> {
        Box::pin(claim(self, jobs))
    }

    fn postpone_provider_job<'a>(
        &'a self,
        job: &'a ProviderJob,
        due: UnixMillis,
        failed: Option<(UnixMillis, &'a str)>,
    ) -> StoreFuture<'a, ()> {
        let (job, failed) = (job.claimed(), failed.map(|(at, failure)| (at, Box::<str>::from(failure))));
        Box::pin(self.run_alone(async move |tx| {
            tasks::postpone_job(tx, job, due, failed.as_ref().map(|(at, failure)| (*at, &**failure))).await
        }))
    }

    fn end_provider_job(&self, id: TransactionId, end: JobEnd, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.run_alone(async move |tx| tasks::end_job(tx, id, end.kind(), at, false).await))
    }

    fn ask_again(&self, id: TransactionId, at: UnixMillis) -> StoreFuture<'_, AskOutcome> {
        Box::pin(self.transact(async move |tx| ask(tx, id, at).await))
    }

    fn make_due(&self, misdated: Misdated) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            // Most often there is nothing to write.
            let any = Misdated { limit: 1, ..misdated.clone() };
            let found = self.read(ReadKind::Rows, async move |tx| tasks::misdated(tx, &any).await).await?;
            if found.is_empty() {
                return Ok(0);
            }
            self.transact(async move |tx| tasks::make_due(tx, &misdated).await).await
        })
    }
}

async fn claim<B: Backend>(backend: &B, claim: Claim) -> Result<Vec<ProviderJob>, StoreError> {
    let Claim { shop, now, lease_until, limit } = claim;
    let shares = vec![(shop.as_str().into(), limit)];
    let claim = TaskClaim { kind: TaskKind::ProviderJob, shares, now, lease_until };
    backend.require_right_clock().await?;
    let claimed = backend.run_alone(async move |tx| tx.claim_tasks(&claim).await).await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<i64> = claimed.iter().map(|task| task.key).collect();
    let mut rows = backend.read(ReadKind::Rows, async move |tx| lookups::operations(tx, &keys).await).await?;
    let mut jobs = Vec::with_capacity(claimed.len());
    for task in claimed {
        match rows.remove(&task.key).map(|row| row.decode(backend.vault())) {
            Some(Ok(stored)) => {
                let (queued_at, attempts) = (task.queued_at, task.attempts);
                jobs.push(ProviderJob { operation: stored.operation, queued_at, attempts });
            }
            // An unreadable row must not stop the queue.
            Some(Err(error)) => {
                tracing::error!(%error, "a provider job cannot be decoded and is skipped until its lease ends");
            }
            None => {}
        }
    }
    Ok(jobs)
}

impl ProviderJobState {
    pub(super) fn of(job: JobState) -> Self {
        let TaskState { queued_at, due_at, is_leased, attempts } = job.task;
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        Self {
            end: JobEnd::of(job.kind),
            queued_at,
            due: due_at,
            is_claimed: is_leased,
            attempts,
            failed_at: job.failed_at,
            failure: job.failure,
        }
    }
}

const ASKED: Sql = sql!(
    "SELECT o.status, x.shop FROM operations o LEFT JOIN contexts x ON x.id = o.context \
     WHERE o.transaction_id = ?1",
    postgres adds "FOR UPDATE OF o"
);

const LATELY: Sql =
    sql!("SELECT queried_at FROM provider_queries WHERE transaction_id = ?1 AND queried_at > ?2 AND queried_at < ?3");

const INSERT_QUERY: Sql = sql!(
    "INSERT INTO provider_queries (transaction_id, queried_at, job_attempts, job_ended_at, job_kind, job_failure) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
);

async fn ask<T: OwnStatements>(tx: &T, id: TransactionId, at: UnixMillis) -> Result<AskOutcome, T::Error> {
    let read = |row: &dyn Columns| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(i64, Box<str>)> = tx.query_opt(ASKED, &params![id], read).await?;
    let Some((status, shop)) = found else { return Ok(AskOutcome::Unknown) };
    let status = status_of(status).ok_or(CorruptRow::new("status"))?;
    if status != Status::Pending {
        return Ok(AskOutcome::Finished(status));
    }
    // Also those of a node whose clock is ahead.
    let pause = AskOutcome::PAUSE_MILLIS;
    let bounds = params![id, at.0.saturating_sub(pause), at.0.saturating_add(pause)];
    let lately: Vec<UnixMillis> = tx.query(LATELY, &bounds, |row| row.get(0)).await?;
    if lately.contains(&at) {
        // An earlier attempt of this transaction was committed, but its confirmation was lost.
        return Ok(AskOutcome::Due);
    }
    if !lately.is_empty() {
        return Ok(AskOutcome::TooSoon);
    }
    let (kind, key) = (TaskKind::ProviderJob, id.to_stored());
    // Locked, so that no node claims it meanwhile.
    tasks::locked(tx, kind, key).await?;
    let mut replaced = None;
    let outcome = match tasks::job(tx, id).await? {
        Some(JobState { kind: TaskKind::ProviderJob, task, .. }) if task.is_leased && task.due_at > tx.due(at) => {
            AskOutcome::UnderWay
        }
        Some(JobState { kind: TaskKind::ProviderJob, .. }) => {
            tasks::release(tx, kind, key, at).await?;
            AskOutcome::Due
        }
        Some(_) | None => {
            replaced = tasks::remove_job(tx, id).await?;
            tasks::put(tx, NewTask { kind, key, queue: &shop, queued_at: at, due_at: at }).await?;
            AskOutcome::Due
        }
    };
    let [attempts, ended_at, kind, failure] = tasks::ended_columns(replaced.as_ref(), at);
    tx.execute(INSERT_QUERY, &params![id, at, attempts, ended_at, kind, failure]).await?;
    Ok(outcome)
}

impl ProviderQueue {
    fn of(queue: TaskQueue) -> Result<Self, StoreError> {
        let TaskQueue { queue, due_at, .. } = queue;
        match ShopCode::new(&queue) {
            Ok(shop) => Ok(Self { shop, due: due_at }),
            Err(_) => Err(StoreError::Corrupt("a provider job names no valid shop".to_owned())),
        }
    }
}

/// A claimed task of a provider.
#[derive(Debug, Clone)]
pub struct ProviderJob {
    /// The operation to process.
    pub operation: Operation,
    /// When the job was queued: when the operation was created, or an operator had its provider called anew.
    pub queued_at: UnixMillis,
    /// How often the job was claimed before.
    pub attempts: u32,
}

impl ProviderJob {
    pub(super) fn claimed(&self) -> ClaimedJob {
        let attempts = i64::from(self.attempts) + 1;
        ClaimedJob { id: self.operation.id, queued_at: self.queued_at, attempts }
    }
}

/// How a provider job ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// The provider has the operation, and reports its result by itself.
    ReportAwaited,
    /// The customer of a deposit is to pay.
    CustomerAwaited,
    /// The provider gave no answer in time.
    GivenUp,
}

impl JobEnd {
    pub(super) const fn kind(self) -> TaskKind {
        match self {
            Self::ReportAwaited => TaskKind::ReportAwaited,
            Self::CustomerAwaited => TaskKind::CustomerAwaited,
            Self::GivenUp => TaskKind::GivenUp,
        }
    }

    pub(super) const fn of(kind: TaskKind) -> Option<Self> {
        match kind {
            TaskKind::ProviderJob | TaskKind::Callback => None,
            TaskKind::ReportAwaited => Some(Self::ReportAwaited),
            TaskKind::CustomerAwaited => Some(Self::CustomerAwaited),
            TaskKind::GivenUp => Some(Self::GivenUp),
        }
    }
}

/// The outcome of having a provider called anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskOutcome {
    /// The job is due now.
    Due,
    /// The provider is being called at this moment: the job was left alone.
    UnderWay,
    /// The same was done less than [`AskOutcome::PAUSE_MILLIS`] ago: nothing was changed.
    TooSoon,
    /// The operation has its result: nothing was changed.
    Finished(Status),
    /// There is no such operation.
    Unknown,
}

impl AskOutcome {
    /// The least time between two requests for one operation.
    pub const PAUSE_MILLIS: i64 = 10_000;
}

/// The state of a provider job, which may have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderJobState {
    /// How it ended; `None`: it has not.
    pub end: Option<JobEnd>,
    /// When it was queued.
    pub queued_at: UnixMillis,
    /// When it is due; when its lease ends, while it is claimed; when it ended.
    pub due: UnixMillis,
    /// Whether it has been claimed; the lease may be over.
    pub is_claimed: bool,
    /// How often it was claimed.
    pub attempts: u32,
    /// When an attempt last gave no result.
    pub failed_at: Option<UnixMillis>,
    /// Why it gave none.
    pub failure: Option<Box<str>>,
}

/// A provider job that was removed: its operation has its result, or an operator had the provider called anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    /// How it ended before; `None`: it had not.
    pub end: Option<JobEnd>,
    /// How often it was claimed.
    pub attempts: u32,
    /// When it ended; when its last call did, if it had not. `None`: not known, since a process died.
    pub at: Option<UnixMillis>,
    /// Why an attempt last gave no result.
    pub failure: Option<Box<str>>,
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
