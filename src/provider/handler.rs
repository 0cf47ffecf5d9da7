//! The provider jobs of the durable queue.
//!
//! Each shop has a queue of its own. The sandbox's jobs are done in batches, whose results share a commit. Requests to
//! HTTP providers run concurrently, so that a slow or dead provider delays only its own shop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};

use super::Providers;
use super::in_flight::InFlightLimiter;
use super::job::{JobContext, JobHandler, UNTIL_RULES_CHANGE};
use crate::clock::ClockJumps;
use crate::deps::Deps;
use crate::domain::{ShopCode, UnixMillis};
use crate::engine::Engine;
use crate::queue_worker::{LEASE, LONGEST_WAIT, QueueHandler, correct_waits};
use crate::rules::{ProviderRules, RuleSet};
use crate::store::{Claim, ProviderQueue, StoreError, TaskKind};
use crate::telemetry::LogThrottle;

/// The most jobs without a request of their own that are claimed at once.
const BATCH: usize = 128;
/// The interval between two log lines about one kind of failure of a shop.
const BETWEEN_LINES: Duration = Duration::from_mins(1);

/// Does provider jobs.
pub struct ProviderHandler {
    context: Arc<JobContext>,
    providers: Arc<Providers>,
    limiter: InFlightLimiter,
}

/// The jobs in flight, as tasks.
type InFlightJobs = JoinSet<Result<(), StoreError>>;

impl ProviderHandler {
    /// Creates a handler for the queue of the store. `engine` records results, and notifies `providers` when it stores
    /// a job.
    #[must_use]
    pub fn new(deps: Deps, engine: Arc<Engine>, providers: Arc<Providers>) -> Self {
        let throttle = LogThrottle::new(BETWEEN_LINES);
        let jumps = ClockJumps::new(Arc::clone(&deps.clock));
        let context = JobContext { deps, engine, jumps, throttle, silent: Mutex::default() };
        Self { context: Arc::new(context), providers, limiter: InFlightLimiter::default() }
    }
}

impl QueueHandler for ProviderHandler {
    const KIND: TaskKind = TaskKind::ProviderJob;
    const TASKS: &'static str = "provider jobs";
    type Done = Result<(), StoreError>;

    fn queued(&self) -> &Notify {
        &self.providers.stored
    }

    async fn round(&mut self, in_flight: &mut InFlightJobs) -> Result<Duration, StoreError> {
        let rules = self.context.deps.rules.load_full();
        let now = self.context.deps.clock.now();
        let queues = self.context.deps.store.provider_queues().await?;
        let longest_wait = |queue: &ProviderQueue| (queue.shop.as_str().into(), longest_wait(&rules, &queue.shop));
        let JobContext { deps, jumps, .. } = &*self.context;
        if correct_waits::<Self, _>(deps, jumps, &queues, longest_wait).await? {
            return Ok(Duration::ZERO);
        }
        let mut wait = LONGEST_WAIT;
        let mut batch = JoinSet::new();
        let mut failure = None;
        for queue in queues {
            if queue.due > now {
                wait = wait.min(now.until(queue.due).max(Duration::from_millis(1)));
                continue;
            }
            match self.claim(&rules, &queue.shop, now, in_flight, &mut batch).await {
                Ok(0) => {}
                Ok(_) => wait = Duration::ZERO,
                Err(error) => failure = Some(error),
            }
        }
        // Waits for all of them: a dropped job would wait for the end of its lease.
        while let Some(done) = batch.join_next().await {
            match done {
                Ok(Err(error)) => failure = Some(error),
                done => log_failure(done),
            }
        }
        failure.map_or(Ok(wait), Err)
    }

    fn finished(&mut self, finished: Result<(Id, Self::Done), JoinError>) {
        log_failure(finished.map(|(_, done)| done));
    }
}

impl ProviderHandler {
    /// Claims a shop's due jobs and starts them; returns how many.
    async fn claim(
        &self,
        rules: &RuleSet,
        shop: &ShopCode,
        now: UnixMillis,
        in_flight: &mut InFlightJobs,
        batch: &mut InFlightJobs,
    ) -> Result<usize, StoreError> {
        let provider = rules.shops.get(shop).map(|shop| &shop.provider);
        let (limit, lease) = match provider {
            Some(ProviderRules::Http(provider)) => (self.limiter.capacity(shop), provider.timeout + LEASE),
            Some(ProviderRules::Sandbox { .. }) | None => (BATCH, LEASE),
        };
        if limit == 0 {
            return Ok(0);
        }
        let claim = Claim { shop: shop.clone(), now, lease_until: now.plus(lease), limit };
        let jobs = self.context.deps.store.claim_provider_jobs(claim).await?;
        let count = jobs.len();
        for job in jobs {
            let (context, handler) = (Arc::clone(&self.context), JobHandler::of(rules, &job));
            match handler {
                JobHandler::Http(_) => {
                    let permit = self.limiter.start(shop);
                    in_flight.spawn(async move {
                        let done = context.run(&job, &handler).await;
                        drop(permit);
                        done
                    });
                }
                JobHandler::Sandbox | JobHandler::Missing => {
                    batch.spawn(async move { context.run(&job, &handler).await });
                }
            }
        }
        Ok(count)
    }
}

/// Returns how long a job of a shop may wait, or be leased, at most.
fn longest_wait(rules: &RuleSet, shop: &ShopCode) -> Duration {
    let own = match rules.shops.get(shop).map(|shop| &shop.provider) {
        Some(ProviderRules::Http(provider)) => provider.max_retry.max(provider.timeout + LEASE),
        Some(ProviderRules::Sandbox { delay, .. }) => *delay,
        None => Duration::ZERO,
    };
    own.max(UNTIL_RULES_CHANGE)
}

/// Logs a job that failed; it is done again after its lease.
fn log_failure(done: Result<Result<(), StoreError>, JoinError>) {
    match done {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "a provider job failed in the store; it will be retried"),
        Err(panic) => tracing::error!(%panic, "a provider job panicked; it will be retried"),
    }
}

#[cfg(test)]
mod tests;
