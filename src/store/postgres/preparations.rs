//! What providers prepared for customers of pending deposits, in its table.

use deadpool_postgres::{GenericClient, Transaction};

use super::fault::PgError;
use super::row::{bucket_in, get};
use crate::domain::TransactionId;

/// Keeps the preparation of an operation, in place of an earlier one.
pub(super) async fn put(transaction: &Transaction<'_>, id: TransactionId, sealed: &[u8]) -> Result<(), PgError> {
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
pub(super) async fn of(client: &impl GenericClient, id: TransactionId) -> Result<Option<Vec<u8>>, PgError> {
    let statement =
        client.prepare_cached("SELECT sealed FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Removes the preparation of an operation.
pub(super) async fn remove(transaction: &Transaction<'_>, id: TransactionId) -> Result<(), PgError> {
    let statement =
        transaction.prepare_cached("DELETE FROM preparations WHERE bucket = $1 AND transaction_id = $2").await?;
    transaction.execute(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
    Ok(())
}
