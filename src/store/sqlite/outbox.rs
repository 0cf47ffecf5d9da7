//! The outbox in the tables `callbacks`, `callback_tries` and `tasks`: one row a callback, queued in the commit of the result
//! (contract section 10). Every change is a command of the writer; what is sent is read after the commit of its lease.
//!
//! What happens to them is said by [`callbacks`].

pub(in crate::store::sqlite) mod forgetting;
mod list;
mod rows;
mod subject;

use rusqlite::Connection;
use tokio::sync::Notify;

use super::transaction::{SqliteRows, at_once};
use super::{SqliteStore, tasks};
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

/// How long a callback is left alone that cannot be read.
const PUT_OFF_MILLIS: i64 = 60_000;

impl SqliteStore {
    async fn claim_due(&self, claim: CallbackClaim) -> Result<Vec<CallbackJob>, StoreError> {
        let CallbackClaim { shares, now, lease_until } = claim;
        let shares = shares.into_iter().map(|(target, share)| (target.as_str().into(), share)).collect();
        let claim = TaskClaim { kind: TaskKind::Callback, shares, now, lease_until };
        let claimed = self.writer.submit(move |connection| tasks::claim(connection, &claim)).await?;
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.readers.read_aside(move |connection| subject::of_all(connection, claimed)).await?;
        let (mut jobs, mut unreadable) = (Vec::with_capacity(found.len()), Vec::new());
        for (task, subject) in found {
            let key = task.key;
            match self.job(task, subject) {
                Ok(job) => jobs.push(job),
                Err(error) => {
                    // One bad row must not stop the queue.
                    tracing::error!(%error, "a callback cannot be read and is left for later");
                    unreadable.push(key);
                }
            }
        }
        if !unreadable.is_empty() {
            let later = UnixMillis(now.0.saturating_add(PUT_OFF_MILLIS));
            let put_off = move |connection: &Connection| {
                tasks::put_off(connection, TaskKind::Callback, &unreadable, lease_until, later)
            };
            self.writer.submit(put_off).await?;
        }
        Ok(jobs)
    }

    fn job(&self, task: ClaimedTask, subject: Option<(i64, Subject)>) -> Result<CallbackJob, StoreError> {
        let missing = || StoreError::Corrupt(format!("callback {}: what it is about is missing", task.key));
        let (nonce, about) = subject.ok_or_else(missing)?;
        let id = CallbackId::new(CallbackSubject::from_key(task.key).ok_or_else(missing)?, nonce.cast_unsigned());
        let news = match about {
            Subject::Operation(row) => {
                let stored = self.decode(*row)?;
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

    /// Runs a change, and tells the worker if it queued something.
    async fn queueing<T: Send + 'static>(
        &self,
        change: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
        queued: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let done = self.writer.submit(change).await?;
        if queued(&done) {
            self.queued.notify_one();
        }
        Ok(done)
    }

    async fn list(&self, query: CallbackQuery) -> Result<Vec<CallbackRecord>, StoreError> {
        let scope = self.scope(&query);
        let read = move |connection: &Connection| list::records(connection, &query, &scope);
        let (records, unreadable) = self.lists.read(&self.readers, read).await?;
        for column in unreadable {
            tracing::error!(column, "a callback cannot be read and is not listed");
        }
        Ok(records)
    }

    /// The orders that a query names, in either direction.
    fn scope(&self, query: &CallbackQuery) -> list::Scope {
        match (&query.merchant, &query.order_id) {
            (None, Some(_)) => list::Scope::Nothing,
            (Some(merchant), Some(order_id)) => list::Scope::Orders(
                [Direction::Payin, Direction::Payout]
                    .map(|direction| self.vault.comparer().order_key(merchant, direction, order_id)),
            ),
            (_, None) => list::Scope::All,
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
        let read = move |connection: &Connection| list::places(connection, &query, &scope);
        let places = self.lists.read(&self.readers, read).await?;
        // Others may have taken some of them since: whether there are more is told by what was found.
        let next = places.last().copied().filter(|_| places.len() == limit);
        let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
        let resend = move |connection: &Connection| at_once(SqliteRows(connection).queue_failed(&keys, now));
        let count = self.queueing(resend, |count| *count > 0).await?;
        Ok((count, next))
    }
}

impl Outbox for SqliteStore {
    fn callbacks_queued(&self) -> &Notify {
        &self.queued
    }

    fn callback_queues(&self) -> Answer<'_, Vec<CallbackQueue>> {
        Box::pin(async move {
            let queues = self.readers.read_aside(|connection| tasks::queues(connection, TaskKind::Callback)).await?;
            Ok(queues.into_iter().map(CallbackQueue::of).collect())
        })
    }

    fn claim_callbacks(&self, claim: CallbackClaim) -> Answer<'_, Vec<CallbackJob>> {
        Box::pin(self.claim_due(claim))
    }

    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> Answer<'_, ()> {
        Box::pin(
            self.writer
                .submit(move |connection| at_once(callbacks::record(&mut SqliteRows(connection), lease, &tried, next))),
        )
    }

    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> Answer<'_, ()> {
        Box::pin(
            self.writer.submit(move |connection| at_once(callbacks::postpone(&mut SqliteRows(connection), lease, due))),
        )
    }

    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> Answer<'_, ()> {
        let ready = move |connection: &Connection| at_once(callbacks::ready(&mut SqliteRows(connection), id, now));
        Box::pin(async move { self.queueing(ready, |ready| *ready).await.map(drop) })
    }

    fn drop_callback(&self, lease: CallbackLease) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| at_once(callbacks::remove(&mut SqliteRows(connection), lease))))
    }

    fn expire_callbacks(&self, expiry: Expiry) -> Answer<'_, usize> {
        Box::pin(self.writer.submit(move |connection| at_once(callbacks::expire(&mut SqliteRows(connection), &expiry))))
    }

    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> Answer<'_, usize> {
        Box::pin(self.writer.submit(move |connection| forgetting::forget(connection, until, limit)))
    }

    fn addressee<'a>(&'a self, merchant: &'a MerchantId, order: Digest) -> Answer<'a, Option<Addressee>> {
        Box::pin(async move {
            match self.readers.read(|connection| subject::addressee(connection, order))? {
                None => Ok(None),
                Some(Ok(addressee)) => Ok(Some(addressee).filter(|found| found.merchant == *merchant)),
                Some(Err(column)) => Err(StoreError::Corrupt(format!("an order's column {column} is not ours"))),
            }
        })
    }

    fn relayed(&self, entry: EntryId, at: UnixMillis) -> Answer<'_, Relayed> {
        let nonce = self.random.number();
        let relay =
            move |connection: &Connection| at_once(callbacks::relay(&mut SqliteRows(connection), entry, nonce, at));
        Box::pin(self.queueing(relay, |relayed| *relayed == Relayed::Queued))
    }

    fn callback(&self, id: CallbackId) -> Answer<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        Box::pin(async move {
            let found = self.readers.read(|connection| list::one(connection, id))?;
            found
                .transpose()
                .map_err(|column| StoreError::Corrupt(format!("callback {id}: the column {column} is not ours")))
        })
    }

    fn callbacks(&self, query: CallbackQuery) -> Answer<'_, Vec<CallbackRecord>> {
        Box::pin(self.list(query))
    }

    fn resend_callback(&self, id: CallbackId, now: UnixMillis) -> Answer<'_, Resent> {
        let resend = move |connection: &Connection| at_once(callbacks::resend(&mut SqliteRows(connection), id, now));
        Box::pin(self.queueing(resend, |resent| *resent == Resent::Queued))
    }

    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> Answer<'_, (usize, Option<CallbackPlace>)> {
        Box::pin(self.resend_all(query, now))
    }

    fn outbox_size(&self) -> Answer<'_, OutboxSize> {
        Box::pin(self.readers.read_aside(list::size))
    }
}

/// Statements whose plans tests pin.
#[cfg(test)]
pub(super) mod plans {
    pub(in crate::store::sqlite) use super::list::{BEFORE_ITS_TIME, OF_ITS_TIME, OF_ORDER, SIZE};
    pub(in crate::store::sqlite) use super::rows::LATE;
    pub(in crate::store::sqlite) use crate::store::sqlite::tasks::{DUE, NEXT_QUEUE};
}
