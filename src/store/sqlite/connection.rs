//! Connections to the file, and what SQLite's refusals mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::store::StoreError;

/// How long a statement waits for another process (the command line) that holds a lock.
pub(super) const BUSY: Duration = Duration::from_secs(2);

/// Where connections come from.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    #[cfg(test)]
    pub(super) faults: std::sync::Arc<super::faults::Faults>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The one that commits. Its page cache holds the index of orders of some million operations.
    Writer,
    /// Point lookups; it cannot write.
    Reader,
    /// Moves the log into the file.
    Checkpointer,
}

impl Source {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            #[cfg(test)]
            faults: std::sync::Arc::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a connection. The file has to exist: a store that vanished is never replaced by an empty one.
    pub(super) fn connect(&self, role: Role) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        let cache_kib = if role == Role::Writer { 64 * 1024 } else { 4 * 1024 };
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        connection.pragma_update(None, "query_only", role == Role::Reader)?;
        Ok(connection)
    }
}

/// How far a checkpoint may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// Only look.
    Look,
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
    /// Of these, not yet in the file.
    pub(super) pending: i64,
}

/// Moves the log into the file, or looks how long it is.
pub(super) fn checkpoint(connection: &Connection, how: Checkpoint) -> rusqlite::Result<Log> {
    let sql = match how {
        Checkpoint::Look => "PRAGMA wal_checkpoint(NOOP)",
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    connection.prepare_cached(sql)?.query_row([], |row| {
        let (pages, done): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Log { busy: row.get(0)?, pages, pending: pages - done })
    })
}

/// A commit with no other meaning than that it works.
pub(super) fn write_probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE probe SET count = count + 1 WHERE id = 1")?.execute([]).map(drop)
}

/// Reads something, so that the connection takes its place on the file and its log.
pub(super) fn touch(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count FROM probe WHERE id = 1", [], |_| Ok(()))
}

/// Whether a statement failed for what it said, not for the state of the disk: the other commands of its batch can go on.
pub(super) fn is_own_fault(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        None => true,
    }
}

/// Whether another process held a lock for too long; nothing is wrong with the disk.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// What a failure means to the caller.
pub(super) fn store_error(error: &rusqlite::Error) -> StoreError {
    let corrupt = match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation)
        }
        None => true,
    };
    if corrupt { StoreError::Corrupt(error.to_string()) } else { StoreError::Unavailable(error.to_string()) }
}
