//! The double-entry ledger: entries, and balances that are kept beside them.
//!
//! A posting adds its entries and a change for each account, and waits for nobody. A balance is the sum of an account's row
//! and of its changes, read in one statement. Whoever decides by a balance locks the row first: deciders of an account go
//! one after the other, and each sees what the one before it changed. Changes are folded into their rows now and then,
//! under the same lock.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::node::Node;
use super::row::{bucket_in_number, bucket_of, get, narrow};
use crate::domain::{Amount, Balance, Bucket, Currency, LedgerAccount, MerchantId, Posting, TransactionId, UnixMillis};
use crate::store::StoreError;
pub(super) use crate::store::rows::posting::{
    Booking, Occasion, account_number, of_creation, of_result, posting_number, signed,
};

/// Books postings of one booking.
///
/// # Errors
/// The occasion has one of them already; the database does not answer.
pub(super) async fn book(
    transaction: &Transaction<'_>,
    postings: &[Posting],
    booking: Booking<'_>,
) -> Result<(), Fault> {
    if postings.is_empty() {
        return Ok(());
    }
    let Booking { occasion, merchant, currency, amount, at } = booking;
    let (mut numbers, mut accounts, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for posting in postings {
        let (from, to) = posting.from_to();
        for (account, amount) in [(from, -amount), (to, amount)] {
            numbers.push(narrow(posting_number(*posting)));
            accounts.push(narrow(account_number(account)));
            amounts.push(amount);
        }
    }
    let id = occasion.to_stored();
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

/// Takes note of a merchant; `false`: it was known.
pub(super) async fn meet(transaction: &Transaction<'_>, merchant: &MerchantId) -> Result<bool, Fault> {
    let statement = transaction.prepare_cached("INSERT INTO merchants VALUES ($1, $2) ON CONFLICT DO NOTHING").await?;
    Ok(transaction.execute(&statement, &[&bucket_of(merchant), &merchant.as_str()]).await? == 1)
}

/// Books the opening balances of a merchant that was met now.
pub(super) async fn open(
    transaction: &Transaction<'_>,
    occasion: Occasion,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
) -> Result<(), Fault> {
    for (currency, amount) in opening {
        let (merchant, currency) = (merchant.as_str(), currency.as_str());
        let booking = Booking { occasion, merchant, currency, amount: signed(*amount), at };
        book(transaction, &[Posting::Opened], booking).await?;
    }
    Ok(())
}

/// Opens a ledger without an operation, unless the merchant is known. `random` draws the id.
pub(super) async fn open_alone(
    transaction: &Transaction<'_>,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
    random: u64,
) -> Result<(), Fault> {
    if !meet(transaction, merchant).await? {
        return Ok(());
    }
    // Merchants of the same bucket that are opened in the same millisecond may draw the same id: the next one is free.
    for step in 0..OPENING_IDS {
        let id = TransactionId::compose(at, Bucket::of(merchant), random.wrapping_add(step));
        let occasion = Occasion::Opening(id);
        if !has_entries(transaction, occasion).await? {
            return open(transaction, occasion, merchant, opening, at).await;
        }
    }
    Err(StoreError::Unavailable("no number is left for an opening in this millisecond".to_owned()).into())
}

/// How many ids a bucket has in a millisecond.
const OPENING_IDS: u64 = 1 << 12;

async fn has_entries(transaction: &Transaction<'_>, occasion: Occasion) -> Result<bool, Fault> {
    let id = occasion.to_stored();
    let statement = transaction
        .prepare_cached("SELECT EXISTS (SELECT FROM entries WHERE bucket = $1 AND transaction_id = $2)")
        .await?;
    get(&transaction.query_one(&statement, &[&bucket_in_number(id), &id]).await?, 0)
}

/// Whether a merchant was seen: its opening balances were booked, or never will be.
pub(super) async fn knows(client: &impl GenericClient, merchant: &MerchantId) -> Result<bool, Fault> {
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
) -> Result<(), Fault> {
    let statement = transaction
        .prepare_cached(
            "INSERT INTO accounts (balance, bucket, account, merchant, currency) VALUES (0, $1, $2, $3, $4) \
             ON CONFLICT (bucket, merchant, currency, account) DO UPDATE SET balance = accounts.balance",
        )
        .await?;
    let account = narrow(account_number(account));
    transaction.execute(&statement, &[&bucket_of(merchant), &account, &merchant.as_str(), &currency.as_str()]).await?;
    Ok(())
}

/// The balance of an account; zero when nothing was booked.
///
/// # Errors
/// It is out of range; the database does not answer.
pub(super) async fn balance(
    client: &impl GenericClient,
    merchant: &MerchantId,
    currency: Currency,
    account: LedgerAccount,
) -> Result<i64, Fault> {
    let statement = client
        .prepare_cached(
            "SELECT (coalesce((SELECT balance FROM accounts \
             WHERE bucket = $1 AND merchant = $2 AND currency = $3 AND account = $4), 0) \
             + coalesce((SELECT sum(amount) FROM balance_changes \
             WHERE bucket = $1 AND merchant = $2 AND currency = $3 AND account = $4), 0))::bigint",
        )
        .await?;
    let account = narrow(account_number(account));
    let row =
        client.query_one(&statement, &[&bucket_of(merchant), &merchant.as_str(), &currency.as_str(), &account]).await?;
    get(&row, 0)
}

/// What a merchant has in each currency, sorted. Whatever is booked has a second side: an account that can be withdrawn from
/// and stands alone was only locked.
pub(super) async fn balances(
    client: &impl GenericClient,
    merchant: &MerchantId,
) -> Result<Vec<(Currency, Balance)>, Fault> {
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

/// The most accounts that are folded in one transaction, and the most changes that are looked at for them.
const FOLDED_ACCOUNTS: i64 = 256;
const LOOKED_AT: i64 = 16 * 1024;

/// Folds changes into the rows of their accounts; `true`: there may be more. Accounts that somebody decides by at this
/// moment, or another node folds, are left for the next time.
///
/// # Errors
/// The database does not answer; a balance is out of range, and stays in its changes.
pub(super) async fn fold(node: &Node) -> Result<bool, StoreError> {
    node.transact(async |transaction| {
        let due = transaction.prepare_cached(TO_BE_FOLDED).await?;
        let due = transaction.query(&due, &[&LOOKED_AT, &FOLDED_ACCOUNTS]).await?;
        let Some(accounts) = Accounts::of(&due)? else { return Ok(false) };
        let made = transaction.prepare_cached(MAKE_ACCOUNTS).await?;
        transaction.execute(&made, &accounts.parameters()).await?;
        let locked = transaction.prepare_cached(LOCK_TO_FOLD).await?;
        let locked = transaction.query(&locked, &accounts.parameters()).await?;
        let Some(locked) = Accounts::of(&locked)? else { return Ok(false) };
        let fold = transaction.prepare_cached(FOLD).await?;
        transaction.execute(&fold, &locked.parameters()).await?;
        Ok(locked.buckets.len() == due.len() && i64::try_from(due.len()) == Ok(FOLDED_ACCOUNTS))
    })
    .await
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
    /// Those that rows name; `None`: there are none.
    fn of(rows: &'a [Row]) -> Result<Option<Self>, Fault> {
        let mut accounts = Self::default();
        for row in rows {
            accounts.buckets.push(get(row, 0)?);
            accounts.merchants.push(get(row, 1)?);
            accounts.currencies.push(get(row, 2)?);
            accounts.numbers.push(get(row, 3)?);
        }
        Ok((!rows.is_empty()).then_some(accounts))
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.buckets, &self.merchants, &self.currencies, &self.numbers]
    }
}

/// In the order in which they are locked.
const TO_BE_FOLDED: &str = "SELECT bucket, merchant, currency, account FROM (SELECT * FROM balance_changes LIMIT $1) AS looked_at \
    GROUP BY bucket, merchant, currency, account ORDER BY bucket, merchant, currency, account LIMIT $2";

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

const MAKE_ACCOUNTS: &str = named!(
    "INSERT INTO accounts (balance, bucket, merchant, currency, account) SELECT 0, named.* FROM ",
    " ON CONFLICT DO NOTHING"
);

const LOCK_TO_FOLD: &str = named!(
    "SELECT bucket, merchant, currency, account FROM accounts JOIN ",
    " USING (bucket, merchant, currency, account) ORDER BY bucket, merchant, currency, account \
     FOR UPDATE OF accounts SKIP LOCKED"
);

const FOLD: &str = named!(
    "WITH gone AS (DELETE FROM balance_changes AS c USING ",
    " WHERE c.bucket = named.bucket AND c.merchant = named.merchant AND c.currency = named.currency \
     AND c.account = named.account RETURNING c.bucket, c.merchant, c.currency, c.account, c.amount), \
     sums AS (SELECT bucket, merchant, currency, account, sum(amount) AS change FROM gone GROUP BY 1, 2, 3, 4) \
     UPDATE accounts AS a SET balance = (a.balance + sums.change)::bigint FROM sums \
     WHERE a.bucket = sums.bucket AND a.merchant = sums.merchant AND a.currency = sums.currency \
     AND a.account = sums.account"
);
