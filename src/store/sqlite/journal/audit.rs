//! What an audit looks at in the journal.

use rusqlite::{Connection, Row};

use super::row::{EntryRow, place_of};
use crate::store::vault::Vault;
use crate::store::{Audit, Digest, Entry, Progress, StoreError};

/// How many entries there are.
pub(in crate::store::sqlite) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT count(*) FROM journal", [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// What stands around an entry.
struct Surroundings {
    order_key: Digest,
    place: Option<i64>,
    reserved: bool,
    operation: bool,
}

impl Surroundings {
    const SELECT: &str = "SELECT order_key, place, \
        EXISTS (SELECT 1 FROM reserved_ids r WHERE r.order_key = j.order_key), \
        EXISTS (SELECT 1 FROM operations o WHERE o.order_key = j.order_key) \
        FROM journal j WHERE entry > ?1 ORDER BY entry LIMIT ?2";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { order_key: Digest(row.get(0)?), place: row.get(1)?, reserved: row.get(2)?, operation: row.get(3)? })
    }
}

/// Looks at the next `limit` entries; gives the last number, or `None` after the last slice.
///
/// # Errors
/// The journal cannot be read.
pub(in crate::store::sqlite) fn slice(
    connection: &Connection,
    vault: &Vault,
    after: i64,
    limit: i64,
    found: &mut Audit,
) -> rusqlite::Result<Option<i64>> {
    let rows: Vec<_> = connection
        .prepare_cached(EntryRow::SLICE)?
        .query_map((after, limit), |row| Ok((row.get::<_, i64>(0)?, EntryRow::read(row).ok())))?
        .collect::<Result<_, _>>()?;
    let surroundings: Vec<_> = connection
        .prepare_cached(Surroundings::SELECT)?
        .query_map((after, limit), |row| Ok(Surroundings::read(row).ok()))?
        .collect::<Result<_, _>>()?;
    let last = rows.last().map(|(id, _)| *id);
    for ((id, row), around) in rows.into_iter().zip(surroundings) {
        found.journal += 1;
        match (row, around) {
            (Some(row), Some(around)) => entry(vault, row, &around, found),
            _ => found.problem(format!("journal entry {id}: a column is not ours")),
        }
    }
    Ok(last)
}

/// That its state has what it demands, and that what is sealed opens, is shown by decoding it.
fn entry(vault: &Vault, row: EntryRow, around: &Surroundings, found: &mut Audit) {
    let id = row.id().0;
    let Entry { id: number, intent, progress } = match row.decode(vault) {
        Ok(entry) => entry,
        Err(StoreError::Unavailable(text) | StoreError::Corrupt(text)) => return found.problem(text),
    };
    let key = vault.comparer().order_key(&intent.merchant, intent.direction, &intent.order_id);
    let place = matches!(progress, Progress::Answered(_)).then(|| place_of(intent.created_at, number));
    let problems = [
        (key != around.order_key, "its order key is not the one of its order_id"),
        (place != around.place, "its place in the list is not the one of its time"),
        (around.reserved, "its order_id is reserved for v1 as well"),
        (around.operation, "its order_id names an operation of the embedded engine as well"),
    ];
    for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        found.problem(format!("journal entry {id}: {problem}"));
    }
}
