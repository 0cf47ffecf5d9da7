//! Connections to the file: for the writer, for checkpoints, and a pool for lookups.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use super::failures;
use crate::store::StoreError;
use crate::telemetry::Stopwatch;

/// How often a statement checks whether another process (the gateway, the command line) still holds a lock.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// How often it checks in all: for about two seconds.
const LOOKS: i32 = 2000;

/// The size that [`prove_room`] writes: some of the largest operations (a request is 64 KiB at most, unless the rules
/// allow more).
const PROOF_BYTES: u32 = 256 * 1024;

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
}

impl Pinned {
    fn at(path: PathBuf) -> io::Result<Self> {
        let found = fs::metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino() })
    }

    fn is_in_place(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
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
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // With many commits SQLite searches the whole cache for pages beyond the file's end (to put split pages in
        // order it numbers one like the page at 1 GiB). A large cache costs more than it saves, since the kernel caches
        // the pages too.
        let cache_kib = if role == ConnectionRole::Writer { 16 * 1024 } else { 4 * 1024 };
        connection.pragma_update(None, "cache_size", -cache_kib)?;
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
    connection.prepare_cached(sql)?.query_row([], read).inspect_err(failures::end_process_if)
}

/// Commits a change without meaning, to find out whether commits work.
pub(super) fn write_probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE probe SET count = count + 1 WHERE id = 1")?.execute([]).map(drop)
}

/// Commits as much as the largest operations need, and frees it again: on a disk that is almost full, a probe of one
/// page still fits where no operation does.
pub(super) fn prove_room(connection: &Connection) -> rusqlite::Result<()> {
    // An earlier attempt may have left rows that could not be deleted.
    connection.execute("DELETE FROM probe_room", [])?;
    connection.execute("INSERT INTO probe_room VALUES (zeroblob(?1))", [PROOF_BYTES])?;
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
