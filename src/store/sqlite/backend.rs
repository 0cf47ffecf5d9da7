//! What SQLite does for the core.

use std::collections::HashMap;

use rusqlite::{Connection, Row};
use tokio::sync::Notify;

use super::journal::EntryRow;
use super::outbox::{forgetting, list, subject};
use super::transaction::{SqliteRows, at_once};
use super::{SqliteStore, connection, homes, lists, tasks};
use crate::clock::Random;
use crate::domain::{HistoryQuery, MerchantId, Page, UnixMillis};
use crate::store::backend::{Backend, Listed, NumberedEntry, Scope, Subject};
use crate::store::homes::Home;
use crate::store::tasks::{ClaimedTask, TaskClaim, TaskKind, TaskQueue};
use crate::store::vault::Vault;
use crate::store::{
    Addressee, CallbackId, CallbackPlace, CallbackQuery, CallbackRecord, CallbackTry, Digest, EntryId, OutboxSize,
    StoreError,
};

impl Backend for SqliteStore {
    type Error = rusqlite::Error;
    type Rows<'a> = SqliteRows<'a>;

    fn vault(&self) -> &Vault {
        &self.vault
    }

    fn random(&self) -> &dyn Random {
        &*self.random
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    /// One process writes: there is no other clock.
    async fn require_right_clock(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut SqliteRows<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.writer.submit(move |connection| at_once(work(&mut SqliteRows(connection))))
    }

    async fn home(&self, _: &MerchantId, order: Digest) -> Result<Option<Home>, StoreError> {
        self.readers.read(|connection| homes::of(connection, order))
    }

    async fn entry_row(&self, id: EntryId) -> Result<Option<EntryRow>, StoreError> {
        self.readers.read(|connection| EntryRow::by_id(connection, id))
    }

    async fn open_rows(&self, after: i64, limit: usize) -> Result<Vec<NumberedEntry>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read =
            |row: &Row<'_>| Ok((row.get(0)?, EntryRow::read(row).map_err(|error| connection::store_error(&error))));
        self.readers.read(|connection| {
            connection.prepare_cached(EntryRow::OPEN_AFTER)?.query_map((after, limit), read)?.collect()
        })
    }

    async fn answered_rows(&self, query: HistoryQuery) -> Result<Page<EntryRow>, StoreError> {
        let within = query.created_from.map_or(i64::MIN, |at| at.0)..=query.created_to.map_or(i64::MAX, |at| at.0);
        let read = move |connection: &Connection| {
            lists::page(connection, EntryRow::PAGE, &query, &within, None, EntryRow::read)
        };
        self.histories.read(&self.readers, read).await
    }

    async fn claim_tasks(&self, claim: TaskClaim) -> Result<Vec<ClaimedTask>, StoreError> {
        self.writer.submit(move |connection| tasks::claim(connection, &claim)).await
    }

    async fn task_queues(&self, kind: TaskKind) -> Result<Vec<TaskQueue>, StoreError> {
        self.readers.read_aside(move |connection| tasks::queues(connection, kind)).await
    }

    async fn put_off(
        &self,
        kind: TaskKind,
        keys: Vec<i64>,
        lease_until: UnixMillis,
        until: UnixMillis,
    ) -> Result<(), StoreError> {
        self.writer.submit(move |connection| tasks::put_off(connection, kind, &keys, lease_until, until)).await
    }

    async fn subjects(&self, keys: Vec<i64>) -> Result<HashMap<i64, (i64, Subject)>, StoreError> {
        self.readers.read_aside(move |connection| subject::of_all(connection, &keys)).await
    }

    async fn forget_told(&self, until: UnixMillis, limit: usize) -> Result<usize, StoreError> {
        self.writer.submit(move |connection| forgetting::forget(connection, until, limit)).await
    }

    async fn addressee_of(&self, _: &MerchantId, order: Digest) -> Result<Option<Addressee>, StoreError> {
        let found = self.readers.read(|connection| subject::addressee(connection, order))?.transpose();
        found.map_err(|column| StoreError::Corrupt(format!("an order's column {column} is not ours")))
    }

    async fn callback_record(&self, id: CallbackId) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError> {
        let found = self.readers.read(|connection| list::one(connection, id))?.transpose();
        found.map_err(|column| StoreError::Corrupt(format!("callback {id}: the column {column} is not ours")))
    }

    async fn callback_slice(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<Listed>, StoreError> {
        let read = move |connection: &Connection| list::slice(connection, &query, &scope);
        self.lists.read(&self.readers, read).await
    }

    async fn callback_places(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<CallbackPlace>, StoreError> {
        let read = move |connection: &Connection| list::places(connection, &query, &scope);
        self.lists.read(&self.readers, read).await
    }

    async fn callback_counts(&self) -> Result<OutboxSize, StoreError> {
        self.readers.read_aside(list::size).await
    }
}
