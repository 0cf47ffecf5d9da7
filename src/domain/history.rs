//! What a merchant asks of its history, and the pages it gets.

use super::{Currency, Direction, MerchantId, ShopCode, Status, UnixMillis};

/// Which of a merchant's operations are asked for; what is `None` does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Whose.
    pub merchant: MerchantId,
    /// Deposits or withdrawals.
    pub direction: Option<Direction>,
    /// Standing so.
    pub status: Option<Status>,
    /// In this shop.
    pub shop: Option<ShopCode>,
    /// In this currency.
    pub currency: Option<Currency>,
    /// Created at this time or later.
    pub created_from: Option<UnixMillis>,
    /// Created at this time or earlier.
    pub created_to: Option<UnixMillis>,
    /// So many of the newest are left out.
    pub skip: u64,
    /// At most so many are wanted.
    pub limit: u16,
}

impl HistoryQuery {
    /// The newest operations of a merchant, whatever they are.
    #[must_use]
    pub const fn newest(merchant: MerchantId, limit: u16) -> Self {
        Self {
            merchant,
            direction: None,
            status: None,
            shop: None,
            currency: None,
            created_from: None,
            created_to: None,
            skip: 0,
            limit,
        }
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its items, in order.
    pub items: Vec<T>,
    /// Whether the list goes on after them.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// A page without anything.
    #[must_use]
    pub const fn empty() -> Self {
        Self { items: Vec::new(), has_more: false }
    }

    /// The page of what was read: one item more than `limit` shows that the list goes on.
    #[must_use]
    pub fn of_one_more(mut items: Vec<T>, limit: u16) -> Self {
        let has_more = items.len() > usize::from(limit);
        items.truncate(usize::from(limit));
        Self { items, has_more }
    }
}
