//! The worker of the durable queue of provider jobs. A job stays in the queue until its result is recorded, so that
//! another process continues the work of one that died, after its lease.
//!
//! Each shop has a queue of its own. The sandbox's jobs are done in batches, whose results share a commit. Requests to
//! HTTP providers run concurrently, so that a slow or dead provider delays only its own shop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};

use super::Providers;
use super::in_flight::InFlightLimiter;
use super::job::{JobContext, JobHandler, UNTIL_RULES_CHANGE};
use crate::clock::{ClockJumps, DatedWaits};
use crate::deps::Deps;
use crate::domain::{ShopCode, UnixMillis};
use crate::engine::Engine;
use crate::rules::{ProviderRules, RuleSet};
use crate::store::{Claim, Misdated, MisdatedWaits, ProviderQueue, StoreError, TaskKind};
use crate::telemetry::LogThrottle;

/// How long a job is leased, in addition to the time-out of its request.
const LEASE: Duration = Duration::from_secs(10);
/// The most jobs without a request of their own that are claimed at once.
const BATCH: usize = 128;
/// The longest wait between two reads of the queue: jobs of other nodes and expired leases are found after this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The most jobs whose time is corrected at once.
const CORRECTED_AT_ONCE: usize = 1000;
/// The interval between two log lines about one kind of failure of a shop.
const BETWEEN_LINES: Duration = Duration::from_mins(1);

/// Does this process's share of the provider jobs.
pub struct ProviderWorker {
    context: Arc<JobContext>,
    providers: Arc<Providers>,
    limiter: InFlightLimiter,
    /// Throttles log lines about rounds that failed in the store.
    round_failures: LogThrottle,
}

/// The jobs in flight, as tasks.
type InFlightJobs = JoinSet<Result<(), StoreError>>;

impl ProviderWorker {
    /// Creates a worker for the queue of the store. `engine` records results, and notifies `providers` when it stores
    /// a job.
    #[must_use]
    pub fn new(deps: Deps, engine: Arc<Engine>, providers: Arc<Providers>) -> Self {
        let throttle = LogThrottle::new(BETWEEN_LINES);
        let jumps = ClockJumps::new(Arc::clone(&deps.clock));
        let context = JobContext { deps, engine, jumps, throttle, silent: Mutex::default() };
        let round_failures = LogThrottle::default();
        Self { context: Arc::new(context), providers, limiter: InFlightLimiter::default(), round_failures }
    }

    /// Works until `stop` receives a message or its sender is dropped, then waits for the jobs in flight. Dropping the
    /// future at any await leaves the queue sound too, but the jobs that it claimed are done again only after their
    /// leases.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut in_flight = InFlightJobs::new();
        while let Err(oneshot::error::TryRecvError::Empty) = stop.try_recv() {
            while let Some(finished) = in_flight.try_join_next() {
                log_failure(finished);
            }
            let wait = self.round(&mut in_flight).await.unwrap_or_else(|error| {
                if let Some(left_out) = self.round_failures.due(()) {
                    tracing::warn!(%error, left_out, "provider jobs wait: the store is unavailable");
                }
                LONGEST_WAIT
            });
            if !wait.is_zero() {
                // Any of them may wake it; the next round reads the queue anyway.
                tokio::select! {
                    _ = &mut stop => break,
                    Some(finished) = in_flight.join_next() => log_failure(finished),
                    _ = tokio::time::timeout(wait, self.providers.stored.notified()) => {}
                }
            }
        }
        while let Some(finished) = in_flight.join_next().await {
            log_failure(finished);
        }
    }

    /// Claims and starts the jobs that are due. Returns how long until more can start; zero if there may be more now.
    async fn round(&self, in_flight: &mut InFlightJobs) -> Result<Duration, StoreError> {
        let rules = self.context.deps.rules.load_full();
        let now = self.context.deps.clock.now();
        let queues = self.context.deps.store.provider_queues().await?;
        if self.correct_waits(&rules, &queues).await? {
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

    /// Makes jobs due that a wrong clock made wait for too long; returns whether there were any.
    async fn correct_waits(&self, rules: &RuleSet, queues: &[ProviderQueue]) -> Result<bool, StoreError> {
        let Some(doubtful) = self.context.jumps.doubtful() else { return Ok(false) };
        // Read now: the clock may have been set back since the round began.
        let now = self.context.deps.clock.now();
        let latest = |queue: &ProviderQueue| (queue.shop.as_str().into(), now.plus(longest_wait(rules, &queue.shop)));
        let waits = match doubtful {
            DatedWaits::QueuedAfter(after, _) => MisdatedWaits::QueuedAfter(after),
            DatedWaits::Overlong => MisdatedWaits::Overlong(queues.iter().map(latest).collect()),
        };
        let misdated = Misdated { kind: TaskKind::ProviderJob, now, waits, limit: CORRECTED_AT_ONCE };
        let corrected = if queues.is_empty() { 0 } else { self.context.deps.store.make_due(misdated).await? };
        if corrected > 0 {
            tracing::warn!(corrected, "provider jobs are due now: a wrong clock had them wait for too long");
        }
        if corrected < CORRECTED_AT_ONCE {
            self.context.jumps.corrected(doubtful);
        }
        Ok(corrected > 0)
    }

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
