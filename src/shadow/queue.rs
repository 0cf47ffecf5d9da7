//! The queue of creates that wait for their check, and the thread that checks them. Nothing waits for it: what does not fit
//! is counted as not checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};

use super::counter::{CheckedCreate, Counter, LegacyOutcome};
use super::sample::sample;
use super::verdict::{CreateVerdict, verdict};
use crate::auth::Caller;
use crate::deps::Deps;
use crate::domain::Direction;
use crate::store::CheckCount;
use crate::telemetry::{LogThrottle, Stopwatch};

/// The most creates that wait, each with its body.
const QUEUE: usize = 256;

/// The nice value of the thread.
const LOWEST_PRIORITY: i32 = 19;

/// How long counts stay in memory: a kill loses at most 5 s of them (contract section 6), and storing them takes a moment.
const STORE_INTERVAL: Duration = Duration::from_secs(2);

/// A create that was forwarded to the old v1 service and replied to.
pub struct ForwardedCreate {
    /// Its caller, with the rules that served it.
    pub caller: Caller,
    /// Payin or payout.
    pub direction: Direction,
    /// Its body, as it came.
    pub body: Bytes,
    /// What the old service did with it.
    pub legacy: LegacyOutcome,
}

/// Checks creates of merchants in mode `shadow` after their replies, and stores the counts.
pub struct ShadowChecks {
    /// `None` once it is closed.
    queue: Mutex<Option<SyncSender<ForwardedCreate>>>,
    counter: Arc<Mutex<Counter>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    deps: Deps,
}

impl ShadowChecks {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(deps: Deps) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().build()?;
        let (queue, waiting) = sync_channel(QUEUE);
        let counter = Arc::<Mutex<Counter>>::default();
        let worker = Worker {
            waiting,
            counter: Arc::clone(&counter),
            deps: deps.clone(),
            runtime,
            unstored: Vec::new(),
            failures: LogThrottle::default(),
        };
        let thread = std::thread::Builder::new().name("shadow".to_owned()).spawn(move || worker.run())?;
        let (queue, thread) = (Mutex::new(Some(queue)), Mutex::new(Some(thread)));
        Ok(Self { queue, counter, thread, deps })
    }

    /// Queues a create for its check. Never waits.
    pub fn queue(&self, create: ForwardedCreate) {
        let queue = locked(&self.queue).clone();
        let left = match queue {
            Some(queue) => queue.try_send(create).err().map(|error| match error {
                std::sync::mpsc::TrySendError::Full(create) | std::sync::mpsc::TrySendError::Disconnected(create) => {
                    create
                }
            }),
            None => Some(create),
        };
        if let Some(create) = left {
            not_checked(&mut locked(&self.counter), &create, &self.deps);
        }
    }

    /// Checks what waits, stores the counts, and ends the thread. Later creates are counted as not checked, and lost.
    pub async fn close(&self) {
        drop(locked(&self.queue).take());
        let thread = locked(&self.thread).take();
        let Some(thread) = thread else { return };
        if tokio::task::spawn_blocking(move || thread.join()).await.is_err() {
            tracing::warn!("the last counts of shadow checks may be lost");
        }
    }
}

struct Worker {
    waiting: Receiver<ForwardedCreate>,
    counter: Arc<Mutex<Counter>>,
    deps: Deps,
    /// Waits for the store.
    runtime: Runtime,
    /// Counts that the store could not take.
    unstored: Vec<CheckCount>,
    failures: LogThrottle,
}

impl Worker {
    fn run(mut self) {
        // Replies go first where there is too little of the processor. On Linux, the calling thread alone.
        if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
            tracing::debug!(%error, "shadow checks run at the priority of replies");
        }
        let mut is_stored = true;
        loop {
            // With nothing to store, the thread sleeps.
            let mut next = if is_stored {
                self.waiting.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.waiting.recv_timeout(STORE_INTERVAL)
            };
            let since_first = Stopwatch::start();
            let pause = loop {
                match next {
                    Ok(create) => self.check(&create),
                    Err(pause) => break pause,
                }
                let left = STORE_INTERVAL.saturating_sub(since_first.elapsed());
                next = if left.is_zero() { Err(RecvTimeoutError::Timeout) } else { self.waiting.recv_timeout(left) };
            };
            is_stored = self.store();
            if pause == RecvTimeoutError::Disconnected {
                return;
            }
        }
    }

    fn check(&self, create: &ForwardedCreate) {
        let ForwardedCreate { caller, direction, body, legacy } = create;
        let (rules, merchant) = (caller.rules(), caller.merchant());
        // Schemas are the operator's own: a defect that one of them hits must not end the checks.
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let verdict = verdict(rules, merchant, caller.api_key(), *direction, body);
            let sample = sample(rules, merchant, *direction, body);
            (verdict, sample)
        }));
        let Ok((verdict, sample)) = checked else {
            tracing::error!(merchant = merchant.id.as_str(), "the check of a create panicked");
            return not_checked(&mut locked(&self.counter), create, &self.deps);
        };
        self.deps.metrics.homes().shadow_check(class(&verdict, *legacy));
        let of_rules = merchant.rules_fingerprint;
        if !locked(&self.counter).knows_members(&merchant.id, of_rules) {
            // Without the store, this process begins its own: rather a few names more than a check that waits.
            let stored =
                self.runtime.block_on(self.deps.store.check_counts(&merchant.id, of_rules)).unwrap_or_default();
            locked(&self.counter).learn_members(&merchant.id, of_rules, stored);
        }
        locked(&self.counter).record(&CheckedCreate {
            merchant: &merchant.id,
            rules: of_rules,
            direction: *direction,
            verdict: &verdict,
            legacy: *legacy,
            sample: &sample,
            at: self.deps.clock.now(),
        });
    }

    /// Stores the counts, first those that the store could not take before. Returns whether all are stored.
    fn store(&mut self) -> bool {
        loop {
            if self.unstored.is_empty() {
                self.unstored = locked(&self.counter).drain();
            }
            if self.unstored.is_empty() {
                return true;
            }
            let stored = self.deps.store.add_check_counts(self.unstored.clone(), self.deps.clock.now());
            if let Err(error) = self.runtime.block_on(stored) {
                if let Some(left_out) = self.failures.due(()) {
                    tracing::warn!(%error, left_out, "counts of shadow checks cannot be stored yet");
                }
                return false;
            }
            self.unstored.clear();
        }
    }
}

fn not_checked(counter: &mut Counter, create: &ForwardedCreate, deps: &Deps) {
    let merchant = create.caller.merchant();
    deps.metrics.homes().shadow_check("not_checked");
    counter.not_checked(&merchant.id, merchant.rules_fingerprint, "", create.direction, deps.clock.now());
}

/// Returns the class of a check in metrics.
const fn class(verdict: &CreateVerdict, legacy: LegacyOutcome) -> &'static str {
    match (legacy, &verdict.refusal) {
        (LegacyOutcome::Unclear, _) => "not_compared",
        (LegacyOutcome::Accepted, Some(_)) => "blocker",
        (LegacyOutcome::Refused, None) => "widening",
        (LegacyOutcome::Accepted, None) => "both_accept",
        (LegacyOutcome::Refused, Some(_)) => "both_refuse",
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
