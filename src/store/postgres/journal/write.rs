//! Rows of the journal, written and removed.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;

use crate::domain::{CallbackUrl, RedirectUrl};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{bucket_in_number, narrow};
use crate::store::rows::direction_number;
use crate::store::rows::entry::NewEntry;
use crate::store::{Digest, EngineAnswer, EntryId};

/// Inserts an open entry, unless its order or its number is there, or the order is reserved.
const INSERT: &str = "INSERT INTO journal (entry, created_at, amount, bucket, direction, state, status, order_key, digest, \
    currency, merchant, order_id, api_key, shop, v1_callback_url, body) \
    SELECT $1::bigint, $2::bigint, $3::bigint, $4::smallint, $5::smallint, 0, 0, $6::bytea, $7::bytea, \
    $8::text, $9::text, $10::text, $11::text, $12::text, $13::text, $14::bytea \
    WHERE NOT EXISTS (SELECT FROM reserved_ids r WHERE r.bucket = $4::smallint AND r.order_key = $6::bytea) \
    ON CONFLICT DO NOTHING";

/// Writes an entry without an answer; `false`: its order or its number is there, or the order is reserved.
pub(super) async fn entry_unless_reserved(
    client: &impl GenericClient,
    new: &NewEntry,
    id: EntryId,
) -> Result<bool, Fault> {
    let statement = INSERT;
    let (intent, Digest(order_key)) = (&new.intent, &new.order_key);
    let parameters: [&(dyn ToSql + Sync); 14] = [
        &id.0,
        &intent.created_at.0,
        &intent.amount.hundredths().cast_signed(),
        &bucket_in_number(id.0),
        &narrow(direction_number(intent.direction)),
        &&order_key[..],
        &&intent.digest.0[..],
        &intent.currency.as_str(),
        &intent.merchant.as_str(),
        &intent.order_id.as_str(),
        &&*intent.api_key,
        &intent.shop.as_deref().unwrap_or_default(),
        &intent.callback_url.as_ref().map(CallbackUrl::as_str),
        &new.body,
    ];
    let statement = client.prepare_cached(statement).await?;
    Ok(client.execute(&statement, &parameters).await? == 1)
}

/// Writes the answer into an entry.
pub(super) async fn complete(transaction: &Transaction<'_>, id: EntryId, answer: &EngineAnswer) -> Result<(), Fault> {
    let redirect_url = answer.redirect_url.as_ref().map(RedirectUrl::expose);
    let statement = transaction.prepare_cached(COMPLETE).await?;
    transaction.execute(&statement, &[&bucket_in_number(id.0), &id.0, &&*answer.transaction_id, &redirect_url]).await?;
    Ok(())
}

const COMPLETE: &str = "UPDATE journal SET state = 2, transaction_id = $3, redirect_url = $4, doubted_at = NULL \
    WHERE bucket = $1 AND entry = $2";

/// Removes an entry that is locked.
pub(super) async fn remove(transaction: &Transaction<'_>, id: EntryId) -> Result<(), Fault> {
    let statement = transaction.prepare_cached("DELETE FROM journal WHERE bucket = $1 AND entry = $2").await?;
    transaction.execute(&statement, &[&bucket_in_number(id.0), &id.0]).await?;
    Ok(())
}
