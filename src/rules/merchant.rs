//! A merchant: its API keys, allow-lists, shops, v1 rules and balance rules.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use governor::{DefaultDirectRateLimiter, RateLimiter};
use jiff::civil::Date;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::TimeZone;

use super::limits::AddressSet;
use super::{Dialect, Shop};
use crate::domain::{
    Amount, BrowserUrl, Bucket, CallbackUrl, Currency, Direction, Fingerprint, MerchantId, Quota, Secrets, ShopCode,
};
use crate::traffic::MerchantTraffic;

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
    /// A hash of the rules that its v1 creates are checked by: its dialect, `[v1]` without `mode` and `percent`, its
    /// shops with their schemas and lists, and the shops of its keys. Equal on all nodes with equal files.
    pub rules_fingerprint: Fingerprint,
    /// Its requests, counted since the process first loaded it: reloads pass them on.
    pub traffic: Arc<MerchantTraffic>,
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
    pub key: Arc<str>,
    /// Verifies v1 requests; absent: the key cannot call v1.
    pub v1_secrets: Option<Secrets>,
    /// Verifies v2 requests and signs forwarded ones; absent: the key cannot call v2.
    pub v2_secrets: Option<Secrets>,
    /// Whether the key may call v2. What v1 requests become is signed all the same.
    pub v2: bool,
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
    /// The directions that native v2 creates are enabled for, of those that are enabled.
    pub v2: NativeV2,
}

/// The directions that native v2 creates are enabled for. What v1 requests become is not subject to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeV2 {
    /// Deposits.
    pub payin: bool,
    /// Withdrawals.
    pub payout: bool,
}

impl NativeV2 {
    /// Reports whether a direction is enabled.
    #[must_use]
    pub const fn enabled(self, direction: Direction) -> bool {
        match direction {
            Direction::Payin => self.payin,
            Direction::Payout => self.payout,
        }
    }
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
    /// Where its orders without a home are made.
    pub mode: Mode,
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

/// Where v1 orders without a home are made (contract section 6, "Homes and modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Here.
    Translate,
    /// At the old v1 service.
    Legacy,
    /// At the old v1 service; creates are checked against v2 after their reply.
    Shadow,
    /// These shares here, the others at the old v1 service.
    Staged(Shares),
}

impl Mode {
    /// Returns the word of the rule file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Translate => "translate",
            Self::Legacy => "legacy",
            Self::Shadow => "shadow",
            Self::Staged(_) => "staged",
        }
    }
}

/// The shares of new orders that are made here, by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// Of payins.
    pub payin: Share,
    /// Of payouts.
    pub payout: Share,
}

impl Shares {
    /// Returns the share of a direction.
    #[must_use]
    pub const fn of(self, direction: Direction) -> Share {
        match direction {
            Direction::Payin => self.payin,
            Direction::Payout => self.payout,
        }
    }
}

/// A share of orders, in hundredths of a percent: 0 to 10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share(u16);

impl Share {
    const ALL: u16 = 10_000;

    /// Parses a percentage: digits, and at most two decimals.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole) || !are_digits(decimals) || decimals.trim_end_matches('0').len() > 2 {
            return None;
        }
        let mut decimals = decimals.bytes().map(|digit| u16::from(digit - b'0')).chain([0, 0]);
        let hundredths = decimals.next()? * 10 + decimals.next()?;
        let share = whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(hundredths)?;
        (share <= Self::ALL).then_some(Self(share))
    }

    /// Reports whether the share is neither nothing nor everything.
    #[must_use]
    pub const fn is_partial(self) -> bool {
        self.0 > 0 && self.0 < Self::ALL
    }

    /// Reports whether an order falls into the share. `order` is the store's key of the order, a keyed hash, so that a larger
    /// share contains every order of a smaller one.
    #[must_use]
    pub fn contains(self, order: Fingerprint) -> bool {
        // The first bytes are alike in orders that are numbered one after the other.
        let hash = u128::from_be_bytes(order.0) & u128::from(u64::MAX);
        (hash * u128::from(Self::ALL)) >> 64 < u128::from(self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_with_two_decimals() {
        for (text, hundredths) in
            [("0", 0), ("5", 500), ("2.5", 250), ("12.34", 1234), ("100", 10_000), ("007.10", 710)]
        {
            assert_eq!(Share::parse(text), Some(Share(hundredths)), "{text}");
        }
        assert_eq!(Share::parse("1.2300"), Some(Share(123)));
        for wrong in ["", "-1", "100.01", "101", "1.234", "1e1", ".5", "5.", "+5", "99999999", "nan", "5 "] {
            assert_eq!(Share::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_larger_share_contains_every_order_of_a_smaller_one() {
        let key = crate::domain::FingerprintKey::new(&[7; 32]);
        let merchant = MerchantId::new("acme").unwrap();
        let shares = ["0", "0.01", "1", "12.34", "50", "99.99", "100"].map(|text| Share::parse(text).unwrap());
        let mut counts = [0_u32; 7];
        let orders = 20_000;
        for number in 0..orders {
            let order_id = crate::domain::OrderId::new(&format!("order-{number}")).unwrap();
            let order = key.order_key(&merchant, Direction::Payin, &order_id);
            let within = shares.map(|share| share.contains(order));
            assert!(within.is_sorted(), "{within:?}");
            counts.iter_mut().zip(within).for_each(|(count, within)| *count += u32::from(within));
        }
        assert_eq!((counts[0], counts[6]), (0, orders));
        for (count, share) in counts.iter().zip(shares) {
            let (all, p) = (f64::from(orders), f64::from(share.0) / 10_000.0);
            let deviation = (all * p * (1.0 - p)).sqrt();
            assert!((f64::from(*count) - all * p).abs() <= 3.0 * deviation + 1.0, "{share}: {count}");
        }
    }
}
