//! Reservations of `order_id`s for v1, by the key of the order.

use rusqlite::Connection;

use crate::domain::Bucket;
use crate::store::{Digest, OfV1, Reservations};

/// Whether an order is reserved.
pub(super) fn holds(connection: &Connection, order_key: Digest) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM reserved_ids WHERE order_key = ?1)")?
        .query_row([order_key.0], |row| row.get(0))
}

/// What an order is to v1, in one look at the journal and at the reservations.
pub(super) fn or_entry(connection: &Connection, order_key: Digest) -> rusqlite::Result<Option<OfV1>> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM journal WHERE order_key = ?1), \
         EXISTS (SELECT 1 FROM reserved_ids WHERE order_key = ?1)",
    )?;
    statement.query_row([order_key.0], |row| {
        let (entry, reserved): (bool, bool) = (row.get(0)?, row.get(1)?);
        Ok(if entry { Some(OfV1::Entry) } else { reserved.then_some(OfV1::Reservation) })
    })
}

/// Reserves orders of a bucket's merchant; those that name an operation or an entry of the journal are left alone.
pub(super) fn reserve(
    connection: &Connection,
    bucket: Bucket,
    order_keys: &[Digest],
) -> rusqlite::Result<Reservations> {
    let mut taken = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM operations WHERE order_key = ?1) \
         OR EXISTS (SELECT 1 FROM journal WHERE order_key = ?1)",
    )?;
    let mut insert = connection
        .prepare_cached("INSERT INTO reserved_ids (order_key, bucket) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    let mut reservations = Reservations::default();
    for key in order_keys {
        if taken.query_row([key.0], |row| row.get(0))? {
            reservations.operations += 1;
        } else if insert.execute((key.0, bucket.number()))? == 1 {
            reservations.new += 1;
        } else {
            reservations.known += 1;
        }
    }
    Ok(reservations)
}
