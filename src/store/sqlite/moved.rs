//! The mark of a store that was copied to a database: whoever opened the file would answer without the other one.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use crate::store::OpenError;

/// Where a store was moved to, for people; `None`: it was not.
///
/// # Errors
/// The disk fails.
pub(super) fn target(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT target FROM moved", [], |row| row.get(0)).optional()
}

/// Refuses a store that was moved.
///
/// # Errors
/// It was, or the disk fails.
pub(super) fn refuse(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match target(connection).map_err(OpenError::sqlite(path))? {
        None => Ok(()),
        Some(to) => Err(OpenError::Moved { path: path.into(), to }),
    }
}

/// Marks a store, within a transaction; one that is marked gets the new mark.
///
/// # Errors
/// The disk fails.
pub(super) fn mark(connection: &Connection, to: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM moved", [])?;
    connection.execute("INSERT INTO moved VALUES (?1)", [to]).map(drop)
}
