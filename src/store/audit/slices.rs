//! Reads the rows that an audit checks, slice by slice, so that memory stays bounded and each slice is one step into an index.

use super::callbacks::{AuditedTask, Callback, Tries};
use super::operations::Around;
use super::{AuditFindings, Found, usage};
use crate::store::AuditProgress;
use crate::store::homes::homes_of;
use crate::store::rows::CorruptRow;
use crate::store::rows::callback::outcome_of;
use crate::store::rows::entry::{EntryRow, select_entries};
use crate::store::rows::ledger::LedgerRow;
use crate::store::rows::operation::{STORED_COLUMNS, StoredRow, select_operations};
use crate::store::sql::{Columns, Sql, Transaction, params, sql};

/// Counts the rows that are checked slice by slice.
const TOTAL: Sql = sql!(
    "SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM journal) + (SELECT count(*) FROM callbacks)"
);

/// How an audit is run by a database.
pub(in crate::store) trait AuditRun<T: Transaction> {
    /// Prepares the session for slices.
    async fn before_slices(&self) -> Result<(), T::Error>;

    /// Checks a slice, on a suitable thread.
    async fn check(&self, findings: &mut AuditFindings, slice: AuditSlice) -> Result<(), T::Error>;

    /// Reports the progress. Returns `false` if nothing waits for the result any more.
    fn report(&self, progress: AuditProgress) -> bool;
}

/// Checks all rows of a snapshot. Ends early, with the findings so far, when nothing waits for the result.
pub(in crate::store) async fn audited<T: Transaction>(
    tx: &T,
    findings: &mut AuditFindings,
    run: &impl AuditRun<T>,
) -> Result<(), T::Error> {
    let total = tx.query_value(TOTAL, &[]).await?;
    run.report(AuditProgress { done: 0, total });
    references(tx, findings).await?;
    usage::check(tx, findings).await?;
    run.before_slices().await?;
    for part in [Part::Operations, Part::Journal, Part::Callbacks] {
        let mut next = Some(i64::MIN);
        while let Some(first) = next {
            if !run.report(AuditProgress { done: findings.done(), total }) {
                return Ok(());
            }
            let slice = AuditSlice::read(tx, part, first).await?;
            next = slice.last().and_then(|last| last.checked_add(1));
            run.check(findings, slice).await?;
            let keys: Vec<_> = findings.homes.iter().map(|(order, _)| *order).collect();
            let homes = homes_of(tx, &keys).await?;
            findings.compare_homes(homes);
        }
    }
    run.report(AuditProgress { done: findings.done(), total });
    balances(tx, findings).await
}

/// The tables that are checked slice by slice.
#[derive(Debug, Clone, Copy)]
enum Part {
    Operations,
    Journal,
    Callbacks,
}

/// The next rows of a table, with their related rows.
pub(in crate::store) enum AuditSlice {
    Operations(Vec<Found<(StoredRow, Around)>>, Vec<(i64, LedgerRow)>),
    Journal(Vec<Found<EntryRow>>),
    Callbacks(Vec<Found<Callback>>, Vec<Tries>),
}

impl AuditSlice {
    /// Reads the rows from a number on.
    async fn read<T: Transaction>(tx: &T, part: Part, first: i64) -> Result<Self, T::Error> {
        let until = |last: Option<i64>| params![first, last.unwrap_or(i64::MAX)];
        Ok(match part {
            Part::Operations => {
                let rows = tx.query(OPERATIONS, &params![first], |row| found(row, operation)).await?;
                let entries = tx.query(ENTRIES, &until(last_of(&rows)), entry).await?;
                Self::Operations(rows, entries)
            }
            Part::Journal => Self::Journal(tx.query(JOURNAL, &params![first], |row| found(row, EntryRow::read)).await?),
            Part::Callbacks => {
                let rows = tx.query(CALLBACKS, &params![first], |row| found(row, callback)).await?;
                let tries = tx.query(TRIES, &until(last_of(&rows)), tries).await?;
                Self::Callbacks(rows, tries)
            }
        })
    }

    /// Returns the number of the last row; `None`: there are no more.
    fn last(&self) -> Option<i64> {
        match self {
            Self::Operations(rows, _) => last_of(rows),
            Self::Journal(rows) => last_of(rows),
            Self::Callbacks(rows, _) => last_of(rows),
        }
    }

    /// Checks the rows.
    pub(in crate::store) fn check(self, findings: &mut AuditFindings) {
        match self {
            Self::Operations(rows, entries) => findings.operations(rows, entries),
            Self::Journal(rows) => findings.journal(rows),
            Self::Callbacks(rows, tries) => findings.callbacks(rows, tries),
        }
    }
}

fn last_of<R>(rows: &[Found<R>]) -> Option<i64> {
    rows.last().map(|(number, _)| *number)
}

fn found<R>(row: &dyn Columns, read: fn(&dyn Columns) -> Result<R, CorruptRow>) -> Result<Found<R>, CorruptRow> {
    Ok((row.get(0)?, read(row).ok()))
}

/// Operations from a number on, each with its related rows.
const OPERATIONS: Sql = sql!(select_operations!(
    ", EXISTS (SELECT 1 FROM callbacks WHERE callbacks.key = transaction_id), \
     EXISTS (SELECT 1 FROM tasks WHERE tasks.kind IN (0, 2, 3, 4) AND tasks.key = transaction_id), \
     (SELECT p.sealed FROM preparations p WHERE p.transaction_id = operations.transaction_id), \
     counted_day IS NOT NULL, coalesce(finished_at <= (SELECT until FROM forgotten), false), has_job = 1 \
     FROM operations LEFT JOIN contexts ON id = context WHERE transaction_id >= ?1 ORDER BY transaction_id LIMIT 500"
));

fn operation(row: &dyn Columns) -> Result<(StoredRow, Around), CorruptRow> {
    let around = Around {
        notified: row.get(STORED_COLUMNS)?,
        job: row.get(STORED_COLUMNS + 1)?,
        preparation: row.get(STORED_COLUMNS + 2)?,
        counted: row.get(STORED_COLUMNS + 3)?,
        forgotten: row.get(STORED_COLUMNS + 4)?,
        created_with_job: row.get(STORED_COLUMNS + 5)?,
    };
    Ok((StoredRow::read(row)?, around))
}

/// The entries between two numbers, in the order of their key.
const ENTRIES: Sql = sql!(
    "SELECT transaction_id, posting, currency, account, amount, merchant FROM entries \
     WHERE transaction_id >= ?1 AND transaction_id <= ?2 ORDER BY transaction_id, posting, currency, account"
);

fn entry(row: &dyn Columns) -> Result<(i64, LedgerRow), CorruptRow> {
    let entry = LedgerRow {
        posting: row.get(1)?,
        currency: row.get(2)?,
        account: row.get(3)?,
        amount: row.get(4)?,
        merchant: row.get(5)?,
    };
    Ok((row.get(0)?, entry))
}

const JOURNAL: Sql = sql!(select_entries!("FROM journal WHERE entry >= ?1 ORDER BY entry LIMIT 500"));

/// Callbacks from a number on, each with its task and its subject. The smallest number has no negative counterpart.
const CALLBACKS: Sql = sql!(
    "SELECT c.key, c.state, t.state, t.attempts, c.tries, c.merchant, c.target, c.last_status, c.last_error, \
     coalesce(x.merchant, j.merchant), coalesce(o.callback_url, j.v1_callback_url), \
     t.queue = c.merchant || ' ' || c.target AND t.queued_at = c.queued_at \
     FROM callbacks c LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
     LEFT JOIN operations o ON o.transaction_id = c.key LEFT JOIN contexts x ON x.id = o.context \
     LEFT JOIN journal j ON j.entry = -nullif(c.key, -9223372036854775807 - 1) \
     WHERE c.key >= ?1 ORDER BY c.key LIMIT 500"
);

fn callback(row: &dyn Columns) -> Result<Callback, CorruptRow> {
    let task = match row.integer(2)? {
        Some(state) => Some(AuditedTask { state, attempts: row.get(3)?, fits: row.get(11)? }),
        None => None,
    };
    Ok(Callback {
        state: row.get(1)?,
        task,
        tries: row.get(4)?,
        merchant: row.get(5)?,
        target: row.get(6)?,
        last: outcome_of(row.get(7)?, row.get(8)?).map(|last| last.is_some()),
        about: row.get(9)?,
        url: row.get(10)?,
    })
}

/// Summaries of the tries of callbacks between two numbers.
const TRIES: Sql = sql!(
    "SELECT key, count(*), min(number), max(number), count(*) FILTER (WHERE (status IS NULL) = (error IS NULL) \
     OR duration_us < 0 OR status NOT BETWEEN 0 AND 65535) FROM callback_tries \
     WHERE key >= ?1 AND key <= ?2 GROUP BY key ORDER BY key"
);

fn tries(row: &dyn Columns) -> Result<Tries, CorruptRow> {
    let (count, first, last, senseless) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Tries { key: row.get(0)?, count, first, last, senseless })
}

/// Preparations without their operation: some of them, each with the count of all.
const ORPHANS: Sql = sql!(
    "SELECT transaction_id, count(*) OVER () FROM preparations p WHERE NOT EXISTS \
     (SELECT 1 FROM operations o WHERE o.transaction_id = p.transaction_id) LIMIT 100"
);

/// References to rows that do not exist.
const MISSING: [(&str, &str, Sql); 8] = [
    (
        "the context of operation",
        "is named",
        sql!(
            "SELECT transaction_id FROM operations o WHERE NOT EXISTS \
             (SELECT 1 FROM contexts x WHERE x.id = o.context) LIMIT 100"
        ),
    ),
    (
        "operation",
        "is a home",
        sql!(
            "SELECT ref FROM homes h WHERE home = 0 AND NOT EXISTS \
             (SELECT 1 FROM operations o WHERE o.transaction_id = h.ref) LIMIT 100"
        ),
    ),
    (
        "journal entry",
        "is a home",
        sql!(
            "SELECT ref FROM homes h WHERE home = 1 AND NOT EXISTS \
             (SELECT 1 FROM journal j WHERE j.entry = h.ref) LIMIT 100"
        ),
    ),
    (
        "operation",
        "has a provider job",
        sql!(
            "SELECT key FROM tasks t WHERE kind IN (0, 2, 3, 4) AND NOT EXISTS \
             (SELECT 1 FROM operations o WHERE o.transaction_id = t.key) LIMIT 100"
        ),
    ),
    (
        "operation",
        "was to be called again",
        sql!(
            "SELECT transaction_id FROM provider_queries q WHERE NOT EXISTS \
             (SELECT 1 FROM operations o WHERE o.transaction_id = q.transaction_id) LIMIT 100"
        ),
    ),
    (
        "operation",
        "has a resolution",
        sql!(
            "SELECT transaction_id FROM resolutions r WHERE NOT EXISTS \
             (SELECT 1 FROM operations o WHERE o.transaction_id = r.transaction_id) LIMIT 100"
        ),
    ),
    (
        "operation",
        "has a contradicting report",
        sql!(
            "SELECT transaction_id FROM contradictions c WHERE NOT EXISTS \
             (SELECT 1 FROM operations o WHERE o.transaction_id = c.transaction_id) LIMIT 100"
        ),
    ),
    (
        "callback",
        "has a task",
        sql!(
            "SELECT key FROM tasks t WHERE kind NOT IN (0, 2, 3, 4) AND NOT EXISTS \
             (SELECT 1 FROM callbacks c WHERE c.key = t.key AND t.kind = 1) LIMIT 100"
        ),
    ),
];

/// Finds rows without their operation or entry.
async fn references<T: Transaction>(tx: &T, findings: &mut AuditFindings) -> Result<(), T::Error> {
    let mut count = 0;
    let read = |row: &dyn Columns| {
        count = row.get(1)?;
        row.get(0)
    };
    let ids: Vec<i64> = tx.query(ORPHANS, &[], read).await?;
    findings.orphans("preparations", ids, count);
    for (what, of, sql) in MISSING {
        let ids: Vec<i64> = tx.query(sql, &[], |row| row.get(0)).await?;
        for id in ids {
            findings.found.problem(format!("{what} {id}: {of} but does not exist"));
        }
    }
    Ok(())
}

/// The balances of all accounts. A sum may be outside a balance's range, so it is read as text.
const BALANCES: Sql = sql!(
    sqlite: "SELECT merchant, currency, account, CAST(balance AS TEXT) FROM accounts",
    // A balance is its row plus the changes that were not folded into it yet.
    postgres: "SELECT merchant, currency, account, sum(amount)::text FROM \
     (SELECT merchant, currency, account, balance AS amount FROM accounts \
     UNION ALL SELECT merchant, currency, account, amount FROM balance_changes) AS parts \
     GROUP BY merchant, currency, account",
);

const MERCHANTS: Sql = sql!("SELECT merchant FROM merchants");

/// Compares balances and merchants with the entries, which were all read.
async fn balances<T: Transaction>(tx: &T, findings: &mut AuditFindings) -> Result<(), T::Error> {
    let read = |row: &dyn Columns| {
        let sum = row.get::<Box<str>>(3)?.parse().map_err(|_| CorruptRow::new("accounts.balance"))?;
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), sum))
    };
    findings.balances(tx.query(BALANCES, &[], read).await?);
    let merchants = tx.query(MERCHANTS, &[], |row| row.get(0)).await?;
    findings.merchants(merchants);
    Ok(())
}

/// Returns the statements of audits, which read whole tables.
#[cfg(test)]
pub(in crate::store) fn statements() -> Vec<Sql> {
    let slices = [TOTAL, OPERATIONS, ENTRIES, JOURNAL, CALLBACKS, TRIES, ORPHANS, BALANCES, MERCHANTS];
    slices.into_iter().chain(MISSING.map(|(_, _, sql)| sql)).chain([usage::WRONG]).collect()
}
