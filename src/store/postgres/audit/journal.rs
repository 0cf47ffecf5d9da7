//! Reads journal entries and related rows for an audit.

use tokio_postgres::Row;

use super::auditor::Auditor;
use crate::store::audit::{AroundEntry, AuditFindings, FIRST, Found, RowPlace};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::journal::entry_row::{self, COLUMNS, entry};
use crate::store::postgres::row::get;
use crate::store::rows::entry::EntryRow;

/// Entries after a position, each with its related rows.
pub(in crate::store::postgres) const SLICE: &str = concat!(
    "WITH slice AS MATERIALIZED (SELECT * FROM journal WHERE (bucket, entry) > ($1, $2) \
     ORDER BY bucket, entry LIMIT 500) ",
    entry!(
        ", j.bucket, \
         EXISTS (SELECT FROM journal other WHERE other.transaction_id = j.transaction_id \
         AND (other.bucket <> j.bucket OR other.entry <> j.entry)) \
         FROM slice j ORDER BY j.bucket, j.entry"
    )
);

fn place_of(row: &Row) -> Result<RowPlace, PgError> {
    Ok((get(row, COLUMNS)?, get(row, 0)?))
}

fn read(row: &Row) -> Result<Found<(EntryRow, AroundEntry)>, PgError> {
    let around = || Ok::<_, PgError>(AroundEntry { named_twice: get(row, COLUMNS + 1)? });
    Ok((place_of(row)?, entry_row::read(row).and_then(|entry| Ok((entry, around()?))).ok()))
}

/// Checks all entries.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: AuditFindings) -> Result<AuditFindings, PgError> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let Some(last) = rows.last() else { return Ok(findings) };
        after = place_of(last)?;
        let look = move |findings: &mut AuditFindings| {
            findings.journal(rows.iter().map(read).collect::<Result<_, _>>()?);
            Ok(())
        };
        findings = auditor.look(findings, look).await?;
        auditor.homes(&mut findings).await?;
    }
}
