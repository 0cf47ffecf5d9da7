//! Values of a merchant's file that are given for both directions at once or for each: `percent = 5`, or
//! `percent = { payin = 5, payout = 0 }`.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::rules::raw::{FromToml, RawReader, raw_table};
use crate::rules::{NativeV2, Share, Shares};

impl FromToml for NativeV2 {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        if let DeValue::Table(_) = value.get_ref() {
            let RawNativeV2 { payin, payout } = RawNativeV2::from_toml(value, reader)?;
            return Some(Self { payin: *payin, payout: *payout });
        }
        let both = reader.flag(value, "true, false or { payin = true, payout = false }")?;
        Some(Self { payin: both, payout: both })
    }

    fn schema() -> Value {
        json!({ "anyOf": [bool::schema(), RawNativeV2::schema()] })
    }
}

raw_table! {
    /// `v2 = { ... }`.
    struct RawNativeV2 {
        /// Whether native v2 creates of deposits are enabled.
        payin: bool = true,
        /// Whether native v2 creates of withdrawals are enabled.
        payout: bool = true,
    }
}

impl FromToml for Shares {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        if let DeValue::Table(_) = value.get_ref() {
            let RawShares { payin, payout } = RawShares::from_toml(value, reader)?;
            return Some(Self { payin: *payin, payout: *payout });
        }
        let both = share(value, reader, &format!("{SHARE}, or {{ payin = 5, payout = 0 }}"))?;
        Some(Self { payin: both, payout: both })
    }

    fn schema() -> Value {
        json!({ "anyOf": [Share::schema(), RawShares::schema()] })
    }
}

raw_table! {
    /// `percent = { ... }`.
    struct RawShares {
        /// The share of new payins that are made here: 0 to 100, with at most two decimals.
        payin: Share = 0,
        /// The share of new payouts that are made here: 0 to 100, with at most two decimals.
        payout: Share = 0,
    }
}

impl FromToml for Share {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        share(value, reader, SHARE)
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 100 })
    }
}

const SHARE: &str = "a number from 0 to 100 with at most two decimals";

/// Reads a share, or notes that it must be `expected`.
fn share(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>, expected: &str) -> Option<Share> {
    let share = match value.get_ref() {
        DeValue::Integer(number) => Share::parse(number.as_str()),
        DeValue::Float(number) => Share::parse(number.as_str()),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    };
    if share.is_none() {
        reader.wrong(value.span(), format_args!("must be {expected}"));
    }
    share
}
