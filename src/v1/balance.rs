//! v1 balances (contract section 4).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{V1Frontend, reply};
use crate::domain::{Balance, Currency, Direction};
use crate::error::ApiError;
use crate::rules::Merchant;
use crate::v2::ServiceCall;

impl V1Frontend {
    /// Answers a v1 balance request: every currency in which something was booked or a shop of the merchant's could book,
    /// sorted. Like the status, it ignores its query.
    ///
    /// # Errors
    /// The engine could not answer, or has no balances.
    pub async fn balance(&self, call: ServiceCall<'_>) -> Result<Bytes, ApiError> {
        let merchant = call.caller.merchant();
        let mut balances: BTreeMap<Currency, Balance> =
            currencies(merchant).map(|currency| (currency, Balance::default())).collect();
        balances.extend(self.service.balances(call).await?);
        Ok(reply::balance(&merchant.v1.dialect, &balances))
    }
}

/// The currencies of the shops that are enabled for a merchant, closed ones too: a balance does not come and go with
/// them.
fn currencies(merchant: &Merchant) -> impl Iterator<Item = Currency> {
    let enabled = merchant
        .shops
        .values()
        .filter(|access| [Direction::Payin, Direction::Payout].into_iter().any(|direction| access.enabled(direction)));
    enabled.map(|access| access.shop.currency)
}
