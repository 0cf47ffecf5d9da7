//! Implements [`Journal`] for every [`Backend`].

use std::cell::Cell;
use std::sync::Arc;

use super::moves::{self, EntryConflict};
use super::numbers::{MAX_DRAWS, NUMBERS, all_taken};
use super::{
    EngineAnswer, EntryId, Journal, JournalEntry, JournalOutcome, NotKept, PendingCreate, StatusUpdate, Unanswered,
};
use crate::domain::{Direction, HistoryQuery, MerchantId, OrderId, Page, UnixMillis};
use crate::store::backend::Backend;
use crate::store::create::Home;
use crate::store::rows::entry::{NewEntry, changes_entry, sealed_account};
use crate::store::{StoreError, StoreFuture};

impl<B: Backend> Journal for B {
    fn record_create(&self, intent: PendingCreate) -> StoreFuture<'_, JournalOutcome> {
        Box::pin(async move {
            let new = Arc::new(NewEntry::new(intent, self.vault()));
            for _ in 0..MAX_DRAWS {
                let (new, id, tries) = (Arc::clone(&new), NUMBERS.draw(&new.intent, self.random()), Cell::new(0_u32));
                let write = async move |rows: &mut B::Rows<'_>| {
                    let again = tries.replace(tries.get() + 1) > 0;
                    moves::record_create(rows, &new, id, again).await
                };
                match self.transact(write).await? {
                    EntryConflict::Nothing => return Ok(JournalOutcome::Written(id)),
                    EntryConflict::Entry(row) => {
                        return Ok(JournalOutcome::Existing(Box::new(row.decode(self.vault())?)));
                    }
                    EntryConflict::Reservation => return Ok(JournalOutcome::Reserved),
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
            let Some(Home::Entry(id)) = self.home(merchant, order).await? else { return Ok(None) };
            self.entry_row(id).await?.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn entry_of_transaction<'a>(&'a self, transaction_id: &'a str) -> StoreFuture<'a, Option<JournalEntry>> {
        Box::pin(async move {
            // Other texts, such as one with U+0000, must not reach the database.
            if transaction_id.is_empty() || !transaction_id.bytes().all(|byte| byte.is_ascii_digit()) {
                return Ok(None);
            }
            let row = self.entry_row_of_transaction(transaction_id).await?;
            row.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn answer(&self, entry: JournalEntry, answer: EngineAnswer) -> StoreFuture<'_, Result<JournalEntry, NotKept>> {
        Box::pin(async move {
            let (id, new) = (entry.id, NewEntry::new(entry.intent, self.vault()));
            let write = async move |rows: &mut B::Rows<'_>| moves::answer(rows, id, &new, &answer).await;
            match self.transact(write).await? {
                Ok(row) => row.decode(self.vault()).map(Ok),
                Err(not_kept) => Ok(Err(not_kept)),
            }
        })
    }

    fn mark_unknown(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| moves::mark_unknown(rows, id, at).await))
    }

    fn sent_again(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| moves::sent_again(rows, id, at).await))
    }

    /// A transaction may be run again after it was committed, and then finds that the entry is gone: that counts as
    /// cancelled.
    fn cancel(&self, id: EntryId, since: Option<UnixMillis>) -> StoreFuture<'_, bool> {
        let removed = Cell::new(false);
        let cancel = async move |rows: &mut B::Rows<'_>| {
            if moves::cancel(rows, id, since).await? {
                removed.set(true);
                return Ok(true);
            }
            Ok(removed.get() && moves::EntryRows::entry(rows, id).await?.is_none())
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
                let rows = self.open_rows(after, missing).await?;
                let Some((last, _)) = rows.last() else { break };
                let is_end = rows.len() < missing;
                after = *last;
                for (_, row) in rows {
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
        Box::pin(self.count_unanswered(most))
    }

    /// Callers poll, so an update that changes nothing must not cost a commit.
    fn update_status(&self, id: EntryId, update: StatusUpdate) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let known = self.entry_row(id).await?.map(|row| row.decode(self.vault())).transpose()?;
            if !known.is_some_and(|entry| changes_entry(&entry, &update)) {
                return Ok(());
            }
            let StatusUpdate { status, account, shop } = update;
            let account = account.map(|account| sealed_account(self.vault(), id, &account));
            let keep = async move |rows: &mut B::Rows<'_>| {
                moves::update_status(rows, id, status, account.clone(), &shop).await
            };
            self.transact(keep).await
        })
    }

    fn passed(&self, query: HistoryQuery) -> StoreFuture<'_, Page<JournalEntry>> {
        Box::pin(async move {
            let Page { items, has_more } = self.answered_rows(query).await?;
            let entries = items.into_iter().map(|row| row.decode(self.vault()));
            Ok::<_, StoreError>(Page { items: entries.collect::<Result<_, _>>()?, has_more })
        })
    }
}
