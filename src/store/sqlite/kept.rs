//! Lists of kept names in their table.

use rusqlite::{Connection, OptionalExtension};

use crate::store::rows::kept::names_of;
pub(super) use crate::store::rows::kept::{KeptList, KeptLists, Names};

/// Stores a list, unless it is there.
pub(super) fn store(connection: &Connection, list: &KeptList) -> rusqlite::Result<()> {
    let Some(names) = &list.unstored else { return Ok(()) };
    connection
        .prepare_cached("INSERT INTO kept_names (id, names) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((list.id, names))
        .map(drop)
}

/// Reads a list; `None` when it is missing or not a list of names.
pub(super) fn load(connection: &Connection, id: i64) -> rusqlite::Result<Option<Names>> {
    let json: Option<String> = connection
        .prepare_cached("SELECT names FROM kept_names WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(json.as_deref().and_then(names_of))
}
