//! Opens the file: to serve it, or beside a gateway that serves it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::connection::{self, Checkpoint, Checkpointer, ConnectionRole, Readers, StoreFile};
use super::lists::{ListTurns, MAX_LIST_TIME};
use super::lock::{StoreLock, lock};
use super::writer::{LogOwner, Writer};
use super::{SqliteStore, schema, tasks};
use crate::clock::Random;
use crate::store::format::{FormatCheck, Formats};
use crate::store::rows::context::Contexts;
use crate::store::secret_file::{directory_of, private_directory};
use crate::store::vault::Vault;
use crate::store::{OpenError, Opened, Rewrapped, StoreAccess, StoreFormat};
use crate::store_settings::StoreKeys;
use crate::telemetry::Metrics;

/// Opens the store in `path`. Creates the directory, the file and the key file if they are missing and the store is
/// new, and adds to a store of the format before. What an earlier process left in the log is moved into the file first, so that
/// everything that will be read is on disk.
///
/// # Errors
/// One line: see [`OpenError`].
pub fn open(
    path: &Path,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<SqliteStore>, OpenError> {
    open_source(StoreFile::new(path), keys, random, metrics)
}

pub(super) fn open_source(
    source: StoreFile,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<SqliteStore>, OpenError> {
    let path = source.path();
    make_file(path)?;
    let lock = lock(path)?;
    let mut connection = source.connect(ConnectionRole::Writer).map_err(OpenError::sqlite(path))?;
    if schema::recognize(&connection, path, Formats::require_served)?.count() > 0 {
        schema::refuse_moved(&connection, path)?;
        schema::refuse_backup(&connection, path)?;
    }
    write_ahead(&connection, path)?;
    let prepared = schema::prepare(&mut connection, path, keys, Arc::clone(&random))?;
    log_if_new(&prepared, path);
    tasks::release_all(&connection).map_err(OpenError::sqlite(path))?;
    let log = connection::checkpoint(&connection, Checkpoint::Truncate).map_err(OpenError::sqlite(path))?;
    if log.busy {
        tracing::warn!(path = %path.display(), "another process reads the store; its log is moved later");
    }
    let schema::PreparedFile { vault, holds, .. } = prepared;
    let store = start(source, connection, vault, random, metrics, Some(lock))?;
    Ok(Opened { store, holds })
}

/// Opens a store beside a gateway that may be serving it. Creates nothing, and leaves the leases of the gateway and the log
/// unchanged. Only to adopt it, what this release needs is added to one of the format before.
///
/// # Errors
/// One line: see [`OpenError`]; also if there is no store, or one of an older format.
pub fn open_beside(
    path: &Path,
    keys: &StoreKeys,
    access: StoreAccess,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<SqliteStore, OpenError> {
    let adopts = access == StoreAccess::Adopt;
    let check = if adopts { Formats::require_present } else { Formats::require_upgraded };
    let (source, mut connection) = connect(path, check)?;
    schema::refuse_moved(&connection, path)?;
    if access == StoreAccess::Change {
        schema::refuse_backup(&connection, path)?;
    }
    let lock = adopts.then(|| lock(path)).transpose()?;
    let vault = if adopts {
        schema::prepare(&mut connection, path, keys, Arc::clone(&random))?.vault
    } else {
        schema::unlock_existing(&connection, path, keys, Arc::clone(&random))?
    };
    start(source, connection, vault, random, metrics, lock)
}

/// Wraps the data keys of a store with the first of `keys`, in one transaction.
///
/// # Errors
/// As [`open_beside`].
pub fn rewrap_keys(path: &Path, keys: &StoreKeys, random: &Arc<dyn Random>) -> Result<Rewrapped, OpenError> {
    let (_, mut connection) = connect_beside(path)?;
    schema::rewrap_keys(&mut connection, path, keys, random)
}

/// Connects to an existing store, beside a gateway that may be serving it.
///
/// # Errors
/// As [`open_beside`]; also if it was moved.
pub(super) fn connect_beside(path: &Path) -> Result<(StoreFile, Connection), OpenError> {
    let (source, connection) = connect_though_moved(path)?;
    schema::refuse_moved(&connection, path)?;
    Ok((source, connection))
}

/// Connects to an existing store, which may be marked as moved.
///
/// # Errors
/// As [`open_beside`].
pub(super) fn connect_though_moved(path: &Path) -> Result<(StoreFile, Connection), OpenError> {
    connect(path, Formats::require_upgraded)
}

fn connect(path: &Path, check: FormatCheck) -> Result<(StoreFile, Connection), OpenError> {
    require_file(path)?;
    let source = StoreFile::new(path);
    let connection = source.connect(ConnectionRole::Writer).map_err(OpenError::sqlite(path))?;
    schema::recognize(&connection, path, check)?;
    write_ahead(&connection, path)?;
    Ok((source, connection))
}

/// Reads the formats that a store names, whether or not this release can serve it. Writes nothing.
///
/// # Errors
/// There is no store, or it cannot be read.
pub fn read_format(path: &Path) -> Result<StoreFormat, OpenError> {
    require_file(path)?;
    let connection = StoreFile::new(path).connect(ConnectionRole::Reader).map_err(OpenError::sqlite(path))?;
    let formats = schema::recognize(&connection, path, |_, _, _| Ok(()))?;
    formats.stated().ok_or_else(|| OpenError::Missing { path: path.into() })
}

/// Checks that the file of a store exists.
fn require_file(path: &Path) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(file) if file.len() > 0 => Ok(()),
        Ok(_) => Err(OpenError::Missing { path: path.into() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(OpenError::Missing { path: path.into() }),
        Err(error) => Err(OpenError::io(path, "look at", error)),
    }
}

fn start(
    source: StoreFile,
    connection: Connection,
    vault: Vault,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
    lock: Option<StoreLock>,
) -> Result<SqliteStore, OpenError> {
    let log = if lock.is_some() { LogOwner::ThisProcess } else { LogOwner::AnotherProcess };
    let source = Arc::new(source);
    let path = source.path();
    let anchor = source.connect(ConnectionRole::Reader).map_err(OpenError::sqlite(path))?;
    connection::touch(&anchor).map_err(OpenError::sqlite(path))?;
    source.pin().map_err(|error| OpenError::io(path, "look at the files of", error))?;
    let failed = |error| OpenError::io(path, "start a thread for", error);
    let checkpointer = Checkpointer::start(Arc::clone(&source)).map_err(failed)?;
    let to_serve = Arc::clone(&source);
    let writer = Writer::start(connection, anchor, to_serve, checkpointer, metrics, log).map_err(failed)?;
    let contexts = Contexts::new(vault.fingerprint_key().clone());
    let readers = Arc::new(Readers::new(source));
    Ok(SqliteStore {
        writer,
        readers,
        histories: ListTurns::new(MAX_LIST_TIME),
        lists: ListTurns::new(MAX_LIST_TIME),
        queued: Notify::new(),
        vault: Arc::new(vault),
        contexts,
        random,
        lock: Mutex::new(lock),
    })
}

/// Logs that a store was created. Beside an existing key file that is most likely a mistake.
fn log_if_new(prepared: &schema::PreparedFile, path: &Path) {
    match (prepared.new, prepared.key_was_there) {
        (false, _) => {}
        (true, false) => tracing::info!("made a new store at {}", path.display()),
        (true, true) => tracing::warn!(
            "made a new, empty store at {} although its key already existed: is the disk of the old one mounted?",
            path.display()
        ),
    }
}

/// Creates an empty file for its owner only; SQLite gives its log the same mode.
fn make_file(path: &Path) -> Result<(), OpenError> {
    private_directory(directory_of(path))?;
    let made = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|error| OpenError::io(path, "open", error))
}

fn write_ahead(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(OpenError::sqlite(path))?;
    if mode.eq_ignore_ascii_case("wal") { Ok(()) } else { Err(OpenError::NoWal { path: path.into() }) }
}
