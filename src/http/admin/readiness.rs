//! The `/api/readiness` endpoint: whether merchants can move to v2.

use super::reply::{self, AdminReply};
use super::source::AdminSource;
use crate::domain::MerchantId;
use crate::v1::query::parameters;

/// Answers `GET /api/readiness`, for one merchant or for those whose v1 service is still the old one.
pub(super) async fn show(source: &dyn AdminSource, query: Option<&str>) -> AdminReply {
    const NO_MERCHANT: &str = "there is no such merchant";
    let named = match parameters(query, ["merchant"]) {
        Ok([merchant]) => merchant,
        Err(error) => return reply::bad_request(&error.to_string()),
    };
    let Ok(merchant) = named.map(|id| MerchantId::new(&id)).transpose() else {
        return reply::not_found(NO_MERCHANT);
    };
    match source.readiness(merchant).await {
        Ok(Some(report)) => reply::document(&report),
        Ok(None) => reply::not_found(NO_MERCHANT),
        Err(error) => reply::unavailable(&error.to_string()),
    }
}
