//! What providers prepared for customers of pending deposits, in its table.

use deadpool_postgres::{GenericClient, Transaction};

use super::fault::Fault;
use super::jobs;
use super::row::{bucket_in, get};
use crate::domain::TransactionId;

/// Keeps a preparation for a pending deposit, and ends its provider job; `false` when there is no such deposit. The
/// operation is locked, so that its result comes before this or after it.
pub(super) async fn keep(transaction: &Transaction<'_>, id: TransactionId, sealed: &[u8]) -> Result<bool, Fault> {
    let (bucket, number) = (bucket_in(id), id.to_stored());
    let pending = transaction
        .prepare_cached(
            "SELECT FROM operations WHERE bucket = $1 AND transaction_id = $2 AND direction = 0 AND status = 0 FOR UPDATE",
        )
        .await?;
    if transaction.query_opt(&pending, &[&bucket, &number]).await?.is_none() {
        return Ok(false);
    }
    let keep = transaction
        .prepare_cached(
            "INSERT INTO preparations (transaction_id, bucket, sealed) VALUES ($1, $2, $3) \
             ON CONFLICT (bucket, transaction_id) DO UPDATE SET sealed = excluded.sealed",
        )
        .await?;
    transaction.execute(&keep, &[&number, &bucket, &sealed]).await?;
    jobs::end(transaction, id).await?;
    Ok(true)
}

/// Reads the sealed preparation of an operation.
pub(super) async fn of(client: &impl GenericClient, id: TransactionId) -> Result<Option<Vec<u8>>, Fault> {
    let statement =
        client.prepare_cached("SELECT sealed FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Removes the preparation of an operation that was finished.
pub(super) async fn end(transaction: &Transaction<'_>, id: TransactionId) -> Result<(), Fault> {
    let statement =
        transaction.prepare_cached("DELETE FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    transaction.execute(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    Ok(())
}
