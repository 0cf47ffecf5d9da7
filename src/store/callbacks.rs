//! The transactions on callbacks: results of tries, announcements of remote engines, resends and expiry.
//!
//! | result of a try | lease valid | pending, lease lost | delivered | failed |
//! |---|---|---|---|---|
//! | delivered | delivered | delivered | delivered | delivered |
//! | given up | failed | unchanged | unchanged | unchanged |
//! | retry later | due then | unchanged | unchanged | unchanged |
//!
//! Every try is stored. In all columns but the first the try is late: its lease had ended, and the callback was claimed
//! again, finished or resent since. A pending callback has a task in the queue of its target; others have none.

use super::rows::callback::max_tries;
use super::tasks::{NewTask, TaskKind, TaskRows, TaskState};
use super::{
    CallbackId, CallbackLease, CallbackNext, CallbackState, CallbackSubject, CallbackTarget, CallbackTry,
    ExpireRequest, Resent, TryOutcome,
};
use crate::domain::UnixMillis;

/// A callback and its task, as stored.
#[derive(Debug)]
pub(super) struct CallbackRow {
    pub(super) subject: CallbackSubject,
    pub(super) nonce: i64,
    pub(super) state: CallbackState,
    pub(super) target: CallbackTarget,
    /// When it was queued or last resent.
    pub(super) queued_at: UnixMillis,
    pub(super) tries: i64,
    /// Present while it is pending.
    pub(super) task: Option<TaskState>,
}

impl CallbackRow {
    /// Reports whether this lease is of the latest claim, and the callback was not requeued since.
    fn is_leased_for(&self, lease: CallbackLease) -> bool {
        self.task
            .is_some_and(|task| task.is_leased && task.queued_at == lease.queued_at && task.attempts == lease.attempt())
    }

    /// Reports whether an announcement makes the engine be queried again: it was queried before without success, or the
    /// callback was given up.
    pub(super) fn can_be_queried_again(&self) -> bool {
        let was_queried = self.task.map_or(self.state == CallbackState::Failed, |task| task.attempts > 0);
        self.target.is_engine() && was_queried
    }
}

/// The row operations on callbacks.
pub(super) trait CallbackRows: TaskRows {
    /// Inserts a callback and its task, due at once.
    ///
    /// # Errors
    /// Its subject has a callback already.
    async fn queue_callback(&mut self, callback: NewCallback<'_>) -> Result<(), Self::Error>;

    /// Reads a callback and its task, and locks them.
    async fn locked_callback(&mut self, subject: CallbackSubject) -> Result<Option<CallbackRow>, Self::Error>;

    /// Inserts a try of a callback.
    async fn insert_try(
        &mut self,
        subject: CallbackSubject,
        number: i64,
        tried: &CallbackTry,
    ) -> Result<(), Self::Error>;

    /// Reports whether the try with this number exists and equals `tried`.
    async fn is_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry)
    -> Result<bool, Self::Error>;

    /// Deletes the tries of a callback up to a number.
    async fn remove_tries(&mut self, subject: CallbackSubject, until: i64) -> Result<(), Self::Error>;

    /// Updates a callback's state, count of tries and last outcome.
    async fn set_tried(
        &mut self,
        subject: CallbackSubject,
        state: CallbackState,
        tries: i64,
        outcome: &TryOutcome,
    ) -> Result<(), Self::Error>;

    /// Updates a callback's count of tries.
    async fn count_try(&mut self, subject: CallbackSubject, tries: i64) -> Result<(), Self::Error>;

    /// Makes a callback pending and clears all but its count of tries. The caller queues its task.
    async fn set_queued(
        &mut self,
        subject: CallbackSubject,
        target: &CallbackTarget,
        queued_at: UnixMillis,
    ) -> Result<(), Self::Error>;

    /// Reads and locks the pending callbacks that match an [`ExpireRequest`] and have no valid lease; returns their
    /// keys. Skips rows that another node has locked.
    async fn late_callbacks(&mut self, expiry: &ExpireRequest) -> Result<Vec<i64>, Self::Error>;

    /// Marks locked callbacks failed, and ends their tasks.
    async fn give_up(&mut self, keys: &[i64], reason: &str) -> Result<(), Self::Error>;

    /// Requeues those of the callbacks that are failed; returns how many.
    async fn queue_failed(&mut self, keys: &[i64], now: UnixMillis) -> Result<usize, Self::Error>;

    /// Deletes a callback with its tries and its task, if it exists.
    async fn remove_callback(&mut self, subject: CallbackSubject) -> Result<(), Self::Error>;
}

/// Reads and locks the callback with this id.
pub(super) async fn locked_by_id<R: CallbackRows>(
    rows: &mut R,
    id: CallbackId,
) -> Result<Option<CallbackRow>, R::Error> {
    let found = rows.locked_callback(id.subject()).await?;
    Ok(found.filter(|found| found.nonce == id.nonce().cast_signed()))
}

/// Stores a try and applies its result. A late try that is stored already was committed before, and only the
/// confirmation was lost. A try in time cannot have been stored before, because that would have ended its lease.
pub(super) async fn record<R: CallbackRows>(
    rows: &mut R,
    lease: CallbackLease,
    tried: &CallbackTry,
    next: CallbackNext,
) -> Result<(), R::Error> {
    let subject = lease.id.subject();
    let Some(callback) = locked_by_id(rows, lease.id).await? else { return Ok(()) };
    let in_time = callback.is_leased_for(lease);
    if !in_time && rows.is_try(subject, callback.tries, tried).await? {
        return Ok(());
    }
    let number = callback.tries.saturating_add(1);
    rows.insert_try(subject, number, tried).await?;
    if number > max_tries() {
        rows.remove_tries(subject, number - max_tries()).await?;
    }
    let state = match next {
        CallbackNext::Delivered => CallbackState::Delivered,
        CallbackNext::Failed if in_time => CallbackState::Failed,
        CallbackNext::RetryAt(due) if in_time => {
            rows.release_task(TaskKind::Callback, subject.key(), due).await?;
            CallbackState::Pending
        }
        CallbackNext::Failed | CallbackNext::RetryAt(_) => return rows.count_try(subject, number).await,
    };
    rows.set_tried(subject, state, number, &tried.outcome).await?;
    if state != CallbackState::Pending && callback.task.is_some() {
        rows.end_task(TaskKind::Callback, subject.key()).await?;
    }
    Ok(())
}

/// Makes a claimed callback due at another time. Does nothing unless this is still the latest claim.
pub(super) async fn postpone<R: CallbackRows>(
    rows: &mut R,
    lease: CallbackLease,
    due: UnixMillis,
) -> Result<(), R::Error> {
    if !locked_by_id(rows, lease.id).await?.is_some_and(|callback| callback.is_leased_for(lease)) {
        return Ok(());
    }
    rows.release_task(TaskKind::Callback, lease.id.subject().key(), due).await
}

/// Deletes a claimed callback of an entry with its tries, unless it was announced or claimed again since. Never deletes
/// the callback of an operation: that has a result to deliver.
pub(super) async fn remove<R: CallbackRows>(rows: &mut R, lease: CallbackLease) -> Result<(), R::Error> {
    let subject = lease.id.subject();
    let CallbackSubject::Entry(_) = subject else { return Ok(()) };
    match locked_by_id(rows, lease.id).await? {
        Some(callback) if callback.is_leased_for(lease) => rows.remove_callback(subject).await,
        _ => Ok(()),
    }
}

/// Makes a callback pending and due, and clears all but its tries, unless a worker holds a valid lease of it.
pub(super) async fn resend<R: CallbackRows>(rows: &mut R, id: CallbackId, now: UnixMillis) -> Result<Resent, R::Error> {
    match locked_by_id(rows, id).await? {
        None => Ok(Resent::Unknown),
        Some(CallbackRow { task: Some(task), .. }) if task.is_leased && task.due_at > now => Ok(Resent::UnderWay),
        Some(callback) => {
            let target = callback.target.clone();
            requeue(rows, &callback, target, now).await.map(|()| Resent::Queued)
        }
    }
}

/// Makes a callback pending and due in a queue.
pub(super) async fn requeue<R: CallbackRows>(
    rows: &mut R,
    callback: &CallbackRow,
    target: CallbackTarget,
    now: UnixMillis,
) -> Result<(), R::Error> {
    // A lease is identified by the time of queueing, so that time must be new.
    let queued_at = now.max(UnixMillis(callback.queued_at.0.saturating_add(1)));
    rows.set_queued(callback.subject, &target, queued_at).await?;
    let (kind, key) = (TaskKind::Callback, callback.subject.key());
    rows.put_task(NewTask { kind, key, queue: target.as_queue(), queued_at, due_at: now }).await
}

/// Gives up callbacks of some targets that were queued until a time and have no valid lease: an expired lease belongs
/// to a worker that is gone. Returns how many.
pub(super) async fn expire<R: CallbackRows>(rows: &mut R, expiry: &ExpireRequest) -> Result<usize, R::Error> {
    let late = rows.late_callbacks(expiry).await?;
    rows.give_up(&late, expiry.reason).await.map(|()| late.len())
}

/// A callback about to be queued.
#[derive(Debug)]
pub(super) struct NewCallback<'a> {
    pub(super) id: CallbackId,
    pub(super) target: &'a CallbackTarget,
    pub(super) at: UnixMillis,
}
