//! The trait [`Outbox`], implemented for every [`Backend`].

use std::cell::Cell;

use tokio::sync::Notify;

use super::list::{self, Scope};
use super::pending;
use super::subjects::{self, Subject};
use super::{
    CallbackClaim, CallbackCursor, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue,
    CallbackRecord, CallbackState, CallbackSubject, CallbackTarget, CallbackTry, ExpireRequest, OutboxSize,
    PendingQuery, RelayTarget, Relayed, Resent, ResultChange,
};
use crate::domain::{Direction, Fingerprint, MerchantId, State, UnixMillis};
use crate::store::backend::{Backend, ReadKind};
use crate::store::callbacks;
use crate::store::journal::moves;
use crate::store::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskKind};
use crate::store::sql::CorruptRow;
use crate::store::tasks;
use crate::store::transaction::OwnStatements as _;
use crate::store::vault::Vault;
use crate::store::{EntryId, StoreError, StoreFuture};

/// How long an unreadable callback is postponed.
const POSTPONE_MILLIS: i64 = 60_000;

async fn claim<B: Backend>(backend: &B, claim: CallbackClaim) -> Result<Vec<CallbackJob>, StoreError> {
    let CallbackClaim { shares, now, lease_until } = claim;
    let shares = shares.into_iter().map(|(target, share)| (target.as_queue().into(), share)).collect();
    let claim = TaskClaim { kind: TaskKind::Callback, shares, now, lease_until };
    backend.require_right_clock().await?;
    let claimed = backend.run_alone(async move |tx| tx.claim_tasks(&claim).await).await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<i64> = claimed.iter().map(|task| task.key).collect();
    let mut found = backend.read(ReadKind::Rows, async move |tx| subjects::of_all(tx, &keys).await).await?;
    let (mut jobs, mut unreadable) = (Vec::with_capacity(claimed.len()), Vec::new());
    for task in claimed {
        let (key, subject) = (task.key, found.remove(&task.key));
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
        let kind = TaskKind::Callback;
        let postpone = async move |tx: &B::Tx<'_>| tasks::postpone(tx, kind, &unreadable, lease_until, later).await;
        if let Err(error) = backend.transact(postpone).await {
            tracing::warn!(%error, "callbacks that cannot be decoded wait until their leases end");
        }
    }
    Ok(jobs)
}

fn job(vault: &Vault, task: ClaimedTask, subject: Option<(i64, Subject)>) -> Result<CallbackJob, StoreError> {
    let missing =
        || StoreError::Corrupt(format!("callback {}: the operation or entry that it belongs to is missing", task.key));
    let (nonce, subject_row) = subject.ok_or_else(missing)?;
    let id = CallbackId::new(CallbackSubject::from_key(task.key).ok_or_else(missing)?, nonce.cast_unsigned());
    let change = change_of(vault, id, subject_row)?;
    let ClaimedTask { queue, queued_at, attempts, .. } = task;
    Ok(CallbackJob { id, target: CallbackTarget::of_queue(queue), attempts, queued_at, change })
}

fn change_of(vault: &Vault, id: CallbackId, subject: Subject) -> Result<ResultChange, StoreError> {
    match subject {
        Subject::Operation(row) => {
            let stored = row.decode(vault)?;
            if stored.operation.state == State::Pending {
                return Err(StoreError::Corrupt(format!("callback {id}: its operation has no result")));
            }
            Ok(ResultChange::Operation(Box::new(stored)))
        }
        Subject::Entry(row) => Ok(ResultChange::Entry(Box::new(row.decode(vault)?))),
    }
}

/// Runs a change in a transaction, and wakes the worker if it queued a callback, or may have in a run before the last.
async fn transact_and_notify<B: Backend, T: Send + 'static>(
    backend: &B,
    change: impl AsyncFn(&B::Tx<'_>) -> Result<T, B::Error> + Send + 'static,
    queued: impl FnOnce(&T) -> bool,
) -> Result<T, StoreError> {
    let runs = Cell::new(0_u32);
    let count_runs = async move |tx: &B::Tx<'_>| {
        runs.set(runs.get() + 1);
        Ok((change(tx).await?, runs.get() > 1))
    };
    let (done, was_rerun) = backend.transact(count_runs).await?;
    if was_rerun || queued(&done) {
        backend.queued().notify_one();
    }
    Ok(done)
}

/// Reads the callback of a subject with its tries.
async fn callback_of<B: Backend>(
    backend: &B,
    subject: CallbackSubject,
) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError> {
    backend.read(ReadKind::Page, async move |tx| list::one(tx, subject).await).await
}

/// Returns the callbacks that a query covers. An `order_id` matches in either direction.
fn scope<B: Backend>(backend: &B, query: &CallbackQuery) -> Scope {
    match (&query.merchant, &query.order_id) {
        (None, Some(_)) => Scope::Nothing,
        (None, None) => Scope::All,
        (Some(merchant), None) => Scope::Merchant(merchant.clone()),
        (Some(merchant), Some(order_id)) => {
            let key = |direction| backend.vault().fingerprint_key().order_key(merchant, direction, order_id);
            Scope::Orders([Direction::Payin, Direction::Payout].map(key))
        }
    }
}

/// The durable outbox of callbacks. Each method is one transaction.
pub trait Outbox: Send + Sync + 'static {
    /// Returns the notification that is sent after a commit that queued a callback or made one due.
    fn callbacks_queued(&self) -> &Notify;

    /// Returns targets with pending callbacks, each with the time when its earliest callback is due (for a leased one,
    /// when its lease ends): of each merchant the first [`CallbackQueue::MAX_OF_MERCHANT`], or the first ones after its
    /// target in `after`.
    fn callback_queues(&self, after: Vec<CallbackTarget>) -> StoreFuture<'_, Vec<CallbackQueue>>;

    /// Claims pending callbacks that are due, the earliest of each target first, and hides them from other claims until
    /// the lease ends. After that the callbacks of a process that died can be claimed again.
    fn claim_callbacks(&self, claim: CallbackClaim) -> StoreFuture<'_, Vec<CallbackJob>>;

    /// Stores a try of a claimed callback and applies its result. The latest [`CallbackRecord::MAX_TRIES`] tries of a
    /// callback are stored, with times to the microsecond. A late try, one whose lease is over and whose callback was
    /// claimed again, resent, delivered or given up since, is stored too; its result is applied only if the callback
    /// was delivered.
    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> StoreFuture<'_, ()>;

    /// Makes a claimed callback due at another time, because its target could not be called. Counts as an attempt, so
    /// that the intervals grow. Does nothing unless this is still the latest claim.
    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> StoreFuture<'_, ()>;

    /// Moves the callback of an entry to the queue of the merchant's target, because the result is known now. It is due at
    /// once, and its attempts are counted anew. Does nothing unless the callback waits for the engine.
    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, ()>;

    /// Removes the claimed callback of an entry whose operation has no result after all. Keeps it if it was announced
    /// or claimed again since this claim, because the result may be known by now.
    fn drop_callback(&self, lease: CallbackLease) -> StoreFuture<'_, ()>;

    /// Gives up pending callbacks that waited too long behind dead targets: marks them failed without another try.
    /// Returns how many.
    fn expire_callbacks(&self, expiry: ExpireRequest) -> StoreFuture<'_, usize>;

    /// Removes delivered and failed callbacks, with their tries, that were queued or last resent at or before `until`:
    /// oldest first, at most `limit` of each kind. Returns how many.
    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> StoreFuture<'_, usize>;

    /// Returns the order that a relay address names: the one of this merchant with this
    /// [`order_key`](crate::domain::FingerprintKey::order_key), if it was created through v1 with the relay's address.
    fn relay_target<'a>(&'a self, merchant: &'a MerchantId, order: Fingerprint)
    -> StoreFuture<'a, Option<RelayTarget>>;

    /// Queues the callback of an entry whose result a remote engine announced, in the queue of
    /// [`CallbackTarget::ENGINE`]. Does nothing if the callback exists or the merchant gave no address. An existing
    /// callback for which the engine was queried without success, or which was given up there, becomes due now for
    /// another query; a worker that has claimed it loses its lease.
    fn relayed(&self, entry: EntryId, at: UnixMillis) -> StoreFuture<'_, Relayed>;

    /// Returns a callback with its tries, oldest first.
    fn callback(&self, id: CallbackId) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>>;

    /// Returns the callback of an operation or an entry with its tries, oldest first. As cheap as [`Outbox::callback`].
    fn callback_of(&self, subject: CallbackSubject) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>>;

    /// Returns the result that a callback delivers.
    fn result_of_callback(&self, id: CallbackId) -> StoreFuture<'_, Option<ResultChange>>;

    /// Counts the callbacks that match `query`, up to `query.limit`: a count of the limit means "that many or more".
    /// Costs as much as a slice of the list without its rows.
    fn count_callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, usize>;

    /// Returns callbacks, newest first: one slice of the list. Read on threads that serve no requests.
    fn callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, Vec<CallbackRecord>>;

    /// Makes a callback pending and due now, from any state, with a fresh count of attempts. A lease that has ended by
    /// `now` is ignored.
    fn resend_callback(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, Resent>;

    /// Makes failed callbacks pending and due now, as [`Outbox::resend_callback`] does: of those that match `query`,
    /// the newest `query.limit`. The `states` of `query` are ignored. Returns how many, and where the next slice
    /// begins; `None` when there is none.
    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)>;

    /// Counts pending callbacks that are not being sent, up to `query.limit`.
    fn count_pending(&self, query: PendingQuery, now: UnixMillis) -> StoreFuture<'_, usize>;

    /// Makes pending callbacks due now that are not being sent. They keep their attempts and the time at which they are
    /// given up. Returns how many they are, those included that were due already, and where the next slice begins; `None`
    /// when there is none.
    fn resend_pending(&self, query: PendingQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)>;

    /// Returns how many callbacks are in the outbox, and how old the oldest pending one is.
    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize>;
}

impl<B: Backend> Outbox for B {
    fn callbacks_queued(&self) -> &Notify {
        self.queued()
    }

    fn callback_queues(&self, after: Vec<CallbackTarget>) -> StoreFuture<'_, Vec<CallbackQueue>> {
        Box::pin(async move {
            let after = after.iter().map(|target| target.as_queue().into()).collect();
            let list = QueueList { kind: TaskKind::Callback, after, limit: CallbackQueue::MAX_OF_MERCHANT };
            let queues = self.read(ReadKind::Rows, async move |tx| tx.task_queues(&list).await).await?;
            Ok(queues.into_iter().map(CallbackQueue::of).collect())
        })
    }

    fn claim_callbacks(&self, callbacks: CallbackClaim) -> StoreFuture<'_, Vec<CallbackJob>> {
        Box::pin(claim(self, callbacks))
    }

    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> StoreFuture<'_, ()> {
        let record = async move |tx: &B::Tx<'_>| callbacks::record(tx, lease, &tried, next).await;
        Box::pin(self.transact(record))
    }

    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |tx: &B::Tx<'_>| callbacks::postpone(tx, lease, due).await))
    }

    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, ()> {
        let ready = async move |tx: &B::Tx<'_>| moves::ready(tx, id, now).await;
        Box::pin(async move { transact_and_notify(self, ready, |ready| *ready).await.map(drop) })
    }

    fn drop_callback(&self, lease: CallbackLease) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async move |tx: &B::Tx<'_>| callbacks::remove(tx, lease).await))
    }

    fn expire_callbacks(&self, expiry: ExpireRequest) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            self.transact(async move |tx: &B::Tx<'_>| callbacks::expire(tx, &expiry).await).await
        })
    }

    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            self.require_right_clock().await?;
            self.transact(async move |tx| callbacks::forget(tx, until, limit).await).await
        })
    }

    fn relay_target<'a>(
        &'a self,
        merchant: &'a MerchantId,
        order: Fingerprint,
    ) -> StoreFuture<'a, Option<RelayTarget>> {
        Box::pin(async move {
            let found = self.read(ReadKind::Lookup, async move |tx| subjects::relay_target(tx, order).await).await?;
            Ok(found.filter(|found| found.merchant == *merchant))
        })
    }

    fn relayed(&self, entry: EntryId, at: UnixMillis) -> StoreFuture<'_, Relayed> {
        let nonce = self.random().number();
        let relay = async move |tx: &B::Tx<'_>| moves::relay(tx, entry, nonce, at).await;
        Box::pin(transact_and_notify(self, relay, |relayed| *relayed == Relayed::Queued))
    }

    fn callback(&self, id: CallbackId) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(async move {
            let found = callback_of(self, id.subject()).await?;
            Ok(found.filter(|(record, _)| record.id == id))
        })
    }

    fn callback_of(&self, subject: CallbackSubject) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(callback_of(self, subject))
    }

    fn result_of_callback(&self, id: CallbackId) -> StoreFuture<'_, Option<ResultChange>> {
        Box::pin(async move {
            let key = id.subject().key();
            let mut found = self.read(ReadKind::Page, async move |tx| subjects::of_all(tx, &[key]).await).await?;
            let found = found.remove(&key).filter(|(nonce, _)| *nonce == id.nonce().cast_signed());
            found.map(|(_, subject)| change_of(self.vault(), id, subject)).transpose()
        })
    }

    fn count_callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let scope = scope(self, &query);
            let places = async move |tx: &B::Tx<'_>| list::places(tx, &query, &scope).await;
            Ok(self.read(ReadKind::Page, places).await?.len())
        })
    }

    fn callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, Vec<CallbackRecord>> {
        Box::pin(async move {
            let (scope, mut rest, mut records) = (scope(self, &query), query.clone(), Vec::new());
            loop {
                let (query_now, scope_now) = (rest.clone(), scope.clone());
                let slice = async move |tx: &B::Tx<'_>| list::slice(tx, &query_now, &scope_now).await;
                let slice = self.read(ReadKind::Page, slice).await?;
                let (count, last) = (slice.len(), slice.last().map(|(place, _)| *place));
                for (_, record) in slice {
                    match record {
                        Ok(record) => records.push(record),
                        Err(CorruptRow(column)) => {
                            tracing::error!(%column, "a callback cannot be decoded and is not listed");
                        }
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
        let resend = async move |tx: &B::Tx<'_>| callbacks::resend(tx, id, now).await;
        Box::pin(transact_and_notify(self, resend, |resent| *resent == Resent::Queued))
    }

    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)> {
        Box::pin(async move {
            let scope = scope(self, &query);
            let query = CallbackQuery { states: vec![CallbackState::Failed], ..query };
            let limit = query.limit;
            let places = async move |tx: &B::Tx<'_>| list::places(tx, &query, &scope).await;
            let places = self.read(ReadKind::Page, places).await?;
            // Other transactions may have changed some of them since, so the count of found callbacks decides whether
            // there are more.
            let next = places.last().copied().filter(|_| places.len() == limit);
            let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
            let resend = async move |tx: &B::Tx<'_>| callbacks::queue_failed(tx, &keys, now).await;
            let count = transact_and_notify(self, resend, |count| *count > 0).await?;
            Ok((count, next))
        })
    }

    fn count_pending(&self, query: PendingQuery, now: UnixMillis) -> StoreFuture<'_, usize> {
        let places = async move |tx: &B::Tx<'_>| pending::places(tx, &query, now).await;
        Box::pin(async move { Ok(self.read(ReadKind::Page, places).await?.len()) })
    }

    fn resend_pending(&self, query: PendingQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)> {
        Box::pin(async move {
            let limit = query.limit;
            let places = async move |tx: &B::Tx<'_>| pending::places(tx, &query, now).await;
            let places = self.read(ReadKind::Page, places).await?;
            let (count, next) = (places.len(), places.last().copied().filter(|_| places.len() == limit));
            let make_due = async move |tx: &B::Tx<'_>| pending::make_due(tx, &places, now).await;
            transact_and_notify(self, make_due, |changed| *changed > 0).await?;
            Ok((count, next))
        })
    }

    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize> {
        Box::pin(self.read(ReadKind::Rows, async |tx| list::size(tx).await))
    }
}
