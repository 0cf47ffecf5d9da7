//! The double-entry ledger: entries, and balances that are kept with them.
//!
//! A posting inserts its entries and one change for each account, and waits for no lock. A balance is the sum of the
//! row of its account and its changes, read in one statement. A create that decides by a balance locks the row first,
//! so that decisions about an account run one after the other, and each sees the changes of the previous one. Changes
//! are folded into their rows from time to time, under the same lock ([`fold`]).

pub(super) mod fold;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;

use super::errors::PgError;
use super::row::{bucket_in_number, bucket_of, get, narrow};
use crate::domain::{Balance, Currency, LedgerAccount, MerchantId, Posting};
use crate::store::StoreError;
use crate::store::rows::ledger::{LedgerEntry, account_number, posting_number};

/// Posts the entries of several postings with one source.
///
/// # Errors
/// The source has one of these postings already; the database does not respond.
pub(super) async fn post(
    transaction: &Transaction<'_>,
    postings: &[Posting],
    entry: LedgerEntry<'_>,
) -> Result<(), PgError> {
    if postings.is_empty() {
        return Ok(());
    }
    let LedgerEntry { source, merchant, currency, amount, at } = entry;
    let (mut numbers, mut accounts, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for posting in postings {
        let (from, to) = posting.from_to();
        for (account, amount) in [(from, -amount), (to, amount)] {
            numbers.push(narrow(posting_number(*posting)));
            accounts.push(narrow(account_number(account)));
            amounts.push(amount);
        }
    }
    let id = source.to_stored();
    let statement = transaction.prepare_cached(POST).await?;
    transaction
        .execute(&statement, &[&id, &at.0, &bucket_in_number(id), &currency, &merchant, &numbers, &accounts, &amounts])
        .await?;
    Ok(())
}

const POST: &str = "WITH side AS (SELECT * FROM unnest($6::smallint[], $7::smallint[], $8::bigint[]) \
    AS side (posting, account, amount)), \
    booked AS (INSERT INTO entries (transaction_id, booked_at, bucket, currency, merchant, posting, account, amount) \
    SELECT $1, $2, $3, $4, $5, posting, account, amount FROM side) \
    INSERT INTO balance_changes (bucket, currency, merchant, account, amount) \
    SELECT $3, $4, $5, account, amount FROM side";

/// Reports whether a merchant is known: its opening balances were posted, or never will be.
pub(super) async fn is_known_merchant(client: &impl GenericClient, merchant: &MerchantId) -> Result<bool, PgError> {
    let statement =
        client.prepare_cached("SELECT EXISTS (SELECT FROM merchants WHERE bucket = $1 AND merchant = $2)").await?;
    get(&client.query_one(&statement, &[&bucket_of(merchant), &merchant.as_str()]).await?, 0)
}

/// Locks an account until the end of the transaction: no other transaction decides by it or folds its changes.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(), PgError> {
    let account = narrow(account_number(account));
    let (bucket, merchant, currency) = (bucket_of(merchant), merchant.as_str(), currency.as_str());
    let parameters: [&(dyn ToSql + Sync); 4] = [&bucket, &merchant, &currency, &account];
    let lock = transaction.prepare_cached(LOCK).await?;
    if transaction.query_opt(&lock, &parameters).await?.is_none() {
        let make = transaction
            .prepare_cached(
                "INSERT INTO accounts (balance, bucket, merchant, currency, account) VALUES (0, $1, $2, $3, $4) \
                 ON CONFLICT DO NOTHING",
            )
            .await?;
        transaction.execute(&make, &parameters).await?;
        transaction.query_one(&lock, &parameters).await?;
    }
    Ok(())
}

const LOCK: &str = "SELECT balance FROM accounts \
    WHERE bucket = $1 AND merchant = $2 AND currency = $3 AND account = $4 FOR UPDATE";

/// Returns the balance of an account (zero if nothing was posted) and the number of its unfolded changes.
///
/// # Errors
/// The balance is out of range; the database does not respond.
pub(super) async fn balance(
    client: &impl GenericClient,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<(i64, i64), PgError> {
    let statement = client
        .prepare_cached(
            "SELECT (coalesce((SELECT balance FROM accounts \
             WHERE bucket = $1 AND merchant = $2 AND currency = $3 AND account = $4), 0) \
             + coalesce(changes.sum, 0))::bigint, changes.count FROM \
             (SELECT sum(amount), count(*) FROM balance_changes \
             WHERE bucket = $1 AND merchant = $2 AND currency = $3 AND account = $4) AS changes",
        )
        .await?;
    let account = narrow(account_number(account));
    let row =
        client.query_one(&statement, &[&bucket_of(merchant), &merchant.as_str(), &currency.as_str(), &account]).await?;
    Ok((get(&row, 0)?, get(&row, 1)?))
}

/// Returns a merchant's balance in each currency, sorted by currency. Every posting has a second account, so a currency
/// with only an available account was locked but never posted to.
pub(super) async fn balances(
    client: &impl GenericClient,
    merchant: &MerchantId,
) -> Result<Vec<(Currency, Balance)>, PgError> {
    let statement = client
        .prepare_cached(
            "SELECT currency, coalesce(sum(amount) FILTER (WHERE account = $3), 0)::bigint, \
             coalesce(sum(amount) FILTER (WHERE account = $4), 0)::bigint FROM \
             (SELECT currency, account, balance AS amount FROM accounts WHERE bucket = $1 AND merchant = $2 UNION ALL \
             SELECT currency, account, amount FROM balance_changes WHERE bucket = $1 AND merchant = $2) AS parts \
             GROUP BY currency HAVING bool_or(account <> $3) ORDER BY currency",
        )
        .await?;
    let [available, held] =
        [LedgerAccount::Available, LedgerAccount::Held].map(|account| narrow(account_number(account)));
    let rows = client.query(&statement, &[&bucket_of(merchant), &merchant.as_str(), &available, &held]).await?;
    rows.iter()
        .map(|row| {
            let currency = Currency::new(get(row, 0)?)
                .map_err(|_| StoreError::Corrupt("an account names no currency".to_owned()))?;
            Ok((currency, Balance { available: get(row, 1)?, held: get(row, 2)? }))
        })
        .collect()
}
