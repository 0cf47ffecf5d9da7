//! Reads ledger entries, balances, merchants and daily usage for an audit.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use crate::store::audit::usage::WRONG;
use crate::store::audit::{AuditFindings, AuditedAccount, RowPlace};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{get, small};
use crate::store::rows::CorruptRow;
use crate::store::rows::ledger::LedgerRow;

/// In the order of the key; [`read`] decodes these columns.
pub(super) const BETWEEN: &str = "SELECT bucket, transaction_id, posting, currency, account, amount, merchant \
    FROM entries WHERE (bucket, transaction_id) > ($1, $2) AND (bucket, transaction_id) <= ($3, $4) \
    ORDER BY bucket, transaction_id, posting, currency, account";

pub(super) fn read(row: &Row) -> Result<(RowPlace, LedgerRow), PgError> {
    let entry = LedgerRow {
        posting: small(row, 2)?,
        currency: get(row, 3)?,
        account: small(row, 4)?,
        amount: get(row, 5)?,
        merchant: get(row, 6)?,
    };
    Ok(((get(row, 0)?, get(row, 1)?), entry))
}

/// A balance is its row plus the changes that were not folded into it yet. A sum may be outside a balance's range, so
/// it is read as text.
const BALANCES: &str = "SELECT bucket, merchant, currency, account, sum(amount)::text FROM \
    (SELECT bucket, merchant, currency, account, balance AS amount FROM accounts \
    UNION ALL SELECT bucket, merchant, currency, account, amount FROM balance_changes) AS parts \
    GROUP BY bucket, merchant, currency, account ORDER BY bucket, merchant, currency, account";

/// Compares balances and merchants with the entries, which were all read.
pub(super) async fn balances(snapshot: &Transaction<'_>, findings: &mut AuditFindings) -> Result<(), PgError> {
    let balance = |row: &Row| -> Result<(AuditedAccount, i128), PgError> {
        let sum = get::<&str>(row, 4)?.parse().map_err(|_| CorruptRow("accounts.balance"))?;
        Ok(((get(row, 0)?, get(row, 1)?, get(row, 2)?, small(row, 3)?), sum))
    };
    let balances = snapshot.query(BALANCES, &[]).await?;
    findings.balances(balances.iter().map(balance).collect::<Result<Vec<_>, _>>()?);
    let merchants = snapshot.query("SELECT bucket, merchant FROM merchants", &[]).await?;
    let known = merchants.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    findings.merchants(known.collect::<Result<Vec<_>, PgError>>()?);
    Ok(())
}

/// Compares daily usage with its operations, in one pass over them, since there may be many customers.
pub(super) async fn usage(snapshot: &Transaction<'_>, findings: &mut AuditFindings) -> Result<(), PgError> {
    let yesterday = "SELECT floor(extract(epoch FROM now()) / 86400)::integer - 1";
    let yesterday: i32 = get(&snapshot.query_one(yesterday, &[]).await?, 0)?;
    let rows = snapshot.query(WRONG, &[&yesterday]).await?;
    let wrong = rows
        .iter()
        .map(|row| Ok((get::<i32>(row, 0)?.into(), get(row, 1)?, get(row, 2)?, small(row, 3)?, get(row, 4)?)));
    let count = rows.first().map_or(Ok(0), |row| get(row, 5))?;
    findings.usage(wrong.collect::<Result<_, PgError>>()?, i64::unsigned_abs(count));
    Ok(())
}
