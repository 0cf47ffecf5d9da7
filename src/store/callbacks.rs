//! The transactions on callbacks: results of tries, announcements of remote engines, resends and expiry.
//!
//! | result of a try | lease valid | pending, lease lost | delivered | failed |
//! |---|---|---|---|---|
//! | delivered | delivered | delivered | delivered | delivered |
//! | given up | failed | unchanged | unchanged | unchanged |
//! | retry later | due then | unchanged | unchanged | unchanged |
//!
//! Every try is stored. In all columns but the first the try is late: its lease had ended, and the callback was claimed
//! again, finished or resent since. A pending callback has a task in the queue of its target; others have none.

use std::collections::HashSet;

use super::rows::CorruptRow;
use super::rows::callback::{DELIVERED, FAILED, columns_of, max_tries, state_number, state_of};
use super::rows::task::TaskKind;
use super::sql::{Columns, Parameter, Sql, Transaction, params, sql};
use super::tasks::{self, NewTask, TaskState};
use super::transaction::OwnStatements;
use super::{
    CallbackId, CallbackLease, CallbackNext, CallbackState, CallbackSubject, CallbackTarget, CallbackTry,
    ExpireRequest, Resent, TryOutcome,
};
use crate::domain::UnixMillis;

/// A callback and its task, as stored.
#[derive(Debug)]
pub(super) struct CallbackRow {
    pub(super) subject: CallbackSubject,
    pub(super) nonce: i64,
    pub(super) state: CallbackState,
    pub(super) target: CallbackTarget,
    /// When it was queued or last resent.
    pub(super) queued_at: UnixMillis,
    pub(super) tries: i64,
    /// Present while it is pending.
    pub(super) task: Option<TaskState>,
}

impl CallbackRow {
    /// Reports whether this lease is of the latest claim, and the callback was not requeued since.
    fn is_leased_for(&self, lease: CallbackLease) -> bool {
        self.task
            .is_some_and(|task| task.is_leased && task.queued_at == lease.queued_at && task.attempts == lease.attempt())
    }

    /// Reports whether an announcement makes the engine be queried again: it was queried before without success, or the
    /// callback was given up.
    pub(super) fn can_be_queried_again(&self) -> bool {
        let was_queried = self.task.map_or(self.state == CallbackState::Failed, |task| task.attempts > 0);
        self.target.is_engine() && was_queried
    }
}

/// Reads and locks the callback with this id.
pub(super) async fn locked_by_id<T: OwnStatements>(tx: &T, id: CallbackId) -> Result<Option<CallbackRow>, T::Error> {
    let found = locked(tx, id.subject()).await?;
    Ok(found.filter(|found| found.nonce == id.nonce().cast_signed()))
}

/// Stores a try and applies its result. A late try that is stored already was committed before, and only the
/// confirmation was lost. A try in time cannot have been stored before, because that would have ended its lease.
pub(super) async fn record<T: OwnStatements>(
    tx: &T,
    lease: CallbackLease,
    tried: &CallbackTry,
    next: CallbackNext,
) -> Result<(), T::Error> {
    let subject = lease.id.subject();
    let Some(callback) = locked_by_id(tx, lease.id).await? else { return Ok(()) };
    let in_time = callback.is_leased_for(lease);
    if !in_time && is_try(tx, subject, callback.tries, tried).await? {
        return Ok(());
    }
    let number = callback.tries.saturating_add(1);
    insert_try(tx, subject, number, tried).await?;
    if number > max_tries() {
        tx.execute(REMOVE_TRIES, &params![subject.key(), number - max_tries()]).await?;
    }
    let state = match next {
        CallbackNext::Delivered => CallbackState::Delivered,
        CallbackNext::Failed if in_time => CallbackState::Failed,
        CallbackNext::RetryAt(due) if in_time => {
            tasks::release(tx, TaskKind::Callback, subject.key(), due).await?;
            CallbackState::Pending
        }
        CallbackNext::Failed | CallbackNext::RetryAt(_) => {
            return tx.execute(COUNT_TRY, &params![subject.key(), number]).await.map(drop);
        }
    };
    set_tried(tx, subject, state, number, &tried.outcome).await?;
    if state != CallbackState::Pending && callback.task.is_some() {
        tasks::end(tx, TaskKind::Callback, subject.key()).await?;
    }
    Ok(())
}

/// Makes a claimed callback due at another time. Does nothing unless this is still the latest claim.
pub(super) async fn postpone<T: OwnStatements>(tx: &T, lease: CallbackLease, due: UnixMillis) -> Result<(), T::Error> {
    if !locked_by_id(tx, lease.id).await?.is_some_and(|callback| callback.is_leased_for(lease)) {
        return Ok(());
    }
    tasks::release(tx, TaskKind::Callback, lease.id.subject().key(), due).await
}

/// Deletes a claimed callback of an entry with its tries, unless it was announced or claimed again since. Never deletes
/// the callback of an operation: that has a result to deliver.
pub(super) async fn remove<T: OwnStatements>(tx: &T, lease: CallbackLease) -> Result<(), T::Error> {
    let subject = lease.id.subject();
    let CallbackSubject::Entry(_) = subject else { return Ok(()) };
    match locked_by_id(tx, lease.id).await? {
        Some(callback) if callback.is_leased_for(lease) => remove_all(tx, subject).await,
        _ => Ok(()),
    }
}

/// Makes a callback pending and due, and clears all but its tries, unless a worker holds a valid lease of it.
pub(super) async fn resend<T: OwnStatements>(tx: &T, id: CallbackId, now: UnixMillis) -> Result<Resent, T::Error> {
    match locked_by_id(tx, id).await? {
        None => Ok(Resent::Unknown),
        Some(CallbackRow { task: Some(task), .. }) if task.is_leased && task.due_at > now => Ok(Resent::UnderWay),
        Some(callback) => {
            let target = callback.target.clone();
            requeue(tx, &callback, target, now).await.map(|()| Resent::Queued)
        }
    }
}

/// Makes a callback pending and due in a queue.
pub(super) async fn requeue<T: OwnStatements>(
    tx: &T,
    callback: &CallbackRow,
    target: CallbackTarget,
    now: UnixMillis,
) -> Result<(), T::Error> {
    // A lease is identified by the time of queueing, so that time must be new.
    let queued_at = now.max(UnixMillis(callback.queued_at.0.saturating_add(1)));
    tx.execute(SET_QUEUED, &params![callback.subject.key(), target.origin(), queued_at]).await?;
    let (kind, key) = (TaskKind::Callback, callback.subject.key());
    tasks::put(tx, NewTask { kind, key, queue: target.as_queue(), queued_at, due_at: now }).await
}

/// Gives up callbacks of some targets that were queued until a time and have no valid lease: an expired lease belongs
/// to a worker that is gone. Returns how many.
pub(super) async fn expire<T: OwnStatements>(tx: &T, expiry: &ExpireRequest) -> Result<usize, T::Error> {
    let late = late(tx, expiry).await?;
    give_up(tx, &late, expiry.reason).await.map(|()| late.len())
}

/// A callback about to be queued.
#[derive(Debug)]
pub(super) struct NewCallback<'a> {
    pub(super) id: CallbackId,
    pub(super) target: &'a CallbackTarget,
    pub(super) at: UnixMillis,
}

const QUEUE: Sql = sql!(
    "INSERT INTO callbacks (key, nonce, merchant, target, state, queued_at, tries) VALUES (?1, ?2, ?3, ?4, 0, ?5, 0)"
);

/// Inserts a callback and its task, due at once.
///
/// # Errors
/// Its subject has a callback already.
pub(super) async fn queue<T: OwnStatements>(tx: &T, callback: NewCallback<'_>) -> Result<(), T::Error> {
    let NewCallback { id, target, at } = callback;
    let (key, nonce) = (id.subject().key(), id.nonce().cast_signed());
    tx.execute(QUEUE, &params![key, nonce, target.merchant(), target.origin(), at]).await?;
    tasks::put(tx, NewTask { kind: TaskKind::Callback, key, queue: target.as_queue(), queued_at: at, due_at: at }).await
}

/// A change of a callback by its name locks its row first, then its task.
pub(super) const LOCKED: Sql = sql!(
    "SELECT nonce, state, merchant || ' ' || target, queued_at, tries FROM callbacks WHERE key = ?1",
    postgres adds "FOR UPDATE"
);

/// Reads a callback and its task, and locks them.
pub(super) async fn locked<T: Transaction>(tx: &T, subject: CallbackSubject) -> Result<Option<CallbackRow>, T::Error> {
    let read = |row: &dyn Columns| {
        Ok(CallbackRow {
            subject,
            nonce: row.get(0)?,
            state: state_of(row.get(1)?).ok_or(CorruptRow::new("state"))?,
            target: CallbackTarget::of_queue(row.get::<Box<str>>(2)?),
            queued_at: row.get(3)?,
            tries: row.get(4)?,
            task: None,
        })
    };
    let Some(callback) = tx.query_opt(LOCKED, &params![subject.key()], read).await? else { return Ok(None) };
    let task = tasks::locked(tx, TaskKind::Callback, subject.key()).await?;
    Ok(Some(CallbackRow { task, ..callback }))
}

const INSERT_TRY: Sql = sql!(
    "INSERT INTO callback_tries (key, number, began_at, duration_us, status, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
);

const IS_TRY: Sql = sql!(
    "SELECT EXISTS (SELECT 1 FROM callback_tries WHERE key = ?1 AND number = ?2 AND began_at = ?3 \
     AND duration_us = ?4 AND status IS NOT DISTINCT FROM ?5 AND error IS NOT DISTINCT FROM ?6)"
);

/// Returns the columns of a callback's try.
fn try_columns(subject: CallbackSubject, number: i64, tried: &CallbackTry) -> [Parameter<'_>; 6] {
    let (status, error) = columns_of(&tried.outcome);
    let duration_us = i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX);
    params![subject.key(), number, tried.at, duration_us, status, error]
}

async fn insert_try<T: Transaction>(
    tx: &T,
    subject: CallbackSubject,
    number: i64,
    tried: &CallbackTry,
) -> Result<(), T::Error> {
    tx.execute(INSERT_TRY, &try_columns(subject, number, tried)).await.map(drop)
}

/// Reports whether the try with this number exists and equals `tried`.
async fn is_try<T: Transaction>(
    tx: &T,
    subject: CallbackSubject,
    number: i64,
    tried: &CallbackTry,
) -> Result<bool, T::Error> {
    tx.query_value(IS_TRY, &try_columns(subject, number, tried)).await
}

const REMOVE_TRIES: Sql = sql!("DELETE FROM callback_tries WHERE key = ?1 AND number <= ?2");

const COUNT_TRY: Sql = sql!("UPDATE callbacks SET tries = ?2 WHERE key = ?1");

const SET_TRIED: Sql =
    sql!("UPDATE callbacks SET state = ?2, tries = ?3, last_status = ?4, last_error = ?5 WHERE key = ?1");

/// Updates a callback's state, count of tries and last outcome.
async fn set_tried<T: Transaction>(
    tx: &T,
    subject: CallbackSubject,
    state: CallbackState,
    tries: i64,
    outcome: &TryOutcome,
) -> Result<(), T::Error> {
    let (status, error) = columns_of(outcome);
    tx.execute(SET_TRIED, &params![subject.key(), state_number(state), tries, status, error]).await.map(drop)
}

/// Makes a callback pending and clears all but its count of tries.
const SET_QUEUED: Sql = sql!(
    "UPDATE callbacks SET state = 0, target = ?2, queued_at = ?3, last_status = NULL, last_error = NULL WHERE key = ?1"
);

/// The pending callbacks of a merchant, behind a position, that were queued until a time and have no lease in force: a lease
/// that ended by then belonged to a process that has ended. So old a callback waits for a dead target or has its last attempt,
/// so they are read once for all targets of the merchant.
pub(super) const LATE: Sql = sql!(
    "SELECT c.key, c.target, c.queued_at FROM callbacks c", indexed by "callbacks_by_merchant",
    "LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
     WHERE c.merchant = ?1 AND c.state = 0 AND c.queued_at <= ?2 \
     AND (c.queued_at, c.key) > (?3, ?4) \
     AND (t.key IS NULL OR t.state = 0 OR t.due_at <= ?2) ORDER BY c.queued_at, c.key LIMIT ?5",
);

/// How many of them are read at a time.
const LATE_ROWS: i64 = 5_000;

/// Locks a callback that is still late, unless another node has locked it.
const STILL_LATE: Sql = sql!(
    "SELECT key FROM callbacks WHERE key = ?1 AND state = 0 AND queued_at <= ?2",
    postgres adds "FOR UPDATE SKIP LOCKED",
);

/// Reads and locks the pending callbacks that match an [`ExpireRequest`] and have no valid lease; returns their keys. Those
/// of other targets are only read, so that their tries can be recorded meanwhile.
async fn late<T: Transaction>(tx: &T, expiry: &ExpireRequest) -> Result<Vec<i64>, T::Error> {
    let mut keys: Vec<i64> = Vec::new();
    let merchants: HashSet<&str> = expiry.targets.iter().map(CallbackTarget::merchant).collect();
    for merchant in merchants {
        let mut place = (i64::MIN, i64::MIN);
        while keys.len() < expiry.limit {
            let parameters = params![merchant, expiry.queued_until, place.0, place.1, LATE_ROWS];
            let read = |row: &dyn Columns| Ok((row.get(0)?, row.get::<Box<str>>(1)?, row.get(2)?));
            let found: Vec<(i64, Box<str>, i64)> = tx.query(LATE, &parameters, read).await?;
            let Some((last, _, queued_at)) = found.last() else { break };
            place = (*queued_at, *last);
            let of_them = |target: &str| expiry.targets.contains(&CallbackTarget::of_columns(merchant, target));
            keys.extend(found.iter().filter(|(_, target, _)| of_them(target)).map(|(key, ..)| *key));
        }
    }
    keys.truncate(expiry.limit);
    let sets: Vec<_> = keys.iter().map(|key| params![*key, expiry.queued_until]).collect();
    tx.query_each(STILL_LATE, &sets, |row| row.get(0)).await.map(|found| found.concat())
}

const GIVE_UP: Sql = sql!("UPDATE callbacks SET state = 2, last_status = NULL, last_error = ?2 WHERE key = ?1");

/// Marks locked callbacks failed, and ends their tasks.
async fn give_up<T: Transaction>(tx: &T, keys: &[i64], reason: &str) -> Result<(), T::Error> {
    let sets: Vec<_> = keys.iter().map(|key| params![*key, reason]).collect();
    tx.execute_each(GIVE_UP, &sets).await?;
    tasks::end_each(tx, TaskKind::Callback, keys).await
}

const QUEUE_FAILED: Sql = sql!(
    "UPDATE callbacks SET state = 0, queued_at = CASE WHEN queued_at < ?2 THEN ?2 ELSE queued_at + 1 END, \
     last_status = NULL, last_error = NULL WHERE key = ?1 AND state = 2 \
     RETURNING key, merchant || ' ' || target, queued_at"
);

/// Requeues those of the callbacks that are failed; returns how many. They are locked in the order of their keys.
pub(super) async fn queue_failed<T: OwnStatements>(tx: &T, keys: &[i64], now: UnixMillis) -> Result<usize, T::Error> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    let sets: Vec<_> = keys.iter().map(|key| params![*key, now]).collect();
    let read = |row: &dyn Columns| Ok((row.get(0)?, row.get::<Box<str>>(1)?, row.get(2)?));
    let queued: Vec<(i64, Box<str>, UnixMillis)> = tx.query_each(QUEUE_FAILED, &sets, read).await?.concat();
    let kind = TaskKind::Callback;
    let tasks = queued.iter().map(|(key, queue, queued_at)| {
        let (key, queued_at) = (*key, *queued_at);
        NewTask { kind, key, queue, queued_at, due_at: now }
    });
    tasks::put_each(tx, tasks).await?;
    Ok(queued.len())
}

const REMOVE_ALL_TRIES: Sql = sql!("DELETE FROM callback_tries WHERE key = ?1");
const REMOVE: Sql = sql!("DELETE FROM callbacks WHERE key = ?1");

/// Deletes a callback that is locked, with its tries and its task, if it exists.
pub(super) async fn remove_all<T: Transaction>(tx: &T, subject: CallbackSubject) -> Result<(), T::Error> {
    let key = subject.key();
    tasks::end(tx, TaskKind::Callback, key).await?;
    tx.execute(REMOVE_ALL_TRIES, &params![key]).await?;
    tx.execute(REMOVE, &params![key]).await.map(drop)
}

/// Callbacks in a state that were queued until a time, oldest first.
pub(super) const QUEUED_UNTIL: Sql = sql!(
    "SELECT key FROM callbacks", indexed by "callbacks_by_time",
    "WHERE state = ?1 AND queued_at <= ?2 ORDER BY queued_at, key LIMIT ?3",
    // Those that are being resent at this moment are skipped.
    postgres adds "FOR UPDATE SKIP LOCKED",
);

const NOTE_FORGOTTEN: Sql = sql!(
    "INSERT INTO forgotten (id, until) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET until = \
     CASE WHEN forgotten.until < excluded.until THEN excluded.until ELSE forgotten.until END"
);

/// Deletes callbacks that were delivered or given up, with their tries, and records up to which time: an audit does not expect
/// them.
pub(super) async fn forget<T: Transaction>(tx: &T, until: UnixMillis, limit: usize) -> Result<usize, T::Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut keys: Vec<i64> = Vec::new();
    for state in [DELIVERED, FAILED] {
        keys.extend(tx.query(QUEUED_UNTIL, &params![state, until, limit], |row| row.get::<i64>(0)).await?);
    }
    if !keys.is_empty() {
        let sets: Vec<_> = keys.iter().map(|key| params![*key]).collect();
        tx.execute_each(REMOVE_ALL_TRIES, &sets).await?;
        tx.execute_each(REMOVE, &sets).await?;
        tx.execute(NOTE_FORGOTTEN, &params![until]).await?;
    }
    Ok(keys.len())
}
