//! Works through the outbox: claims what is due of each target as far as there is room for it, and has all of it under way
//! side by side.

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

/// How long a claimed callback is hidden from other claims, beyond the time that its receiver is given.
const LEASE: Duration = Duration::from_secs(10);
/// The longest the outbox is left unwatched: callbacks that were queued elsewhere and expired leases are found after this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Between two looks at the queues passes this many times what a look takes, and at most so long.
const SCANS_APART: u32 = 3;
const LONGEST_SCAN_PAUSE: Duration = Duration::from_millis(100);
/// How often it is measured what waits, and looked for what has waited too long.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
/// How many callbacks are given up at once without another try.
const EXPIRED_AT_ONCE: usize = 500;
/// How many callbacks that were told long ago are forgotten at once, of each kind.
const FORGOTTEN_AT_ONCE: usize = 500;
/// How many open circuits are named in the metrics.
const NAMED_CIRCUITS: usize = 20;
/// Between two lines about one kind of trouble of a target.
const BETWEEN_LINES: Duration = Duration::from_mins(1);

/// What a worker is made of.
pub struct CallbackDeps {
    /// Holds the outbox.
    pub store: Arc<dyn Store>,
    /// Tells the results that it announced, where the engine is remote.
    pub remote: Option<Remote>,
    /// The rules of the moment.
    pub rules: CurrentRules,
    /// Reaches merchants.
    pub outbound: Arc<Outbound>,
    /// Tells when callbacks are due.
    pub clock: Arc<dyn Clock>,
    /// Spreads retries.
    pub random: Arc<dyn Random>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Sends callbacks, one process's share of them.
pub struct CallbackWorker {
    tools: Arc<WorkerContext>,
    rules: CurrentRules,
    targets: Targets,
    /// Whose each task is.
    tasks: HashMap<Id, (CallbackTarget, TargetHealth)>,
    looked: Option<Instant>,
    /// Says when a line is due of rounds that the store failed.
    waiting: LogThrottle,
    /// The same of looks.
    unseen: LogThrottle,
    /// How long the last look at the queues took.
    scan: Duration,
}

/// What came of a job, and whether the store took it.
type Done = (ProbeResult, Result<(), StoreError>);

impl CallbackWorker {
    /// A worker on the outbox of a store.
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

    /// Works until `stop` is sent to or its sender is dropped; what is under way is waited for. Dropping the task at any
    /// await leaves the outbox sound too, but what it claimed waits for the end of its lease then, and is sent again.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut under_way = JoinSet::new();
        while let Err(oneshot::error::TryRecvError::Empty) = stop.try_recv() {
            // Where many targets wait, their queues are not looked at for each callback that lands.
            tokio::time::sleep((self.scan * SCANS_APART).min(LONGEST_SCAN_PAUSE)).await;
            while let Some(landed) = under_way.try_join_next_with_id() {
                self.landed(landed);
            }
            let wait = self.round(&mut under_way).await.unwrap_or_else(|error| {
                if let Some(left_out) = self.waiting.due(()) {
                    tracing::warn!(%error, left_out, "callbacks are waiting for the store");
                }
                LONGEST_WAIT
            });
            if !wait.is_zero() {
                let store = Arc::clone(&self.tools.store);
                // Any of them may wake it; the next round looks at the outbox anyway.
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

    /// Takes up what is due and has room. Returns how long nothing else will be, zero when there may be more now.
    async fn round(&mut self, under_way: &mut JoinSet<Done>) -> Result<Duration, StoreError> {
        let rules = (self.rules)();
        let now = self.tools.clock.now();
        // What is measured and cleaned away keeps nothing from being sent.
        if let Err(error) = self.look(&rules, now).await {
            self.looked = Some(Instant::now());
            if let Some(left_out) = self.unseen.due(()) {
                tracing::warn!(%error, left_out, "the outbox cannot be looked at");
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

    /// How many of each target are taken up, and how long until something else is due.
    fn shares(
        &self,
        queues: Vec<CallbackQueue>,
        now: UnixMillis,
    ) -> (Vec<(CallbackTarget, usize, TargetHealth)>, Duration) {
        let mut wait = LONGEST_WAIT;
        let mut shares = Vec::new();
        let until = |at: UnixMillis| now.until(at).max(Duration::from_millis(1));
        // Whoever has waited longest is first, so that targets that share what is left take turns.
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
                // The next to land wakes the worker.
                Capacity::Full => {}
            }
        }
        (shares, wait)
    }

    /// A task has come to its end.
    fn landed(&mut self, landed: Result<(Id, Done), JoinError>) {
        let (id, sign) = match landed {
            Ok((id, (sign, recorded))) => {
                if let Err(error) = recorded {
                    tracing::warn!(%error, "what came of a callback was not recorded; it is sent again");
                }
                (id, sign)
            }
            Err(panic) => {
                tracing::error!(%panic, "a callback failed; it is sent again");
                (panic.id(), ProbeResult::Nothing)
            }
        };
        let Some((target, kind)) = self.tasks.remove(&id) else { return };
        let callbacks = &(self.rules)().gateway.callbacks;
        let waits = Backoff { first: callbacks.first_retry, longest: callbacks.max_retry };
        let now = self.tools.clock.now();
        match self.targets.landed((&target, kind), sign, waits, now, self.tools.random.number()) {
            Some(CircuitChange::Opened) => {
                tracing::warn!(receiver = target.as_str(), "a target of callbacks is dead: it is probed now and then");
            }
            Some(CircuitChange::Closed) => {
                tracing::info!(receiver = target.as_str(), "a target of callbacks answers again");
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

    /// Now and then: gives up what has waited too long behind a dead target, and measures what waits. What has waited for
    /// another reason, such as a gateway that was down, has its last try.
    async fn look(&mut self, rules: &RuleSet, now: UnixMillis) -> Result<(), StoreError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
            return Ok(());
        }
        let callbacks = &rules.gateway.callbacks;
        // Whatever is tried by itself has its last try at that time, and so long to come to its end.
        let patience = callbacks.give_up_after + callbacks.timeout + LEASE;
        let queued_until = before(now, patience);
        let reason = "given up without another try: its target did not answer";
        let (_, open) = self.targets.open(usize::MAX);
        let targets: HashSet<CallbackTarget> = open.into_iter().cloned().collect();
        let expired = if targets.is_empty() {
            0
        } else {
            let expiry = ExpireRequest { targets, queued_until, reason, limit: EXPIRED_AT_ONCE };
            self.tools.store.expire_callbacks(expiry).await?
        };
        if expired > 0 {
            tracing::warn!(expired, "callbacks to dead targets were given up: see `paybridge callbacks list`");
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

/// How long a remote engine may take to tell a result.
fn engine_timeout(rules: &RuleSet) -> Duration {
    match &rules.gateway.engine {
        EngineRules::Embedded => Duration::ZERO,
        EngineRules::Remote(engine) => engine.timeout,
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
