//! Callbacks and their tries in their tables: what a transaction does with them.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::domain::UnixMillis;
use crate::store::callbacks::CallbackRow;
use crate::store::rows::NotOurs;
use crate::store::rows::callback::{FAILED, PENDING, columns_of, state_number, state_of, target_of};
use crate::store::sqlite::tasks;
use crate::store::tasks::{NewTask, TaskKind};
use crate::store::transaction::NewCallback;
use crate::store::{CallbackState, CallbackSubject, CallbackTarget, CallbackTry, Expiry, TryOutcome};

/// Queues a callback, due at once. It fails when its subject has one.
pub(in crate::store::sqlite) fn queue(connection: &Connection, callback: &NewCallback<'_>) -> rusqlite::Result<()> {
    let NewCallback { id, merchant, target, at } = callback;
    let key = id.subject().key();
    connection
        .prepare_cached(
            "INSERT INTO callbacks (key, nonce, merchant, target, state, queued_at, tries) \
             VALUES (:key, :nonce, :merchant, :target, 0, :at, 0)",
        )?
        .execute(named_params! {
            ":key": key,
            ":nonce": id.nonce().cast_signed(),
            ":merchant": merchant,
            ":target": target,
            ":at": at.0,
        })?;
    let task = NewTask { kind: TaskKind::Callback, key, queue: target, queued_at: *at, due_at: *at };
    tasks::put(connection, &task)
}

/// Reads a callback.
pub(in crate::store::sqlite) fn of(
    connection: &Connection,
    subject: CallbackSubject,
) -> rusqlite::Result<Option<CallbackRow>> {
    let task = tasks::of(connection, TaskKind::Callback, subject.key())?;
    let read = |row: &Row<'_>| {
        Ok(CallbackRow {
            subject,
            nonce: row.get(0)?,
            state: state_of(row.get(1)?).ok_or(NotOurs("state"))?,
            target: target_of(row.get(2)?),
            queued_at: UnixMillis(row.get(3)?),
            tries: row.get(4)?,
            task,
        })
    };
    connection
        .prepare_cached("SELECT nonce, state, target, queued_at, tries FROM callbacks WHERE key = ?1")?
        .query_row([subject.key()], read)
        .optional()
}

/// Writes a try down.
pub(in crate::store::sqlite) fn insert_try(
    connection: &Connection,
    subject: CallbackSubject,
    number: i64,
    tried: &CallbackTry,
) -> rusqlite::Result<()> {
    let (status, error) = columns_of(&tried.outcome);
    let duration_us = i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT INTO callback_tries (key, number, began_at, duration_us, status, error) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((subject.key(), number, tried.at.0, duration_us, status, error))
        .map(drop)
}

/// Removes tries up to a number.
pub(in crate::store::sqlite) fn remove_tries(
    connection: &Connection,
    subject: CallbackSubject,
    until: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM callback_tries WHERE key = ?1 AND number <= ?2")?
        .execute((subject.key(), until))
        .map(drop)
}

/// Writes what came of a try.
pub(in crate::store::sqlite) fn set_tried(
    connection: &Connection,
    subject: CallbackSubject,
    state: CallbackState,
    tries: i64,
    outcome: &TryOutcome,
) -> rusqlite::Result<()> {
    let (status, error) = columns_of(outcome);
    connection
        .prepare_cached(
            "UPDATE callbacks SET state = ?2, tries = ?3, last_status = ?4, last_error = ?5 WHERE key = ?1",
        )?
        .execute((subject.key(), state_number(state), tries, status, error))
        .map(drop)
}

/// Writes how many tries there were.
pub(in crate::store::sqlite) fn count_try(
    connection: &Connection,
    subject: CallbackSubject,
    tries: i64,
) -> rusqlite::Result<()> {
    let update = "UPDATE callbacks SET tries = ?2 WHERE key = ?1";
    connection.prepare_cached(update)?.execute((subject.key(), tries)).map(drop)
}

/// Makes a callback pending again, in a queue, with nothing known but its earlier tries.
pub(in crate::store::sqlite) fn set_queued(
    connection: &Connection,
    subject: CallbackSubject,
    target: &CallbackTarget,
    queued_at: UnixMillis,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE callbacks SET state = ?2, target = ?3, queued_at = ?4, last_status = NULL, last_error = NULL \
             WHERE key = ?1",
        )?
        .execute((subject.key(), PENDING, target.as_str(), queued_at.0))
        .map(drop)
}

/// Pending callbacks of targets that nobody is at and that were queued until a time: a lease that ended by then was somebody's
/// who is gone. Along the index by time, since what is so old waits behind a dead target or has its last try.
pub(in crate::store::sqlite) const LATE: &str = "SELECT c.key FROM callbacks c INDEXED BY callbacks_by_time \
     LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
     WHERE c.state = 0 AND c.queued_at <= ?2 AND c.target = ?1 AND coalesce(t.leased = 0 OR t.due_at <= ?2, 1) \
     ORDER BY c.queued_at, c.key LIMIT ?3";

/// Reads what is to be given up.
pub(in crate::store::sqlite) fn late(connection: &Connection, expiry: &Expiry) -> rusqlite::Result<Vec<i64>> {
    let mut found = connection.prepare_cached(LATE)?;
    let mut keys: Vec<i64> = Vec::new();
    for target in &expiry.targets {
        let left = i64::try_from(expiry.limit.saturating_sub(keys.len())).unwrap_or(i64::MAX);
        let rows = found.query_map((target.as_str(), expiry.queued_until.0, left), |row| row.get(0))?;
        keys.extend(rows.collect::<Result<Vec<i64>, _>>()?);
    }
    Ok(keys)
}

/// Gives callbacks up.
pub(in crate::store::sqlite) fn give_up(connection: &Connection, keys: &[i64], reason: &str) -> rusqlite::Result<()> {
    let mut fail = connection
        .prepare_cached("UPDATE callbacks SET state = ?2, last_status = NULL, last_error = ?3 WHERE key = ?1")?;
    for key in keys {
        fail.execute((key, FAILED, reason))?;
        tasks::end(connection, TaskKind::Callback, *key)?;
    }
    Ok(())
}

/// Makes those of some callbacks pending and due that are failed; how many.
pub(in crate::store::sqlite) fn queue_failed(
    connection: &Connection,
    keys: &[i64],
    now: UnixMillis,
) -> rusqlite::Result<usize> {
    let mut queue = connection.prepare_cached(
        "UPDATE callbacks SET state = ?2, queued_at = max(?4, queued_at + 1), last_status = NULL, last_error = NULL \
         WHERE key = ?1 AND state = ?3 RETURNING target, queued_at",
    )?;
    let mut count = 0;
    for key in keys {
        let queued = queue.query_row((key, PENDING, FAILED, now.0), |row| Ok((row.get::<_, String>(0)?, row.get(1)?)));
        let Some((target, queued_at)) = queued.optional()? else { continue };
        let queued_at = UnixMillis(queued_at);
        let task = NewTask { kind: TaskKind::Callback, key: *key, queue: &target, queued_at, due_at: now };
        tasks::put(connection, &task)?;
        count += 1;
    }
    Ok(count)
}

/// Removes a callback with its tries and its task.
pub(in crate::store::sqlite) fn remove(connection: &Connection, subject: CallbackSubject) -> rusqlite::Result<()> {
    tasks::end(connection, TaskKind::Callback, subject.key())?;
    connection.prepare_cached("DELETE FROM callback_tries WHERE key = ?1")?.execute([subject.key()])?;
    connection.prepare_cached("DELETE FROM callbacks WHERE key = ?1")?.execute([subject.key()]).map(drop)
}
