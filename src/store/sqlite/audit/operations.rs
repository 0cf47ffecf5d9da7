//! Operations and what stands around them, as an audit reads them.

use rusqlite::{Connection, Row};

use super::{ledger, rows};
use crate::store::Digest;
use crate::store::audit::{Around, Findings};
use crate::store::sqlite::row::StoredRow;

/// In the order and number of [`StoredRow::SLICE`].
const AROUND: &str = "SELECT transaction_id, order_key, fields, \
    kept IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kept_names WHERE id = kept), \
    EXISTS (SELECT 1 FROM reserved_ids r WHERE r.order_key = o.order_key), \
    EXISTS (SELECT 1 FROM callbacks c WHERE c.key = o.transaction_id), \
    EXISTS (SELECT 1 FROM provider_jobs j WHERE j.transaction_id = o.transaction_id), \
    (SELECT sealed FROM preparations p WHERE p.transaction_id = o.transaction_id), \
    counted_day IS NOT NULL, coalesce(finished_at <= (SELECT until FROM forgotten), 0) \
    FROM operations o WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2";

fn around(row: &Row<'_>) -> rusqlite::Result<Around> {
    Ok(Around {
        order_key: Digest(row.get(1)?),
        fields: row.get(2)?,
        kept_missing: row.get(3)?,
        reserved: row.get(4)?,
        told: row.get(5)?,
        job: row.get(6)?,
        preparation: row.get(7)?,
        counted: row.get(8)?,
        forgotten: row.get(9)?,
    })
}

/// Looks at operations and their entries: see [`super::Slice`].
pub(super) fn slice(connection: &Connection, after: i64, findings: &mut Findings) -> rusqlite::Result<Option<i64>> {
    let operations = rows(connection, StoredRow::SLICE, after, StoredRow::read)?;
    let around = rows(connection, AROUND, after, around)?;
    let last = operations.last().map(|((_, id), _)| *id);
    let entries = ledger::between(connection, after, last.unwrap_or(i64::MAX))?;
    let together = operations.into_iter().zip(around);
    findings.operations(together.map(|((place, row), (_, around))| (place, row.zip(around))).collect(), entries);
    Ok(last)
}

/// Looks for rows without their operation.
pub(super) fn references(connection: &Connection, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, id): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
        findings.orphans(&table, id, 1);
    }
    Ok(())
}
