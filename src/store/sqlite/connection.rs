//! Connections to the file, and what SQLite's refusals mean.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags, ffi};

use super::failures;
use crate::store::StoreError;
use crate::telemetry::Stopwatch;

/// How often a statement looks whether another process (the gateway, the command line) still holds a lock.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// How often it looks in all: for about two seconds.
const LOOKS: i32 = 2000;

/// What [`prove_room`] writes: some of the largest operations (a request is 64 KiB at most, unless the rules say more).
const PROOF_BYTES: u32 = 256 * 1024;

/// Where connections come from.
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

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// The one that commits.
    Writer,
    /// Point lookups; it cannot write.
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

    /// Remembers which files the store is made of. The log has to exist: some connection has used it.
    ///
    /// # Errors
    /// A file cannot be looked at.
    pub(super) fn pin(&self) -> io::Result<()> {
        // SQLite keeps the log beside the file itself, not beside a link to it.
        let mut log = OsString::from(fs::canonicalize(&self.path)?);
        log.push("-wal");
        let files = [Pinned::at(self.path.clone())?, Pinned::at(log.into())?];
        self.files.get_or_init(|| files);
        Ok(())
    }

    /// Fails when the file or its log is not the one that the store was opened with. What is written then is lost at
    /// the next start, though every system call succeeds (contract section 11: never a false 200).
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

    /// Opens a connection. The file has to exist, and to be the one that the store was opened with: a store that
    /// vanished is never replaced by another.
    pub(super) fn connect(&self, role: ConnectionRole) -> rusqlite::Result<Connection> {
        self.in_place()?;
        let connection = self.connect_to_any(role)?;
        if self.files.get().is_some() {
            // The log is opened at the first use; only then is it sure which files these are.
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
        // Else a statement is compiled anew at every use when its parameter might be the constant of a partial index.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // At many commits SQLite goes through the whole cache for pages beyond the file's end (to put split pages in order
        // it numbers one like the page at 1 GiB): a large one costs more than it spares, the kernel has the pages too.
        let cache_kib = if role == ConnectionRole::Writer { 16 * 1024 } else { 4 * 1024 };
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        connection.pragma_update(None, "query_only", role == ConnectionRole::Reader)?;
        Ok(connection)
    }
}

/// Waits for another process, and gives up after a while. SQLite's own way of waiting soon looks only every tenth of a
/// second: beside a process that commits without a pause it finds the lock free once in a long time.
pub(super) fn wait_for_lock(looked: i32) -> bool {
    std::thread::sleep(LOOK_INTERVAL);
    looked < LOOKS
}

/// How far a checkpoint may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// What is possible without making anyone wait.
    Passive,
    /// Everything; the next commit starts the log anew.
    Restart,
    /// Everything, and the log is cut to nothing.
    Truncate,
}

/// The state of the write-ahead log, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    /// Someone else stood in the way.
    pub(super) busy: bool,
    /// In the log; negative when another checkpoint was under way.
    pub(super) pages: i64,
    /// Of these, the ones that are in the file; negative as before.
    pub(super) moved: i64,
}

/// How long the log is, as SQLite tells after each commit of a connection: asking would cost as much as some creates.
#[derive(Debug, Clone, Default)]
pub(super) struct LogLength(Arc<AtomicI64>);

impl LogLength {
    /// Listens to a connection from now on.
    pub(super) fn follow(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let length = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            length.store(i64::from(pages), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// The length after the last commit, in pages; `None` when none wrote anything since this was asked last.
    pub(super) fn after_commit(&self) -> Option<i64> {
        Some(self.0.swap(0, Ordering::Relaxed)).filter(|pages| *pages > 0)
    }
}

/// Moves the log into the file. Ends the process when the disk does not confirm it: see [`unconfirmed`].
pub(super) fn checkpoint(connection: &Connection, how: Checkpoint) -> rusqlite::Result<Log> {
    let sql = match how {
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let read = |row: &rusqlite::Row<'_>| Ok(Log { busy: row.get(0)?, pages: row.get(1)?, moved: row.get(2)? });
    connection.prepare_cached(sql)?.query_row([], read).inspect_err(failures::end_process_if)
}

/// A commit with no other meaning than that it works.
pub(super) fn write_probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE probe SET count = count + 1 WHERE id = 1")?.execute([]).map(drop)
}

/// Commits that take as much room as the largest operations do, and give it back: on a disk that is almost full, a probe
/// of one page still fits where no operation does.
pub(super) fn prove_room(connection: &Connection) -> rusqlite::Result<()> {
    // What an attempt left that could not be emptied.
    connection.execute("DELETE FROM probe_room", [])?;
    connection.execute("INSERT INTO probe_room VALUES (zeroblob(?1))", [PROOF_BYTES])?;
    connection.execute("DELETE FROM probe_room", []).map(drop)
}

/// Reads something, so that the connection takes its place on the file and its log.
pub(super) fn touch(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count FROM probe WHERE id = 1", [], |_| Ok(()))
}

/// The most connections kept; more readers at once open and close their own.
const MAX_IDLE: usize = 16;

/// After so many steps of SQLite's machine it is looked whether a lookup has taken too long: well under a millisecond.
const STEPS: i32 = 10_000;

/// A stack of idle connections; `None` after the store was closed.
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

    /// Runs a lookup that ends with an error when it takes longer than so.
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

    /// A connection with which something failed is not used again: it may have been what failed.
    fn end<T>(&self, connection: Connection, found: rusqlite::Result<T>) -> Result<T, StoreError> {
        let found = found.map_err(|error| failures::store_error(&error))?;
        self.put_back(connection);
        Ok(found)
    }

    /// Runs a lookup that may be long aside of the threads that serve.
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

    /// A connection to be kept for long.
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
            // Closing may touch the disk: not under the lock.
            _ => {
                drop(idle);
                drop(connection);
            }
        }
    }
}
