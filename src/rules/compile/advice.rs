//! Warnings: what rules may say and would still fail requests, or leave a door open. None keeps an urgent change from taking
//! effect.

use std::net::IpAddr;

use toml::Spanned;

use super::gateway::RawGateway;
use super::merchant::RawMerchant;
use super::{Context, FileContext};
use crate::domain::{host_of, names_loopback};
use crate::rules::problems::Span;
use crate::rules::{GatewayRules, StoreUrl};

impl Context<'_> {
    /// Warns of what a gateway leaves open.
    pub(super) fn gateway_advice(&mut self, here: FileContext<'_>, raw: &RawGateway, gateway: &GatewayRules) {
        if let StoreUrl::Postgres(url) = &gateway.store.url
            && url.may_be_downgraded()
            && let Some(at) = raw.store.url.place()
        {
            let message = "`store.url` says sslmode=prefer, or nothing of it: whoever is between this gateway and the \
                           database can have it speak without TLS, and read and change all that passes";
            let advice =
                "sslmode=verify-full keeps everybody else out; sslmode=disable says that the network is trusted";
            self.findings.warn(here.file, at, message, Some(advice.into()));
        }
        // Merchants name callback addresses, and so could have the gateway ask the operator's own network.
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

    /// Warns of a merchant whose every request would be refused.
    pub(super) fn merchant_advice(&mut self, here: FileContext<'_>, raw: &RawMerchant) {
        let keys = raw.api_keys.get().map_or(&[][..], |keys| &keys.0);
        if keys.is_empty() {
            let message = "the merchant has no `[[api_keys]]`: every request in its name is refused";
            self.warn_of_none(here, raw.api_keys.place(), None, message);
        }
        for key in keys.iter().map(Spanned::get_ref).filter(|key| key.allowed_ips.0.is_empty()) {
            let message = "the API key may be used from nowhere: its `allowed_ips` is missing or empty";
            self.warn_of_none(here, key.allowed_ips.place(), key.key.place(), message);
        }
        // A remote engine has shops of its own.
        if self.decides && raw.shops.get().is_none_or(|shops| shops.0.is_empty()) {
            let message = "the merchant has no `[shops.<code>]` table: everything that it creates is refused";
            self.warn_of_none(here, raw.shops.place(), None, message);
        }
    }

    /// Warns of a value that holds nothing, at its place or else at that of something near, unless it was meant to hold
    /// something: what is in it is wrong, or in a file with an error it may be there under another name.
    fn warn_of_none(&mut self, here: FileContext<'_>, place: Option<Span>, near: Option<Span>, message: &str) {
        let meant = match &place {
            Some(place) => self.findings.is_wrong(here.file, place),
            None => self.findings.refuses(here.file),
        };
        if !meant {
            self.findings.warn(here.file, place.or(near).unwrap_or_default(), message, None);
        }
    }
}

/// Whether the text of a URL names this machine; one that could not be read is a problem elsewhere.
fn is_loopback(url: &str) -> bool {
    let address = host_of(url).parse::<IpAddr>();
    url.is_empty() || names_loopback(url) || address.is_ok_and(|address| address.to_canonical().is_loopback())
}
