//! What merchants must be told (contract section 10): queued in the commit that makes the result, and kept with every try.
//!
//! ```text
//!   result, relayed                 tried: a 2xx
//! ------------------> pending ---------------------> delivered
//!                     ^     |  tried: given up           |
//!                     |     +------------> failed        |
//!                     |                      |           |
//!                     +----------------------+-----------+
//!                                  resend
//! ```
//!
//! A pending callback waits in the queue of its [`CallbackTarget`], so that a target that is dead or slow holds up nobody
//! else's. What a remote engine announced waits for the engine's word first, in a queue of its own.

mod kept;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use tokio::sync::Notify;

use super::rows::callback::target_of;
use super::tasks::TaskQueue;
use super::{EntryId, JournalEntry, StoreFuture, Stored};
use crate::domain::{CallbackUrl, Direction, Fingerprint, MerchantId, OrderId, TransactionId, UnixMillis};

/// The durable outbox. Each method is one transaction.
pub trait Outbox: Send + Sync + 'static {
    /// Told after a commit that queued a callback or made one due.
    fn callbacks_queued(&self) -> &Notify;

    /// The targets with pending callbacks, each with the time when its earliest one is due (leased ones count with the end
    /// of their lease).
    fn callback_queues(&self) -> StoreFuture<'_, Vec<CallbackQueue>>;

    /// Takes pending callbacks that are due, of each target the earliest first, and hides them from other claims until the
    /// lease ends: the work of a process that died is taken up again then.
    fn claim_callbacks(&self, claim: CallbackClaim) -> StoreFuture<'_, Vec<CallbackJob>>;

    /// Keeps a try of a claimed callback with what follows from it. Of one callback the latest
    /// [`CallbackRecord::MAX_TRIES`] tries are kept, to the microsecond. A try that comes late, when its lease is over and
    /// the callback was claimed by somebody else, resent, told or given up meanwhile, is kept; what follows from it counts
    /// only if the receiver has the callback.
    fn callback_tried(&self, lease: CallbackLease, tried: CallbackTry, next: CallbackNext) -> StoreFuture<'_, ()>;

    /// Makes a claimed callback due at another time, without a try of its target: it could not be made. Counts as an
    /// attempt, so that waits grow. Nothing happens unless this is still the latest claim.
    fn postpone_callback(&self, lease: CallbackLease, due: UnixMillis) -> StoreFuture<'_, ()>;

    /// The result that an entry's callback waited for is known: it moves to the queue of the merchant's target, queued and
    /// due now, with a fresh count of attempts. Nothing happens when it does not wait for the engine.
    fn callback_ready(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, ()>;

    /// Forgets a claimed callback of an entry that has nothing to tell: its operation has no result after all. One that was
    /// announced anew or claimed by somebody else since it was claimed stays: they may have heard of a result.
    fn drop_callback(&self, lease: CallbackLease) -> StoreFuture<'_, ()>;

    /// Gives up pending callbacks that waited too long behind dead targets: they become failed without another try. How many there were.
    fn expire_callbacks(&self, expiry: ExpireRequest) -> StoreFuture<'_, usize>;

    /// Forgets callbacks that were delivered or given up, with their tries: those that were queued or last resent until a
    /// time, oldest first, at most so many of each. How many there were.
    fn forget_callbacks(&self, until: UnixMillis, limit: usize) -> StoreFuture<'_, usize>;

    /// Whom a relay address names: what this merchant's order of this key (see [`super::FingerprintKey::order_key`]) is, if it was
    /// made from v1 with the relay's address.
    fn addressee<'a>(&'a self, merchant: &'a MerchantId, order: Fingerprint) -> StoreFuture<'a, Option<RelayTarget>>;

    /// A remote engine announced the result of an entry: queues its callback in the queue of [`CallbackTarget::Engine`],
    /// unless it was told or has nobody to be told to. One that waits there and was asked for in vain, or was given up, is
    /// asked for anew, due now; whoever has claimed it loses its lease.
    fn relayed(&self, entry: EntryId, at: UnixMillis) -> StoreFuture<'_, Relayed>;

    /// A callback with its tries, oldest first.
    fn callback(&self, id: CallbackId) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>>;

    /// Callbacks, newest first: a slice of the list, read aside of the threads that serve.
    fn callbacks(&self, query: CallbackQuery) -> StoreFuture<'_, Vec<CallbackRecord>>;

    /// Makes a callback pending and due now, whatever became of it, with a fresh count of attempts. A lease that has ended
    /// at this time is nobody's.
    fn resend_callback(&self, id: CallbackId, now: UnixMillis) -> StoreFuture<'_, Resent>;

    /// Makes failed callbacks pending and due now, as [`Outbox::resend_callback`] does: of those that `query` finds (its
    /// `states` are not looked at), the newest `query.limit`. How many, and where the next slice goes on; `None`: there is
    /// none.
    fn resend_failed(&self, query: CallbackQuery, now: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)>;

    /// How much waits, and since when.
    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize>;
}

/// What a callback is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackSubject {
    /// An operation of the embedded engine.
    Operation(TransactionId),
    /// An operation of a remote engine: an entry of the journal.
    Entry(EntryId),
}

/// Names a callback, the same at every try: whom it is about, and a random number. Written as `cb_` and 32 lowercase
/// hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallbackId {
    subject: CallbackSubject,
    nonce: u64,
}

impl CallbackId {
    /// The name of a subject's callback with its random number.
    #[must_use]
    pub const fn new(subject: CallbackSubject, nonce: u64) -> Self {
        Self { subject, nonce }
    }

    /// Returns whether a text has the form of a name. Not everything that has it names a callback that there can be.
    #[must_use]
    pub fn has_form(text: &str) -> bool {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.strip_prefix("cb_").is_some_and(|digits| digits.len() == 32 && digits.bytes().all(is_digit))
    }

    /// Reads a name as it is written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("cb_").filter(|_| Self::has_form(text))?;
        let (key, nonce) = digits.split_at(16);
        let key = u64::from_str_radix(key, 16).ok()?.cast_signed();
        Some(Self { subject: CallbackSubject::from_key(key)?, nonce: u64::from_str_radix(nonce, 16).ok()? })
    }

    /// What it is about.
    #[must_use]
    pub const fn subject(self) -> CallbackSubject {
        self.subject
    }

    /// Its random number.
    #[must_use]
    pub const fn nonce(self) -> u64 {
        self.nonce
    }
}

impl fmt::Display for CallbackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cb_{:016x}{:016x}", self.subject.key(), self.nonce)
    }
}

impl CallbackSubject {
    /// A number for either kind: a `transaction_id`, or an entry's number below zero.
    #[must_use]
    pub const fn key(self) -> i64 {
        match self {
            Self::Operation(id) => id.to_stored(),
            Self::Entry(id) => -id.0,
        }
    }

    /// What a number names; `None` for zero and what no number of an entry can be.
    #[must_use]
    pub fn from_key(key: i64) -> Option<Self> {
        match TransactionId::from_stored(key) {
            Some(id) => Some(Self::Operation(id)),
            None => key.checked_neg().filter(|number| *number > 0).map(|number| Self::Entry(EntryId(number))),
        }
    }
}

/// Whose queue a callback waits in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallbackTarget {
    /// A remote engine, which has to tell the status first.
    Engine,
    /// Scheme, host and port of the address, such as `https://shop.example:443`.
    Origin(Box<str>),
}

impl CallbackTarget {
    /// The target of an address.
    #[must_use]
    pub fn of(url: &CallbackUrl) -> Self {
        Self::Origin(url.origin().into())
    }

    /// For people, logs and metrics.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Engine => "engine",
            Self::Origin(origin) => origin,
        }
    }
}

/// A target's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackQueue {
    /// Whose.
    pub target: CallbackTarget,
    /// When its earliest callback is due.
    pub due: UnixMillis,
    /// Whether that one was attempted before.
    pub tried: bool,
}

impl CallbackQueue {
    pub(super) fn of(queue: TaskQueue) -> Self {
        Self { target: target_of(queue.queue), due: queue.due_at, tried: queue.tried }
    }
}

/// Which callbacks to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackClaim {
    /// At most so many of each target.
    pub shares: Vec<(CallbackTarget, usize)>,
    /// Due at this time.
    pub now: UnixMillis,
    /// Hidden until this time.
    pub lease_until: UnixMillis,
}

/// Which callbacks to give up: pending ones that nobody is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRequest {
    /// In the queues of these targets.
    pub targets: HashSet<CallbackTarget>,
    /// Queued or last resent at or before this time.
    pub queued_until: UnixMillis,
    /// Their last error from then on.
    pub reason: &'static str,
    /// At most so many.
    pub limit: usize,
}

/// A claimed callback.
#[derive(Debug, Clone)]
pub struct CallbackJob {
    /// Its name.
    pub id: CallbackId,
    /// In whose queue it waited.
    pub target: CallbackTarget,
    /// How many attempts were made before, since it was queued or last resent.
    pub attempts: u32,
    /// When it was queued or last resent, by a clock that never stands still: what is queued anew in the same millisecond,
    /// or by a clock that was set back, is a millisecond later than before.
    pub queued_at: UnixMillis,
    /// What it tells.
    pub news: ResultChange,
}

impl CallbackJob {
    /// By what its claim is told from others.
    #[must_use]
    pub const fn lease(&self) -> CallbackLease {
        CallbackLease { id: self.id, queued_at: self.queued_at, attempts: self.attempts }
    }
}

/// A claim of a callback. Whoever claims the callback once the lease is over, or once it was queued anew, has another one:
/// each claim counts as an attempt, and a callback is never queued twice at the same time, see [`CallbackJob::queued_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallbackLease {
    /// The callback's name.
    pub id: CallbackId,
    /// When it had been queued or last resent.
    pub queued_at: UnixMillis,
    /// How many attempts had been made since then.
    pub attempts: u32,
}

impl CallbackLease {
    /// The count of attempts that the claim left behind.
    #[must_use]
    pub fn attempt(self) -> i64 {
        i64::from(self.attempts) + 1
    }
}

/// What a callback tells.
#[derive(Debug, Clone)]
pub enum ResultChange {
    /// Of an operation that is finished.
    Operation(Box<Stored>),
    /// Of an entry of the journal, with what was last heard of it.
    Entry(Box<JournalEntry>),
}

/// One try of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTry {
    /// When it began.
    pub at: UnixMillis,
    /// How long it took.
    pub duration: Duration,
    /// What came of it.
    pub outcome: TryOutcome,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryOutcome {
    /// The receiver answered with this HTTP status.
    Status(u16),
    /// No answer, and why: nothing of what was sent, and at most the target of where.
    Error(Box<str>),
}

/// For people: `HTTP 503`, or why there was no answer.
impl fmt::Display for TryOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::Error(error) => f.write_str(error),
        }
    }
}

/// What follows from a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackNext {
    /// The receiver has it.
    Delivered,
    /// It is given up until it is resent by hand.
    Failed,
    /// It is tried again at this time.
    RetryAt(UnixMillis),
}

/// Where a callback stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackState {
    /// It is tried, or will be.
    Pending,
    /// The receiver has it.
    Delivered,
    /// It was given up.
    Failed,
}

impl CallbackState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The word of lists and filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// A callback as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRecord {
    /// Its name.
    pub id: CallbackId,
    /// Whose operation it tells of.
    pub merchant: MerchantId,
    /// The operation's direction.
    pub direction: Direction,
    /// The operation's name for its merchant.
    pub order_id: OrderId,
    /// The operation's name for the service: digits. `None` for an entry whose engine has not told it.
    pub transaction_id: Option<Box<str>>,
    /// Where it is sent.
    pub url: CallbackUrl,
    /// In the merchant's v1 dialect, or as v2 tells it.
    pub is_v1: bool,
    /// Where it stands.
    pub state: CallbackState,
    /// In whose queue it waits, or waited last.
    pub target: CallbackTarget,
    /// Somebody has claimed it; when that was long ago, see [`CallbackRecord::is_under_way`].
    pub is_claimed: bool,
    /// When it was queued or last resent.
    pub queued_at: UnixMillis,
    /// When it is tried next, while it is pending.
    pub due: UnixMillis,
    /// How many tries were made in all.
    pub tries: u32,
    /// The last try's status or error, or why it was given up without one.
    pub last: Option<TryOutcome>,
}

impl CallbackRecord {
    /// How many tries of a callback are kept: more than fit into the default `give_up_after`.
    pub const MAX_TRIES: usize = 1000;

    /// Whether somebody is at it: a claim ends when the callback is due.
    #[must_use]
    pub fn is_under_way(&self, now: UnixMillis) -> bool {
        self.is_claimed && self.due > now
    }

    /// Its place in the list.
    #[must_use]
    pub const fn place(&self) -> CallbackCursor {
        CallbackCursor { queued_at: self.queued_at, key: self.id.subject().key() }
    }
}

/// A place in the list of callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallbackCursor {
    /// When the callback was queued or last resent.
    pub queued_at: UnixMillis,
    /// What it is about, see [`CallbackSubject::key`].
    pub key: i64,
}

/// Which callbacks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackQuery {
    /// In these states.
    pub states: Vec<CallbackState>,
    /// Of this merchant.
    pub merchant: Option<MerchantId>,
    /// Of operations with this name: in either direction. Needs `merchant`, else nothing is found.
    pub order_id: Option<OrderId>,
    /// Queued or last resent at or after this time.
    pub since: Option<UnixMillis>,
    /// Queued or last resent at or before this time.
    pub until: Option<UnixMillis>,
    /// Behind this place: older ones.
    pub after: Option<CallbackCursor>,
    /// At most so many.
    pub limit: usize,
}

impl CallbackQuery {
    /// What is found is before this place.
    pub(super) fn end(&self) -> CallbackCursor {
        let until = self.until.map_or(CallbackCursor { queued_at: UnixMillis(i64::MAX), key: i64::MAX }, |until| {
            CallbackCursor { queued_at: UnixMillis(until.0.saturating_add(1)), key: i64::MIN }
        });
        self.after.map_or(until, |after| after.min(until))
    }

    /// What is found was queued or last resent then or later.
    pub(super) fn begin(&self) -> UnixMillis {
        self.since.unwrap_or(UnixMillis(i64::MIN))
    }
}

/// What became of a wish to resend a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resent {
    /// It is pending and due now.
    Queued,
    /// It is being sent at this moment: nothing was changed.
    UnderWay,
    /// There is no such callback.
    Unknown,
}

/// Whom a relay address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayTarget {
    /// Whose order it is.
    pub merchant: MerchantId,
    /// The order's direction.
    pub direction: Direction,
    /// The order.
    pub order_id: OrderId,
    /// The key it came with.
    pub api_key: Box<str>,
    /// Its entry, when it passed to a remote engine; the embedded one tells by itself.
    pub entry: Option<EntryId>,
}

/// What became of a remote engine's announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    /// It is on disk, and will be told.
    Queued,
    /// It was before, or nobody is to be told.
    Nothing,
}

/// How much waits in the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboxSize {
    /// Callbacks that are tried, or will be.
    pub pending: u64,
    /// Callbacks that were given up.
    pub failed: u64,
    /// When the oldest pending one was queued.
    pub oldest: Option<UnixMillis>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let operation = CallbackSubject::Operation(TransactionId::from_stored(0x0123_4567_89ab_cdef).unwrap());
        for (subject, text) in [
            (operation, "cb_0123456789abcdef00000000000000ff"),
            (CallbackSubject::Entry(EntryId(1)), "cb_ffffffffffffffff00000000000000ff"),
        ] {
            let id = CallbackId::new(subject, 255);
            assert_eq!(id.to_string(), text);
            assert_eq!(CallbackId::parse(text), Some(id));
        }
        for wrong in [
            "",
            "cb_",
            "0123456789abcdef00000000000000ff",
            "cb_0123456789ABCDEF00000000000000ff",
            "cb_0123456789abcdef00000000000000f",
            "cb_0123456789abcdef00000000000000fff",
            "cb_+123456789abcdef00000000000000ff",
            "cb_000000000000000000000000000000ff",
            "cb_800000000000000000000000000000ff",
        ] {
            assert_eq!(CallbackId::parse(wrong), None, "{wrong}");
        }
    }
}
