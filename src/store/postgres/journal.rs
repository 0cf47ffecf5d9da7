//! The journal of a gateway before a remote engine, in the table of its name: one row an order, whichever node wrote it.
//!
//! The body and the account are sealed: the body for the order, the account for the entry's number.

pub(super) mod entry_row;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;

use deadpool_postgres::Transaction;

use super::fault::Fault;
use super::transaction::PgRows;
use super::{PostgresStore, history, homes};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::homes::Home;
use crate::store::journal::moves::{self, Met};
use crate::store::journal::numbers::{DRAWS, NUMBERS, none_is_left};
use crate::store::postgres::row::bucket_of;
use crate::store::rows::entry::{EntryRow, NewEntry, is_news, sealed_account};
use crate::store::{Answer, EngineAnswer, Entry, EntryId, Heard, Intended, Intent, Journal, NotKept, OfV1, StoreError};

impl PostgresStore {
    async fn move_entry<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.thread.run(async move |node| node.transact(work).await).await
    }

    async fn write_intent(&self, intent: Intent) -> Result<Intended, StoreError> {
        let new = Arc::new(NewEntry::new(intent, &self.vault));
        for _ in 0..DRAWS {
            let (new, id) = (Arc::clone(&new), NUMBERS.draw(&new.intent, &*self.random));
            let tries = Cell::new(0_u32);
            let write = async move |transaction: &Transaction<'_>| {
                let again = tries.replace(tries.get() + 1) > 0;
                moves::intend(&mut PgRows(transaction), &new, id, again).await
            };
            match self.move_entry(write).await? {
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
            async move |transaction: &Transaction<'_>| moves::answer(&mut PgRows(transaction), id, &new, &answer).await;
        match self.move_entry(write).await? {
            Ok(row) => row.decode(&self.vault).map(Ok),
            Err(not_kept) => Ok(Err(not_kept)),
        }
    }

    /// Callers poll: what says nothing new costs no commit.
    async fn write_heard(&self, id: EntryId, heard: Heard) -> Result<(), StoreError> {
        let known =
            self.thread.run(async move |node| node.ask(async |client| entry_row::by_id(client, id).await).await);
        let known = known.await?.map(|row| row.decode(&self.vault)).transpose()?;
        if !known.is_some_and(|entry| is_news(&entry, &heard)) {
            return Ok(());
        }
        let account = heard.account.as_ref().map(|account| sealed_account(&self.vault, id, account));
        let keep = async move |transaction: &Transaction<'_>| {
            moves::heard(&mut PgRows(transaction), id, heard.status, account.clone(), &heard.shop).await
        };
        self.move_entry(keep).await
    }

    /// A withdrawal that was committed is one, whatever an earlier try of it heard.
    async fn write_withdrawal(&self, id: EntryId, since: Option<UnixMillis>) -> Result<bool, StoreError> {
        let removed = Cell::new(false);
        let withdraw = async move |transaction: &Transaction<'_>| {
            let mut rows = PgRows(transaction);
            if moves::withdraw(&mut rows, id, since).await? {
                removed.set(true);
                return Ok(true);
            }
            Ok(removed.get() && entry_row::by_id(transaction, id).await?.is_none())
        };
        self.move_entry(withdraw).await
    }

    async fn home(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<Option<Home>, StoreError> {
        let order = self.vault.comparer().order_key(merchant, direction, order_id);
        let bucket = bucket_of(merchant);
        self.thread.run(async move |node| node.ask(async |client| homes::of(client, bucket, order).await).await).await
    }

    /// One bad row must not keep the others from being settled.
    async fn readable_open_entries(&self, after: Option<EntryId>, limit: u16) -> Result<Vec<Entry>, StoreError> {
        let (mut after, limit) = (after.map_or(i64::MIN, |id| id.0), usize::from(limit));
        let mut entries = Vec::new();
        while entries.len() < limit {
            let missing = limit - entries.len();
            let rows = self.thread.run(async move |node| {
                node.ask(async |client| entry_row::open_after(client, after, missing).await).await
            });
            let rows = rows.await?;
            let Some((last, _)) = rows.last() else { break };
            let is_end = rows.len() < missing;
            after = *last;
            entries.extend(rows.into_iter().filter_map(|(_, row)| self.readable(row)));
            if is_end {
                break;
            }
        }
        Ok(entries)
    }

    fn readable(&self, row: Result<EntryRow, StoreError>) -> Option<Entry> {
        row.and_then(|row| row.decode(&self.vault))
            .inspect_err(|error| {
                tracing::error!(%error, "an open entry of the journal cannot be read and is left as it is");
            })
            .ok()
    }
}

impl Journal for PostgresStore {
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
            let Some(Home::Entry(id)) = self.home(merchant, direction, order_id).await? else { return Ok(None) };
            let read =
                self.thread.run(async move |node| node.ask(async |client| entry_row::by_id(client, id).await).await);
            read.await?.map(|row| row.decode(&self.vault)).transpose()
        })
    }

    fn of_v1<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<OfV1>> {
        Box::pin(async move { Ok(self.home(merchant, direction, order_id).await?.and_then(OfV1::of)) })
    }

    fn answer(&self, entry: Entry, answer: EngineAnswer) -> Answer<'_, Result<Entry, NotKept>> {
        Box::pin(self.write_answer(entry, answer))
    }

    fn doubt(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        let doubt = async move |transaction: &Transaction<'_>| moves::doubt(&mut PgRows(transaction), id, at).await;
        Box::pin(self.move_entry(doubt))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        let sent = async move |transaction: &Transaction<'_>| moves::sent_again(&mut PgRows(transaction), id, at).await;
        Box::pin(self.move_entry(sent))
    }

    fn withdraw(&self, id: EntryId, since: Option<UnixMillis>) -> Answer<'_, bool> {
        Box::pin(self.write_withdrawal(id, since))
    }

    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> Answer<'_, Vec<Entry>> {
        Box::pin(self.readable_open_entries(after, limit))
    }

    fn heard(&self, id: EntryId, heard: Heard) -> Answer<'_, ()> {
        Box::pin(self.write_heard(id, heard))
    }

    fn passed(&self, query: HistoryQuery) -> Answer<'_, Page<Entry>> {
        Box::pin(async move {
            let within = (query.created_from.map_or(i64::MIN, |at| at.0), query.created_to.map_or(i64::MAX, |at| at.0));
            let read = self
                .thread
                .run(async move |node| history::page(&node, entry_row::PAGE, &query, within, entry_row::read).await);
            let Page { items, has_more } = read.await?;
            let entries = items.into_iter().map(|row| row.decode(&self.vault));
            Ok(Page { items: entries.collect::<Result<_, _>>()?, has_more })
        })
    }
}
