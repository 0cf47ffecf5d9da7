//! Waits for the sessions of older releases, ends them and narrows the store: see [`presence`](super::presence).

use deadpool_postgres::Transaction;

use super::errors::PgError;
use super::node::PgNode;
use super::presence::LOCK;
use super::schema::{FORMATS, in_common};
use super::transaction::get;
use crate::store::StoreError;
use crate::store::format::{self, FORMAT};

/// How long narrowing may wait for a lock on a table: requests wait behind it.
const LOCK_TIMEOUT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '2s'";

/// Selects from the sessions of older releases on this database.
fn of_older(columns: &str, condition: &str) -> String {
    format!(
        "SELECT {columns} FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database \
         LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND objsubid = 2 AND granted \
         AND pg_database.datname = current_database() AND classid::bigint = {LOCK} AND objid::bigint < {FORMAT}{condition}"
    )
}

/// Reports whether a session of an older release did something in the last second. One that began after this one is not waited
/// for: it meets the new oldest format and is refused, again and again where a unit restarts an older gateway; and if it came
/// just before the lock-out, its gateway leaves within seconds.
///
/// # Errors
/// The database does not respond.
pub(super) async fn older_is_active(node: &PgNode) -> Result<bool, StoreError> {
    const ACTIVE: &str = " AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '1 second') \
        AND (backend_start < (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())) IS NOT FALSE";
    let query = of_older("count(*) > 0", ACTIVE);
    node.with_client(async |client| get(&client.query_one(&query, &[]).await?, 0)).await
}

/// Ends the sessions of older releases, and narrows the store. Returns `false`, with nothing changed, if one of them is
/// still there, if a table is busy, or if older releases are not locked out.
///
/// # Errors
/// The database does not respond.
pub(super) async fn narrow(node: &PgNode) -> Result<bool, StoreError> {
    let narrowed = async {
        let mut client = node.client().await?;
        client.query(&of_older("pg_terminate_backend(pid)", ""), &[]).await?;
        let transaction = client.transaction().await?;
        let narrowed = narrow_in(&transaction).await?;
        if narrowed {
            transaction.commit().await?;
        }
        Ok(narrowed)
    };
    match narrowed.await {
        Err(fault) if PgError::is_lock_timeout(&fault) => Ok(false),
        narrowed => narrowed.map_err(PgError::reported),
    }
}

async fn narrow_in(transaction: &Transaction<'_>) -> Result<bool, PgError> {
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&i64::from(LOCK)]).await?;
    for older in 0..i32::try_from(FORMAT).unwrap_or(i32::MAX) {
        let locked = transaction.query_one("SELECT pg_try_advisory_xact_lock($1, $2)", &[&LOCK, &older]).await?;
        if !get::<bool>(&locked, 0)? {
            return Ok(false);
        }
    }
    if !format::note_narrowed(&in_common(transaction)).await? {
        return Ok(false);
    }
    transaction.batch_execute(FORMATS.last().map_or("", |steps| steps.narrows)).await?;
    Ok(true)
}
