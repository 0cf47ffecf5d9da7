//! Where orders live, in their table.

use rusqlite::{Connection, OptionalExtension};

use super::row::StoredRow;
use crate::domain::Fingerprint;
use crate::store::homes::{Home, OrderRow};
use crate::store::rows::CorruptRow;

/// Reads where an order lives.
pub(super) fn of(connection: &Connection, order: Fingerprint) -> rusqlite::Result<Option<Home>> {
    let mut statement = connection.prepare_cached("SELECT home, ref FROM homes WHERE order_key = ?1")?;
    let found = statement.query_row([order.0], |row| Ok(Home::of_columns(row.get(0)?, row.get(1)?)?));
    found.optional()
}

/// Claims the home of an order; `false`: it has one.
pub(super) fn claim(connection: &Connection, order: Fingerprint, home: Home) -> rusqlite::Result<bool> {
    let (home, reference) = home.columns();
    let claim = "INSERT INTO homes (order_key, home, ref) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    Ok(connection.prepare_cached(claim)?.execute((order.0, home, reference))? == 1)
}

/// Gives the home of an order up.
pub(super) fn release(connection: &Connection, order: Fingerprint) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM homes WHERE order_key = ?1")?.execute([order.0]).map(drop)
}

/// Reads what stands under an order, within a transaction or with what is older than its home.
pub(super) fn standing(connection: &Connection, order: Fingerprint) -> rusqlite::Result<OrderRow> {
    Ok(match of(connection, order)? {
        None => OrderRow::Free,
        Some(Home::Operation(id)) => match StoredRow::by_id(connection, id)? {
            Some(row) => OrderRow::Operation(Box::new(row)),
            None => Err(CorruptRow("ref"))?,
        },
        Some(Home::Entry(_) | Home::Imported(_)) => OrderRow::Elsewhere,
    })
}
