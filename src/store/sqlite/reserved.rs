//! Reservations of `order_id`s for v1, by the end of their order key, which is the hash of the order alone.

use rusqlite::Connection;

use crate::store::{Digest, OfV1, Reservations};

/// The hash of the order in its key.
fn hash_in(Digest(key): Digest) -> [u8; 10] {
    let (_, hash) = key.split_last_chunk().expect("a key is longer than the hash in it");
    *hash
}

/// Whether an order is reserved.
pub(super) fn holds(connection: &Connection, order_key: Digest) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM reserved_ids WHERE order_hash = ?1)")?
        .query_row([hash_in(order_key)], |row| row.get(0))
}

/// What an order is to v1, in one look at the journal and at the reservations.
pub(super) fn or_entry(connection: &Connection, order_key: Digest) -> rusqlite::Result<Option<OfV1>> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM journal WHERE sorted_key = ?1), \
         EXISTS (SELECT 1 FROM reserved_ids WHERE order_hash = ?2)",
    )?;
    statement.query_row((order_key.0, hash_in(order_key)), |row| {
        let (entry, reserved): (bool, bool) = (row.get(0)?, row.get(1)?);
        Ok(if entry { Some(OfV1::Entry) } else { reserved.then_some(OfV1::Reservation) })
    })
}

/// Reserves orders; those that name an operation or an entry of the journal are left alone.
pub(super) fn reserve(connection: &Connection, order_keys: &[Digest]) -> rusqlite::Result<Reservations> {
    let mut taken = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM operations WHERE sorted_key = ?1) \
         OR EXISTS (SELECT 1 FROM journal WHERE sorted_key = ?1)",
    )?;
    let mut insert =
        connection.prepare_cached("INSERT INTO reserved_ids (order_hash) VALUES (?1) ON CONFLICT DO NOTHING")?;
    let mut reservations = Reservations::default();
    for key in order_keys {
        if taken.query_row([key.0], |row| row.get(0))? {
            reservations.operations += 1;
        } else if insert.execute([hash_in(*key)])? == 1 {
            reservations.new += 1;
        } else {
            reservations.known += 1;
        }
    }
    Ok(reservations)
}

/// Takes a reservation back: an operation of this order turns out to have been there before it.
pub(super) fn release(connection: &Connection, order_key: Digest) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM reserved_ids WHERE order_hash = ?1")?.execute([hash_in(order_key)]).map(drop)
}
