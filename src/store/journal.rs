//! The journal of creates that are forwarded to a remote engine (contract section 6). An entry is committed before the
//! request leaves, so that a crash between the request and its reply loses nothing.
//!
//! ```text
//!            record_create          answer
//! (nothing) --------------> open --------------------> answered
//!                            |  mark_unknown   answer     ^
//!                            +-------> in doubt ----------+
//!                            |             |
//!        cancel <------------+-------------+
//! ```
//!
//! An entry is in doubt when the engine may have accepted its request, and the caller was answered that the outcome is
//! unknown. It is resolved by sending the same body again, when the caller repeats the create or queries it. An entry
//! that is open when a process starts was interrupted by the end of the previous process. An entry is cancelled only
//! when nothing can come of its request any more.

mod api;
pub(super) mod entries;
pub(super) mod moves;
pub(super) mod numbers;

pub use api::Journal;

use crate::domain::{
    AccountNumber, Amount, CallbackUrl, Currency, Direction, Fingerprint, MemberFingerprints, MerchantId, OrderId,
    RedirectUrl, Status, UnixMillis,
};

/// The id of an entry; ascends with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub i64);

/// A create that is about to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingCreate {
    /// The merchant.
    pub merchant: MerchantId,
    /// Payin or payout.
    pub direction: Direction,
    /// `external_id`.
    pub order_id: OrderId,
    /// The API key of the request.
    pub api_key: Box<str>,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// The selected shop's code, as the request or the merchant's default names it; it need not exist.
    pub shop: Option<Box<str>>,
    /// The keyed hash of the v1 body.
    pub fingerprint: Fingerprint,
    /// Fingerprints of the v1 body's members that the v2 body does not hold.
    pub v1_members: MemberFingerprints,
    /// The merchant's address that the relay calls. `None`: the merchant is not called back.
    pub callback_url: Option<CallbackUrl>,
    /// The v2 body, exactly as it is sent.
    pub body: Box<[u8]>,
    /// When the request was received.
    pub created_at: UnixMillis,
}

impl std::fmt::Debug for PendingCreate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PendingCreate({} {:?} of {})", self.direction, self.order_id.as_str(), self.merchant)
    }
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its id.
    pub id: EntryId,
    /// The create as recorded before it was sent.
    pub create: PendingCreate,
    /// Its state.
    pub progress: EntryProgress,
}

impl JournalEntry {
    /// Reports whether the engine has created an operation for it.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.transaction_id().is_some()
    }

    /// Returns the status of the operation, as last received.
    #[must_use]
    pub const fn status(&self) -> Status {
        match &self.progress {
            EntryProgress::Answered(operation) => operation.status,
            EntryProgress::Open | EntryProgress::InDoubt { .. } => Status::Pending,
        }
    }

    /// Returns the engine's id of the operation that it has created.
    #[must_use]
    pub const fn transaction_id(&self) -> Option<&str> {
        match &self.progress {
            EntryProgress::Answered(operation) => Some(&operation.answer.transaction_id),
            EntryProgress::Open | EntryProgress::InDoubt { .. } => None,
        }
    }
}

/// The state of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryProgress {
    /// Its request is being sent, or was when the process ended.
    Open,
    /// The outcome of its request is unknown.
    InDoubt {
        /// When a request for it was last given up.
        since: UnixMillis,
    },
    /// The engine created an operation.
    Answered(RemoteOperation),
}

/// An operation of a remote engine, as far as it is known to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOperation {
    /// The engine's answer to the create.
    pub answer: EngineAnswer,
    /// The status as last received.
    pub status: Status,
    /// The account as last received; the engine masks card numbers.
    pub account: Option<AccountNumber>,
}

/// An operation's status as reported by its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The status.
    pub status: Status,
    /// The account, masked where it looks like a card.
    pub account: Option<AccountNumber>,
    /// The shop code of the request, or the shop's payment method.
    pub shop: Box<str>,
}

/// What has no answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unanswered {
    /// Those whose request is being sent, or was when a process ended.
    pub open: Backlog,
    /// Those in doubt. They wait for their caller, which has to repeat the create or to query it.
    pub in_doubt: Backlog,
    /// Provider jobs after two attempts without a result.
    pub jobs: Backlog,
}

/// The entries in a state, or jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Backlog {
    /// How many, up to the bound of the query.
    pub count: u64,
    /// When the oldest was recorded or queued.
    pub oldest: Option<UnixMillis>,
}

/// A remote engine's answer to a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAnswer {
    /// The engine's id of the operation: digits.
    pub transaction_id: Box<str>,
    /// A deposit's customer entry link.
    pub redirect_url: Option<RedirectUrl>,
}

/// Why an engine's answer was not stored; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// Another order has this `transaction_id`.
    OtherOrder,
    /// The entry was cancelled, and the order names something else by now.
    Late,
}

/// The outcome of recording a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalOutcome {
    /// The entry is on disk, with this id.
    Written(EntryId),
    /// The order has an entry already, which is returned: nothing was written.
    Existing(Box<JournalEntry>),
    /// The order is at home with the old v1 service: nothing was written.
    Reserved,
    /// The order is lost: nothing was written.
    Lost,
    /// The order was created through v2: nothing was written.
    Native,
}
