//! `shops/<code>.toml` as it is written.

use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::leaf::{LONGER_THAN_ZERO, VISIBLE, WEB_URL};
use super::{Field, FromToml, List, Located, Prefix, RawSecrets, Reader, raw_table};
use crate::domain::Currency;

raw_table! {
    /// `shops/<code>.toml`: one shop, its currency, schemas, checks and provider. The code is the file's name.
    struct RawShop {
        /// What customers read of the shop on payment pages: 1 to 100 characters. Without it, its code.
        name: String where { "minLength": 1, "maxLength": 100, "examples": ["Cards in euro"] },
        /// The one currency that the shop takes: 3 letters.
        currency: Currency = required,
        /// Whether the shop takes operations now. `false`: new operations are 400.
        active: bool = true,
        /// The status record's `method` when the create request named none: 1 to 64 visible ASCII characters. `card` and
        /// `mobile` decide the default of `payout.account`, too.
        payment_method: String where { "pattern": VISIBLE, "maxLength": 64, "examples": ["card", "mobile"] },
        /// Deposits.
        payin: RawPayin,
        /// Withdrawals.
        payout: RawPayout,
        /// Whom and how much the shop serves. What the checks refuse is created FAILED: the reply is HTTP 200, the provider
        /// never hears of it, and no money moves.
        checks: RawChecks,
        /// What moves the money.
        provider: RawProvider = required,
    }
}

raw_table! {
    /// `[payin]`.
    struct RawPayin {
        /// The JSON Schema of `fields`: the name of a `.json` file beside this one. Without it any `fields` object passes.
        schema: String where { "pattern": SCHEMA_NAME, "examples": ["card-eur.payin.json"] },
        /// Whether pages offer the signed return link, and HTTP providers are told it.
        browser_return: bool = true,
    }
}

raw_table! {
    /// `[payout]`.
    struct RawPayout {
        /// The JSON Schema of `fields`: the name of a `.json` file beside this one. Without it any `fields` object passes.
        schema: String where { "pattern": SCHEMA_NAME, "examples": ["card-eur.payout.json"] },
        /// What a recipient's account must look like. Without it `payment_method` decides: `card`, `mobile`, else any.
        ///
        /// - `"card"`: 12 to 19 digits
        /// - `"mobile"`: `+` and 8 to 15 digits
        /// - `{ pattern = "^[A-Z]{2}[0-9]{10,32}$" }`: a regular expression without look-around and back-references. It
        ///   matches anywhere: anchor it
        account: RawAccount,
    }
}

/// The pattern of the names of schemas.
const SCHEMA_NAME: &str = r"^(\./)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\.json$";

/// `[payout] account`.
#[derive(Debug, Clone)]
pub(in crate::rules) enum RawAccount {
    /// 12 to 19 digits.
    Card,
    /// `+` and 8 to 15 digits.
    Mobile,
    /// As agreed for the shop.
    Pattern(Spanned<String>),
}

raw_table! {
    /// `account = { pattern = "..." }`.
    struct RawPattern {
        /// A regular expression without look-around and back-references. It matches anywhere: anchor it.
        pattern: String = required where { "examples": ["^[A-Z]{2}[0-9]{10,32}$"] },
    }
}

impl FromToml for RawAccount {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) if text == "card" => Some(Self::Card),
            DeValue::String(text) if text == "mobile" => Some(Self::Mobile),
            DeValue::Table(_) => match RawPattern::from_toml(value, reader)?.pattern {
                Field::Given(pattern) => Some(Self::Pattern(pattern)),
                Field::Wrong => None,
                Field::Absent => {
                    reader.wrong(value.span(), "must have the key `pattern`");
                    None
                }
            },
            _ => {
                reader.wrong(value.span(), "must be `card`, `mobile` or { pattern = \"...\" }");
                None
            }
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "string", "enum": ["card", "mobile"] }, RawPattern::schema(generator)],
        })
    }
}

raw_table! {
    /// `[checks]`.
    struct RawChecks {
        /// Customers' addresses that are refused: addresses and networks, compared with `fields.merchant_user_ip` where it was
        /// sent. The connection's address never stands in. IPv4-mapped IPv6 counts as IPv4.
        refused_addresses: List<Prefix> = [],
        /// Customers that are refused: integers within signed 64 bits, compared with `customer_account_id` where it was sent.
        refused_accounts: List<i64> = [],
        /// How much one customer may deposit on one UTC day in this shop.
        payin: RawDailyLimits,
        /// How much one customer may withdraw on one UTC day in this shop.
        payout: RawDailyLimits,
    }
}

raw_table! {
    /// `[checks.payin]` and `[checks.payout]`.
    struct RawDailyLimits {
        /// How many operations of this direction one customer may have on one UTC day: 1 to 1000000. Without it, any number.
        operations_per_day: u32,
        /// The most that a customer's operations of this direction on one UTC day may come to, in the shop's currency, as a
        /// string. Without it, any sum.
        amount_per_day: Located where { "examples": ["2500.00"] },
    }
}

raw_table! {
    /// `[provider]`.
    struct RawProvider where {
        "if": { "properties": { "kind": { "const": "http" } } },
        "then": { "required": ["url", "secret"], "properties": { "delay": false } },
        "else": {
            "if": { "properties": { "kind": { "const": "sandbox" } } },
            "then": {
                "properties": {
                    "url": false,
                    "secret": false,
                    "trust": false,
                    "timeout": false,
                    "first_retry": false,
                    "max_retry": false,
                    "give_up_after": false,
                },
            },
        },
    } {
        /// What the provider is.
        ///
        /// - `sandbox`: built in, moves no money; `delay` is its only key
        /// - `http`: a service of its own; `url` and `secret` are required
        kind: ProviderKind = required,
        /// Of the sandbox alone: how long it takes to come to a result, a span of time.
        delay: Duration = "1s",
        /// Of an HTTP provider, and required there: where operations are posted, an absolute `https://` URL without credentials
        /// and fragment. `http://` is taken for a loopback host alone.
        url: String where { "pattern": WEB_URL, "maxLength": 2048, "examples": ["https://provider.example/operations"] },
        /// Of an HTTP provider, and required there: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the secret
        /// itself. The first signs requests to the provider, any of them verifies its reports.
        secret: RawSecrets where { "examples": ["env:PROVIDER_SECRET"] },
        /// Of an HTTP provider: certificates that are trusted beside the system's roots, PEM files, their paths relative to
        /// this file.
        trust: List<String> = [],
        /// Of an HTTP provider: how long one request may take, from connecting to the last byte of the answer, `"100ms"` to
        /// `"60s"`. A time-out is an unknown result, never FAILED.
        timeout: Duration = "10s" where { "pattern": LONGER_THAN_ZERO },
        /// Of an HTTP provider: the wait after the first failed request, a span of time. It doubles, with jitter, up to
        /// `max_retry`.
        first_retry: Duration = "1s" where { "pattern": LONGER_THAN_ZERO },
        /// Of an HTTP provider: the longest wait between two requests, a span of time, not shorter than `first_retry`.
        max_retry: Duration = "5m" where { "pattern": LONGER_THAN_ZERO },
        /// Of an HTTP provider: how long an operation is asked for, from its creation, a span of time. Then it stays PENDING,
        /// and only a report of the provider can end it.
        give_up_after: Duration = "1d" where { "pattern": LONGER_THAN_ZERO },
    }
}

/// `[provider] kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) enum ProviderKind {
    /// The built-in one.
    Sandbox,
    /// A service of its own.
    Http,
}
