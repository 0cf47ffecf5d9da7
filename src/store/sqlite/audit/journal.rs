//! Entries of the journal and what stands around them, as an audit reads them.

use rusqlite::{Connection, Row};

use super::rows;
use crate::store::Digest;
use crate::store::audit::{AroundEntry, Findings};
use crate::store::sqlite::journal::EntryRow;

/// In the order and number of [`EntryRow::SLICE`].
const AROUND: &str = "SELECT entry, order_key, place, \
    EXISTS (SELECT 1 FROM reserved_ids r WHERE r.order_key = j.order_key), \
    EXISTS (SELECT 1 FROM operations o WHERE o.order_key = j.order_key) \
    FROM journal j WHERE entry > ?1 ORDER BY entry LIMIT ?2";

fn around(row: &Row<'_>) -> rusqlite::Result<AroundEntry> {
    Ok(AroundEntry {
        order_key: Digest(row.get(1)?),
        list_place: row.get(2)?,
        reserved: row.get(3)?,
        operation: row.get(4)?,
        // An index is unique.
        named_twice: false,
    })
}

/// Looks at entries: see [`super::Slice`].
pub(super) fn slice(connection: &Connection, after: i64, findings: &mut Findings) -> rusqlite::Result<Option<i64>> {
    let entries = rows(connection, EntryRow::SLICE, after, EntryRow::read)?;
    let around = rows(connection, AROUND, after, around)?;
    let last = entries.last().map(|((_, entry), _)| *entry);
    let together = entries.into_iter().zip(around);
    findings.journal(together.map(|((place, row), (_, around))| (place, row.zip(around))).collect());
    Ok(last)
}
