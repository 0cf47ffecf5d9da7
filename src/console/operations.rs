//! The views of operations.

use serde::Serialize;

use super::chrome::Tone;
use crate::domain::UnixMillis;

/// The search for operations and what it found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OperationsView {
    /// The search.
    pub search: OperationSearch,
    /// What is wrong with the search.
    pub problem: Option<String>,
    /// What is to be known of what it found, such as that the merchant was removed.
    pub note: Option<String>,
    /// Whether a search was made.
    pub is_searched: bool,
    /// What it found.
    pub found: Vec<OperationItem>,
    /// Where the order is if not here, such as with the old v1 service.
    pub elsewhere: Option<String>,
}

/// A search by transaction id, or by merchant and order; empty: not given.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OperationSearch {
    /// The transaction id.
    pub transaction_id: String,
    /// The merchant's id.
    pub merchant: String,
    /// `payin`, `payout`, or empty: either.
    pub direction: String,
    /// The order id.
    pub order_id: String,
}

/// An operation in a list, and in the head of its own page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OperationItem {
    /// The transaction id.
    pub transaction_id: String,
    /// The merchant's id.
    pub merchant: String,
    /// The order id.
    pub order_id: String,
    /// `payin` or `payout`.
    pub direction: String,
    /// `PENDING`, `SUCCESS` or `FAILED`.
    pub status: String,
    /// The amount, with its decimals.
    pub amount: String,
    /// The currency.
    pub currency: String,
    /// When it was created.
    pub created_at: UnixMillis,
}

/// One operation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OperationPageView {
    /// The operation.
    pub operation: OperationItem,
    /// Further facts, such as shop, method, provider and the masked account, in the order in which they are shown.
    pub facts: Vec<Fact>,
    /// What happened, the first first.
    pub timeline: Vec<TimelineEntry>,
    /// What the timeline lacks and why, such as removed attempts.
    pub note: Option<String>,
}

/// A fact about an operation or an action.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// Its value, masked where it has to be.
    pub value: String,
}

/// An event in the life of an operation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TimelineEntry {
    /// When it happened.
    pub at: UnixMillis,
    /// Its meaning.
    pub tone: Tone,
    /// What happened, in a few words.
    pub title: String,
    /// More about it.
    pub detail: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The id of the callback that it is an attempt of.
    pub callback_id: Option<String>,
}
