//! What happens to callbacks in a transaction: tries and what follows from them, announcements, and what is sent again.
//!
//! | a try says | leased for it | pending, not leased for it | delivered | failed |
//! |---|---|---|---|---|
//! | the receiver has it | delivered | delivered | delivered | delivered |
//! | given up | failed | as it is | as it is | as it is |
//! | again at a time | due then | as it is | as it is | as it is |
//!
//! Every try is kept. In the columns to the right of the first it comes late: its lease had ended, and somebody else's
//! lease or word, or a wish to resend, stands. A pending callback has a task in the queue of its target; others have none.

use super::journal::moves::EntryRows;
use super::rows::callback::{kept, origin_of};
use super::tasks::{NewTask, TaskKind, TaskRows, TaskState};
use super::transaction::NewCallback;
use super::{
    CallbackId, CallbackLease, CallbackNext, CallbackState, CallbackSubject, CallbackTarget, CallbackTry, EntryId,
    ExpireRequest, Relayed, Resent, TryOutcome,
};
use crate::domain::UnixMillis;

/// Where a callback stands.
#[derive(Debug)]
pub(super) struct CallbackRow {
    pub(super) subject: CallbackSubject,
    pub(super) nonce: i64,
    pub(super) state: CallbackState,
    pub(super) target: CallbackTarget,
    /// Or last resent.
    pub(super) queued_at: UnixMillis,
    pub(super) tries: i64,
    /// Present while it is pending.
    pub(super) task: Option<TaskState>,
}

impl CallbackRow {
    /// Whether this claim of it is the latest, and it was not queued anew since.
    fn is_leased_for(&self, lease: CallbackLease) -> bool {
        self.task
            .is_some_and(|task| task.is_leased && task.queued_at == lease.queued_at && task.attempts == lease.attempt())
    }

    /// Whether an announcement has the engine asked once more: it was asked for before, or given up.
    fn may_be_asked_anew(&self) -> bool {
        let asked = self.task.map_or(self.state == CallbackState::Failed, |task| task.attempts > 0);
        self.target == CallbackTarget::Engine && asked
    }
}

/// What a transaction does with callbacks.
pub(super) trait CallbackRows: TaskRows {
    /// Inserts a callback and its task, due at once. An error when its subject has one.
    async fn queue_callback(&mut self, callback: NewCallback<'_>) -> Result<(), Self::Error>;

    /// Reads a callback and its task; locked.
    async fn locked_callback(&mut self, subject: CallbackSubject) -> Result<Option<CallbackRow>, Self::Error>;

    /// Inserts a try of a callback.
    async fn insert_try(
        &mut self,
        subject: CallbackSubject,
        number: i64,
        tried: &CallbackTry,
    ) -> Result<(), Self::Error>;

    /// Whether a try of a number is there and is this one.
    async fn is_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry)
    -> Result<bool, Self::Error>;

    /// Removes the tries of a callback up to a number.
    async fn remove_tries(&mut self, subject: CallbackSubject, until: i64) -> Result<(), Self::Error>;

    /// Writes the state of a callback, how many tries there were, and what came of the last one.
    async fn set_tried(
        &mut self,
        subject: CallbackSubject,
        state: CallbackState,
        tries: i64,
        outcome: &TryOutcome,
    ) -> Result<(), Self::Error>;

    /// Writes how many tries of a callback there were.
    async fn count_try(&mut self, subject: CallbackSubject, tries: i64) -> Result<(), Self::Error>;

    /// Makes a callback pending, with nothing known of it but its tries; its task is queued beside.
    async fn set_queued(
        &mut self,
        subject: CallbackSubject,
        target: &CallbackTarget,
        queued_at: UnixMillis,
    ) -> Result<(), Self::Error>;

    /// Reads the pending callbacks of an [`ExpireRequest`] that nobody is at, by their keys; locked. What another node changes at this
    /// moment is left to it.
    async fn late_callbacks(&mut self, expiry: &ExpireRequest) -> Result<Vec<i64>, Self::Error>;

    /// Gives callbacks up that are locked, and ends their tasks.
    async fn give_up(&mut self, keys: &[i64], reason: &str) -> Result<(), Self::Error>;

    /// Makes those of some callbacks pending and due that are failed; how many.
    async fn queue_failed(&mut self, keys: &[i64], now: UnixMillis) -> Result<usize, Self::Error>;

    /// Removes a callback with its tries and its task, if there is one.
    async fn remove_callback(&mut self, subject: CallbackSubject) -> Result<(), Self::Error>;
}

/// Reads the callback of a name; locked.
async fn of_name<R: CallbackRows>(rows: &mut R, id: CallbackId) -> Result<Option<CallbackRow>, R::Error> {
    let found = rows.locked_callback(id.subject()).await?;
    Ok(found.filter(|found| found.nonce == id.nonce().cast_signed()))
}

/// Keeps a try with what follows from it. What is kept already was committed before, and only the word of it lost: what comes
/// in time was never kept before, since its lease would have ended with that.
pub(super) async fn record<R: CallbackRows>(
    rows: &mut R,
    lease: CallbackLease,
    tried: &CallbackTry,
    next: CallbackNext,
) -> Result<(), R::Error> {
    let subject = lease.id.subject();
    let Some(callback) = of_name(rows, lease.id).await? else { return Ok(()) };
    let in_time = callback.is_leased_for(lease);
    if !in_time && rows.is_try(subject, callback.tries, tried).await? {
        return Ok(());
    }
    let number = callback.tries.saturating_add(1);
    rows.insert_try(subject, number, tried).await?;
    if number > kept() {
        rows.remove_tries(subject, number - kept()).await?;
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

/// Makes a claimed callback due at another time; nothing happens unless this is still the latest claim.
pub(super) async fn postpone<R: CallbackRows>(
    rows: &mut R,
    lease: CallbackLease,
    due: UnixMillis,
) -> Result<(), R::Error> {
    if !of_name(rows, lease.id).await?.is_some_and(|callback| callback.is_leased_for(lease)) {
        return Ok(());
    }
    rows.release_task(TaskKind::Callback, lease.id.subject().key(), due).await
}

/// Moves a callback from the engine's queue to the one of its merchant's target, where its time begins; whether it did.
pub(super) async fn ready<R: EntryRows>(rows: &mut R, id: CallbackId, now: UnixMillis) -> Result<bool, R::Error> {
    let CallbackSubject::Entry(entry) = id.subject() else { return Ok(false) };
    let Some(url) = rows.entry(entry).await?.and_then(|entry| entry.v1_callback_url) else { return Ok(false) };
    let Some(callback) = of_name(rows, id).await? else { return Ok(false) };
    if callback.task.is_none() || callback.target != CallbackTarget::Engine {
        return Ok(false);
    }
    let target = CallbackTarget::Origin(origin_of(&url)?.into());
    queue_again(rows, &callback, target, now).await.map(|()| true)
}

/// Removes a claimed callback of an entry with its tries, unless it was announced anew or claimed by somebody else since. An
/// operation's result is always told.
pub(super) async fn remove<R: CallbackRows>(rows: &mut R, lease: CallbackLease) -> Result<(), R::Error> {
    let subject = lease.id.subject();
    let CallbackSubject::Entry(_) = subject else { return Ok(()) };
    match of_name(rows, lease.id).await? {
        Some(callback) if callback.is_leased_for(lease) => rows.remove_callback(subject).await,
        _ => Ok(()),
    }
}

/// Queues what a remote engine announced, unless there is nobody to be told or it is there. What waits for the engine's word
/// and was asked for before, or given up, is asked for anew: whoever is at it now may have asked too early, and loses its
/// lease.
pub(super) async fn relay<R: EntryRows>(
    rows: &mut R,
    entry: EntryId,
    nonce: u64,
    at: UnixMillis,
) -> Result<Relayed, R::Error> {
    // An entry is told of once, and not withdrawn meanwhile.
    let Some(found) = rows.locked_entry(entry).await? else { return Ok(Relayed::Nothing) };
    let subject = CallbackSubject::Entry(entry);
    match rows.locked_callback(subject).await? {
        Some(callback) if callback.may_be_asked_anew() => {
            queue_again(rows, &callback, CallbackTarget::Engine, at).await.map(|()| Relayed::Queued)
        }
        None if found.v1_callback_url.is_some() => {
            let (id, target) = (CallbackId::new(subject, nonce), CallbackTarget::Engine.as_str());
            rows.queue_callback(NewCallback { id, merchant: &found.merchant, target, at }).await?;
            Ok(Relayed::Queued)
        }
        Some(_) | None => Ok(Relayed::Nothing),
    }
}

/// Makes a callback pending and due, with nothing known of it but its earlier tries, unless somebody is at it: the end of a
/// lease shows that nobody is.
pub(super) async fn resend<R: CallbackRows>(rows: &mut R, id: CallbackId, now: UnixMillis) -> Result<Resent, R::Error> {
    match of_name(rows, id).await? {
        None => Ok(Resent::Unknown),
        Some(CallbackRow { task: Some(task), .. }) if task.is_leased && task.due_at > now => Ok(Resent::UnderWay),
        Some(callback) => {
            let target = callback.target.clone();
            queue_again(rows, &callback, target, now).await.map(|()| Resent::Queued)
        }
    }
}

/// Makes a callback pending and due in a queue.
async fn queue_again<R: CallbackRows>(
    rows: &mut R,
    callback: &CallbackRow,
    target: CallbackTarget,
    now: UnixMillis,
) -> Result<(), R::Error> {
    // A claim is told by when its callback was queued: that is never the same twice.
    let queued_at = now.max(UnixMillis(callback.queued_at.0.saturating_add(1)));
    rows.set_queued(callback.subject, &target, queued_at).await?;
    let (kind, key) = (TaskKind::Callback, callback.subject.key());
    rows.put_task(NewTask { kind, key, queue: target.as_str(), queued_at, due_at: now }).await
}

/// Gives up what was queued until a time for some targets and what nobody is at: a lease that ended by then was somebody's who
/// is gone. How many there were.
pub(super) async fn expire<R: CallbackRows>(rows: &mut R, expiry: &ExpireRequest) -> Result<usize, R::Error> {
    let late = rows.late_callbacks(expiry).await?;
    rows.give_up(&late, expiry.reason).await.map(|()| late.len())
}
