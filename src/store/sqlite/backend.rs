//! Implements [`Backend`] for SQLite.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use rusqlite::{Connection, Row};
use tokio::sync::{Notify, oneshot};

use super::journal::{self, EntryRow};
use super::outbox::{forgetting, list, subject};
use super::row::{self, NewRow, StoredRow, V1Status, V2Status};
use super::transaction::{SqliteRows, at_once};
use super::{SqliteStore, audit, checks, connection, failures, lists, tasks, trail, transaction};
use crate::clock::Random;
use crate::domain::{
    Balance, Currency, Direction, Fingerprint, HistoryQuery, MerchantId, Page, TransactionId, UnixMillis,
};
use crate::store::backend::{Backend, ListedCallback, NumberedEntry, Scope, Subject};
use crate::store::checks::CheckColumns;
use crate::store::create::{Home, InsertedRow, OrderRow};
use crate::store::rows::context::Contexts;
use crate::store::tasks::{ClaimedTask, QueueList, TaskClaim, TaskKind, TaskQueue, TaskState};
use crate::store::vault::Vault;
use crate::store::{
    ActionQuery, ActionRecord, Audit, AuditProgress, CallbackCursor, CallbackQuery, CallbackRecord, CallbackSubject,
    CallbackTry, EntryId, Misdated, OutboxSize, RelayTarget, StoreError, Unanswered,
};

impl Backend for SqliteStore {
    type Error = rusqlite::Error;
    type Rows<'a> = SqliteRows<'a>;

    fn vault(&self) -> &Vault {
        &self.vault
    }

    fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// There is no other server whose data could be older.
    fn losses(&self) -> u64 {
        0
    }

    fn random(&self) -> &dyn Random {
        &*self.random
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    /// One process writes, so there is no other clock to compare with.
    async fn require_right_clock(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut SqliteRows<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.writer.submit(move |connection| at_once(work(&mut SqliteRows(connection))))
    }

    fn insert(&self, new: NewRow, nonce: u64) -> impl Future<Output = Result<InsertedRow, StoreError>> + Send + use<> {
        self.writer.submit(move |connection| transaction::create_operation(connection, &new, nonce))
    }

    async fn order_row(&self, _: &MerchantId, order: Fingerprint) -> Result<OrderRow, StoreError> {
        self.readers.read(|connection| row::order_row(connection, order))
    }

    async fn operation_row(&self, id: TransactionId) -> Result<Option<StoredRow>, StoreError> {
        self.readers.read(|connection| StoredRow::by_id(connection, id))
    }

    async fn operation_rows(&self, ids: Vec<i64>) -> Result<HashMap<i64, StoredRow>, StoreError> {
        self.readers.read_aside(move |connection| StoredRow::by_ids(connection, &ids)).await
    }

    async fn v1_status_row(&self, _: &MerchantId, order: Fingerprint) -> Result<Option<V1Status>, StoreError> {
        self.readers.read(|connection| V1Status::of_order(connection, order))
    }

    async fn v2_status_row(&self, merchant: &MerchantId, id: TransactionId) -> Result<Option<V2Status>, StoreError> {
        self.readers.read(|connection| V2Status::of_id(connection, merchant, id))
    }

    async fn sealed_details(&self, id: TransactionId) -> Result<Option<Vec<u8>>, StoreError> {
        self.readers.read(|connection| row::sealed(connection, id))
    }

    async fn sealed_preparation(&self, id: TransactionId) -> Result<Option<Vec<u8>>, StoreError> {
        self.readers.read(|connection| row::preparation_of(connection, id))
    }

    async fn listed_rows(
        &self,
        query: HistoryQuery,
        within: RangeInclusive<i64>,
        listed: i64,
    ) -> Result<Page<StoredRow>, StoreError> {
        let read = move |connection: &Connection| {
            lists::page(connection, StoredRow::V1_PAGE, &query, &within, Some(listed), StoredRow::read)
        };
        self.histories.read(&self.readers, read).await
    }

    async fn is_known_merchant(&self, merchant: &MerchantId) -> Result<bool, StoreError> {
        self.readers.read(|connection| transaction::is_known(connection, merchant))
    }

    async fn balances_of(&self, merchant: &MerchantId) -> Result<Vec<(Currency, Balance)>, StoreError> {
        let found = self.readers.read(|connection| transaction::balances(connection, merchant.as_str()))?;
        let decoded = |(currency, balance): (String, Balance)| match Currency::new(&currency) {
            Ok(currency) => Ok((currency, balance)),
            Err(_) => Err(StoreError::Corrupt("an account names no currency".to_owned())),
        };
        found.into_iter().map(decoded).collect()
    }

    /// Runs the audit on a thread of its own, since it reads for long.
    async fn run_audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Result<Audit, StoreError> {
        let (connection, vault) = (self.readers.lend()?, Arc::clone(&self.vault));
        let (reply, result) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-audit".to_owned()).spawn(move || {
            let audited = audit::run(&connection, vault, &*progress, &|| !reply.is_closed());
            let _ = reply.send(audited);
        });
        thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        result.await.unwrap_or_else(|_| Err(StoreError::Corrupt("the audit came to no end".to_owned())))
    }

    async fn commit_probe(&self) -> Result<(), StoreError> {
        self.writer.submit(connection::write_probe).await
    }

    /// The readers close after the writer: its last answers may need a lookup.
    async fn finish(&self) {
        self.writer.close().await;
        self.readers.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn claim_home(
        &self,
        _: &MerchantId,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send {
        self.writer.submit(move |connection| transaction::claim_or_read(connection, order, home))
    }

    async fn home(&self, _: &MerchantId, order: Fingerprint) -> Result<Option<Home>, StoreError> {
        self.readers.read(|connection| row::home_of(connection, order))
    }

    async fn entry_row(&self, id: EntryId) -> Result<Option<EntryRow>, StoreError> {
        self.readers.read(|connection| EntryRow::by_id(connection, id))
    }

    async fn entry_row_of_transaction(&self, transaction_id: &str) -> Result<Option<EntryRow>, StoreError> {
        self.readers.read(|connection| EntryRow::of_transaction(connection, transaction_id))
    }

    async fn count_unanswered(&self, most: u16) -> Result<Unanswered, StoreError> {
        self.readers.read(|connection| journal::unanswered(connection, most))
    }

    async fn open_rows(&self, after: i64, limit: usize) -> Result<Vec<NumberedEntry>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read =
            |row: &Row<'_>| Ok((row.get(0)?, EntryRow::read(row).map_err(|error| failures::store_error(&error))));
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

    async fn check_columns(&self, merchant: &MerchantId, rules: Fingerprint) -> Result<Vec<CheckColumns>, StoreError> {
        let merchant = merchant.clone();
        self.readers.read_aside(move |connection| checks::columns(connection, &merchant, rules)).await
    }

    async fn is_marked_complete(&self, merchant: &MerchantId, direction: Direction) -> Result<bool, StoreError> {
        self.readers.read(|connection| checks::is_complete(connection, merchant, direction))
    }

    async fn claim_tasks(&self, claim: TaskClaim) -> Result<Vec<ClaimedTask>, StoreError> {
        self.writer.submit(move |connection| tasks::claim(connection, &claim)).await
    }

    async fn task_state(&self, kind: TaskKind, key: i64) -> Result<Option<TaskState>, StoreError> {
        self.readers.read(|connection| tasks::of(connection, kind, key))
    }

    async fn task_queues(&self, list: QueueList) -> Result<Vec<TaskQueue>, StoreError> {
        self.readers.read_aside(move |connection| tasks::queues(connection, &list)).await
    }

    async fn postpone_tasks(
        &self,
        kind: TaskKind,
        keys: Vec<i64>,
        lease_until: UnixMillis,
        until: UnixMillis,
    ) -> Result<(), StoreError> {
        self.writer.submit(move |connection| tasks::postpone_tasks(connection, kind, &keys, lease_until, until)).await
    }

    /// Most often there is nothing to write.
    async fn make_tasks_due(&self, misdated: Misdated) -> Result<usize, StoreError> {
        let any = Misdated { limit: 1, ..misdated.clone() };
        let found = self.readers.read_aside(move |connection| tasks::misdated(connection, &any)).await?;
        if found.is_empty() {
            return Ok(0);
        }
        self.writer.submit(move |connection| tasks::make_due(connection, &misdated)).await
    }

    async fn subjects(&self, keys: Vec<i64>) -> Result<HashMap<i64, (i64, Subject)>, StoreError> {
        self.readers.read_aside(move |connection| subject::of_all(connection, &keys)).await
    }

    async fn forget_delivered(&self, until: UnixMillis, limit: usize) -> Result<usize, StoreError> {
        self.writer.submit(move |connection| forgetting::forget(connection, until, limit)).await
    }

    async fn relay_target_of(&self, _: &MerchantId, order: Fingerprint) -> Result<Option<RelayTarget>, StoreError> {
        let found = self.readers.read(|connection| subject::relay_target(connection, order))?.transpose();
        found.map_err(|column| StoreError::Corrupt(format!("an order's column {column} is invalid")))
    }

    async fn callback_record(
        &self,
        subject: CallbackSubject,
    ) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError> {
        let key = subject.key();
        let found = self.readers.read(|connection| list::one(connection, key))?.transpose();
        found.map_err(|column| StoreError::Corrupt(format!("the callback of {key}: the column {column} is invalid")))
    }

    async fn callback_slice(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<ListedCallback>, StoreError> {
        let read = move |connection: &Connection| list::slice(connection, &query, &scope);
        self.lists.read(&self.readers, read).await
    }

    async fn callback_places(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<CallbackCursor>, StoreError> {
        let read = move |connection: &Connection| list::places(connection, &query, &scope);
        self.lists.read(&self.readers, read).await
    }

    async fn callback_count(&self, query: CallbackQuery, scope: Scope) -> Result<usize, StoreError> {
        Ok(self.callback_places(query, scope).await?.len())
    }

    async fn callback_counts(&self) -> Result<OutboxSize, StoreError> {
        self.readers.read_aside(list::size).await
    }

    async fn action_list(&self, query: ActionQuery) -> Result<Vec<ActionRecord>, StoreError> {
        self.lists.read(&self.readers, move |connection| trail::page(connection, &query)).await
    }
}
