//! Queries of a merchant's history, and pages of results.

use super::{Currency, Direction, MerchantId, ShopCode, Status, UnixMillis};

/// A filter on a merchant's operations; `None` matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// The merchant whose operations are listed.
    pub merchant: MerchantId,
    /// Deposits or withdrawals.
    pub direction: Option<Direction>,
    /// The status.
    pub status: Option<Status>,
    /// The shop.
    pub shop: Option<ShopCode>,
    /// The currency.
    pub currency: Option<Currency>,
    /// The earliest creation time, inclusive.
    pub created_from: Option<UnixMillis>,
    /// The latest creation time, inclusive.
    pub created_to: Option<UnixMillis>,
    /// How many of the newest matches to skip.
    pub skip: u64,
    /// The most operations to return.
    pub limit: u16,
}

impl HistoryQuery {
    /// Returns a query for the newest operations of a merchant, without filters.
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
    /// The items, in order.
    pub items: Vec<T>,
    /// Whether the list continues after these items.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Returns a page without items.
    #[must_use]
    pub const fn empty() -> Self {
        Self { items: Vec::new(), has_more: false }
    }

    /// Builds a page from up to `limit` + 1 items; the extra item shows that the list continues.
    #[must_use]
    pub fn of_one_more(mut items: Vec<T>, limit: u16) -> Self {
        let has_more = items.len() > usize::from(limit);
        items.truncate(usize::from(limit));
        Self { items, has_more }
    }
}
