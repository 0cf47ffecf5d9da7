//! The state transitions of a journal entry: none, open, in doubt, answered, and cancelled back to none. A transition
//! that does not apply to the entry's state changes nothing.

use super::entries;
use crate::domain::{Status, UnixMillis};
use crate::store::callbacks::{self, NewCallback, locked_by_id, remove_all, requeue};
use crate::store::homes::{Home, home_of};
use crate::store::rows::callback::origin_of;
use crate::store::rows::entry::{EntryRow, IN_DOUBT, NewEntry, OPEN};
use crate::store::rows::{CorruptRow, status_number};
use crate::store::transaction::OwnStatements;
use crate::store::{
    CallbackId, CallbackState, CallbackSubject, CallbackTarget, EngineAnswer, EntryId, NotKept, Relayed,
};

/// Why a create was not recorded.
pub(in crate::store) enum EntryConflict {
    /// It was recorded.
    Nothing,
    Entry(Box<EntryRow>),
    /// The home of its order is the old v1 service.
    Reservation,
    /// Its order is lost.
    Lost,
    /// Its order was created through v2.
    Native,
    /// Another entry has its number, or the order's entry was just cancelled.
    Number,
}

/// Inserts an open entry with this number, unless its order has a home. `again`: an earlier run may have been
/// committed, with its confirmation lost.
pub(in crate::store) async fn record_create<T: OwnStatements>(
    tx: &T,
    new: &NewEntry,
    id: EntryId,
    again: bool,
) -> Result<EntryConflict, T::Error> {
    if entries::insert(tx, new, id).await? {
        return Ok(EntryConflict::Nothing);
    }
    Ok(match home_of(tx, new.order_key).await? {
        Some(Home::Entry(entry_id)) if again && entry_id == id => EntryConflict::Nothing,
        Some(Home::Entry(entry_id)) => match entries::by_id(tx, entry_id).await? {
            Some(row) => EntryConflict::Entry(Box::new(row)),
            // It was cancelled since.
            None => EntryConflict::Number,
        },
        Some(Home::Claimed(_) | Home::Imported(_)) => EntryConflict::Reservation,
        Some(Home::Lost(_)) => EntryConflict::Lost,
        Some(Home::Operation(_) | Home::Native(_)) => EntryConflict::Native,
        None => EntryConflict::Number,
    })
}

/// How often an order's home is read, when its entry is cancelled or claimed by another transaction meanwhile.
const MAX_READS: usize = 4;

/// Writes the engine's answer to the entry with this number, and returns the resulting entry.
pub(in crate::store) async fn answer<T: OwnStatements>(
    tx: &T,
    id: EntryId,
    new: &NewEntry,
    answer: &EngineAnswer,
) -> Result<Result<EntryRow, NotKept>, T::Error> {
    if entries::belongs_to_another_order(tx, &answer.transaction_id, new.order_key).await? {
        return Ok(Err(NotKept::OtherOrder));
    }
    for _ in 0..MAX_READS {
        match home_of(tx, new.order_key).await? {
            None if !entries::insert(tx, new, id).await? => continue,
            None => {}
            Some(Home::Entry(entry_id)) => match entries::locked(tx, entry_id).await? {
                None => continue,
                Some(row) if row.is_answered() => return Ok(Ok(row)),
                Some(_) if entry_id == id => {}
                Some(_) => return Ok(Err(NotKept::Late)),
            },
            Some(Home::Operation(_) | Home::Claimed(_) | Home::Imported(_) | Home::Native(_) | Home::Lost(_)) => {
                return Ok(Err(NotKept::Late));
            }
        }
        entries::set_answer(tx, id, answer).await?;
        return Ok(Ok(entries::by_id(tx, id).await?.ok_or(CorruptRow::new("entry"))?));
    }
    Err(CorruptRow::new("homes.ref").into())
}

/// Marks an entry without an answer as in doubt, at this time or a later one that is stored.
pub(in crate::store) async fn mark_unknown<T: OwnStatements>(
    tx: &T,
    id: EntryId,
    at: UnixMillis,
) -> Result<(), T::Error> {
    match entries::locked(tx, id).await? {
        Some(entry) if !entry.is_answered() => {
            let doubted_at = entry.doubted_at.map_or(at.0, |before| before.max(at.0));
            entries::set_doubt(tx, id, IN_DOUBT, doubted_at).await
        }
        _ => Ok(()),
    }
}

/// Records that a request for an open entry is sent again. The stored time always changes, however far the clocks of
/// nodes differ: the previous sender cannot cancel the entry then.
pub(in crate::store) async fn sent_again<T: OwnStatements>(
    tx: &T,
    id: EntryId,
    at: UnixMillis,
) -> Result<(), T::Error> {
    match entries::locked(tx, id).await? {
        Some(entry) if entry.state == OPEN => {
            let doubted_at = entry.doubted_at.map_or(at.0, |before| before.saturating_add(1).max(at.0));
            entries::set_doubt(tx, id, OPEN, doubted_at).await
        }
        _ => Ok(()),
    }
}

/// Deletes an entry without an answer and releases its home, if no request was sent for it since, and no announced
/// result is pending. A callback that was given up is deleted with it.
pub(in crate::store) async fn cancel<T: OwnStatements>(
    tx: &T,
    id: EntryId,
    since: Option<UnixMillis>,
) -> Result<bool, T::Error> {
    // While the entry is locked, a concurrent announcement waits, and then finds no entry.
    let Some(entry) = entries::locked(tx, id).await? else { return Ok(false) };
    if entry.is_answered() || entry.doubted_at.map(UnixMillis) != since {
        return Ok(false);
    }
    let callback = CallbackSubject::Entry(id);
    if callbacks::locked(tx, callback).await?.is_some_and(|callback| callback.state == CallbackState::Pending) {
        return Ok(false);
    }
    entries::remove(tx, &entry).await?;
    remove_all(tx, callback).await?;
    Ok(true)
}

/// Stores a received update of an answered entry: the status and the account while it is PENDING, where an account is
/// only replaced by another one; the shop if it was not known.
pub(in crate::store) async fn update_status<T: OwnStatements>(
    tx: &T,
    id: EntryId,
    status: Status,
    account: Option<Vec<u8>>,
    shop: &str,
) -> Result<(), T::Error> {
    let Some(mut entry) = entries::locked(tx, id).await?.filter(EntryRow::is_answered) else { return Ok(()) };
    if entry.shop.is_empty() {
        entry.shop = shop.into();
    }
    if entry.status == status_number(Status::Pending) {
        entry.status = status_number(status);
        entry.account = account.or(entry.account);
    }
    entries::set_received(tx, &entry).await
}

/// Moves a callback from the engine's queue to the one of its merchant's target, where its age counts anew. Returns
/// whether it did.
pub(in crate::store) async fn ready<T: OwnStatements>(
    tx: &T,
    id: CallbackId,
    now: UnixMillis,
) -> Result<bool, T::Error> {
    let CallbackSubject::Entry(entry) = id.subject() else { return Ok(false) };
    let Some(url) = entries::by_id(tx, entry).await?.and_then(|entry| entry.v1_callback_url) else { return Ok(false) };
    let Some(callback) = locked_by_id(tx, id).await? else { return Ok(false) };
    if callback.task.is_none() || !callback.target.is_engine() {
        return Ok(false);
    }
    let target = CallbackTarget::of_columns(callback.target.merchant(), &origin_of(&url)?);
    requeue(tx, &callback, target, now).await.map(|()| true)
}

/// Queues the callback of an announced entry, unless it exists or the merchant gave no address. A callback for which
/// the engine was queried before, or which was given up there, is requeued: a worker that holds it may have queried the
/// engine too early, and loses its lease.
pub(in crate::store) async fn relay<T: OwnStatements>(
    tx: &T,
    entry: EntryId,
    nonce: u64,
    at: UnixMillis,
) -> Result<Relayed, T::Error> {
    // The lock makes sure that an entry gets one callback, and is not cancelled meanwhile.
    let Some(found) = entries::locked(tx, entry).await? else { return Ok(Relayed::Nothing) };
    let subject = CallbackSubject::Entry(entry);
    let target = CallbackTarget::of_columns(&found.merchant, CallbackTarget::ENGINE);
    match callbacks::locked(tx, subject).await? {
        Some(callback) if callback.can_be_queried_again() => {
            requeue(tx, &callback, target, at).await.map(|()| Relayed::Queued)
        }
        None if found.v1_callback_url.is_some() => {
            let id = CallbackId::new(subject, nonce);
            callbacks::queue(tx, NewCallback { id, target: &target, at }).await?;
            Ok(Relayed::Queued)
        }
        Some(_) | None => Ok(Relayed::Nothing),
    }
}
