//! What an audit looks at in operations, and in what stands around them.

use std::iter::Peekable;
use std::vec::IntoIter;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::ledger::{self, Booked};
use super::{Auditor, FIRST, Findings, LAST, Place, said};
use crate::domain::{Kind, Operation, State, Status, TransactionId};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::outbox;
use crate::store::postgres::row::{self, COLUMNS, StoredRow, bucket_in, bucket_of, bytes, get, operation};
use crate::store::rows::{operation as columns, preparation};
use crate::store::{Digest, Kept, Stored};

/// Operations after a place, each with what stands around it.
pub(in crate::store::postgres) const SLICE: &str = concat!(
    "WITH slice AS MATERIALIZED (SELECT * FROM operations WHERE (bucket, transaction_id) > ($1, $2) \
     ORDER BY bucket, transaction_id LIMIT 500) ",
    operation!(
        ", o.bucket, o.order_key, o.fields, \
         o.kept IS NOT NULL AND NOT EXISTS (SELECT FROM kept_names k WHERE k.id = o.kept), \
         EXISTS (SELECT FROM reserved_ids r WHERE r.bucket = o.bucket AND r.order_key = o.order_key), \
         EXISTS (SELECT FROM callbacks c WHERE c.bucket = o.bucket AND c.key = o.transaction_id) \
         OR EXISTS (SELECT FROM callbacks_told c WHERE c.bucket = o.bucket AND c.key = o.transaction_id), \
         EXISTS (SELECT FROM provider_jobs j WHERE j.bucket = o.bucket AND j.transaction_id = o.transaction_id), \
         (SELECT p.sealed FROM preparations p WHERE p.bucket = o.bucket AND p.transaction_id = o.transaction_id), \
         o.counted_day IS NOT NULL, \
         coalesce(o.finished_at <= (SELECT until FROM forgotten), false) \
         FROM slice o ORDER BY o.bucket, o.transaction_id"
    )
);

/// What stands around an operation.
struct Around {
    bucket: i16,
    order_key: Digest,
    fields: Vec<u8>,
    kept_missing: bool,
    reserved: bool,
    told: bool,
    job: bool,
    preparation: Option<Vec<u8>>,
    counted: bool,
    forgotten: bool,
    finished: bool,
    customer: bool,
}

impl Around {
    fn read(found: &Row, row: &StoredRow) -> Result<Self, Fault> {
        Ok(Self {
            bucket: get(found, COLUMNS)?,
            order_key: Digest(bytes(found, COLUMNS + 1)?),
            fields: get(found, COLUMNS + 2)?,
            kept_missing: get(found, COLUMNS + 3)?,
            reserved: get(found, COLUMNS + 4)?,
            told: get(found, COLUMNS + 5)?,
            job: get(found, COLUMNS + 6)?,
            preparation: get(found, COLUMNS + 7)?,
            counted: get(found, COLUMNS + 8)?,
            forgotten: get(found, COLUMNS + 9)?,
            finished: row.finished_at.is_some(),
            customer: row.customer_account_id.is_some(),
        })
    }
}

fn place_of(row: &Row) -> Result<Place, Fault> {
    Ok((get(row, COLUMNS)?, get(row, 0)?))
}

/// Looks at all operations and their entries.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: Findings) -> Result<Findings, Fault> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let last = rows.last().map(place_of).transpose()?;
        let entries = auditor.between(ledger::BETWEEN, after, last.unwrap_or(LAST)).await?;
        findings = auditor.look(findings, move |findings| slice(findings, &rows, &entries)).await?;
        match last {
            Some(last) => after = last,
            None => return Ok(findings),
        }
    }
}

/// Looks at operations and at the entries up to the last of them.
fn slice(findings: &mut Findings, rows: &[Row], entries: &[Row]) -> Result<(), Fault> {
    let booked = Booked::read_all(entries)?;
    for booked in &booked {
        findings.count(booked);
    }
    let mut booked = booked.into_iter().peekable();
    for found in rows {
        let place = place_of(found)?;
        findings.found.operations += 1;
        before(findings, &mut booked, place);
        let own = booked.next_if(|booked| booked.place == place);
        match row::read(found).and_then(|row| Ok((Around::read(found, &row)?, row))) {
            Ok((around, row)) => look_at(findings, row, &around, own),
            Err(_) => findings.found.problem(format!("operation {}: a column is not ours", place.1)),
        }
    }
    booked.for_each(|booked| findings.booked_alone(&booked));
    Ok(())
}

/// Tells of what was booked before a place, whose operation was not met.
fn before(findings: &mut Findings, booked: &mut Peekable<IntoIter<Booked>>, place: Place) {
    while let Some(booked) = booked.next_if(|booked| booked.place < place) {
        findings.booked_alone(&booked);
    }
}

fn look_at(findings: &mut Findings, row: StoredRow, around: &Around, booked: Option<Booked>) {
    let stored = match row.decode(&findings.vault, Kept::Everything) {
        Ok(stored) => stored,
        Err(error) => return findings.found.problem(said(error)),
    };
    findings.booked_with(&stored.operation, booked);
    sealed(findings, stored.operation.id, around);
    surroundings(findings, &stored, around);
}

fn sealed(findings: &mut Findings, id: TransactionId, around: &Around) {
    if let Err(error) = columns::opened_fields(&findings.vault, id, &around.fields) {
        findings.found.problem(said(error));
    }
    let opened = around.preparation.as_deref().map(|sealed| preparation::opened(&findings.vault, id, sealed));
    if let Some(Err(error)) = opened {
        findings.found.problem(said(error));
    }
}

fn surroundings(findings: &mut Findings, stored: &Stored, around: &Around) {
    let Stored { operation, v1, .. } = stored;
    let Operation { id, merchant, order_id, .. } = operation;
    let pending = operation.state == State::Pending;
    let key = findings.vault.comparer().order_key(merchant, operation.direction(), order_id);
    let tells = !pending && outbox::address(&operation.callback_url, v1.as_ref()).is_some();
    let deposit = matches!(operation.kind, Kind::Deposit(_));
    let buckets = [bucket_of(merchant), bucket_in(*id)];
    let problems = [
        (key != around.order_key, "its order key is not the one of its order_id"),
        (buckets != [around.bucket; 2], "its bucket is not the one of its merchant"),
        (around.finished == pending, "its time of being finished does not fit its status"),
        (around.kept_missing, "the names that its schema kept are missing"),
        (around.reserved, "its order_id is reserved for v1 as well"),
        (tells && !around.told && !around.forgotten, "its result is not queued to be told"),
        (!tells && around.told, "it is queued to be told of, and nobody is to be told"),
        (around.job && !pending, "it is finished and has a provider job"),
        (around.counted && operation.state.status() == Status::Failed, "it failed and counts for its customer's day"),
        (around.counted && !around.customer, "it counts for a day of no customer"),
        (around.preparation.is_some() && !(pending && deposit), "only a pending deposit has a preparation"),
    ];
    for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        findings.found.problem(format!("operation {id}: {problem}"));
    }
}

/// The rows of a table that stand without their operation: some of them, each with the number of all.
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

const ORPHANS: [(&str, &str); 2] =
    [("provider_jobs", orphans!("provider_jobs")), ("preparations", orphans!("preparations"))];

/// No job and no preparation stands without its operation.
pub(super) async fn references(snapshot: &Transaction<'_>, findings: &mut Findings) -> Result<(), Fault> {
    for (table, statement) in ORPHANS {
        let rows = snapshot.query(statement, &[]).await?;
        let told = rows.iter().map(|row| {
            let id: i64 = get(row, 0)?;
            Ok(format!("operation {id}: is in {table} but does not exist"))
        });
        let (told, count) = (told.collect::<Result<_, Fault>>()?, rows.first().map_or(Ok(0), |row| get(row, 1))?);
        findings.problems(told, i64::unsigned_abs(count));
    }
    Ok(())
}
