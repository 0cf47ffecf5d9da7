//! Works through the durable queue of provider jobs. A job stays in the queue until its result is booked, so that the
//! work of a process that died is taken up again when its lease is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::sandbox;
use crate::clock::Clock;
use crate::domain::{Amount, Direction, Operation, UnixMillis};
use crate::engine::{AtCreation, CustomerWay, Provider};
use crate::rules::{ProviderRules, Shop};
use crate::store::{Claim, ProviderJob, Settlement, Store, StoreError};
use crate::telemetry::Metrics;

/// How long a claimed job is hidden from other claims.
const LEASE: Duration = Duration::from_secs(30);
/// How many jobs are claimed at once.
const BATCH: usize = 128;
/// The longest the queue is left unwatched: jobs of other nodes and expired leases are found after this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// All providers, as the engine asks them.
#[derive(Debug, Default)]
pub struct Providers {
    stored: Notify,
}

impl Provider for Providers {
    fn at_creation(&self, shop: &Shop, direction: Direction, amount: Amount, now: UnixMillis) -> AtCreation {
        match &shop.provider {
            ProviderRules::Sandbox { delay } => sandbox::at_creation(direction, amount, *delay, now),
            ProviderRules::Http(_) => AtCreation::AskAt(now),
        }
    }

    fn customer_way(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<CustomerWay> {
        match provider {
            ProviderRules::Sandbox { delay } => sandbox::customer_way(operation, *delay, now),
            ProviderRules::Http(_) => None,
        }
    }

    fn job_stored(&self) {
        self.stored.notify_one();
    }
}

/// Does provider jobs, one process's share of them.
pub struct Worker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    providers: Arc<Providers>,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// A worker on a store's queue.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, providers: Arc<Providers>, metrics: Arc<Metrics>) -> Self {
        Self { store, clock, providers, metrics }
    }

    /// Works until `stop` is sent to or its sender is dropped; the batch in hand is done first. Dropping the task at any
    /// await leaves the queue sound too, but what it claimed waits for the end of its lease then.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        while let Err(oneshot::error::TryRecvError::Empty) = stop.try_recv() {
            let wait = match self.work_once().await {
                Ok(BATCH..) => Duration::ZERO,
                Ok(_) => self.until_next().await,
                Err(error) => {
                    tracing::warn!(%error, "provider jobs are waiting for the store");
                    LONGEST_WAIT
                }
            };
            if !wait.is_zero() {
                // Either may wake it; the next round looks at the queue anyway.
                tokio::select! {
                    _ = &mut stop => return,
                    _ = tokio::time::timeout(wait, self.providers.stored.notified()) => {}
                }
            }
        }
    }

    /// Does the jobs that are due now, up to a batch of them. Returns how many there were.
    ///
    /// # Errors
    /// The store could not answer; nothing is lost.
    pub async fn work_once(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut jobs = Vec::new();
        for queue in self.store.provider_queues().await?.into_iter().filter(|queue| queue.due <= now) {
            let claim = Claim { shop: queue.shop, now, lease_until: now.plus(LEASE), limit: BATCH };
            jobs.extend(self.store.claim_provider_jobs(claim).await?);
        }
        let count = jobs.len();
        // The results of a batch are booked together: the store shares their commit.
        let mut bookings = tokio::task::JoinSet::new();
        for job in jobs {
            let (store, at) = (Arc::clone(&self.store), self.clock.now());
            bookings.spawn(async move { book(&*store, &job, at).await });
        }
        let mut failure = None;
        // All of them are waited for: a booking that is dropped would leave its job to the end of its lease.
        while let Some(booking) = bookings.join_next().await {
            match booking {
                Ok(Ok(outcome)) => self.metrics.provider_job(outcome),
                Ok(Err(error)) => failure = Some(error),
                Err(panic) => tracing::error!(%panic, "a provider job failed; it is tried again"),
            }
        }
        failure.map_or(Ok(count), Err)
    }

    async fn until_next(&self) -> Duration {
        let queues = self.store.provider_queues().await.unwrap_or_default();
        let Some(due) = queues.iter().map(|queue| queue.due).min() else { return LONGEST_WAIT };
        self.clock.now().until(due).min(LONGEST_WAIT).max(Duration::from_millis(1))
    }
}

/// Books the result of a sandbox withdrawal; the name of what came out, for the metrics.
async fn book(store: &dyn Store, job: &ProviderJob, at: UnixMillis) -> Result<&'static str, StoreError> {
    let id = job.operation.id;
    if job.operation.direction() == Direction::Payin {
        store.end_provider_job(id).await?;
        return Ok("nothing");
    }
    let outcome = sandbox::withdrawal_result(job.operation.amount);
    match store.settle(id, outcome, at).await? {
        Settlement::Booked => Ok("booked"),
        Settlement::AlreadyBooked => Ok("repeated"),
        Settlement::Contradicts(booked) => {
            tracing::warn!(transaction_id = %id, booked = booked.as_str(), "a contradicting result was refused");
            store.end_provider_job(id).await?;
            Ok("contradicted")
        }
        Settlement::Unknown => {
            store.end_provider_job(id).await?;
            Ok("unknown")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, SystemRandomness};
    use crate::rules::{Secret, StoreKeys, StoreRules, StoreUrl};
    use crate::store::open_store;

    #[tokio::test]
    async fn a_worker_that_is_stopped_ends_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let rules = StoreRules {
            url: StoreUrl::Sqlite(directory.path().join("paybridge.db")),
            keys: StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] },
        };
        let store = open_store(&rules, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
        let worker = || Worker::new(Arc::clone(&store), Arc::new(SystemClock), Arc::default(), Arc::default());
        let (stop, stopped) = oneshot::channel();
        drop(stop);
        worker().run(stopped).await;

        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(worker().run(stopped));
        tokio::task::yield_now().await;
        stop.send(()).unwrap();
        running.await.unwrap();
    }
}
