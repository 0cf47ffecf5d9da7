//! The durable queues of provider jobs, one a shop. A claim takes rows that nobody else is taking, and leases them: the work
//! of a node that died is taken up when its lease ends.

use deadpool_postgres::{GenericClient, Transaction};

use super::fault::Fault;
use super::row::{self, COLUMNS, StoredRow, bucket_in, get, operation};
use crate::domain::{ShopCode, TransactionId, UnixMillis};
use crate::store::{Claim, StoreError};

/// A claimed job with its operation, still sealed.
pub(super) struct ClaimedRow {
    pub(super) row: StoredRow,
    pub(super) attempts: u32,
}

/// Queues a job.
pub(super) async fn queue(
    transaction: &Transaction<'_>,
    id: TransactionId,
    shop: &ShopCode,
    due: UnixMillis,
) -> Result<(), Fault> {
    let statement = transaction
        .prepare_cached(
            "INSERT INTO provider_jobs (transaction_id, due_at, attempts, bucket, leased, shop) \
             VALUES ($1, $2, 0, $3, false, $4)",
        )
        .await?;
    transaction.execute(&statement, &[&id.to_stored(), &due.0, &bucket_in(id), &shop.as_str()]).await?;
    Ok(())
}

/// Takes what is due in a shop, earliest first, and leases it.
pub(super) async fn claim(client: &impl GenericClient, claim: &Claim) -> Result<Vec<ClaimedRow>, Fault> {
    let statement = client.prepare_cached(CLAIM).await?;
    let limit = i64::try_from(claim.limit).unwrap_or(MOST_CLAIMED).min(MOST_CLAIMED);
    let rows = client.query(&statement, &[&claim.shop.as_str(), &claim.now.0, &limit, &claim.lease_until.0]).await?;
    rows.iter()
        .map(|found| {
            let attempts = u32::try_from(get::<i32>(found, COLUMNS)?).unwrap_or(0);
            Ok(ClaimedRow { row: row::read(found)?, attempts })
        })
        .collect()
}

/// The most jobs of one claim.
const MOST_CLAIMED: i64 = 128;

/// The outer limit, which is [`MOST_CLAIMED`], tells the planner how few there are: else it expects a tenth of the queue, and
/// passes over all of it to find them again.
pub(super) const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (SELECT * FROM (SELECT bucket, transaction_id, due_at FROM provider_jobs \
     WHERE shop = $1 AND due_at <= $2 ORDER BY due_at, transaction_id LIMIT $3 FOR UPDATE SKIP LOCKED) AS locked \
     LIMIT 128), \
     taken AS (UPDATE provider_jobs AS j SET due_at = $4, leased = true, attempts = j.attempts + 1 FROM due \
     WHERE j.bucket = due.bucket AND j.transaction_id = due.transaction_id \
     RETURNING j.bucket, j.transaction_id, j.attempts - 1 AS attempts, due.due_at) ",
    operation!(
        ", taken.attempts FROM taken JOIN operations o USING (bucket, transaction_id) \
         ORDER BY taken.due_at, taken.transaction_id"
    )
);

/// Ends a lease with another time to be due at; nothing happens when there is no such job.
pub(super) async fn postpone(client: &impl GenericClient, id: TransactionId, due: UnixMillis) -> Result<(), Fault> {
    let statement = client
        .prepare_cached(
            "UPDATE provider_jobs SET due_at = $3, leased = false WHERE bucket = $1 AND transaction_id = $2",
        )
        .await?;
    client.execute(&statement, &[&bucket_in(id), &id.to_stored(), &due.0]).await?;
    Ok(())
}

/// Ends a job; nothing happens when there is none.
pub(super) async fn end(client: &impl GenericClient, id: TransactionId) -> Result<(), Fault> {
    let statement =
        client.prepare_cached("DELETE FROM provider_jobs WHERE bucket = $1 AND transaction_id = $2").await?;
    client.execute(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    Ok(())
}

/// The shops with jobs, and when the earliest of each is due: one step of the index a shop, however many jobs there are.
pub(super) async fn queues(client: &impl GenericClient) -> Result<Vec<(ShopCode, UnixMillis)>, Fault> {
    let statement = client.prepare_cached(QUEUES).await?;
    let rows = client.query(&statement, &[]).await?;
    rows.iter()
        .map(|found| {
            let shop = ShopCode::new(get(found, 0)?)
                .map_err(|_| StoreError::Corrupt("a provider job names no shop".to_owned()))?;
            Ok((shop, UnixMillis(get(found, 1)?)))
        })
        .collect()
}

pub(super) const QUEUES: &str = "WITH RECURSIVE queue AS (\
    (SELECT shop, due_at FROM provider_jobs ORDER BY shop, due_at LIMIT 1) UNION ALL \
    SELECT next.shop, next.due_at FROM queue CROSS JOIN LATERAL \
    (SELECT shop, due_at FROM provider_jobs WHERE shop > queue.shop ORDER BY shop, due_at LIMIT 1) AS next) \
    SELECT shop, due_at FROM queue";
