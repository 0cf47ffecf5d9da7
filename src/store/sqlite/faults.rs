//! Failing disks for tests.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::{Connection, ffi};

/// What the writer's disk does wrong.
#[derive(Debug, Default)]
pub(in crate::store) struct Faults {
    max_pages: AtomicU32,
    failing_commits: AtomicBool,
}

impl Faults {
    /// The file cannot grow any more, or can again.
    pub(in crate::store) fn disk_full(&self, full: bool) {
        // SQLite takes a limit below the file's size as that size.
        self.max_pages.store(if full { 1 } else { u32::MAX - 1 }, Ordering::SeqCst);
    }

    /// Every commit fails as a failed fsync does, or no longer.
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
