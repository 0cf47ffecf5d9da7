//! Reads callbacks and their attempts for an audit.

use rusqlite::{Connection, Row};

use super::slice::rows;
use crate::store::audit::{AuditFindings, AuditedTask, Callback, Tries};
use crate::store::rows::callback::outcome_of;

const SLICE: &str = "SELECT c.key, c.state, t.leased, t.attempts, c.tries, c.merchant, c.target, c.last_status, \
    c.last_error, coalesce(x.merchant, j.merchant), \
    coalesce(o.callback_url, j.v1_callback_url), \
    t.queue = c.merchant || ' ' || c.target AND t.queued_at = c.queued_at \
    FROM callbacks c LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
    LEFT JOIN operations o ON o.transaction_id = c.key LEFT JOIN contexts x ON x.id = o.context \
    LEFT JOIN journal j ON j.entry = -c.key \
    WHERE c.key > ?1 ORDER BY c.key LIMIT ?2";

fn callback(row: &Row<'_>) -> rusqlite::Result<Callback> {
    Ok(Callback {
        state: row.get(1)?,
        task: match row.get(2)? {
            Some(leased) => Some(AuditedTask { leased, attempts: row.get(3)?, fits: row.get(11)? }),
            None => None,
        },
        tries: row.get(4)?,
        merchant: row.get(5)?,
        target: row.get(6)?,
        last: outcome_of(row.get(7)?, row.get(8)?).map(|last| last.is_some()),
        about: row.get(9)?,
        url: row.get(10)?,
    })
}

const TRIES: &str = "SELECT key, count(*), min(number), max(number), \
    sum((status IS NULL) = (error IS NULL) OR duration_us < 0 OR coalesce(status NOT BETWEEN 0 AND 65535, 0)) \
    FROM callback_tries WHERE key > ?1 AND key <= ?2 GROUP BY key ORDER BY key";

fn tries(row: &Row<'_>) -> rusqlite::Result<Tries> {
    let (count, first, last, senseless) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Tries { place: (0, row.get(0)?), count, first, last, senseless })
}

/// Checks callbacks and their attempts: see [`super::Slice`].
pub(super) fn slice(
    connection: &Connection,
    after: i64,
    findings: &mut AuditFindings,
) -> rusqlite::Result<Option<i64>> {
    let callbacks = rows(connection, SLICE, after, callback)?;
    let last = callbacks.last().map(|((_, key), _)| *key);
    let mut statement = connection.prepare_cached(TRIES)?;
    let tries = statement.query_map((after, last.unwrap_or(i64::MAX)), tries)?;
    findings.callbacks(callbacks, tries.collect::<Result<_, _>>()?);
    Ok(last)
}
