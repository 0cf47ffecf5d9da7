//! The jobs of providers: tasks in the queues of their shops.

use super::backend::{Backend, ReadKind};
use super::rows::task::{QueueList, TaskClaim, TaskKind, TaskQueue};
use super::tasks::{self, TaskState};
use super::transaction::OwnStatements as _;
use super::{Misdated, StoreError, StoreFuture, lookups};
use crate::domain::{Operation, ShopCode, TransactionId, UnixMillis};

/// The durable queue of the providers' jobs.
pub trait ProviderJobs: Send + Sync + 'static {
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

    fn provider_job(&self, id: TransactionId) -> StoreFuture<'_, Option<ProviderJobState>> {
        let (kind, key) = (TaskKind::ProviderJob, id.to_stored());
        let read = self.read(ReadKind::Lookup, async move |tx| tasks::state(tx, tasks::STATE, kind, key).await);
        Box::pin(async move { Ok(read.await?.map(ProviderJobState::of)) })
    }

    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> StoreFuture<'_, ()> {
        let key = id.to_stored();
        Box::pin(self.run_alone(async move |tx| tasks::release(tx, TaskKind::ProviderJob, key, due).await))
    }

    fn end_provider_job(&self, id: TransactionId) -> StoreFuture<'_, ()> {
        let key = id.to_stored();
        Box::pin(self.run_alone(async move |tx| tasks::end(tx, TaskKind::ProviderJob, key).await))
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
            Some(Ok(stored)) => jobs.push(ProviderJob { operation: stored.operation, attempts: task.attempts }),
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
    fn of(task: TaskState) -> Self {
        let TaskState { queued_at, due_at, is_leased, attempts } = task;
        Self { queued_at, due: due_at, is_claimed: is_leased, attempts: u32::try_from(attempts).unwrap_or(u32::MAX) }
    }
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
