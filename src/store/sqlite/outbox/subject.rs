//! What callbacks are about: operations and entries of the journal, and where their merchants are told.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::domain::{MerchantId, OrderId};
use crate::store::rows::{NotOurs, OrNot, direction_of};
use crate::store::sqlite::journal::EntryRow;
use crate::store::sqlite::row::StoredRow;
use crate::store::tasks::ClaimedTask;
use crate::store::{Addressee, CallbackSubject, Digest, EntryId};

/// What a callback is about, still sealed.
pub(super) enum Subject {
    Operation(Box<StoredRow>),
    Entry(Box<EntryRow>),
}

/// A callback's random number, and what it is about; `None` where that is missing or unreadable.
pub(super) type Known = Option<(i64, Subject)>;

/// Reads the random numbers of claimed callbacks and what they are about.
pub(super) fn of_all(
    connection: &Connection,
    claimed: Vec<ClaimedTask>,
) -> rusqlite::Result<Vec<(ClaimedTask, Known)>> {
    let mut nonce = connection.prepare_cached("SELECT nonce FROM callbacks WHERE key = ?1")?;
    claimed
        .into_iter()
        .map(|task| {
            let nonce: Option<i64> = nonce.query_row([task.key], |row| row.get(0)).optional()?;
            let subject = of(connection, task.key)?;
            Ok((task, nonce.zip(subject)))
        })
        .collect()
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
        // A column of another type: of this row alone.
        Err(error) if error.sqlite_error_code().is_none() => Ok(None),
        read => read,
    }
}

/// Whom the order of a key names, if it was made from v1 with the relay's address.
pub(super) fn addressee(
    connection: &Connection,
    order: Digest,
) -> rusqlite::Result<Option<Result<Addressee, &'static str>>> {
    let operation = connection
        .prepare_cached(
            "SELECT merchant, direction, order_id, api_key, NULL FROM operations WHERE transaction_id = \
             (SELECT ref FROM homes WHERE order_key = ?1 AND home = 0) AND relayed = 1",
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

fn named(row: &Row<'_>) -> rusqlite::Result<Result<Addressee, &'static str>> {
    let (merchant, direction, order_id): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (api_key, entry) = (row.get(3)?, row.get::<_, Option<i64>>(4)?);
    let understood = || {
        Ok(Addressee {
            merchant: MerchantId::new(&merchant).or_not("merchant")?,
            direction: direction_of(direction).ok_or(NotOurs("direction"))?,
            order_id: OrderId::new(&order_id).or_not("order_id")?,
            api_key,
            entry: entry.map(EntryId),
        })
    };
    Ok(understood().map_err(|NotOurs(column)| column))
}
