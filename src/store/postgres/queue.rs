//! Commands that wait for their batch. Callers add them directly; the thread is woken only when it waits for them, and
//! while a batch is in flight it does not.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::errors::{PgError, closed};
use super::permits::LIMIT;
use crate::domain::Fingerprint;
use crate::store::answers::answer_all;
use crate::store::homes::Home;
use crate::store::rows::operation::{NewRow, StoredRow};
use crate::store::{InsertOutcome, StoreError};

/// The most commands in one statement.
const MAX_BATCH: usize = 128;

/// The longest that a batch waits for a crowd.
const GATHERING: Duration = Duration::from_millis(1);

/// This many commands are a crowd.
const CROWD: usize = 16;

/// The queues of a node.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) creates: Queue<NewRow, InsertOutcome<StoredRow>>,
    pub(super) claims: Queue<NewClaim, Home>,
}

/// Claims the home of an order, unless it has one; the result is its home.
pub(super) struct NewClaim {
    pub(super) order: Fingerprint,
    pub(super) home: Home,
}

/// A command, and the caller that waits for its result.
pub(super) struct Waiting<C, R> {
    pub(super) command: C,
    reply: oneshot::Sender<Result<R, StoreError>>,
    /// The runtime of the caller, if it added the command in one.
    runtime: Option<Handle>,
    deadline: Instant,
    /// The command's share of the work that the thread accepts.
    _room: OwnedSemaphorePermit,
}

impl<C, R> Waiting<C, R> {
    /// Reports whether the caller has got an error, so that the command must not be stored any more. That the caller has
    /// gone is no reason: its command was accepted.
    pub(super) fn has_expired(&self) -> bool {
        self.deadline <= Instant::now()
    }
}

/// Returns the outcomes of commands to their callers, some of which may have gone.
pub(super) fn answer<C, R: Send + 'static>(outcomes: impl IntoIterator<Item = (Waiting<C, R>, Result<R, StoreError>)>) {
    let answers = outcomes.into_iter().map(|(Waiting { reply, runtime, .. }, outcome)| {
        let send = move || drop(reply.send(outcome));
        (runtime, send)
    });
    answer_all(answers.collect());
}

/// Commands of one kind that wait, in the order in which they came.
pub(super) struct Queue<C, R> {
    state: Mutex<State<C, R>>,
    /// Notified when as many commands wait as the thread waits for.
    enough: Notify,
}

struct State<C, R> {
    waiting: VecDeque<Waiting<C, R>>,
    /// How many commands the thread waits for; zero: a batch is in flight.
    awaited: usize,
}

impl<C, R> Default for Queue<C, R> {
    fn default() -> Self {
        let state = State { waiting: VecDeque::new(), awaited: 0 };
        Self { state: Mutex::new(state), enough: Notify::new() }
    }
}

impl<C, R> Queue<C, R> {
    /// Adds a command at once; the returned future waits for its outcome, for at most [`LIMIT`].
    ///
    /// # Errors
    /// The command failed, or the database does not respond.
    pub(super) fn push(
        &self,
        command: C,
        room: OwnedSemaphorePermit,
    ) -> impl Future<Output = Result<R, StoreError>> + use<C, R> {
        let (reply, outcome) = oneshot::channel();
        let deadline = Instant::now() + LIMIT;
        let waiting = Waiting { command, reply, runtime: Handle::try_current().ok(), deadline, _room: room };
        let mut state = self.state();
        state.waiting.push_back(waiting);
        let is_enough = state.waiting.len() == state.awaited;
        drop(state);
        if is_enough {
            self.enough.notify_one();
        }
        async move {
            match timeout_at(deadline, outcome).await {
                Ok(outcome) => outcome.unwrap_or_else(|_| Err(closed())),
                Err(_) => Err(PgError::Silence.reported()),
            }
        }
    }

    /// Takes the next batch as soon as there is one. After a crowd of `last` commands, whose callers send their next
    /// ones now, it waits a moment until as many are there again.
    pub(super) async fn next_batch(&self, last: usize) -> Vec<Waiting<C, R>> {
        loop {
            let waiting = self.state().waiting.len();
            let crowd = (last + waiting).min(MAX_BATCH);
            if crowd >= CROWD && waiting < crowd {
                let _ = timeout(GATHERING, self.wait_for(crowd)).await;
            }
            self.wait_for(1).await;
            // Callers that are ready to run go first: their commands fill this batch.
            std::thread::yield_now();
            let mut state = self.state();
            state.waiting.retain(|waiting| !waiting.has_expired());
            let count = state.waiting.len().min(MAX_BATCH);
            if count > 0 {
                return state.waiting.drain(..count).collect();
            }
        }
    }

    /// Waits until as many commands are waiting.
    async fn wait_for(&self, count: usize) {
        while !self.has(count) {
            self.enough.notified().await;
        }
    }

    /// Reports whether as many commands are waiting; else the next one that makes them as many notifies.
    fn has(&self, count: usize) -> bool {
        let mut state = self.state();
        let has = state.waiting.len() >= count;
        state.awaited = if has { 0 } else { count };
        has
    }

    fn state(&self) -> MutexGuard<'_, State<C, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio::sync::Semaphore;

    use super::*;

    /// Counts how often a thread is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn room() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    fn commands(batch: &[Waiting<u32, u32>]) -> Vec<u32> {
        batch.iter().map(|waiting| waiting.command).collect()
    }

    #[test]
    fn the_thread_is_woken_once_and_not_while_a_batch_is_in_flight() {
        let queue = Queue::<u32, u32>::default();
        let push = |command| drop(queue.push(command, room()));
        let count = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut next = pin!(queue.next_batch(0));
        assert!(next.as_mut().poll(&mut context).is_pending());
        (0..10).for_each(push);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(in_flight) = next.as_mut().poll(&mut context) else { panic!("nothing waits") };
        assert_eq!(commands(&in_flight), (0..10).collect::<Vec<_>>());
        (10..200).for_each(push);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        for expected in [10..138, 138..200] {
            let Poll::Ready(batch) = pin!(queue.next_batch(0)).poll(&mut context) else { panic!("nothing waits") };
            assert_eq!(commands(&batch), expected.collect::<Vec<_>>());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_batch_waits_a_moment_for_the_last_crowd() {
        let queue = Queue::<u32, u32>::default();
        let push = |command| drop(queue.push(command, room()));
        let began = Instant::now();
        let callers = async {
            tokio::task::yield_now().await;
            (0..20).for_each(push);
        };
        let (batch, ()) = tokio::join!(queue.next_batch(20), callers);
        assert_eq!((batch.len(), began.elapsed()), (20, Duration::ZERO));
        push(20);
        assert_eq!(queue.next_batch(20).await.len(), 1);
        assert!(began.elapsed() >= GATHERING);
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_expired_is_answered_and_not_taken() {
        let queue = Queue::<u32, u32>::default();
        let first = queue.push(1, room());
        tokio::time::advance(LIMIT / 2).await;
        let second = queue.push(2, room());
        tokio::time::advance(LIMIT / 2).await;
        let sending = async {
            let batch = queue.next_batch(0).await;
            assert_eq!(commands(&batch), [2]);
            answer(batch.into_iter().map(|waiting| (waiting, Ok(7))));
        };
        let (first, second, ()) = tokio::join!(first, second, sending);
        assert!(matches!(first, Err(StoreError::Unavailable(_))), "{first:?}");
        assert_eq!(second.unwrap(), 7);
    }
}
