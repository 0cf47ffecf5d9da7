//! Copies the store while it is served (contract section 12, `store backup`).
//!
//! The copy is marked as a backup (contract section 15). SQLite's online backup runs within one read transaction: the copy has
//! the state of one moment, no commit restarts the backup, and no commit waits for it. `VACUUM INTO` has these properties
//! too, but runs as one step of unknown length, without progress, cancellation or a limit on what is written at once.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, ffi};

use super::connection::{self, Checkpoint};
use super::opening::connect_beside;
use super::transaction::{SqliteTransaction, at_once};
use super::{audit, failures, schema};
use crate::clock::Random;
use crate::domain::UnixMillis;
use crate::store::secret_file::{directory_of, temporary_beside};
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, OpenError, StoreError, backup_mark};
use crate::store_settings::StoreKeys;

/// The pages that are copied at once: 8 MiB of a store's usual pages.
const STEP: i32 = 1024;

/// After this many steps the copy is flushed to disk: flushing all of it at the end would delay commits on the same
/// disk.
const STEPS_A_SYNC: usize = 8;

/// Why there is no backup, in one line. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file exists; it is never overwritten.
    #[error("{path}: exists already: name a file that does not")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The name is that of a part of another SQLite file.
    #[error("{path}: SQLite takes such a file for a part of {whole}: {advice}")]
    Part {
        /// The name.
        path: PathBuf,
        /// The file that it would be a part of.
        whole: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// The copying failed.
    #[error("{path}: cannot copy the store: {source}")]
    Copy {
        /// The copy.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The copy is damaged, because the store or the disk is.
    #[error("{path}: the copy is damaged and was removed; check the store with paybridge store check: {found}")]
    Damaged {
        /// The copy.
        path: PathBuf,
        /// SQLite's error.
        found: String,
    },
    /// The copy cannot be read.
    #[error("{path}: cannot read the copy: {source}")]
    Read {
        /// The copy.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// It was cancelled.
    #[error("interrupted; nothing was kept")]
    Interrupted,
}

/// A file that is deleted when the value is dropped.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A backup that has begun: the keys open the store, and the target can be written.
#[derive(Debug)]
pub struct Begun {
    source: Connection,
    vault: Vault,
    copy: Temporary,
    to: PathBuf,
    known_until: UnixMillis,
}

/// Begins to copy the store in `path` to `to`, which must not exist. `now`: the copy will have all orders until then, and is
/// marked with it.
///
/// # Errors
/// As [`open_beside`](super::open_beside); `to` exists, or cannot be created.
pub fn begin(
    path: &Path,
    keys: &StoreKeys,
    to: &Path,
    now: UnixMillis,
    random: Arc<dyn Random>,
) -> Result<Begun, BackupError> {
    let (_, source) = connect_beside(path)?;
    let number = random.number();
    let vault = schema::unlock_existing(&source, path, keys, random)?;
    refuse_taken(path, to)?;
    let temporary = temporary_beside(to, number);
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary);
    let file = made.map_err(|error| OpenError::io(to, "create", error))?;
    Ok(Begun { source, vault, copy: Temporary { path: temporary, file }, to: to.into(), known_until: now })
}

/// Refuses names that exist, and those of SQLite's auxiliary files: an old log would be applied to the copy.
fn refuse_taken(store: &Path, to: &Path) -> Result<(), BackupError> {
    const PARTS: [&str; 3] = ["-wal", "-shm", "-journal"];
    let part = |whole: &Path, suffix: &str| {
        let mut name = whole.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    if fs::symlink_metadata(to).is_ok() {
        return Err(BackupError::Exists { path: to.into() });
    }
    if let Some(path) = PARTS.iter().map(|suffix| part(to, suffix)).find(|path| fs::symlink_metadata(path).is_ok()) {
        return Err(BackupError::Part { path, whole: to.into(), advice: "remove it, or name another file" });
    }
    let place = |path: &Path| Some((fs::canonicalize(directory_of(path)).ok()?, path.file_name()?.to_owned()));
    let real = fs::canonicalize(store).map_err(|error| OpenError::io(store, "look at", error))?;
    if PARTS.iter().any(|suffix| place(to).is_some_and(|to| place(&part(&real, suffix)) == Some(to))) {
        return Err(BackupError::Part { path: to.into(), whole: store.into(), advice: "name another file" });
    }
    Ok(())
}

/// A complete copy on disk, which does not have its final name yet.
#[derive(Debug)]
pub struct Copied {
    vault: Vault,
    copy: Temporary,
    to: PathBuf,
}

impl Begun {
    /// Copies the store as it is when this begins, some pages at a time. `progress` receives the bytes copied and the
    /// total.
    ///
    /// # Errors
    /// The store cannot be read, the copy cannot be written, or the backup was cancelled.
    pub fn copy(self, progress: &dyn Fn(u64, u64), wanted: &dyn Fn() -> bool) -> Result<Copied, BackupError> {
        let Self { source, vault, copy, to, known_until } = self;
        let failed = |source| BackupError::Copy { path: to.clone(), source };
        let unsynced = |error| OpenError::io(&to, "write", error);
        {
            let page_bytes: u32 = source.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed)?;
            let page_bytes = u64::from(page_bytes);
            let mut target = open_target(&copy.path).map_err(failed)?;
            source.execute_batch("BEGIN").and_then(|()| connection::touch(&source)).map_err(failed)?;
            let backup = Backup::new(&source, &mut target).map_err(failed)?;
            for step in 1.. {
                if !wanted() {
                    return Err(BackupError::Interrupted);
                }
                let stepped = backup.step(STEP).map_err(failed)?;
                let (all, left) = (pages(backup.progress().pagecount), pages(backup.progress().remaining));
                progress((all - left.min(all)) * page_bytes, all * page_bytes);
                #[expect(clippy::wildcard_enum_match_arm, reason = "no other result is a success")]
                match stepped {
                    StepResult::Done => break,
                    StepResult::More if step % STEPS_A_SYNC == 0 => copy.file.sync_data().map_err(unsynced)?,
                    StepResult::More => {}
                    // Only this connection uses the copy, and the read transaction fixes the state of the store.
                    _ => return Err(failed(busy())),
                }
            }
            drop(backup);
            mark(&target, known_until).map_err(failed)?;
        }
        copy.file.sync_all().map_err(unsynced)?;
        Ok(Copied { vault, copy, to })
    }
}

fn pages(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn busy() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)
}

/// Marks the copy as a backup. It has a write-ahead log, as its store has, which is moved into the file.
fn mark(target: &Connection, known_until: UnixMillis) -> rusqlite::Result<()> {
    at_once(backup_mark::mark(&SqliteTransaction(target), known_until))?;
    let log = connection::checkpoint(target, Checkpoint::Truncate)?;
    if log.busy { Err(busy()) } else { Ok(()) }
}

/// The copy has a temporary name until it is on disk, so nothing has to be rolled back.
fn open_target(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let target = Connection::open_with_flags(path, flags)?;
    target.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    target.pragma_update(None, "synchronous", "OFF")?;
    // Its write-ahead log needs no shared memory then, which not every disk for backups has.
    target.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    Ok(target)
}

/// The result of reading the copy back.
#[derive(Debug)]
pub struct Checked {
    /// What the audit found in the copy, and so in the store.
    pub audit: Audit,
    copy: Temporary,
    to: PathBuf,
}

impl Copied {
    /// Reads the copy back: its pages are sound, its keys open it, and an audit reads its rows.
    ///
    /// # Errors
    /// The copy is damaged or cannot be read, or the backup was cancelled.
    pub fn check(self, progress: &dyn Fn(AuditProgress), wanted: &dyn Fn() -> bool) -> Result<Checked, BackupError> {
        let Self { vault, copy, to } = self;
        let unread = |source| BackupError::Read { path: to.clone(), source };
        let failed = |error: rusqlite::Error| unread(failures::store_error(&error));
        let connection = open_unchanging(&copy.path).map_err(failed)?;
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return Err(BackupError::Damaged { path: to, found });
        }
        let audit = audit::run(&connection, Arc::new(vault), progress, wanted).map_err(unread)?;
        if wanted() { Ok(Checked { audit, copy, to }) } else { Err(BackupError::Interrupted) }
    }
}

/// Opens a file that nothing changes, without creating auxiliary files.
fn open_unchanging(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(unchanging(path), flags)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Returns the URI of a file. SQLite accepts every byte as a hexadecimal number.
fn unchanging(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let mut uri = String::from("file:");
    for byte in absolute.as_os_str().as_bytes() {
        let _ = match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => write!(uri, "{}", char::from(*byte)),
            _ => write!(uri, "%{byte:02x}"),
        };
    }
    uri + "?immutable=1"
}

impl Checked {
    /// Gives the copy its final name, unless that exists by now.
    ///
    /// # Errors
    /// The name exists, or the disk fails.
    pub fn publish(self) -> Result<Audit, BackupError> {
        let Self { audit, copy, to } = self;
        match fs::hard_link(&copy.path, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(BackupError::Exists { path: to }),
            // A file system without hard links.
            Err(_) if fs::symlink_metadata(&to).is_ok() => return Err(BackupError::Exists { path: to }),
            Err(_) => fs::rename(&copy.path, &to).map_err(|error| OpenError::io(&to, "rename to", error))?,
        }
        drop(copy);
        let synced = File::open(directory_of(&to)).and_then(|directory| directory.sync_all());
        synced.map_err(|error| OpenError::io(&to, "write the directory of", error))?;
        Ok(audit)
    }
}

#[cfg(test)]
mod tests;
