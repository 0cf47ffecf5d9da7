//! Reads operations and related rows for an audit.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::auditor::Auditor;
use super::ledger;
use crate::store::audit::{Around, AuditFindings, FIRST, Found, LAST, RowPlace};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{self, COLUMNS, StoredRow, get, operation};

/// Operations after a position, each with its related rows.
pub(in crate::store::postgres) const SLICE: &str = concat!(
    "WITH slice AS MATERIALIZED (SELECT * FROM operations WHERE (bucket, transaction_id) > ($1, $2) \
     ORDER BY bucket, transaction_id LIMIT 500) ",
    operation!(
        ", o.bucket, \
         EXISTS (SELECT FROM callbacks c WHERE c.bucket = o.bucket AND c.key = o.transaction_id), \
         EXISTS (SELECT FROM tasks t WHERE t.bucket = o.bucket AND t.kind = 0 AND t.key = o.transaction_id), \
         (SELECT p.sealed FROM preparations p WHERE p.bucket = o.bucket AND p.transaction_id = o.transaction_id), \
         o.counted_day IS NOT NULL, \
         coalesce(o.finished_at <= (SELECT until FROM forgotten), false) \
         FROM slice o LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context ORDER BY o.bucket, o.transaction_id"
    )
);

fn place_of(row: &Row) -> Result<RowPlace, PgError> {
    Ok((get(row, COLUMNS)?, get(row, 0)?))
}

fn read(row: &Row) -> Result<Found<(StoredRow, Around)>, PgError> {
    let around = || {
        Ok::<_, PgError>(Around {
            notified: get(row, COLUMNS + 1)?,
            job: get(row, COLUMNS + 2)?,
            preparation: get(row, COLUMNS + 3)?,
            counted: get(row, COLUMNS + 4)?,
            forgotten: get(row, COLUMNS + 5)?,
        })
    };
    Ok((place_of(row)?, row::read(row).and_then(|operation| Ok((operation, around()?))).ok()))
}

/// Checks all operations and their entries.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: AuditFindings) -> Result<AuditFindings, PgError> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let last = rows.last().map(place_of).transpose()?;
        let entries = auditor.between(ledger::BETWEEN, after, last.unwrap_or(LAST)).await?;
        let look = move |findings: &mut AuditFindings| {
            let rows = rows.iter().map(read).collect::<Result<_, _>>()?;
            findings.operations(rows, entries.iter().map(ledger::read).collect::<Result<_, _>>()?);
            Ok(())
        };
        findings = auditor.look(findings, look).await?;
        auditor.homes(&mut findings).await?;
        match last {
            Some(last) => after = last,
            None => return Ok(findings),
        }
    }
}

/// Returns some of the rows of a table without their operation, each with the number of all.
macro_rules! orphans {
    ($table:literal) => {
        concat!(
            "SELECT t.transaction_id, count(*) OVER () FROM ",
            $table,
            " t WHERE NOT EXISTS (SELECT FROM operations o WHERE o.bucket = t.bucket \
             AND o.transaction_id = t.transaction_id) LIMIT 100"
        )
    };
}

const ORPHANS: [(&str, &str); 1] = [("preparations", orphans!("preparations"))];

/// Checks that every job and preparation has its operation.
pub(super) async fn references(snapshot: &Transaction<'_>, findings: &mut AuditFindings) -> Result<(), PgError> {
    for (table, statement) in ORPHANS {
        let rows = snapshot.query(statement, &[]).await?;
        let ids = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>, PgError>>()?;
        findings.orphans(table, ids, i64::unsigned_abs(rows.first().map_or(Ok(0), |row| get(row, 1))?));
    }
    for (what, of, statement) in MISSING {
        for row in snapshot.query(statement, &[]).await? {
            findings.found.problem(format!("{what} {}: {of} but does not exist", get::<i64>(&row, 0)?));
        }
    }
    Ok(())
}

/// References to rows that do not exist.
const MISSING: [(&str, &str, &str); 5] = [
    (
        "the context of operation",
        "is named",
        "SELECT transaction_id FROM operations o WHERE NOT EXISTS (SELECT FROM contexts x \
         WHERE x.bucket = o.bucket AND x.id = o.context) LIMIT 100",
    ),
    (
        "operation",
        "is a home",
        "SELECT ref FROM homes h WHERE home = 0 AND NOT EXISTS (SELECT FROM operations o \
         WHERE o.bucket = h.bucket AND o.transaction_id = h.ref) LIMIT 100",
    ),
    (
        "journal entry",
        "is a home",
        "SELECT ref FROM homes h WHERE home = 1 AND NOT EXISTS (SELECT FROM journal j \
         WHERE j.bucket = h.bucket AND j.entry = h.ref) LIMIT 100",
    ),
    (
        "operation",
        "has a provider job",
        "SELECT key FROM tasks t WHERE kind = 0 AND NOT EXISTS (SELECT FROM operations o \
         WHERE o.bucket = t.bucket AND o.transaction_id = t.key) LIMIT 100",
    ),
    (
        "callback",
        "has a task",
        "SELECT key FROM tasks t WHERE kind <> 0 AND NOT EXISTS (SELECT FROM callbacks c \
         WHERE c.bucket = t.bucket AND c.key = t.key AND t.kind = 1) LIMIT 100",
    ),
];
