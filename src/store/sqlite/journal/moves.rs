//! The transactions of the journal: from nothing over open and in doubt to answered, or back to nothing. A move from
//! another state than its own changes nothing.

use rusqlite::Connection;

use super::row::{ANSWERED, EntryRow, IN_DOUBT, NewEntry, OPEN};
use crate::domain::{Status, UnixMillis};
use crate::store::sqlite::reserved;
use crate::store::sqlite::row::status_number;
use crate::store::{Digest, EngineAnswer, EntryId, NotKept};

/// What stood in the way of an intent.
pub(super) enum Met {
    /// It was written, under this number.
    Nothing(EntryId),
    Entry(Box<EntryRow>),
    Reservation,
}

/// Writes an open entry, unless its order is taken. What stands may be of the same batch: the answer is sent after its
/// commit too.
pub(super) fn intend(connection: &Connection, new: &NewEntry) -> rusqlite::Result<Met> {
    if let Some(standing) = EntryRow::by_order(connection, new.order_key())? {
        return Ok(Met::Entry(Box::new(standing)));
    }
    if reserved::holds(connection, new.order_key())? {
        return Ok(Met::Reservation);
    }
    new.insert(connection).map(Met::Nothing)
}

/// Writes the engine's answer to the entry of this number, and gives what stands then.
pub(super) fn answer(
    connection: &Connection,
    id: EntryId,
    new: &NewEntry,
    answer: &EngineAnswer,
) -> rusqlite::Result<Result<EntryRow, NotKept>> {
    if named(connection, new.order_key(), &answer.transaction_id)? {
        return Ok(Err(NotKept::OtherOrder));
    }
    let id = match EntryRow::by_order(connection, new.order_key())? {
        Some(standing) if standing.is_answered() => return Ok(Ok(standing)),
        Some(standing) if standing.id() == id => id,
        Some(_) => return Ok(Err(NotKept::Late)),
        None if reserved::holds(connection, new.order_key())? => return Ok(Err(NotKept::Late)),
        None => new.insert(connection)?,
    };
    new.complete(connection, id, answer)?;
    EntryRow::by_order(connection, new.order_key()).map(|standing| standing.ok_or(NotKept::Late))
}

/// Whether the engine gave another order's operation this name.
fn named(connection: &Connection, key: Digest, transaction_id: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM journal WHERE transaction_id = ?1 AND order_key <> ?2)")?
        .query_row((transaction_id, key.0), |row| row.get(0))
}

/// The outcome of an entry without an answer is unknown, at this time the latest.
pub(super) fn doubt(connection: &Connection, id: EntryId, at: UnixMillis) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE journal SET state = ?2, doubted_at = max(coalesce(doubted_at, ?3), ?3) \
             WHERE entry = ?1 AND state IN (?2, ?4)",
        )?
        .execute((id.0, IN_DOUBT, at.0, OPEN))
        .map(drop)
}

/// A request for an open entry leaves again.
pub(super) fn sent_again(connection: &Connection, id: EntryId, at: UnixMillis) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE journal SET doubted_at = max(coalesce(doubted_at, ?2), ?2) WHERE entry = ?1 AND state = ?3",
        )?
        .execute((id.0, at.0, OPEN))
        .map(drop)
}

/// Removes an entry without an answer, if nothing was sent for it since, and no result of it that the engine announced is
/// being asked for. One that was asked for in vain until it was given up goes with it.
pub(super) fn withdraw(connection: &Connection, id: EntryId, since: Option<UnixMillis>) -> rusqlite::Result<bool> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM journal WHERE entry = ?1 AND state <> ?2 AND doubted_at IS ?3 \
             AND NOT EXISTS (SELECT 1 FROM callbacks WHERE key = -entry AND state = 0)",
        )?
        .execute((id.0, ANSWERED, since.map(|at| at.0)))?;
    if removed == 1 {
        connection.prepare_cached("DELETE FROM callback_tries WHERE key = -?1")?.execute([id.0])?;
        connection.prepare_cached("DELETE FROM callbacks WHERE key = -?1")?.execute([id.0])?;
    }
    Ok(removed == 1)
}

/// Keeps what was heard of an answered entry: while it is PENDING its status and an account, which stays until another is
/// heard; its shop where it was not known.
pub(super) fn heard(
    connection: &Connection,
    id: EntryId,
    status: Status,
    account: Option<&[u8]>,
    shop: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE journal SET shop = ?2 WHERE entry = ?1 AND state = ?3 AND shop = ''")?
        .execute((id.0, shop, ANSWERED))?;
    connection
        .prepare_cached(
            "UPDATE journal SET status = ?2, account = coalesce(?3, account) \
             WHERE entry = ?1 AND state = ?4 AND status = ?5",
        )?
        .execute((id.0, status_number(status), account, ANSWERED, status_number(Status::Pending)))
        .map(drop)
}
