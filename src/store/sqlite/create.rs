//! The command of a create.

use rusqlite::Connection;

use super::reserved;
use super::row::{NewRow, StoredRow};
use super::transaction::{SqliteRows, at_once};
use crate::store::Verdict;
use crate::store::create::{self, Inserted};

/// What a create met.
pub(super) enum Created {
    Stored {
        verdict: Verdict,
        /// A callback was queued.
        queued: bool,
    },
    Existing(Box<StoredRow>),
    Reserved,
    IdTaken,
}

/// Creates an operation, or finds what stands in its place: it may be of the same batch, so that the reply is sent after its
/// commit, too.
pub(super) fn create(connection: &Connection, row: &NewRow, nonce: u64) -> rusqlite::Result<Created> {
    Ok(match at_once(create::create(&mut SqliteRows(connection), row, nonce))? {
        Inserted::New { verdict, queued } => Created::Stored { verdict, queued },
        Inserted::Taken if reserved::holds(connection, row.order_key())? => Created::Reserved,
        Inserted::Taken => match StoredRow::by_order(connection, row.order_key())? {
            Some(existing) => Created::Existing(Box::new(existing)),
            None => Created::IdTaken,
        },
    })
}
