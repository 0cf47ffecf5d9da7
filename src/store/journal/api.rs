//! The trait [`Journal`], implemented for every [`Backend`].

use std::cell::Cell;
use std::sync::Arc;

use super::entries;
use super::moves::{self, EntryConflict};
use super::numbers::{MAX_DRAWS, NUMBERS, all_taken};
use super::{EngineAnswer, EntryId, JournalEntry, JournalOutcome, NotKept, PendingCreate, StatusUpdate, Unanswered};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::backend::{Backend, ReadKind};
use crate::store::homes::{self, Home};
use crate::store::rows::entry::{NewEntry, changes_entry, sealed_account};
use crate::store::{OperationQuery, StoreError, StoreFuture};

/// The durable journal of a gateway in front of a remote engine. Each method is one transaction.
pub trait Journal: Send + Sync + 'static {
    /// Inserts an open entry for a create that is about to be sent, unless its merchant, direction and `order_id`
    /// already name an entry or are reserved for v1. Resolves only after the commit is on disk.
    fn record_create(&self, create: PendingCreate) -> StoreFuture<'_, JournalOutcome>;

    /// Returns the entry of a merchant's `order_id`.
    fn entry<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<JournalEntry>>;

    /// Returns the entry whose operation has this `transaction_id` of the engine, of any merchant. One indexed read.
    fn entry_of_transaction<'a>(&'a self, transaction_id: &'a str) -> StoreFuture<'a, Option<JournalEntry>>;

    /// Stores the engine's answer to a create and returns the resulting entry. An answer stored before is kept. An
    /// entry that was cancelled meanwhile is inserted again, unless its order names something else by now.
    fn answer(&self, entry: JournalEntry, answer: EngineAnswer) -> StoreFuture<'_, Result<JournalEntry, NotKept>>;

    /// Marks an entry without an answer as in doubt: at this time a request for it may still be under way, or done, and
    /// its outcome is unknown.
    fn mark_unknown(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Records that a request for an open entry is sent again at this time. After that the sender of the previous
    /// request, perhaps in another process, can no longer cancel the entry.
    fn sent_again(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Cancels an entry without an answer, because the engine refused the create: its `order_id` may be used again.
    /// `since` is when, as far as the caller knows, a request for the entry was last given up or sent again. Returns
    /// `false`, with nothing changed, if that has changed, or if the engine has announced a result meanwhile.
    fn cancel(&self, id: EntryId, since: Option<UnixMillis>) -> StoreFuture<'_, bool>;

    /// Returns open entries after `after`, oldest first.
    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> StoreFuture<'_, Vec<JournalEntry>>;

    /// Counts the entries and provider jobs without an answer, up to `most` of each, along indexes that hold no others.
    fn unanswered(&self, most: u16) -> StoreFuture<'_, Unanswered>;

    /// Stores the status that the engine reported for an answered entry: status and account until the status is
    /// terminal, and the shop if it was not known.
    fn update_status(&self, id: EntryId, update: StatusUpdate) -> StoreFuture<'_, ()>;

    /// Returns the entry with this id.
    fn entry_of_id(&self, id: EntryId) -> StoreFuture<'_, Option<JournalEntry>>;

    /// Returns the entries that match, the newest first, by the status as last received.
    fn newest_entries(&self, query: OperationQuery) -> StoreFuture<'_, Vec<JournalEntry>>;

    /// Returns a page of a merchant's answered entries, newest first. Filters apply to the status as last received.
    fn passed(&self, query: HistoryQuery) -> StoreFuture<'_, Page<JournalEntry>>;
}

impl<B: Backend> Journal for B {
    fn record_create(&self, create: PendingCreate) -> StoreFuture<'_, JournalOutcome> {
        Box::pin(async move {
            let new = Arc::new(NewEntry::new(create, self.vault()));
            for _ in 0..MAX_DRAWS {
                let (new, id, tries) = (Arc::clone(&new), NUMBERS.draw(&new.create, self.random()), Cell::new(0_u32));
                let write = async move |tx: &B::Tx<'_>| {
                    let again = tries.replace(tries.get() + 1) > 0;
                    moves::record_create(tx, &new, id, again).await
                };
                match self.transact(write).await? {
                    EntryConflict::Nothing => return Ok(JournalOutcome::Written(id)),
                    EntryConflict::Entry(row) => {
                        return Ok(JournalOutcome::Existing(Box::new(row.decode(self.vault())?)));
                    }
                    EntryConflict::Reservation => return Ok(JournalOutcome::Reserved),
                    EntryConflict::Lost => return Ok(JournalOutcome::Lost),
                    EntryConflict::Native => return Ok(JournalOutcome::Native),
                    EntryConflict::Number => {}
                }
            }
            Err(all_taken())
        })
    }

    fn entry<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<JournalEntry>> {
        Box::pin(async move {
            let order = self.vault().fingerprint_key().order_key(merchant, direction, order_id);
            let read = async move |tx: &B::Tx<'_>| match homes::home_of(tx, order).await? {
                Some(Home::Entry(id)) => entries::by_id(tx, id).await,
                _ => Ok(None),
            };
            self.read(ReadKind::Lookup, read).await?.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn entry_of_transaction<'a>(&'a self, transaction_id: &'a str) -> StoreFuture<'a, Option<JournalEntry>> {
        Box::pin(async move {
            // Other texts, such as one with U+0000, must not reach the database.
            if transaction_id.is_empty() || !transaction_id.bytes().all(|byte| byte.is_ascii_digit()) {
                return Ok(None);
            }
            let of: Box<str> = transaction_id.into();
            let read = async move |tx: &B::Tx<'_>| entries::of_transaction(tx, &of).await;
            let row = self.read(ReadKind::Lookup, read).await?;
            row.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn answer(&self, entry: JournalEntry, answer: EngineAnswer) -> StoreFuture<'_, Result<JournalEntry, NotKept>> {
        Box::pin(async move {
            let (id, new) = (entry.id, NewEntry::new(entry.create, self.vault()));
            let write = async move |tx: &B::Tx<'_>| moves::answer(tx, id, &new, &answer).await;
            match self.transact(write).await? {
                Ok(row) => row.decode(self.vault()).map(Ok),
                Err(not_kept) => Ok(Err(not_kept)),
            }
        })
    }

    fn mark_unknown(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |tx: &B::Tx<'_>| moves::mark_unknown(tx, id, at).await))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |tx: &B::Tx<'_>| moves::sent_again(tx, id, at).await))
    }

    /// A transaction may be run again after it was committed, and then finds that the entry is gone: that counts as
    /// cancelled.
    fn cancel(&self, id: EntryId, since: Option<UnixMillis>) -> StoreFuture<'_, bool> {
        let removed = Cell::new(false);
        let cancel = async move |tx: &B::Tx<'_>| {
            if moves::cancel(tx, id, since).await? {
                removed.set(true);
                return Ok(true);
            }
            Ok(removed.get() && entries::by_id(tx, id).await?.is_none())
        };
        Box::pin(self.transact(cancel))
    }

    /// An unreadable row must not keep the other entries from being resolved.
    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> StoreFuture<'_, Vec<JournalEntry>> {
        Box::pin(async move {
            let (mut after, limit) = (after.map_or(i64::MIN, |id| id.0), usize::from(limit));
            let mut entries = Vec::new();
            while entries.len() < limit {
                let missing = limit - entries.len();
                let read = async move |tx: &B::Tx<'_>| entries::open_after(tx, after, missing).await;
                let rows = self.read(ReadKind::Lookup, read).await?;
                let Some((last, _)) = rows.last() else { break };
                let is_end = rows.len() < missing;
                after = *last;
                for (number, row) in rows {
                    let row = row.map_err(|corrupt| corrupt.of(format_args!("journal entry {number}")));
                    match row.and_then(|row| row.decode(self.vault())) {
                        Ok(entry) => entries.push(entry),
                        Err(error) => tracing::error!(
                            %error,
                            "an open journal entry cannot be decoded and is skipped"
                        ),
                    }
                }
                if is_end {
                    break;
                }
            }
            Ok(entries)
        })
    }

    fn unanswered(&self, most: u16) -> StoreFuture<'_, Unanswered> {
        Box::pin(self.read(ReadKind::Lookup, async move |tx| entries::unanswered(tx, most).await))
    }

    /// Callers poll, so an update that changes nothing must not cost a commit.
    fn update_status(&self, id: EntryId, update: StatusUpdate) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let known = self.read(ReadKind::Lookup, async move |tx| entries::by_id(tx, id).await).await?;
            let known = known.map(|row| row.decode(self.vault())).transpose()?;
            if !known.is_some_and(|entry| changes_entry(&entry, &update)) {
                return Ok(());
            }
            let StatusUpdate { status, account, shop } = update;
            let account = account.map(|account| sealed_account(self.vault(), id, &account));
            let keep = async move |tx: &B::Tx<'_>| moves::update_status(tx, id, status, account.clone(), &shop).await;
            self.transact(keep).await
        })
    }

    fn entry_of_id(&self, id: EntryId) -> StoreFuture<'_, Option<JournalEntry>> {
        Box::pin(async move {
            let read = self.read(ReadKind::Lookup, async move |tx| entries::by_id(tx, id).await).await?;
            read.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn newest_entries(&self, query: OperationQuery) -> StoreFuture<'_, Vec<JournalEntry>> {
        Box::pin(async move {
            let page = async move |tx: &B::Tx<'_>| entries::newest(tx, &query).await;
            let rows = self.read(ReadKind::Page, page).await?;
            rows.into_iter().map(|row| row.decode(self.vault())).collect()
        })
    }

    fn passed(&self, query: HistoryQuery) -> StoreFuture<'_, Page<JournalEntry>> {
        Box::pin(async move {
            let page = async move |tx: &B::Tx<'_>| entries::answered(tx, &query).await;
            let Page { items, has_more } = self.read(ReadKind::History, page).await?;
            let entries = items.into_iter().map(|row| row.decode(self.vault()));
            Ok::<_, StoreError>(Page { items: entries.collect::<Result<_, _>>()?, has_more })
        })
    }
}
