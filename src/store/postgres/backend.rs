//! Implements [`Backend`] for PostgreSQL.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use deadpool_postgres::Object;
use tokio::sync::Notify;

use super::errors::PgError;
use super::journal::entry_row;
use super::outbox::{forgetting, list, subject};
use super::queue::NewClaim;
use super::transaction::PgRows;
use super::{PostgresStore, audit, checks, create, history, ledger, row, tasks, trail};
use crate::clock::Random;
use crate::domain::{
    Balance, Currency, Direction, Fingerprint, HistoryQuery, MerchantId, Page, TransactionId, UnixMillis,
};
use crate::store::backend::{Backend, ListedCallback, NumberedEntry, Scope, Subject};
use crate::store::checks::CheckColumns;
use crate::store::create::{Home, InsertedRow, OrderRow};
use crate::store::postgres::row::bucket_of;
use crate::store::rows::context::Contexts;
use crate::store::rows::entry::EntryRow;
use crate::store::rows::operation::{NewRow, StoredRow, V1Status, V2Status};
use crate::store::tasks::{ClaimedTask, QueueList, TaskClaim, TaskKind, TaskQueue, TaskState};
use crate::store::vault::Vault;
use crate::store::{
    ActionQuery, ActionRecord, Audit, AuditProgress, CallbackCursor, CallbackQuery, CallbackRecord, CallbackSubject,
    CallbackTry, EntryId, Misdated, OutboxSize, RelayTarget, StoreError, Unanswered,
};

impl Backend for PostgresStore {
    type Error = PgError;
    type Rows<'a> = PgRows<'a>;

    fn vault(&self) -> &Vault {
        &self.vault
    }

    fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    fn losses(&self) -> u64 {
        self.thread.losses()
    }

    fn random(&self) -> &dyn Random {
        &*self.random
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    async fn require_right_clock(&self) -> Result<(), StoreError> {
        self.thread.run(async |node| node.clock.require_right()).await
    }

    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut PgRows<'_>) -> Result<T, PgError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.thread.run(async move |node| {
            let ahead = node.clock.wrong_by();
            node.transact(async |transaction| work(&mut PgRows(transaction, ahead)).await).await
        })
    }

    fn insert(&self, new: NewRow, nonce: u64) -> impl Future<Output = Result<InsertedRow, StoreError>> + Send + use<> {
        let created = if create::needs_decision(new.draft()) {
            Err(self.thread.run(async move |node| create::create_alone(&node, &new, nonce).await))
        } else {
            Ok(self.thread.enqueue(|queues| &queues.creates, new))
        };
        async move {
            match created {
                Ok(batched) => batched.await,
                Err(alone) => alone.await,
            }
        }
    }

    async fn order_row(&self, merchant: &MerchantId, order: Fingerprint) -> Result<OrderRow, StoreError> {
        let bucket = bucket_of(merchant);
        self.with_client(async move |client| row::order_row(client, bucket, order).await).await
    }

    async fn operation_row(&self, id: TransactionId) -> Result<Option<StoredRow>, StoreError> {
        self.with_client(async move |client| row::by_id(client, id).await).await
    }

    async fn operation_rows(&self, ids: Vec<i64>) -> Result<HashMap<i64, StoredRow>, StoreError> {
        self.with_client(async move |client| row::by_ids(client, &ids).await).await
    }

    async fn v1_status_row(&self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<V1Status>, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| row::v1_status(client, &merchant, order).await).await
    }

    async fn v2_status_row(&self, merchant: &MerchantId, id: TransactionId) -> Result<Option<V2Status>, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| row::v2_status(client, &merchant, id).await).await
    }

    async fn sealed_details(&self, id: TransactionId) -> Result<Option<Vec<u8>>, StoreError> {
        self.with_client(async move |client| row::sealed(client, id).await).await
    }

    async fn sealed_preparation(&self, id: TransactionId) -> Result<Option<Vec<u8>>, StoreError> {
        self.with_client(async move |client| row::preparation_of(client, id).await).await
    }

    async fn listed_rows(
        &self,
        query: HistoryQuery,
        within: RangeInclusive<i64>,
        listed: i64,
    ) -> Result<Page<StoredRow>, StoreError> {
        let read = self
            .thread
            .run(async move |node| history::page(&node, history::PAGE, &query, &within, Some(listed), row::read).await);
        read.await
    }

    async fn is_known_merchant(&self, merchant: &MerchantId) -> Result<bool, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| ledger::is_known_merchant(client, &merchant).await).await
    }

    async fn balances_of(&self, merchant: &MerchantId) -> Result<Vec<(Currency, Balance)>, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| ledger::balances(client, &merchant).await).await
    }

    async fn run_audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Result<Audit, StoreError> {
        let vault = Arc::clone(&self.vault);
        self.thread.run_while_awaited(async move |node| audit::run(&node, vault, progress).await).await
    }

    async fn commit_probe(&self) -> Result<(), StoreError> {
        let probe = "UPDATE probe SET count = count + 1 WHERE id = 1";
        self.with_client(async move |client| {
            client.execute(&client.prepare_cached(probe).await?, &[]).await.map(drop).map_err(PgError::from)
        })
        .await
    }

    async fn finish(&self) {
        self.thread.close().await;
    }

    fn claim_home(
        &self,
        _: &MerchantId,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send {
        self.thread.enqueue(|queues| &queues.claims, NewClaim { order, home })
    }

    async fn home(&self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<Home>, StoreError> {
        let bucket = bucket_of(merchant);
        self.with_client(async move |client| row::home_of(client, bucket, order).await).await
    }

    async fn entry_row(&self, id: EntryId) -> Result<Option<EntryRow>, StoreError> {
        self.with_client(async move |client| entry_row::by_id(client, id).await).await
    }

    async fn entry_row_of_transaction(&self, transaction_id: &str) -> Result<Option<EntryRow>, StoreError> {
        let transaction_id = transaction_id.to_owned();
        self.with_client(async move |client| entry_row::of_transaction(client, &transaction_id).await).await
    }

    async fn count_unanswered(&self, most: u16) -> Result<Unanswered, StoreError> {
        self.with_client(async move |client| entry_row::unanswered(client, most).await).await
    }

    async fn open_rows(&self, after: i64, limit: usize) -> Result<Vec<NumberedEntry>, StoreError> {
        self.with_client(async move |client| entry_row::open_after(client, after, limit).await).await
    }

    async fn answered_rows(&self, query: HistoryQuery) -> Result<Page<EntryRow>, StoreError> {
        let within = query.created_from.map_or(i64::MIN, |at| at.0)..=query.created_to.map_or(i64::MAX, |at| at.0);
        let read = self
            .thread
            .run(async move |node| history::page(&node, entry_row::PAGE, &query, &within, None, entry_row::read).await);
        read.await
    }

    async fn check_columns(&self, merchant: &MerchantId, rules: Fingerprint) -> Result<Vec<CheckColumns>, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| checks::columns(client, &merchant, rules).await).await
    }

    async fn is_marked_complete(&self, merchant: &MerchantId, direction: Direction) -> Result<bool, StoreError> {
        let merchant = merchant.clone();
        self.with_client(async move |client| checks::is_complete(client, &merchant, direction).await).await
    }

    async fn claim_tasks(&self, claim: TaskClaim) -> Result<Vec<ClaimedTask>, StoreError> {
        let claimed = self.thread.run(async move |node| {
            node.clock.require_right()?;
            node.with_client(async |client| tasks::claim(client, &claim).await).await
        });
        claimed.await
    }

    async fn task_state(&self, kind: TaskKind, key: i64) -> Result<Option<TaskState>, StoreError> {
        self.with_client(async move |client| tasks::of(client, kind, key).await).await
    }

    async fn task_queues(&self, list: QueueList) -> Result<Vec<TaskQueue>, StoreError> {
        self.with_client(async move |client| tasks::queues(client, &list).await).await
    }

    async fn postpone_tasks(
        &self,
        kind: TaskKind,
        keys: Vec<i64>,
        lease_until: UnixMillis,
        until: UnixMillis,
    ) -> Result<(), StoreError> {
        self.with_client(async move |client| tasks::postpone_tasks(client, kind, &keys, lease_until, until).await).await
    }

    async fn make_tasks_due(&self, misdated: Misdated) -> Result<usize, StoreError> {
        self.with_client(async move |client| tasks::make_due(client, &misdated).await).await
    }

    async fn subjects(&self, keys: Vec<i64>) -> Result<HashMap<i64, (i64, Subject)>, StoreError> {
        self.with_client(async move |client| subject::of_all(client, &keys).await).await
    }

    async fn forget_delivered(&self, until: UnixMillis, limit: usize) -> Result<usize, StoreError> {
        self.with_client(async move |client| forgetting::forget(client, until, limit).await).await
    }

    async fn relay_target_of(
        &self,
        merchant: &MerchantId,
        order: Fingerprint,
    ) -> Result<Option<RelayTarget>, StoreError> {
        let bucket = bucket_of(merchant);
        self.with_client(async move |client| subject::relay_target(client, bucket, order).await).await
    }

    async fn callback_record(
        &self,
        subject: CallbackSubject,
    ) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError> {
        self.thread.run(async move |node| list::one(&node, subject.key()).await).await
    }

    async fn callback_slice(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<ListedCallback>, StoreError> {
        self.thread.run(async move |node| list::slice_of(&node, &query, &scope).await).await
    }

    async fn callback_places(&self, query: CallbackQuery, scope: Scope) -> Result<Vec<CallbackCursor>, StoreError> {
        self.thread.run(async move |node| list::places(&node, &query, &scope).await).await
    }

    async fn callback_count(&self, query: CallbackQuery, scope: Scope) -> Result<usize, StoreError> {
        self.thread.run(async move |node| list::count(&node, &query, &scope).await).await
    }

    async fn callback_counts(&self) -> Result<OutboxSize, StoreError> {
        self.with_client(async |client| list::size(client).await).await
    }

    async fn action_list(&self, query: ActionQuery) -> Result<Vec<ActionRecord>, StoreError> {
        self.with_client(async move |client| trail::page(client, &query).await).await
    }
}

impl PostgresStore {
    /// Runs statements, each in a transaction of its own.
    async fn with_client<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Object) -> Result<T, PgError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.thread.run(async move |node| node.with_client(work).await).await
    }
}
