//! Warnings: what rules may say and would still fail requests. None keeps an urgent change from taking effect.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use toml::Spanned;

use super::gateway::{RawGateway, RawPages};
use super::merchant::{RawApiKey, RawMerchant};
use super::{Context, Here};
use crate::domain::{ShopCode, host_of, names_loopback};
use crate::rules::problems::{Span, quoted};
use crate::rules::raw::{Field, List};
use crate::rules::{EngineRules, Gateway, ShopAccess, StoreUrl};

/// What warnings about merchants depend on beside their files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Whether this process decides on shops; a remote engine has rules of its own.
    decides: bool,
    /// Whether callbacks may go to loopback and private addresses.
    private_targets: bool,
}

impl Setting {
    /// The setting that a gateway makes; of one that is wrong nothing is held against merchants.
    pub fn of(gateway: Option<&Gateway>) -> Self {
        Self {
            decides: gateway.is_some_and(|gateway| gateway.engine == EngineRules::Embedded),
            private_targets: gateway.is_none_or(|gateway| gateway.callbacks.allow_private_addresses),
        }
    }
}

impl Context<'_> {
    /// What would fail requests to the gateway as a whole.
    pub(super) fn gateway_advice(&mut self, here: Here<'_>, raw: &RawGateway, gateway: &Gateway) {
        self.page_lifetimes(here, &raw.pages);
        self.private_targets(here, raw, gateway);
        self.weak_tls(here, raw, gateway);
        if collide(gateway.server.listen, gateway.admin_listen)
            && let Some(at) = raw.admin.listen.place().or(raw.server.listen.place())
        {
            let message = "`admin.listen` and `server.listen` are the same port: the gateway cannot start with them";
            self.findings.warn(here.file, at, message, None);
        }
    }

    fn page_lifetimes(&mut self, here: Here<'_>, pages: &RawPages) {
        if *pages.link_lifetime > *pages.return_lifetime
            && let Some(at) = pages.link_lifetime.place().or(pages.return_lifetime.place())
        {
            let message = "`pages.link_lifetime` is longer than `pages.return_lifetime`: customers could pay and not \
                           come back";
            self.findings.warn(here.file, at, message, None);
        }
    }

    /// Where TLS is taken if it is offered, whoever stands in between offers none.
    fn weak_tls(&mut self, here: Here<'_>, raw: &RawGateway, gateway: &Gateway) {
        if let StoreUrl::Postgres(url) = &gateway.store.url
            && url.may_be_downgraded()
            && let Some(at) = raw.store.url.place()
        {
            let message = "`store.url` says sslmode=prefer, or nothing of it: whoever is between this gateway and the \
                           database can have it speak without TLS, and read and change all that is said";
            let advice =
                "sslmode=verify-full keeps everybody else out; sslmode=disable says that the network is trusted";
            self.findings.warn(here.file, at, message, Some(advice.into()));
        }
    }

    /// Whoever may name a callback address of a gateway that others reach could have it ask the operator's own network.
    fn private_targets(&mut self, here: Here<'_>, raw: &RawGateway, gateway: &Gateway) {
        let allowed = &raw.callbacks.allow_private_addresses;
        if let Some(at) = allowed.place()
            && **allowed
            && !is_loopback(&gateway.server.public_url)
        {
            let message = "`callbacks.allow_private_addresses` is for development, and `server.public_url` is no loopback \
                           address: merchants could have this gateway call hosts of its own network";
            self.findings.warn(here.file, at, message, None);
        }
    }

    /// What would fail a merchant's requests.
    pub(super) fn merchant_advice(&mut self, here: Here<'_>, raw: &RawMerchant, shops: &HashMap<ShopCode, ShopAccess>) {
        self.keys_advice(here, raw);
        if self.setting.decides {
            self.shops_advice(here, raw);
            self.default_shop_advice(here, raw, shops);
        }
        if let Some(url) = raw.v1.callback_url.given()
            && !self.setting.private_targets
            && is_private(url.get_ref())
        {
            let message = "`v1.callback_url` is a loopback or private address, which callbacks do not go to";
            let advice = "`[callbacks] allow_private_addresses = true` in gateway.toml allows it, for development";
            self.findings.warn(here.file, url.span(), message, Some(advice.into()));
        }
    }

    fn keys_advice(&mut self, here: Here<'_>, raw: &RawMerchant) {
        if let Some(at) = self.empty(here, &raw.api_keys, 0..0) {
            let message = "the merchant has no `[[api_keys]]`: every request in its name is refused";
            self.findings.warn(here.file, at, message, None);
        }
        for key in raw.api_keys.get().map_or(&[][..], |keys| &keys.0) {
            let header = key.get_ref().key.given().map_or(key.span(), Spanned::span);
            let allowed = &key.get_ref().allowed_ips;
            let absent = allowed.place().is_none();
            let empty = match allowed.given() {
                Some(list) => self.is_empty(here, list.get_ref(), list.span()),
                None => !self.findings.refuses(here.file),
            };
            if empty {
                let at = allowed.place().unwrap_or(header);
                let reason = if absent { "it has no `allowed_ips`" } else { "its `allowed_ips` is empty" };
                let message = format!("the API key may be used from nowhere: {reason}");
                self.findings.warn(here.file, at, message, None);
            }
            let shops = &key.get_ref().shops;
            if self.setting.decides
                && !shops.is_absent()
                && let Some(at) = self.empty(here, shops, 0..0)
            {
                let advice = "without `shops` it may use all shops of the merchant".to_owned();
                self.findings.warn(here.file, at, "the API key may use no shop: its `shops` is empty", Some(advice));
            }
        }
    }

    fn shops_advice(&mut self, here: Here<'_>, raw: &RawMerchant) {
        let at = match &raw.shops {
            Field::Absent if !self.findings.refuses(here.file) => 0..0,
            Field::Given(shops)
                if shops.get_ref().0.is_empty() && !self.findings.is_wrong(here.file, &shops.span()) =>
            {
                shops.span()
            }
            Field::Absent | Field::Given(_) | Field::Wrong => return,
        };
        let message = "the merchant has no `[shops.<code>]` table: everything that it creates is refused";
        self.findings.warn(here.file, at, message, None);
    }

    fn default_shop_advice(&mut self, here: Here<'_>, raw: &RawMerchant, shops: &HashMap<ShopCode, ShopAccess>) {
        let Some(named) = raw.default_shop.given() else { return };
        let Some(access) = shops.get(named.get_ref()) else { return };
        let code = quoted(named.get_ref().as_str());
        let mut warn = |reason: &str, advice: Option<&str>| {
            let message = format!("`default_shop`: {code} {reason}");
            self.findings.warn(here.file, named.span(), message, advice.map(str::to_owned));
        };
        if !access.payin && !access.payout {
            warn("is enabled for neither deposits nor withdrawals", None);
        }
        if !access.shop.active {
            warn("is switched off (`active = false` in its file): requests that name no shop are refused", None);
        }
        let keys = raw.api_keys.get().map_or(&[][..], |keys| &keys.0);
        let barred = |key: &Spanned<RawApiKey>| {
            let shops: Option<&List<ShopCode>> = key.get_ref().shops.get();
            shops.is_some_and(|shops| !shops.0.iter().any(|shop| shop.get_ref() == named.get_ref()))
        };
        if !keys.is_empty() && keys.iter().all(barred) {
            warn("is in the `shops` of none of the merchant's API keys", Some("add it to one, or name another shop"));
        }
    }

    /// Where a list is that is empty, and not for what was wrong with its elements; for an absent one `header`. In a file
    /// with an error it may be there under another name.
    fn empty<T>(&self, here: Here<'_>, field: &Field<List<T>>, header: Span) -> Option<Span> {
        match field {
            Field::Absent => (!self.findings.refuses(here.file)).then_some(header),
            Field::Given(list) => self.is_empty(here, list.get_ref(), list.span()).then(|| list.span()),
            Field::Wrong => None,
        }
    }

    /// Whether a list is empty, and not for what was wrong with its elements.
    fn is_empty<T>(&self, here: Here<'_>, list: &List<T>, at: Span) -> bool {
        list.0.is_empty() && !self.findings.is_wrong(here.file, &at)
    }
}

/// Whether two listeners want the same port of the same address.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let every = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (one.ip() == other.ip() || every)
}

/// Whether the text of a URL names this machine; one that could not be read is told of elsewhere.
fn is_loopback(url: &str) -> bool {
    let address = host_of(url).parse::<IpAddr>();
    url.is_empty() || names_loopback(url) || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether the text of a URL names a loopback or private address.
fn is_private(url: &str) -> bool {
    let private = host_of(url).parse::<IpAddr>().is_ok_and(|address| match address.to_canonical() {
        IpAddr::V4(address) => address.is_private() || address.is_link_local() || address.is_loopback(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local() || address.is_loopback(),
    });
    private || names_loopback(url)
}
