//! The worker of the durable queue: runs rounds, which claim and start due tasks, and waits between them. Tasks of each kind
//! have a [`QueueHandler`].
//!
//! A task stays in its queue until its outcome is recorded, so that another process continues the work of one that died,
//! after its lease.

#[cfg(test)]
mod testing;

use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::clock::{ClockJumps, DatedWaits};
use crate::deps::Deps;
use crate::store::{Misdated, MisdatedWaits, StoreError, TaskKind};
use crate::telemetry::LogThrottle;

/// How long a task is leased, in addition to the time-out of its request.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// The longest wait between two rounds: tasks that other nodes queued and expired leases are found after this.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The most tasks whose time is corrected at once.
const CORRECTED_AT_ONCE: usize = 1000;

/// How tasks of one kind are claimed and done.
pub(crate) trait QueueHandler: Send + 'static {
    /// The kind.
    const KIND: TaskKind;
    /// The tasks in log lines, such as `callbacks`.
    const TASKS: &'static str;
    /// The result of a task.
    type Done: Send + 'static;

    /// Is notified when this process queues a task.
    fn queued(&self) -> &Notify;

    /// Returns how long to pause before the next round, though there may be more to start.
    fn pause(&self) -> Duration {
        Duration::ZERO
    }

    /// Claims and starts the tasks that are due, as far as there is capacity. Returns how long until more can start; zero
    /// if there may be more now.
    fn round(
        &mut self,
        in_flight: &mut JoinSet<Self::Done>,
    ) -> impl Future<Output = Result<Duration, StoreError>> + Send;

    /// Handles the end of a task.
    fn finished(&mut self, finished: Result<(Id, Self::Done), JoinError>);
}

/// Does this process's share of the tasks of one kind.
pub(crate) struct QueueWorker<H: QueueHandler> {
    handler: H,
    in_flight: JoinSet<H::Done>,
    /// Throttles log lines about rounds that failed in the store.
    round_failures: LogThrottle,
}

impl<H: QueueHandler> QueueWorker<H> {
    /// Creates a worker for the tasks of a handler.
    pub(crate) fn new(handler: H) -> Self {
        Self { handler, in_flight: JoinSet::new(), round_failures: LogThrottle::default() }
    }

    /// Works until `stop` receives a message or its sender is dropped, then waits for the tasks in flight. Dropping the
    /// future at any await leaves the queue sound too, but the tasks that it claimed are done again only after their
    /// leases.
    pub(crate) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        while let Err(TryRecvError::Empty) = stop.try_recv() {
            let pause = self.handler.pause();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            while let Some(finished) = self.in_flight.try_join_next_with_id() {
                self.handler.finished(finished);
            }
            let wait = self.handler.round(&mut self.in_flight).await.unwrap_or_else(|error| {
                if let Some(left_out) = self.round_failures.due(()) {
                    tracing::warn!(%error, left_out, "{} wait: the store is unavailable", H::TASKS);
                }
                LONGEST_WAIT
            });
            if !wait.is_zero() {
                // Any of them may wake it; the next round reads the queues anyway.
                tokio::select! {
                    _ = &mut stop => break,
                    Some(finished) = self.in_flight.join_next_with_id() => self.handler.finished(finished),
                    _ = tokio::time::timeout(wait, self.handler.queued().notified()) => {}
                }
            }
        }
        while let Some(finished) = self.in_flight.join_next_with_id().await {
            self.handler.finished(finished);
        }
    }
}

/// Makes tasks due that a wrong clock made wait for too long; returns whether there were any. `longest_wait` returns the
/// name of a queue, and how long its tasks may wait, or be leased, at most.
pub(crate) async fn correct_waits<H: QueueHandler, Q>(
    deps: &Deps,
    jumps: &ClockJumps,
    queues: &[Q],
    longest_wait: impl Fn(&Q) -> (Box<str>, Duration),
) -> Result<bool, StoreError> {
    let Some(doubtful) = jumps.doubtful() else { return Ok(false) };
    // Read now: the clock may have been set back since the round began.
    let now = deps.clock.now();
    let latest = |queue| {
        let (name, wait) = longest_wait(queue);
        (name, now.plus(wait))
    };
    let waits = match doubtful {
        DatedWaits::QueuedAfter(after, _) => MisdatedWaits::QueuedAfter(after),
        DatedWaits::Overlong => MisdatedWaits::Overlong(queues.iter().map(latest).collect()),
    };
    let misdated = Misdated { kind: H::KIND, now, waits, limit: CORRECTED_AT_ONCE };
    let corrected = if queues.is_empty() { 0 } else { deps.store.make_due(misdated).await? };
    if corrected > 0 {
        tracing::warn!(corrected, "{} are due now: a wrong clock had them wait for too long", H::TASKS);
    }
    if corrected < CORRECTED_AT_ONCE {
        jumps.corrected(doubtful);
    }
    Ok(corrected > 0)
}
