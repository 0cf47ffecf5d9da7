//! A merchant: its API keys, allow-lists, shops, v1 rules and balance rules.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use governor::{DefaultDirectRateLimiter, RateLimiter};
use jiff::civil::Date;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::TimeZone;

use super::limits::AddressSet;
use super::{Dialect, Shop};
use crate::domain::{
    Amount, BrowserUrl, Bucket, CallbackUrl, Currency, Direction, MerchantId, Quota, Secrets, ShopCode,
};

/// A merchant (contract section 2, `merchants/<id>.toml`).
#[derive(Debug)]
pub struct Merchant {
    /// Its id, which is the name of its file.
    pub id: MerchantId,
    /// The bucket that its id falls in.
    pub bucket: Bucket,
    /// Its display name.
    pub name: Box<str>,
    /// The shop of requests that name none; one of `shops`.
    pub default_shop: Option<ShopCode>,
    /// Its API keys.
    pub api_keys: Vec<ApiKey>,
    /// The shops it may use.
    pub shops: HashMap<ShopCode, ShopAccess>,
    /// How its v1 requests are completed to v2 ones.
    pub v1: V1Rules,
    /// The rules of its balances.
    pub balance: BalanceRules,
}

impl Merchant {
    /// Returns the key, with its secrets, that signs for operations created with `api_key`: that key, or otherwise the
    /// merchant's first one that has such secrets (contract section 10).
    pub fn signing_key<'m>(
        &'m self,
        api_key: &str,
        secrets: impl Fn(&'m ApiKey) -> Option<&'m Secrets>,
    ) -> Option<(&'m ApiKey, &'m Secrets)> {
        let signing = || self.api_keys.iter().filter_map(|key| secrets(key).map(|secrets| (key, secrets)));
        signing().find(|(key, _)| *key.key == *api_key).or_else(|| signing().next())
    }
}

/// One API key of a merchant.
#[derive(Debug)]
pub struct ApiKey {
    /// The value of `X-Api-Key`.
    pub key: Box<str>,
    /// Verifies v1 requests; absent: the key cannot call v1.
    pub v1_secrets: Option<Secrets>,
    /// Verifies v2 requests and signs forwarded ones; absent: the key cannot call v2.
    pub v2_secrets: Option<Secrets>,
    /// The addresses that it may be used from.
    pub allowed_ips: AddressSet,
    /// Its rate limit; the limiter survives reloads that do not change the quota.
    pub rate_limit: Option<RateLimit>,
    /// The shops it may use; absent: all of the merchant's.
    pub shops: Option<HashSet<ShopCode>>,
}

impl ApiKey {
    /// Reports whether this key may use a shop of its merchant.
    #[must_use]
    pub fn may_use(&self, shop: &ShopCode) -> bool {
        self.shops.as_ref().is_none_or(|shops| shops.contains(shop))
    }
}

/// A key's rate limit with its state.
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// The quota of the rule file.
    pub quota: Quota,
    /// The state of the limiter.
    pub limiter: Arc<DefaultDirectRateLimiter>,
}

impl RateLimit {
    /// Creates an unused limiter.
    pub(super) fn new(quota: Quota) -> Self {
        let rate = governor::Quota::per_second(quota.per_second).allow_burst(quota.burst);
        Self { quota, limiter: Arc::new(RateLimiter::direct(rate)) }
    }
}

/// The name and value of a header.
pub(super) type Notice = (&'static str, Box<str>);

/// Returns the `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` headers of v1 replies, with names in lowercase,
/// as HTTP/2 requires.
pub(super) fn notices(since: Option<Date>, sunset: Option<Date>, more: Option<&BrowserUrl>) -> Vec<Notice> {
    let midnight = |date: Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let since = since.and_then(midnight).map(|since| ("deprecation", format!("@{}", since.as_second()).into()));
    let sunset = sunset.and_then(midnight).and_then(|at| DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok());
    let sunset = sunset.map(|date| ("sunset", date.into()));
    let link = more
        .map(BrowserUrl::as_str)
        .map(|url| ("link", format!("<{url}>; rel=\"deprecation\", <{url}>; rel=\"sunset\"").into()));
    since.into_iter().chain(sunset).chain(link).collect()
}

/// A shop as a merchant may use it.
#[derive(Debug, Clone)]
pub struct ShopAccess {
    /// The shop.
    pub shop: Arc<Shop>,
    /// v2 deposits are enabled.
    pub payin: bool,
    /// v2 withdrawals are enabled.
    pub payout: bool,
}

impl ShopAccess {
    /// Reports whether a direction is enabled.
    #[must_use]
    pub const fn enabled(&self, direction: Direction) -> bool {
        match direction {
            Direction::Payin => self.payin,
            Direction::Payout => self.payout,
        }
    }
}

/// How a merchant's v1 requests are completed (`[v1]`).
#[derive(Debug)]
pub struct V1Rules {
    /// Its wire format.
    pub dialect: Arc<Dialect>,
    /// The format of its callbacks.
    pub callbacks: CallbackStyle,
    /// The callback address of requests that name none. With `allow_http_callbacks` it may be plain http.
    pub callback_url: Option<CallbackUrl>,
    /// The return address of requests without `paymentData.return_user_url`.
    pub return_url: Option<BrowserUrl>,
    /// The handling of a `merchant_user_id` that is not an integer.
    pub non_numeric_user_id: IdPolicy,
    /// The handling of unknown top-level members.
    pub unknown_fields: UnknownFields,
    /// Whether a v1 request may name a plain http callback address.
    pub allow_http_callbacks: bool,
    /// The `Deprecation`, `Sunset` and `Link` headers of v1 replies, where configured.
    pub notices: Vec<Notice>,
}

/// The format of a v1 merchant's callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackStyle {
    /// Relayed in the dialect's shape.
    V1,
    /// Sent in v2's format.
    V2,
}

/// The handling of a `merchant_user_id` that equals no integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdPolicy {
    /// The request gets 400.
    Reject,
    /// The member is left out.
    Omit,
}

/// The handling of unknown top-level members of a v1 body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownFields {
    /// The request gets 400.
    Reject,
    /// They are dropped.
    Ignore,
}

/// The rules of a merchant's balances (`[balance]`).
#[derive(Debug, Default)]
pub struct BalanceRules {
    /// Whether a withdrawal over the available balance is created FAILED.
    pub enforce: bool,
    /// The opening balances, posted once, when the merchant is first seen.
    pub opening: BTreeMap<Currency, Amount>,
}
