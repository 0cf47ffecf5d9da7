//! Versioned migrations, which run at start on one node at a time, and the store's data keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deadpool_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::errors::PgError;
use super::node::PgNode;
use super::server;
use super::transaction::{Executor, PgTransaction, get};
use crate::clock::Random;
use crate::store::secret_file::wrapping_keys;
use crate::store::sql::CorruptRow;
use crate::store::vault::{self, Purpose, Rewrap, Vault, VaultError, WrappedKey};
use crate::store::{Holds, OpenError, Rewrapped, StoreAccess, backup_mark, format};
use crate::store_settings::{PostgresUrl, StoreKeys};

/// Each migrates a store from the version of its index to the next. Released ones never change.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("0001.sql")];

/// The advisory lock (`PBrg`) of a node that opens, and perhaps migrates, the store: others wait, and find the work
/// done.
const LOCK: i64 = 0x5042_7267;

/// A store that is ready for use.
pub(super) struct PreparedStore {
    pub(super) vault: Vault,
    pub(super) holds: Holds,
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Created and migrated as needed.
    Serve,
    /// Required in the newest version: nothing is created.
    Beside(StoreAccess),
}

/// Why a store cannot be opened.
pub(super) enum OpenFailure {
    Fault(PgError),
    Open(OpenError),
}

impl From<PgError> for OpenFailure {
    fn from(fault: PgError) -> Self {
        Self::Fault(fault)
    }
}

impl From<tokio_postgres::Error> for OpenFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Migrates the store to the newest version and unlocks its vault, in one transaction.
///
/// # Errors
/// One line: the database does not respond, the store is of another release, or `keys` do not fit.
pub(super) async fn prepare(
    node: &PgNode,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    mode: OpenMode,
) -> Result<PreparedStore, OpenError> {
    let prepare =
        async |transaction: &Transaction<'_>| prepare_in(transaction, url, keys, Arc::clone(&random), mode).await;
    exclusively(node, url, prepare).await
}

/// Wraps the data keys with the first of `keys`, in one transaction.
///
/// # Errors
/// As [`prepare`].
pub(super) async fn rewrap_keys(
    node: &PgNode,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
) -> Result<Rewrapped, OpenError> {
    exclusively(node, url, async |transaction| rewrap_in(transaction, url, keys, random).await).await
}

/// Runs a transaction while no other node opens the store, on a database that is suitable for one.
///
/// # Errors
/// As [`prepare`].
pub(super) async fn exclusively<T>(
    node: &PgNode,
    url: &PostgresUrl,
    work: impl AsyncFn(&Transaction<'_>) -> Result<T, OpenFailure>,
) -> Result<T, OpenError> {
    let done = async {
        if let Err(reason) = server::check(node).await? {
            return Err(OpenFailure::Open(OpenError::Database { store: url.to_string(), reason }));
        }
        let mut client = node.client().await?;
        let transaction = client.transaction().await?;
        // Ten nodes that start at once wait longer here than for any row.
        transaction.batch_execute("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '0'").await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let done = work(&transaction).await?;
        transaction.commit().await?;
        Ok(done)
    };
    done.await.map_err(|refused| match refused {
        OpenFailure::Open(error) => error,
        OpenFailure::Fault(fault) => {
            OpenError::Database { store: url.to_string(), reason: fault.reported_to_operators() }
        }
    })
}

async fn prepare_in(
    transaction: &Transaction<'_>,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    mode: OpenMode,
) -> Result<PreparedStore, OpenFailure> {
    let store = PathBuf::from(url.to_string());
    match mode {
        OpenMode::Serve => {
            migrate(transaction, MIGRATIONS, &store, known_version(transaction, &store).await?).await?;
        }
        OpenMode::Beside(_) => require_newest(transaction, &store).await?,
    }
    refuse_unfinished(transaction, &store).await?;
    if let OpenMode::Serve | OpenMode::Beside(StoreAccess::Change) = mode {
        refuse_backup(transaction, &store).await?;
    }
    let holds = held(transaction).await?;
    let mut stored = stored_keys(transaction).await?;
    // Other nodes need the same key, so none is created here (contract section 2).
    let keys = wrapping_keys(&store, keys, false, &*random).map_err(|error| {
        if stored.is_empty()
            && let OpenError::KeyMissing { path } = error
        {
            return OpenFailure::Open(OpenError::KeyNotMade { path });
        }
        OpenFailure::Open(error)
    })?;
    let misfit = |source| OpenFailure::Open(OpenError::Keys { path: store.clone(), source });
    if stored.is_empty() {
        if holds.any() || mode != OpenMode::Serve {
            return Err(misfit(VaultError::Incomplete));
        }
        stored = Vault::draw(&keys, &*random).map_err(misfit)?;
        insert_keys(transaction, &stored).await?;
        tracing::info!("made a new store in {url}");
    }
    let vault = Vault::unlock(&keys, &stored, random).map_err(misfit)?;
    Ok(PreparedStore { vault, holds })
}

async fn rewrap_in(
    transaction: &Transaction<'_>,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
) -> Result<Rewrapped, OpenFailure> {
    let store = PathBuf::from(url.to_string());
    require_newest(transaction, &store).await?;
    refuse_unfinished(transaction, &store).await?;
    let stored = stored_keys(transaction).await?;
    let keys = wrapping_keys(&store, keys, false, &**random).map_err(OpenFailure::Open)?;
    let Rewrap { changed, reported } = vault::rewrap(&keys, &stored, random)
        .map_err(|source| OpenFailure::Open(OpenError::Keys { path: store, source }))?;
    for key in changed {
        let sql = "UPDATE data_keys SET wrapped = $2 WHERE id = $1";
        transaction.execute(sql, &[&i32::from(key.id), &key.wrapped]).await?;
    }
    Ok(reported)
}

/// Returns the version of the store, which this release knows; 0 if there is no store.
///
/// # Errors
/// A newer release or another unreleased build has written it.
pub(super) async fn known_version(transaction: &Transaction<'_>, store: &Path) -> Result<i64, OpenFailure> {
    let (found, known) = (version(transaction).await?, newest());
    if found > known {
        return Err(OpenFailure::Open(OpenError::Newer { path: store.into(), found, known }));
    }
    if found > 0 {
        let made = MIGRATIONS.get(..usize::try_from(found).unwrap_or(0)).unwrap_or_default();
        let hash = format_hash(transaction).await?;
        format::require(hash.as_deref(), made, store).map_err(OpenFailure::Open)?;
    }
    Ok(found)
}

/// Refuses all but this release's version: a tool creates and migrates no store.
///
/// # Errors
/// There is no store, or one of another release.
pub(super) async fn require_newest(transaction: &Transaction<'_>, store: &Path) -> Result<(), OpenFailure> {
    let (found, known) = (known_version(transaction, store).await?, newest());
    match found {
        0 => Err(OpenFailure::Open(OpenError::Missing { path: store.into() })),
        _ if found < known => Err(OpenFailure::Open(OpenError::Older { path: store.into(), found, known })),
        _ => Ok(()),
    }
}

/// Reports whether the store is an unfinished copy.
///
/// # Errors
/// The database fails.
pub(super) async fn is_unfinished(transaction: &Transaction<'_>) -> Result<bool, PgError> {
    get(&transaction.query_one("SELECT EXISTS (SELECT 1 FROM copying)", &[]).await?, 0)
}

async fn refuse_unfinished(transaction: &Transaction<'_>, store: &Path) -> Result<(), OpenFailure> {
    let unfinished = is_unfinished(transaction).await?;
    if unfinished { Err(OpenFailure::Open(OpenError::Unfinished { path: store.into() })) } else { Ok(()) }
}

async fn refuse_backup(transaction: &Transaction<'_>, store: &Path) -> Result<(), OpenFailure> {
    let tx = PgTransaction { executor: Executor::Transaction(transaction), ahead: 0 };
    backup_mark::refuse(backup_mark::known_until(&tx).await?, store).map_err(OpenFailure::Open)
}

/// Stores the data keys of a new store.
///
/// # Errors
/// The database fails.
pub(super) async fn insert_keys(transaction: &Transaction<'_>, keys: &[WrappedKey]) -> Result<(), PgError> {
    for key in keys {
        let (id, purpose) = (i32::from(key.id), key.purpose.as_str());
        transaction.execute("INSERT INTO data_keys VALUES ($1, $2, $3)", &[&id, &purpose, &key.wrapped]).await?;
    }
    Ok(())
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Returns the version of the store; 0 if there is none.
async fn version(transaction: &Transaction<'_>) -> Result<i64, PgError> {
    let there = transaction.query_one("SELECT to_regclass('paybridge_schema') IS NOT NULL", &[]).await?;
    if !get::<bool>(&there, 0)? {
        return Ok(0);
    }
    get(&transaction.query_one("SELECT coalesce(max(version), 0) FROM paybridge_schema", &[]).await?, 0)
}

/// Reads the hash of the store's format; `None`: it has none.
async fn format_hash(transaction: &Transaction<'_>) -> Result<Option<Vec<u8>>, PgError> {
    let there = transaction.query_one("SELECT to_regclass('format') IS NOT NULL", &[]).await?;
    if !get::<bool>(&there, 0)? {
        return Ok(None);
    }
    transaction.query_opt("SELECT hash FROM format", &[]).await?.map(|row| get(&row, 0)).transpose()
}

/// Migrates a store of a version to the last of `migrations`.
///
/// # Errors
/// The database fails, or has tables of another application.
pub(super) async fn migrate(
    transaction: &Transaction<'_>,
    migrations: &[&str],
    store: &Path,
    found: i64,
) -> Result<(), OpenFailure> {
    let taken = |error| if found == 0 { refused_if_taken(error, store) } else { error.into() };
    if found == 0 {
        let table = "CREATE TABLE paybridge_schema (version bigint PRIMARY KEY, migrated_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await.map_err(taken)?;
    }
    let done = usize::try_from(found).unwrap_or(0);
    for (version, migration) in (1_i64..).zip(migrations).skip(done) {
        transaction.batch_execute(migration).await.map_err(taken)?;
        transaction.execute("INSERT INTO paybridge_schema (version) VALUES ($1)", &[&version]).await?;
    }
    if done < migrations.len() {
        transaction.execute("DELETE FROM format", &[]).await?;
        transaction.execute("INSERT INTO format VALUES ($1)", &[&format::hash(migrations).as_slice()]).await?;
    }
    if found > 0 && done < migrations.len() {
        tracing::info!(
            from = found,
            to = migrations.len(),
            "the store was migrated: older releases cannot open it any more"
        );
    }
    Ok(())
}

/// Returns the error of a table or an index that exists already: it is another application's.
fn refused_if_taken(error: tokio_postgres::Error, store: &Path) -> OpenFailure {
    match error.as_db_error() {
        Some(stated) if [SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT].contains(stated.code()) => {
            OpenFailure::Open(OpenError::NotEmpty { path: store.into(), found: stated.message().to_owned() })
        }
        _ => error.into(),
    }
}

async fn held(transaction: &Transaction<'_>) -> Result<Holds, PgError> {
    let held =
        transaction.query_one("SELECT EXISTS (SELECT 1 FROM operations), EXISTS (SELECT 1 FROM journal)", &[]).await?;
    Ok(Holds { operations: get(&held, 0)?, journal: get(&held, 1)? })
}

/// Reads the wrapped data keys.
///
/// # Errors
/// A row is invalid, or the database fails.
pub(super) async fn stored_keys(transaction: &Transaction<'_>) -> Result<Vec<WrappedKey>, PgError> {
    let rows = transaction.query("SELECT id, purpose, wrapped FROM data_keys ORDER BY id", &[]).await?;
    rows.iter()
        .map(|row| {
            let id = u16::try_from(get::<i32>(row, 0)?).map_err(|_| CorruptRow::new("data_keys.id"))?;
            let purpose = Purpose::from_stored(get(row, 1)?).ok_or(CorruptRow::new("data_keys.purpose"))?;
            Ok(WrappedKey { id, purpose, wrapped: get(row, 2)? })
        })
        .collect()
}
