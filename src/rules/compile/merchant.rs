//! `merchants/<id>.toml`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use governor::RateLimiter;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::TimeZone;
use toml::Spanned;

use super::{BUILT_IN_DIALECT, Context, Here, Parts};
use crate::domain::{Amount, Bucket, CallbackUrl, Currency, MerchantId, ShopCode};
use crate::rules::files::{Role, RuleFile};
use crate::rules::problems::{FileId, Span, did_you_mean, quoted};
use crate::rules::raw::{List, Mode, RawApiKey, RawBalance, RawMerchant, RawShopAccess, RawV1};
use crate::rules::{
    AddressSet, ApiKey, BalanceRules, CallbackStyle, IdPolicy, Merchant, Quota, RateLimit, ShopAccess, UnknownFields,
    V1Rules,
};

/// API keys that were seen, each with its place.
type SeenKeys = HashMap<Box<str>, (FileId, Span)>;

impl Context<'_> {
    pub(super) fn merchants(&mut self, parts: &Parts) -> HashMap<MerchantId, Arc<Merchant>> {
        let mut merchants = HashMap::new();
        let mut seen = SeenKeys::new();
        for (role, file) in self.files {
            let Role::Merchant(name) = role else { continue };
            let Ok(id) = MerchantId::new(name) else { continue };
            if let Some(merchant) = self.merchant_file(&id, file, parts, &mut seen) {
                merchants.insert(id, Arc::new(merchant));
            }
        }
        merchants
    }

    fn merchant_file(
        &mut self,
        id: &MerchantId,
        file: &RuleFile,
        parts: &Parts,
        seen: &mut SeenKeys,
    ) -> Option<Merchant> {
        if file
            .text
            .trim_start_matches('\u{feff}')
            .lines()
            .all(|line| matches!(line.trim_start().chars().next(), None | Some('#')))
        {
            // A merchant that says nothing could do nothing; far more often the file was just truncated.
            self.findings.add_unreadable(&file.path, "the merchant's file is empty: it has no key");
            return None;
        }
        let (here, raw) = self.read::<RawMerchant>(file)?;
        let shops = self.shop_access(here, &raw, parts);
        let api_keys = self.api_keys(here, id, &raw, seen);
        let v1 = self.v1(here, raw.v1.get().unwrap_or(&RawV1::default()), parts);
        let balance = self.balance(here, raw.balance.get().unwrap_or(&RawBalance::default()));
        let default_shop = raw.default_shop.given().map(|shop| {
            self.of_merchant(here, "default_shop", shop, &raw);
            shop.get_ref().clone()
        });
        self.merchant_advice(here, &raw, &shops);
        Some(Merchant {
            bucket: Bucket::of(id),
            id: id.clone(),
            name: self.name_for_people(here, "name", &raw.name).unwrap_or_else(|| id.as_str().into()),
            default_shop,
            api_keys,
            shops,
            v1: v1?,
            balance,
        })
    }

    fn shop_access(&mut self, here: Here<'_>, raw: &RawMerchant, parts: &Parts) -> HashMap<ShopCode, ShopAccess> {
        let mut shops = HashMap::new();
        for (code, access) in raw.shops.get().map_or(&[][..], |shops| &shops.0) {
            let Some((code, shop)) = parts.shops.get_key_value(code.get_ref().as_str()) else {
                if self.findings.unread("shops", &format!("{}.toml", code.get_ref())) {
                    continue;
                }
                let suggestion = did_you_mean(code.get_ref(), parts.shops.keys().map(ShopCode::as_str));
                let message = format!("there is no shop {}", quoted(code.get_ref()));
                self.findings.add_with(here.file, code.span(), message, suggestion);
                continue;
            };
            if let Some(shop) = shop {
                let RawShopAccess { payin, payout } = access;
                let access = ShopAccess { shop: Arc::clone(shop), payin: payin.or(true), payout: payout.or(true) };
                shops.insert(code.clone(), access);
            }
        }
        shops
    }

    /// A shop that a key names must be one of the merchant's `[shops]`.
    fn of_merchant(&mut self, here: Here<'_>, key: &str, shop: &Spanned<ShopCode>, raw: &RawMerchant) {
        let known = || raw.shops.get().into_iter().flat_map(|shops| &shops.0).map(|(code, _)| code.get_ref().as_str());
        if !known().any(|code| code == shop.get_ref().as_str()) {
            let suggestion = did_you_mean(shop.get_ref().as_str(), known());
            let code = quoted(shop.get_ref().as_str());
            let message = format!("`{key}`: {code} is not one of the merchant's `[shops]`");
            self.findings.add_with(here.file, shop.span(), message, suggestion);
        }
    }

    fn api_keys(&mut self, here: Here<'_>, id: &MerchantId, raw: &RawMerchant, seen: &mut SeenKeys) -> Vec<ApiKey> {
        let mut keys = Vec::new();
        for entry in raw.api_keys.get().map_or(&[][..], |keys| &keys.0) {
            if let Some(key) = self.api_key(here, id, raw, entry, seen) {
                keys.push(key);
            }
        }
        keys
    }

    fn api_key(
        &mut self,
        here: Here<'_>,
        id: &MerchantId,
        raw: &RawMerchant,
        entry: &Spanned<RawApiKey>,
        seen: &mut SeenKeys,
    ) -> Option<ApiKey> {
        let said = entry.get_ref();
        if said.key.is_absent() {
            self.problem(here, entry.span(), "an API key must say its `key`");
        }
        if said.v2_secret.is_absent() {
            let message = "an API key must have a `v2_secret`: it signs translated v1 requests too";
            self.problem(here, said.key.given().map_or(entry.span(), Spanned::span), message);
        }
        for shop in said.shops.get().map_or(&[][..], |shops| &shops.0) {
            self.of_merchant(here, "api_keys.shops", shop, raw);
        }
        let quota = self.quota(here, "api_keys.rate_limit", &said.rate_limit);
        let v1_secrets = self.secrets(here, &said.v1_secret);
        let v2_secrets = self.secrets(here, &said.v2_secret);
        let key = self.unique_key(here, said.key.given()?, seen)?;
        let codes = |list: &List<ShopCode>| list.0.iter().map(|code| code.get_ref().clone()).collect::<HashSet<_>>();
        Some(ApiKey {
            rate_limit: quota.map(|quota| self.rate_limit(id, &key, quota)),
            key,
            v1_secrets,
            v2_secrets,
            allowed_ips: AddressSet::new(
                said.allowed_ips.get().map_or(&[][..], |list| &list.0).iter().map(|prefix| prefix.get_ref().0),
            ),
            shops: said.shops.get().map(codes),
        })
    }

    fn unique_key(&mut self, here: Here<'_>, key: &Spanned<String>, seen: &mut SeenKeys) -> Option<Box<str>> {
        let text: Box<str> = key.get_ref().as_str().into();
        if !(1..=255).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.problem(here, key.span(), "`api_keys.key` must be 1 to 255 visible ASCII characters");
            return None;
        }
        if let Some((file, span)) = seen.get(&text) {
            let first = (*file, span.clone(), "first used here");
            self.findings.add_beside(here.file, key.span(), "the API key is taken", first);
            return None;
        }
        seen.insert(text.clone(), (here.file, key.span()));
        Some(text)
    }

    /// A limiter, with what was used of it where the key had the same quota before.
    fn rate_limit(&self, id: &MerchantId, key: &str, quota: Quota) -> RateLimit {
        let before = self.previous.and_then(|rules| rules.api_key(key)).filter(|entry| entry.merchant.id == *id);
        if let Some(limit) = before.and_then(|entry| entry.api_key().rate_limit.as_ref())
            && limit.quota == quota
        {
            return limit.clone();
        }
        let rate = governor::Quota::per_second(quota.per_second).allow_burst(quota.burst);
        RateLimit { quota, limiter: Arc::new(RateLimiter::direct(rate)) }
    }

    fn v1(&mut self, here: Here<'_>, raw: &RawV1, parts: &Parts) -> Option<V1Rules> {
        let callbacks = raw.callbacks.or(CallbackStyle::V1);
        let allow_http_callbacks = raw.allow_http_callbacks.or(false);
        let mode = raw.mode.or(Mode::Translate);
        if let Some(given) = raw.mode.given()
            && mode != Mode::Translate
        {
            let name = if mode == Mode::Shadow { "shadow" } else { "legacy" };
            self.problem(here, given.span(), format!("`v1.mode`: \"{name}\" is not supported by this version"));
        }
        let plain_http = allow_http_callbacks && callbacks == CallbackStyle::V1;
        let callback_url = raw.callback_url.given().and_then(|url| self.callback_url(here, url, plain_http));
        let notices = self.notices(here, raw);
        Some(V1Rules {
            dialect: self.merchants_dialect(here, raw, parts)?,
            callbacks,
            callback_url,
            return_url: raw.return_url.get().cloned(),
            non_numeric_user_id: raw.non_numeric_user_id.or(IdPolicy::Reject),
            unknown_fields: raw.unknown_fields.or(UnknownFields::Reject),
            allow_http_callbacks,
            notices,
        })
    }

    fn callback_url(&mut self, here: Here<'_>, url: &Spanned<String>, plain_http: bool) -> Option<CallbackUrl> {
        let text = url.get_ref();
        let checked = if plain_http { CallbackUrl::new_allowing_http(text) } else { CallbackUrl::new(text) };
        checked.map_err(|invalid| self.problem(here, url.span(), format!("`v1.callback_url` {invalid}"))).ok()
    }

    fn merchants_dialect(&mut self, here: Here<'_>, raw: &RawV1, parts: &Parts) -> Option<Arc<crate::rules::Dialect>> {
        let Some(named) = raw.dialect.given() else {
            return parts.dialects.get(BUILT_IN_DIALECT).cloned().flatten();
        };
        let Some(dialect) = parts.dialects.get(named.get_ref().as_str()) else {
            if self.findings.unread("dialects", &format!("{}.toml", named.get_ref())) {
                return None;
            }
            let suggestion = did_you_mean(named.get_ref(), parts.dialects.keys().map(|name| &**name));
            let message = format!("`v1.dialect`: there is no dialect {}", quoted(named.get_ref()));
            self.findings.add_with(here.file, named.span(), message, suggestion);
            return None;
        };
        dialect.clone()
    }

    /// `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` of v1 replies. Names are in lowercase, as HTTP/2 has
    /// them.
    fn notices(&mut self, here: Here<'_>, raw: &RawV1) -> Vec<(&'static str, Box<str>)> {
        let mut notices: Vec<(&'static str, Box<str>)> = Vec::new();
        let since = raw.deprecated_since.get().and_then(|date| midnight(date.0));
        if let Some(since) = since {
            notices.push(("deprecation", format!("@{}", since.as_second()).into()));
        }
        if let Some(sunset) = raw.sunset.given()
            && let Some(at) = midnight(sunset.get_ref().0)
            && let Ok(date) = DateTimePrinter::new().timestamp_to_rfc9110_string(&at)
        {
            if since.is_some_and(|since| since > at) {
                self.problem(here, sunset.span(), "`v1.sunset` must not be before `v1.deprecated_since`");
            }
            notices.push(("sunset", date.into()));
        }
        if let Some(url) = raw.migration_url.get() {
            let url = url.as_str();
            notices.push(("link", format!("<{url}>; rel=\"deprecation\", <{url}>; rel=\"sunset\"").into()));
        }
        notices
    }

    fn balance(&mut self, here: Here<'_>, raw: &RawBalance) -> BalanceRules {
        let mut opening = BTreeMap::new();
        for (currency, amount) in raw.opening.get().map_or(&[][..], |opening| &opening.0) {
            let said = amount.0.get_ref();
            match (Currency::new(currency.get_ref()), Amount::from_decimal_string(said)) {
                (Ok(code), Ok(amount)) => {
                    if opening.insert(code, amount).is_some() {
                        self.problem(here, currency.span(), format!("`balance.opening` names {code} twice"));
                    }
                }
                (Err(invalid), _) => {
                    self.problem(here, currency.span(), format!("a currency of `balance.opening` {invalid}"));
                }
                (_, Err(invalid)) => {
                    self.problem(here, amount.0.span(), format!("an amount of `balance.opening` {invalid}"));
                }
            }
        }
        BalanceRules { enforce: raw.enforce.or(false), opening }
    }
}

/// The first moment of a day, UTC.
fn midnight(date: Date) -> Option<Timestamp> {
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}
