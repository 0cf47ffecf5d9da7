//! Connections to the file: for the writer, a pool for lookups, and the thread that moves the write-ahead log into the file,
//! so that commits do not wait for it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::failures;
use crate::store::StoreError;
use crate::telemetry::{LogThrottle, Stopwatch};

/// How often a statement checks whether another process (the gateway, the command line) still holds a lock.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// How often it checks in all: for about two seconds.
const LOOKS: i32 = 2000;

/// The size that [`prove_room`] writes: some of the largest operations (a request is 64 KiB at most, unless the rules
/// allow more).
const PROOF_BYTES: u32 = 256 * 1024;

/// The size of a new store's pages.
const PAGE_BYTES: u32 = 8 * 1024;

/// What the log's file is cut to when the log is restarted: only a long reader makes it longer.
const LOG_FILE_BYTES: u32 = 64 * 1024 * 1024;

/// The cache of a connection.
const CACHE_KIB: i32 = 4 * 1024;

/// Opens connections to the file.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    /// The file and its log, once they are known.
    files: OnceLock<[Pinned; 2]>,
    #[cfg(test)]
    pub(super) faults: Arc<failures::Faults>,
}

/// A path, and the file that was there when the store was opened.
#[derive(Debug)]
struct Pinned {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The size in bytes, when it was last checked.
    bytes: AtomicU64,
}

impl Pinned {
    fn at(path: PathBuf) -> io::Result<Self> {
        let found = fs::metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino(), bytes: AtomicU64::new(found.len()) })
    }

    fn is_in_place(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| {
            self.bytes.store(found.len(), Ordering::Relaxed);
            (found.dev(), found.ino()) == (self.device, self.inode)
        })
    }
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// Commits.
    Writer,
    /// Looks up rows; it cannot write.
    Reader,
    /// Moves the log into the file.
    Checkpointer,
}

impl StoreFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            files: OnceLock::new(),
            #[cfg(test)]
            faults: Arc::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records which files the store consists of. The log must exist: some connection has used it.
    ///
    /// # Errors
    /// The metadata of a file cannot be read.
    pub(super) fn pin(&self) -> io::Result<()> {
        // SQLite keeps the log beside the file itself, not beside a link to it.
        let mut log = OsString::from(fs::canonicalize(&self.path)?);
        log.push("-wal");
        let files = [Pinned::at(self.path.clone())?, Pinned::at(log.into())?];
        self.files.get_or_init(|| files);
        Ok(())
    }

    /// Fails if the file or its log is not the one that the store was opened with. What is written then would be lost
    /// at the next start, though every system call succeeds (contract section 11: never a false 200).
    pub(super) fn in_place(&self) -> rusqlite::Result<()> {
        match self.files.get() {
            Some(files) if !files.iter().all(Pinned::is_in_place) => Err(rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED),
                Some(format!(
                    "{}: the store's file or its log was removed or replaced under the process: \
                     put the same files back, or restart",
                    self.path.display()
                )),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the size of the log's file after the last commit.
    pub(super) fn log_bytes(&self) -> u64 {
        self.files.get().map_or(0, |[_, log]| log.bytes.load(Ordering::Relaxed))
    }

    /// Opens a connection. The file must exist and be the one that the store was opened with: a store that disappeared
    /// is never replaced by another.
    pub(super) fn connect(&self, role: ConnectionRole) -> rusqlite::Result<Connection> {
        self.in_place()?;
        let connection = self.connect_to_any(role)?;
        if self.files.get().is_some() {
            // The log is opened at the first use; only then is it certain which files these are.
            touch(&connection)?;
            self.in_place()?;
        }
        Ok(connection)
    }

    fn connect_to_any(&self, role: ConnectionRole) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_handler(Some(wait_for_lock))?;
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise a statement is compiled again at every use if its parameter might be the constant of a partial
        // index.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // Counts for a new store alone. A commit writes whole pages, and rows of a create lie close together.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "journal_size_limit", LOG_FILE_BYTES)?;
        // With many commits SQLite searches the whole cache for pages beyond the file's end (to put split pages in
        // order it numbers one like the page at 1 GiB). A large cache costs more than it saves, since the kernel caches
        // the pages too.
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "query_only", role == ConnectionRole::Reader)?;
        Ok(connection)
    }
}

/// Waits for another process, for a limited time. SQLite's own busy handler soon checks only every tenth of a second:
/// beside a process that commits without a pause it rarely finds the lock free.
pub(super) fn wait_for_lock(looked: i32) -> bool {
    std::thread::sleep(LOOK_INTERVAL);
    looked < LOOKS
}

/// How much a checkpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// What is possible without making anything wait.
    Passive,
    /// Everything; the next commit restarts the log.
    Restart,
    /// Everything, and the log is truncated.
    Truncate,
}

/// The state of the write-ahead log, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    /// Whether another connection prevented it.
    pub(super) busy: bool,
    /// The pages in the log; negative if another checkpoint was running.
    pub(super) pages: i64,
    /// Of these, the pages that are in the file; negative as before.
    pub(super) moved: i64,
}

/// Moves the log into the file. Ends the process if the disk does not confirm it: see [`failures::end_process_if`].
pub(super) fn checkpoint(connection: &Connection, how: Checkpoint) -> rusqlite::Result<Log> {
    let sql = match how {
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let read = |row: &rusqlite::Row<'_>| Ok(Log { busy: row.get(0)?, pages: row.get(1)?, moved: row.get(2)? });
    let log = connection.prepare_cached(sql)?.query_row([], read);
    log.inspect_err(|error| failures::end_process_if(connection, error))
}

/// Commits as much as the largest operations need, and frees it again: on a disk that is almost full, a probe of one
/// page still fits where no operation does.
pub(super) fn prove_room(connection: &Connection) -> rusqlite::Result<()> {
    // An earlier attempt may have left rows that could not be deleted.
    connection.execute("DELETE FROM probe_room", [])?;
    connection.execute("INSERT INTO probe_room (filler) VALUES (zeroblob(?1))", [PROOF_BYTES])?;
    connection.execute("DELETE FROM probe_room", []).map(drop)
}

/// Reads something, so that the connection opens the file and its log.
pub(super) fn touch(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count FROM probe WHERE id = 1", [], |_| Ok(()))
}

/// The most idle connections; more readers at once open and close their own.
const MAX_IDLE: usize = 16;

/// After this many steps of SQLite's virtual machine, well under a millisecond, the time of a lookup is checked.
const STEPS: i32 = 10_000;

/// A pool of idle connections for lookups; `None` after the store was closed.
///
/// A lookup runs on the thread of its caller: it takes microseconds, and handing it to another thread would cost more.
/// It never waits for the writer, and sees what was committed.
pub(super) struct Readers {
    source: Arc<StoreFile>,
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(source: Arc<StoreFile>) -> Self {
        Self { source, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Runs a lookup on a connection of its own.
    ///
    /// # Errors
    /// The store is closed, or the lookup failed.
    pub(super) fn read<T>(&self, lookup: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.take()?;
        let found = lookup(&connection);
        self.end(connection, found)
    }

    /// Runs a lookup that fails if it takes longer than `longest`.
    ///
    /// # Errors
    /// As [`Readers::read`].
    pub(super) fn read_within<T>(
        &self,
        longest: Duration,
        lookup: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let (mut connection, watch) = (self.take()?, Stopwatch::start());
        let too_long = move || watch.elapsed() >= longest;
        let found = connection.progress_handler(STEPS, Some(too_long)).and_then(|()| lookup(&connection));
        let unbounded = connection.progress_handler(0, None::<fn() -> bool>);
        self.end(connection, found.and_then(|found| unbounded.map(|()| found)))
    }

    /// Returns the connection to the pool, unless the lookup failed: the connection may be the cause.
    fn end<T>(&self, connection: Connection, found: rusqlite::Result<T>) -> Result<T, StoreError> {
        let found = found.map_err(|error| failures::store_error(&error))?;
        self.put_back(connection);
        Ok(found)
    }

    /// Runs a lookup that may take long on a blocking thread.
    ///
    /// # Errors
    /// As [`Readers::read`].
    pub(super) async fn read_aside<T: Send + 'static>(
        self: &Arc<Self>,
        lookup: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || readers.read(lookup));
        reading.await.unwrap_or_else(|_| Err(StoreError::Corrupt("a lookup came to no end".to_owned())))
    }

    /// Returns a connection for long use.
    ///
    /// # Errors
    /// The store is closed, or there is no connection.
    pub(super) fn lend(&self) -> Result<Connection, StoreError> {
        self.take()
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        self.source.path()
    }

    /// Closes all connections; later lookups are refused.
    pub(super) fn close(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = match &mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(idle) => idle.pop(),
            None => return Err(StoreError::Unavailable("the store is closed".to_owned())),
        };
        idle.map_or_else(
            || self.source.connect(ConnectionRole::Reader).map_err(|error| failures::store_error(&error)),
            Ok,
        )
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *idle {
            Some(idle) if idle.len() < MAX_IDLE => idle.push(connection),
            // Closing may access the disk, so it happens outside the lock.
            _ => {
                drop(idle);
                drop(connection);
            }
        }
    }
}

/// The checkpointer is woken after this many pages were written to the log (32 MiB). A page that many commits changed is moved
/// once in a pass, so fewer passes cost less, up to about this length; a start after a kill reads and moves the whole log.
const WAKING_PAGES: i64 = 4 * 1024;

/// What is left of the log after a pass, because it was written meanwhile, goes into another pass if it is more than
/// this; otherwise the writer moves it. That also flushes what the passes moved, since SQLite flushes with the last
/// page only: one commit in a thousand pages of the log waits for that.
const FEW_PAGES: i64 = 64;

/// The most passes in a row. Each moves what was written during the previous one.
const PASSES: usize = 4;

/// The checkpointer checks the log at least this often.
const INTERVAL: Duration = Duration::from_secs(3);

/// The writer's handle of the checkpointing thread.
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    shared: Arc<Shared>,
    /// The pages written to the log since the checkpointer was woken.
    new_pages: i64,
    thread: Option<JoinHandle<()>>,
}

/// The state that the two threads share.
#[derive(Debug, Default)]
struct Shared {
    failed: AtomicBool,
    /// The length of the log after the last commit, in pages.
    pages: AtomicI64,
    /// How much of the log a pass has moved that left little; zero if there was none since the writer last read this.
    moved: AtomicI64,
    /// How much of the log the last pass had moved, in pages.
    last_moved: AtomicI64,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(source: Arc<StoreFile>) -> io::Result<Self> {
        // One pending signal is as good as many.
        let (wake, signals) = sync_channel(1);
        let shared = Arc::<Shared>::default();
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&source, &signals, &its))?;
        Ok(Self { wake: Some(wake), shared, new_pages: 0, thread: Some(thread) })
    }

    /// Records the length of the log after a commit, in pages.
    pub(super) fn log_is(&mut self, pages: i64) {
        let before = self.shared.pages.swap(pages, Ordering::Relaxed);
        if pages < before {
            // A shorter log was restarted.
            self.new_pages += pages;
            self.shared.moved.store(0, Ordering::Relaxed);
            self.shared.last_moved.store(0, Ordering::Relaxed);
        } else {
            self.new_pages += pages - before;
        }
        if let (true, Some(wake)) = (self.new_pages >= WAKING_PAGES, &self.wake)
            && wake.try_send(()).is_ok()
        {
            self.new_pages = 0;
        }
    }

    /// Reports, once, whether all but a few pages of a log of this length were moved just now.
    pub(super) fn is_nearly_done(&self, pages: i64) -> bool {
        let moved = &self.shared.moved;
        let moved = if moved.load(Ordering::Relaxed) == 0 { 0 } else { moved.swap(0, Ordering::Relaxed) };
        moved > 0 && (moved..=moved + 2 * FEW_PAGES).contains(&pages)
    }

    /// Returns how many pages of a log of this length are still to be moved.
    pub(super) fn unmoved(&self, pages: i64) -> i64 {
        pages - self.shared.last_moved.load(Ordering::Relaxed)
    }

    /// Reports whether a checkpoint failed since the last call: a failed fsync, which the writer has to treat like one
    /// of its own.
    pub(super) fn take_failure(&self) -> bool {
        let failed = &self.shared.failed;
        failed.load(Ordering::Relaxed) && failed.swap(false, Ordering::AcqRel)
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The length of the log, as SQLite's hook reports it after each commit of a connection. Querying it would cost as much
/// as some creates.
#[derive(Debug, Clone, Default)]
pub(super) struct LogLength(Arc<AtomicI64>);

impl LogLength {
    /// Installs the hook on a connection.
    pub(super) fn follow(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let length = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            length.store(i64::from(pages), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Returns the length after the last commit, in pages; `None` if nothing was written since the last call.
    pub(super) fn after_commit(&self) -> Option<i64> {
        Some(self.0.swap(0, Ordering::Relaxed)).filter(|pages| *pages > 0)
    }
}

fn run(source: &StoreFile, signals: &Receiver<()>, shared: &Shared) {
    let mut connection: Option<Connection> = None;
    let lines = LogThrottle::new(failures::LOG_INTERVAL);
    while !matches!(signals.recv_timeout(INTERVAL), Err(RecvTimeoutError::Disconnected)) {
        if let Err(error) = passes(&mut connection, source, shared) {
            // The writer logs that the files are gone.
            if !failures::is_moved(&error) && lines.due(()).is_some() {
                tracing::warn!(%error, "the store's log could not be moved into its file");
            }
            connection = None;
            if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                shared.failed.store(true, Ordering::Release);
            }
        }
    }
}

/// Moves the log, and what is written meanwhile, until little is left.
fn passes(connection: &mut Option<Connection>, source: &StoreFile, shared: &Shared) -> rusqlite::Result<()> {
    for _ in 0..PASSES {
        let log = pass(connection, source)?;
        shared.last_moved.store(log.moved.max(0), Ordering::Relaxed);
        // Less than the whole log as it was: a reader needs the rest.
        if log.moved <= 0 || log.moved < log.pages {
            return Ok(());
        }
        let left = shared.pages.load(Ordering::Relaxed) - log.moved;
        if left <= FEW_PAGES {
            shared.moved.store(log.moved, Ordering::Relaxed);
            return Ok(());
        }
    }
    Ok(())
}

fn pass(connection: &mut Option<Connection>, source: &StoreFile) -> rusqlite::Result<Log> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(source.connect(ConnectionRole::Checkpointer)?),
    };
    checkpoint(connection, Checkpoint::Passive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_moves_a_few_pages_once() {
        let checkpointer = Checkpointer { wake: None, shared: Arc::default(), new_pages: 0, thread: None };
        let passed = |moved| checkpointer.shared.moved.store(moved, Ordering::Relaxed);
        assert!(!checkpointer.is_nearly_done(1), "there was no pass");
        for (moved, pages, expected) in [
            (1000, 1000, true),
            (1000, 1000 + 2 * FEW_PAGES, true),
            (1000, 1001 + 2 * FEW_PAGES, false),
            // The log was restarted meanwhile.
            (1000, 999, false),
        ] {
            passed(moved);
            assert_eq!(checkpointer.is_nearly_done(pages), expected, "{moved} of {pages}");
            assert!(!checkpointer.is_nearly_done(pages), "it is reported once");
        }
    }
}
