//! Reservations of `order_id`s for v1, by the key of the order.

use deadpool_postgres::{GenericClient, Transaction};

use super::fault::Fault;
use super::row::{get, key};
use crate::store::{Digest, OfV1, Reservations};

/// Whether an order is reserved.
pub(super) async fn holds(client: &impl GenericClient, bucket: i16, order: Digest) -> Result<bool, Fault> {
    let statement =
        client.prepare_cached("SELECT EXISTS (SELECT FROM reserved_ids WHERE bucket = $1 AND order_key = $2)").await?;
    get(&client.query_one(&statement, &[&bucket, &key(&order)]).await?, 0)
}

/// What an order is to v1, in one look at the journal and at the reservations.
pub(super) async fn or_entry(client: &impl GenericClient, bucket: i16, order: Digest) -> Result<Option<OfV1>, Fault> {
    let statement = client
        .prepare_cached(
            "SELECT EXISTS (SELECT FROM journal WHERE bucket = $1 AND order_key = $2), \
             EXISTS (SELECT FROM reserved_ids WHERE bucket = $1 AND order_key = $2)",
        )
        .await?;
    let found = client.query_one(&statement, &[&bucket, &key(&order)]).await?;
    let (entry, reserved): (bool, bool) = (get(&found, 0)?, get(&found, 1)?);
    Ok(if entry { Some(OfV1::Entry) } else { reserved.then_some(OfV1::Reservation) })
}

/// Reserves orders; those that name an operation or an entry of the journal are left alone. Creates and intents look for
/// reservations without a lock, so for the moment of this transaction there are none.
pub(super) async fn reserve(
    transaction: &Transaction<'_>,
    bucket: i16,
    orders: &[Digest],
) -> Result<Reservations, Fault> {
    // Creates queue behind this: it is asked for again, rather than for long. Within that time the server ends an automatic
    // vacuum that is in the way.
    let lock = "SET LOCAL lock_timeout = '1500ms'; LOCK TABLE operations, journal IN SHARE MODE";
    transaction.batch_execute(lock).await?;
    let taken = transaction.prepare_cached(TAKEN).await?;
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    let free = transaction.query(&taken, &[&bucket, &keys]).await?;
    let free: Vec<Vec<u8>> = free.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
    let insert = transaction
        .prepare_cached(
            "INSERT INTO reserved_ids (bucket, order_key) SELECT $1, given FROM unnest($2::bytea[]) AS given \
             ON CONFLICT DO NOTHING",
        )
        .await?;
    let new = transaction.execute(&insert, &[&bucket, &free]).await?;
    let (given, free) = (orders.len() as u64, free.len() as u64);
    Ok(Reservations { new, known: free.saturating_sub(new), operations: given.saturating_sub(free) })
}

/// Of some keys those that name nothing, in their order.
const TAKEN: &str = "SELECT given FROM unnest($2::bytea[]) AS given \
    WHERE NOT EXISTS (SELECT FROM operations WHERE bucket = $1 AND order_key = given) \
    AND NOT EXISTS (SELECT FROM journal WHERE bucket = $1 AND order_key = given)";
