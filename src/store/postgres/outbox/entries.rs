//! Callbacks of entries of the journal: what a remote engine announced. Whoever begins or ends one holds its entry
//! first, and then the callback.

use deadpool_postgres::{GenericClient, Transaction};

use super::queue::queue_callback;
use super::standing::Standing;
use super::subject::bucket_in_key;
use super::tries;
use crate::domain::UnixMillis;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{bucket_in_number, get};
use crate::store::rows::callback::FAILED;
use crate::store::transaction::NewCallback;
use crate::store::{CallbackId, CallbackSubject, CallbackTarget, EntryId, Relayed};

/// Where the result of an entry is told; `None`: nobody is, or there is no such entry.
pub(super) async fn address(client: &impl GenericClient, entry: EntryId) -> Result<Option<String>, Fault> {
    let statement =
        client.prepare_cached("SELECT v1_callback_url FROM journal WHERE bucket = $1 AND entry = $2").await?;
    let found = client.query_opt(&statement, &[&bucket_in_number(entry.0), &entry.0]).await?;
    found.map_or(Ok(None), |row| get(&row, 0))
}

/// Queues what a remote engine announced, unless there is nobody to be told or it is there. What waits for the engine's
/// word and was asked for before, or given up, is asked for anew: whoever is at it now may have asked too early, and
/// loses its lease.
pub(super) async fn relay(
    transaction: &Transaction<'_>,
    entry: EntryId,
    nonce: u64,
    at: UnixMillis,
) -> Result<Relayed, Fault> {
    // An entry is told of once, and not withdrawn meanwhile.
    let statement = transaction
        .prepare_cached(
            "SELECT merchant, v1_callback_url IS NOT NULL FROM journal WHERE bucket = $1 AND entry = $2 FOR UPDATE",
        )
        .await?;
    let found = transaction.query_opt(&statement, &[&bucket_in_number(entry.0), &entry.0]).await?;
    let Some(found) = found else { return Ok(Relayed::Nothing) };
    let subject = CallbackSubject::Entry(entry);
    match Standing::of_key(transaction, subject.key()).await? {
        Some(standing) if may_be_asked_anew(&standing) => {
            tries::queue_again(transaction, subject.key(), &standing, at).await?;
            Ok(Relayed::Queued)
        }
        None if get(&found, 1)? => {
            let (id, target) = (CallbackId::new(subject, nonce), CallbackTarget::Engine.as_str());
            queue_callback(transaction, &NewCallback { id, merchant: get(&found, 0)?, target, at }).await?;
            Ok(Relayed::Queued)
        }
        Some(_) | None => Ok(Relayed::Nothing),
    }
}

fn may_be_asked_anew(standing: &Standing) -> bool {
    standing.target == CallbackTarget::Engine.as_str()
        && (standing.state == FAILED || standing.is_pending() && standing.attempts > 0)
}

/// Forgets what was announced of an entry that goes. What was failed may have been resent by hand since it was looked
/// at: it is held first, and goes from wherever it is.
pub(in crate::store::postgres) async fn forget(
    transaction: &Transaction<'_>,
    subject: CallbackSubject,
) -> Result<(), Fault> {
    let key = subject.key();
    if Standing::of_key(transaction, key).await?.is_none() {
        return Ok(());
    }
    for sql in [
        "DELETE FROM callbacks WHERE bucket = $1 AND key = $2",
        "DELETE FROM callbacks_told WHERE bucket = $1 AND key = $2",
        "DELETE FROM callback_tries WHERE bucket = $1 AND key = $2",
    ] {
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&bucket_in_key(key), &key]).await?;
    }
    Ok(())
}

/// Whether a callback waits.
pub(in crate::store::postgres) async fn is_pending(
    transaction: &Transaction<'_>,
    subject: CallbackSubject,
) -> Result<bool, Fault> {
    let statement =
        transaction.prepare_cached("SELECT EXISTS (SELECT FROM callbacks WHERE bucket = $1 AND key = $2)").await?;
    let key = subject.key();
    get(&transaction.query_one(&statement, &[&bucket_in_key(key), &key]).await?, 0)
}
