//! Merchants: how their traffic comes, and whether they can move to v2.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::context::{PageContext, PageError, PageResult, ROWS, sentence};
use crate::console::{
    KeyItem, MerchantItem, MerchantSearch, MerchantView, MerchantsView, PageView, RefusalItem, ShopItem, VersionShare,
};
use crate::domain::{MerchantId, ProviderKind};
use crate::rules::{ApiKey, Merchant, Mode, ShopAccess};
use crate::shadow::ReadinessVerdict;
use crate::traffic::TrafficView;
use crate::v1::query::decoded;

/// How many allowed addresses of a key are shown.
const ADDRESSES: usize = 20;

/// How many findings of a kind are shown for a shop and direction.
const FINDINGS: usize = 20;

/// How many shops are shown.
const SHOPS: usize = 100;

/// How long the list waits for the store, without which it shows the rest.
const READINESS_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers `GET /merchants`.
pub(super) async fn list(context: &PageContext<'_>) -> PageResult {
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
    let next = rest.next().and(shown.last()).map(|last| last.id.to_string());
    let readiness = verdicts(context, &shown).await;
    let merchants = shown.iter().map(|merchant| item(merchant, readiness.get(merchant.id.as_str()).copied())).collect();
    let view = MerchantsView {
        filter: MerchantSearch { text, mode },
        total: rules.merchants.len(),
        matching: count,
        merchants,
        next,
        is_continued: !after.is_empty(),
    };
    Ok(context.page(PageView::Merchants(&view)).await)
}

/// Returns the readiness of those merchants of a page whose v1 service is still the old one: a page reads the store for them
/// alone. Without the store, none is known.
async fn verdicts(context: &PageContext<'_>, shown: &[Arc<Merchant>]) -> HashMap<Box<str>, ReadinessVerdict> {
    let moving: Vec<_> = shown.iter().filter(|merchant| merchant.v1.mode != Mode::Translate).cloned().collect();
    if moving.is_empty() {
        return HashMap::new();
    }
    let report = timeout(READINESS_TIMEOUT, context.source.readiness(moving)).await;
    let merchants = report.into_iter().flatten().flat_map(|report| report.merchants);
    merchants.map(|merchant| (merchant.merchant, merchant.verdict)).collect()
}

/// Answers `GET /merchants/{id}`.
pub(super) async fn show(context: &PageContext<'_>) -> PageResult {
    let rules = context.source.rule_set();
    let named = decoded(context.request.id).ok_or(PageError::NotFound)?;
    let merchant = MerchantId::new(&named).ok().and_then(|id| rules.merchants.get(&id));
    let merchant = merchant.ok_or_else(|| PageError::NoMerchant(sentence(&rules.no_such_merchant(&named))))?;
    let traffic = merchant.traffic.view();
    let mut shops: Vec<_> = merchant.shops.values().collect();
    shops.sort_unstable_by(|one, other| one.shop.code.cmp(&other.shop.code));
    let mut view = MerchantView {
        id: merchant.id.to_string(),
        name: merchant.name.to_string(),
        mode: merchant.v1.mode.as_str().to_owned(),
        percent: percent(merchant.v1.mode),
        dialect: merchant.v1.dialect.name.to_string(),
        share: share(&traffic),
        last_v1_at: traffic.last_v1,
        refusals: refusals(&traffic),
        shops: shops.into_iter().take(SHOPS).map(|access| shop(access, merchant)).collect(),
        keys: merchant.api_keys.iter().map(key).collect(),
        ..MerchantView::default()
    };
    if merchant.v1.mode != Mode::Translate {
        let report = context.source.readiness(vec![Arc::clone(merchant)]).await?;
        view.readiness_note = report.note.map(str::to_owned);
        view.readiness = report.merchants.into_iter().next();
        for row in view.readiness.iter_mut().flat_map(|merchant| &mut merchant.rows) {
            for findings in [&mut row.blockers, &mut row.widenings, &mut row.losses] {
                findings.truncate(FINDINGS);
            }
        }
    }
    Ok(context.page(PageView::Merchant(&view)).await)
}

fn item(merchant: &Merchant, readiness: Option<ReadinessVerdict>) -> MerchantItem {
    let traffic = merchant.traffic.view();
    MerchantItem {
        id: merchant.id.to_string(),
        name: merchant.name.to_string(),
        mode: merchant.v1.mode.as_str().to_owned(),
        percent: percent(merchant.v1.mode),
        readiness: readiness.map(|verdict| verdict.as_str().to_owned()),
        share: share(&traffic),
        last_v1_at: traffic.last_v1,
        top_refusal: refusals(&traffic).into_iter().next(),
    }
}

fn percent(mode: Mode) -> Option<String> {
    let Mode::Staged(shares) = mode else { return None };
    if shares.payin == shares.payout {
        return Some(format!("{}\u{a0}%", shares.payin));
    }
    Some(format!("payin {}\u{a0}%, payout {}\u{a0}%", shares.payin, shares.payout))
}

const fn share(traffic: &TrafficView) -> VersionShare {
    VersionShare { v1: traffic.v1, v2: traffic.v2 }
}

fn refusals(traffic: &TrafficView) -> Vec<RefusalItem> {
    let refusals = traffic.refusals.iter();
    refusals.map(|(reason, count)| RefusalItem { reason: (*reason).to_owned(), count: *count }).collect()
}

fn shop(access: &ShopAccess, merchant: &Merchant) -> ShopItem {
    let shop = &access.shop;
    ShopItem {
        code: shop.code.to_string(),
        currency: shop.currency.as_str().to_owned(),
        provider: match shop.provider.kind() {
            ProviderKind::Sandbox => "sandbox",
            ProviderKind::Http => "http",
        }
        .to_owned(),
        payin: access.payin,
        payout: access.payout,
        v2_payin: access.v2.payin,
        v2_payout: access.v2.payout,
        is_active: shop.active,
        is_default: merchant.default_shop.as_ref() == Some(&shop.code),
    }
}

fn key(key: &ApiKey) -> KeyItem {
    let mut shops: Vec<_> = key.shops.iter().flatten().map(ToString::to_string).collect();
    shops.sort_unstable();
    let quota = key.rate_limit.as_ref().map(|limit| limit.quota);
    KeyItem {
        masked: masked(&key.key),
        v1: key.v1_secrets.is_some(),
        v2: key.v2 && key.v2_secrets.is_some(),
        allowed_ips: key.allowed_ips.prefixes().take(ADDRESSES).collect(),
        rate_limit: quota.map(|quota| format!("{} a second, bursts of {}", quota.per_second, quota.burst)),
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
