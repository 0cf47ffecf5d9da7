//! The double-entry ledger: entries, and balances that are kept with them.
//!
//! A posting inserts its entries and one change for each account, and waits for no lock. A balance is the sum of the row of
//! its account and its changes, read in one statement. A create that decides by a balance locks the row first: decisions
//! about an account run one after the other, and each sees the changes before it. Changes are folded into their rows from
//! time to time, under the same lock ([`fold`]).

pub(super) mod fold;

use super::errors::PgError;
use super::transaction::PgTransaction;
use crate::domain::{Balance, Currency, LedgerAccount, MerchantId, Posting};
use crate::store::rows::OrCorrupt;
use crate::store::rows::ledger::{LedgerEntry, account_number, posting_number};
use crate::store::sql::{Columns, Parameter, Sql, Transaction, params, sql};

const POST: Sql = sql!(
    "WITH posted AS (INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)) \
     INSERT INTO balance_changes (transaction_id, posting, currency, account, amount, merchant) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
);

/// Posts the entries of several postings with one source.
///
/// # Errors
/// The source has one of these postings already; the database does not respond.
pub(super) async fn post(tx: &PgTransaction<'_>, postings: &[Posting], entry: LedgerEntry<'_>) -> Result<(), PgError> {
    let LedgerEntry { source, merchant, currency, amount, at } = entry;
    let sides = postings.iter().flat_map(|posting| {
        let (from, to) = posting.from_to();
        [(from, -amount), (to, amount)].map(|(account, amount)| {
            let (posting, account) = (posting_number(*posting), account_number(account));
            params![source.to_stored(), posting, currency, account, amount, merchant, at]
        })
    });
    tx.execute_each(POST, &sides.collect::<Vec<_>>()).await.map(drop)
}

/// The parameters that name an account.
fn names<'a>(merchant: &'a MerchantId, currency: &'a Currency, account: LedgerAccount) -> [Parameter<'a>; 3] {
    params![merchant, currency.as_str(), account_number(account)]
}

const LOCK: Sql =
    sql!("SELECT balance FROM accounts WHERE merchant = ?1 AND currency = ?2 AND account = ?3 FOR UPDATE");

const MAKE: Sql =
    sql!("INSERT INTO accounts (merchant, currency, account, balance) VALUES (?1, ?2, ?3, 0) ON CONFLICT DO NOTHING");

/// Locks an account until the end of the transaction: no other transaction decides by it or folds its changes.
pub(super) async fn lock(
    tx: &PgTransaction<'_>,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(), PgError> {
    let names = names(merchant, &currency, account);
    if tx.query_opt(LOCK, &names, |_| Ok(())).await?.is_none() {
        tx.execute(MAKE, &names).await?;
        tx.query_opt(LOCK, &names, |_| Ok(())).await?;
    }
    Ok(())
}

const BALANCE: Sql = sql!(
    "SELECT (coalesce((SELECT balance FROM accounts WHERE merchant = ?1 AND currency = ?2 AND account = ?3), 0) \
     + coalesce(changes.sum, 0))::bigint, changes.count FROM \
     (SELECT sum(amount), count(*) FROM balance_changes WHERE merchant = ?1 AND currency = ?2 AND account = ?3) AS changes"
);

/// Returns the balance of an account (zero if nothing was posted) and the number of its unfolded changes.
///
/// # Errors
/// The balance is out of range; the database does not respond.
pub(super) async fn balance(
    tx: &PgTransaction<'_>,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(i64, i64), PgError> {
    let names = names(merchant, &currency, account);
    let found = tx.query_opt(BALANCE, &names, |row| Ok((row.get(0)?, row.get(1)?))).await?;
    Ok(found.unwrap_or_default())
}

const BALANCES: Sql = sql!(
    "SELECT currency, coalesce(sum(amount) FILTER (WHERE account = ?2), 0)::bigint, \
     coalesce(sum(amount) FILTER (WHERE account = ?3), 0)::bigint FROM \
     (SELECT currency, account, balance AS amount FROM accounts WHERE merchant = ?1 UNION ALL \
     SELECT currency, account, amount FROM balance_changes WHERE merchant = ?1) AS parts \
     GROUP BY currency HAVING bool_or(account <> ?2) ORDER BY currency"
);

/// Returns a merchant's balance in each currency, sorted by currency. Every posting has a second account, so a currency
/// with only an available account was locked but never posted to.
pub(super) async fn balances(
    tx: &PgTransaction<'_>,
    merchant: &MerchantId,
) -> Result<Vec<(Currency, Balance)>, PgError> {
    let [available, held] = [LedgerAccount::Available, LedgerAccount::Held].map(account_number);
    let read = |row: &dyn Columns| {
        let currency = Currency::new(&row.get::<Box<str>>(0)?).or_corrupt("currency")?;
        Ok((currency, Balance { available: row.get(1)?, held: row.get(2)? }))
    };
    tx.query(BALANCES, &params![merchant, available, held], read).await
}
