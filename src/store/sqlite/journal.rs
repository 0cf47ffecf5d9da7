//! The journal of a gateway before a remote engine, in the table of its name: one row an order. Every change is a
//! command of the writer, so that it is answered after its commit is on disk.
//!
//! The body and the account are sealed: the body for the order, the account for the entry's number.

mod row;

use std::sync::Arc;

use rusqlite::Connection;

pub(super) use row::{EntryRow, NewEntry, insert};

use super::transaction::{SqliteRows, at_once};
use super::{SqliteStore, homes, lists};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::homes::Home;
use crate::store::journal::moves::{self, Met};
use crate::store::journal::numbers::{DRAWS, NUMBERS, none_is_left};
use crate::store::rows::entry::{is_news, sealed_account};
use crate::store::{
    Answer, Digest, EngineAnswer, Entry, EntryId, Heard, Intended, Intent, Journal, NotKept, OfV1, StoreError,
};

impl SqliteStore {
    async fn write_intent(&self, intent: Intent) -> Result<Intended, StoreError> {
        let new = Arc::new(NewEntry::new(intent, &self.vault));
        for _ in 0..DRAWS {
            let (new, id) = (Arc::clone(&new), NUMBERS.draw(&new.intent, &*self.random));
            let write =
                move |connection: &Connection| at_once(moves::intend(&mut SqliteRows(connection), &new, id, false));
            match self.writer.submit(write).await? {
                Met::Nothing => return Ok(Intended::Written(id)),
                Met::Entry(row) => return Ok(Intended::Existing(Box::new(row.decode(&self.vault)?))),
                Met::Reservation => return Ok(Intended::Reserved),
                Met::Number => {}
            }
        }
        Err(none_is_left())
    }

    async fn write_answer(&self, entry: Entry, answer: EngineAnswer) -> Result<Result<Entry, NotKept>, StoreError> {
        let (id, new) = (entry.id, NewEntry::new(entry.intent, &self.vault));
        let write =
            move |connection: &Connection| at_once(moves::answer(&mut SqliteRows(connection), id, &new, &answer));
        match self.writer.submit(write).await? {
            Ok(row) => row.decode(&self.vault).map(Ok),
            Err(not_kept) => Ok(Err(not_kept)),
        }
    }

    /// Callers poll: what says nothing new costs no commit.
    async fn write_heard(&self, id: EntryId, heard: Heard) -> Result<(), StoreError> {
        let known = self.readers.read(|connection| EntryRow::by_id(connection, id))?;
        if !known.map(|row| row.decode(&self.vault)).transpose()?.is_some_and(|entry| is_news(&entry, &heard)) {
            return Ok(());
        }
        let Heard { status, account, shop } = heard;
        let account = account.map(|account| sealed_account(&self.vault, id, &account));
        let keep = move |connection: &Connection| {
            at_once(moves::heard(&mut SqliteRows(connection), id, status, account.clone(), &shop))
        };
        self.writer.submit(keep).await
    }

    /// Where an order lives, and its entry if it has one.
    fn home(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<Option<Home>, StoreError> {
        let order: Digest = self.vault.comparer().order_key(merchant, direction, order_id);
        self.readers.read(|connection| homes::of(connection, order))
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
            let Some(Home::Entry(id)) = self.home(merchant, direction, order_id)? else { return Ok(None) };
            let row = self.readers.read(|connection| EntryRow::by_id(connection, id))?;
            row.map(|row| row.decode(&self.vault)).transpose()
        })
    }

    fn of_v1<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<OfV1>> {
        Box::pin(async move { Ok(self.home(merchant, direction, order_id)?.and_then(OfV1::of)) })
    }

    fn answer(&self, entry: Entry, answer: EngineAnswer) -> Answer<'_, Result<Entry, NotKept>> {
        Box::pin(self.write_answer(entry, answer))
    }

    fn doubt(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| at_once(moves::doubt(&mut SqliteRows(connection), id, at))))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| at_once(moves::sent_again(&mut SqliteRows(connection), id, at))))
    }

    fn withdraw(&self, id: EntryId, since: Option<UnixMillis>) -> Answer<'_, bool> {
        Box::pin(self.writer.submit(move |connection| at_once(moves::withdraw(&mut SqliteRows(connection), id, since))))
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
            let within = query.created_from.map_or(i64::MIN, |at| at.0)..=query.created_to.map_or(i64::MAX, |at| at.0);
            let read =
                move |connection: &Connection| lists::page(connection, EntryRow::PAGE, &query, &within, EntryRow::read);
            let Page { items, has_more } = self.histories.read(&self.readers, read).await?;
            let entries = items.into_iter().map(|row| row.decode(&self.vault));
            Ok(Page { items: entries.collect::<Result<_, _>>()?, has_more })
        })
    }
}
