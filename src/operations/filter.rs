//! The filter of the list, as it is sent.

use serde::Serialize;

use crate::domain::{Direction, MerchantId, OrderId, ShopCode, Status, TransactionId, UnixMillis};
use crate::error::RequestError;
use crate::store::OperationQuery;
use crate::wire::members::read_parameter;
use crate::wire::time::{read_date, read_rfc3339};

/// How many operations a list shows by default.
pub const DEFAULT_LIMIT: usize = 50;

/// The most operations that a list shows.
pub const MAX_OPERATIONS: usize = 200;

/// The filter, as it was sent; empty: any.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OperationFilter {
    /// The id of a merchant.
    pub merchant: String,
    /// The code of a shop.
    pub shop: String,
    /// `payin` or `payout`.
    pub direction: String,
    /// `PENDING`, `SUCCESS` or `FAILED`.
    pub status: String,
    /// `v1` or `v2`.
    pub through: String,
    /// The merchant's id of an order.
    pub order_id: String,
    /// The id of an operation.
    pub transaction_id: String,
    /// Created at or after this time.
    pub created_from: String,
    /// Created before this time.
    pub created_to: String,
    /// `true`: those that need attention.
    pub attention: String,
}

/// What a filter selects.
#[derive(Debug, Clone, Default)]
pub struct OperationSearch {
    /// All but the members that follow.
    pub query: OperationQuery,
    /// Only with this `order_id`.
    pub order_id: Option<OrderId>,
    /// Only with this id, which a remote engine may have chosen.
    pub transaction_id: Option<String>,
    /// Only those that need attention.
    pub needs_attention: bool,
}

impl OperationFilter {
    /// The names of the members, and of those that choose a page.
    pub const PARAMETERS: [&str; 12] = [
        "merchant",
        "shop",
        "direction",
        "status",
        "through",
        "order_id",
        "transaction_id",
        "created_from",
        "created_to",
        "attention",
        "limit",
        "after",
    ];

    /// The names of the members.
    pub const NAMES: [&str; 10] = {
        let [names @ .., _, _] = Self::PARAMETERS;
        names
    };

    /// Makes the filter of the values of [`OperationFilter::NAMES`].
    #[must_use]
    pub fn of(values: [String; 10]) -> Self {
        let [merchant, shop, direction, status, through, order_id, transaction_id, created_from, created_to, attention] =
            values;
        Self {
            merchant,
            shop,
            direction,
            status,
            through,
            order_id,
            transaction_id,
            created_from,
            created_to,
            attention,
        }
    }

    /// Reads the filter. `after`: the `next` of an earlier page, or empty.
    ///
    /// # Errors
    /// A member is malformed.
    pub fn search(&self, after: &str, limit: usize) -> Result<OperationSearch, RequestError> {
        let after = read_parameter("after", after, "must be the `next` of an earlier reply", |text| {
            TransactionId::parse(text).ok()
        })?;
        let query = OperationQuery {
            merchant: read_parameter("merchant", &self.merchant, "must be the id of a merchant", |text| {
                MerchantId::new(text).ok()
            })?,
            shop: read_parameter("shop", &self.shop, "must be the code of a shop", |text| ShopCode::new(text).ok())?,
            direction: read_parameter("direction", &self.direction, "must be payin or payout", |text| {
                Direction::parse(text).ok()
            })?,
            status: read_parameter("status", &self.status, "must be PENDING, SUCCESS or FAILED", |text| {
                [Status::Pending, Status::Success, Status::Failed].into_iter().find(|one| one.as_str() == text)
            })?,
            is_v1: read_parameter("through", &self.through, "must be v1 or v2", |text| match text {
                "v1" => Some(true),
                "v2" => Some(false),
                _ => None,
            })?,
            created_from: read_parameter("created_from", &self.created_from, TIME, time)?,
            created_to: read_parameter("created_to", &self.created_to, TIME, time)?,
            after,
            limit,
        };
        if !self.attention.is_empty() && (!self.order_id.is_empty() || !self.transaction_id.is_empty()) {
            return Err(RequestError::member("attention", "cannot be combined with an id"));
        }
        Ok(OperationSearch {
            query,
            order_id: read_parameter("order_id", &self.order_id, "must be 1 to 255 characters", |text| {
                OrderId::new(text).ok()
            })?,
            transaction_id: Some(self.transaction_id.clone()).filter(|id| !id.is_empty()),
            needs_attention: read_parameter("attention", &self.attention, "must be true", |text| {
                (text == "true").then_some(())
            })?
            .is_some(),
        })
    }
}

const TIME: &str =
    "must be a time such as 2026-01-02T03:04:05Z, or a date such as 2026-01-02 (its first instant in UTC)";

fn time(text: &str) -> Option<UnixMillis> {
    let first = || read_date(text).map(|[first, _]| first);
    read_rfc3339(text).map(|time| UnixMillis(time.as_millisecond())).or_else(first)
}
