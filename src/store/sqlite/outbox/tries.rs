//! What came of tries, and callbacks that are sent again by hand.
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

use rusqlite::{Connection, Row, named_params};

use super::standing::Standing;
use crate::domain::UnixMillis;
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, columns_of, kept, outcome_of};
use crate::store::{CallbackId, CallbackLease, CallbackNext, CallbackPlace, CallbackTry, Resent};

/// Keeps a try with what follows from it.
pub(super) fn record(
    connection: &Connection,
    lease: CallbackLease,
    tried: &CallbackTry,
    next: CallbackNext,
) -> rusqlite::Result<()> {
    let Some(standing) = Standing::of(connection, lease.id)? else { return Ok(()) };
    let (key, number) = (lease.id.subject().key(), standing.tries + 1);
    keep(connection, key, number, tried)?;
    let in_time = standing.is_leased_for(lease);
    let (state, due) = match next {
        CallbackNext::Delivered => (DELIVERED, standing.due_at),
        CallbackNext::Failed if in_time => (FAILED, standing.due_at),
        CallbackNext::RetryAt(due) if in_time => (PENDING, due),
        CallbackNext::Failed | CallbackNext::RetryAt(_) => {
            return connection
                .prepare_cached("UPDATE callbacks SET tries = ?2 WHERE key = ?1")?
                .execute((key, number))
                .map(drop);
        }
    };
    let (status, error) = columns_of(&tried.outcome);
    connection
        .prepare_cached(
            "UPDATE callbacks SET state = :state, due_at = :due, leased = 0, tries = :tries, last_status = :status, \
             last_error = :error WHERE key = :key",
        )?
        .execute(named_params! {
            ":key": key, ":state": state, ":due": due.0, ":tries": number, ":status": status, ":error": error,
        })
        .map(drop)
}

/// Writes a try down, and removes the one that is too many.
fn keep(connection: &Connection, key: i64, number: i64, tried: &CallbackTry) -> rusqlite::Result<()> {
    let (status, error) = columns_of(&tried.outcome);
    let duration_us = i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT INTO callback_tries (key, number, began_at, duration_us, status, error) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((key, number, tried.at.0, duration_us, status, error))?;
    let Some(too_old) = number.checked_sub(kept()).filter(|number| *number > 0) else { return Ok(()) };
    connection
        .prepare_cached("DELETE FROM callback_tries WHERE key = ?1 AND number <= ?2")?
        .execute((key, too_old))
        .map(drop)
}

/// A callback's tries, oldest first; the error is the column that holds what was never written there.
pub(super) fn of(connection: &Connection, id: CallbackId) -> rusqlite::Result<Result<Vec<CallbackTry>, &'static str>> {
    connection
        .prepare_cached(
            "SELECT began_at, duration_us, status, error FROM callback_tries WHERE key = ?1 ORDER BY number",
        )?
        .query_map([id.subject().key()], read)?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Result<CallbackTry, &'static str>> {
    let (at, duration_us, status, error): (_, i64, _, _) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let understood = || {
        Ok(CallbackTry {
            at: UnixMillis(at),
            duration: Duration::from_micros(u64::try_from(duration_us).map_err(|_| "duration_us")?),
            outcome: outcome_of(status, error)?.ok_or("status")?,
        })
    };
    Ok(understood())
}

/// Makes a callback pending and due, with nothing known of it but its earlier tries, unless somebody is at it: the end of a lease shows that nobody is.
pub(super) fn resend(connection: &Connection, id: CallbackId, now: UnixMillis) -> rusqlite::Result<Resent> {
    match Standing::of(connection, id)? {
        None => Ok(Resent::Unknown),
        Some(standing) if standing.is_leased() && standing.due_at > now => Ok(Resent::UnderWay),
        Some(standing) => queue_again(connection, id.subject().key(), standing.state, now).map(|_| Resent::Queued),
    }
}

/// Makes those that are failed still pending and due; how many.
pub(super) fn resend_failed(
    connection: &Connection,
    places: &[CallbackPlace],
    now: UnixMillis,
) -> rusqlite::Result<usize> {
    places.iter().map(|place| queue_again(connection, place.key, FAILED, now)).sum()
}

/// Makes a callback in a state pending and due; how many that were.
pub(super) fn queue_again(connection: &Connection, key: i64, state: i64, now: UnixMillis) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "UPDATE callbacks SET state = ?3, queued_at = max(?4, queued_at + 1), due_at = ?4, leased = 0, attempts = 0, \
             last_status = NULL, last_error = NULL \
             WHERE key = ?1 AND state = ?2",
        )?
        .execute((key, state, PENDING, now.0))
}
