//! Callbacks (contract section 10). A callback is queued in the commit that completes its operation, and stored with
//! every try.
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
//! A pending callback waits in the queue of its [`CallbackTarget`], so that a dead or slow target delays only its own
//! callbacks, and no other merchant's. The callback of a journal entry first waits in the queue of the remote engine, until the engine has
//! confirmed the result.

mod blanket;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use tokio::sync::Notify;

use super::tasks::TaskQueue;
use super::{CallbackId, CallbackSubject, EntryId, JournalEntry, StoreFuture, Stored};
use crate::domain::{CallbackUrl, Direction, Fingerprint, MerchantId, OrderId, UnixMillis};

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

    /// Moves the callback of an entry, whose result is now known, to the queue of the merchant's target, due now, with
    /// a fresh count of attempts. Does nothing unless the callback waits for the engine.
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

    /// Returns the order that a relay address names: the one of this merchant with this key (see
    /// [`super::FingerprintKey::order_key`]), if it was created through v1 with the relay's address.
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

    /// Returns how many callbacks are in the outbox, and how old the oldest pending one is.
    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize>;
}

/// The queue in which a callback waits: of a merchant, for an origin. The order of targets is that of their merchants.
// The text of `tasks.queue`: merchant, space, origin. Neither of them contains a space.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallbackTarget(Box<str>);

impl CallbackTarget {
    /// Stands for the origin of a remote engine, which has to confirm the status first.
    pub const ENGINE: &'static str = "engine";

    /// Makes the target of a merchant's callbacks to an origin.
    #[must_use]
    pub fn new(merchant: &MerchantId, origin: &str) -> Self {
        Self::of_columns(merchant.as_str(), origin)
    }

    /// Makes the target of `callbacks.merchant` and `callbacks.target`.
    pub(in crate::store) fn of_columns(merchant: &str, origin: &str) -> Self {
        Self(format!("{merchant} {origin}").into())
    }

    /// Makes the target of `tasks.queue`.
    pub(in crate::store) fn of_queue(queue: impl Into<Box<str>>) -> Self {
        Self(queue.into())
    }

    /// Returns the name of its queue: the text of `tasks.queue`.
    #[must_use]
    pub fn as_queue(&self) -> &str {
        &self.0
    }

    /// Returns the merchant's id.
    #[must_use]
    pub fn merchant(&self) -> &str {
        self.parts().0
    }

    /// Returns scheme, host and port of the address, such as `https://shop.example:443`, or [`Self::ENGINE`]: the text
    /// shown in logs, metrics and lists.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.parts().1
    }

    /// Reports whether a remote engine has to confirm the status first.
    #[must_use]
    pub fn is_engine(&self) -> bool {
        self.origin() == Self::ENGINE
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(' ').unwrap_or(("", &self.0))
    }
}

/// A target's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackQueue {
    /// The target.
    pub target: CallbackTarget,
    /// When its earliest callback is due.
    pub due: UnixMillis,
    /// Whether that callback was attempted before.
    pub tried: bool,
}

impl CallbackQueue {
    /// The most queues of a merchant that are listed at once.
    pub const MAX_OF_MERCHANT: usize = 1024;

    pub(super) fn of(queue: TaskQueue) -> Self {
        Self { target: CallbackTarget::of_queue(queue.queue), due: queue.due_at, tried: queue.tried }
    }
}

/// Selects the callbacks to claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackClaim {
    /// The most callbacks to claim for each target.
    pub shares: Vec<(CallbackTarget, usize)>,
    /// The current time: callbacks due by then are claimed.
    pub now: UnixMillis,
    /// When the lease ends.
    pub lease_until: UnixMillis,
}

/// Selects the callbacks to give up: pending ones without a valid lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRequest {
    /// The targets in whose queues to look.
    pub targets: HashSet<CallbackTarget>,
    /// Queued or last resent at or before this time.
    pub queued_until: UnixMillis,
    /// The error to store as their last one.
    pub reason: &'static str,
    /// The most callbacks to give up.
    pub limit: usize,
}

/// A claimed callback.
#[derive(Debug, Clone)]
pub struct CallbackJob {
    /// The callback's id.
    pub id: CallbackId,
    /// The target in whose queue it waited.
    pub target: CallbackTarget,
    /// How many attempts were made before, since it was queued or last resent.
    pub attempts: u32,
    /// When it was queued or last resent. Strictly ascending for each callback: one that is requeued in the same
    /// millisecond, or after a clock was set back, gets a time one millisecond after its previous one.
    pub queued_at: UnixMillis,
    /// The result to deliver.
    pub news: ResultChange,
}

impl CallbackJob {
    /// Returns what identifies this claim.
    #[must_use]
    pub const fn lease(&self) -> CallbackLease {
        CallbackLease { id: self.id, queued_at: self.queued_at, attempts: self.attempts }
    }
}

/// Identifies one claim of a callback. A later claim, after the lease has ended or the callback was requeued, has
/// another value: each claim counts as an attempt, and a callback is never queued twice at the same time, see
/// [`CallbackJob::queued_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallbackLease {
    /// The callback's id.
    pub id: CallbackId,
    /// When the callback had been queued or last resent.
    pub queued_at: UnixMillis,
    /// How many attempts had been made since then.
    pub attempts: u32,
}

impl CallbackLease {
    /// Returns the count of attempts including this claim.
    #[must_use]
    pub fn attempt(self) -> i64 {
        i64::from(self.attempts) + 1
    }
}

/// The result that a callback delivers.
#[derive(Debug, Clone)]
pub enum ResultChange {
    /// Of a completed operation.
    Operation(Box<Stored>),
    /// Of a journal entry, with its status as last received.
    Entry(Box<JournalEntry>),
}

/// One try of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTry {
    /// When it began.
    pub at: UnixMillis,
    /// How long it took.
    pub duration: Duration,
    /// Its result.
    pub outcome: TryOutcome,
}

/// The result of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryOutcome {
    /// The receiver replied with this HTTP status.
    Status(u16),
    /// No reply, and why. The text holds nothing of the request, and of the address at most the target.
    Error(Box<str>),
}

impl TryOutcome {
    /// Reports whether the receiver accepted the callback.
    #[must_use]
    pub const fn is_delivered(&self) -> bool {
        matches!(self, Self::Status(200..=299))
    }
}

/// Formats the outcome for people: `HTTP 503`, or why there was no reply.
impl fmt::Display for TryOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::Error(error) => f.write_str(error),
        }
    }
}

/// What happens to a callback after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackNext {
    /// It was delivered.
    Delivered,
    /// It is given up until an operator resends it.
    Failed,
    /// It is tried again at this time.
    RetryAt(UnixMillis),
}

/// The state of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackState {
    /// It is being tried, or will be.
    Pending,
    /// The receiver accepted it.
    Delivered,
    /// It was given up.
    Failed,
}

impl CallbackState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// Returns the word used in lists and filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// A callback as shown in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRecord {
    /// The callback's id.
    pub id: CallbackId,
    /// The merchant of the operation.
    pub merchant: MerchantId,
    /// The operation's direction.
    pub direction: Direction,
    /// The merchant's id of the operation.
    pub order_id: OrderId,
    /// The service's id of the operation: digits. `None` for an entry whose engine has not sent it.
    pub transaction_id: Option<Box<str>>,
    /// The address it is sent to.
    pub url: CallbackUrl,
    /// Whether it has the merchant's v1 format; otherwise the v2 format.
    pub is_v1: bool,
    /// Its state.
    pub state: CallbackState,
    /// The target in whose queue it waits, or waited last.
    pub target: CallbackTarget,
    /// Whether it has been claimed; the lease may be over, see [`CallbackRecord::is_under_way`].
    pub is_claimed: bool,
    /// When it was queued or last resent.
    pub queued_at: UnixMillis,
    /// When it is tried next, while it is pending.
    pub due: UnixMillis,
    /// How many tries were made in total.
    pub tries: u32,
    /// The last try's outcome, or why it was given up without one.
    pub last: Option<TryOutcome>,
}

impl CallbackRecord {
    /// The most tries stored for a callback: more than fit into the default `give_up_after`.
    pub const MAX_TRIES: usize = 1000;

    /// Reports whether a worker holds a valid lease of it: a lease ends when the callback is due.
    #[must_use]
    pub fn is_under_way(&self, now: UnixMillis) -> bool {
        self.is_claimed && self.due > now
    }

    /// Returns when it is sent next, as of `now`. What is due and not under way waits for its receiver: until one of the
    /// places for it is free, or, while its circuit is open, until a probe is answered.
    #[must_use]
    pub fn next_attempt(&self, now: UnixMillis) -> NextAttempt {
        match self.state {
            _ if self.is_under_way(now) => NextAttempt::UnderWay,
            CallbackState::Delivered | CallbackState::Failed => NextAttempt::None,
            CallbackState::Pending if self.due <= now => NextAttempt::WaitsForReceiver,
            CallbackState::Pending => NextAttempt::At(self.due),
        }
    }

    /// Returns its position in the list.
    #[must_use]
    pub const fn place(&self) -> CallbackCursor {
        CallbackCursor { queued_at: self.queued_at, key: self.id.subject().key() }
    }
}

/// When a callback is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Not again: it is delivered or failed.
    None,
    /// It is being sent.
    UnderWay,
    /// It is due, and its receiver cannot take it now.
    WaitsForReceiver,
    /// At this time.
    At(UnixMillis),
}

/// A position in the list of callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallbackCursor {
    /// When the callback was queued or last resent.
    pub queued_at: UnixMillis,
    /// The subject's number, see [`CallbackSubject::key`].
    pub key: i64,
}

/// Selects the callbacks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackQuery {
    /// Only callbacks in these states.
    pub states: Vec<CallbackState>,
    /// Only callbacks of this merchant.
    pub merchant: Option<MerchantId>,
    /// Only callbacks of operations with this `order_id`, in either direction. Requires `merchant`; without it nothing
    /// matches.
    pub order_id: Option<OrderId>,
    /// Queued or last resent at or after this time.
    pub since: Option<UnixMillis>,
    /// Queued or last resent at or before this time.
    pub until: Option<UnixMillis>,
    /// Only callbacks after this position: older ones.
    pub after: Option<CallbackCursor>,
    /// The most callbacks to return.
    pub limit: usize,
}

impl CallbackQuery {
    /// Returns the position before which all results are.
    pub(super) fn end(&self) -> CallbackCursor {
        let until = self.until.map_or(CallbackCursor { queued_at: UnixMillis(i64::MAX), key: i64::MAX }, |until| {
            CallbackCursor { queued_at: UnixMillis(until.0.saturating_add(1)), key: i64::MIN }
        });
        self.after.map_or(until, |after| after.min(until))
    }

    /// Returns the earliest time at which results were queued or last resent.
    pub(super) fn begin(&self) -> UnixMillis {
        self.since.unwrap_or(UnixMillis(i64::MIN))
    }
}

/// The outcome of resending a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resent {
    /// It is pending and due now.
    Queued,
    /// It is being sent at this moment: nothing was changed.
    UnderWay,
    /// There is no such callback.
    Unknown,
}

/// The order that a relay address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayTarget {
    /// The merchant of the order.
    pub merchant: MerchantId,
    /// The order's direction.
    pub direction: Direction,
    /// The order.
    pub order_id: OrderId,
    /// The API key that created it.
    pub api_key: Box<str>,
    /// Its journal entry, if it was forwarded to a remote engine. The embedded engine queues its callbacks itself.
    pub entry: Option<EntryId>,
}

/// The outcome of a remote engine's announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    /// The callback is queued, on disk.
    Queued,
    /// Nothing was changed: the callback exists, or the merchant gave no address.
    Nothing,
}

/// The size of the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboxSize {
    /// Callbacks that are being tried, or will be.
    pub pending: u64,
    /// Callbacks that were given up.
    pub failed: u64,
    /// When the oldest pending one was queued.
    pub oldest: Option<UnixMillis>,
}
