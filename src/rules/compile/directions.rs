//! Values of a merchant's file that are given for both directions at once or for each: `percent = 5`, or
//! `percent = { payin = 5, payout = 0 }`.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::rules::raw::{FromToml, RawReader, raw_table};
use crate::rules::setting::Effect::{Allows, Refuses};
use crate::rules::setting::{OnChange, SettingPlace, Settings};
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

    /// Compares each direction on its own, also where both are given at once.
    fn settings(value: Option<&DeValue<'_>>, at: &SettingPlace<'_>, settings: &mut Settings) {
        let both = value.and_then(DeValue::as_bool).map(|both| format!("{{ payin = {both}, payout = {both} }}"));
        let each = both.as_deref().and_then(|both| DeValue::parse(both).ok());
        RawNativeV2::settings(each.as_ref().map(Spanned::get_ref).or(value), at, settings);
    }
}

raw_table! {
    /// `v2 = { ... }`.
    struct RawNativeV2 {
        /// Whether native v2 creates of deposits are enabled.
        payin: bool = true
            => OnChange::when("true", Allows, Refuses).meaning("whether v2 requests may create deposits"),
        /// Whether native v2 creates of withdrawals are enabled.
        payout: bool = true
            => OnChange::when("true", Allows, Refuses).meaning("whether v2 requests may create withdrawals"),
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
