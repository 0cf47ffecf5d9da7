//! The moves of an entry: from nothing over open and in doubt to answered, or back to nothing. A move from another state
//! than its own changes nothing.

use std::cell::Cell;

use deadpool_postgres::{GenericClient, Transaction};

use super::entry_row::{self, entry};
use super::numbers::{self, NUMBERS};
use super::{DRAWS, reads, write};
use crate::clock::Random;
use crate::domain::{Status, UnixMillis};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::node::Node;
use crate::store::postgres::row::{bucket_in_number, bucket_of, get, key, narrow};
use crate::store::postgres::{outbox, reserved};
use crate::store::rows::entry::{EntryRow, NewEntry};
use crate::store::rows::status_number;
use crate::store::{CallbackSubject, Digest, EngineAnswer, EntryId, NotKept, StoreError};

/// What an intent met.
pub(super) enum Met {
    /// It was written.
    Nothing,
    Entry(Box<EntryRow>),
    Reservation,
    /// Another entry has its number.
    Number,
}

/// Writes an open entry, unless its order is taken. Whoever loses reads the winner, in a new statement.
pub(super) async fn intend(node: &Node, new: &NewEntry, id: EntryId) -> Result<Met, StoreError> {
    let tries = Cell::new(0_u32);
    node.ask(async |client| {
        let in_doubt = tries.replace(tries.get() + 1) > 0;
        if write::entry_unless_reserved(client, new, id).await? {
            return Ok(Met::Nothing);
        }
        let (bucket, order) = (bucket_in_number(id.0), new.order_key());
        Ok(match reads::by_order(client, bucket, order).await? {
            // The commit of an earlier try stands: only the word of it was lost.
            Some(standing) if in_doubt && standing.id() == id => Met::Nothing,
            Some(standing) => Met::Entry(Box::new(standing)),
            None if reserved::holds(client, bucket, order).await? => Met::Reservation,
            None => Met::Number,
        })
    })
    .await
}

/// Writes the engine's answer to the entry of this number, and gives what stands then.
pub(super) async fn answer(
    transaction: &Transaction<'_>,
    id: EntryId,
    new: &NewEntry,
    answer: &EngineAnswer,
    random: &dyn Random,
) -> Result<Result<EntryRow, NotKept>, Fault> {
    let (bucket, order) = (bucket_of(&new.intent.merchant), new.order_key());
    lock_name(transaction, &answer.transaction_id).await?;
    if is_named(transaction, bucket, order, &answer.transaction_id).await? {
        return Ok(Err(NotKept::OtherOrder));
    }
    for _ in 0..=DRAWS {
        let place = match locked(transaction, bucket, order).await? {
            Some(standing) if standing.is_answered() => return Ok(Ok(standing)),
            Some(standing) if standing.id() == id => Some(id),
            Some(_) => return Ok(Err(NotKept::Late)),
            None if reserved::holds(transaction, bucket, order).await? => return Ok(Err(NotKept::Late)),
            None => {
                let id = NUMBERS.draw(&new.intent, random);
                write::entry_unless_reserved(transaction, new, id).await?.then_some(id)
            }
        };
        if let Some(place) = place {
            write::complete(transaction, place, answer).await?;
            return reads::by_order(transaction, bucket, order).await.map(|standing| standing.ok_or(NotKept::Late));
        }
    }
    Err(numbers::none_is_left().into())
}

/// Holds an engine's name for an operation: nobody else gives it to an order until the end of the transaction. No unique
/// index can say so, since the same name may come in another bucket.
async fn lock_name(transaction: &Transaction<'_>, transaction_id: &str) -> Result<(), Fault> {
    let statement = transaction.prepare_cached("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").await?;
    transaction.execute(&statement, &[&transaction_id]).await?;
    Ok(())
}

/// Whether the engine gave another order's operation this name.
async fn is_named(
    transaction: &Transaction<'_>,
    bucket: i16,
    order: Digest,
    transaction_id: &str,
) -> Result<bool, Fault> {
    let statement = transaction.prepare_cached(IS_NAMED).await?;
    get(&transaction.query_one(&statement, &[&transaction_id, &bucket, &key(&order)]).await?, 0)
}

pub(in crate::store::postgres) const IS_NAMED: &str =
    "SELECT EXISTS (SELECT FROM journal WHERE transaction_id = $1 AND (bucket <> $2 OR order_key <> $3))";

/// What stands under an order, as it is: it stays so until the end of the transaction.
async fn locked(transaction: &Transaction<'_>, bucket: i16, order: Digest) -> Result<Option<EntryRow>, Fault> {
    let statement = transaction.prepare_cached(LOCKED_BY_ORDER).await?;
    let found = transaction.query_opt(&statement, &[&bucket, &key(&order)]).await?;
    found.as_ref().map(entry_row::read).transpose()
}

const LOCKED_BY_ORDER: &str = entry!("FROM journal j WHERE j.bucket = $1 AND j.order_key = $2 FOR UPDATE");

/// The outcome of an entry without an answer is unknown, at this time the latest.
pub(super) async fn doubt(client: &impl GenericClient, id: EntryId, at: UnixMillis) -> Result<(), Fault> {
    let statement = client
        .prepare_cached(
            "UPDATE journal SET state = 1, doubted_at = greatest(doubted_at, $3) \
             WHERE bucket = $1 AND entry = $2 AND state IN (0, 1)",
        )
        .await?;
    client.execute(&statement, &[&bucket_in_number(id.0), &id.0, &at.0]).await?;
    Ok(())
}

/// A request for an open entry leaves again. The time always changes, however far the clocks of nodes differ: that is what
/// keeps the sender before from withdrawing the entry.
pub(super) async fn sent_again(client: &impl GenericClient, id: EntryId, at: UnixMillis) -> Result<(), Fault> {
    let statement = client
        .prepare_cached(
            "UPDATE journal SET doubted_at = greatest(doubted_at + 1, $3) \
             WHERE bucket = $1 AND entry = $2 AND state = 0",
        )
        .await?;
    client.execute(&statement, &[&bucket_in_number(id.0), &id.0, &at.0]).await?;
    Ok(())
}

/// Removes an entry without an answer, if nothing was sent for it since, and no result of it that the engine announced is
/// being asked for. One that was asked for in vain until it was given up goes with it.
pub(super) async fn withdraw(node: &Node, id: EntryId, since: Option<UnixMillis>) -> Result<bool, StoreError> {
    // Whether an earlier try removed it, and may have been committed.
    let removed = Cell::new(false);
    node.transact(async |transaction| {
        if !lock_to_withdraw(transaction, id, since).await? {
            return Ok(removed.get() && reads::by_id(transaction, id).await?.is_none());
        }
        // The entry is locked: whoever announces a result waits for it, and finds none.
        if is_asked_for(transaction, id).await? {
            return Ok(false);
        }
        write::remove(transaction, id).await?;
        outbox::forget(transaction, id).await?;
        removed.set(true);
        Ok(true)
    })
    .await
}

async fn lock_to_withdraw(
    transaction: &Transaction<'_>,
    id: EntryId,
    since: Option<UnixMillis>,
) -> Result<bool, Fault> {
    let statement = transaction
        .prepare_cached(
            "SELECT FROM journal WHERE bucket = $1 AND entry = $2 AND state <> 2 \
             AND doubted_at IS NOT DISTINCT FROM $3 FOR UPDATE",
        )
        .await?;
    let since = since.map(|at| at.0);
    Ok(transaction.query_opt(&statement, &[&bucket_in_number(id.0), &id.0, &since]).await?.is_some())
}

async fn is_asked_for(transaction: &Transaction<'_>, id: EntryId) -> Result<bool, Fault> {
    let statement =
        transaction.prepare_cached("SELECT EXISTS (SELECT FROM callbacks WHERE bucket = $1 AND key = $2)").await?;
    let callback = CallbackSubject::Entry(id).key();
    get(&transaction.query_one(&statement, &[&bucket_in_number(id.0), &callback]).await?, 0)
}

/// Keeps what was heard of an answered entry: while it is PENDING its status and an account, which stays until another is
/// heard; its shop where it was not known.
pub(super) async fn heard(
    client: &impl GenericClient,
    id: EntryId,
    status: Status,
    account: Option<&[u8]>,
    shop: &str,
) -> Result<(), Fault> {
    let statement = client
        .prepare_cached(
            "UPDATE journal SET shop = CASE shop WHEN '' THEN $3 ELSE shop END, \
             status = CASE status WHEN 0 THEN $4 ELSE status END, \
             account = CASE status WHEN 0 THEN coalesce($5, account) ELSE account END \
             WHERE bucket = $1 AND entry = $2 AND state = 2 AND (shop = '' OR status = 0)",
        )
        .await?;
    let status = narrow(status_number(status));
    client.execute(&statement, &[&bucket_in_number(id.0), &id.0, &shop, &status, &account]).await?;
    Ok(())
}
