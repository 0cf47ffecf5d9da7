//! Reads journal entries and related rows for an audit.

use rusqlite::Connection;

use super::slice::{compare_homes, rows};
use crate::store::audit::{AroundEntry, AuditFindings};
use crate::store::sqlite::journal::EntryRow;

/// Checks entries: see [`super::Slice`].
pub(super) fn slice(
    connection: &Connection,
    after: i64,
    findings: &mut AuditFindings,
) -> rusqlite::Result<Option<i64>> {
    let entries = rows(connection, EntryRow::SLICE, after, EntryRow::read)?;
    let last = entries.last().map(|((_, entry), _)| *entry);
    // A unique index prevents it.
    let around = || AroundEntry { named_twice: false };
    findings.journal(entries.into_iter().map(|(place, row)| (place, row.map(|row| (row, around())))).collect());
    compare_homes(connection, findings)?;
    Ok(last)
}
