//! Reads ledger entries, balances, merchants and daily usage for an audit.

use rusqlite::Connection;

use crate::store::audit::usage::WRONG;
use crate::store::audit::{AuditFindings, RowPlace};
use crate::store::rows::ledger::LedgerRow;

/// Reads the entries between two numbers, the first excluded, in the order of their key.
pub(super) fn between(connection: &Connection, after: i64, last: i64) -> rusqlite::Result<Vec<(RowPlace, LedgerRow)>> {
    let mut statement = connection.prepare_cached(
        "SELECT transaction_id, posting, currency, account, amount, merchant FROM entries \
         WHERE transaction_id > ?1 AND transaction_id <= ?2 ORDER BY transaction_id, posting, currency, account",
    )?;
    let read = statement.query_map((after, last), |row| {
        let entry = LedgerRow {
            posting: row.get(1)?,
            currency: row.get(2)?,
            account: row.get(3)?,
            amount: row.get(4)?,
            merchant: row.get(5)?,
        };
        Ok(((0, row.get(0)?), entry))
    })?;
    read.collect()
}

/// Compares balances and merchants with the entries, which were all read.
pub(super) fn balances(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT merchant, currency, account, balance FROM accounts")?;
    let balances = statement
        .query_map([], |row| Ok(((0, row.get(0)?, row.get(1)?, row.get(2)?), i128::from(row.get::<_, i64>(3)?))))?;
    findings.balances(balances.collect::<Result<Vec<_>, _>>()?);
    let mut statement = connection.prepare("SELECT merchant FROM merchants")?;
    let merchants = statement.query_map([], |row| Ok((0, row.get(0)?)))?;
    findings.merchants(merchants.collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// Compares daily usage with its operations.
pub(super) fn usage(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    let yesterday: i64 = connection.query_row("SELECT unixepoch() / 86400 - 1", [], |row| row.get(0))?;
    let mut count = 0;
    let mut statement = connection.prepare(WRONG)?;
    let wrong = statement.query_map([yesterday], |row| {
        count = row.get::<_, i64>(5)?.unsigned_abs();
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    let wrong = wrong.collect::<Result<_, _>>()?;
    findings.usage(wrong, count);
    Ok(())
}
