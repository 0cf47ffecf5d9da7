//! Folds changes of balances into the rows of their accounts: a balance stays the sum of few rows.
//!
//! Each node folds from time to time, account by account in the order of the index ([`pass`]). Decisions about a busy
//! account queue for its row, so that a pass, which does not wait, would never get it: they fold its changes themselves
//! when there are many ([`own`]).

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::account_number;
use crate::domain::{Currency, LedgerAccount, MerchantId};
use crate::store::StoreError;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::node::PgNode;
use crate::store::postgres::transaction::{Executor, get};

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
    let first = FoldedAccount::default();
    let after = after.unwrap_or(&first);
    node.transact(async |tx| {
        let executor = tx.executor;
        let parameters: [&(dyn ToSql + Sync); 4] = [&after.merchant, &after.currency, &after.number, &ACCOUNTS];
        let due = executor.query(&executor.prepare(DUE).await?, &parameters).await?;
        let Some(last) = due.last() else { return Ok(Pass::Done) };
        let folded = fold(executor, &Accounts::of(&due)?).await?;
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
    executor: Executor<'_>,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(), PgError> {
    let accounts = Accounts {
        merchants: vec![merchant.as_str()],
        currencies: vec![currency.as_str()],
        numbers: vec![i16::try_from(account_number(account)).unwrap_or(i16::MAX)],
    };
    move_changes(executor, &accounts).await.map(drop)
}

/// Locks accounts and folds their changes; returns how many.
async fn fold(executor: Executor<'_>, accounts: &Accounts<'_>) -> Result<u64, PgError> {
    executor.execute(&executor.prepare(MAKE).await?, &accounts.parameters()).await?;
    let locked = executor.query(&executor.prepare(LOCK).await?, &accounts.parameters()).await?;
    move_changes(executor, &Accounts::of(&locked)?).await
}

async fn move_changes(executor: Executor<'_>, accounts: &Accounts<'_>) -> Result<u64, PgError> {
    let [merchants, currencies, numbers] = accounts.parameters();
    let parameters = [merchants, currencies, numbers, &CHANGES_OF_ONE, &CHANGES];
    executor.execute(&executor.prepare(MOVE).await?, &parameters).await
}

fn account(row: &Row) -> Result<FoldedAccount, PgError> {
    Ok(FoldedAccount { merchant: get(row, 0)?, currency: get(row, 1)?, number: get(row, 2)? })
}

/// Names of accounts, as parameters.
#[derive(Default)]
struct Accounts<'a> {
    merchants: Vec<&'a str>,
    currencies: Vec<&'a str>,
    numbers: Vec<i16>,
}

impl<'a> Accounts<'a> {
    /// Returns the accounts that rows name.
    fn of(rows: &'a [Row]) -> Result<Self, PgError> {
        let mut accounts = Self::default();
        for row in rows {
            accounts.merchants.push(get(row, 0)?);
            accounts.currencies.push(get(row, 1)?);
            accounts.numbers.push(get(row, 2)?);
        }
        Ok(accounts)
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.merchants, &self.currencies, &self.numbers]
    }
}

/// The accounts with changes, after one, in the order in which they are locked: one step into the index for each,
/// however many changes there are.
pub(in crate::store::postgres) const DUE: &str = "WITH RECURSIVE due AS (\
    (SELECT merchant, currency, account FROM balance_changes \
    WHERE (merchant, currency, account) > ($1::text, $2::text, $3::smallint) \
    ORDER BY merchant, currency, account LIMIT 1) UNION ALL \
    SELECT next.* FROM due CROSS JOIN LATERAL (SELECT merchant, currency, account FROM balance_changes \
    WHERE (merchant, currency, account) > (due.merchant, due.currency, due.account) \
    ORDER BY merchant, currency, account LIMIT 1) AS next) \
    SELECT merchant, currency, account FROM due LIMIT $4";

/// The accounts that [`Accounts`] names.
macro_rules! named {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "unnest($1::text[], $2::text[], $3::smallint[]) AS named (merchant, currency, account)",
            $after
        )
    };
}

/// The missing accounts: inserting an existing one would wait for the transaction that changes it.
const MAKE: &str = named!(
    "INSERT INTO accounts (balance, merchant, currency, account) SELECT 0, named.* FROM ",
    " WHERE NOT EXISTS (SELECT 1 FROM accounts AS a WHERE a.merchant = named.merchant \
     AND a.currency = named.currency AND a.account = named.account) ON CONFLICT DO NOTHING"
);

const LOCK: &str = named!(
    "SELECT merchant, currency, account FROM accounts JOIN ",
    " USING (merchant, currency, account) ORDER BY merchant, currency, account FOR UPDATE OF accounts SKIP LOCKED"
);

/// A sum outside the range of a balance stays in its changes, and does not prevent others from being folded.
const MOVE: &str = named!(
    "WITH picked AS MATERIALIZED (SELECT c.* FROM ",
    " CROSS JOIN LATERAL (SELECT merchant, currency, account, transaction_id, posting, amount FROM balance_changes AS c \
     WHERE c.merchant = named.merchant AND c.currency = named.currency AND c.account = named.account \
     LIMIT $4) AS c LIMIT $5), \
     sums AS (SELECT merchant, currency, account, sum(amount) AS change FROM picked GROUP BY 1, 2, 3), \
     folded AS (UPDATE accounts AS a SET balance = (a.balance + sums.change)::bigint FROM sums \
     WHERE a.merchant = sums.merchant AND a.currency = sums.currency AND a.account = sums.account \
     AND a.balance + sums.change BETWEEN -9223372036854775808 AND 9223372036854775807 \
     RETURNING a.merchant, a.currency, a.account) \
     DELETE FROM balance_changes AS b USING picked JOIN folded USING (merchant, currency, account) \
     WHERE b.merchant = picked.merchant AND b.currency = picked.currency AND b.account = picked.account \
     AND b.transaction_id = picked.transaction_id AND b.posting = picked.posting"
);
