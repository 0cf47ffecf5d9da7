//! The durable queue of provider jobs.

use rusqlite::{Connection, OptionalExtension};

use super::row::StoredRow;
use crate::domain::{TransactionId, UnixMillis};

/// A claimed job with its operation, still sealed.
#[derive(Debug)]
pub(super) struct ClaimedRow {
    pub(super) row: StoredRow,
    pub(super) attempts: u32,
}

/// Takes what is due, earliest first, and makes it due again at `lease_until`.
pub(super) fn claim(
    connection: &Connection,
    now: UnixMillis,
    lease_until: UnixMillis,
    limit: i64,
) -> rusqlite::Result<Vec<ClaimedRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT transaction_id, attempts FROM provider_jobs WHERE due_at <= ?1 ORDER BY due_at, transaction_id LIMIT ?2",
    )?;
    let due: Vec<(i64, u32)> =
        statement.query_map((now.0, limit), |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut lease = connection
        .prepare_cached("UPDATE provider_jobs SET due_at = ?2, attempts = attempts + 1 WHERE transaction_id = ?1")?;
    let mut claimed = Vec::with_capacity(due.len());
    for (id, attempts) in due {
        lease.execute((id, lease_until.0))?;
        let row = TransactionId::from_stored(id).map(|id| StoredRow::by_id(connection, id)).transpose()?.flatten();
        if let Some(row) = row {
            claimed.push(ClaimedRow { row, attempts });
        }
    }
    Ok(claimed)
}

/// Makes every claimed job due again. One gateway serves a file, so that whoever claimed them is gone when it opens.
pub(super) fn release(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE provider_jobs SET due_at = 0 WHERE attempts > 0", []).map(drop)
}

/// Ends a job; nothing happens when there is none.
pub(super) fn end(connection: &Connection, id: TransactionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM provider_jobs WHERE transaction_id = ?1")?
        .execute([id.to_stored()])
        .map(drop)
}

/// When the earliest job is due.
pub(super) fn next(connection: &Connection) -> rusqlite::Result<Option<UnixMillis>> {
    connection
        .prepare_cached("SELECT due_at FROM provider_jobs ORDER BY due_at LIMIT 1")?
        .query_row([], |row| row.get(0).map(UnixMillis))
        .optional()
}
