//! The views of merchants.

use serde::Serialize;

use super::overview::RefusalItem;
use crate::domain::UnixMillis;
use crate::shadow::MerchantReadiness;

/// A page of the list of merchants.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MerchantsView {
    /// The filter.
    pub filter: MerchantSearch,
    /// How many merchants the rules have.
    pub total: usize,
    /// How many of them the filter matches.
    pub matching: usize,
    /// The merchants of this page.
    pub merchants: Vec<MerchantItem>,
    /// The parameter `after` of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub is_continued: bool,
}

/// The filter of merchants; empty: any.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MerchantSearch {
    /// A part of the id or name.
    pub text: String,
    /// A mode.
    pub mode: String,
}

/// A merchant in the list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MerchantItem {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The mode of v1 traffic.
    pub mode: String,
    /// The percentages of a staged merchant, such as `payin 5 %, payout 0 %`, or `5 %` where both are equal.
    pub percent: Option<String>,
    /// Whether it can move to v2, as a word; `None`: all its new orders are made here, or it is not known.
    pub readiness: Option<String>,
    /// Requests since the process started.
    pub share: VersionShare,
    /// The last v1 call; `None`: none since the process started.
    pub last_v1_at: Option<UnixMillis>,
    /// The most frequent refusal.
    pub top_refusal: Option<RefusalItem>,
}

/// How many requests came by which API version.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct VersionShare {
    /// By v1.
    pub v1: u64,
    /// By v2.
    pub v2: u64,
}

/// One merchant.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MerchantView {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The mode of v1 traffic.
    pub mode: String,
    /// The percentages of a staged merchant.
    pub percent: Option<String>,
    /// The dialect of v1 traffic.
    pub dialect: String,
    /// Requests since the process started.
    pub share: VersionShare,
    /// The last v1 call; `None`: none since the process started.
    pub last_v1_at: Option<UnixMillis>,
    /// The most frequent refusals, the most frequent first.
    pub refusals: Vec<RefusalItem>,
    /// The shops.
    pub shops: Vec<ShopItem>,
    /// The API keys.
    pub keys: Vec<KeyItem>,
    /// What limits the report of readiness.
    pub readiness_note: Option<String>,
    /// Whether it can move to v2; `None`: all new orders are made here already.
    pub readiness: Option<MerchantReadiness>,
}

/// A shop of a merchant.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ShopItem {
    /// The code.
    pub code: String,
    /// The currency.
    pub currency: String,
    /// The kind of its provider.
    pub provider: String,
    /// Whether deposits are enabled.
    pub payin: bool,
    /// Whether withdrawals are enabled.
    pub payout: bool,
    /// Whether v2 requests may create deposits.
    pub v2_payin: bool,
    /// Whether v2 requests may create withdrawals.
    pub v2_payout: bool,
    /// Whether the shop itself is active.
    pub is_active: bool,
    /// Whether it is the merchant's default.
    pub is_default: bool,
}

/// An API key of a merchant.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KeyItem {
    /// The key, masked.
    pub masked: String,
    /// Whether it has a v1 secret.
    pub v1: bool,
    /// Whether it may call v2, and has a v2 secret.
    pub v2: bool,
    /// The addresses that may use it; empty: none may.
    pub allowed_ips: Vec<String>,
    /// The rate limit in words; `None`: unlimited.
    pub rate_limit: Option<String>,
    /// The shops it is limited to; empty: all.
    pub shops: Vec<String>,
}
