//! The journal of a gateway before a remote engine, in the table of its name: one row an order, whichever node wrote it.
//!
//! An intent is one statement: the unique key of orders says who was first. Every other move is decided by a row that is
//! locked, or is one statement that decides by the row it changes. The body and the account are sealed. The body is sealed
//! before its row has a number, so it is bound to the order key; the account comes later and is bound to the number.

pub(super) mod entry_row;
mod moves;
mod numbers;
mod reads;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use moves::Met;
use numbers::NUMBERS;

use super::{PostgresStore, history, reserved};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::postgres::row::bucket_of;
use crate::store::rows::entry::{EntryRow, NewEntry, is_news, sealed_account};
use crate::store::{Answer, EngineAnswer, Entry, EntryId, Heard, Intended, Intent, Journal, NotKept, OfV1, StoreError};

/// How often a number is drawn for an entry: a clash is rare, two in a row are rarer.
const DRAWS: usize = 8;

impl PostgresStore {
    async fn write_intent(&self, intent: Intent) -> Result<Intended, StoreError> {
        let new = Arc::new(NewEntry::new(intent, &self.vault));
        for _ in 0..DRAWS {
            let (new, id) = (Arc::clone(&new), NUMBERS.draw(&new.intent, &*self.random));
            let met = self.thread.run(async move |node| moves::intend(&node, &new, id).await).await?;
            match met {
                Met::Nothing => return Ok(Intended::Written(id)),
                Met::Entry(row) => return Ok(Intended::Existing(Box::new(row.decode(&self.vault)?))),
                Met::Reservation => return Ok(Intended::Reserved),
                Met::Number => {}
            }
        }
        Err(numbers::none_is_left())
    }

    async fn write_answer(&self, entry: Entry, answer: EngineAnswer) -> Result<Result<Entry, NotKept>, StoreError> {
        let (id, new) = (entry.id, NewEntry::new(entry.intent, &self.vault));
        let random = Arc::clone(&self.random);
        let stands = self.thread.run(async move |node| {
            node.transact(async |transaction| moves::answer(transaction, id, &new, &answer, &*random).await).await
        });
        match stands.await? {
            Ok(row) => row.decode(&self.vault).map(Ok),
            Err(not_kept) => Ok(Err(not_kept)),
        }
    }

    /// Callers poll: what says nothing new costs no commit.
    async fn write_heard(&self, id: EntryId, heard: Heard) -> Result<(), StoreError> {
        let known = self.thread.run(async move |node| node.ask(async |client| reads::by_id(client, id).await).await);
        let known = known.await?.map(|row| row.decode(&self.vault)).transpose()?;
        if !known.is_some_and(|entry| is_news(&entry, &heard)) {
            return Ok(());
        }
        let account = heard.account.as_ref().map(|account| sealed_account(&self.vault, id, account));
        let kept = self.thread.run(async move |node| {
            let account = account.as_deref();
            node.ask(async |client| moves::heard(client, id, heard.status, account, &heard.shop).await).await
        });
        kept.await
    }

    /// One bad row must not keep the others from being settled.
    async fn readable_open_entries(&self, after: Option<EntryId>, limit: u16) -> Result<Vec<Entry>, StoreError> {
        let (mut after, limit) = (after.map_or(i64::MIN, |id| id.0), usize::from(limit));
        let mut entries = Vec::new();
        while entries.len() < limit {
            let missing = limit - entries.len();
            let rows = self
                .thread
                .run(async move |node| node.ask(async |client| reads::open_after(client, after, missing).await).await);
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
            let order = self.vault.comparer().order_key(merchant, direction, order_id);
            let bucket = bucket_of(merchant);
            let read = self
                .thread
                .run(async move |node| node.ask(async |client| reads::by_order(client, bucket, order).await).await);
            read.await?.map(|row| row.decode(&self.vault)).transpose()
        })
    }

    fn of_v1<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<OfV1>> {
        let order = self.vault.comparer().order_key(merchant, direction, order_id);
        let bucket = bucket_of(merchant);
        Box::pin(
            self.thread
                .run(async move |node| node.ask(async |client| reserved::or_entry(client, bucket, order).await).await),
        )
    }

    fn answer(&self, entry: Entry, answer: EngineAnswer) -> Answer<'_, Result<Entry, NotKept>> {
        Box::pin(self.write_answer(entry, answer))
    }

    fn doubt(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| node.ask(async |client| moves::doubt(client, id, at).await).await))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> Answer<'_, ()> {
        Box::pin(
            self.thread.run(async move |node| node.ask(async |client| moves::sent_again(client, id, at).await).await),
        )
    }

    fn withdraw(&self, id: EntryId, since: Option<UnixMillis>) -> Answer<'_, bool> {
        Box::pin(self.thread.run(async move |node| moves::withdraw(&node, id, since).await))
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
