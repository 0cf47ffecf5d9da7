//! The schema, which releases add to at start, one node at a time, and the store's data keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::errors::PgError;
use super::node::PgNode;
use super::presence::LOCK;
use super::server;
use super::transaction::{Executor, PgTransaction, get};
use crate::clock::Random;
use crate::store::format::{self, FormatCheck, FormatSteps, Formats};
use crate::store::secret_file::wrapping_keys;
use crate::store::sql::CorruptRow;
use crate::store::vault::{self, Purpose, Rewrap, Vault, VaultError, WrappedKey};
use crate::store::{Holds, OpenError, Rewrapped, StoreAccess, StoreFormat, backup_mark};
use crate::store_settings::{PostgresUrl, StoreKeys};

/// The formats, oldest first. Those that were released never change.
pub(super) const FORMATS: &[FormatSteps] = &[
    FormatSteps { adds: include_str!("0001.sql"), narrows: "" },
    #[cfg(feature = "next-format")]
    FormatSteps { adds: include_str!("next_adds.sql"), narrows: include_str!("next_narrows.sql") },
];

/// How long a step may wait for a table: requests wait behind it. Then they go first, and the steps are tried again, for less
/// than the time that other nodes wait for this one.
const BEFORE_STEPS: &str = "SET LOCAL lock_timeout = '2s'; SAVEPOINT steps";
pub(super) const MAX_STEP_TIME: Duration = Duration::from_secs(40);
const STEP_PAUSE: Duration = Duration::from_millis(500);

/// A store that is ready for use.
pub(super) struct PreparedStore {
    pub(super) vault: Vault,
    pub(super) holds: Holds,
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Created and added to as needed.
    Serve,
    /// Required to be there: no store is created, and only to adopt one is added to.
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

/// Adds to the store what this release needs and unlocks its vault, in one transaction. From then on, connections of this
/// node are refused once this release is locked out.
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
    let (prepared, oldest) = exclusively(node, url, prepare).await?;
    node.oldest.set(oldest);
    Ok(prepared)
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
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&i64::from(LOCK)]).await?;
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
) -> Result<(PreparedStore, u32), OpenFailure> {
    let store = PathBuf::from(url.to_string());
    let formats = read_formats(transaction, &store).await?;
    let check: FormatCheck = match mode {
        OpenMode::Serve => Formats::require_served,
        OpenMode::Beside(StoreAccess::Adopt) => Formats::require_present,
        OpenMode::Beside(StoreAccess::Read | StoreAccess::Change) => Formats::require_upgraded,
    };
    check(&formats, FORMATS, &store).map_err(OpenFailure::Open)?;
    add(transaction, FORMATS, &store, formats.count(), MAX_STEP_TIME).await?;
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
    let oldest = format::oldest(&in_common(transaction)).await?;
    Ok((PreparedStore { vault, holds }, oldest))
}

async fn rewrap_in(
    transaction: &Transaction<'_>,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
) -> Result<Rewrapped, OpenFailure> {
    let store = PathBuf::from(url.to_string());
    let formats = read_formats(transaction, &store).await?;
    formats.require_upgraded(FORMATS, &store).map_err(OpenFailure::Open)?;
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

/// Returns the transaction for statements that both databases have in common.
pub(super) fn in_common<'a>(transaction: &'a Transaction<'a>) -> PgTransaction<'a> {
    PgTransaction { executor: Executor::Transaction(transaction), ahead: 0 }
}

/// Reads the formats of the store; there are none if there is no store.
///
/// # Errors
/// An unreleased build made the store, or the database fails.
pub(super) async fn read_formats(transaction: &Transaction<'_>, store: &Path) -> Result<Formats, OpenFailure> {
    const FOUND: &str =
        "SELECT to_regclass('paybridge_formats') IS NOT NULL, to_regclass('paybridge_schema') IS NOT NULL";
    let found = transaction.query_one(FOUND, &[]).await?;
    let other_build = || OpenFailure::Open(OpenError::OtherBuild { path: store.into() });
    match (get(&found, 0)?, get(&found, 1)?) {
        (true, _) => match format::load(&in_common(transaction)).await? {
            formats if formats.count() == 0 => Err(other_build()),
            formats => Ok(formats),
        },
        (false, true) => Err(other_build()),
        (false, false) => Ok(Formats::default()),
    }
}

/// Reads the formats that a store names, whether or not this release can serve it.
///
/// # Errors
/// There is no store, or the database does not respond.
pub(super) async fn read_format(node: &PgNode, url: &PostgresUrl) -> Result<StoreFormat, OpenError> {
    let store = PathBuf::from(url.to_string());
    let formats = exclusively(node, url, async |transaction| read_formats(transaction, &store).await).await?;
    formats.stated().ok_or(OpenError::Missing { path: store })
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

const INSERT_KEY: &str = "INSERT INTO data_keys (id, purpose, wrapped) VALUES ($1, $2, $3)";

/// Stores the data keys of a new store.
///
/// # Errors
/// The database fails.
pub(super) async fn insert_keys(transaction: &Transaction<'_>, keys: &[WrappedKey]) -> Result<(), PgError> {
    for key in keys {
        let (id, purpose) = (i32::from(key.id), key.purpose.as_str());
        transaction.execute(INSERT_KEY, &[&id, &purpose, &key.wrapped]).await?;
    }
    Ok(())
}

/// Takes the steps that a store lacks which was given `count` formats. Tables that stay locked are tried again for `patience`.
///
/// # Errors
/// The database fails, has tables of another application, or a table of the store stays locked.
pub(super) async fn add(
    transaction: &Transaction<'_>,
    steps: &[FormatSteps],
    store: &Path,
    count: usize,
    patience: Duration,
) -> Result<(), OpenFailure> {
    const BUSY: &str = "a session holds a lock on a table that this release adds to, such as that of pg_dump";
    if count >= steps.len() {
        return Ok(());
    }
    transaction.batch_execute(BEFORE_STEPS).await?;
    let began = Instant::now();
    for tried in 1.. {
        match take_steps(transaction, steps, store, count).await {
            Err(OpenFailure::Fault(fault)) if fault.is_lock_timeout() && began.elapsed() > patience => {
                let reason = format!("{BUSY}: start again when it has ended");
                return Err(OpenFailure::Open(OpenError::Database { store: store.display().to_string(), reason }));
            }
            Err(OpenFailure::Fault(fault)) if fault.is_lock_timeout() => {
                if tried == 1 {
                    tracing::warn!("{BUSY}: the start waits for it");
                }
                transaction.batch_execute("ROLLBACK TO SAVEPOINT steps").await?;
                tokio::time::sleep(STEP_PAUSE).await;
            }
            taken => {
                taken?;
                break;
            }
        }
    }
    format::log_added(count, steps);
    Ok(())
}

async fn take_steps(
    transaction: &Transaction<'_>,
    steps: &[FormatSteps],
    store: &Path,
    count: usize,
) -> Result<(), OpenFailure> {
    let is_new = count == 0;
    let taken = |error| if is_new { refused_if_taken(error, store) } else { error.into() };
    for (format, FormatSteps { adds, narrows }) in (1_usize..).zip(steps).skip(count) {
        transaction.batch_execute(adds).await.map_err(taken)?;
        if is_new {
            transaction.batch_execute(narrows).await?;
        }
        format::note_added(&in_common(transaction), steps.get(..format).unwrap_or_default(), is_new).await?;
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
