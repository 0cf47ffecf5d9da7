//! The outbox in the tables `callbacks` and `callback_tries`: one row a callback, queued in the commit of the result
//! (contract section 10). Every change is a command of the writer; what is sent is read after the commit of its lease.
//!
//! A lease ends by itself. Whoever had it may come back late, when the callback was claimed or resent by somebody else:
//! what it says is kept, but only that the receiver has it still counts (see [`tries`]).

pub(in crate::store::sqlite) mod forgetting;
mod list;
mod queue;
mod standing;
mod subject;
mod tries;

use rusqlite::Connection;
use tokio::sync::Notify;

use super::SqliteStore;
use crate::domain::{Direction, MerchantId, State, UnixMillis};
use crate::store::{
    Addressee, Answer, CallbackClaim, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackPlace,
    CallbackQuery, CallbackQueue, CallbackRecord, CallbackState, CallbackSubject, CallbackTry, Digest, EntryId, Expiry,
    News, Outbox, OutboxSize, Relayed, Resent, StoreError,
};
use queue::Due;
use subject::Subject;

pub(super) use queue::release;
pub(super) use subject::origin_of;

/// How long a callback is left alone that cannot be read.
const PUT_OFF_MILLIS: i64 = 60_000;

impl SqliteStore {
    async fn claim_due(&self, claim: CallbackClaim) -> Result<Vec<CallbackJob>, StoreError> {
        let now = claim.now;
        let claimed = self.writer.submit(move |connection| queue::claim(connection, &claim)).await?;
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.readers.read_aside(move |connection| subject::of_all(connection, claimed)).await?;
        let (mut jobs, mut unreadable) = (Vec::with_capacity(found.len()), Vec::new());
        for (due, subject) in found {
            let key = due.key;
            match self.job(due, subject) {
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
            let put_off = move |connection: &Connection| queue::put_off(connection, &unreadable, later);
            self.writer.submit(put_off).await?;
        }
        Ok(jobs)
    }

    fn job(&self, due: Due, subject: Option<Subject>) -> Result<CallbackJob, StoreError> {
        let missing = || StoreError::Corrupt(format!("callback {}: what it is about is missing", due.key));
        let id = CallbackId::new(CallbackSubject::from_key(due.key).ok_or_else(missing)?, due.nonce.cast_unsigned());
        let news = match subject.ok_or_else(missing)? {
            Subject::Operation(row) => {
                let stored = self.decode(*row)?;
                if stored.operation.state == State::Pending {
                    return Err(StoreError::Corrupt(format!("callback {id}: its operation has no result")));
                }
                News::Operation(Box::new(stored))
            }
            Subject::Entry(row) => News::Entry(Box::new(row.decode(&self.vault)?)),
        };
        Ok(CallbackJob { id, target: due.target, attempts: due.attempts, queued_at: due.queued_at, news })
    }

    /// Runs a change, and tells the worker if it queued something.
    pub(super) async fn queueing<T: Send + 'static>(
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

    async fn make_ready(&self, id: CallbackId, now: UnixMillis) -> Result<(), StoreError> {
        let CallbackSubject::Entry(entry) = id.subject() else { return Ok(()) };
        // The address of an entry never changes: it may be read before the commit.
        let Some(url) = self.readers.read(|connection| subject::address_of_entry(connection, entry))? else {
            return Ok(());
        };
        let origin = origin_of(&url).map_err(|error| super::connection::store_error(&error))?;
        self.queueing(move |connection| queue::ready(connection, id, &origin, now), |ready| *ready).await.map(drop)
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
        let resend = move |connection: &Connection| tries::resend_failed(connection, &places, now);
        let count = self.queueing(resend, |count| *count > 0).await?;
        Ok((count, next))
    }
}

impl Outbox for SqliteStore {
    fn callbacks_queued(&self) -> &Notify {
        &self.queued
    }

    fn callback_queues(&self) -> Answer<'_, Vec<CallbackQueue>> {
        Box::pin(self.readers.read_aside(queue::queues))
    }

    fn claim_callbacks(&self, claim: CallbackClaim) -> Answer<'_, Vec<CallbackJob>> {
        Box::pin(self.claim_due(claim))
    }

    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| tries::record(connection, lease, &tried, next)))
    }

    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| queue::postpone(connection, lease, due)))
    }

    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.make_ready(id, now))
    }

    fn drop_callback(&self, lease: CallbackLease) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| queue::remove(connection, lease)))
    }

    fn expire_callbacks(&self, expiry: Expiry) -> Answer<'_, usize> {
        Box::pin(self.writer.submit(move |connection| queue::expire(connection, &expiry)))
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
        let relay = move |connection: &Connection| queue::relay(connection, entry, nonce, at);
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
        let resend = move |connection: &Connection| tries::resend(connection, id, now);
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
    pub(in crate::store::sqlite) use super::queue::{DUE, EXPIRED, NEXT_QUEUE};
}
