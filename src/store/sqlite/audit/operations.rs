//! Reads operations and related rows for an audit.

use rusqlite::{Connection, Row};

use super::ledger;
use super::slice::{compare_homes, rows};
use crate::store::audit::{Around, AuditFindings};
use crate::store::sqlite::row::StoredRow;

/// In the order and number of [`StoredRow::SLICE`].
const AROUND: &str = "SELECT transaction_id, \
    EXISTS (SELECT 1 FROM callbacks c WHERE c.key = o.transaction_id), \
    EXISTS (SELECT 1 FROM tasks t WHERE t.kind = 0 AND t.key = o.transaction_id), \
    (SELECT sealed FROM preparations p WHERE p.transaction_id = o.transaction_id), \
    counted_day IS NOT NULL, coalesce(finished_at <= (SELECT until FROM forgotten), 0) \
    FROM operations o WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2";

fn around(row: &Row<'_>) -> rusqlite::Result<Around> {
    Ok(Around {
        notified: row.get(1)?,
        job: row.get(2)?,
        preparation: row.get(3)?,
        counted: row.get(4)?,
        forgotten: row.get(5)?,
    })
}

/// Checks operations and their entries: see [`super::Slice`].
pub(super) fn slice(
    connection: &Connection,
    after: i64,
    findings: &mut AuditFindings,
) -> rusqlite::Result<Option<i64>> {
    let operations = rows(connection, StoredRow::SLICE, after, StoredRow::read)?;
    let around = rows(connection, AROUND, after, around)?;
    let last = operations.last().map(|((_, id), _)| *id);
    let entries = ledger::between(connection, after, last.unwrap_or(i64::MAX))?;
    let together = operations.into_iter().zip(around);
    findings.operations(together.map(|((place, row), (_, around))| (place, row.zip(around))).collect(), entries);
    compare_homes(connection, findings)?;
    Ok(last)
}

/// Finds rows without their operation or entry.
pub(super) fn references(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    for (what, of, sql) in MISSING {
        let mut statement = connection.prepare(sql)?;
        let ids: Vec<i64> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for id in ids {
            findings.found.problem(format!("{what} {id}: {of} but does not exist"));
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, id): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
        findings.orphans(&table, id, 1);
    }
    Ok(())
}

/// References to rows that do not exist.
const MISSING: [(&str, &str, &str); 5] = [
    (
        "the context of operation",
        "is named",
        "SELECT transaction_id FROM operations WHERE NOT EXISTS (SELECT 1 FROM contexts WHERE id = context) LIMIT 100",
    ),
    (
        "operation",
        "is a home",
        "SELECT ref FROM homes WHERE home = 0 AND NOT EXISTS (SELECT 1 FROM operations WHERE transaction_id = ref) LIMIT 100",
    ),
    (
        "journal entry",
        "is a home",
        "SELECT ref FROM homes WHERE home = 1 AND NOT EXISTS (SELECT 1 FROM journal WHERE entry = ref) LIMIT 100",
    ),
    (
        "operation",
        "has a provider job",
        "SELECT key FROM tasks WHERE kind = 0 AND NOT EXISTS (SELECT 1 FROM operations WHERE transaction_id = key) LIMIT 100",
    ),
    (
        "callback",
        "has a task",
        "SELECT key FROM tasks t WHERE kind <> 0 AND NOT EXISTS (SELECT 1 FROM callbacks c WHERE c.key = t.key AND t.kind = 1) \
         LIMIT 100",
    ),
];
