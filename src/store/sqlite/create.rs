//! The command of a create.

use rusqlite::Connection;

use super::homes;
use super::row::NewRow;
use super::transaction::{SqliteRows, at_once};
pub(super) use crate::store::create::InsertedRow;
use crate::store::create::{self, Inserted};
use crate::store::homes::OrderRow;

/// Creates an operation, or finds what stands in its place: it may be of the same batch, so that the reply is sent after its
/// commit, too.
pub(super) fn create(connection: &Connection, row: &NewRow, nonce: u64) -> rusqlite::Result<InsertedRow> {
    Ok(match at_once(create::create(&mut SqliteRows(connection), row, nonce))? {
        Inserted::New { verdict, queued } => InsertedRow::Stored { verdict, queued },
        Inserted::Taken => match homes::standing(connection, row.order_key())? {
            OrderRow::Operation(existing) => InsertedRow::Existing(existing),
            OrderRow::Elsewhere => InsertedRow::Reserved,
            OrderRow::Free => InsertedRow::IdTaken,
        },
    })
}
