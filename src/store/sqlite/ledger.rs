//! The balances of accounts, which are rows that each posting updates. In PostgreSQL transactions would wait for each other there.

use super::transaction::SqliteTransaction;
use crate::domain::{Balance, Currency, LedgerAccount, MerchantId, Posting};
use crate::store::rows::OrCorrupt;
use crate::store::rows::ledger::{LedgerEntry, account_number, posting_number};
use crate::store::sql::{Columns, Sql, Transaction, params, sql};

/// The error of a balance outside the range of a signed 64-bit number.
#[derive(Debug, thiserror::Error)]
#[error("an account's balance would be out of range, so nothing was posted")]
struct OutOfRange;

const ENTRY: Sql = sql!(
    "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
);

const SET_BALANCE: Sql = sql!(
    "INSERT INTO accounts (merchant, currency, account, balance) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT DO UPDATE SET balance = excluded.balance"
);

/// Posts the two entries of each posting, and updates the balances of their accounts.
///
/// # Errors
/// The source has one of the postings already, or a balance would be out of range. The transaction must not be committed then.
pub(super) async fn post(
    tx: &SqliteTransaction<'_>,
    postings: &[Posting],
    entry: LedgerEntry<'_>,
) -> rusqlite::Result<()> {
    let LedgerEntry { source, merchant, currency, amount, at } = entry;
    for posting in postings {
        let (from, to) = posting.from_to();
        for (account, amount) in [(from, -amount), (to, amount)] {
            let (number, posting) = (account_number(account), posting_number(*posting));
            let columns = params![source.to_stored(), posting, currency, number, amount, merchant, at];
            tx.execute(ENTRY, &columns).await?;
            let balance = balance(tx, merchant, currency, account).await?.checked_add(amount);
            let balance = balance.ok_or_else(|| rusqlite::Error::ToSqlConversionFailure(Box::new(OutOfRange)))?;
            tx.execute(SET_BALANCE, &params![merchant, currency, number, balance]).await?;
        }
    }
    Ok(())
}

const BALANCE: Sql = sql!("SELECT balance FROM accounts WHERE merchant = ?1 AND currency = ?2 AND account = ?3");

/// Returns the balance of an account; zero if nothing was posted.
pub(super) async fn balance(
    tx: &SqliteTransaction<'_>,
    merchant: &str,
    currency: &str,
    account: LedgerAccount,
) -> rusqlite::Result<i64> {
    let names = params![merchant, currency, account_number(account)];
    Ok(tx.query_opt(BALANCE, &names, |row| row.get(0)).await?.unwrap_or(0))
}

const BALANCES: Sql = sql!(
    "SELECT currency, coalesce(sum(balance) FILTER (WHERE account = ?2), 0), \
     coalesce(sum(balance) FILTER (WHERE account = ?3), 0) \
     FROM accounts WHERE merchant = ?1 GROUP BY currency ORDER BY currency"
);

/// Returns a merchant's balance in each currency, sorted by currency.
pub(super) async fn balances(
    tx: &SqliteTransaction<'_>,
    merchant: &MerchantId,
) -> rusqlite::Result<Vec<(Currency, Balance)>> {
    let [available, held] = [LedgerAccount::Available, LedgerAccount::Held].map(account_number);
    let read = |row: &dyn Columns| {
        let currency = Currency::new(&row.get::<Box<str>>(0)?).or_corrupt("currency")?;
        Ok((currency, Balance { available: row.get(1)?, held: row.get(2)? }))
    };
    tx.query(BALANCES, &params![merchant, available, held], read).await
}
