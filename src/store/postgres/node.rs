//! The thread that talks to the database. All connections live on it, with a runtime of their own, so that none of them
//! depends on a listener's threads. A caller sends work and waits for its result; if the caller goes away, the work
//! still completes.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::IsolationLevel;

use super::connections::{Connections, PooledClient};
use super::errors::{PgError, RetryAction, closed};
use super::permits::{ConcurrencyLimits, LIMIT, MAX_RETRY_TIME, RESERVE};
use super::presence::OldestFormat;
use super::queue::{Queue, Queues};
use super::transaction::{Executor, PgTransaction, get};
use crate::backoff;
use crate::clock::{Clock, Random};
use crate::store::StoreError;
use crate::telemetry::{Metrics, Stopwatch};

/// The most work items running or waiting; one more is refused at once.
const MOST_WORK: usize = 16 * 1024;

/// How often a transaction in conflict with others is tried.
const TRIES: u32 = 12;

/// The first and the longest wait before a transaction is retried.
const FIRST_WAIT: Duration = Duration::from_millis(2);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How long a statement of a list may take, including a wait for a lock on the whole table. It is read along an index, in its
/// order: with a bitmap, the planner would gather and sort all that match for the few rows of a page.
pub(super) const LIST: &str =
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = '2s'; SET LOCAL enable_bitmapscan = off";

type Work = Box<dyn FnOnce(Rc<PgNode>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The state of the thread.
pub(super) struct PgNode {
    connections: Connections,
    random: Arc<dyn Random>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) queues: Arc<Queues>,
    pub(super) limits: ConcurrencyLimits,
    pub(super) clock: Offset,
    pub(super) oldest: Arc<OldestFormat>,
    /// How often a server was lost: its successor may lack recent rows.
    losses: Arc<AtomicU64>,
    /// Whether the database was unreachable the last time: callers then wait no longer than one attempt takes, so that
    /// requests do not pile up until it is back.
    away: Cell<bool>,
}

impl PgNode {
    /// Reports whether the store was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.connections.pool.is_closed()
    }

    /// Returns a connection for work that is not retried. A single statement is a transaction by itself.
    pub(super) async fn client(&self) -> Result<PooledClient<'_>, PgError> {
        self.client_before(Instant::now() + LIMIT).await
    }

    /// Returns a connection for work that has to be done at `limit`.
    pub(super) async fn client_before(&self, limit: Instant) -> Result<PooledClient<'_>, PgError> {
        self.connections.get(limit - RESERVE, self.away.get()).await
    }

    /// Runs a transaction, and retries it after a conflict or a lost connection: `work` may run more than once, and
    /// then finds what an earlier run committed without knowing.
    pub(super) async fn transact<T>(
        &self,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        self.transact_or_leave(Instant::now(), async |tx| Ok(Ok(work(tx).await?))).await
    }

    /// Like [`PgNode::transact`], for work that may roll back and still return a value; the caller has been waiting
    /// since `since`.
    pub(super) async fn transact_or_leave<T>(
        &self,
        since: Instant,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<Result<T, T>, PgError>,
    ) -> Result<T, StoreError> {
        let once = async |limit| {
            let mut client = self.client_before(limit).await?;
            let (transaction, begun) = (client.transaction().await?, Stopwatch::start());
            let tx = PgTransaction { executor: Executor::Transaction(&transaction), ahead: self.clock.wrong_by() };
            match work(&tx).await? {
                Ok(done) => {
                    transaction.commit().await?;
                    self.metrics.store().commit(1, begun.elapsed());
                    Ok(done)
                }
                Err(left) => {
                    transaction.rollback().await?;
                    Ok(left)
                }
            }
        };
        self.retry_since(since, once).await
    }

    /// Runs statements on a connection, and retries them like [`PgNode::transact`].
    pub(super) async fn with_client<T>(
        &self,
        work: impl AsyncFn(&Object) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        let once = async |limit| {
            let client = self.client_before(limit).await?;
            work(&client).await
        };
        self.persist(once).await
    }

    /// Like [`PgNode::with_client`], for statements that both databases have in common.
    pub(super) async fn run<T>(
        &self,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        let ahead = self.clock.wrong_by();
        self.with_client(async |client| work(&PgTransaction { executor: Executor::Connection(client), ahead }).await)
            .await
    }

    /// Runs queries that see the store as of one moment, as [`LIST`] states.
    pub(super) async fn at_one_moment<T>(
        &self,
        read: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        self.persist(async |limit| {
            let mut client = self.client_before(limit).await?;
            let moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
            let transaction = moment.start().await?;
            transaction.batch_execute(LIST).await?;
            let found = read(&PgTransaction { executor: Executor::Transaction(&transaction), ahead: 0 }).await;
            let found = found.map_err(PgError::of_list)?;
            transaction.commit().await?;
            Ok(found)
        })
        .await
    }

    /// Retries work as long as that may help; `once` gets the moment at which it has to be done.
    async fn persist<T>(&self, once: impl AsyncFn(Instant) -> Result<T, PgError>) -> Result<T, StoreError> {
        self.retry_since(Instant::now(), once).await
    }

    /// Measures how far `machine` is ahead of the database's clock. `machine` may be another clock than the one that
    /// work uses: a test moves only that one.
    ///
    /// # Errors
    /// The database does not respond; the last measurement stays in force.
    pub(super) async fn measure_clock(&self, machine: &dyn Clock) -> Result<(), StoreError> {
        let (before, there, after) = self
            .with_client(async |client| {
                let statement =
                    client.prepare_cached("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").await?;
                let before = machine.now().0;
                let there: i64 = get(&client.query_one(&statement, &[]).await?, 0)?;
                Ok::<_, PgError>((before, there, machine.now().0))
            })
            .await?;
        if (0..=MAX_MEASUREMENT).contains(&(after - before)) {
            self.clock.set(before + (after - before) / 2 - there);
        }
        Ok(())
    }

    async fn retry_since<T>(
        &self,
        began: Instant,
        once: impl AsyncFn(Instant) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        for tried in 1.. {
            let fault = match timeout_at(began + LIMIT, once(began + LIMIT)).await {
                Ok(Ok(done)) => {
                    self.away.set(false);
                    return Ok(done);
                }
                Ok(Err(fault)) => fault,
                Err(_) => PgError::Silence,
            };
            let retry_action = fault.retry_action();
            if retry_action == RetryAction::Elsewhere {
                // The other connections most likely lead to the same server, which is gone or read-only; so does the
                // one whose attempt was abandoned, which is back in the pool.
                self.connections.pool.retain(|_, _| false);
                self.losses.fetch_add(1, Ordering::AcqRel);
            }
            let wait = backoff::wait(FIRST_WAIT, LONGEST_WAIT, tried - 1, None, self.random.number());
            let impatient = retry_action == RetryAction::Elsewhere && self.away.get();
            if retry_action == RetryAction::None
                || impatient
                || tried == TRIES
                || began.elapsed() + wait > MAX_RETRY_TIME
            {
                if retry_action == RetryAction::Elsewhere {
                    self.away.set(true);
                }
                return Err(fault.reported());
            }
            tokio::time::sleep(wait).await;
        }
        Err(closed())
    }
}

/// The handle of the thread.
pub(super) struct Thread {
    work: mpsc::UnboundedSender<Work>,
    queues: Arc<Queues>,
    room: Arc<Semaphore>,
    closed: AtomicBool,
    pool: Pool,
    losses: Arc<AtomicU64>,
    oldest: Arc<OldestFormat>,
}

impl Thread {
    /// Starts the thread, which ends when its handle is dropped.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(
        pool: Pool,
        oldest: Arc<OldestFormat>,
        random: Arc<dyn Random>,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let (work, mut received) = mpsc::unbounded_channel::<Work>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (connections, losses) = (pool.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&losses);
        let known = Arc::clone(&oldest);
        let queues = Arc::<Queues>::default();
        let filled = Arc::clone(&queues);
        std::thread::Builder::new().name("store-postgres".to_owned()).spawn(move || {
            let limits = ConcurrencyLimits::new(connections.status().max_size);
            let node = Rc::new(PgNode {
                connections: Connections::new(connections),
                random,
                metrics,
                queues: filled,
                limits,
                clock: Offset::default(),
                oldest: known,
                losses: counted,
                away: Cell::default(),
            });
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                while let Some(work) = received.recv().await {
                    tokio::task::spawn_local(work(Rc::clone(&node)));
                }
            });
        })?;
        let room = Arc::new(Semaphore::new(MOST_WORK));
        Ok(Self { work, queues, room, closed: AtomicBool::new(false), pool, losses, oldest })
    }

    /// Sends work at once; the returned future waits for its result.
    ///
    /// # Errors
    /// Too much work is waiting, the store is closed, or the work failed.
    pub(super) fn run<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<PgNode>) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let sent = self.send(async move |node| {
            // The caller may have gone; the work is done.
            let _ = reply.send(work(node).await);
        });
        answer(sent, result)
    }

    /// Adds a command to a queue at once; the returned future waits for the outcome of its batch.
    ///
    /// # Errors
    /// Too much work is waiting, the store is closed, the command failed, or the database does not respond.
    pub(super) fn enqueue<C, R>(
        &self,
        queue: fn(&Queues) -> &Queue<C, R>,
        command: C,
    ) -> impl Future<Output = Result<R, StoreError>> + Send + use<C, R>
    where
        C: Send,
        R: Send,
    {
        let queued = self.take_room().map(|room| queue(&self.queues).push(command, room));
        async move { queued?.await }
    }

    /// Like [`Thread::run`], but the work is cancelled when nothing waits for its result.
    ///
    /// # Errors
    /// As [`Thread::run`].
    pub(super) fn run_while_awaited<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<PgNode>) -> Result<T, StoreError> + Send + 'static,
    {
        let (mut reply, result) = oneshot::channel();
        let sent = self.send(async move |node| {
            let done = tokio::select! {
                done = work(node) => done,
                () = reply.closed() => return,
            };
            let _ = reply.send(done);
        });
        answer(sent, result)
    }

    /// Sends work that delivers its result itself.
    ///
    /// # Errors
    /// Too much work is waiting, or the store is closed.
    pub(super) fn send(&self, work: impl AsyncFnOnce(Rc<PgNode>) + Send + 'static) -> Result<(), StoreError> {
        let room = self.take_room()?;
        let boxed: Work = Box::new(move |node| {
            Box::pin(async move {
                work(node).await;
                drop(room);
            })
        });
        self.work.send(boxed).map_err(|_| closed())
    }

    fn take_room(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        let room = Arc::clone(&self.room).try_acquire_owned();
        room.map_err(|_| StoreError::Unavailable("too many commands are waiting".to_owned()))
    }

    /// Returns how often a server was lost.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Returns the oldest format of the store, if a connection was refused because this release is locked out.
    pub(super) fn locked_out(&self) -> Option<u32> {
        self.oldest.locked_out()
    }

    /// Refuses further work, completes what was accepted, and closes the connections.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let all = u32::try_from(MOST_WORK).unwrap_or(u32::MAX);
        if let Ok(all) = self.room.acquire_many(all).await {
            all.forget();
        }
        self.room.close();
        self.pool.close();
    }
}

/// Waits for the result of work, if it could be sent.
async fn answer<T>(
    sent: Result<(), StoreError>,
    result: oneshot::Receiver<Result<T, StoreError>>,
) -> Result<T, StoreError> {
    sent?;
    result.await.unwrap_or_else(|_| Err(closed()))
}

/// A clock that is off by more milliseconds than this is wrong. Well-kept clocks differ by a few. With a smaller
/// offset, leased work may be claimed twice, which is idempotent, and nothing is hidden or given up early.
const MAX_CLOCK_OFFSET: i64 = 30_000;

/// A measurement that took longer, in milliseconds, is discarded.
pub(super) const MAX_MEASUREMENT: i64 = 2_000;

/// How far this machine's clock is ahead of the database's, which all nodes share, as last measured, in milliseconds. A
/// node with a wrong clock would claim leased work, hide work for as long as the clock is ahead, or give up callbacks
/// early; it leaves the queues to the others.
#[derive(Debug, Default)]
pub(super) struct Offset(Cell<i64>);

impl Offset {
    /// Checks that the clock is right.
    ///
    /// # Errors
    /// The clock is wrong.
    pub(super) fn require_right(&self) -> Result<(), StoreError> {
        let ahead = self.0.get();
        if ahead.abs() <= MAX_CLOCK_OFFSET {
            return Ok(());
        }
        let (seconds, which) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
        Err(StoreError::Unavailable(format!(
            "the clock of this machine is {seconds} s {which} the database's: queues are left to other gateways"
        )))
    }

    /// Returns by how many milliseconds a wrong clock is ahead; 0 for a right one. Tasks that this node queues are due
    /// earlier by as much, so that the others need not wait for its clock.
    pub(super) fn wrong_by(&self) -> i64 {
        if self.require_right().is_ok() { 0 } else { self.0.get() }
    }

    /// Records a measurement.
    pub(super) fn set(&self, ahead: i64) {
        self.0.set(ahead);
    }
}
