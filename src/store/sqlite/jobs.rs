//! The durable queues of provider jobs, one a shop.

use rusqlite::{Connection, OptionalExtension};

use super::row::StoredRow;
use crate::domain::{ShopCode, TransactionId, UnixMillis};
use crate::store::Claim;

/// A claimed job with its operation, still sealed.
#[derive(Debug)]
pub(super) struct ClaimedRow {
    pub(super) row: StoredRow,
    pub(super) attempts: u32,
}

/// Queues a job.
pub(super) fn queue(
    connection: &Connection,
    id: TransactionId,
    shop: &ShopCode,
    due: UnixMillis,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO provider_jobs (transaction_id, shop, due_at, attempts, leased) \
             VALUES (?1, ?2, ?3, 0, 0)",
        )?
        .execute((id.to_stored(), shop.as_str(), due.0))
        .map(drop)
}

/// Takes what is due in a shop, earliest first, and leases it.
pub(super) fn claim(connection: &Connection, claim: &Claim) -> rusqlite::Result<Vec<ClaimedRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT transaction_id, attempts FROM provider_jobs WHERE shop = ?1 AND due_at <= ?2 \
         ORDER BY due_at, transaction_id LIMIT ?3",
    )?;
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let due: Vec<(i64, u32)> = statement
        .query_map((claim.shop.as_str(), claim.now.0, limit), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut lease = connection.prepare_cached(
        "UPDATE provider_jobs SET due_at = ?2, leased = 1, attempts = attempts + 1 WHERE transaction_id = ?1",
    )?;
    let mut claimed = Vec::with_capacity(due.len());
    for (id, attempts) in due {
        lease.execute((id, claim.lease_until.0))?;
        let row = TransactionId::from_stored(id).map(|id| StoredRow::by_id(connection, id)).transpose()?.flatten();
        if let Some(row) = row {
            claimed.push(ClaimedRow { row, attempts });
        }
    }
    Ok(claimed)
}

/// Makes every claimed job due again, and leaves postponed ones at their time. One gateway serves a file, so that whoever
/// claimed them is gone when it opens.
pub(super) fn release(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE provider_jobs SET due_at = 0, leased = 0 WHERE leased <> 0", []).map(drop)
}

/// Ends a lease with another time to be due at; nothing happens when there is no such job.
pub(super) fn postpone(connection: &Connection, id: TransactionId, due: UnixMillis) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE provider_jobs SET due_at = ?2, leased = 0 WHERE transaction_id = ?1")?
        .execute((id.to_stored(), due.0))
        .map(drop)
}

/// Ends a job; nothing happens when there is none.
pub(super) fn end(connection: &Connection, id: TransactionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM provider_jobs WHERE transaction_id = ?1")?
        .execute([id.to_stored()])
        .map(drop)
}

/// The shops with jobs, and when the earliest of each is due: one step of the index a shop, however many jobs there are.
pub(super) fn queues(connection: &Connection) -> rusqlite::Result<Vec<(String, UnixMillis)>> {
    let mut next = connection
        .prepare_cached("SELECT shop, due_at FROM provider_jobs WHERE shop > ?1 ORDER BY shop, due_at LIMIT 1")?;
    let mut queues: Vec<(String, UnixMillis)> = Vec::new();
    loop {
        let last = queues.last().map_or("", |(shop, _)| shop);
        let Some(queue) = next.query_row([last], |row| Ok((row.get(0)?, UnixMillis(row.get(1)?)))).optional()? else {
            return Ok(queues);
        };
        queues.push(queue);
    }
}
