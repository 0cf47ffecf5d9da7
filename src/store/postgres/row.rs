//! Operations as rows of PostgreSQL: see [`rows`](crate::store::rows) for what they mean.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::fault::PgError;
use crate::domain::{Fingerprint, MerchantId, TransactionId};
use crate::store::StoreError;
pub(super) use crate::store::rows::operation::{StoredContext, StoredRow};

/// The columns of an operation `o` and of its context `x`. The order is [`read`]'s.
macro_rules! operation {
    ($rest:literal) => {
        concat!(
            "SELECT o.transaction_id, o.status, o.created_at, o.finished_at, o.amount, o.customer_account_id, o.fingerprint, \
             o.order_id, o.callback_url, o.sealed, o.payer, x.direction, x.provider, x.origin, x.merchant, x.api_key, \
             x.shop, x.currency, x.method, x.payment_method, x.kept ",
            $rest
        )
    };
}
pub(super) use operation;

/// One operation of a bucket and an id.
pub(super) const BY_ID: &str = operation!(
    "FROM operations o LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE o.bucket = $1 AND o.transaction_id = $2"
);

/// Operations of buckets and ids.
pub(super) const BY_IDS: &str = operation!(
    "FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) \
     JOIN operations o ON o.bucket = given.bucket AND o.transaction_id = given.key \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context"
);

/// Reads an operation.
pub(super) async fn by_id(client: &impl GenericClient, id: TransactionId) -> Result<Option<StoredRow>, PgError> {
    let statement = client.prepare_cached(BY_ID).await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.as_ref().map(read).transpose()
}

/// Reads what is sealed of an operation, its payer aside.
pub(super) async fn sealed(client: &impl GenericClient, id: TransactionId) -> Result<Option<Vec<u8>>, PgError> {
    let select = "SELECT sealed FROM operations WHERE bucket = $1 AND transaction_id = $2";
    let statement = client.prepare_cached(select).await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Reads operations, as far as they are there and readable, by their ids.
pub(super) async fn by_ids(client: &impl GenericClient, ids: &[i64]) -> Result<HashMap<i64, StoredRow>, PgError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let buckets: Vec<i16> = ids.iter().map(|id| bucket_in_number(*id)).collect();
    let statement = client.prepare_cached(BY_IDS).await?;
    let rows = client.query(&statement, &[&buckets, &ids]).await?;
    Ok(rows.iter().filter_map(|row| read(row).ok()).map(|row| (row.id, row)).collect())
}

/// The number of columns that [`read`] takes.
pub(super) const COLUMNS: usize = 21;

/// Reads the columns of an operation, which are the first of the row.
///
/// # Errors
/// A column is of another type than it was made.
pub(super) fn read(row: &Row) -> Result<StoredRow, PgError> {
    Ok(StoredRow {
        id: get(row, 0)?,
        status: small(row, 1)?,
        created_at: get(row, 2)?,
        finished_at: get(row, 3)?,
        amount: get(row, 4)?,
        customer_account_id: get(row, 5)?,
        fingerprint: bytes(row, 6)?,
        order_id: get(row, 7)?,
        callback_url: get(row, 8)?,
        sealed: get(row, 9)?,
        payer: get(row, 10)?,
        context: StoredContext {
            direction: small(row, 11)?,
            provider: small(row, 12)?,
            origin: small(row, 13)?,
            merchant: get(row, 14)?,
            api_key: get(row, 15)?,
            shop: get(row, 16)?,
            currency: get(row, 17)?,
            method: get(row, 18)?,
            payment_method: get(row, 19)?,
            kept: get(row, 20)?,
        },
    })
}

/// A column.
///
/// # Errors
/// It is of another type.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, PgError> {
    Ok(row.try_get(column)?)
}

/// A small number, in the width of its meaning.
///
/// # Errors
/// It is of another type.
pub(super) fn small(row: &Row, column: usize) -> Result<i64, PgError> {
    get::<i16>(row, column).map(i64::from)
}

/// Bytes of a fixed number.
///
/// # Errors
/// They are more or fewer.
pub(super) fn bytes<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], PgError> {
    sized(row, column, get(row, column)?)
}

fn sized<const N: usize>(row: &Row, column: usize, bytes: &[u8]) -> Result<[u8; N], PgError> {
    bytes.try_into().map_err(|_| {
        let name = row.columns().get(column).map_or("?", |column| column.name());
        PgError::Said(StoreError::Corrupt(format!("the column {name} is not ours")))
    })
}

/// The bucket of a merchant, as a column.
pub(super) fn bucket_of(merchant: &MerchantId) -> i16 {
    column_of(crate::domain::Bucket::of(merchant))
}

/// The bucket that an id names, as a column.
pub(super) fn bucket_in(id: TransactionId) -> i16 {
    column_of(id.bucket())
}

/// The bucket that the number of an entry or an opening names: it is where it is in a [`TransactionId`].
#[expect(clippy::as_conversions, reason = "ten bits fit")]
pub(super) const fn bucket_in_number(number: i64) -> i16 {
    ((number >> 12) & 1023) as i16
}

fn column_of(bucket: crate::domain::Bucket) -> i16 {
    i16::try_from(bucket.number()).unwrap_or(i16::MAX)
}

/// A small number as its column has it.
pub(super) fn narrow(number: i64) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

/// An order key as a parameter.
pub(super) const fn key(fingerprint: &Fingerprint) -> &[u8] {
    let Fingerprint(bytes) = fingerprint;
    bytes
}
