//! The lock of a store, so that one process serves it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::store::OpenError;

/// The lock of a store. It is released explicitly, since closing the file is not enough: a child process has a copy of it
/// until its program starts.
pub(super) struct StoreLock(File);

impl Drop for StoreLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Locks the store, so that one process serves it: that process takes over the leases of the previous one. The lock
/// ends with the process, however that ends. SQLite's own file is not locked, since closing it would release SQLite's
/// locks.
pub(super) fn lock(path: &Path) -> Result<StoreLock, OpenError> {
    let mut name = OsString::from(fs::canonicalize(path).map_err(|error| OpenError::io(path, "look at", error))?);
    name.push(".lock");
    let name = PathBuf::from(name);
    let failed = |error| OpenError::io(&name, "lock", error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::Served { path: path.into() }),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // Created by root for another user's store, it would lock that user out. SQLite does the same for its files.
    let (store, own) = (fs::metadata(path).map_err(failed)?, file.metadata().map_err(failed)?);
    if (store.uid(), store.gid()) != (own.uid(), own.gid()) {
        let _ = fchown(&file, Some(store.uid()), Some(store.gid()));
    }
    Ok(StoreLock(file))
}
