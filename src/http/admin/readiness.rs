//! The `/api/readiness` endpoint: whether merchants can move to v2.

use std::sync::Arc;

use super::reply::{self, AdminReply};
use super::source::AdminSource;
use crate::domain::{Direction, MerchantId};
use crate::error::RequestError;
use crate::shadow::reported_merchants;
use crate::v1::query::parameters;

/// Answers `GET /api/readiness`, for one merchant or for those whose v1 service is still the old one; `shop` and `kind`
/// select rows.
pub(super) async fn show(source: &dyn AdminSource, query: Option<&str>) -> AdminReply {
    let [merchant, shop, kind] = match parameters(query, ["merchant", "shop", "kind"]) {
        Ok(values) => values.map(|value| value.map(|value| value.trim().to_owned())),
        Err(error) => return reply::bad_request(&error.to_string()),
    };
    let direction = |kind: &str| [Direction::Payin, Direction::Payout].into_iter().find(|one| one.as_str() == kind);
    let kind = match kind.as_deref().map(direction) {
        Some(None) => return reply::bad_request(&RequestError::member("kind", "must be payin or payout").to_string()),
        kind => kind.flatten(),
    };
    let rules = source.rule_set();
    let merchants = match merchant {
        Some(named) => match MerchantId::new(&named).ok().and_then(|id| rules.merchants.get(&id)) {
            Some(merchant) => vec![Arc::clone(merchant)],
            None => return reply::not_found(&rules.no_such_merchant(&named)),
        },
        None => reported_merchants(&rules),
    };
    // A report's rows with an empty shop are those of shops that no rule has.
    if let Some(shop) = shop.as_deref().filter(|shop| !shop.is_empty() && !rules.shops.contains_key(*shop)) {
        return reply::not_found(&rules.no_such_shop(shop));
    }
    match source.readiness(merchants).await {
        Ok(report) => reply::document(&report.selected(shop.as_deref(), kind)),
        Err(error) => reply::unavailable(&error.to_string()),
    }
}
