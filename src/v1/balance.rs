//! v1 balances (contract section 4).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::reply;
use crate::auth::Caller;
use crate::domain::{Balance, Currency, Direction};
use crate::failure::ApiError;
use crate::rules::Merchant;
use crate::upstream::Upstream;

/// Answers a v1 balance question: every currency in which something was booked or a shop of the merchant's could book,
/// sorted. Like the status, it ignores what its query says.
///
/// # Errors
/// The engine could not answer, or has no balances.
pub async fn balance(upstream: &Upstream, caller: &Caller) -> Result<Bytes, ApiError> {
    let merchant = caller.merchant();
    let mut balances: BTreeMap<Currency, Balance> =
        currencies(merchant).map(|currency| (currency, Balance::default())).collect();
    balances.extend(upstream.balances(caller).await?);
    Ok(reply::balance(&merchant.v1.dialect, &balances))
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
