//! The mark of a store that was copied to a database: whoever opened the file would answer without the other one.
//!
//! It is a table, there as long as the store is marked. No migration makes it: a store that was never moved knows nothing of
//! it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use crate::store::OpenError;

/// Where a store was moved to, for people; `None`: it was not.
///
/// # Errors
/// The disk fails.
pub(super) fn target(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let marked = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'moved')";
    if !connection.query_row(marked, [], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
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
    clear(connection)?;
    connection.execute_batch("CREATE TABLE moved (target TEXT NOT NULL) STRICT")?;
    connection.execute("INSERT INTO moved VALUES (?1)", [to]).map(drop)
}

/// Takes the mark away.
///
/// # Errors
/// The disk fails.
pub(super) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DROP TABLE IF EXISTS moved")
}
