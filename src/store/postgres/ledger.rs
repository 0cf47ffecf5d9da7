//! The double-entry ledger: entries, and balances that are kept beside them.
//!
//! A posting adds its entries and a change for each account, and waits for nobody. A balance is the sum of an account's row
//! and of its changes, read in one statement. Whoever decides by a balance locks the row first: deciders of an account go
//! one after the other, and each sees what the one before it changed. Changes are folded into their rows now and then,
//! under the same lock ([`fold`]).

pub(super) mod fold;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;

use super::errors::PgError;
use super::row::{bucket_in_number, bucket_of, get, narrow};
use crate::domain::{Balance, Currency, LedgerAccount, MerchantId, Posting};
use crate::store::StoreError;
use crate::store::rows::ledger::{LedgerEntry, account_number, posting_number};

/// Books postings of one booking.
///
/// # Errors
/// The occasion has one of them already; the database does not answer.
pub(super) async fn book(
    transaction: &Transaction<'_>,
    postings: &[Posting],
    booking: LedgerEntry<'_>,
) -> Result<(), PgError> {
    if postings.is_empty() {
        return Ok(());
    }
    let LedgerEntry { source, merchant, currency, amount, at } = booking;
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
    let statement = transaction.prepare_cached(BOOK).await?;
    transaction
        .execute(&statement, &[&id, &at.0, &bucket_in_number(id), &currency, &merchant, &numbers, &accounts, &amounts])
        .await?;
    Ok(())
}

const BOOK: &str = "WITH side AS (SELECT * FROM unnest($6::smallint[], $7::smallint[], $8::bigint[]) \
    AS side (posting, account, amount)), \
    booked AS (INSERT INTO entries (transaction_id, booked_at, bucket, currency, merchant, posting, account, amount) \
    SELECT $1, $2, $3, $4, $5, posting, account, amount FROM side) \
    INSERT INTO balance_changes (bucket, currency, merchant, account, amount) \
    SELECT $3, $4, $5, account, amount FROM side";

/// Whether a merchant was seen: its opening balances were booked, or never will be.
pub(super) async fn knows(client: &impl GenericClient, merchant: &MerchantId) -> Result<bool, PgError> {
    let statement =
        client.prepare_cached("SELECT EXISTS (SELECT FROM merchants WHERE bucket = $1 AND merchant = $2)").await?;
    get(&client.query_one(&statement, &[&bucket_of(merchant), &merchant.as_str()]).await?, 0)
}

/// Makes sure that nobody else decides by an account, or folds its changes, until the end of the transaction.
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

/// The balance of an account; zero when nothing was booked. Of changes that were not folded, how many there are.
///
/// # Errors
/// It is out of range; the database does not answer.
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

/// What a merchant has in each currency, sorted. Whatever is booked has a second side: an account that can be withdrawn from
/// and stands alone was only locked.
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
