//! What came of tries, and callbacks that are sent again.
//!
//! | a try says | leased for it | pending, not leased for it | delivered | failed |
//! |---|---|---|---|---|
//! | the receiver has it | delivered | delivered | delivered | delivered |
//! | given up | failed | as it is | as it is | as it is |
//! | again at a time | due then | as it is | as it is | as it is |
//!
//! Every try is kept. In the columns to the right of the first it comes late: its lease had ended, and somebody else's
//! lease or word, or a wish to resend, stands.

use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::standing::Standing;
use super::subject::bucket_in_key;
use crate::domain::UnixMillis;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, narrow};
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, columns_of, kept, outcome_of};
use crate::store::{CallbackId, CallbackLease, CallbackNext, CallbackPlace, CallbackTry, Resent, TryOutcome};

/// Keeps a try with what follows from it.
pub(super) async fn record(
    transaction: &Transaction<'_>,
    lease: CallbackLease,
    tried: &CallbackTry,
    next: CallbackNext,
) -> Result<(), Fault> {
    let Some(standing) = Standing::of(transaction, lease.id).await? else { return Ok(()) };
    let (key, number) = (lease.id.subject().key(), standing.tries.saturating_add(1));
    let in_time = standing.is_leased_for(lease);
    if !keep(transaction, key, number, tried, in_time).await? {
        // It was kept by a commit whose word was lost, with what followed from it.
        return Ok(());
    }
    match next {
        CallbackNext::Delivered => tell(transaction, key, &standing, DELIVERED, tried).await,
        CallbackNext::Failed if in_time => tell(transaction, key, &standing, FAILED, tried).await,
        CallbackNext::RetryAt(due) if in_time => retry(transaction, key, number, due, tried).await,
        CallbackNext::Failed | CallbackNext::RetryAt(_) => count(transaction, key, &standing).await,
    }
}

/// Writes a try down, and removes the one that is too many; `false`: it is the latest one already. What comes in time was
/// never kept before: its lease would have ended with that.
async fn keep(
    transaction: &Transaction<'_>,
    key: i64,
    number: i64,
    tried: &CallbackTry,
    in_time: bool,
) -> Result<bool, Fault> {
    let (bucket, (status, error)) = (bucket_in_key(key), columns(&tried.outcome));
    let duration_us = i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX);
    let statement = transaction.prepare_cached(KEEP).await?;
    let kept_now = transaction
        .execute(&statement, &[&bucket, &key, &number, &tried.at.0, &duration_us, &status, &error, &in_time])
        .await?;
    if let Some(too_old) = number.checked_sub(kept()).filter(|number| *number > 0) {
        let statement = transaction
            .prepare_cached("DELETE FROM callback_tries WHERE bucket = $1 AND key = $2 AND number <= $3")
            .await?;
        transaction.execute(&statement, &[&bucket, &key, &too_old]).await?;
    }
    Ok(kept_now == 1)
}

const KEEP: &str = "INSERT INTO callback_tries (bucket, key, number, began_at, duration_us, status, error) \
     SELECT $1::smallint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::integer, $7::text \
     WHERE $8 OR NOT EXISTS (SELECT FROM callback_tries WHERE bucket = $1 AND key = $2 AND number = $3 - 1 \
     AND began_at = $4 AND duration_us = $5 AND status IS NOT DISTINCT FROM $6 AND error IS NOT DISTINCT FROM $7)";

/// The receiver has it, or it is given up: it leaves its queue, if it is in one.
async fn tell(
    transaction: &Transaction<'_>,
    key: i64,
    standing: &Standing,
    state: i64,
    tried: &CallbackTry,
) -> Result<(), Fault> {
    let (number, (status, error)) = (standing.tries.saturating_add(1), columns(&tried.outcome));
    let statement = transaction.prepare_cached(if standing.is_pending() { TELL } else { TELL_LATE }).await?;
    transaction.execute(&statement, &[&bucket_in_key(key), &key, &narrow(state), &number, &status, &error]).await?;
    Ok(())
}

const TELL: &str = "WITH gone AS (DELETE FROM callbacks WHERE bucket = $1 AND key = $2 RETURNING *) \
     INSERT INTO callbacks_told \
     (bucket, key, nonce, queued_at, due_at, attempts, tries, state, last_status, last_error, merchant, target) \
     SELECT bucket, key, nonce, queued_at, due_at, attempts, $4::bigint, $3::smallint, $5::integer, $6::text, \
     merchant, target FROM gone";

const TELL_LATE: &str = "UPDATE callbacks_told SET state = $3, tries = $4, last_status = $5, last_error = $6 \
     WHERE bucket = $1 AND key = $2";

async fn retry(
    transaction: &Transaction<'_>,
    key: i64,
    number: i64,
    due: UnixMillis,
    tried: &CallbackTry,
) -> Result<(), Fault> {
    let (status, error) = columns(&tried.outcome);
    let statement = transaction
        .prepare_cached(
            "UPDATE callbacks SET due_at = $3, leased = false, tries = $4, last_status = $5, last_error = $6 \
             WHERE bucket = $1 AND key = $2",
        )
        .await?;
    transaction.execute(&statement, &[&bucket_in_key(key), &key, &due.0, &number, &status, &error]).await?;
    Ok(())
}

/// Nothing follows from a late try but that there was one more.
async fn count(transaction: &Transaction<'_>, key: i64, standing: &Standing) -> Result<(), Fault> {
    let statement = transaction
        .prepare_cached(if standing.is_pending() {
            "UPDATE callbacks SET tries = $3 WHERE bucket = $1 AND key = $2"
        } else {
            "UPDATE callbacks_told SET tries = $3 WHERE bucket = $1 AND key = $2"
        })
        .await?;
    transaction.execute(&statement, &[&bucket_in_key(key), &key, &standing.tries.saturating_add(1)]).await?;
    Ok(())
}

fn columns(outcome: &TryOutcome) -> (Option<i32>, Option<&str>) {
    let (status, error) = columns_of(outcome);
    (status.map(i32::from), error)
}

/// A callback's tries, oldest first; the error is the column that holds what was never written there.
pub(super) async fn of(
    transaction: &Transaction<'_>,
    id: CallbackId,
) -> Result<Result<Vec<CallbackTry>, &'static str>, Fault> {
    let key = id.subject().key();
    let statement = transaction
        .prepare_cached(
            "SELECT began_at, duration_us, status, error FROM callback_tries WHERE bucket = $1 AND key = $2 \
             ORDER BY number",
        )
        .await?;
    let rows = transaction.query(&statement, &[&bucket_in_key(key), &key]).await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Result<CallbackTry, &'static str>, Fault> {
    let (at, duration_us): (_, i64) = (get(row, 0)?, get(row, 1)?);
    let (status, error): (Option<i32>, _) = (get(row, 2)?, get(row, 3)?);
    let understood = || {
        Ok(CallbackTry {
            at: UnixMillis(at),
            duration: Duration::from_micros(u64::try_from(duration_us).map_err(|_| "duration_us")?),
            outcome: outcome_of(status.map(i64::from), error)?.ok_or("status")?,
        })
    };
    Ok(understood())
}

/// Makes a callback pending and due, with nothing known of it but its earlier tries, unless somebody is at it: the end
/// of a lease shows that nobody is.
pub(super) async fn resend(transaction: &Transaction<'_>, id: CallbackId, now: UnixMillis) -> Result<Resent, Fault> {
    match Standing::of(transaction, id).await? {
        None => Ok(Resent::Unknown),
        Some(standing) if standing.is_leased() && standing.due_at > now => Ok(Resent::UnderWay),
        Some(standing) => {
            queue_again(transaction, id.subject().key(), &standing, now).await?;
            Ok(Resent::Queued)
        }
    }
}

/// Makes a callback pending and due that is held, wherever it is.
pub(super) async fn queue_again(
    transaction: &Transaction<'_>,
    key: i64,
    standing: &Standing,
    now: UnixMillis,
) -> Result<(), Fault> {
    if standing.state != PENDING {
        move_back(transaction, &[key], standing.state, now).await?;
        return Ok(());
    }
    let statement = transaction
        .prepare_cached(
            "UPDATE callbacks SET queued_at = greatest($3, queued_at + 1), due_at = $3, leased = false, attempts = 0, \
             last_status = NULL, last_error = NULL WHERE bucket = $1 AND key = $2",
        )
        .await?;
    transaction.execute(&statement, &[&bucket_in_key(key), &key, &now.0]).await?;
    Ok(())
}

/// Makes those that are failed still pending and due; how many.
pub(super) async fn resend_failed(
    transaction: &Transaction<'_>,
    places: &[CallbackPlace],
    now: UnixMillis,
) -> Result<usize, Fault> {
    let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
    let moved = move_back(transaction, &keys, FAILED, now).await?;
    Ok(usize::try_from(moved).unwrap_or(usize::MAX))
}

async fn move_back(transaction: &Transaction<'_>, keys: &[i64], state: i64, now: UnixMillis) -> Result<u64, Fault> {
    let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
    let statement = transaction.prepare_cached(MOVE_BACK).await?;
    Ok(transaction.execute(&statement, &[&buckets, &keys, &narrow(state), &now.0]).await?)
}

/// Two nodes that resend the same ones lock them in one order.
pub(super) const MOVE_BACK: &str = "WITH own AS MATERIALIZED (SELECT t.bucket, t.key \
     FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) JOIN callbacks_told t USING (bucket, key) \
     WHERE t.state = $3 ORDER BY t.bucket, t.key FOR UPDATE OF t), \
     gone AS (DELETE FROM callbacks_told AS t USING own WHERE t.bucket = own.bucket AND t.key = own.key RETURNING t.*) \
     INSERT INTO callbacks (bucket, key, nonce, queued_at, due_at, leased, attempts, tries, merchant, target) \
     SELECT bucket, key, nonce, greatest($4::bigint, queued_at + 1), $4, false, 0, tries, merchant, target FROM gone";
