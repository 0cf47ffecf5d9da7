//! From version 5 to 6: keys of orders by which neighbours lie together (see `0006.sql`).

use rusqlite::{Connection, Row};

use super::row::direction_of;
use crate::domain::{MerchantId, OrderId};
use crate::store::Digest;
use crate::store::vault::{Column, Place, Unsealable, Vault};

/// The version whose keys these are.
pub(super) const SINCE_VERSION: i64 = 6;

/// So many rows are read before they are written.
const SLICE: u32 = 10_000;

/// After so many rows it is told how far this is.
const REPORTED: usize = 1_000_000;

/// Makes the keys of all operations and entries anew, and their indexes. A row whose order cannot be understood stays as
/// it is: no request can mean it, and the audit tells of it.
pub(super) fn rekey(connection: &Connection, vault: &Vault) -> rusqlite::Result<()> {
    connection.execute_batch("DROP INDEX operations_by_order; DROP INDEX journal_by_order")?;
    rekey_all(connection, vault, &OPERATIONS)?;
    rekey_all(connection, vault, &JOURNAL)?;
    connection.execute_batch(
        "CREATE UNIQUE INDEX operations_by_order ON operations (sorted_key); \
         CREATE UNIQUE INDEX journal_by_order ON journal (sorted_key)",
    )
}

/// The statements for a table.
struct Table {
    name: &'static str,
    /// The rows after an id; the second parameter is how many.
    select: &'static str,
    /// Parameters: id, key, body.
    update: &'static str,
}

const OPERATIONS: Table = Table {
    name: "operations",
    select: "SELECT transaction_id, sorted_key, merchant, direction, order_id, NULL FROM operations \
        WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2",
    update: "UPDATE operations SET sorted_key = ?2 WHERE transaction_id = ?1 AND ?3 IS NULL",
};

const JOURNAL: Table = Table {
    name: "journal",
    select: "SELECT entry, sorted_key, merchant, direction, order_id, body FROM journal \
        WHERE entry > ?1 ORDER BY entry LIMIT ?2",
    update: "UPDATE journal SET sorted_key = ?2, body = ?3 WHERE entry = ?1",
};

fn rekey_all(connection: &Connection, vault: &Vault, table: &Table) -> rusqlite::Result<()> {
    let mut select = connection.prepare(table.select)?;
    let mut update = connection.prepare(table.update)?;
    let (mut last, mut done) = (i64::MIN, 0);
    loop {
        let rows = select.query_map((last, SLICE), Keyed::read)?.collect::<rusqlite::Result<Vec<_>>>()?;
        let Some(newest) = rows.last() else { return Ok(()) };
        last = newest.id;
        for row in &rows {
            if let Some((key, body)) = row.anew(vault) {
                update.execute((row.id, key.0, body))?;
            }
        }
        done += rows.len();
        if done % REPORTED < rows.len() {
            tracing::info!(table = table.name, done, "the store's keys of orders are made anew");
        }
    }
}

struct Keyed {
    id: i64,
    key: [u8; 16],
    merchant: String,
    direction: i64,
    order_id: String,
    /// Sealed for the order's key.
    body: Option<Vec<u8>>,
}

impl Keyed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (id, key, merchant) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Self { id, key, merchant, direction: row.get(3)?, order_id: row.get(4)?, body: row.get(5)? })
    }

    /// The key as it is to be, and the body sealed for it.
    fn anew(&self, vault: &Vault) -> Option<(Digest, Option<Vec<u8>>)> {
        let (merchant, order_id) = (MerchantId::new(&self.merchant).ok()?, OrderId::new(&self.order_id).ok()?);
        let key = vault.comparer().order_key(&merchant, direction_of(self.direction)?, &order_id);
        let resealed = |sealed: &Vec<u8>| {
            let body = vault.open(Column::JournalBody, Place::Order(Digest(self.key)), sealed)?;
            Ok(vault.seal(Column::JournalBody, Place::Order(key), &body))
        };
        match self.body.as_ref().map(resealed) {
            // What cannot be opened cannot be sealed anew.
            Some(Err(Unsealable)) => None,
            Some(Ok(body)) => Some((key, Some(body))),
            None => Some((key, None)),
        }
    }
}
