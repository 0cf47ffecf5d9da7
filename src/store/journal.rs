//! What passed through this gateway to a remote engine (contract section 6): written down before a request leaves, so
//! that nothing is forgotten by a crash between the request and its reply.
//!
//! ```text
//!            intend                 answer
//! (nothing) --------> open --------------------------> answered
//!                      |  doubt              answer      ^
//!                      +-------> in doubt ---------------+
//!                      |             |
//!     withdraw <-------+-------------+
//! ```
//!
//! An entry in doubt is one whose caller was told that the outcome is unknown: it is settled by sending the same body
//! again when the caller repeats it or asks for it. An open entry at the start of a process was cut off by the end of
//! the one before.

use super::{Answer, V1Part};
use crate::domain::{
    AccountNumber, Amount, Currency, Direction, HistoryQuery, MerchantId, OrderId, Page, RedirectUrl, Status,
    UnixMillis,
};

/// The durable journal of a gateway before a remote engine. Each method is one transaction.
pub trait Journal: Send + Sync + 'static {
    /// Writes down a create that is about to leave, unless its merchant, direction and `order_id` name an entry already
    /// or are reserved for v1. Resolves only after the commit is on disk.
    fn intend(&self, intent: Intent) -> Answer<'_, Intended>;

    /// What was written down under a merchant's `order_id`.
    fn entry<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<Entry>>;

    /// Keeps the engine's answer to a create, and forgets the body. An answer that is there stands. An entry that was
    /// withdrawn meanwhile, or replaced by one without an answer, is written down again: what the engine made exists.
    /// Gives the entry as it stands.
    fn answer(&self, entry: Entry, answer: EngineAnswer) -> Answer<'_, Entry>;

    /// The caller of an open entry is about to be told that its outcome is unknown.
    fn doubt(&self, id: EntryId) -> Answer<'_, ()>;

    /// The engine refused the create of an entry without an answer: its `order_id` may be used again.
    fn withdraw(&self, id: EntryId) -> Answer<'_, ()>;

    /// Open entries after `after`, oldest first.
    fn open_entries(&self, after: Option<EntryId>, limit: u16) -> Answer<'_, Vec<Entry>>;

    /// Keeps what the engine said of an answered entry whose status is not terminal yet.
    fn heard(&self, id: EntryId, status: Status, account: Option<AccountNumber>) -> Answer<'_, ()>;

    /// A page of a merchant's answered entries, newest first, by what was last heard of them.
    fn passed(&self, query: HistoryQuery) -> Answer<'_, Page<Entry>>;
}

/// Names an entry; ascends with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub i64);

/// A create that is about to leave.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
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
    /// What is kept of the v1 request.
    pub v1: V1Part,
    /// The v2 body, exactly as it is sent.
    pub body: Box<[u8]>,
    /// When it came.
    pub created_at: UnixMillis,
}

impl std::fmt::Debug for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Intent({} {:?} of {})", self.direction, self.order_id.as_str(), self.merchant)
    }
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: EntryId,
    /// What was written down; the body of an answered entry is empty.
    pub intent: Intent,
    /// What became of it.
    pub progress: Progress,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is on its way, or was when the process ended.
    Open,
    /// Its caller was told that the outcome is unknown.
    InDoubt,
    /// The engine made an operation of it.
    Answered(Passed),
}

/// An operation of a remote engine, as far as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// What the engine answered at first.
    pub answer: EngineAnswer,
    /// As last heard.
    pub status: Status,
    /// As last heard; the engine masks card numbers.
    pub account: Option<AccountNumber>,
}

/// A remote engine's answer to a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAnswer {
    /// Its name for the operation: digits.
    pub transaction_id: Box<str>,
    /// A deposit's customer entry link.
    pub redirect_url: Option<RedirectUrl>,
}

/// What an intent met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intended {
    /// It is on disk, under this name.
    Written(EntryId),
    /// The order has an entry: nothing was written, and this is what stands.
    Existing(Box<Entry>),
    /// The order is reserved for v1: nothing was written.
    Reserved,
}
