//! The worker of the outbox: claims due callbacks for each target, as far as the target has capacity, and processes
//! them concurrently.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::job::WorkerContext;
use super::targets::{Backoff, Capacity, CircuitChange, ProbeResult, TargetHealth, Targets};
use crate::clock::{Clock, Random};
use crate::domain::UnixMillis;
use crate::outbound::Outbound;
use crate::provider::CurrentRules;
use crate::remote::Remote;
use crate::rules::{EngineRules, RuleSet};
use crate::store::{CallbackClaim, CallbackQueue, CallbackTarget, ExpireRequest, Store, StoreError};
use crate::telemetry::{LogThrottle, Metrics, Stopwatch};

/// How long a callback is leased, in addition to the time-out of its request.
const LEASE: Duration = Duration::from_secs(10);
/// The longest wait between two reads of the outbox: callbacks that other nodes queued and expired leases are found
/// after this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The pause between two reads of the queues is this many times what a read takes, up to [`LONGEST_SCAN_PAUSE`].
const SCANS_APART: u32 = 3;
const LONGEST_SCAN_PAUSE: Duration = Duration::from_millis(100);
/// How often the outbox is measured and cleaned up.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
/// The most callbacks that are expired at once.
const EXPIRED_AT_ONCE: usize = 500;
/// The most old callbacks of each kind that are deleted at once.
const FORGOTTEN_AT_ONCE: usize = 500;
/// The most open circuits that the metrics name.
const NAMED_CIRCUITS: usize = 20;
/// The interval between two log lines about one kind of failure of a target.
const BETWEEN_LINES: Duration = Duration::from_mins(1);

/// The dependencies of a [`CallbackWorker`].
pub struct CallbackDeps {
    /// Holds the outbox.
    pub store: Arc<dyn Store>,
    /// Set if the engine is remote: queries the results that it announced.
    pub remote: Option<Remote>,
    /// Returns the rules in force.
    pub rules: CurrentRules,
    /// Sends requests to merchants.
    pub outbound: Arc<Outbound>,
    /// Decides when callbacks are due.
    pub clock: Arc<dyn Clock>,
    /// Randomizes retries.
    pub random: Arc<dyn Random>,
    /// Counts attempts and callbacks.
    pub metrics: Arc<Metrics>,
}

/// Sends this process's share of the callbacks.
pub struct CallbackWorker {
    tools: Arc<WorkerContext>,
    rules: CurrentRules,
    targets: Targets,
    /// The target of each running task, and its health when the task started.
    tasks: HashMap<Id, (CallbackTarget, TargetHealth)>,
    looked: Option<Instant>,
    /// Throttles log lines about rounds that failed in the store.
    waiting: LogThrottle,
    /// Throttles log lines about failed maintenance.
    unseen: LogThrottle,
    /// How long the last read of the queues took.
    scan: Duration,
}

/// The result of a job, and whether the store recorded it.
type Done = (ProbeResult, Result<(), StoreError>);

impl CallbackWorker {
    /// Creates a worker for the outbox of a store.
    #[must_use]
    pub fn new(parts: CallbackDeps) -> Self {
        let CallbackDeps { store, remote, rules, outbound, clock, random, metrics } = parts;
        let tools = WorkerContext {
            store,
            remote,
            outbound,
            clock,
            random,
            metrics,
            throttle: LogThrottle::new(BETWEEN_LINES),
        };
        Self {
            tools: Arc::new(tools),
            rules,
            targets: Targets::default(),
            tasks: HashMap::new(),
            looked: None,
            waiting: LogThrottle::default(),
            unseen: LogThrottle::default(),
            scan: Duration::ZERO,
        }
    }

    /// Works until `stop` receives a message or its sender is dropped, then waits for the jobs in flight. Dropping the
    /// future at any await leaves the outbox sound too, but the callbacks that it claimed are sent again only after
    /// their leases.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut under_way = JoinSet::new();
        while let Err(oneshot::error::TryRecvError::Empty) = stop.try_recv() {
            // With many targets, the queues are not read again for each callback that finishes.
            tokio::time::sleep((self.scan * SCANS_APART).min(LONGEST_SCAN_PAUSE)).await;
            while let Some(landed) = under_way.try_join_next_with_id() {
                self.landed(landed);
            }
            let wait = self.round(&mut under_way).await.unwrap_or_else(|error| {
                if let Some(left_out) = self.waiting.due(()) {
                    tracing::warn!(%error, left_out, "callbacks wait: the store is unavailable");
                }
                LONGEST_WAIT
            });
            if !wait.is_zero() {
                let store = Arc::clone(&self.tools.store);
                // Any of them may wake it; the next round reads the outbox anyway.
                tokio::select! {
                    _ = &mut stop => break,
                    Some(landed) = under_way.join_next_with_id() => self.landed(landed),
                    _ = tokio::time::timeout(wait, store.callbacks_queued().notified()) => {}
                }
            }
        }
        while let Some(landed) = under_way.join_next_with_id().await {
            self.landed(landed);
        }
    }

    /// Claims and starts the callbacks that are due, as far as there is capacity. Returns how long until more can
    /// start; zero if there may be more now.
    async fn round(&mut self, under_way: &mut JoinSet<Done>) -> Result<Duration, StoreError> {
        let rules = (self.rules)();
        let now = self.tools.clock.now();
        // A failure of maintenance must not keep callbacks from being sent.
        if let Err(error) = self.look(&rules, now).await {
            self.looked = Some(Instant::now());
            if let Some(left_out) = self.unseen.due(()) {
                tracing::warn!(%error, left_out, "the outbox cannot be measured and cleaned up");
            }
        }
        let watch = Stopwatch::start();
        let queues = self.tools.store.callback_queues().await?;
        self.scan = watch.elapsed();
        self.targets.forget(&queues.iter().map(|queue| &queue.target).collect());
        let (shares, wait) = self.shares(queues, now);
        if shares.is_empty() {
            return Ok(wait);
        }
        let kinds: HashMap<CallbackTarget, TargetHealth> =
            shares.iter().map(|(target, _, kind)| (target.clone(), *kind)).collect();
        let shares = shares.into_iter().map(|(target, room, _)| (target, room)).collect();
        let lease_until = now.plus(rules.gateway.callbacks.timeout.max(engine_timeout(&rules)) + LEASE);
        let jobs = self.tools.store.claim_callbacks(CallbackClaim { shares, now, lease_until }).await?;
        let claimed = !jobs.is_empty();
        for job in jobs {
            let (tools, rules, target) = (Arc::clone(&self.tools), Arc::clone(&rules), job.target.clone());
            let kind = kinds.get(&target).copied().unwrap_or(TargetHealth::Troubled);
            self.targets.started(&target, kind);
            let task = under_way.spawn(async move { tools.work(&rules, job).await });
            self.tasks.insert(task.id(), (target, kind));
        }
        Ok(if claimed { Duration::ZERO } else { wait })
    }

    /// Returns how many callbacks of each target to claim, and how long until another target is due.
    fn shares(
        &self,
        queues: Vec<CallbackQueue>,
        now: UnixMillis,
    ) -> (Vec<(CallbackTarget, usize, TargetHealth)>, Duration) {
        let mut wait = LONGEST_WAIT;
        let mut shares = Vec::new();
        let until = |at: UnixMillis| now.until(at).max(Duration::from_millis(1));
        // The target that has waited longest is first, so that targets take turns in sharing the remaining capacity.
        let mut due: Vec<CallbackQueue> = Vec::new();
        for queue in queues {
            if queue.due > now {
                wait = wait.min(until(queue.due));
            } else {
                due.push(queue);
            }
        }
        due.sort_by_key(|queue| queue.due);
        let mut sharing = self.targets.sharing();
        for queue in due {
            match sharing.room(&queue, now) {
                Capacity::For(room, kind) => shares.push((queue.target, room, kind)),
                Capacity::At(at) => wait = wait.min(until(at)),
                // The next task to finish wakes the worker.
                Capacity::Full => {}
            }
        }
        (shares, wait)
    }

    /// Handles the end of a task.
    fn landed(&mut self, landed: Result<(Id, Done), JoinError>) {
        let (id, sign) = match landed {
            Ok((id, (sign, recorded))) => {
                if let Err(error) = recorded {
                    tracing::warn!(%error, "the outcome of a callback could not be recorded; it will be sent again");
                }
                (id, sign)
            }
            Err(panic) => {
                tracing::error!(%panic, "the task of a callback panicked; it will be sent again");
                (panic.id(), ProbeResult::Nothing)
            }
        };
        let Some((target, kind)) = self.tasks.remove(&id) else { return };
        let callbacks = &(self.rules)().gateway.callbacks;
        let waits = Backoff { first: callbacks.first_retry, longest: callbacks.max_retry };
        let now = self.tools.clock.now();
        match self.targets.landed((&target, kind), sign, waits, now, self.tools.random.number()) {
            Some(CircuitChange::Opened) => {
                tracing::warn!(
                    receiver = target.as_str(),
                    "a callback target does not answer: it gets occasional probes only"
                );
            }
            Some(CircuitChange::Closed) => {
                tracing::info!(receiver = target.as_str(), "a callback target answers again");
            }
            None => return,
        }
        self.tell_circuits();
    }

    fn tell_circuits(&self) {
        let (open, targets) = self.targets.open(NAMED_CIRCUITS);
        let named: Vec<&str> = targets.into_iter().map(CallbackTarget::as_str).collect();
        self.tools.metrics.callback_circuits(open, &named);
    }

    /// Does periodic maintenance: expires callbacks that have waited too long for a dead target, deletes old ones, and
    /// measures the outbox. Callbacks that have waited for another reason, such as a gateway that was down, get their
    /// last attempt.
    async fn look(&mut self, rules: &RuleSet, now: UnixMillis) -> Result<(), StoreError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
            return Ok(());
        }
        let callbacks = &rules.gateway.callbacks;
        // An attempted callback has its last attempt at `give_up_after`, and then this long to finish.
        let patience = callbacks.give_up_after + callbacks.timeout + LEASE;
        let queued_until = before(now, patience);
        let reason = "given up without another attempt: its target did not answer";
        let (_, open) = self.targets.open(usize::MAX);
        let targets: HashSet<CallbackTarget> = open.into_iter().cloned().collect();
        let expired = if targets.is_empty() {
            0
        } else {
            let expiry = ExpireRequest { targets, queued_until, reason, limit: EXPIRED_AT_ONCE };
            self.tools.store.expire_callbacks(expiry).await?
        };
        if expired > 0 {
            tracing::warn!(
                expired,
                "callbacks to targets that do not answer have failed: see `paybridge callbacks list`"
            );
            self.tools.metrics.callbacks_given_up(expired);
        }
        let forgotten =
            self.tools.store.forget_callbacks(before(now, callbacks.forget_after), FORGOTTEN_AT_ONCE).await?;
        let size = self.tools.store.outbox_size().await?;
        self.tools.metrics.outbox(size.pending, size.failed, size.oldest.map(|oldest| oldest.until(now)));
        self.tell_circuits();
        let done = expired < EXPIRED_AT_ONCE && forgotten < FORGOTTEN_AT_ONCE;
        self.looked = done.then(Instant::now);
        Ok(())
    }
}

fn before(now: UnixMillis, span: Duration) -> UnixMillis {
    UnixMillis(now.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
}

/// Returns the time-out of a remote engine.
fn engine_timeout(rules: &RuleSet) -> Duration {
    match &rules.gateway.engine {
        EngineRules::Embedded => Duration::ZERO,
        EngineRules::Remote(engine) => engine.timeout,
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
