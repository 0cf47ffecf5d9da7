//! `merchants/<id>.toml` as it is written.

use toml::Spanned;
use toml::de::DeValue;

use super::{Date, Entries, FromToml, List, Prefix, RawSecrets, Reader, raw_table};
use crate::domain::{BrowserUrl, ShopCode};
use crate::rules::{CallbackStyle, IdPolicy, UnknownFields};

raw_table! {
    /// `merchants/<id>.toml`.
    struct RawMerchant {
        /// For people.
        name: String,
        /// The shop of requests that name none.
        default_shop: ShopCode,
        /// Its API keys.
        api_keys: List<RawApiKey>,
        /// The shops it may use.
        shops: Entries<RawShopAccess>,
        /// How v1 traffic is completed.
        v1: RawV1,
        /// What its balances obey.
        balance: RawBalance,
    }
}

raw_table! {
    /// An element of `[[api_keys]]`.
    struct RawApiKey {
        /// What callers send as their API key.
        key: String,
        /// Verifies v1 requests; absent: the key cannot call v1.
        v1_secret: RawSecrets,
        /// Verifies v2 requests and signs translated ones.
        v2_secret: RawSecrets,
        /// Where it may be used from; empty: nowhere.
        allowed_ips: List<Prefix>,
        /// How fast it may be used; absent: unlimited.
        rate_limit: RawQuota,
        /// The shops it may use; absent: all of the merchant's.
        shops: List<ShopCode>,
    }
}

raw_table! {
    /// A rate.
    struct RawQuota {
        /// Refill.
        per_second: u32,
        /// Capacity; absent: as much as a second refills.
        burst: u32,
    }
}

raw_table! {
    /// `[shops.<code>]`.
    struct RawShopAccess {
        /// v2 deposits are enabled.
        payin: bool,
        /// v2 withdrawals are enabled.
        payout: bool,
    }
}

raw_table! {
    /// `[v1]`.
    struct RawV1 {
        /// The merchant's wire format.
        dialect: String,
        /// What happens to v1 requests.
        mode: Mode,
        /// Which callbacks the merchant gets.
        callbacks: CallbackStyle,
        /// Where callbacks go when the request names no address.
        callback_url: String,
        /// Where browsers go when `paymentData.return_user_url` is missing.
        return_url: BrowserUrl,
        /// What becomes of a `merchant_user_id` without equivalent.
        non_numeric_user_id: IdPolicy,
        /// What becomes of unknown top-level members.
        unknown_fields: UnknownFields,
        /// Whether a v1 request may name a plain http callback address.
        allow_http_callbacks: bool,
        /// `Deprecation` header on v1 replies.
        deprecated_since: Date,
        /// `Sunset` header on v1 replies.
        sunset: Date,
        /// `Link` header on v1 replies.
        migration_url: BrowserUrl,
    }
}

/// `[v1] mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) enum Mode {
    /// Requests are translated.
    Translate,
    /// Requests go to the old service and are checked against v2.
    Shadow,
    /// Requests go to the old service.
    Legacy,
}

raw_table! {
    /// `[balance]`.
    struct RawBalance {
        /// Whether a withdrawal over the available balance is created FAILED.
        enforce: bool,
        /// Booked once, when the merchant is first seen.
        opening: Entries<Located>,
    }
}

/// A text with its place.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Located(pub Spanned<String>);

impl FromToml for Located {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = reader.text(value, "an amount as a string, such as \"10000.00\"")?;
        Some(Self(Spanned::new(value.span(), text.to_owned())))
    }
}
