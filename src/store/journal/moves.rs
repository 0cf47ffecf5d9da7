//! The moves of an entry: from nothing over open and in doubt to answered, or back to nothing. A move from another state than
//! its own changes nothing.

use crate::domain::{Fingerprint, Status, UnixMillis};
use crate::store::callbacks::CallbackRows;
use crate::store::homes::{Home, HomeRows};
use crate::store::rows::entry::{EntryRow, IN_DOUBT, NewEntry, OPEN};
use crate::store::rows::{CorruptRow, status_number};
use crate::store::{CallbackState, CallbackSubject, EngineAnswer, EntryId, NotKept};

/// What a transaction does with entries of the journal.
pub(in crate::store) trait EntryRows: HomeRows + CallbackRows {
    /// Inserts an open entry of the journal under a number, and claims the home of its order; `false`, and nothing was
    /// inserted: its order has a home, or its number exists.
    async fn insert_entry(&mut self, new: &NewEntry, id: EntryId) -> Result<bool, Self::Error>;

    /// Reads an entry.
    async fn entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, Self::Error>;

    /// Reads an entry; locked.
    async fn locked_entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, Self::Error>;

    /// Whether the engine's name for an operation was given to another order than this; the name is locked.
    async fn is_another_orders(&mut self, transaction_id: &str, order: Fingerprint) -> Result<bool, Self::Error>;

    /// Writes the engine's answer into an entry without one.
    async fn answer_entry(&mut self, id: EntryId, answer: &EngineAnswer) -> Result<(), Self::Error>;

    /// Writes the state of an entry without an answer, and when a request for it was last given up or sent again.
    async fn set_doubt(&mut self, id: EntryId, state: i64, doubted_at: i64) -> Result<(), Self::Error>;

    /// Writes the shop, the status and the account of an entry.
    async fn set_received(&mut self, entry: &EntryRow) -> Result<(), Self::Error>;

    /// Removes an entry that is locked.
    async fn remove_entry(&mut self, id: EntryId) -> Result<(), Self::Error>;

    /// Gives the home of an entry up that is locked.
    async fn release_home(&mut self, entry: &EntryRow) -> Result<(), Self::Error>;
}

/// What an intent met.
pub(in crate::store) enum EntryConflict {
    /// It was written.
    Nothing,
    Entry(Box<EntryRow>),
    /// Its order lives elsewhere.
    Reservation,
    /// Another entry has its number.
    Number,
}

/// Writes an open entry under a number, unless its order has a home. `again`: an earlier try may have been committed, and only the
/// word of it lost.
pub(in crate::store) async fn record_create<R: EntryRows>(
    rows: &mut R,
    new: &NewEntry,
    id: EntryId,
    again: bool,
) -> Result<EntryConflict, R::Error> {
    if rows.insert_entry(new, id).await? {
        return Ok(EntryConflict::Nothing);
    }
    Ok(match rows.home(&new.intent.merchant, new.order_key).await? {
        Some(Home::Entry(standing)) if again && standing == id => EntryConflict::Nothing,
        Some(Home::Entry(standing)) => match rows.entry(standing).await? {
            Some(row) => EntryConflict::Entry(Box::new(row)),
            // It was withdrawn since.
            None => EntryConflict::Number,
        },
        Some(Home::Operation(_) | Home::Imported(_)) => EntryConflict::Reservation,
        None => EntryConflict::Number,
    })
}

/// How often an order is looked for anew, when somebody withdraws its entry or is faster to claim it.
const LOOKS: usize = 4;

/// Writes the engine's answer to the entry of this number, and gives what stands then.
pub(in crate::store) async fn answer<R: EntryRows>(
    rows: &mut R,
    id: EntryId,
    new: &NewEntry,
    answer: &EngineAnswer,
) -> Result<Result<EntryRow, NotKept>, R::Error> {
    if rows.is_another_orders(&answer.transaction_id, new.order_key).await? {
        return Ok(Err(NotKept::OtherOrder));
    }
    for _ in 0..LOOKS {
        match rows.home(&new.intent.merchant, new.order_key).await? {
            None if !rows.insert_entry(new, id).await? => continue,
            None => {}
            Some(Home::Entry(standing)) => match rows.locked_entry(standing).await? {
                None => continue,
                Some(row) if row.is_answered() => return Ok(Ok(row)),
                Some(_) if standing == id => {}
                Some(_) => return Ok(Err(NotKept::Late)),
            },
            Some(Home::Operation(_) | Home::Imported(_)) => return Ok(Err(NotKept::Late)),
        }
        rows.answer_entry(id, answer).await?;
        return Ok(Ok(rows.entry(id).await?.ok_or(CorruptRow("entry"))?));
    }
    Err(CorruptRow("homes.ref").into())
}

/// The outcome of an entry without an answer is unknown, at this time the latest.
pub(in crate::store) async fn mark_unknown<R: EntryRows>(
    rows: &mut R,
    id: EntryId,
    at: UnixMillis,
) -> Result<(), R::Error> {
    match rows.locked_entry(id).await? {
        Some(entry) if !entry.is_answered() => {
            let doubted_at = entry.doubted_at.map_or(at.0, |before| before.max(at.0));
            rows.set_doubt(id, IN_DOUBT, doubted_at).await
        }
        _ => Ok(()),
    }
}

/// A request for an open entry leaves again. The time always changes, however far the clocks of nodes differ: that is what
/// keeps the sender before from withdrawing the entry.
pub(in crate::store) async fn sent_again<R: EntryRows>(
    rows: &mut R,
    id: EntryId,
    at: UnixMillis,
) -> Result<(), R::Error> {
    match rows.locked_entry(id).await? {
        Some(entry) if entry.state == OPEN => {
            let doubted_at = entry.doubted_at.map_or(at.0, |before| before.saturating_add(1).max(at.0));
            rows.set_doubt(id, OPEN, doubted_at).await
        }
        _ => Ok(()),
    }
}

/// Removes an entry without an answer and gives its home up, if nothing was sent for it since, and no result of it that the
/// engine announced is being asked for. A result that was asked for in vain until it was given up goes with it.
pub(in crate::store) async fn cancel<R: EntryRows>(
    rows: &mut R,
    id: EntryId,
    since: Option<UnixMillis>,
) -> Result<bool, R::Error> {
    // While it is locked, whoever announces a result waits for it, and finds none.
    let Some(entry) = rows.locked_entry(id).await? else { return Ok(false) };
    if entry.is_answered() || entry.doubted_at.map(UnixMillis) != since {
        return Ok(false);
    }
    let callback = CallbackSubject::Entry(id);
    if rows.locked_callback(callback).await?.is_some_and(|callback| callback.state == CallbackState::Pending) {
        return Ok(false);
    }
    rows.remove_entry(id).await?;
    rows.release_home(&entry).await?;
    rows.remove_callback(callback).await?;
    Ok(true)
}

/// Keeps what was heard of an answered entry: while it is PENDING its status and an account, which stays until another is
/// heard; its shop where it was not known.
pub(in crate::store) async fn update_status<R: EntryRows>(
    rows: &mut R,
    id: EntryId,
    status: Status,
    account: Option<Vec<u8>>,
    shop: &str,
) -> Result<(), R::Error> {
    let Some(mut entry) = rows.locked_entry(id).await?.filter(EntryRow::is_answered) else { return Ok(()) };
    if entry.shop.is_empty() {
        entry.shop = shop.into();
    }
    if entry.status == status_number(Status::Pending) {
        entry.status = status_number(status);
        entry.account = account.or(entry.account);
    }
    rows.set_received(&entry).await
}
