//! Journal entries as rows of PostgreSQL: see [`rows::entry`](crate::store::rows::entry) for their meaning.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::domain::{CallbackUrl, Fingerprint, UnixMillis};
use crate::store::backend::NumberedEntry;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{bucket_in_number, bytes, get, narrow, small};
use crate::store::rows::direction_number;
use crate::store::rows::entry::{EntryRow, NewEntry};
use crate::store::{Backlog, EntryId, Unanswered};

/// The columns of an entry, in the order of [`read`].
macro_rules! entry {
    ($rest:literal) => {
        concat!(
            "SELECT j.entry, j.direction, j.state, j.status, j.created_at, j.amount, j.fingerprint, j.currency, j.merchant, \
             j.order_id, j.api_key, j.shop, j.v1_callback_url, j.transaction_id, j.redirect_url, j.account, j.body, \
             j.doubted_at, j.order_key ",
            $rest
        )
    };
}
pub(in crate::store::postgres) use entry;

/// One entry, by bucket and number.
pub(in crate::store::postgres) const BY_ID: &str = entry!("FROM journal j WHERE j.bucket = $1 AND j.entry = $2");

/// A page of a merchant's answered entries; positions are times. Parameters as for a page of operations.
pub(in crate::store::postgres) const PAGE: &str = concat!(
    "WITH page AS MATERIALIZED (SELECT created_at, entry FROM journal \
     WHERE bucket = $1 AND merchant = $2 AND state = 2 AND created_at BETWEEN $3 AND $4 \
     AND ($5::smallint IS NULL OR direction = $5) AND ($6::text IS NULL OR shop = $6) \
     AND ($7::text IS NULL OR currency = $7) AND ($8::smallint IS NULL OR status = $8) \
     ORDER BY created_at DESC, entry DESC OFFSET $9 LIMIT $10) ",
    entry!(
        "FROM page JOIN journal j ON j.bucket = $1 AND j.entry = page.entry \
         ORDER BY j.created_at DESC, j.entry DESC"
    )
);

/// The number of columns that [`read`] takes.
pub(in crate::store::postgres) const COLUMNS: usize = 19;

/// Decodes the columns of an entry, which are the first of the row.
///
/// # Errors
/// A column has another type.
pub(in crate::store::postgres) fn read(row: &Row) -> Result<EntryRow, PgError> {
    Ok(EntryRow {
        id: get(row, 0)?,
        direction: small(row, 1)?,
        state: small(row, 2)?,
        status: small(row, 3)?,
        created_at: get(row, 4)?,
        amount: get(row, 5)?,
        fingerprint: bytes(row, 6)?,
        currency: get(row, 7)?,
        merchant: get(row, 8)?,
        order_id: get(row, 9)?,
        api_key: get(row, 10)?,
        shop: get(row, 11)?,
        v1_callback_url: get(row, 12)?,
        transaction_id: get(row, 13)?,
        redirect_url: get(row, 14)?,
        account: get(row, 15)?,
        body: get(row, 16)?,
        doubted_at: get(row, 17)?,
        order_key: bytes(row, 18)?,
    })
}

/// Reads an entry.
pub(in crate::store::postgres) async fn by_id(
    client: &impl GenericClient,
    id: EntryId,
) -> Result<Option<EntryRow>, PgError> {
    one(client, BY_ID, id).await
}

/// Reads an entry and locks it until the end of the transaction.
pub(in crate::store::postgres) async fn locked(
    client: &Transaction<'_>,
    id: EntryId,
) -> Result<Option<EntryRow>, PgError> {
    one(client, entry!("FROM journal j WHERE j.bucket = $1 AND j.entry = $2 FOR UPDATE"), id).await
}

async fn one(client: &impl GenericClient, sql: &str, id: EntryId) -> Result<Option<EntryRow>, PgError> {
    let statement = client.prepare_cached(sql).await?;
    let found = client.query_opt(&statement, &[&bucket_in_number(id.0), &id.0]).await?;
    found.as_ref().map(read).transpose()
}

/// Reads the entry with the engine's `transaction_id`, of any bucket: no two orders have the same.
pub(in crate::store::postgres) async fn of_transaction(
    client: &impl GenericClient,
    transaction_id: &str,
) -> Result<Option<EntryRow>, PgError> {
    let statement = client.prepare_cached(OF_TRANSACTION).await?;
    let found = client.query_opt(&statement, &[&transaction_id]).await?;
    found.as_ref().map(read).transpose()
}

/// One entry, by the engine's `transaction_id`.
pub(in crate::store::postgres) const OF_TRANSACTION: &str =
    entry!("FROM journal j WHERE j.transaction_id = $1 LIMIT 1");

/// Counts what has no answer.
pub(in crate::store::postgres) async fn unanswered(
    client: &impl GenericClient,
    most: u16,
) -> Result<Unanswered, PgError> {
    let statement = client.prepare_cached(UNANSWERED).await?;
    let row = client.query_one(&statement, &[&i64::from(most)]).await?;
    let backlog = |first: usize| {
        let oldest = get::<Option<i64>>(&row, first + 1)?.map(UnixMillis);
        Ok::<_, PgError>(Backlog { count: get::<i64>(&row, first)?.unsigned_abs(), oldest })
    };
    Ok(Unanswered { open: backlog(0)?, in_doubt: backlog(2)?, jobs: backlog(4)? })
}

/// Counts open entries, those in doubt and retried jobs, up to a limit each, with the time of the oldest. Partial indexes
/// contain only these, of all buckets.
pub(in crate::store::postgres) const UNANSWERED: &str = "SELECT \
    (SELECT count(*) FROM (SELECT FROM journal WHERE state = 0 LIMIT $1) AS open), \
    (SELECT created_at FROM journal WHERE state = 0 ORDER BY entry LIMIT 1), \
    (SELECT count(*) FROM (SELECT FROM journal WHERE state = 1 LIMIT $1) AS in_doubt), \
    (SELECT created_at FROM journal WHERE state = 1 ORDER BY entry LIMIT 1), \
    (SELECT count(*) FROM (SELECT FROM tasks WHERE kind = 0 AND attempts > 2 LIMIT $1) AS jobs), \
    (SELECT queued_at FROM tasks WHERE kind = 0 AND attempts > 2 ORDER BY queued_at LIMIT 1)";

/// Reads open entries after a number, oldest first, each with its number; some cannot be decoded.
pub(in crate::store::postgres) async fn open_after(
    client: &impl GenericClient,
    after: i64,
    limit: usize,
) -> Result<Vec<NumberedEntry>, PgError> {
    let statement = client.prepare_cached(OPEN_AFTER).await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = client.query(&statement, &[&after, &limit]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, read(row).map_err(PgError::reported)))).collect()
}

/// The partial index `journal_open` contains only these, of all buckets.
pub(in crate::store::postgres) const OPEN_AFTER: &str =
    entry!("FROM journal j WHERE j.state = 0 AND j.entry > $1 ORDER BY j.entry LIMIT $2");

/// Inserts an open entry under a number. Returns `false` if the number exists.
pub(in crate::store::postgres) async fn insert(
    client: &Transaction<'_>,
    new: &NewEntry,
    id: EntryId,
) -> Result<bool, PgError> {
    let (intent, Fingerprint(order_key)) = (&new.intent, &new.order_key);
    let parameters: [&(dyn ToSql + Sync); 14] = [
        &id.0,
        &intent.created_at.0,
        &intent.amount.hundredths().cast_signed(),
        &bucket_in_number(id.0),
        &narrow(direction_number(intent.direction)),
        &&order_key[..],
        &&intent.fingerprint.0[..],
        &intent.currency.as_str(),
        &intent.merchant.as_str(),
        &intent.order_id.as_str(),
        &&*intent.api_key,
        &intent.shop.as_deref().unwrap_or_default(),
        &intent.callback_url.as_ref().map(CallbackUrl::as_str),
        &new.body,
    ];
    let statement = client.prepare_cached(INSERT).await?;
    Ok(client.execute(&statement, &parameters).await? == 1)
}

const INSERT: &str = "INSERT INTO journal (entry, created_at, amount, bucket, direction, state, status, order_key, fingerprint, \
    currency, merchant, order_id, api_key, shop, v1_callback_url, body) \
    VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING";
