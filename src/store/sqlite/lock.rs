//! The lock of a store, so that one process serves it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::store::OpenError;
use crate::store::format::FORMAT;

/// The lock of a store. The file holds the format of the release that has the lock, and nothing when it was released. It is
/// released explicitly, since closing the file is not enough: a child process has a copy of it until its program starts.
pub(super) struct StoreLock(File);

impl Drop for StoreLock {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}

/// Locks the store, so that one process serves it: that process takes over the leases of the previous one. The lock
/// ends with the process, however that ends. SQLite's own file is not locked, since closing it would release SQLite's
/// locks.
pub(super) fn lock(path: &Path) -> Result<StoreLock, OpenError> {
    let name = lock_file(path)?;
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
    // Before the store's formats are read: a command that locks this release out then knows of this process.
    let format = format!("format {FORMAT}\n");
    file.set_len(0).and_then(|()| file.write_all_at(format.as_bytes(), 0)).map_err(failed)?;
    Ok(StoreLock(file))
}

/// Reports whether a process of an older release serves the store. A process that was killed leaves its format in the
/// file, so that the lock is tried then.
///
/// # Errors
/// The file cannot be read or locked.
pub(super) fn is_held_by_older(path: &Path) -> Result<bool, OpenError> {
    let name = lock_file(path)?;
    let failed = |error| OpenError::io(&name, "read", error);
    let text = match fs::read_to_string(&name) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let format = text.trim().strip_prefix("format ").and_then(|format| format.parse().ok());
    if format.is_none_or(|format: u32| format >= FORMAT) {
        return Ok(false);
    }
    match lock(path) {
        Ok(released) => {
            drop(released);
            Ok(false)
        }
        Err(OpenError::Served { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

fn lock_file(path: &Path) -> Result<PathBuf, OpenError> {
    let mut name = OsString::from(fs::canonicalize(path).map_err(|error| OpenError::io(path, "look at", error))?);
    name.push(".lock");
    Ok(name.into())
}
