//! Implements [`Outbox`] for every [`Backend`].

use std::cell::Cell;
use std::collections::HashMap;

use tokio::sync::Notify;

use super::{
    CallbackClaim, CallbackCursor, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue,
    CallbackRecord, CallbackState, CallbackSubject, CallbackTarget, CallbackTry, ExpireRequest, Outbox, OutboxSize,
    RelayTarget, Relayed, Resent, ResultChange,
};
use crate::domain::{Direction, Fingerprint, MerchantId, State, UnixMillis};
use crate::store::backend::{Backend, Scope, Subject};
use crate::store::callbacks::{self, CallbackRows as _};
use crate::store::journal::moves;
use crate::store::tasks::{ClaimedTask, QueueList, TaskClaim, TaskKind};
use crate::store::vault::Vault;
use crate::store::{EntryId, StoreError, StoreFuture};

/// How long an unreadable callback is postponed.
const POSTPONE_MILLIS: i64 = 60_000;

async fn claim<B: Backend>(backend: &B, claim: CallbackClaim) -> Result<Vec<CallbackJob>, StoreError> {
    let CallbackClaim { shares, now, lease_until } = claim;
    let shares = shares.into_iter().map(|(target, share)| (target.as_queue().into(), share)).collect();
    let claim = TaskClaim { kind: TaskKind::Callback, shares, now, lease_until };
    let claimed = backend.claim_tasks(claim).await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let mut subjects: HashMap<i64, (i64, Subject)> =
        backend.subjects(claimed.iter().map(|task| task.key).collect()).await?;
    let (mut jobs, mut unreadable) = (Vec::with_capacity(claimed.len()), Vec::new());
    for task in claimed {
        let (key, subject) = (task.key, subjects.remove(&task.key));
        match job(backend.vault(), task, subject) {
            Ok(job) => jobs.push(job),
            Err(error) => {
                // An unreadable row must not stop the queue.
                tracing::error!(%error, "a callback cannot be decoded and is postponed");
                unreadable.push(key);
            }
        }
    }
    if !unreadable.is_empty() {
        let later = UnixMillis(now.0.saturating_add(POSTPONE_MILLIS));
        backend.postpone_tasks(TaskKind::Callback, unreadable, lease_until, later).await?;
    }
    Ok(jobs)
}

fn job(vault: &Vault, task: ClaimedTask, subject: Option<(i64, Subject)>) -> Result<CallbackJob, StoreError> {
    let missing =
        || StoreError::Corrupt(format!("callback {}: the operation or entry that it belongs to is missing", task.key));
    let (nonce, subject_row) = subject.ok_or_else(missing)?;
    let id = CallbackId::new(CallbackSubject::from_key(task.key).ok_or_else(missing)?, nonce.cast_unsigned());
    let news = match subject_row {
        Subject::Operation(row) => {
            let stored = row.decode(vault)?;
            if stored.operation.state == State::Pending {
                return Err(StoreError::Corrupt(format!("callback {id}: its operation has no result")));
            }
            ResultChange::Operation(Box::new(stored))
        }
        Subject::Entry(row) => ResultChange::Entry(Box::new(row.decode(vault)?)),
    };
    let ClaimedTask { queue, queued_at, attempts, .. } = task;
    Ok(CallbackJob { id, target: CallbackTarget::of_queue(queue), attempts, queued_at, news })
}

/// Runs a change in a transaction, and wakes the worker if it queued a callback, or may have in a run before the last.
async fn transact_and_notify<B: Backend, T: Send + 'static>(
    backend: &B,
    change: impl AsyncFn(&mut B::Rows<'_>) -> Result<T, B::Error> + Send + 'static,
    queued: impl FnOnce(&T) -> bool,
) -> Result<T, StoreError> {
    let runs = Cell::new(0_u32);
    let count_runs = async move |rows: &mut B::Rows<'_>| {
        runs.set(runs.get() + 1);
        Ok((change(rows).await?, runs.get() > 1))
    };
    let (done, was_rerun) = backend.transact(count_runs).await?;
    if was_rerun || queued(&done) {
        backend.queued().notify_one();
    }
    Ok(done)
}

/// Returns the callbacks that a query covers. An `order_id` matches in either direction.
fn scope<B: Backend>(backend: &B, query: &CallbackQuery) -> Scope {
    match (&query.merchant, &query.order_id) {
        (None, Some(_)) => Scope::Nothing,
        (None, None) => Scope::All,
        (Some(merchant), None) => Scope::Merchant(merchant.clone()),
        (Some(merchant), Some(order_id)) => {
            let key = |direction| backend.vault().fingerprint_key().order_key(merchant, direction, order_id);
            Scope::Orders(merchant.clone(), [Direction::Payin, Direction::Payout].map(key))
        }
    }
}

impl<B: Backend> Outbox for B {
    fn callbacks_queued(&self) -> &Notify {
        self.queued()
    }

    fn callback_queues(&self, after: Vec<CallbackTarget>) -> StoreFuture<'_, Vec<CallbackQueue>> {
        Box::pin(async move {
            let after = after.iter().map(|target| target.as_queue().into()).collect();
            let list = QueueList { kind: TaskKind::Callback, after, limit: CallbackQueue::MAX_OF_MERCHANT };
            Ok(self.task_queues(list).await?.into_iter().map(CallbackQueue::of).collect())
        })
    }

    fn claim_callbacks(&self, callbacks: CallbackClaim) -> StoreFuture<'_, Vec<CallbackJob>> {
        Box::pin(claim(self, callbacks))
    }

    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> StoreFuture<'_, ()> {
        let record = async move |rows: &mut B::Rows<'_>| callbacks::record(rows, lease, &tried, next).await;
        Box::pin(self.transact(record))
    }

    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| callbacks::postpone(rows, lease, due).await))
    }

    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, ()> {
        let ready = async move |rows: &mut B::Rows<'_>| moves::ready(rows, id, now).await;
        Box::pin(async move { transact_and_notify(self, ready, |ready| *ready).await.map(drop) })
    }

    fn drop_callback(&self, lease: CallbackLease) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| callbacks::remove(rows, lease).await))
    }

    fn expire_callbacks(&self, expiry: ExpireRequest) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            self.transact(async move |rows: &mut B::Rows<'_>| callbacks::expire(rows, &expiry).await).await
        })
    }

    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            self.forget_delivered(until, limit).await
        })
    }

    fn relay_target<'a>(
        &'a self,
        merchant: &'a MerchantId,
        order: Fingerprint,
    ) -> StoreFuture<'a, Option<RelayTarget>> {
        Box::pin(async move {
            let found = self.relay_target_of(merchant, order).await?;
            Ok(found.filter(|found| found.merchant == *merchant))
        })
    }

    fn relayed(&self, entry: EntryId, at: UnixMillis) -> StoreFuture<'_, Relayed> {
        let nonce = self.random().number();
        let relay = async move |rows: &mut B::Rows<'_>| moves::relay(rows, entry, nonce, at).await;
        Box::pin(transact_and_notify(self, relay, |relayed| *relayed == Relayed::Queued))
    }

    fn callback(&self, id: CallbackId) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(async move {
            let found = self.callback_record(id.subject()).await?;
            Ok(found.filter(|(record, _)| record.id == id))
        })
    }

    fn callback_of(&self, subject: CallbackSubject) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(self.callback_record(subject))
    }

    fn count_callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let scope = scope(self, &query);
            self.callback_count(query, scope).await
        })
    }

    fn callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, Vec<CallbackRecord>> {
        Box::pin(async move {
            let (scope, mut rest, mut records) = (scope(self, &query), query.clone(), Vec::new());
            loop {
                let slice = self.callback_slice(rest.clone(), scope.clone()).await?;
                let (count, last) = (slice.len(), slice.last().map(|(place, _)| *place));
                for (_, record) in slice {
                    match record {
                        Ok(record) => records.push(record),
                        Err(column) => tracing::error!(column, "a callback cannot be decoded and is not listed"),
                    }
                }
                // Later records replace unreadable ones; a slice that is not full is the last one.
                if last.is_none() || count < rest.limit || records.len() == query.limit {
                    return Ok(records);
                }
                rest.after = last;
                rest.limit = query.limit - records.len();
            }
        })
    }

    fn resend_callback(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, Resent> {
        let resend = async move |rows: &mut B::Rows<'_>| callbacks::resend(rows, id, now).await;
        Box::pin(transact_and_notify(self, resend, |resent| *resent == Resent::Queued))
    }

    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)> {
        Box::pin(async move {
            let scope = scope(self, &query);
            let query = CallbackQuery { states: vec![CallbackState::Failed], ..query };
            let limit = query.limit;
            let places = self.callback_places(query, scope).await?;
            // Other transactions may have changed some of them since, so the count of found callbacks decides whether
            // there are more.
            let next = places.last().copied().filter(|_| places.len() == limit);
            let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
            let resend = async move |rows: &mut B::Rows<'_>| rows.queue_failed(&keys, now).await;
            let count = transact_and_notify(self, resend, |count| *count > 0).await?;
            Ok((count, next))
        })
    }

    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize> {
        Box::pin(self.callback_counts())
    }
}
