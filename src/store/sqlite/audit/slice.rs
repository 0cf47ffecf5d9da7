//! Reads a slice of rows, and the homes that its rows must have.

use rusqlite::{Connection, Row};

use crate::domain::Fingerprint;
use crate::store::EntryId;
use crate::store::audit::{AuditFindings, Found};
use crate::store::create::Home;
use crate::store::sqlite::row;

/// The most rows in memory at once.
const SLICE: i64 = 500;

/// Reads the next rows of a statement whose first column is a number, in its order. A store in one file has no buckets.
pub(super) fn rows<T>(
    connection: &Connection,
    statement: &str,
    after: i64,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<Found<T>>> {
    let mut statement = connection.prepare_cached(statement)?;
    statement.query_map((after, SLICE), |row| Ok(((0, row.get(0)?), read(row).ok())))?.collect()
}

/// Checks the homes that the rows of a slice must have.
pub(super) fn compare_homes(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    // A home that cannot be decoded counts as another one.
    let home = |(order, _): &(Fingerprint, Home)| match row::home_of(connection, *order) {
        Err(error) if error.sqlite_error_code().is_none() => Ok(Some(UNKNOWN)),
        found => found,
    };
    let found = findings.homes.iter().map(home).collect::<rusqlite::Result<Vec<_>>>()?;
    findings.compare_homes(found);
    Ok(())
}

/// A number that no entry has.
const UNKNOWN: Home = Home::Entry(EntryId(i64::MIN));
