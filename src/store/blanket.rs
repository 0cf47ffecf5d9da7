//! Implements [`Store`] for every [`Backend`].

use std::sync::Arc;

use super::backend::Backend;
use super::checks::{self, CheckRow, CheckRows as _};
use super::complete::{self, Completion};
use super::create::{self, Home, InsertedRow, OrderRow};
use super::rows::context::merchant_number;
use super::rows::operation::{NewRow, opened_fields, sealed_payer};
use super::rows::preparation;
use super::tasks::{QueueList, TaskClaim, TaskKind, TaskQueue, TaskRows as _, TaskState};
use super::{
    Audit, AuditProgress, CheckCount, Claim, CompletionOutcome, HomeClaim, InsertOutcome, Misdated, NewOperation,
    OrderHome, OrderLookup, ProviderJob, ProviderJobState, ProviderQueue, Reservations, Store, StoreError, StoreFuture,
    Stored,
};
use crate::domain::{
    Amount, Balance, Currency, Direction, Fields, Fingerprint, FingerprintKey, HistoryQuery, MerchantId, Operation,
    OperationView, OrderId, Outcome, Page, Preparation, ShopCode, StatusRecord, TransactionId, UnixMillis,
};

impl<B: Backend> Store for B {
    fn fingerprint_key(&self) -> &FingerprintKey {
        self.vault().fingerprint_key()
    }

    /// Queues the create before returning; the future waits for its commit.
    fn create(&self, draft: NewOperation) -> StoreFuture<'_, InsertOutcome> {
        let losses = self.losses();
        let new = NewRow::new(draft, self.vault(), self.contexts().since(losses));
        let context = new.context.clone();
        let created = self.insert(new, self.random().number());
        Box::pin(async move {
            Ok(match created.await? {
                InsertedRow::Stored { verdict, queued } => {
                    if losses == self.losses() {
                        self.contexts().stored(&context);
                    }
                    if queued {
                        self.queued().notify_one();
                    }
                    InsertOutcome::Created(verdict)
                }
                InsertedRow::Existing(row) => InsertOutcome::Existing(Box::new(row.decode(self.vault())?)),
                InsertedRow::Reserved => InsertOutcome::Reserved,
                InsertedRow::IdTaken => {
                    // Perhaps the context was lost with a server: the create with the next id stores it again.
                    self.contexts().forget(&context);
                    InsertOutcome::IdTaken
                }
            })
        })
    }

    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, OrderLookup> {
        Box::pin(async move {
            let order = self.fingerprint_key().order_key(merchant, direction, order_id);
            Ok(match self.order_row(merchant, order).await? {
                OrderRow::Free => OrderLookup::Free,
                OrderRow::Operation(row) => OrderLookup::Operation(Box::new(row.decode(self.vault())?)),
                OrderRow::Elsewhere => OrderLookup::Reserved,
            })
        })
    }

    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>> {
        Box::pin(async move { self.operation_row(id).await?.map(|row| row.decode(self.vault())).transpose() })
    }

    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>> {
        Box::pin(async move {
            let order = self.fingerprint_key().order_key(merchant, direction, order_id);
            let read = self.v1_status_row(merchant, order).await?;
            read.map(|status| status.decode(self.vault(), direction, order_id)).transpose()
        })
    }

    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>> {
        Box::pin(async move {
            let read = self.v2_status_row(merchant, id).await?;
            read.map(|status| status.decode(self.vault(), id)).transpose()
        })
    }

    fn fields(&self, id: TransactionId) -> StoreFuture<'_, Option<Fields>> {
        Box::pin(async move {
            let sealed = self.sealed_details(id).await?;
            sealed.map(|sealed| opened_fields(self.vault(), id, &sealed)).transpose()
        })
    }

    fn complete(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> StoreFuture<'_, CompletionOutcome> {
        let payer = match &outcome {
            Outcome::Success { payer } => sealed_payer(self.vault(), id, payer.as_ref()),
            Outcome::Failed => None,
        };
        let completion = Completion { id, outcome, payer, at, nonce: self.random().number() };
        Box::pin(async move {
            let complete = async move |rows: &mut B::Rows<'_>| complete::complete(rows, &completion).await;
            let outcome = self.transact(complete).await?;
            if outcome == CompletionOutcome::Completed {
                // Not every result has a callback, but a needless wake-up costs the worker little.
                self.queued().notify_one();
            }
            Ok(outcome)
        })
    }

    fn prepare(&self, id: TransactionId, preparation: Preparation) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let sealed = preparation::seal(self.vault(), id, &preparation)?;
            self.transact(async move |rows: &mut B::Rows<'_>| complete::prepare(rows, id, &sealed).await).await
        })
    }

    fn preparation(&self, id: TransactionId) -> StoreFuture<'_, Option<Preparation>> {
        Box::pin(async move {
            let sealed = self.sealed_preparation(id).await?;
            sealed.map(|sealed| preparation::open(self.vault(), id, &sealed)).transpose()
        })
    }

    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>> {
        Box::pin(async move {
            // A shop is a group of its own, with one queue.
            let list = QueueList { kind: TaskKind::ProviderJob, after: Vec::new(), limit: 1 };
            self.task_queues(list).await?.into_iter().map(ProviderQueue::of).collect()
        })
    }

    fn claim_provider_jobs(&self, jobs: Claim) -> StoreFuture<'_, Vec<ProviderJob>> {
        Box::pin(claim(self, jobs))
    }

    fn provider_job(&self, id: TransactionId) -> StoreFuture<'_, Option<ProviderJobState>> {
        Box::pin(
            async move { Ok(self.task_state(TaskKind::ProviderJob, id.to_stored()).await?.map(ProviderJobState::of)) },
        )
    }

    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> StoreFuture<'_, ()> {
        let key = id.to_stored();
        Box::pin(
            self.transact(async move |rows: &mut B::Rows<'_>| rows.release_task(TaskKind::ProviderJob, key, due).await),
        )
    }

    fn end_provider_job(&self, id: TransactionId) -> StoreFuture<'_, ()> {
        let key = id.to_stored();
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| rows.end_task(TaskKind::ProviderJob, key).await))
    }

    fn make_due(&self, misdated: Misdated) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            self.make_tasks_due(misdated).await
        })
    }

    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> StoreFuture<'a, Reservations> {
        let key = |order_id| self.fingerprint_key().order_key(merchant, direction, order_id);
        let orders: Vec<_> = order_ids.iter().map(key).collect();
        let (imported, merchant) = (Home::imported(merchant, at), merchant.clone());
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| {
            let reservations = create::reserve(rows, &orders, imported).await?;
            if reservations.new > 0 {
                rows.mark_incomplete(&merchant, direction).await?;
            }
            Ok(reservations)
        }))
    }

    fn mark_complete<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()> {
        let merchant = merchant.clone();
        let mark = async move |rows: &mut B::Rows<'_>| rows.mark_complete(&merchant, direction, at).await;
        Box::pin(self.transact(mark))
    }

    fn ids_complete<'a>(&'a self, merchant: &'a MerchantId, direction: Direction) -> StoreFuture<'a, bool> {
        Box::pin(self.is_marked_complete(merchant, direction))
    }

    fn add_check_counts(&self, counts: Vec<CheckCount>, at: UnixMillis) -> StoreFuture<'_, ()> {
        let given = CheckRow::of_all(counts, self.fingerprint_key());
        Box::pin(async move {
            if given.is_empty() {
                return Ok(());
            }
            self.transact(async move |rows: &mut B::Rows<'_>| checks::add(rows, &given, at).await).await
        })
    }

    fn check_counts<'a>(&'a self, merchant: &'a MerchantId, rules: Fingerprint) -> StoreFuture<'a, Vec<CheckCount>> {
        Box::pin(async move { checks::decode_all(self.check_columns(merchant, rules).await?, merchant, rules) })
    }

    fn claim<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
        claim: HomeClaim,
        at: UnixMillis,
    ) -> StoreFuture<'a, OrderHome> {
        let order = self.fingerprint_key().order_key(merchant, direction, order_id);
        let claimed = self.claim_home(merchant, order, Home::claimed(claim, merchant, at));
        Box::pin(async move { claimed.await.map(OrderHome::of) })
    }

    fn order_home<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OrderHome>> {
        Box::pin(async move {
            let order = self.fingerprint_key().order_key(merchant, direction, order_id);
            Ok(self.home(merchant, order).await?.map(OrderHome::of))
        })
    }

    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            // Almost every merchant is known; then nothing is committed.
            if self.is_known_merchant(merchant).await? {
                return Ok(());
            }
            let (merchant, random) = (merchant.clone(), self.random().number());
            let open =
                async move |rows: &mut B::Rows<'_>| create::open_alone(rows, &merchant, &opening, at, random).await;
            self.transact(open).await
        })
    }

    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>> {
        Box::pin(self.balances_of(merchant))
    }

    fn history(&self, query: HistoryQuery) -> StoreFuture<'_, Page<Operation>> {
        Box::pin(async move {
            // An id contains the millisecond of its operation's creation, so bounds of time are bounds of ids.
            let first = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
            let last = query.created_to.map_or(i64::MAX, |at| TransactionId::last_of(at).to_stored());
            let listed = merchant_number(self.fingerprint_key(), &query.merchant);
            let Page { items, has_more } = self.listed_rows(query, first..=last, listed).await?;
            let operations = items.into_iter().map(|row| row.decode(self.vault()).map(|stored| stored.operation));
            Ok(Page { items: operations.collect::<Result<_, _>>()?, has_more })
        })
    }

    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit> {
        Box::pin(self.run_audit(progress))
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.commit_probe())
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.finish().await;
            Ok(())
        })
    }
}

async fn claim<B: Backend>(backend: &B, claim: Claim) -> Result<Vec<ProviderJob>, StoreError> {
    let Claim { shop, now, lease_until, limit } = claim;
    let shares = vec![(shop.as_str().into(), limit)];
    let claimed = backend.claim_tasks(TaskClaim { kind: TaskKind::ProviderJob, shares, now, lease_until }).await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = backend.operation_rows(claimed.iter().map(|task| task.key).collect()).await?;
    let mut jobs = Vec::with_capacity(claimed.len());
    for task in claimed {
        match rows.remove(&task.key).map(|row| row.decode(backend.vault())) {
            Some(Ok(stored)) => jobs.push(ProviderJob { operation: stored.operation, attempts: task.attempts }),
            // An unreadable row must not stop the queue.
            Some(Err(error)) => {
                tracing::error!(%error, "a provider job cannot be decoded and is skipped until its lease ends");
            }
            None => {}
        }
    }
    Ok(jobs)
}

impl ProviderJobState {
    fn of(task: TaskState) -> Self {
        let TaskState { queued_at, due_at, is_leased, attempts } = task;
        Self { queued_at, due: due_at, is_claimed: is_leased, attempts: u32::try_from(attempts).unwrap_or(u32::MAX) }
    }
}

impl ProviderQueue {
    fn of(queue: TaskQueue) -> Result<Self, StoreError> {
        let TaskQueue { queue, due_at, .. } = queue;
        match ShopCode::new(&queue) {
            Ok(shop) => Ok(Self { shop, due: due_at }),
            Err(_) => Err(StoreError::Corrupt("a provider job names no valid shop".to_owned())),
        }
    }
}
