//! Merchants: how their traffic comes, and whether they can move to v2.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::console::ConsolePage;
use crate::domain::ShopCode;
use crate::http::admin::context::{AdminContext, HandlerResult, ROWS};
use crate::http::admin::refused::Refused;
use crate::rules::{ApiKey, Merchant, Mode, ShopAccess};
use crate::shadow::{MerchantReadiness, ReadinessVerdict};
use crate::traffic::TrafficView;
use crate::v1::query::decoded;

/// How many allowed addresses of a key are shown.
const ADDRESSES: usize = 20;

/// How many shops are shown.
const SHOPS: usize = 100;

/// How long the list waits for the store, without which it shows the rest.
const READINESS_TIMEOUT: Duration = Duration::from_secs(5);

/// A page of the list of merchants.
#[derive(Debug, Default, Serialize)]
pub(super) struct MerchantsPage<'a> {
    pub filter: MerchantFilter,
    /// How many merchants the rules have, and how many of them the filter matches.
    pub total: usize,
    pub matching: usize,
    pub merchants: Vec<MerchantDocument<'a>>,
    pub next: Option<&'a str>,
    pub is_continued: bool,
}

/// The filter of merchants; empty: any.
#[derive(Debug, Default, Serialize)]
pub(super) struct MerchantFilter {
    /// A part of the id or name.
    pub text: String,
    pub mode: String,
}

/// A merchant in the list, and in the head of its own page.
#[derive(Debug, Default, Serialize)]
pub(super) struct MerchantDocument<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub mode: &'a str,
    /// The percentages of a staged merchant, such as `payin 5 %, payout 0 %`, or `5 %` where both are equal.
    pub percent: Option<String>,
    pub dialect: &'a str,
    /// Its requests since the process started.
    pub traffic: TrafficView,
    /// Whether it can move to v2; `None`: all its new orders are made here, or it is not known.
    pub readiness: Option<ReadinessVerdict>,
}

/// One merchant.
#[derive(Debug, Default, Serialize)]
pub(super) struct MerchantPage<'a> {
    pub merchant: MerchantDocument<'a>,
    pub shops: Vec<ShopDocument<'a>>,
    pub keys: Vec<KeyDocument<'a>>,
    /// What limits the report of readiness.
    pub readiness_note: Option<&'a str>,
    /// Whether it can move to v2; `None`: all new orders are made here already.
    pub readiness: Option<MerchantReadiness>,
}

/// A shop of a merchant.
#[derive(Debug, Serialize)]
pub(super) struct ShopDocument<'a> {
    pub code: &'a str,
    pub currency: &'a str,
    /// The kind of its provider.
    pub provider: &'a str,
    /// Which directions are enabled, and in which of them v2 requests may create operations.
    pub payin: bool,
    pub payout: bool,
    pub v2_payin: bool,
    pub v2_payout: bool,
    /// Whether the shop itself is active.
    pub is_active: bool,
    pub is_default: bool,
}

/// An API key of a merchant.
#[derive(Debug, Default, Serialize)]
pub(super) struct KeyDocument<'a> {
    pub masked: String,
    /// Whether it may call v1, and v2, and has a secret for it.
    pub v1: bool,
    pub v2: bool,
    /// The addresses that may use it; empty: none may.
    pub allowed_ips: Vec<String>,
    /// How many requests a second it may make, and in bursts of how many; `None`: unlimited.
    pub rate_limit: Option<(u32, u32)>,
    /// The shops it is limited to; empty: all.
    pub shops: Vec<&'a str>,
}

/// Answers `GET /merchants`.
pub(in crate::http::admin) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let [text, mode, after] = context.parameters(["text", "mode", "after"])?;
    let rules = context.source.rule_set();
    let wanted = text.trim().to_lowercase();
    let matches = |merchant: &Merchant| {
        (mode.is_empty() || merchant.v1.mode.as_str() == mode)
            && (merchant.id.as_str().to_lowercase().contains(&wanted) || merchant.name.to_lowercase().contains(&wanted))
    };
    let mut matching: Vec<_> = rules.merchants.values().filter(|merchant| matches(merchant)).collect();
    matching.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    let count = matching.len();
    let mut rest = matching.into_iter().filter(|merchant| merchant.id.as_str() > after.as_str());
    let shown: Vec<_> = rest.by_ref().take(ROWS).map(Arc::clone).collect();
    let next = rest.next().and(shown.last()).map(|last| last.id.as_str());
    let readiness = verdicts(context, &shown).await;
    let view = MerchantsPage {
        filter: MerchantFilter { text, mode },
        total: rules.merchants.len(),
        matching: count,
        merchants: shown.iter().map(|one| document(one, readiness.get(one.id.as_str()).copied())).collect(),
        next,
        is_continued: !after.is_empty(),
    };
    context.page(ConsolePage::Merchants, &view).await
}

/// Returns the readiness of those merchants of a page whose v1 service is still the old one: a page reads the store for them
/// alone. Without the store, none is known.
async fn verdicts(context: &AdminContext<'_>, shown: &[Arc<Merchant>]) -> HashMap<Box<str>, ReadinessVerdict> {
    let moving: Vec<_> = shown.iter().filter(|merchant| merchant.v1.mode != Mode::Translate).cloned().collect();
    if moving.is_empty() {
        return HashMap::new();
    }
    let report = timeout(READINESS_TIMEOUT, context.source.readiness(moving)).await;
    let merchants = report.into_iter().flatten().flat_map(|report| report.merchants);
    merchants.map(|merchant| (merchant.merchant, merchant.verdict)).collect()
}

/// Answers `GET /merchants/{id}`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    let rules = context.source.rule_set();
    let named = decoded(context.request.id).ok_or(Refused::NotFound(None))?;
    let unknown = || Refused::NotFound(Some(rules.no_such_merchant(&named)));
    let merchant = rules.merchants.get(&*named).ok_or_else(unknown)?;
    let mut shops: Vec<_> = merchant.shops.values().collect();
    shops.sort_unstable_by(|one, other| one.shop.code.cmp(&other.shop.code));
    let mut view = MerchantPage {
        merchant: document(merchant, None),
        shops: shops.into_iter().take(SHOPS).map(|access| shop(access, merchant)).collect(),
        keys: merchant.api_keys.iter().map(key).collect(),
        ..MerchantPage::default()
    };
    if merchant.v1.mode != Mode::Translate {
        let report = context.source.readiness(vec![Arc::clone(merchant)]).await?;
        view.readiness_note = report.note;
        view.readiness = report.merchants.into_iter().next();
    }
    context.page(ConsolePage::Merchant, &view).await
}

fn document(merchant: &Merchant, readiness: Option<ReadinessVerdict>) -> MerchantDocument<'_> {
    MerchantDocument {
        id: merchant.id.as_str(),
        name: &merchant.name,
        mode: merchant.v1.mode.as_str(),
        percent: percent(merchant.v1.mode),
        dialect: &merchant.v1.dialect.name,
        traffic: merchant.traffic.view(),
        readiness,
    }
}

fn percent(mode: Mode) -> Option<String> {
    let Mode::Staged(shares) = mode else { return None };
    if shares.payin == shares.payout {
        return Some(format!("{}\u{a0}%", shares.payin));
    }
    Some(format!("payin {}\u{a0}%, payout {}\u{a0}%", shares.payin, shares.payout))
}

fn shop<'a>(access: &'a ShopAccess, merchant: &Merchant) -> ShopDocument<'a> {
    let shop = &access.shop;
    ShopDocument {
        code: shop.code.as_str(),
        currency: shop.currency.as_str(),
        provider: shop.provider.kind().as_str(),
        payin: access.payin,
        payout: access.payout,
        v2_payin: access.v2.payin,
        v2_payout: access.v2.payout,
        is_active: shop.active,
        is_default: merchant.default_shop.as_ref() == Some(&shop.code),
    }
}

fn key(key: &ApiKey) -> KeyDocument<'_> {
    let mut shops: Vec<_> = key.shops.iter().flatten().map(ShopCode::as_str).collect();
    shops.sort_unstable();
    KeyDocument {
        masked: masked(&key.key),
        v1: key.v1_secrets.is_some(),
        v2: key.v2 && key.v2_secrets.is_some(),
        allowed_ips: key.allowed_ips.prefixes().take(ADDRESSES).collect(),
        rate_limit: key.rate_limit.as_ref().map(|limit| (limit.quota.per_second.get(), limit.quota.burst.get())),
        shops,
    }
}

/// Shows the ends of a key: enough to recognize it, and too little to use it.
fn masked(key: &str) -> String {
    let characters: Vec<char> = key.chars().collect();
    let shown = (characters.len() / 4).min(4);
    let (start, end) = (characters.iter().take(shown), characters.iter().rev().take(shown).rev());
    format!("{}…{}", start.collect::<String>(), end.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Share, Shares};

    #[test]
    fn equal_shares_are_one_percentage() {
        let share = |text: &str| -> Share { Share::parse(text).unwrap() };
        let shown = |payin, payout| percent(Mode::Staged(Shares { payin: share(payin), payout: share(payout) }));
        assert_eq!(shown("12.34", "12.34").unwrap(), "12.34\u{a0}%");
        assert_eq!(shown("5", "0").unwrap(), "payin 5.00\u{a0}%, payout 0.00\u{a0}%");
        assert_eq!(percent(Mode::Shadow), None);
    }
}
