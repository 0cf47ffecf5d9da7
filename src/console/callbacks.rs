//! The views of callbacks and their receivers.

use serde::Serialize;

use super::chrome::Tone;
use crate::domain::UnixMillis;

/// A page of the list of callbacks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CallbacksView {
    /// The filter.
    pub filter: CallbackSearch,
    /// What is wrong with the filter.
    pub problem: Option<String>,
    /// What is to be known of what it found, such as that the merchant was removed.
    pub note: Option<String>,
    /// The callbacks of this page, newest first.
    pub callbacks: Vec<CallbackItem>,
    /// The parameter `after` of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub is_continued: bool,
    /// The receivers whose circuit is open: scheme, host and port.
    pub open_circuits: Vec<String>,
    /// How many further ones are not shown.
    pub more_circuits: usize,
}

/// The filter of callbacks, as it was sent; empty: any.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CallbackSearch {
    /// A state, or several separated by commas; empty: those not delivered.
    pub state: String,
    /// The merchant's id.
    pub merchant: String,
    /// The order id.
    pub order_id: String,
    /// Queued at or after this time; an age such as `2h` is a time, too.
    pub since: String,
    /// Queued before this time.
    pub until: String,
}

/// A callback in the list, and in the head of its own page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CallbackItem {
    /// The id.
    pub id: String,
    /// The merchant's id.
    pub merchant: String,
    /// The order id.
    pub order_id: String,
    /// `payin` or `payout`.
    pub direction: String,
    /// `pending`, `delivered` or `failed`.
    pub state: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// When it was queued or last resent.
    pub queued_at: UnixMillis,
    /// When the next attempt is due, if that is in the future.
    pub next_attempt_at: Option<UnixMillis>,
    /// Whether it is due, and its receiver cannot take it now.
    pub waits_for_receiver: bool,
    /// The outcome of the last attempt.
    pub last_outcome: Option<String>,
}

/// One callback. Its form has no field but `form`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CallbackView {
    /// The callback.
    pub callback: CallbackItem,
    /// The operation that it reports, if that is here.
    pub transaction_id: Option<String>,
    /// The address.
    pub url: String,
    /// The format of its body: `v1` or `v2`.
    pub format: String,
    /// Whether it is being sent now, so that it cannot be resent.
    pub is_under_way: bool,
    /// The attempts, the latest first.
    pub attempts: Vec<AttemptItem>,
}

/// An attempt to send a callback.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AttemptItem {
    /// When it began.
    pub at: UnixMillis,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The status or the error.
    pub outcome: String,
    /// Whether it was delivered.
    pub tone: Tone,
}

/// The count of the failed callbacks that a filter matches, before they are resent. Its form sends the filter again.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ResendAllView {
    /// The filter.
    pub filter: CallbackSearch,
    /// What is wrong with the filter, so that nothing was counted.
    pub problem: Option<String>,
    /// How many failed callbacks match.
    pub count: u64,
    /// Whether there are more than were counted.
    pub has_more: bool,
}

/// The form of a sample, as it was sent, and the outcome.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SampleView {
    /// The merchant's id.
    pub merchant: String,
    /// The format `v1` or `v2`; empty: as the merchant's rules have it.
    pub kind: String,
    /// The address; empty: the merchant's own.
    pub url: String,
    /// Why nothing was sent.
    pub problem: Option<String>,
    /// The outcome, after a sample was sent.
    pub result: Option<SampleResult>,
}

/// The outcome of a sample.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SampleResult {
    /// The sample's id.
    pub id: String,
    /// The address.
    pub url: String,
    /// The body, exactly as sent.
    pub body: String,
    /// The attempt.
    pub attempt: AttemptItem,
}
