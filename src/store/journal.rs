//! What passed through this gateway to a remote engine (contract section 6): written down before a request leaves, so
//! that nothing is forgotten by a crash between the request and its reply.
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
//! An entry in doubt is one for which a request may have been taken, and its caller got the reply that the outcome is unknown:
//! it is resolved by sending the same body again when the caller repeats it or asks for it. An open entry at the start of a
//! process was cut off by the end of the one before. Only what nothing can come of any more is cancelled.

mod kept;
pub(super) mod moves;
pub(super) mod numbers;

use super::StoreFuture;
use crate::domain::{
    AccountNumber, Amount, CallbackUrl, Currency, Direction, Fingerprint, HistoryQuery, MemberFingerprints, MerchantId,
    OrderId, Page, RedirectUrl, Status, UnixMillis,
};

/// What an `order_id` may be to v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum V1Lookup {
    /// A request for it is written down.
    Entry,
    /// It is reserved.
    Reservation,
}

/// The durable journal of a gateway before a remote engine. Each method is one transaction.
pub trait Journal: Send + Sync + 'static {
    /// Writes down a create that is about to leave, unless its merchant, direction and `order_id` name an entry already
    /// or are reserved for v1. Resolves only after the commit is on disk.
    fn record_create(&self, intent: PendingCreate) -> StoreFuture<'_, JournalOutcome>;

    /// What was written down under a merchant's `order_id`.
    fn entry<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<JournalEntry>>;

    /// What of v1's stands under a merchant's `order_id`, if anything: one look, without what it says.
    fn of_v1<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<V1Lookup>>;

    /// Keeps the engine's answer to a create, and gives the entry as it stands. An answer that is there stands. An entry that
    /// was withdrawn meanwhile is written down again, unless its order names something else by now.
    fn answer(&self, entry: JournalEntry, answer: EngineAnswer) -> StoreFuture<'_, Result<JournalEntry, NotKept>>;

    /// A request for an entry without an answer may be under way still, or done, at this time: nobody knows its outcome.
    fn mark_unknown(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// A request for an open entry leaves again at this time. Whoever sent the one before, in another process maybe, cannot
    /// cancel the entry any more.
    fn sent_again(&self, id: EntryId, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// The engine refused the create of an entry without an answer: its `order_id` may be used again. `since` is when a
    /// request for it was last given up or sent again, as far as is known here: when that is not so any more, or the engine
    /// has announced its result meanwhile, nothing happens, and it is `false`.
    fn cancel(&self, id: EntryId, since: Option<UnixMillis>) -> StoreFuture<'_, bool>;

    /// Open entries after `after`, oldest first.
    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> StoreFuture<'_, Vec<JournalEntry>>;

    /// Keeps what the engine said of an answered entry: status and account until the status is terminal, and the shop
    /// where it was not known.
    fn update_status(&self, id: EntryId, update: StatusUpdate) -> StoreFuture<'_, ()>;

    /// A page of a merchant's answered entries, newest first, by what was last heard of them.
    fn passed(&self, query: HistoryQuery) -> StoreFuture<'_, Page<JournalEntry>>;
}

/// Names an entry; ascends with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub i64);

/// A create that is about to leave.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingCreate {
    /// Whose.
    pub merchant: MerchantId,
    /// Payin or payout.
    pub direction: Direction,
    /// `external_id`.
    pub order_id: OrderId,
    /// The key it came with.
    pub api_key: Box<str>,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// The selected shop's code, as the request or the merchant's default names it; it need not exist.
    pub shop: Option<Box<str>>,
    /// The keyed hash of what the v1 body said.
    pub fingerprint: Fingerprint,
    /// What of the v1 body the v2 body does not hold.
    pub v1_members: MemberFingerprints,
    /// The merchant's address that the relay calls. `None`: nobody is called back.
    pub callback_url: Option<CallbackUrl>,
    /// The v2 body, exactly as it is sent.
    pub body: Box<[u8]>,
    /// When it came.
    pub created_at: UnixMillis,
}

impl std::fmt::Debug for PendingCreate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Intent({} {:?} of {})", self.direction, self.order_id.as_str(), self.merchant)
    }
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its name.
    pub id: EntryId,
    /// What was written down.
    pub intent: PendingCreate,
    /// What became of it.
    pub progress: EntryProgress,
}

impl JournalEntry {
    /// Whether the engine made an operation of it.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self.progress, EntryProgress::Answered(_))
    }
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryProgress {
    /// It is on its way, or was when the process ended.
    Open,
    /// The outcome is unknown.
    InDoubt {
        /// When a request for it was last given up.
        since: UnixMillis,
    },
    /// The engine made an operation of it.
    Answered(RemoteOperation),
}

/// An operation of a remote engine, as far as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOperation {
    /// What the engine answered at first.
    pub answer: EngineAnswer,
    /// As last heard.
    pub status: Status,
    /// As last heard; the engine masks card numbers.
    pub account: Option<AccountNumber>,
}

/// What an engine's status record says of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// Where it stands.
    pub status: Status,
    /// The account, masked where it looks like a card.
    pub account: Option<AccountNumber>,
    /// The shop code of the request, or the shop's payment method.
    pub shop: Box<str>,
}

/// A remote engine's answer to a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAnswer {
    /// Its name for the operation: digits.
    pub transaction_id: Box<str>,
    /// A deposit's customer entry link.
    pub redirect_url: Option<RedirectUrl>,
}

/// Why an engine's answer was not kept: nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// Another order has this `transaction_id`.
    OtherOrder,
    /// Its entry was withdrawn, and the order names something else by now.
    Late,
}

/// What an intent met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalOutcome {
    /// It is on disk, under this name.
    Written(EntryId),
    /// The order has an entry: nothing was written, and this is what stands.
    Existing(Box<JournalEntry>),
    /// The order is reserved for v1: nothing was written.
    Reserved,
}
