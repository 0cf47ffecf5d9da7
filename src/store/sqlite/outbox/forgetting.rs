//! Deletes callbacks that were delivered long ago.

use rusqlite::Connection;

use crate::domain::UnixMillis;
use crate::store::rows::callback::{DELIVERED, FAILED};

/// Deletes callbacks with their attempts, and records up to which time: an audit does not expect them.
pub(in crate::store::sqlite) fn forget(
    connection: &Connection,
    until: UnixMillis,
    limit: usize,
) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut keys: Vec<i64> = Vec::new();
    for state in [DELIVERED, FAILED] {
        let mut old = connection.prepare_cached(OLD)?;
        let found = old.query_map((state, until.0, limit), |row| row.get(0))?;
        keys.extend(found.collect::<Result<Vec<i64>, _>>()?);
    }
    if keys.is_empty() {
        return Ok(0);
    }
    let mut forget = connection.prepare_cached("DELETE FROM callbacks WHERE key = ?1")?;
    let mut tries = connection.prepare_cached("DELETE FROM callback_tries WHERE key = ?1")?;
    for key in &keys {
        forget.execute([key])?;
        tries.execute([key])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO forgotten VALUES (1, ?1) ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
        )?
        .execute([until.0])?;
    Ok(keys.len())
}

/// Callbacks in a state that were queued until a time, oldest first.
pub(in crate::store::sqlite) const OLD: &str = "SELECT key FROM callbacks INDEXED BY callbacks_by_time \
    WHERE state = ?1 AND queued_at <= ?2 ORDER BY queued_at, key LIMIT ?3";
