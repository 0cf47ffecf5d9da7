//! The outbox in the tables `callbacks`, `callback_tries` and `tasks` (contract section 10): one row a callback, queued in the
//! commit of the result. What happens to them is said by [`callbacks`].

pub(super) mod forgetting;
mod list;
mod rows;
mod subject;

use std::cell::Cell;
use std::collections::HashMap;

use deadpool_postgres::Transaction;
use tokio::sync::Notify;

use super::fault::Fault;
use super::transaction::PgRows;
use super::{PostgresStore, tasks};
use crate::domain::{Direction, MerchantId, State, UnixMillis};
use crate::store::callbacks::{self, CallbackRows};
use crate::store::rows::callback::target_of;
use crate::store::tasks::{ClaimedTask, TaskClaim, TaskKind};
use crate::store::{
    Addressee, Answer, CallbackClaim, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackPlace,
    CallbackQuery, CallbackQueue, CallbackRecord, CallbackState, CallbackSubject, CallbackTry, Digest, EntryId, Expiry,
    News, Outbox, OutboxSize, Relayed, Resent, StoreError,
};
use subject::Subject;

pub(super) use subject::bucket_in_key;

/// How long a callback is left alone that cannot be read.
const PUT_OFF_MILLIS: i64 = 60_000;

impl PostgresStore {
    async fn claim_due(&self, claim: CallbackClaim) -> Result<Vec<CallbackJob>, StoreError> {
        let CallbackClaim { shares, now, lease_until } = claim;
        let shares = shares.into_iter().map(|(target, share)| (target.as_str().into(), share)).collect();
        let claim = TaskClaim { kind: TaskKind::Callback, shares, now, lease_until };
        let claimed = self.thread.run(async move |node| {
            node.clock.require_right()?;
            let claimed = node.ask(async |client| tasks::claim(client, &claim).await).await?;
            let subjects = node.ask(async |client| subject::of_all(client, &claimed).await).await?;
            Ok((claimed, subjects))
        });
        let (claimed, mut subjects): (Vec<ClaimedTask>, HashMap<i64, (i64, Subject)>) = claimed.await?;
        let (mut jobs, mut unreadable) = (Vec::with_capacity(claimed.len()), Vec::new());
        for task in claimed {
            let (key, subject) = (task.key, subjects.remove(&task.key));
            match self.job(task, subject).await {
                Ok(job) => jobs.push(job),
                // Nothing is wrong with it: the leases end by themselves.
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    // One bad row must not stop the queue.
                    tracing::error!(%error, "a callback cannot be read and is left for later");
                    unreadable.push(key);
                }
            }
        }
        if !unreadable.is_empty() {
            let later = UnixMillis(now.0.saturating_add(PUT_OFF_MILLIS));
            let put_off = self.thread.run(async move |node| {
                let kind = TaskKind::Callback;
                node.ask(async |client| tasks::put_off(client, kind, &unreadable, lease_until, later).await).await
            });
            put_off.await?;
        }
        Ok(jobs)
    }

    async fn job(&self, task: ClaimedTask, subject: Option<(i64, Subject)>) -> Result<CallbackJob, StoreError> {
        let missing = || StoreError::Corrupt(format!("callback {}: what it is about is missing", task.key));
        let (nonce, about) = subject.ok_or_else(missing)?;
        let id = CallbackId::new(CallbackSubject::from_key(task.key).ok_or_else(missing)?, nonce.cast_unsigned());
        let news = match about {
            Subject::Operation(row) => {
                let stored = self.decode(*row).await?;
                if stored.operation.state == State::Pending {
                    return Err(StoreError::Corrupt(format!("callback {id}: its operation has no result")));
                }
                News::Operation(Box::new(stored))
            }
            Subject::Entry(row) => News::Entry(Box::new(row.decode(&self.vault)?)),
        };
        let ClaimedTask { queue, queued_at, attempts, .. } = task;
        Ok(CallbackJob { id, target: target_of(queue.into()), attempts, queued_at, news })
    }

    /// Runs a change, and tells the worker if it queued something, or may have before it had to be run again.
    async fn queueing<T: Send + 'static>(
        &self,
        change: impl AsyncFn(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
        queued: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let done = self.thread.run(async move |node| {
            let runs = Cell::new(0_u32);
            let done = node.transact(async |transaction| {
                runs.set(runs.get() + 1);
                change(transaction).await
            });
            Ok((done.await?, runs.get() > 1))
        });
        let (done, in_doubt) = done.await?;
        if in_doubt || queued(&done) {
            self.queued.notify_one();
        }
        Ok(done)
    }

    async fn list(&self, query: CallbackQuery) -> Result<Vec<CallbackRecord>, StoreError> {
        let scope = self.scope(&query);
        let read = self.thread.run(async move |node| list::records(&node, &query, &scope).await);
        let (records, unreadable) = read.await?;
        for column in unreadable {
            tracing::error!(column, "a callback cannot be read and is not listed");
        }
        Ok(records)
    }

    /// Among which callbacks a query looks: an order that it names is looked for in either direction.
    fn scope(&self, query: &CallbackQuery) -> list::Scope {
        match (&query.merchant, &query.order_id) {
            (None, Some(_)) => list::Scope::Nothing,
            (None, None) => list::Scope::All,
            (Some(merchant), None) => list::Scope::Merchant(merchant.clone()),
            (Some(merchant), Some(order_id)) => {
                let key = |direction| self.vault.comparer().order_key(merchant, direction, order_id);
                list::Scope::Orders(merchant.clone(), [Direction::Payin, Direction::Payout].map(key))
            }
        }
    }

    async fn resend_all(
        &self,
        query: CallbackQuery,
        now: UnixMillis,
    ) -> Result<(usize, Option<CallbackPlace>), StoreError> {
        let scope = self.scope(&query);
        let query = CallbackQuery { states: vec![CallbackState::Failed], ..query };
        let limit = query.limit;
        let places = self.thread.run(async move |node| list::places(&node, &query, &scope).await).await?;
        // Others may have taken some of them since: whether there are more is told by what was found.
        let next = places.last().copied().filter(|_| places.len() == limit);
        let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
        let resend = async move |transaction: &Transaction<'_>| PgRows(transaction).queue_failed(&keys, now).await;
        let count = self.queueing(resend, |count| *count > 0).await?;
        Ok((count, next))
    }
}

impl Outbox for PostgresStore {
    fn callbacks_queued(&self) -> &Notify {
        &self.queued
    }

    fn callback_queues(&self) -> Answer<'_, Vec<CallbackQueue>> {
        Box::pin(async move {
            let read = self
                .thread
                .run(async move |node| node.ask(async |client| tasks::queues(client, TaskKind::Callback).await).await);
            Ok(read.await?.into_iter().map(CallbackQueue::of).collect())
        })
    }

    fn claim_callbacks(&self, claim: CallbackClaim) -> Answer<'_, Vec<CallbackJob>> {
        Box::pin(self.claim_due(claim))
    }

    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| callbacks::record(&mut PgRows(transaction), lease, &tried, next).await)
                .await
        }))
    }

    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| callbacks::postpone(&mut PgRows(transaction), lease, due).await).await
        }))
    }

    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> Answer<'_, ()> {
        let ready =
            async move |transaction: &Transaction<'_>| callbacks::ready(&mut PgRows(transaction), id, now).await;
        Box::pin(async move { self.queueing(ready, |ready| *ready).await.map(drop) })
    }

    fn drop_callback(&self, lease: CallbackLease) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| callbacks::remove(&mut PgRows(transaction), lease).await).await
        }))
    }

    fn expire_callbacks(&self, expiry: Expiry) -> Answer<'_, usize> {
        Box::pin(self.thread.run(async move |node| {
            node.clock.require_right()?;
            node.transact(async |transaction| callbacks::expire(&mut PgRows(transaction), &expiry).await).await
        }))
    }

    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> Answer<'_, usize> {
        Box::pin(self.thread.run(async move |node| {
            node.clock.require_right()?;
            node.ask(async |client| forgetting::forget(client, until, limit).await).await
        }))
    }

    fn addressee<'a>(&'a self, merchant: &'a MerchantId, order: Digest) -> Answer<'a, Option<Addressee>> {
        let merchant = merchant.clone();
        Box::pin(
            self.thread.run(async move |node| {
                node.ask(async |client| subject::addressee(client, &merchant, order).await).await
            }),
        )
    }

    fn relayed(&self, entry: EntryId, at: UnixMillis) -> Answer<'_, Relayed> {
        let nonce = self.random.number();
        let relay = async move |transaction: &Transaction<'_>| {
            callbacks::relay(&mut PgRows(transaction), entry, nonce, at).await
        };
        Box::pin(self.queueing(relay, |relayed| *relayed == Relayed::Queued))
    }

    fn callback(&self, id: CallbackId) -> Answer<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(self.thread.run(async move |node| list::one(&node, id).await))
    }

    fn callbacks(&self, query: CallbackQuery) -> Answer<'_, Vec<CallbackRecord>> {
        Box::pin(self.list(query))
    }

    fn resend_callback(&self, id: CallbackId, now: UnixMillis) -> Answer<'_, Resent> {
        let resend =
            async move |transaction: &Transaction<'_>| callbacks::resend(&mut PgRows(transaction), id, now).await;
        Box::pin(self.queueing(resend, |resent| *resent == Resent::Queued))
    }

    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> Answer<'_, (usize, Option<CallbackPlace>)> {
        Box::pin(self.resend_all(query, now))
    }

    fn outbox_size(&self) -> Answer<'_, OutboxSize> {
        Box::pin(self.thread.run(async move |node| node.ask(async |client| list::size(client).await).await))
    }
}
