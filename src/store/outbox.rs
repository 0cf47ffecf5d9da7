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

mod api;
pub(super) mod list;
pub(super) mod pending;
mod subjects;

pub use api::Outbox;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use super::rows::task::TaskQueue;
use super::{CallbackId, CallbackSubject, EntryId, JournalEntry, Stored};
use crate::domain::{CallbackUrl, Direction, MerchantId, OrderId, UnixMillis};

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
    pub change: ResultChange,
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
        CallbackCursor { at: self.queued_at, key: self.id.subject().key() }
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

/// A position in the list of callbacks, or among the pending ones of some targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallbackCursor {
    /// When the callback was queued or last resent; among pending ones, when it is due.
    pub at: UnixMillis,
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
    /// Selects the callbacks in some states, at most so many.
    #[must_use]
    pub fn of(states: impl Into<Vec<CallbackState>>, limit: usize) -> Self {
        Self { states: states.into(), merchant: None, order_id: None, since: None, until: None, after: None, limit }
    }
}

impl CallbackQuery {
    /// Returns the position before which all results are.
    pub(super) fn end(&self) -> CallbackCursor {
        let until = self.until.map_or(CallbackCursor { at: UnixMillis(i64::MAX), key: i64::MAX }, |until| {
            CallbackCursor { at: UnixMillis(until.0.saturating_add(1)), key: i64::MIN }
        });
        self.after.map_or(until, |after| after.min(until))
    }

    /// Returns the earliest time at which results were queued or last resent.
    pub(super) fn begin(&self) -> UnixMillis {
        self.since.unwrap_or(UnixMillis(i64::MIN))
    }
}

/// Selects pending callbacks that are not being sent, the earliest due first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQuery {
    /// The targets in whose queues they wait.
    pub targets: Vec<CallbackTarget>,
    /// Only callbacks after this position: due later.
    pub after: Option<CallbackCursor>,
    /// The most callbacks.
    pub limit: usize,
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
    /// Callbacks that are being tried, or will be, up to [`OutboxSize::MAX_COUNTED`].
    pub pending: u64,
    /// Callbacks that were given up, up to the same.
    pub failed: u64,
    /// When the oldest pending one was queued.
    pub oldest: Option<UnixMillis>,
}

impl OutboxSize {
    /// The most callbacks of a state that are counted.
    pub const MAX_COUNTED: u32 = 10_000;
}
