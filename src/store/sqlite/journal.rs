//! The journal of a gateway before a remote engine, in the table of its name: one row an order. Every change is a
//! command of the writer, so that it is answered after its commit is on disk.
//!
//! The body and the account are sealed. The body is sealed before its row has a number, so it is bound to the order key;
//! the account comes later and is bound to the number, which is never given again.

mod moves;
mod row;

use rusqlite::Connection;

use moves::Met;
use row::NewEntry;

pub(super) use row::EntryRow;

use super::{SqliteStore, lists, reserved};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::{Answer, EngineAnswer, Entry, EntryId, Heard, Intended, Intent, Journal, NotKept, OfV1, StoreError};

impl SqliteStore {
    async fn write_intent(&self, intent: Intent) -> Result<Intended, StoreError> {
        let new = NewEntry::new(intent, &self.vault);
        Ok(match self.writer.submit(move |connection| moves::intend(connection, &new)).await? {
            Met::Nothing(id) => Intended::Written(id),
            Met::Entry(row) => Intended::Existing(Box::new(row.decode(&self.vault)?)),
            Met::Reservation => Intended::Reserved,
        })
    }

    async fn write_answer(&self, entry: Entry, answer: EngineAnswer) -> Result<Result<Entry, NotKept>, StoreError> {
        let (id, new) = (entry.id, NewEntry::new(entry.intent, &self.vault));
        let write = move |connection: &Connection| moves::answer(connection, id, &new, &answer);
        match self.writer.submit(write).await? {
            Ok(row) => row.decode(&self.vault).map(Ok),
            Err(not_kept) => Ok(Err(not_kept)),
        }
    }

    /// Callers poll: what says nothing new costs no commit.
    async fn write_heard(&self, id: EntryId, heard: Heard) -> Result<(), StoreError> {
        let known = self.readers.read(|connection| EntryRow::by_id(connection, id))?;
        if !known.map(|row| row.decode(&self.vault)).transpose()?.is_some_and(|entry| row::is_news(&entry, &heard)) {
            return Ok(());
        }
        let Heard { status, account, shop } = heard;
        let account = account.map(|account| row::sealed_account(&self.vault, id, &account));
        self.writer.submit(move |connection| moves::heard(connection, id, status, account.as_deref(), &shop)).await
    }
}

impl Journal for SqliteStore {
    fn intend(&self, intent: Intent) -> Answer<'_, Intended> {
        Box::pin(self.write_intent(intent))
    }

    fn entry<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<Entry>> {
        Box::pin(async move {
            let key = self.vault.comparer().order_key(merchant, direction, order_id);
            let row = self.readers.read(|connection| EntryRow::by_order(connection, key))?;
            row.map(|row| row.decode(&self.vault)).transpose()
        })
    }

    fn of_v1<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<OfV1>> {
        Box::pin(async move {
            let key = self.vault.comparer().order_key(merchant, direction, order_id);
            self.readers.read(|connection| reserved::or_entry(connection, key))
        })
    }

    fn answer(&self, entry: Entry, answer: EngineAnswer) -> Answer<'_, Result<Entry, NotKept>> {
        Box::pin(self.write_answer(entry, answer))
    }

    fn doubt(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| moves::doubt(connection, id, at)))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| moves::sent_again(connection, id, at)))
    }

    fn withdraw(&self, id: EntryId, since: Option<UnixMillis>) -> Answer<'_, bool> {
        Box::pin(self.writer.submit(move |connection| moves::withdraw(connection, id, since)))
    }

    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> Answer<'_, Vec<Entry>> {
        Box::pin(async move {
            let readable = |row: EntryRow| match row.decode(&self.vault) {
                Ok(entry) => Some(entry),
                Err(error) => {
                    // One bad row must not keep the others from being settled.
                    tracing::error!(%error, "an open entry of the journal cannot be read and is left as it is");
                    None
                }
            };
            self.readers.read(|connection| {
                EntryRow::open_after(connection, after, |rows| {
                    rows.filter_map(|row| row.map(readable).transpose()).take(limit.into()).collect()
                })
            })
        })
    }

    fn heard(&self, id: EntryId, heard: Heard) -> Answer<'_, ()> {
        Box::pin(self.write_heard(id, heard))
    }

    fn passed(&self, query: HistoryQuery) -> Answer<'_, Page<Entry>> {
        Box::pin(async move {
            // A place begins with the time of its entry: times are bounds of places.
            let within =
                query.created_from.map_or(0, row::first_place)..=query.created_to.map_or(i64::MAX, row::last_place);
            let read =
                move |connection: &Connection| lists::page(connection, EntryRow::PAGE, &query, &within, EntryRow::read);
            let Page { items, has_more } = self.histories.read(&self.readers, read).await?;
            let entries = items.into_iter().map(|row| row.decode(&self.vault));
            Ok(Page { items: entries.collect::<Result<_, _>>()?, has_more })
        })
    }
}
