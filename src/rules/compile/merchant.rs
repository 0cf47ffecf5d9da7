//! Compiles `merchants/<id>.toml`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use toml::Spanned;

use super::fingerprint::CreateRules;
use super::{BUILT_IN_DIALECT, Context, FileContext, ReadFile, ShopsAndDialects};
use crate::domain::{Amount, BrowserUrl, Bucket, CallbackUrl, Currency, MerchantId, Quota, ShopCode};
use crate::names::{did_you_mean, quoted};
use crate::rules::files::{FileRole, RuleFile};
use crate::rules::merchant::notices;
use crate::rules::problems::{FileId, Span};
use crate::rules::raw::{
    CURRENCY, Cidr, Date as Day, DisplayName, Entries, FromToml as _, List, NAME, RawSecrets, Visible, WEB_URL,
    from_words, raw_table,
};
use crate::rules::setting::Effect::{Allows, Neither, Refuses, TakesAway};
use crate::rules::setting::OnChange;
use crate::rules::{
    AddressSet, ApiKey, BalanceRules, CallbackStyle, IdPolicy, Merchant, Mode, NativeV2, RateLimit, Shares, ShopAccess,
    UnknownFields, V1Rules,
};

raw_table! {
    /// `merchants/<id>.toml`: a merchant's API keys, its shops and its rules for v1 requests. The file's name is the
    /// merchant's id.
    struct RawMerchant where { "minProperties": 1 } {
        /// The merchant's name, which customers read on payment pages: 1 to 100 characters. Without it, the id is
        /// shown.
        name: DisplayName where { "examples": ["Acme Ltd"] }
            => OnChange::always(Neither).meaning("what customers read on payment pages")
                .or_else(|_, at| Some(at.file_stem())),
        /// The shop of requests that name none: one of `[shops]`. Without it such requests are 400.
        default_shop: ShopCode => OnChange::opens().meaning("where requests go that name no shop"),
        /// The merchant's API keys.
        api_keys: List<RawApiKey>,
        /// The shops that the merchant may use: a table `[shops.<code>]` enables the shop. Requests for any other shop
        /// are 400.
        shops: Entries<RawShopAccess> where { "propertyNames": { "pattern": NAME } },
        /// The rules for the merchant's v1 requests.
        v1: RawV1 = section,
        /// The rules for the merchant's balances.
        balance: RawBalance = section,
    }
}

raw_table! {
    /// An element of `[[api_keys]]`.
    struct RawApiKey {
        /// The API key that requests carry: 1 to 255 visible ASCII characters, unique among all merchants.
        key: Visible<255> = required where { "examples": ["acme-live"] } => OnChange::name(),
        /// Verifies v1 requests: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the secret itself. Of a
        /// list, any verifies. Without it the key cannot call v1.
        v1_secret: RawSecrets where { "examples": ["env:ACME_V1_SECRET", ["env:ACME_V1_SECRET", "env:ACME_V1_OLD"]] }
            => OnChange::secret_with(
                (Allows, "the key can now call v1"),
                (TakesAway, "the key can no longer call v1: 401"),
            ),
        /// Verifies v2 requests, and signs the v2 requests into which v1 requests are translated: a secret or a list of
        /// secrets, `"env:NAME"`, `"file:PATH"` or the secret itself. Of a list, the first signs, any verifies.
        v2_secret: RawSecrets = required where {
            "examples": ["env:ACME_V2_SECRET", ["env:ACME_V2_SECRET", "env:ACME_V2_OLD"]],
        },
        /// Whether the key may call v2. `false`: its v2 requests are 401, as with an unknown key, and it needs a
        /// `v1_secret`. What its v1 requests become is signed with `v2_secret` all the same.
        v2: bool = true
            => OnChange::when("true", Allows, Refuses)
                .meaning("whether the key may call v2; if not, its callers get 401"),
        /// Addresses and networks from which the key may be used. Empty: none. IPv4-mapped IPv6 counts as IPv4.
        allowed_ips: List<Cidr> = [] => OnChange::entries(Allows, TakesAway),
        /// How often the key may be used: a rate. Without it the key is not limited. A reload keeps the current usage
        /// unless it changes the rate. Each gateway counts separately: N gateways on one store together admit N times
        /// as many requests.
        rate_limit: Quota where { "examples": [{ "per_second": 200, "burst": 400 }] } => OnChange::more(),
        /// The shops of the merchant for which the key may be used. Without it, all.
        shops: List<ShopCode> => OnChange::entries(Allows, TakesAway).absent("all"),
    }
}

raw_table! {
    /// What the merchant may do in a shop.
    struct RawShopAccess {
        /// Whether deposits are enabled.
        payin: bool = true => OnChange::when("true", Allows, TakesAway).meaning("whether deposits are enabled"),
        /// Whether withdrawals are enabled.
        payout: bool = true => OnChange::when("true", Allows, TakesAway).meaning("whether withdrawals are enabled"),
        /// Whether the merchant's own v2 requests may create operations: `true`, `false`, or
        /// `{ payin = true, payout = false }`. `true` for what is not named. Where it is `false`, new ones are 400;
        /// repeats and statuses are answered, and v1 requests are translated all the same. Before a remote engine it
        /// does not apply.
        v2: NativeV2 = true where { "examples": [false, { "payin": true, "payout": false }] },
    }
}

raw_table! {
    /// `[v1]`.
    struct RawV1 {
        /// The merchant's wire format: the name of a dialect.
        dialect: String = "v1" where { "pattern": NAME }
            => OnChange::always(Refuses).meaning("its v1 requests are read in the new dialect"),
        /// Where v1 orders without a home are made. Orders that have a home stay there in every mode. All modes but
        /// `translate` need `[legacy]` in `gateway.toml`.
        ///
        /// - `translate`: here, translated to v2
        /// - `legacy`: at the old v1 service, to which requests are forwarded
        /// - `shadow`: as `legacy`, and each create is checked against v2 after its reply
        /// - `staged`: a share of new orders here, by `percent`, the others at the old service
        mode: ModeWord = "translate"
            => OnChange::always(Refuses).meaning("where its orders without a home are made").checks_no_create(),
        /// The share of new orders that mode `staged` makes here: 0 to 100, with at most two decimals, or
        /// `{ payin = 5, payout = 0 }`. 0 for what is not named. Other modes ignore it. A direction stays at 0 until
        /// `paybridge import-ids --complete` has marked its list of old ids as whole.
        percent: Shares = 0 where { "examples": [5, { "payin": 2.5, "payout": 0 }] }
            => OnChange::always(Refuses).meaning("the share of its new orders that mode `staged` makes here")
                .checks_no_create(),
        /// The format of the merchant's callbacks.
        ///
        /// - `v1`: relayed in the dialect's format
        /// - `v2`: sent to the merchant as v2 sends them
        callbacks: CallbackStyle = "v1",
        /// The callback address of requests that name none: an `https://` URL; `http://` with `allow_http_callbacks`
        /// and `callbacks = "v1"`.
        callback_url: String where { "pattern": WEB_URL, "maxLength": 2048, "examples": ["https://acme.example/callbacks"] }
            => OnChange::always(Refuses).meaning("for requests that name no address"),
        /// Where browsers return to when `paymentData.return_user_url` is missing. Without both the request is 400.
        return_url: BrowserUrl where { "examples": ["https://acme.example/done"] }
            => OnChange::opens().meaning("for deposits that name no return address"),
        /// How a `merchant_user_id` that equals no integer is handled.
        ///
        /// - `reject`: the request is 400
        /// - `omit`: the member is left out
        non_numeric_user_id: IdPolicy = "reject" => OnChange::when("omit", Allows, Refuses),
        /// How unknown top-level members are handled.
        ///
        /// - `reject`: the request is 400
        /// - `ignore`: they are ignored
        unknown_fields: UnknownFields = "reject" => OnChange::when("ignore", Allows, Refuses),
        /// Whether a v1 request may name a plain http callback address.
        allow_http_callbacks: bool = false => OnChange::when("true", Allows, Refuses),
        /// A date: the `Deprecation` header (RFC 9745) of v1 replies to correctly signed requests. Without it, there is
        /// no such header.
        deprecated_since: Day where { "examples": ["2026-06-30"] }
            => OnChange::always(Neither).meaning("a header of v1 replies"),
        /// A date, not before `deprecated_since`: the `Sunset` header (RFC 8594) of the same replies.
        sunset: Day => OnChange::always(Neither).meaning("a header of v1 replies"),
        /// The `Link` header of the same replies, with `rel="deprecation"` and `rel="sunset"`.
        migration_url: BrowserUrl where { "examples": ["https://docs.example/v2"] }
            => OnChange::always(Neither).meaning("a header of v1 replies"),
    }
}

/// `[v1] mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) enum ModeWord {
    Translate,
    Legacy,
    Shadow,
    Staged,
}

from_words! {
    ModeWord {
        "translate" => ModeWord::Translate,
        "legacy" => ModeWord::Legacy,
        "shadow" => ModeWord::Shadow,
        "staged" => ModeWord::Staged,
    }
    CallbackStyle {
        "v1" => CallbackStyle::V1,
        "v2" => CallbackStyle::V2,
    }
    IdPolicy {
        "reject" => IdPolicy::Reject,
        "omit" => IdPolicy::Omit,
    }
    UnknownFields {
        "reject" => UnknownFields::Reject,
        "ignore" => UnknownFields::Ignore,
    }
}

raw_table! {
    /// `[balance]`.
    struct RawBalance {
        /// `true`: a withdrawal that exceeds the available balance of its currency is created FAILED, with HTTP 200,
        /// and moves no money. `false`: it is sent to the provider anyway, and the available balance may become
        /// negative.
        enforce: bool = false
            => OnChange::when("false", Allows, Refuses).meaning("whether the available balance bounds withdrawals"),
        /// Opening balances by currency, as strings, more than 0 and at most `"9999999999999.99"`. Posted once, when
        /// the store first sees the merchant; a later change posts nothing.
        opening: Entries<Amount> = {} where {
            "propertyNames": { "pattern": CURRENCY },
            "examples": [{ "EUR": "10000.00" }],
        } => OnChange::always(Neither).meaning("posted only when a merchant is first seen").in_any_case(),
    }
}

/// API keys of all merchants so far, each with its place.
type SeenKeys = HashMap<Box<str>, (FileId, Span)>;

impl Context<'_> {
    pub(super) fn merchants(&mut self, parts: &ShopsAndDialects) -> HashMap<MerchantId, Arc<Merchant>> {
        let (files, mut seen) = (self.files, SeenKeys::new());
        let merchants = files.iter().filter_map(|(role, file)| {
            let FileRole::Merchant(name) = role else { return None };
            let id = MerchantId::new(name).ok()?;
            let merchant = self.merchant_file(&id, file, parts, &mut seen)?;
            Some((id, Arc::new(merchant)))
        });
        merchants.collect()
    }

    fn merchant_file(
        &mut self,
        id: &MerchantId,
        file: &RuleFile,
        parts: &ShopsAndDialects,
        seen: &mut SeenKeys,
    ) -> Option<Merchant> {
        if file
            .text
            .trim_start_matches('\u{feff}')
            .lines()
            .all(|line| matches!(line.trim_start().chars().next(), None | Some('#')))
        {
            // A merchant without keys could do nothing; far more likely the file was just truncated.
            self.diagnostics.add_unreadable(&file.path, "the merchant's file is empty: it has no key");
            return None;
        }
        let ReadFile { context, raw, document } = self.read::<RawMerchant>(file)?;
        let shops = self.shop_access(context, &raw, parts);
        let api_keys = self.api_keys(context, id, &raw, seen);
        let balance = self.balance(context, &raw.balance);
        let v1 = self.v1(context, &raw.v1, parts, &balance);
        let default_shop = raw.default_shop.given().map(|shop| {
            self.check_shop_of_merchant(context, "default_shop", shop, &raw);
            shop.get_ref().clone()
        });
        self.warn_about_merchant(context, &raw);
        let v1 = v1?;
        let checked_by = CreateRules {
            id,
            default_shop: default_shop.as_ref(),
            shops: &shops,
            api_keys: &api_keys,
            dialect: &v1.dialect,
            v1: document.get("v1").map(Spanned::get_ref),
            v1_keys: RawV1::keys(),
        };
        let before = self.previous.and_then(|rules| rules.merchants.get(id));
        Some(Merchant {
            traffic: before.map_or_else(Arc::default, |before| Arc::clone(&before.traffic)),
            rules_fingerprint: self.rules_fingerprint(&checked_by),
            bucket: Bucket::of(id),
            id: id.clone(),
            name: raw.name.get().map_or_else(|| id.as_str().into(), |name| name.0.clone()),
            default_shop,
            api_keys,
            shops,
            v1,
            balance,
        })
    }

    fn shop_access(
        &mut self,
        context: FileContext<'_>,
        raw: &RawMerchant,
        parts: &ShopsAndDialects,
    ) -> HashMap<ShopCode, ShopAccess> {
        let mut shops = HashMap::new();
        for (code, access) in raw.shops.get().into_iter().flat_map(|shops| &shops.0) {
            let Some((code, shop)) = parts.shops.get_key_value(code.get_ref().as_str()) else {
                let message = format!("there is no shop {}", quoted(code.get_ref()));
                let known = parts.shops.keys().map(ShopCode::as_str);
                self.unknown_name(context, code, ("shops", ".toml"), message, known);
                continue;
            };
            if let Some(shop) = shop {
                let RawShopAccess { payin, payout, v2 } = access;
                let access = ShopAccess { shop: Arc::clone(shop), payin: **payin, payout: **payout, v2: **v2 };
                shops.insert(code.clone(), access);
            }
        }
        shops
    }

    /// Notes a shop that is not one of the merchant's `[shops]`.
    fn check_shop_of_merchant(
        &mut self,
        context: FileContext<'_>,
        key: &str,
        shop: &Spanned<ShopCode>,
        raw: &RawMerchant,
    ) {
        let known = || raw.shops.get().into_iter().flat_map(|shops| &shops.0).map(|(code, _)| code.get_ref().as_str());
        if !known().any(|code| code == shop.get_ref().as_str()) {
            let suggestion = did_you_mean(shop.get_ref().as_str(), known());
            let code = quoted(shop.get_ref().as_str());
            let message = format!("`{key}`: {code} is not one of the merchant's `[shops]`");
            self.diagnostics.add_with(context.file, shop.span(), message, suggestion);
        }
    }

    fn api_keys(
        &mut self,
        context: FileContext<'_>,
        id: &MerchantId,
        raw: &RawMerchant,
        seen: &mut SeenKeys,
    ) -> Vec<ApiKey> {
        let entries = raw.api_keys.get().into_iter().flat_map(|keys| &keys.0);
        entries.filter_map(|entry| self.api_key(context, id, raw, entry, seen)).collect()
    }

    fn api_key(
        &mut self,
        context: FileContext<'_>,
        id: &MerchantId,
        raw: &RawMerchant,
        entry: &Spanned<RawApiKey>,
        seen: &mut SeenKeys,
    ) -> Option<ApiKey> {
        let raw_key = entry.get_ref();
        for shop in raw_key.shops.get().into_iter().flat_map(|shops| &shops.0) {
            self.check_shop_of_merchant(context, "api_keys.shops", shop, raw);
        }
        let v1_secrets = self.secrets(context, &raw_key.v1_secret);
        let v2_secrets = self.secrets(context, &raw_key.v2_secret);
        if let (false, Some(at), None) = (*raw_key.v2, raw_key.v2.place(), raw_key.v1_secret.given()) {
            self.problem(
                context,
                at,
                "`api_keys.v2`: a key without `v1_secret` that may not call v2 could call nothing",
            );
        }
        let key = self.unique_key(context, raw_key.key.given()?, seen)?;
        let codes = |list: &List<ShopCode>| list.values().cloned().collect::<HashSet<_>>();
        Some(ApiKey {
            rate_limit: raw_key.rate_limit.get().map(|quota| self.rate_limit(id, &key, *quota)),
            key: key.into(),
            v1_secrets,
            v2_secrets,
            v2: *raw_key.v2,
            allowed_ips: AddressSet::new(raw_key.allowed_ips.values().map(|prefix| prefix.0)),
            shops: raw_key.shops.get().map(codes),
        })
    }

    fn unique_key(
        &mut self,
        context: FileContext<'_>,
        key: &Spanned<Visible<255>>,
        seen: &mut SeenKeys,
    ) -> Option<Box<str>> {
        let text = key.get_ref().0.clone();
        let Some((file, span)) = seen.insert(text.clone(), (context.file, key.span())) else { return Some(text) };
        let (path, (line, column)) =
            (self.diagnostics.path(file).display(), self.diagnostics.position(file, span.start));
        let message = format!("the API key is taken: it is used at {path}:{line}:{column}");
        self.problem(context, key.span(), message);
        None
    }

    /// Returns a rate limiter, with its current usage if the key had the same rate before.
    fn rate_limit(&self, id: &MerchantId, key: &str, quota: Quota) -> RateLimit {
        let before = self.previous.and_then(|rules| rules.api_key(key)).filter(|entry| entry.merchant.id == *id);
        if let Some(limit) = before.and_then(|entry| entry.api_key().rate_limit.as_ref())
            && limit.quota == quota
        {
            return limit.clone();
        }
        RateLimit::new(quota)
    }

    fn v1(
        &mut self,
        context: FileContext<'_>,
        raw: &RawV1,
        parts: &ShopsAndDialects,
        balance: &BalanceRules,
    ) -> Option<V1Rules> {
        let (callbacks, allow_http_callbacks) = (*raw.callbacks, *raw.allow_http_callbacks);
        let mode = self.mode(context, raw, balance);
        let plain_http = allow_http_callbacks && callbacks == CallbackStyle::V1;
        let callback_url = raw.callback_url.given().and_then(|url| self.callback_url(context, url, plain_http));
        let (since, sunset) = (raw.deprecated_since.get().map(|day| day.0), raw.sunset.get().map(|day| day.0));
        if let (Some(since), Some(sunset), Some(at)) = (since, sunset, raw.sunset.place())
            && sunset < since
        {
            self.problem(context, at, "`v1.sunset` must not be before `v1.deprecated_since`");
        }
        Some(V1Rules {
            dialect: self.merchants_dialect(context, raw, parts)?,
            mode,
            callbacks,
            callback_url,
            return_url: raw.return_url.get().cloned(),
            non_numeric_user_id: *raw.non_numeric_user_id,
            unknown_fields: *raw.unknown_fields,
            allow_http_callbacks,
            notices: notices(since, sunset, raw.migration_url.get()),
        })
    }

    /// Returns the mode, with the shares of `staged`.
    fn mode(&mut self, context: FileContext<'_>, raw: &RawV1, balance: &BalanceRules) -> Mode {
        let shares = *raw.percent;
        let mode = match *raw.mode {
            ModeWord::Translate => Mode::Translate,
            ModeWord::Legacy => Mode::Legacy,
            ModeWord::Shadow => Mode::Shadow,
            ModeWord::Staged => Mode::Staged(shares),
        };
        if mode != Mode::Translate
            && !self.has_legacy
            && let Some(at) = raw.mode.place()
        {
            let message = format!(
                "`v1.mode`: \"{}\" forwards requests to the old v1 service, and gateway.toml has no `[legacy]`",
                mode.as_str()
            );
            let advice = "name the service as `url` of `[legacy]` in gateway.toml, or use mode \"translate\"";
            self.diagnostics.add_with(context.file, at, message, Some(advice.into()));
        }
        if matches!(mode, Mode::Staged(_))
            && balance.enforce
            && shares.payout.is_partial()
            && let Some(at) = raw.percent.place()
        {
            let message = "`v1.percent`: payouts cannot be split between here and the old service while \
                           `balance.enforce` is set: the merchant's balance would be in two places";
            let advice =
                "write `percent = { payin = ..., payout = 0 }`, and move all payouts at once with `payout = 100`";
            self.diagnostics.add_with(context.file, at, message, Some(advice.into()));
        }
        mode
    }

    fn callback_url(
        &mut self,
        context: FileContext<'_>,
        url: &Spanned<String>,
        plain_http: bool,
    ) -> Option<CallbackUrl> {
        let text = url.get_ref();
        let checked = if plain_http { CallbackUrl::new_allowing_http(text) } else { CallbackUrl::new(text) };
        checked.map_err(|invalid| self.problem(context, url.span(), format!("`v1.callback_url` {invalid}"))).ok()
    }

    fn merchants_dialect(
        &mut self,
        context: FileContext<'_>,
        raw: &RawV1,
        parts: &ShopsAndDialects,
    ) -> Option<Arc<crate::rules::Dialect>> {
        let Some(named) = raw.dialect.given() else {
            return parts.dialects.get(BUILT_IN_DIALECT).cloned().flatten();
        };
        let Some(dialect) = parts.dialects.get(raw.dialect.as_str()) else {
            let message = format!("`v1.dialect`: there is no dialect {}", quoted(&raw.dialect));
            let named = Spanned::new(named.span(), (*named.get_ref()).clone());
            self.unknown_name(
                context,
                &named,
                ("dialects", ".toml"),
                message,
                parts.dialects.keys().map(|name| &**name),
            );
            return None;
        };
        dialect.clone()
    }

    fn balance(&mut self, context: FileContext<'_>, raw: &RawBalance) -> BalanceRules {
        let mut opening = BTreeMap::new();
        for (currency, amount) in &raw.opening.0 {
            match Currency::new(currency.get_ref()) {
                Ok(code) => {
                    if opening.insert(code, *amount).is_some() {
                        self.problem(context, currency.span(), format!("`balance.opening` names {code} twice"));
                    }
                }
                Err(invalid) => {
                    self.problem(context, currency.span(), format!("a currency of `balance.opening` {invalid}"));
                }
            }
        }
        BalanceRules { enforce: *raw.enforce, opening }
    }
}
