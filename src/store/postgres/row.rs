//! Operations, their contexts, homes and preparations as rows of PostgreSQL: see [`rows`](crate::store::rows) for their
//! meaning.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::errors::PgError;
use crate::domain::{Currency, Fingerprint, MerchantId, OrderId, TransactionId};
use crate::store::StoreError;
use crate::store::create::{Home, OrderRow};
use crate::store::rows::CorruptRow;
use crate::store::rows::operation::{StatusColumns, V1Status, V2Status};

pub(super) use crate::store::rows::operation::{StoredContext, StoredRow};

/// The columns of an operation `o` and of its context `x`, in the order of [`read`].
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

/// One operation, by bucket and id.
pub(super) const BY_ID: &str = operation!(
    "FROM operations o LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE o.bucket = $1 AND o.transaction_id = $2"
);

/// Operations by bucket and id.
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

/// Reads the sealed details of an operation, without its payer.
pub(super) async fn sealed(client: &impl GenericClient, id: TransactionId) -> Result<Option<Vec<u8>>, PgError> {
    let select = "SELECT sealed FROM operations WHERE bucket = $1 AND transaction_id = $2";
    let statement = client.prepare_cached(select).await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Reads operations by their ids; leaves out those that do not exist or cannot be decoded.
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

/// Decodes the columns of an operation, which are the first of the row.
///
/// # Errors
/// A column has another type.
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

/// Returns a column.
///
/// # Errors
/// It has another type.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, PgError> {
    Ok(row.try_get(column)?)
}

/// Returns a `smallint` column as the type of its meaning.
///
/// # Errors
/// It has another type.
pub(super) fn small(row: &Row, column: usize) -> Result<i64, PgError> {
    get::<i16>(row, column).map(i64::from)
}

/// Returns a column of a fixed number of bytes.
///
/// # Errors
/// There are more or fewer.
pub(super) fn bytes<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], PgError> {
    sized(row, column, get(row, column)?)
}

/// Returns the bytes of a column as those of a fixed number.
///
/// # Errors
/// There are more or fewer.
pub(super) fn sized<const N: usize>(row: &Row, column: usize, bytes: &[u8]) -> Result<[u8; N], PgError> {
    bytes.try_into().map_err(|_| {
        let name = row.columns().get(column).map_or("?", |column| column.name());
        PgError::Store(StoreError::Corrupt(format!("the column {name} is invalid")))
    })
}

/// Returns the bucket of a merchant, as a column.
pub(super) fn bucket_of(merchant: &MerchantId) -> i16 {
    column_of(crate::domain::Bucket::of(merchant))
}

/// Returns the bucket that an id contains, as a column.
pub(super) fn bucket_in(id: TransactionId) -> i16 {
    column_of(id.bucket())
}

/// Returns the bucket that the number of an entry or an opening contains, in the same bits as a [`TransactionId`].
#[expect(clippy::as_conversions, reason = "ten bits fit")]
pub(super) const fn bucket_in_number(number: i64) -> i16 {
    ((number >> 12) & 1023) as i16
}

fn column_of(bucket: crate::domain::Bucket) -> i16 {
    i16::try_from(bucket.number()).unwrap_or(i16::MAX)
}

/// Returns a small number as its column has it.
pub(super) fn narrow(number: i64) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

/// Returns an order key as a parameter.
pub(super) const fn key(fingerprint: &Fingerprint) -> &[u8] {
    let Fingerprint(bytes) = fingerprint;
    bytes
}

/// Reads the home of an order.
pub(super) async fn home_of(
    client: &impl GenericClient,
    bucket: i16,
    order: Fingerprint,
) -> Result<Option<Home>, PgError> {
    let statement = client.prepare_cached(HOME).await?;
    let found = client.query_opt(&statement, &[&bucket, &key(&order)]).await?;
    found.as_ref().map(|row| read_home(row, 0)).transpose()
}

pub(super) const HOME: &str = "SELECT home, ref FROM homes WHERE bucket = $1 AND order_key = $2";

fn read_home(row: &Row, column: usize) -> Result<Home, PgError> {
    Ok(Home::of_columns(small(row, column)?, get(row, column + 1)?)?)
}

/// Reads the homes of orders, in the given order.
pub(super) async fn homes_of(
    client: &impl GenericClient,
    buckets: &[i16],
    orders: &[Fingerprint],
) -> Result<Vec<Option<Home>>, PgError> {
    let statement = client.prepare_cached(HOMES).await?;
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    let rows = client.query(&statement, &[&buckets, &keys]).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.insert(get::<i64>(row, 2)?, read_home(row, 0)?);
    }
    Ok((1..).zip(orders).map(|(place, _)| found.get(&place).copied()).collect())
}

pub(super) const HOMES: &str = "SELECT h.home, h.ref, given.place \
    FROM unnest($1::smallint[], $2::bytea[]) WITH ORDINALITY AS given (bucket, order_key, place) \
    JOIN homes h ON h.bucket = given.bucket AND h.order_key = given.order_key";

/// Claims the homes of a merchant's orders. Returns for each its existing home, if any. Several homes are claimed in
/// the order of their keys, so that two transactions wait for each other in one direction only.
pub(super) async fn claim_homes(
    transaction: &Transaction<'_>,
    bucket: i16,
    orders: &[Fingerprint],
    home: Home,
) -> Result<Vec<Option<Home>>, PgError> {
    let statement = transaction.prepare_cached(CLAIM_HOMES).await?;
    let (kind, reference) = home.columns();
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    let (buckets, mut claimed) = (vec![bucket; orders.len()], HashSet::new());
    for _ in 0..CLAIM_ATTEMPTS {
        for row in transaction.query(&statement, &[&bucket, &narrow(kind), &reference, &keys]).await? {
            claimed.insert(get::<Vec<u8>>(&row, 0)?);
        }
        // A new statement sees the homes of faster transactions, unless they were released since.
        let found = homes_of(transaction, &buckets, orders).await?;
        if found.iter().all(Option::is_some) {
            let existing = |(order, home): (&Fingerprint, Option<Home>)| home.filter(|_| !claimed.remove(key(order)));
            return Ok(orders.iter().zip(found).map(existing).collect());
        }
    }
    Err(CorruptRow("homes").into())
}

/// How often homes are claimed that are released meanwhile.
const CLAIM_ATTEMPTS: usize = 4;

const CLAIM_HOMES: &str = "INSERT INTO homes (bucket, home, ref, order_key) \
    SELECT $1::smallint, $2::smallint, $3::bigint, given FROM unnest($4::bytea[]) AS given ORDER BY given \
    ON CONFLICT DO NOTHING RETURNING order_key";

/// Claims the home of an order. Returns `false` if it has one already.
pub(super) async fn claim_home(
    transaction: &Transaction<'_>,
    bucket: i16,
    order: Fingerprint,
    home: Home,
) -> Result<bool, PgError> {
    let statement = transaction
        .prepare_cached(
            "INSERT INTO homes (bucket, home, ref, order_key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        )
        .await?;
    let (kind, reference) = home.columns();
    Ok(transaction.execute(&statement, &[&bucket, &narrow(kind), &reference, &key(&order)]).await? == 1)
}

/// Releases the home of an order.
pub(super) async fn release_home(
    transaction: &Transaction<'_>,
    bucket: i16,
    order: Fingerprint,
) -> Result<(), PgError> {
    let statement = transaction.prepare_cached("DELETE FROM homes WHERE bucket = $1 AND order_key = $2").await?;
    transaction.execute(&statement, &[&bucket, &key(&order)]).await?;
    Ok(())
}

/// Reads what is stored under an order, with its operation in the same statement.
pub(super) async fn order_row(
    client: &impl GenericClient,
    bucket: i16,
    order: Fingerprint,
) -> Result<OrderRow, PgError> {
    let statement = client.prepare_cached(ORDER_ROW).await?;
    let Some(found) = client.query_opt(&statement, &[&bucket, &key(&order)]).await? else {
        return Ok(OrderRow::Free);
    };
    match read_home(&found, COLUMNS)? {
        Home::Operation(_) if get::<Option<i64>>(&found, 0)?.is_none() => Err(CorruptRow("ref").into()),
        Home::Operation(_) => Ok(OrderRow::Operation(Box::new(read(&found)?))),
        Home::Entry(_) | Home::Claimed(_) | Home::Imported(_) | Home::Native(_) => Ok(OrderRow::Elsewhere),
    }
}

pub(super) const ORDER_ROW: &str = operation!(
    ", h.home, h.ref FROM homes h LEFT JOIN operations o \
     ON h.home = 0 AND o.bucket = h.bucket AND o.transaction_id = h.ref \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context WHERE h.bucket = $1 AND h.order_key = $2"
);

/// The columns of an operation `o` and of its context `x` that the replies of both API versions contain.
macro_rules! select_status {
    ($rest:literal) => {
        concat!(
            "SELECT o.status, o.amount, x.currency, CASE x.direction WHEN 1 THEN o.sealed ELSE o.payer END, ",
            $rest
        )
    };
}

/// The number of the first column after those of [`StatusColumns`].
const REST: usize = 4;

fn status_columns(row: &Row) -> Result<StatusColumns, PgError> {
    Ok(StatusColumns {
        status: small(row, 0)?,
        amount: get(row, 1)?,
        currency: Currency::new(get(row, 2)?),
        account: get(row, 3)?,
    })
}

pub(super) const V1_STATUS: &str = select_status!(
    "o.transaction_id, o.created_at, x.shop \
     FROM homes h JOIN operations o ON o.bucket = h.bucket AND o.transaction_id = h.ref \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE h.bucket = $1 AND h.order_key = $2 AND h.home = 0 AND o.listed IS NOT NULL"
);

pub(super) const V2_STATUS: &str = select_status!(
    "x.direction, o.order_id, coalesce(x.method, x.payment_method, 'unknown') \
     FROM operations o JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE o.bucket = $1 AND o.transaction_id = $2 AND x.merchant = $3 AND o.listed IS NULL"
);

/// Reads the status of the operation that a v1 request created under an order.
pub(super) async fn v1_status(
    client: &impl GenericClient,
    merchant: &MerchantId,
    order: Fingerprint,
) -> Result<Option<V1Status>, PgError> {
    let statement = client.prepare_cached(V1_STATUS).await?;
    let found = client.query_opt(&statement, &[&bucket_of(merchant), &key(&order)]).await?;
    let read = |row: &Row| {
        let (id, created_at) = (get(row, REST)?, get(row, REST + 1)?);
        Ok(V1Status { columns: status_columns(row)?, id, created_at, shop: get(row, REST + 2)? })
    };
    found.as_ref().map(read).transpose()
}

/// Reads the status of an operation that a native v2 request of this merchant created; `None` for every other id.
pub(super) async fn v2_status(
    client: &impl GenericClient,
    merchant: &MerchantId,
    id: TransactionId,
) -> Result<Option<V2Status>, PgError> {
    let statement = client.prepare_cached(V2_STATUS).await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored(), &merchant.as_str()]).await?;
    let read = |row: &Row| {
        let (direction, order_id) = (small(row, REST)?, OrderId::new(get(row, REST + 1)?));
        Ok(V2Status { columns: status_columns(row)?, direction, order_id, method: get(row, REST + 2)? })
    };
    found.as_ref().map(read).transpose()
}

/// Stores the preparation of an operation; replaces an earlier one.
pub(super) async fn put_preparation(
    transaction: &Transaction<'_>,
    id: TransactionId,
    sealed: &[u8],
) -> Result<(), PgError> {
    let put = transaction
        .prepare_cached(
            "INSERT INTO preparations (transaction_id, bucket, sealed) VALUES ($1, $2, $3) \
             ON CONFLICT (bucket, transaction_id) DO UPDATE SET sealed = excluded.sealed",
        )
        .await?;
    transaction.execute(&put, &[&id.to_stored(), &bucket_in(id), &sealed]).await?;
    Ok(())
}

/// Reads the sealed preparation of an operation.
pub(super) async fn preparation_of(client: &impl GenericClient, id: TransactionId) -> Result<Option<Vec<u8>>, PgError> {
    let statement =
        client.prepare_cached("SELECT sealed FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Removes the preparation of an operation.
pub(super) async fn remove_preparation(transaction: &Transaction<'_>, id: TransactionId) -> Result<(), PgError> {
    let statement =
        transaction.prepare_cached("DELETE FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    transaction.execute(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    Ok(())
}
