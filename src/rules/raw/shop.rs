//! `shops/<code>.toml` as it is written.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::{Field, FromToml, List, Located, Prefix, RawSecrets, Reader, raw_table};
use crate::domain::Currency;

raw_table! {
    /// `shops/<code>.toml`.
    struct RawShop {
        /// The one currency it takes.
        currency: Currency,
        /// Whether it takes operations now.
        active: bool,
        /// The status record's `method` when the create request named none.
        payment_method: String,
        /// Deposits.
        payin: RawPayin,
        /// Withdrawals.
        payout: RawPayout,
        /// Whom and how much it serves.
        checks: RawChecks,
        /// What moves the money.
        provider: RawProvider,
    }
}

raw_table! {
    /// `[payin]`.
    struct RawPayin {
        /// The JSON Schema of `fields`, a file beside this one.
        schema: String,
        /// Whether pages offer the signed return link.
        browser_return: bool,
    }
}

raw_table! {
    /// `[payout]`.
    struct RawPayout {
        /// The JSON Schema of `fields`, a file beside this one.
        schema: String,
        /// What a recipient's account must look like.
        account: RawAccount,
    }
}

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
        /// A regular expression.
        pattern: String,
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
}

raw_table! {
    /// `[checks]`.
    struct RawChecks {
        /// Customers' addresses that are refused.
        refused_addresses: List<Prefix>,
        /// Customers that are refused, by `customer_account_id`.
        refused_accounts: List<i64>,
        /// Of one customer and UTC day: deposits.
        payin: RawDailyLimits,
        /// Of one customer and UTC day: withdrawals.
        payout: RawDailyLimits,
    }
}

raw_table! {
    /// `[checks.payin]` and `[checks.payout]`.
    struct RawDailyLimits {
        /// At most so many operations.
        operations_per_day: u32,
        /// At most this much in all, in the shop's currency.
        amount_per_day: Located,
    }
}

raw_table! {
    /// `[provider]`.
    struct RawProvider {
        /// `sandbox` or `http`.
        kind: ProviderKind,
        /// How long the sandbox takes to come to a result.
        delay: Duration,
        /// Of an HTTP provider.
        url: String,
        /// Of an HTTP provider.
        secret: RawSecrets,
        /// Of an HTTP provider: extra roots, PEM files.
        trust: List<String>,
        /// Of an HTTP provider: for one request.
        timeout: Duration,
        /// Of an HTTP provider: after the first failed request; doubles up to `max_retry`.
        first_retry: Duration,
        /// Of an HTTP provider: the longest wait between requests.
        max_retry: Duration,
        /// Of an HTTP provider: from the operation's creation.
        give_up_after: Duration,
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
