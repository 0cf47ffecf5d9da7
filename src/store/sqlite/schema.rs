//! The schema, which releases add to at start, and the store's data keys.

use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, ffi};

use super::transaction::{SqliteTransaction, at_once};
use crate::clock::Random;
use crate::store::format::{self, FORMAT, FormatCheck, FormatSteps, Formats};
use crate::store::secret_file::wrapping_keys;
use crate::store::vault::{self, Purpose, Rewrap, Vault, VaultError, WrappedKey};
use crate::store::{Holds, OpenError, Rewrapped, backup_mark};
use crate::store_settings::StoreKeys;

/// The application id of a Paybridge file (`PBrg`).
pub(super) const APPLICATION_ID: i64 = 0x5042_7267;

/// The formats, oldest first. Those that were released never change.
pub(super) const FORMATS: &[FormatSteps] = &[
    FormatSteps { adds: include_str!("0001.sql"), narrows: "" },
    #[cfg(feature = "next-format")]
    FormatSteps { adds: include_str!("next_adds.sql"), narrows: include_str!("next_narrows.sql") },
];

/// Reads the formats of a store; of an empty file there are none. Writes nothing.
///
/// # Errors
/// The file is of another application, of an unreleased build, or no database.
pub(super) fn read_formats(connection: &Connection, path: &Path) -> Result<Formats, OpenError> {
    let failed = || OpenError::sqlite(path);
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = pragma("user_version").map_err(failed())?;
    let application = pragma("application_id").map_err(failed())?;
    if application == APPLICATION_ID && version > 0 {
        if !connection.table_exists(None, "paybridge_formats").map_err(failed())? {
            return Err(OpenError::OtherBuild { path: path.into() });
        }
        return match at_once(format::load(&SqliteTransaction(connection))).map_err(failed())? {
            formats if formats.count() == 0 => Err(OpenError::OtherBuild { path: path.into() }),
            formats => Ok(formats),
        };
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed())?;
    if application != 0 || version != 0 || tables != 0 {
        return Err(OpenError::Foreign { path: path.into() });
    }
    Ok(Formats::default())
}

/// Checks the formats of a store; writes nothing, and leaves the log where it is if they are refused.
///
/// # Errors
/// As [`read_formats`]; or `check` refuses the store.
pub(super) fn recognize(connection: &Connection, path: &Path, check: FormatCheck) -> Result<Formats, OpenError> {
    // SQLite moves the log into the file when its last connection closes.
    let move_log_at_close = |moves: bool| {
        let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(config, !moves).map(drop).map_err(OpenError::sqlite(path))
    };
    move_log_at_close(false)?;
    let formats = read_formats(connection, path)?;
    check(&formats, FORMATS, path)?;
    move_log_at_close(true)?;
    Ok(formats)
}

/// Fails once a newer release has locked this one out.
///
/// # Errors
/// It has, or the disk fails.
pub(super) fn refuse_locked_out(connection: &Connection) -> rusqlite::Result<()> {
    match at_once(format::oldest(&SqliteTransaction(connection)))? {
        oldest if oldest > FORMAT => {
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), Some(format::locked_out(oldest))))
        }
        _ => Ok(()),
    }
}

/// A store that is ready for use.
pub(super) struct PreparedFile {
    pub(super) vault: Vault,
    /// Whether it was created now.
    pub(super) new: bool,
    /// Whether the key file existed already, if the rules would have it created.
    pub(super) key_was_there: bool,
    pub(super) holds: Holds,
}

/// Adds to the store what this release needs and unlocks its vault, in one transaction: a store without data keys is
/// never left behind.
///
/// # Errors
/// As [`recognize`]; the disk fails; `keys` do not fit.
pub(super) fn prepare(
    connection: &mut Connection,
    path: &Path,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
) -> Result<PreparedFile, OpenError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(OpenError::sqlite(path))?;
    let formats = recognize(&transaction, path, Formats::require_served)?;
    add(&transaction, FORMATS, formats.count()).map_err(OpenError::sqlite(path))?;
    let prepared = unlock(&transaction, path, keys, random)?;
    transaction.commit().map_err(OpenError::sqlite(path))?;
    format::log_added(formats.count(), FORMATS);
    Ok(prepared)
}

/// Takes the steps that a store lacks which was given `count` formats.
///
/// # Errors
/// The disk fails.
pub(super) fn add(transaction: &Transaction<'_>, steps: &[FormatSteps], count: usize) -> rusqlite::Result<()> {
    let is_new = count == 0;
    for (format, FormatSteps { adds, narrows }) in (1_usize..).zip(steps).skip(count) {
        transaction.execute_batch(adds)?;
        if is_new {
            transaction.execute_batch(narrows)?;
        }
        let taken = steps.get(..format).unwrap_or_default();
        at_once(format::note_added(&SqliteTransaction(transaction), taken, is_new))?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", i64::try_from(format).unwrap_or(i64::MAX))?;
    }
    Ok(())
}

/// Narrows the store, within a transaction. Returns `false`, with nothing changed, if older releases are not locked out.
///
/// # Errors
/// The disk fails.
pub(super) fn narrow(connection: &Connection) -> rusqlite::Result<bool> {
    if !at_once(format::note_narrowed(&SqliteTransaction(connection)))? {
        return Ok(false);
    }
    connection.execute_batch(FORMATS.last().map_or("", |steps| steps.narrows))?;
    Ok(true)
}

/// Names its columns, as every statement does: a newer release may have added some.
const INSERT_KEY: &str = "INSERT INTO data_keys (id, purpose, wrapped) VALUES (?1, ?2, ?3)";

fn unlock(
    transaction: &Transaction<'_>,
    path: &Path,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
) -> Result<PreparedFile, OpenError> {
    let misfit = |source| OpenError::Keys { path: path.into(), source };
    let mut stored = stored_keys(transaction, path)?;
    let new = stored.is_empty();
    let holds = held(transaction).map_err(OpenError::sqlite(path))?;
    let key_was_there = keys.create_at.as_ref().is_some_and(|file| !keys.keys.is_empty() || file.exists());
    let keys = wrapping_keys(path, keys, new, &*random)?;
    if new {
        if holds.any() {
            return Err(misfit(VaultError::Incomplete));
        }
        stored = Vault::draw(&keys, &*random).map_err(misfit)?;
        for key in &stored {
            transaction
                .execute(INSERT_KEY, (key.id, key.purpose.as_str(), &key.wrapped))
                .map_err(OpenError::sqlite(path))?;
        }
    }
    let vault = Vault::unlock(&keys, &stored, random).map_err(misfit)?;
    Ok(PreparedFile { vault, new, key_was_there, holds })
}

fn held(connection: &Connection) -> rusqlite::Result<Holds> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM operations), EXISTS (SELECT 1 FROM journal)", [], |row| {
        Ok(Holds { operations: row.get(0)?, journal: row.get(1)? })
    })
}

/// Unlocks the vault of an existing store; creates nothing.
///
/// # Errors
/// The disk fails; `keys` do not fit.
pub(super) fn unlock_existing(
    connection: &Connection,
    path: &Path,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
) -> Result<Vault, OpenError> {
    let stored = stored_keys(connection, path)?;
    let keys = wrapping_keys(path, keys, false, &*random)?;
    Vault::unlock(&keys, &stored, random).map_err(|source| OpenError::Keys { path: path.into(), source })
}

/// Wraps the data keys with the first of `keys`: all of them or none.
///
/// # Errors
/// As [`recognize`] and [`unlock_existing`].
pub(super) fn rewrap_keys(
    connection: &mut Connection,
    path: &Path,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
) -> Result<Rewrapped, OpenError> {
    let failed = || OpenError::sqlite(path);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
    // Another release may have finished its upgrade since the store was opened.
    recognize(&transaction, path, Formats::require_upgraded)?;
    let keys = wrapping_keys(path, keys, false, &**random)?;
    let Rewrap { changed, reported } = vault::rewrap(&keys, &stored_keys(&transaction, path)?, random)
        .map_err(|source| OpenError::Keys { path: path.into(), source })?;
    for key in changed {
        transaction
            .execute("UPDATE data_keys SET wrapped = ?2 WHERE id = ?1", (key.id, key.wrapped))
            .map_err(failed())?;
    }
    transaction.commit().map_err(failed())?;
    Ok(reported)
}

/// Reads the wrapped data keys.
///
/// # Errors
/// The disk fails, or a row is invalid.
pub(super) fn stored_keys(connection: &Connection, path: &Path) -> Result<Vec<WrappedKey>, OpenError> {
    let mut statement =
        connection.prepare("SELECT id, purpose, wrapped FROM data_keys").map_err(OpenError::sqlite(path))?;
    let mut rows = statement.query([]).map_err(OpenError::sqlite(path))?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next().map_err(OpenError::sqlite(path))? {
        let read = || -> rusqlite::Result<(u16, String, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        let (id, purpose, wrapped) = read().map_err(OpenError::sqlite(path))?;
        let purpose = Purpose::from_stored(&purpose)
            .ok_or_else(|| OpenError::Keys { path: path.into(), source: VaultError::Incomplete })?;
        keys.push(WrappedKey { id, purpose, wrapped });
    }
    Ok(keys)
}

/// Returns where a store was copied to, for messages; `None` if it was not.
///
/// # Errors
/// The disk fails.
pub(super) fn moved_to(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT target FROM moved", [], |row| row.get(0)).optional()
}

/// Refuses a store that was copied to a database: a gateway on the file would miss what the database stores since.
///
/// # Errors
/// The store was copied, or the disk fails.
pub(super) fn refuse_moved(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match moved_to(connection).map_err(OpenError::sqlite(path))? {
        None => Ok(()),
        Some(to) => Err(OpenError::Moved { path: path.into(), to }),
    }
}

/// Refuses a backup that was not adopted.
///
/// # Errors
/// The store has a mark, or the disk fails.
pub(super) fn refuse_backup(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let known_until = at_once(backup_mark::known_until(&SqliteTransaction(connection)));
    backup_mark::refuse(known_until.map_err(OpenError::sqlite(path))?, path)
}

/// Marks a store as copied, within a transaction; replaces an earlier mark.
///
/// # Errors
/// The disk fails.
pub(super) fn mark_moved(connection: &Connection, to: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM moved", [])?;
    connection.execute("INSERT INTO moved (target) VALUES (?1)", [to]).map(drop)
}
