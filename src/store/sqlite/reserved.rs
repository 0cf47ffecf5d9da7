//! Reservations of `order_id`s for v1, by their order key.

use rusqlite::Connection;

use crate::store::{Digest, Reservations};

/// Whether an order is reserved.
pub(super) fn holds(connection: &Connection, order_key: Digest) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM reserved_ids WHERE order_key = ?1)")?
        .query_row([order_key.0], |row| row.get(0))
}

/// Reserves orders; those that name an operation or an entry of the journal are left alone.
pub(super) fn reserve(connection: &Connection, order_keys: &[Digest]) -> rusqlite::Result<Reservations> {
    let mut taken = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM operations WHERE order_key = ?1) \
         OR EXISTS (SELECT 1 FROM journal WHERE order_key = ?1)",
    )?;
    let mut insert =
        connection.prepare_cached("INSERT INTO reserved_ids (order_key) VALUES (?1) ON CONFLICT DO NOTHING")?;
    let mut reservations = Reservations::default();
    for key in order_keys {
        if taken.query_row([key.0], |row| row.get(0))? {
            reservations.operations += 1;
        } else if insert.execute([key.0])? == 1 {
            reservations.new += 1;
        } else {
            reservations.known += 1;
        }
    }
    Ok(reservations)
}

/// Takes a reservation back: an operation of this order turns out to have been there before it.
pub(super) fn release(connection: &Connection, order_key: Digest) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM reserved_ids WHERE order_key = ?1")?.execute([order_key.0]).map(drop)
}
