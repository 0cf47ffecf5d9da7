//! The callbacks of the durable queue: claims due ones for each target, as far as the target has capacity, and processes
//! them concurrently.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::job::WorkerContext;
use super::queues::{ListedQueues, QueueReader};
use super::targets::{Backoff, Capacity, CircuitChange, ProbeResult, TargetHealth, Targets};
use crate::backoff;
use crate::clock::ClockJumps;
use crate::deps::Deps;
use crate::domain::UnixMillis;
use crate::queue_worker::{LEASE, LONGEST_WAIT, QueueHandler, correct_waits};
use crate::remote::Remote;
use crate::rules::{EngineRules, RuleSet};
use crate::store::{CallbackClaim, CallbackQueue, CallbackTarget, ExpireRequest, StoreError, TaskKind};
use crate::telemetry::{LogThrottle, Stopwatch};

/// The pause between two reads of the queues is this many times what a read takes, up to [`LONGEST_SCAN_PAUSE`].
const SCAN_PAUSE_FACTOR: u32 = 3;
const LONGEST_SCAN_PAUSE: Duration = Duration::from_millis(100);
/// How often the outbox is measured and cleaned up.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);
/// The most callbacks that are expired at once.
const EXPIRED_AT_ONCE: usize = 500;
/// The most old callbacks of each kind that are deleted at once.
const DELETED_AT_ONCE: usize = 500;
/// The longest wait that no rule sets: of a callback that cannot be read.
const LONGEST_OTHER_WAIT: Duration = Duration::from_mins(1);
/// The most origins with open circuits that the metrics name.
const NAMED_CIRCUITS: usize = 20;
/// The interval between two log lines about one kind of failure of a target.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Sends callbacks.
pub struct CallbackHandler {
    context: Arc<WorkerContext>,
    queues: QueueReader,
    targets: Targets,
    /// The target of each running task, and its health when the task started.
    tasks: HashMap<Id, (CallbackTarget, TargetHealth)>,
    maintained_at: Option<Instant>,
    /// Throttles log lines about failed maintenance.
    maintenance_failures: LogThrottle,
    /// How long the last read of the queues took.
    scan: Duration,
}

impl CallbackHandler {
    /// Creates a handler for the outbox of the store. `remote`: the engine, if it is remote.
    #[must_use]
    pub fn new(deps: Deps, remote: Option<Remote>) -> Self {
        let (jumps, throttle) = (ClockJumps::new(Arc::clone(&deps.clock)), LogThrottle::new(LOG_INTERVAL));
        Self {
            context: Arc::new(WorkerContext { deps, remote, jumps, throttle }),
            queues: QueueReader::default(),
            targets: Targets::default(),
            tasks: HashMap::new(),
            maintained_at: None,
            maintenance_failures: LogThrottle::default(),
            scan: Duration::ZERO,
        }
    }
}

impl QueueHandler for CallbackHandler {
    const KIND: TaskKind = TaskKind::Callback;
    const TASKS: &'static str = "callbacks";
    /// What it revealed about its target, and whether the store recorded its outcome.
    type Done = (ProbeResult, Result<(), StoreError>);

    fn queued(&self) -> &Notify {
        self.context.deps.store.callbacks_queued()
    }

    /// With many targets, the queues are not read again for each callback that finishes.
    fn pause(&self) -> Duration {
        (self.scan * SCAN_PAUSE_FACTOR).min(LONGEST_SCAN_PAUSE)
    }

    async fn round(&mut self, in_flight: &mut JoinSet<Self::Done>) -> Result<Duration, StoreError> {
        let rules = self.context.deps.rules.load_full();
        let now = self.context.deps.clock.now();
        // A failure of maintenance must not keep callbacks from being sent.
        if let Err(error) = self.maintain(&rules, now).await {
            self.maintained_at = Some(Instant::now());
            if let Some(left_out) = self.maintenance_failures.due(()) {
                tracing::warn!(%error, left_out, "the outbox cannot be measured and cleaned up");
            }
        }
        let watch = Stopwatch::start();
        let listed = self.queues.read(&*self.context.deps.store).await?;
        self.scan = watch.elapsed();
        let longest_wait = rules.gateway.callbacks.max_retry.max(lease(&rules)).max(LONGEST_OTHER_WAIT);
        let longest_waits = |queue: &CallbackQueue| (queue.target.as_queue().into(), longest_wait);
        let WorkerContext { deps, jumps, .. } = &*self.context;
        if correct_waits::<Self, _>(deps, jumps, &listed.queues, longest_waits).await? {
            return Ok(Duration::ZERO);
        }
        self.targets.forget(listed.idle());
        let (shares, wait) = self.shares(listed, now);
        if shares.is_empty() {
            return Ok(wait);
        }
        let healths: HashMap<CallbackTarget, TargetHealth> =
            shares.iter().map(|(target, _, health)| (target.clone(), *health)).collect();
        let shares = shares.into_iter().map(|(target, count, _)| (target, count)).collect();
        let lease_until = now.plus(lease(&rules));
        let jobs = self.context.deps.store.claim_callbacks(CallbackClaim { shares, now, lease_until }).await?;
        let claimed = !jobs.is_empty();
        for job in jobs {
            let (context, rules, target) = (Arc::clone(&self.context), Arc::clone(&rules), job.target.clone());
            let health = healths.get(&target).copied().unwrap_or(TargetHealth::Troubled);
            self.targets.started(&target, health, now);
            let task = in_flight.spawn(async move { context.run(&rules, job).await });
            self.tasks.insert(task.id(), (target, health));
        }
        Ok(if claimed { Duration::ZERO } else { wait })
    }

    fn finished(&mut self, finished: Result<(Id, Self::Done), JoinError>) {
        let (id, probe) = match finished {
            Ok((id, (probe, recorded))) => {
                if let Err(error) = recorded {
                    tracing::warn!(%error, "the outcome of a callback could not be recorded; it will be sent again");
                }
                (id, probe)
            }
            Err(panic) => {
                tracing::error!(%panic, "the task of a callback panicked; it will be sent again");
                (panic.id(), ProbeResult::Nothing)
            }
        };
        let Some((target, health)) = self.tasks.remove(&id) else { return };
        let callbacks = &self.context.deps.rules.load_full().gateway.callbacks;
        let backoff = Backoff { first: callbacks.first_retry, longest: callbacks.max_retry };
        let now = self.context.deps.clock.monotonic();
        match self.targets.finished((&target, health), probe, backoff, now, self.context.deps.random.number()) {
            Some(CircuitChange::Opened) => {
                tracing::warn!(
                    merchant = target.merchant(),
                    receiver = target.origin(),
                    "a callback target does not answer: it gets occasional probes only"
                );
            }
            Some(CircuitChange::Closed) => {
                let (merchant, receiver) = (target.merchant(), target.origin());
                tracing::info!(merchant, receiver, "a callback target answers again");
            }
            None => return,
        }
        self.report_circuits();
    }
}

impl CallbackHandler {
    /// Returns how many callbacks of each target to claim, and how long until another target is due.
    fn shares(&self, listed: ListedQueues, now: UnixMillis) -> (Vec<(CallbackTarget, usize, TargetHealth)>, Duration) {
        let mut wait = if listed.is_partial() { LONGEST_SCAN_PAUSE } else { LONGEST_WAIT };
        let mut shares = Vec::new();
        let monotonic = self.context.deps.clock.monotonic();
        let at_least = |wait: Duration| wait.max(Duration::from_millis(1));
        let mut due: Vec<CallbackQueue> = Vec::new();
        for queue in listed.queues {
            if queue.due > now {
                wait = wait.min(at_least(now.until(queue.due)));
            } else {
                due.push(queue);
            }
        }
        let mut sharing = self.targets.sharing();
        for queue in self.targets.in_turns(due, now, monotonic) {
            match sharing.capacity(&queue, monotonic) {
                Capacity::For(count, health) => shares.push((queue.target, count, health)),
                Capacity::At(at) => wait = wait.min(at_least(at.saturating_duration_since(monotonic))),
                // The next task to finish wakes the worker.
                Capacity::Full => {}
            }
        }
        (shares, wait)
    }

    fn report_circuits(&self) {
        let (open, named) = self.targets.open_origins(NAMED_CIRCUITS);
        self.context.deps.metrics.callback_circuits(open, &named);
    }

    /// Does periodic maintenance: expires callbacks that have waited too long for a dead target, deletes old ones, and
    /// measures the outbox. Callbacks that have waited for another reason, such as a gateway that was down, get their
    /// last attempt.
    async fn maintain(&mut self, rules: &RuleSet, now: UnixMillis) -> Result<(), StoreError> {
        if self.maintained_at.is_some_and(|maintained_at| maintained_at.elapsed() < MAINTENANCE_INTERVAL) {
            return Ok(());
        }
        let callbacks = &rules.gateway.callbacks;
        // An attempted callback has its last attempt at `give_up_after`, and then this long to finish.
        let lifetime = callbacks.give_up_after + callbacks.timeout + LEASE;
        let (jumps, grace) = (&self.context.jumps, backoff::grace(callbacks.max_retry));
        let reason = "given up without another attempt: its target did not answer";
        let targets = self.targets.open_targets();
        let expired = match jumps.began_until(lifetime, grace) {
            Some(queued_until) if !targets.is_empty() => {
                let expiry = ExpireRequest { targets, queued_until, reason, limit: EXPIRED_AT_ONCE };
                self.context.deps.store.expire_callbacks(expiry).await?
            }
            _ => 0,
        };
        if expired > 0 {
            tracing::warn!(
                expired,
                "callbacks to targets that do not answer have failed: see `paybridge callbacks list`"
            );
            self.context.deps.metrics.callbacks_given_up(expired);
        }
        let forgotten = match jumps.began_until(callbacks.forget_after, grace) {
            Some(until) => self.context.deps.store.forget_callbacks(until, DELETED_AT_ONCE).await?,
            None => 0,
        };
        let size = self.context.deps.store.outbox_size().await?;
        self.context.deps.metrics.outbox(size.pending, size.failed, size.oldest.map(|oldest| oldest.until(now)));
        self.report_circuits();
        let done = expired < EXPIRED_AT_ONCE && forgotten < DELETED_AT_ONCE;
        self.maintained_at = done.then(Instant::now);
        Ok(())
    }
}

/// Returns how long a callback is leased.
fn lease(rules: &RuleSet) -> Duration {
    rules.gateway.callbacks.timeout.max(engine_timeout(rules)) + LEASE
}

/// Returns the time-out of a remote engine.
fn engine_timeout(rules: &RuleSet) -> Duration {
    match &rules.gateway.engine {
        EngineRules::Embedded => Duration::ZERO,
        EngineRules::Remote(engine) => engine.timeout,
    }
}

#[cfg(test)]
#[path = "handler_tests.rs"]
mod tests;
