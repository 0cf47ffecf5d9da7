//! Where orders live, in their table.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::fault::PgError;
use super::row::{self, COLUMNS, get, key, narrow, operation, small};
use crate::domain::Fingerprint;
use crate::store::homes::{Home, OrderRow};
use crate::store::rows::CorruptRow;

/// Reads where an order lives.
pub(super) async fn of(client: &impl GenericClient, bucket: i16, order: Fingerprint) -> Result<Option<Home>, PgError> {
    let statement = client.prepare_cached(OF).await?;
    let found = client.query_opt(&statement, &[&bucket, &key(&order)]).await?;
    found.as_ref().map(|row| read(row, 0)).transpose()
}

pub(super) const OF: &str = "SELECT home, ref FROM homes WHERE bucket = $1 AND order_key = $2";

fn read(row: &Row, column: usize) -> Result<Home, PgError> {
    Ok(Home::of_columns(small(row, column)?, get(row, column + 1)?)?)
}

/// Reads where orders live, in their order.
pub(super) async fn of_all(
    client: &impl GenericClient,
    buckets: &[i16],
    orders: &[Fingerprint],
) -> Result<Vec<Option<Home>>, PgError> {
    let statement = client.prepare_cached(OF_ALL).await?;
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    let rows = client.query(&statement, &[&buckets, &keys]).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.insert(get::<i64>(row, 2)?, read(row, 0)?);
    }
    Ok((1..).zip(orders).map(|(place, _)| found.get(&place).copied()).collect())
}

pub(super) const OF_ALL: &str = "SELECT h.home, h.ref, given.place \
    FROM unnest($1::smallint[], $2::bytea[]) WITH ORDINALITY AS given (bucket, order_key, place) \
    JOIN homes h ON h.bucket = given.bucket AND h.order_key = given.order_key";

/// Claims the homes of a merchant's orders; of each, where it lives already. Whoever claims several does so in the order of
/// their keys: two that meet wait for each other in one direction only.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    bucket: i16,
    orders: &[Fingerprint],
    home: Home,
) -> Result<Vec<Option<Home>>, PgError> {
    let statement = transaction.prepare_cached(CLAIM).await?;
    let (kind, reference) = home.columns();
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    let (buckets, mut claimed) = (vec![bucket; orders.len()], HashSet::new());
    for _ in 0..LOOKS {
        for row in transaction.query(&statement, &[&bucket, &narrow(kind), &reference, &keys]).await? {
            claimed.insert(get::<Vec<u8>>(&row, 0)?);
        }
        // A new statement sees who was faster, unless that home was given up since.
        let found = of_all(transaction, &buckets, orders).await?;
        if found.iter().all(Option::is_some) {
            let met = |(order, home): (&Fingerprint, Option<Home>)| home.filter(|_| !claimed.remove(key(order)));
            return Ok(orders.iter().zip(found).map(met).collect());
        }
    }
    Err(CorruptRow("homes").into())
}

/// How often homes are claimed that are given up meanwhile.
const LOOKS: usize = 4;

const CLAIM: &str = "INSERT INTO homes (bucket, home, ref, order_key) \
    SELECT $1::smallint, $2::smallint, $3::bigint, given FROM unnest($4::bytea[]) AS given ORDER BY given \
    ON CONFLICT DO NOTHING RETURNING order_key";

/// Claims the home of an order; `false`: it has one.
pub(super) async fn claim_one(
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

/// Gives the home of an order up.
pub(super) async fn release(transaction: &Transaction<'_>, bucket: i16, order: Fingerprint) -> Result<(), PgError> {
    let statement = transaction.prepare_cached("DELETE FROM homes WHERE bucket = $1 AND order_key = $2").await?;
    transaction.execute(&statement, &[&bucket, &key(&order)]).await?;
    Ok(())
}

/// Reads what stands under an order, with its operation in the same statement.
pub(super) async fn order_row(
    client: &impl GenericClient,
    bucket: i16,
    order: Fingerprint,
) -> Result<OrderRow, PgError> {
    let statement = client.prepare_cached(STANDING).await?;
    let Some(found) = client.query_opt(&statement, &[&bucket, &key(&order)]).await? else {
        return Ok(OrderRow::Free);
    };
    match read(&found, COLUMNS)? {
        Home::Operation(_) if get::<Option<i64>>(&found, 0)?.is_none() => Err(CorruptRow("ref").into()),
        Home::Operation(_) => Ok(OrderRow::Operation(Box::new(row::read(&found)?))),
        Home::Entry(_) | Home::Imported(_) => Ok(OrderRow::Elsewhere),
    }
}

pub(super) const STANDING: &str = operation!(
    ", h.home, h.ref FROM homes h LEFT JOIN operations o \
     ON h.home = 0 AND o.bucket = h.bucket AND o.transaction_id = h.ref \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context WHERE h.bucket = $1 AND h.order_key = $2"
);
