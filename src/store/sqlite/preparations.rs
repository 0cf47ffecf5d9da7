//! What providers prepared for customers of pending deposits, in its table.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::TransactionId;

/// Keeps the preparation of an operation, in place of an earlier one.
pub(super) fn put(connection: &Connection, id: TransactionId, sealed: &[u8]) -> rusqlite::Result<()> {
    let put = "INSERT INTO preparations (transaction_id, sealed) VALUES (?1, ?2) \
        ON CONFLICT DO UPDATE SET sealed = excluded.sealed";
    connection.prepare_cached(put)?.execute((id.to_stored(), sealed)).map(drop)
}

/// Reads the sealed preparation of an operation.
pub(super) fn of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT sealed FROM preparations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}

/// Removes the preparation of an operation.
pub(super) fn remove(connection: &Connection, id: TransactionId) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM preparations WHERE transaction_id = ?1")?.execute([id.to_stored()]).map(drop)
}
