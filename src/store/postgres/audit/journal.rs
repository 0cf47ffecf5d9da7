//! What an audit looks at in the journal.

use tokio_postgres::Row;

use super::{Auditor, FIRST, Findings, Place, said};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::journal::entry_row::{self, COLUMNS, entry};
use crate::store::postgres::row::{bucket_in_number, bucket_of, bytes, get};
use crate::store::rows::entry::EntryRow;
use crate::store::{Digest, Entry};

/// Entries after a place, each with what stands around it.
pub(in crate::store::postgres) const SLICE: &str = concat!(
    "WITH slice AS MATERIALIZED (SELECT * FROM journal WHERE (bucket, entry) > ($1, $2) \
     ORDER BY bucket, entry LIMIT 500) ",
    entry!(
        ", j.bucket, j.order_key, \
         EXISTS (SELECT FROM reserved_ids r WHERE r.bucket = j.bucket AND r.order_key = j.order_key), \
         EXISTS (SELECT FROM operations o WHERE o.bucket = j.bucket AND o.order_key = j.order_key), \
         EXISTS (SELECT FROM journal other WHERE other.transaction_id = j.transaction_id \
         AND (other.bucket <> j.bucket OR other.entry <> j.entry)) \
         FROM slice j ORDER BY j.bucket, j.entry"
    )
);

/// What stands around an entry.
struct Around {
    bucket: i16,
    order_key: Digest,
    reserved: bool,
    operation: bool,
    named_twice: bool,
}

impl Around {
    fn read(found: &Row) -> Result<Self, Fault> {
        Ok(Self {
            bucket: get(found, COLUMNS)?,
            order_key: Digest(bytes(found, COLUMNS + 1)?),
            reserved: get(found, COLUMNS + 2)?,
            operation: get(found, COLUMNS + 3)?,
            named_twice: get(found, COLUMNS + 4)?,
        })
    }
}

fn place_of(row: &Row) -> Result<Place, Fault> {
    Ok((get(row, COLUMNS)?, get(row, 0)?))
}

/// Looks at all entries.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: Findings) -> Result<Findings, Fault> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let Some(last) = rows.last() else { return Ok(findings) };
        after = place_of(last)?;
        findings = auditor.look(findings, move |findings| slice(findings, &rows)).await?;
    }
}

fn slice(findings: &mut Findings, rows: &[Row]) -> Result<(), Fault> {
    for found in rows {
        let (_, number) = place_of(found)?;
        findings.found.journal += 1;
        match entry_row::read(found).and_then(|row| Ok((row, Around::read(found)?))) {
            Ok((row, around)) => look_at(findings, row, &around),
            Err(_) => findings.found.problem(format!("journal entry {number}: a column is not ours")),
        }
    }
    Ok(())
}

/// That its state has what it demands, and that what is sealed opens, is shown by decoding it.
fn look_at(findings: &mut Findings, row: EntryRow, around: &Around) {
    let Entry { id, intent, .. } = match row.decode(&findings.vault) {
        Ok(entry) => entry,
        Err(error) => return findings.found.problem(said(error)),
    };
    let key = findings.vault.comparer().order_key(&intent.merchant, intent.direction, &intent.order_id);
    let buckets = [bucket_of(&intent.merchant), bucket_in_number(id.0)];
    let problems = [
        (key != around.order_key, "its order key is not the one of its order_id"),
        (buckets != [around.bucket; 2], "its bucket is not the one of its merchant"),
        (around.named_twice, "its transaction_id is another entry's as well"),
        (around.reserved, "its order_id is reserved for v1 as well"),
        (around.operation, "its order_id names an operation of the embedded engine as well"),
    ];
    for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        findings.found.problem(format!("journal entry {}: {problem}", id.0));
    }
}
