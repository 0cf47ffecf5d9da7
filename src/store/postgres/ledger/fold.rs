//! Folding: moves changes of balances into the rows of their accounts, so that a balance is the sum of few rows.
//!
//! Each node folds from time to time, account by account in the order of the index ([`pass`]). Decisions about a busy
//! account queue for its row, so that a pass, which does not wait, would never get it: they fold its changes themselves
//! when there are many ([`own`]).

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{account_number, bucket_of, get, narrow};
use crate::domain::{Currency, LedgerAccount, MerchantId};
use crate::store::StoreError;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::node::PgNode;

/// A decision folds the changes of its account when there are this many.
pub(in crate::store::postgres) const MANY: i64 = 256;

/// The most accounts in one transaction.
const ACCOUNTS: i64 = 256;

/// The most changes, of an account and in all, that one transaction folds.
const CHANGES_OF_ONE: i64 = 4096;
const CHANGES: i64 = 16 * 1024;

/// An account, in the order of the index.
#[derive(Debug, Clone, Default)]
pub(in crate::store::postgres) struct FoldedAccount {
    bucket: i16,
    merchant: String,
    currency: String,
    number: i16,
}

/// How far a pass came.
#[derive(Debug)]
pub(in crate::store::postgres) enum Pass {
    /// Up to this account.
    UpTo(FoldedAccount),
    /// To the end, having folded so much that there may be more.
    Busy,
    /// To the end.
    Done,
}

/// Folds the changes of some accounts after one (`None`: from the first). Skips accounts that are locked by a decision
/// or by another node; the next pass folds them.
///
/// # Errors
/// The database does not respond.
pub(in crate::store::postgres) async fn pass(node: &PgNode, after: Option<&FoldedAccount>) -> Result<Pass, StoreError> {
    let first = FoldedAccount { bucket: -1, ..FoldedAccount::default() };
    let after = after.unwrap_or(&first);
    node.transact(async |transaction| {
        let due = transaction.prepare_cached(DUE).await?;
        let due = transaction
            .query(&due, &[&after.bucket, &after.merchant, &after.currency, &after.number, &ACCOUNTS])
            .await?;
        let Some(last) = due.last() else { return Ok(Pass::Done) };
        let folded = fold(transaction, &Accounts::of(&due)?).await?;
        Ok(if i64::try_from(due.len()) == Ok(ACCOUNTS) {
            Pass::UpTo(account(last)?)
        } else if folded >= CHANGES_OF_ONE.unsigned_abs() {
            Pass::Busy
        } else {
            Pass::Done
        })
    })
    .await
}

/// Folds the changes of a locked account.
pub(in crate::store::postgres) async fn own(
    transaction: &Transaction<'_>,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(), PgError> {
    let accounts = Accounts {
        buckets: vec![bucket_of(merchant)],
        merchants: vec![merchant.as_str()],
        currencies: vec![currency.as_str()],
        numbers: vec![narrow(account_number(account))],
    };
    move_changes(transaction, &accounts).await.map(drop)
}

/// Locks accounts and folds their changes; returns how many.
async fn fold(transaction: &Transaction<'_>, accounts: &Accounts<'_>) -> Result<u64, PgError> {
    let make = transaction.prepare_cached(MAKE).await?;
    transaction.execute(&make, &accounts.parameters()).await?;
    let lock = transaction.prepare_cached(LOCK).await?;
    let locked = transaction.query(&lock, &accounts.parameters()).await?;
    move_changes(transaction, &Accounts::of(&locked)?).await
}

async fn move_changes(transaction: &Transaction<'_>, accounts: &Accounts<'_>) -> Result<u64, PgError> {
    let statement = transaction.prepare_cached(MOVE).await?;
    let [buckets, merchants, currencies, numbers] = accounts.parameters();
    let parameters = [buckets, merchants, currencies, numbers, &CHANGES_OF_ONE, &CHANGES];
    Ok(transaction.execute(&statement, &parameters).await?)
}

fn account(row: &Row) -> Result<FoldedAccount, PgError> {
    Ok(FoldedAccount { bucket: get(row, 0)?, merchant: get(row, 1)?, currency: get(row, 2)?, number: get(row, 3)? })
}

/// Names of accounts, as parameters.
#[derive(Default)]
struct Accounts<'a> {
    buckets: Vec<i16>,
    merchants: Vec<&'a str>,
    currencies: Vec<&'a str>,
    numbers: Vec<i16>,
}

impl<'a> Accounts<'a> {
    /// Returns the accounts that rows name.
    fn of(rows: &'a [Row]) -> Result<Self, PgError> {
        let mut accounts = Self::default();
        for row in rows {
            accounts.buckets.push(get(row, 0)?);
            accounts.merchants.push(get(row, 1)?);
            accounts.currencies.push(get(row, 2)?);
            accounts.numbers.push(get(row, 3)?);
        }
        Ok(accounts)
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.buckets, &self.merchants, &self.currencies, &self.numbers]
    }
}

/// The accounts with changes, after one, in the order in which they are locked: one step into the index for each,
/// however many changes there are.
pub(in crate::store::postgres) const DUE: &str = "WITH RECURSIVE due AS (\
    (SELECT bucket, merchant, currency, account FROM balance_changes \
    WHERE (bucket, merchant, currency, account) > ($1::smallint, $2::text, $3::text, $4::smallint) \
    ORDER BY bucket, merchant, currency, account LIMIT 1) UNION ALL \
    SELECT next.* FROM due CROSS JOIN LATERAL (SELECT bucket, merchant, currency, account FROM balance_changes \
    WHERE (bucket, merchant, currency, account) > (due.bucket, due.merchant, due.currency, due.account) \
    ORDER BY bucket, merchant, currency, account LIMIT 1) AS next) \
    SELECT bucket, merchant, currency, account FROM due LIMIT $5";

/// The accounts that [`Accounts`] names.
macro_rules! named {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "unnest($1::smallint[], $2::text[], $3::text[], $4::smallint[]) AS named (bucket, merchant, currency, account)",
            $after
        )
    };
}

/// The missing accounts: inserting an existing one would wait for the transaction that changes it.
const MAKE: &str = named!(
    "INSERT INTO accounts (balance, bucket, merchant, currency, account) SELECT 0, named.* FROM ",
    " WHERE NOT EXISTS (SELECT FROM accounts AS a WHERE a.bucket = named.bucket AND a.merchant = named.merchant \
     AND a.currency = named.currency AND a.account = named.account) ON CONFLICT DO NOTHING"
);

const LOCK: &str = named!(
    "SELECT bucket, merchant, currency, account FROM accounts JOIN ",
    " USING (bucket, merchant, currency, account) ORDER BY bucket, merchant, currency, account \
     FOR UPDATE OF accounts SKIP LOCKED"
);

/// A sum outside the range of a balance stays in its changes, and does not prevent others from being folded.
const MOVE: &str = named!(
    "WITH picked AS MATERIALIZED (SELECT c.* FROM ",
    " CROSS JOIN LATERAL (SELECT ctid AS place, bucket, merchant, currency, account, amount FROM balance_changes AS c \
     WHERE c.bucket = named.bucket AND c.merchant = named.merchant AND c.currency = named.currency \
     AND c.account = named.account LIMIT $5) AS c LIMIT $6), \
     sums AS (SELECT bucket, merchant, currency, account, sum(amount) AS change FROM picked GROUP BY 1, 2, 3, 4), \
     folded AS (UPDATE accounts AS a SET balance = (a.balance + sums.change)::bigint FROM sums \
     WHERE a.bucket = sums.bucket AND a.merchant = sums.merchant AND a.currency = sums.currency \
     AND a.account = sums.account \
     AND a.balance + sums.change BETWEEN -9223372036854775808 AND 9223372036854775807 \
     RETURNING a.bucket, a.merchant, a.currency, a.account) \
     DELETE FROM balance_changes WHERE ctid = ANY (ARRAY(SELECT place FROM picked \
     JOIN folded USING (bucket, merchant, currency, account)))"
);
