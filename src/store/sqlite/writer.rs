//! The writing thread: group commit.
//!
//! It takes the waiting commands, up to [`MAX_BATCH`], runs them in one transaction, commits, and only then answers
//! their callers. No command waits for others: an idle store commits a single command at once, and while the disk is
//! busy the next batch fills by itself. The writer only yields to threads that are ready to run: on a single core it
//! would otherwise commit the first command alone, and the others would wait for that.
//!
//! After a failed commit nothing is acknowledged until the file was reopened, the log was moved into it as far as no other
//! process reads it, and commits as large as operations succeeded (contract section 11). That is tried again whenever there
//! is work, so that the process recovers when the disk does. A commit to files that were moved or deleted counts as failed.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::{self, Checkpoint, Checkpointer, ConnectionRole, LogLength, StoreFile};
use super::failures::{self, FailureLog};
use super::schema;
use crate::store::StoreError;
use crate::store::answers::answer_all;
use crate::telemetry::{Metrics, Stopwatch};

/// The most commands in one commit.
const MAX_BATCH: usize = 256;

/// The most waiting commands; one more is refused at once. Above the default limit of connections.
const QUEUE: usize = 16 * 1024;

/// A batch is committed after this time, even while commands keep arriving: about four writes to a disk.
const MAX_FILL_TIME: Duration = Duration::from_millis(1);

/// The writer itself restarts the log at this many pages (64 MiB), which only continuous load reaches.
const LOG_BOUND_PAGES: i64 = 8 * 1024;

/// How long restarting the log may wait for readers.
const RESTART_WAIT: Duration = Duration::from_millis(50);

/// The time between attempts to reopen a failed file.
const REOPEN_INTERVAL: Duration = Duration::from_millis(100);

struct Task<F, T> {
    statements: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> WriterCommand for Task<F, T>
where
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.statements)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may have gone; the commit is done.
        let _ = reply.send(outcome.and_then(|()| result.ok_or_else(closed)));
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

/// The process that maintains the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogOwner {
    /// This process: it serves the store, or keeps others from serving it.
    ThisProcess,
    /// Another process may; it must never wait for this one.
    AnotherProcess,
}

/// The handle of the writer's thread.
pub(super) struct Writer {
    queue: RwLock<Option<SyncSender<Waiting>>>,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

impl Writer {
    /// Starts the thread on an open connection.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(
        mut connection: Connection,
        anchor: Connection,
        source: Arc<StoreFile>,
        checkpointer: Checkpointer,
        metrics: Arc<Metrics>,
        log: LogOwner,
    ) -> std::io::Result<Self> {
        let log_length = LogLength::default();
        log_length.follow(&mut connection).map_err(std::io::Error::other)?;
        metrics.store().log_bytes(source.log_bytes());
        let (queue, commands) = sync_channel(QUEUE);
        let (ended, end) = oneshot::channel();
        let writing = Writing {
            commands,
            source,
            metrics,
            checkpointer,
            log,
            log_length,
            state: State::Open(connection),
            log_bound: LOG_BOUND_PAGES,
            reports: FailureLog::default(),
            _anchor: anchor,
        };
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            writing.run();
            let _ = ended.send(());
        })?;
        Ok(Self { queue: RwLock::new(Some(queue)), thread: Mutex::new(Some((thread, end))) })
    }

    /// Runs statements in the next batch; resolves after its commit.
    ///
    /// # Errors
    /// The queue is full, the store is closed, the statements or the commit failed: nothing was stored.
    pub(super) fn submit<T, F>(&self, statements: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        // Sent before waiting: commands are large, and a waiting caller need not hold them.
        let queued = self.enqueue(Box::new(Task { statements, result: None, reply }));
        async move {
            queued?;
            result.await.unwrap_or_else(|_| Err(closed()))
        }
    }

    fn enqueue(&self, command: Box<dyn WriterCommand>) -> Result<(), StoreError> {
        let waiting = Waiting { command, runtime: Handle::try_current().ok() };
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        match queue.as_ref().ok_or_else(closed)?.try_send(waiting) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(StoreError::Unavailable("too many commands are waiting".to_owned())),
            Err(TrySendError::Disconnected(_)) => Err(closed()),
        }
    }

    /// Refuses further commands, finishes the waiting ones, and ends the thread.
    pub(super) async fn close(&self) {
        self.refuse_commands();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((thread, end)) = thread {
            let _ = end.await;
            let _ = thread.join();
        }
    }

    fn refuse_commands(&self) {
        *self.queue.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Like [`Writer::close`], but blocks the dropping thread.
impl Drop for Writer {
    fn drop(&mut self) {
        self.refuse_commands();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((thread, _)) = thread {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Writing {
    commands: Receiver<Waiting>,
    source: Arc<StoreFile>,
    metrics: Arc<Metrics>,
    checkpointer: Checkpointer,
    log: LogOwner,
    log_length: LogLength,
    state: State,
    /// The log is restarted when it is longer than this, in pages.
    log_bound: i64,
    reports: FailureLog,
    /// Never used, but always open: as long as one connection is open, SQLite keeps its index of the log in memory,
    /// which lists only what was committed. If the log were read again from the file, it could contain what a failed
    /// fsync left in the kernel's cache. Declared last, it is also the last to close.
    _anchor: Connection,
}

enum State {
    Open(Connection),
    /// A commit failed; the file has to be reopened, not before this time.
    Failed {
        retry_at: Instant,
    },
}

/// What stopped a batch.
enum Stopped {
    /// A command, by its position; the others can be committed.
    Command(usize, rusqlite::Error),
    /// The transaction.
    Batch(rusqlite::Error),
}

impl Writing {
    fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        // Ends when the store was closed and all waiting commands are done.
        while let Ok(first) = self.commands.recv() {
            batch.push(first);
            self.fill(&mut batch);
            self.commit(&mut batch);
        }
        self.checkpointer.stop();
        if let (State::Open(connection), LogOwner::ThisProcess) = (&self.state, self.log)
            && let Err(error) = connection::checkpoint(connection, Checkpoint::Truncate)
        {
            tracing::warn!(%error, "the store's log stays for the next start");
        }
    }

    /// Yields while other threads keep adding commands, so that they share this commit. On the same core they would
    /// otherwise wait for the disk twice. Where no thread waits for this core, it takes no time.
    fn fill(&self, batch: &mut Vec<Waiting>) {
        let watch = Stopwatch::start();
        loop {
            std::thread::yield_now();
            let before = batch.len();
            batch.extend(self.commands.try_iter().take(MAX_BATCH - before));
            if batch.len() == before || batch.len() == MAX_BATCH || watch.elapsed() > MAX_FILL_TIME {
                return;
            }
        }
    }

    /// Commits what can be committed of the batch, answers the callers and leaves the batch empty.
    fn commit(&mut self, batch: &mut Vec<Waiting>) {
        if let Err(error) = self.reopen_if_failed() {
            return answer(batch, &Err(error));
        }
        while !batch.is_empty() {
            let State::Open(connection) = &self.state else { break };
            match transact(connection, batch, &self.source, self.log, &self.metrics) {
                Ok(()) => {
                    answer(batch, &Ok(()));
                    self.checkpoint_if_long();
                }
                Err(Stopped::Command(place, error)) => {
                    batch.remove(place).command.answer(Err(failures::store_error(&error)));
                }
                Err(Stopped::Batch(error)) => {
                    self.fail(&error);
                    answer(batch, &Err(failures::store_error(&error)));
                }
            }
        }
    }

    fn fail(&mut self, error: &rusqlite::Error) {
        self.metrics.store().commit_failed();
        self.reports.failed(error, "a commit failed; nothing of it was acknowledged");
        let usable = matches!(&self.state, State::Open(connection) if connection.is_autocommit());
        if !usable || !failures::is_busy(error) {
            self.state = State::Failed { retry_at: Instant::now() };
        }
    }

    /// Reopens the file after a failure.
    fn reopen_if_failed(&mut self) -> Result<(), StoreError> {
        if self.checkpointer.take_failure() && matches!(self.state, State::Open(_)) {
            self.state = State::Failed { retry_at: Instant::now() };
        }
        let State::Failed { retry_at } = self.state else { return Ok(()) };
        if Instant::now() < retry_at {
            return Err(StoreError::Unavailable("a commit failed, and the store is being opened anew".to_owned()));
        }
        match reopen(&self.source, &self.log_length) {
            Ok(connection) => {
                self.reports.recovered();
                self.state = State::Open(connection);
                Ok(())
            }
            Err(error) => {
                self.metrics.store().commit_failed();
                self.reports.failed(&error, "the store cannot be opened anew yet");
                self.state = State::Failed { retry_at: Instant::now() + REOPEN_INTERVAL };
                Err(failures::store_error(&error))
            }
        }
    }

    /// Wakes the checkpointer when there is enough for it; bounds the log when it cannot keep up, unless another process
    /// reads it. The callers were answered before.
    fn checkpoint_if_long(&mut self) {
        let Some(pages) = self.log_length.after_commit() else { return };
        self.checkpointer.log_is(pages);
        if self.log == LogOwner::AnotherProcess {
            return;
        }
        self.metrics.store().log_bytes(self.source.log_bytes());
        if self.checkpointer.is_nearly_done(pages) {
            // A few pages: the next commit restarts the log, unless a reader needs it.
            let State::Open(connection) = &self.state else { return };
            if let Err(error) = connection::checkpoint(connection, Checkpoint::Passive) {
                self.checkpoint_failed(&error);
            }
            return;
        }
        if pages <= self.log_bound {
            if pages < LOG_BOUND_PAGES && std::mem::replace(&mut self.log_bound, LOG_BOUND_PAGES) > LOG_BOUND_PAGES {
                tracing::info!("the store's log was restarted: it does not grow any more");
            }
            return;
        }
        // Commits would wait until all was moved that a long reader held back. The checkpointer does that first.
        if self.log_bound > LOG_BOUND_PAGES && self.checkpointer.unmoved(pages) > LOG_BOUND_PAGES {
            return self.log_is_held(pages);
        }
        let State::Open(connection) = &mut self.state else { return };
        match restart_log(connection, Checkpoint::Restart) {
            Ok(log) if log.busy && log.pages >= 0 => self.log_is_held(log.pages),
            // The next commit restarts it; or the checkpointer is running, for which SQLite does not wait: it tries again.
            Ok(_) => {}
            Err(error) => self.checkpoint_failed(&error),
        }
    }

    /// Logs that a reader takes long. The log is restarted when as much again was written, at the earliest.
    fn log_is_held(&mut self, pages: i64) {
        self.log_bound = pages + LOG_BOUND_PAGES;
        let bytes = self.source.log_bytes();
        tracing::warn!(bytes, "the store's log cannot be restarted while the store is being read: it grows");
    }

    /// Logs that the log stays as it is, with everything that was acknowledged.
    fn checkpoint_failed(&mut self, error: &rusqlite::Error) {
        self.reports.failed(error, "the store's log could not be moved into its file");
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            self.state = State::Failed { retry_at: Instant::now() };
        }
    }
}

/// Runs a batch and commits it. After an error nothing of it is stored.
fn transact(
    connection: &Connection,
    batch: &mut [Waiting],
    source: &StoreFile,
    log: LogOwner,
    metrics: &Metrics,
) -> Result<(), Stopped> {
    let watch = Stopwatch::start();
    let changes = connection.total_changes();
    let result = run(connection, batch, source, log);
    if result.is_err() && !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
        // The connection is unusable; the caller must not continue with it in any case.
        return result.map_err(|stopped| match stopped {
            Stopped::Command(_, error) | Stopped::Batch(error) => Stopped::Batch(error),
        });
    }
    if result.is_ok() && connection.total_changes() != changes {
        metrics.store().commit(batch.len(), watch.elapsed());
    }
    result
}

fn run(connection: &Connection, batch: &mut [Waiting], source: &StoreFile, log: LogOwner) -> Result<(), Stopped> {
    before_batch(connection, source).map_err(Stopped::Batch)?;
    execute(connection, "BEGIN IMMEDIATE").map_err(Stopped::Batch)?;
    // A gateway has the store's lock, for which `store finish-upgrade` waits; a tool has not.
    if log == LogOwner::AnotherProcess {
        schema::refuse_locked_out(connection).map_err(Stopped::Batch)?;
    }
    for (place, waiting) in batch.iter_mut().enumerate() {
        waiting.command.run(connection).map_err(|error| {
            if failures::is_own_fault(&error) { Stopped::Command(place, error) } else { Stopped::Batch(error) }
        })?;
    }
    before_commit(source).map_err(Stopped::Batch)?;
    execute(connection, "COMMIT").map_err(Stopped::Batch)?;
    // After the commit: if files were deleted before it was done, the commit is lost with them.
    source.in_place().map_err(Stopped::Batch)
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// Opens a connection that has proved itself: everything committed before is on disk, in the file or in
/// the log, and commits as large as operations succeeded. What a failed fsync lost may exist only in the kernel's cache, so what that shows is
/// written once more.
///
/// A process that reads the log for hours does not prevent it. What it needs of the log stays there: each commit in it was
/// confirmed by an fsync of its own, and the failed one is overwritten by the proof, from the page on where they meet.
fn reopen(source: &StoreFile, log_length: &LogLength) -> rusqlite::Result<Connection> {
    let mut connection = source.connect(ConnectionRole::Writer)?;
    log_length.follow(&mut connection)?;
    // Negative: another checkpoint was running.
    if restart_log(&mut connection, Checkpoint::Truncate)?.pages < 0 {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            Some("the store's log is being moved".to_owned()),
        ));
    }
    before_batch(&connection, source)?;
    before_commit(source)?;
    connection::prove_room(&connection)?;
    source.in_place()?;
    Ok(connection)
}

fn restart_log(connection: &mut Connection, how: Checkpoint) -> rusqlite::Result<connection::Log> {
    connection.busy_timeout(RESTART_WAIT)?;
    let log = connection::checkpoint(connection, how);
    connection.busy_handler(Some(connection::wait_for_lock))?;
    log
}

#[cfg(test)]
fn before_batch(connection: &Connection, source: &StoreFile) -> rusqlite::Result<()> {
    source.faults.before_batch(connection)
}

#[cfg(test)]
fn before_commit(source: &StoreFile) -> rusqlite::Result<()> {
    source.faults.before_commit()
}

/// Where tests inject failures.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "its twin in tests fails")]
fn before_batch(_: &Connection, _: &StoreFile) -> rusqlite::Result<()> {
    Ok(())
}

/// Where tests inject failures.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "its twin in tests fails")]
fn before_commit(_: &StoreFile) -> rusqlite::Result<()> {
    Ok(())
}

/// A command: statements, and a caller that waits for their result.
trait WriterCommand: Send {
    /// Runs the statements within the batch's transaction. Runs again when another command's error rolled the batch back.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Returns the outcome of the commit to the caller.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A command in the queue.
struct Waiting {
    command: Box<dyn WriterCommand>,
    /// The runtime of the caller, if it submitted the command in one.
    runtime: Option<Handle>,
}

/// Returns the outcome of a batch to all its callers, and leaves the batch empty.
fn answer(batch: &mut Vec<Waiting>, outcome: &Result<(), StoreError>) {
    let answers = batch.drain(..).map(|waiting| {
        let (command, outcome) = (waiting.command, outcome.clone());
        (waiting.runtime, move || command.answer(outcome))
    });
    answer_all(answers.collect());
}
