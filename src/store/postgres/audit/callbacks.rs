//! Reads callbacks and their attempts for an audit.

use tokio_postgres::Row;

use super::auditor::Auditor;
use crate::store::audit::{AuditFindings, AuditedTask, Callback, FIRST, Found, LAST, RowPlace, Tries};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{get, small};
use crate::store::rows::callback::outcome_of;

/// Callbacks after a position, each with the row of its subject. The smallest number has no negative counterpart.
pub(in crate::store::postgres) const SLICE: &str = "WITH slice AS MATERIALIZED (SELECT * FROM callbacks \
    WHERE (bucket, key) > ($1, $2) ORDER BY bucket, key LIMIT 500) \
    SELECT c.bucket, c.key, c.state, t.leased, t.attempts, c.tries, c.merchant, c.target, c.last_status, c.last_error, \
    t.queue = c.merchant || ' ' || c.target AND t.queued_at = c.queued_at, coalesce(x.merchant, j.merchant), \
    coalesce(o.callback_url, j.v1_callback_url) \
    FROM slice c LEFT JOIN tasks t ON t.bucket = c.bucket AND t.kind = 1 AND t.key = c.key \
    LEFT JOIN operations o ON o.bucket = c.bucket AND o.transaction_id = c.key \
    LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
    LEFT JOIN journal j ON j.bucket = c.bucket AND j.entry = -nullif(c.key, '-9223372036854775808'::bigint) \
    ORDER BY c.bucket, c.key";

fn place_of(row: &Row) -> Result<RowPlace, PgError> {
    Ok((get(row, 0)?, get(row, 1)?))
}

fn read(row: &Row) -> Result<Found<Callback>, PgError> {
    let callback = || {
        let last_status = get::<Option<i32>>(row, 8)?.map(i64::from);
        Ok::<_, PgError>(Callback {
            state: small(row, 2)?,
            task: match get::<Option<bool>>(row, 3)? {
                Some(leased) => Some(AuditedTask {
                    leased: leased.into(),
                    attempts: get::<i32>(row, 4)?.into(),
                    fits: get(row, 10)?,
                }),
                None => None,
            },
            tries: get(row, 5)?,
            merchant: get(row, 6)?,
            target: get(row, 7)?,
            last: outcome_of(last_status, get(row, 9)?).map(|last| last.is_some()),
            about: get(row, 11)?,
            url: get(row, 12)?,
        })
    };
    Ok((place_of(row)?, callback().ok()))
}

const TRIES_BETWEEN: &str = "SELECT bucket, key, count(*), min(number), max(number), \
    count(*) FILTER (WHERE (status IS NULL) = (error IS NULL) OR duration_us < 0 \
    OR status NOT BETWEEN 0 AND 65535) FROM callback_tries \
    WHERE (bucket, key) > ($1, $2) AND (bucket, key) <= ($3, $4) GROUP BY bucket, key ORDER BY bucket, key";

fn read_tries(row: &Row) -> Result<Tries, PgError> {
    let (count, first, last, senseless) = (get(row, 2)?, get(row, 3)?, get(row, 4)?, get(row, 5)?);
    Ok(Tries { place: place_of(row)?, count, first, last, senseless })
}

/// Checks all callbacks and their attempts.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: AuditFindings) -> Result<AuditFindings, PgError> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let last = rows.last().map(place_of).transpose()?;
        let tries = auditor.between(TRIES_BETWEEN, after, last.unwrap_or(LAST)).await?;
        let look = move |findings: &mut AuditFindings| {
            let rows = rows.iter().map(read).collect::<Result<_, _>>()?;
            findings.callbacks(rows, tries.iter().map(read_tries).collect::<Result<_, _>>()?);
            Ok(())
        };
        findings = auditor.look(findings, look).await?;
        match last {
            Some(last) => after = last,
            None => return Ok(findings),
        }
    }
}
