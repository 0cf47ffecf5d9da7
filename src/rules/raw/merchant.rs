//! `merchants/<id>.toml` as it is written.

use schemars::{Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::leaf::{AMOUNT, CURRENCY, NAME, VISIBLE, WEB_URL};
use super::{Date, Entries, FromToml, List, Prefix, RawSecrets, Reader, raw_table};
use crate::domain::{BrowserUrl, ShopCode};
use crate::rules::{CallbackStyle, IdPolicy, UnknownFields};

raw_table! {
    /// `merchants/<id>.toml`: a merchant's API keys, its shops and how its v1 traffic is completed. The id is the file's name.
    struct RawMerchant where { "minProperties": 1 } {
        /// The merchant's name, which customers read on payment pages: 1 to 100 characters. Without it, the id.
        name: String where { "minLength": 1, "maxLength": 100, "examples": ["Acme Ltd"] },
        /// The shop of requests that name none; one of `[shops]`. Without it such requests are 400.
        default_shop: ShopCode,
        /// The merchant's API keys.
        api_keys: List<RawApiKey>,
        /// The shops that the merchant may use: a table `[shops.<code>]` for each, which enables it. A shop without such a
        /// table is 400.
        shops: Entries<RawShopAccess> where { "propertyNames": { "pattern": NAME } },
        /// How the merchant's v1 traffic is completed.
        v1: RawV1,
        /// What the merchant's balances obey.
        balance: RawBalance,
    }
}

raw_table! {
    /// An element of `[[api_keys]]`.
    struct RawApiKey {
        /// What callers send as their API key: 1 to 255 visible ASCII characters, unique among all merchants.
        key: String = required where { "pattern": VISIBLE, "maxLength": 255, "examples": ["acme-live"] },
        /// Verifies v1 requests: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the secret itself. Of a list,
        /// any verifies. Without it the key cannot call v1.
        v1_secret: RawSecrets where { "examples": ["env:ACME_V1_SECRET", ["env:ACME_V1_SECRET", "env:ACME_V1_OLD"]] },
        /// Verifies v2 requests, and signs the v2 requests that v1 ones become: a secret or a list of secrets, `"env:NAME"`,
        /// `"file:PATH"` or the secret itself. Of a list, the first signs, any verifies.
        v2_secret: RawSecrets = required where {
            "examples": ["env:ACME_V2_SECRET", ["env:ACME_V2_SECRET", "env:ACME_V2_OLD"]],
        },
        /// Where the key may be used from: addresses and networks. Empty: nowhere. IPv4-mapped IPv6 counts as IPv4.
        allowed_ips: List<Prefix> = [],
        /// How fast the key may be used: a rate. Without it the key is not limited. What was used of it survives a reload that
        /// leaves it as it is. Each gateway counts by itself: N of them on one store let N times as much through.
        rate_limit: RawQuota where { "examples": [{ "per_second": 200, "burst": 400 }] },
        /// The shops of the merchant that the key may use. Without it, all.
        shops: List<ShopCode>,
    }
}

raw_table! {
    /// A rate.
    struct RawQuota {
        /// How much is refilled in a second: 1 to 1000000.
        per_second: u32 = required,
        /// How much may be used at once: 1 to 1000000. Without it, as much as a second refills.
        burst: u32,
    }
}

raw_table! {
    /// `[shops.<code>]`.
    struct RawShopAccess {
        /// Whether deposits are enabled.
        payin: bool = true,
        /// Whether withdrawals are enabled.
        payout: bool = true,
    }
}

raw_table! {
    /// `[v1]`.
    struct RawV1 {
        /// The merchant's wire format: the name of a dialect.
        dialect: String = "v1" where { "pattern": NAME },
        /// What happens to v1 requests: they are translated to v2. `shadow` and `legacy` are not supported by this version.
        mode: Mode = "translate" where { "enum": ["translate"] },
        /// Which callbacks the merchant gets.
        ///
        /// - `v1`: relayed in the dialect's shape
        /// - `v2`: sent to the merchant as v2 sends them
        callbacks: CallbackStyle = "v1",
        /// Where callbacks go when the request names no address: an `https://` URL; `http://` with `allow_http_callbacks` and
        /// `callbacks = "v1"`.
        callback_url: String where { "pattern": WEB_URL, "maxLength": 2048, "examples": ["https://acme.example/callbacks"] },
        /// Where browsers go when `paymentData.return_user_url` is missing. Without both the request is 400.
        return_url: BrowserUrl where { "examples": ["https://acme.example/done"] },
        /// What becomes of a `merchant_user_id` that no integer equals.
        ///
        /// - `reject`: the request is 400
        /// - `omit`: it is left out
        non_numeric_user_id: IdPolicy = "reject",
        /// What becomes of unknown top-level members.
        ///
        /// - `reject`: the request is 400
        /// - `ignore`: they are ignored
        unknown_fields: UnknownFields = "reject",
        /// Whether a v1 request may name a plain http callback address.
        allow_http_callbacks: bool = false,
        /// A date: the `Deprecation` header (RFC 9745) on v1 replies to rightly signed requests. Without it, no such header.
        deprecated_since: Date where { "examples": ["2026-06-30"] },
        /// A date, not before `deprecated_since`: the `Sunset` header (RFC 8594), likewise.
        sunset: Date,
        /// The `Link` header, likewise, with `rel="deprecation"` and `rel="sunset"`.
        migration_url: BrowserUrl where { "examples": ["https://docs.example/v2"] },
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
        /// `true`: a withdrawal over what is available in its currency is created FAILED, with HTTP 200, and moves nothing.
        /// `false`: it goes to the provider all the same, and the available balance may go below zero.
        enforce: bool = false,
        /// Amounts by currency, as strings, more than 0 and at most `"9999999999999.99"`. Booked once, when the merchant is
        /// first seen here; a later change books nothing.
        opening: Entries<Located> = {} where {
            "propertyNames": { "pattern": CURRENCY },
            "examples": [{ "EUR": "10000.00" }],
        },
    }
}

/// The text of an amount with its place.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Located(pub Spanned<String>);

impl FromToml for Located {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = reader.text(value, "an amount as a string, such as \"10000.00\"")?;
        Some(Self(Spanned::new(value.span(), text.to_owned())))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": AMOUNT, "examples": ["10000.00"] })
    }
}
