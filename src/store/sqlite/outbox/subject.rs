//! The subjects of callbacks: operations and journal entries, and the addresses of their merchants.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::domain::{Fingerprint, MerchantId, OrderId};
use crate::store::backend::Subject;
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::sqlite::journal::EntryRow;
use crate::store::sqlite::row::StoredRow;
use crate::store::{CallbackSubject, EntryId, RelayTarget};

/// Reads the random numbers of callbacks and their subjects by their keys; leaves out those that do not exist or cannot
/// be decoded.
pub(in crate::store::sqlite) fn of_all(
    connection: &Connection,
    keys: &[i64],
) -> rusqlite::Result<HashMap<i64, (i64, Subject)>> {
    let mut nonce = connection.prepare_cached("SELECT nonce FROM callbacks WHERE key = ?1")?;
    let mut found = HashMap::with_capacity(keys.len());
    for key in keys {
        let nonce: Option<i64> = nonce.query_row([key], |row| row.get(0)).optional()?;
        found.extend(nonce.zip(of(connection, *key)?).map(|subject| (*key, subject)));
    }
    Ok(found)
}

fn of(connection: &Connection, key: i64) -> rusqlite::Result<Option<Subject>> {
    let read = match CallbackSubject::from_key(key) {
        None => Ok(None),
        Some(CallbackSubject::Operation(id)) => {
            StoredRow::by_id(connection, id).map(|row| row.map(|row| Subject::Operation(Box::new(row))))
        }
        Some(CallbackSubject::Entry(id)) => {
            EntryRow::by_id(connection, id).map(|row| row.map(|row| Subject::Entry(Box::new(row))))
        }
    };
    match read {
        // A column of another type: an error of this row alone.
        Err(error) if error.sqlite_error_code().is_none() => Ok(None),
        read => read,
    }
}

/// Returns the merchant and the operation that the order of a key names, if v1 created it with the relay's address.
pub(in crate::store::sqlite) fn relay_target(
    connection: &Connection,
    order: Fingerprint,
) -> rusqlite::Result<Option<Result<RelayTarget, &'static str>>> {
    let operation = connection
        .prepare_cached(
            "SELECT x.merchant, x.direction, o.order_id, x.api_key, NULL \
             FROM operations o JOIN contexts x ON x.id = o.context WHERE o.transaction_id = \
             (SELECT ref FROM homes WHERE order_key = ?1 AND home = 0) AND x.origin = 2",
        )?
        .query_row([order.0], named)
        .optional()?;
    if operation.is_some() {
        return Ok(operation);
    }
    connection
        .prepare_cached(
            "SELECT merchant, direction, order_id, api_key, entry FROM journal WHERE entry = \
             (SELECT ref FROM homes WHERE order_key = ?1 AND home = 1)",
        )?
        .query_row([order.0], named)
        .optional()
}

fn named(row: &Row<'_>) -> rusqlite::Result<Result<RelayTarget, &'static str>> {
    let (merchant, direction, order_id): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (api_key, entry) = (row.get(3)?, row.get::<_, Option<i64>>(4)?);
    let decoded = || {
        Ok(RelayTarget {
            merchant: MerchantId::new(&merchant).or_corrupt("merchant")?,
            direction: direction_of(direction).ok_or(CorruptRow("direction"))?,
            order_id: OrderId::new(&order_id).or_corrupt("order_id")?,
            api_key,
            entry: entry.map(EntryId),
        })
    };
    Ok(decoded().map_err(|CorruptRow(column)| column))
}
