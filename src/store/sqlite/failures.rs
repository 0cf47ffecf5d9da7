//! Failures of the database: what they mean to the caller, what is logged, and which of them end the process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

#[cfg(test)]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::{Connection, ErrorCode, ffi};

use crate::store::StoreError;
use crate::telemetry::LogThrottle;

/// The shortest time between two log lines of a kind.
pub(super) const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Logs failures of the disk: enough to notice them, never a line for each request.
#[derive(Debug)]
pub(super) struct FailureLog {
    moved: bool,
    failures: LogThrottle,
    recoveries: LogThrottle,
}

impl Default for FailureLog {
    fn default() -> Self {
        Self { moved: false, failures: LogThrottle::new(LOG_INTERVAL), recoveries: LogThrottle::new(LOG_INTERVAL) }
    }
}

impl FailureLog {
    /// Logs that a commit or a reopening of the file failed. That the file was moved or deleted is logged once.
    pub(super) fn failed(&mut self, error: &rusqlite::Error, what: &str) {
        let is_due =
            if is_moved(error) { !std::mem::replace(&mut self.moved, true) } else { self.failures.due(()).is_some() };
        if is_due {
            tracing::error!(%error, "{what}");
        }
    }

    /// Logs that the file was reopened.
    pub(super) fn recovered(&mut self) {
        if std::mem::take(&mut self.moved) || self.recoveries.due(()).is_some() {
            tracing::info!("the store was opened anew after a failure");
        }
    }
}

/// Reports whether a statement failed because of its own values and not because of the disk: the other commands of its batch
/// can still be committed.
pub(super) fn is_own_fault(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        None => true,
    }
}

/// Reports whether another process held a lock for too long. Nothing is wrong with the disk then.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Reports whether the store's files were moved or deleted.
pub(super) fn is_moved(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_DBMOVED)
}

/// Returns the error for the caller.
pub(super) fn store_error(error: &rusqlite::Error) -> StoreError {
    let corrupt = match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => return StoreError::TooLong,
        Some(code) => {
            matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation)
        }
        None => true,
    };
    if corrupt { StoreError::Corrupt(error.to_string()) } else { StoreError::Unavailable(error.to_string()) }
}

/// Ends the process at once if `error` is a failed fsync; does nothing on other errors.
///
/// After a failed fsync the kernel treats the lost pages as written, and reports the failure once. A checkpoint of SQLite
/// confirms only its last pass, so pages that earlier passes moved may be among the lost. SQLite counts them as moved for
/// as long as any connection is open: the next checkpoint would leave them out, and then truncate the log, the only place
/// where they still are. A new process reads the whole log again and moves all of it; that it does so beside another process
/// which has the file open is what [`forget_moved`] is for.
pub(super) fn end_process_if(connection: &Connection, error: &rusqlite::Error) {
    if is_unconfirmed(error) {
        // Open until the end: closing the file would end this process's locks on it.
        let _index = forget_moved(connection);
        end_process(error);
    }
}

/// The place of the number of moved pages (`nBackfill`) in SQLite's index of the log.
const MOVED_OFFSET: u64 = 96;

/// Has SQLite count nothing of the log as moved. Pages that are moved twice are the same pages. The index is memory that all
/// processes share, so writing it needs no disk; as long as one of them has the store open, a new process uses it as it is.
fn forget_moved(connection: &Connection) -> io::Result<File> {
    let index = OpenOptions::new().write(true).open(format!("{}-shm", connection.path().unwrap_or_default()))?;
    index.write_all_at(&[0; 4], MOVED_OFFSET)?;
    Ok(index)
}

fn is_unconfirmed(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_FSYNC)
}

#[expect(
    clippy::disallowed_methods,
    reason = "returning to main closes the connections, and the last of them truncates the log"
)]
fn end_process(error: &rusqlite::Error) -> ! {
    let reported = "the store's log could not be moved into its file; a new start moves all of it again";
    // Not through the log, whose thread would need time to write it.
    let _ = writeln!(io::stderr(), "paybridge: {reported}: {error}");
    std::process::exit(1)
}

/// Simulated failures of the writer's disk.
#[cfg(test)]
#[derive(Debug, Default)]
pub(in crate::store) struct Faults {
    max_pages: AtomicU32,
    failing_commits: AtomicBool,
}

#[cfg(test)]
impl Faults {
    /// Sets whether the file can grow.
    pub(in crate::store) fn disk_full(&self, full: bool) {
        // SQLite treats a limit below the file's size as that size.
        self.max_pages.store(if full { 1 } else { u32::MAX - 1 }, Ordering::SeqCst);
    }

    /// Sets whether every commit fails as after a failed fsync.
    pub(in crate::store) fn failing_commits(&self, failing: bool) {
        self.failing_commits.store(failing, Ordering::SeqCst);
    }

    pub(super) fn before_batch(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self.max_pages.load(Ordering::SeqCst) {
            0 => Ok(()),
            pages => connection.pragma_update(None, "max_page_count", pages),
        }
    }

    pub(super) fn before_commit(&self) -> rusqlite::Result<()> {
        if self.failing_commits.load(Ordering::SeqCst) {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that lost what was moved, behind a gateway that has ended and another process that keeps the store open.
    #[test]
    fn a_new_start_moves_all_of_the_log_again_beside_another_process() {
        use super::super::connection::{Checkpoint, checkpoint};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let open = || {
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "journal_mode", "WAL").unwrap();
            connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
            connection
        };
        let (gateway, other) = (open(), open());
        gateway.execute_batch("CREATE TABLE rows (filler)").unwrap();
        checkpoint(&gateway, Checkpoint::Truncate).unwrap();
        let on_disk = std::fs::read(&path).unwrap();
        let insert = || gateway.execute("INSERT INTO rows VALUES (zeroblob(100000))", []).unwrap();
        insert();
        other.execute_batch("BEGIN; SELECT count(*) FROM rows").unwrap();
        insert();
        let log = checkpoint(&gateway, Checkpoint::Passive).unwrap();
        assert!(0 < log.moved && log.moved < log.pages, "{log:?}");
        std::fs::write(&path, &on_disk).unwrap();

        let index = forget_moved(&gateway).unwrap();
        drop(gateway);
        drop(index);
        let gateway = open();
        other.execute_batch("COMMIT").unwrap();
        assert!(!checkpoint(&gateway, Checkpoint::Truncate).unwrap().busy);
        let sound: String = gateway.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        assert_eq!(gateway.query_row("SELECT count(*) FROM rows", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    }

    #[test]
    fn only_a_failed_fsync_ends_the_process() {
        let unconfirmed = |code| is_unconfirmed(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert!(unconfirmed(ffi::SQLITE_IOERR_FSYNC));
        for other in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_FULL, ffi::SQLITE_BUSY] {
            assert!(!unconfirmed(other), "{other}");
        }
    }
}
