//! What providers prepared for customers of pending deposits, in its table.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::TransactionId;
pub(super) use crate::store::rows::preparation::{opened, sealed};

/// Keeps a preparation for a pending deposit; `false` when there is no such deposit.
pub(super) fn keep(connection: &Connection, id: TransactionId, sealed: &[u8]) -> rusqlite::Result<bool> {
    let kept = connection
        .prepare_cached(
            "INSERT INTO preparations (transaction_id, sealed) \
             SELECT transaction_id, ?2 FROM operations WHERE transaction_id = ?1 AND direction = 0 AND status = 0 \
             ON CONFLICT DO UPDATE SET sealed = excluded.sealed",
        )?
        .execute((id.to_stored(), sealed))?;
    Ok(kept == 1)
}

/// Reads the sealed preparation of an operation.
pub(super) fn of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT sealed FROM preparations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}

/// Removes the preparation of an operation that was finished.
pub(super) fn end(connection: &Connection, id: TransactionId) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM preparations WHERE transaction_id = ?1")?.execute([id.to_stored()]).map(drop)
}
