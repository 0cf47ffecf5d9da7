//! The queues: one a target, each in the order in which its callbacks are due.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::standing::Standing;
use super::tries;
use crate::domain::UnixMillis;
use crate::store::rows::callback::{FAILED, target_of};
use crate::store::sqlite::transaction::queue_callback;
use crate::store::transaction::NewCallback;
use crate::store::{
    CallbackClaim, CallbackId, CallbackLease, CallbackQueue, CallbackSubject, CallbackTarget, EntryId, Expiry, Relayed,
};

/// Queues what a remote engine announced, unless there is nobody to be told or it is there. What waits for the engine's word
/// and was asked for before, or given up, is asked for anew: whoever is at it now may have asked too early, and loses its
/// lease.
pub(super) fn relay(connection: &Connection, entry: EntryId, nonce: u64, at: UnixMillis) -> rusqlite::Result<Relayed> {
    let subject = CallbackSubject::Entry(entry);
    if let Some(standing) = Standing::of_key(connection, subject.key())? {
        if !standing.may_be_asked_anew() {
            return Ok(Relayed::Nothing);
        }
        return tries::queue_again(connection, subject.key(), standing.state, at).map(|_| Relayed::Queued);
    }
    let merchant: Option<String> = connection
        .prepare_cached("SELECT merchant FROM journal WHERE entry = ?1 AND v1_callback_url IS NOT NULL")?
        .query_row([entry.0], |row| row.get(0))
        .optional()?;
    let Some(merchant) = merchant else { return Ok(Relayed::Nothing) };
    let target = CallbackTarget::Engine.as_str();
    let id = CallbackId::new(subject, nonce);
    queue_callback(connection, &NewCallback { id, merchant: &merchant, target, at })?;
    Ok(Relayed::Queued)
}

/// The next target after one, and when its earliest callback is due.
pub(in crate::store::sqlite) const NEXT_QUEUE: &str = "SELECT target, due_at, attempts > 0 FROM callbacks INDEXED BY callbacks_by_due WHERE state = 0 AND target > ?1 \
     ORDER BY target, due_at LIMIT 1";

/// The targets with pending callbacks: one step of the index a target, however many callbacks wait.
pub(super) fn queues(connection: &Connection) -> rusqlite::Result<Vec<CallbackQueue>> {
    let mut next = connection.prepare_cached(NEXT_QUEUE)?;
    let mut queues: Vec<CallbackQueue> = Vec::new();
    loop {
        let last = queues.last().map_or("", |queue| queue.target.as_str());
        let queue = next.query_row([last], |row| {
            Ok(CallbackQueue { target: target_of(row.get(0)?), due: UnixMillis(row.get(1)?), tried: row.get(2)? })
        });
        let Some(queue) = queue.optional()? else { return Ok(queues) };
        queues.push(queue);
    }
}

/// A claimed callback, before what it is about was read.
pub(super) struct Due {
    pub(super) key: i64,
    pub(super) nonce: i64,
    pub(super) target: CallbackTarget,
    pub(super) attempts: u32,
    pub(super) queued_at: UnixMillis,
}

/// What is due of a target, earliest first.
pub(in crate::store::sqlite) const DUE: &str = "SELECT key, nonce, attempts, queued_at FROM callbacks INDEXED BY callbacks_by_due \
     WHERE state = 0 AND target = ?1 AND due_at <= ?2 ORDER BY due_at, key LIMIT ?3";

/// Takes what is due of each target, earliest first, and leases it.
pub(super) fn claim(connection: &Connection, claim: &CallbackClaim) -> rusqlite::Result<Vec<Due>> {
    let mut due = connection.prepare_cached(DUE)?;
    let mut lease = connection
        .prepare_cached("UPDATE callbacks SET due_at = ?2, leased = 1, attempts = attempts + 1 WHERE key = ?1")?;
    let mut claimed: Vec<Due> = Vec::new();
    for (target, share) in &claim.shares {
        let before = claimed.len();
        let limit = i64::try_from(*share).unwrap_or(i64::MAX);
        let rows = due.query_map((target.as_str(), claim.now.0, limit), |row| {
            Ok(Due {
                key: row.get(0)?,
                nonce: row.get(1)?,
                target: target.clone(),
                attempts: row.get(2)?,
                queued_at: UnixMillis(row.get(3)?),
            })
        })?;
        for row in rows {
            claimed.push(row?);
        }
        for row in &claimed[before..] {
            lease.execute((row.key, claim.lease_until.0))?;
        }
    }
    Ok(claimed)
}

/// Makes every claimed callback due again. One gateway serves a file, so that whoever claimed them is gone when it opens.
pub(in crate::store::sqlite) fn release(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .execute(
            "UPDATE callbacks INDEXED BY callbacks_by_due SET due_at = queued_at, leased = 0 \
             WHERE state = 0 AND leased = 1",
            [],
        )
        .map(drop)
}

/// Ends the lease of callbacks that cannot be read.
pub(super) fn put_off(connection: &Connection, keys: &[i64], until: UnixMillis) -> rusqlite::Result<()> {
    let mut put_off = connection
        .prepare_cached("UPDATE callbacks SET due_at = ?2, leased = 0 WHERE key = ?1 AND state = 0 AND leased = 1")?;
    keys.iter().try_for_each(|key| put_off.execute((key, until.0)).map(drop))
}

/// Ends a lease with another time to be due at.
pub(super) fn postpone(connection: &Connection, lease: CallbackLease, due: UnixMillis) -> rusqlite::Result<()> {
    if !is_latest(connection, lease)? {
        return Ok(());
    }
    connection
        .prepare_cached("UPDATE callbacks SET due_at = ?2, leased = 0 WHERE key = ?1")?
        .execute((lease.id.subject().key(), due.0))
        .map(drop)
}

fn is_latest(connection: &Connection, lease: CallbackLease) -> rusqlite::Result<bool> {
    Ok(Standing::of(connection, lease.id)?.is_some_and(|standing| standing.is_leased_for(lease)))
}

/// Moves a callback from the engine's queue to the one of its merchant's target, where its time begins; whether it did.
pub(super) fn ready(connection: &Connection, id: CallbackId, target: &str, now: UnixMillis) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "UPDATE callbacks SET target = :target, queued_at = max(:now, queued_at + 1), due_at = :now, leased = 0, \
             attempts = 0 \
             WHERE key = :key AND nonce = :nonce AND state = 0 AND target = :engine",
        )?
        .execute(named_params! {
            ":key": id.subject().key(),
            ":nonce": id.nonce().cast_signed(),
            ":target": target,
            ":engine": CallbackTarget::Engine.as_str(),
            ":now": now.0,
        })
        .map(|changed| changed == 1)
}

/// Removes a claimed callback of an entry with its tries, unless it was announced anew or claimed by somebody else since. An
/// operation's result is always told.
pub(super) fn remove(connection: &Connection, lease: CallbackLease) -> rusqlite::Result<()> {
    let CallbackSubject::Entry(_) = lease.id.subject() else { return Ok(()) };
    if !is_latest(connection, lease)? {
        return Ok(());
    }
    let key = lease.id.subject().key();
    connection.prepare_cached("DELETE FROM callbacks WHERE key = ?1")?.execute([key])?;
    connection.prepare_cached("DELETE FROM callback_tries WHERE key = ?1")?.execute([key]).map(drop)
}

/// Pending callbacks of a target that nobody is at and that were queued until a time: a lease that ended by then was
/// somebody's who is gone.
pub(in crate::store::sqlite) const EXPIRED: &str = "SELECT key FROM callbacks INDEXED BY callbacks_by_due WHERE state = 0 AND target = ?1 AND queued_at <= ?2 \
     AND (leased = 0 OR due_at <= ?2) LIMIT ?3";

/// Gives up what was queued until a time for some targets.
pub(super) fn expire(connection: &Connection, expiry: &Expiry) -> rusqlite::Result<usize> {
    let mut found = connection.prepare_cached(EXPIRED)?;
    let mut keys: Vec<i64> = Vec::new();
    for target in &expiry.targets {
        let left = i64::try_from(expiry.limit.saturating_sub(keys.len())).unwrap_or(i64::MAX);
        let rows = found.query_map((target.as_str(), expiry.queued_until.0, left), |row| row.get(0))?;
        keys.extend(rows.collect::<Result<Vec<i64>, _>>()?);
    }
    let mut fail = connection.prepare_cached(
        "UPDATE callbacks SET state = ?2, leased = 0, last_status = NULL, last_error = ?3 WHERE key = ?1",
    )?;
    for key in &keys {
        fail.execute((key, FAILED, expiry.reason))?;
    }
    Ok(keys.len())
}
