//! Warnings about rules that load, but would fail requests or leave a security gap. Warnings never keep an urgent
//! change from taking effect.

use std::net::{IpAddr, SocketAddr};

use toml::Spanned;

use super::gateway::{RawGateway, RawServer};
use super::merchant::RawMerchant;
use super::{Context, FileContext, origin_of};
use crate::domain::{host_of, names_loopback};
use crate::rules::GatewayRules;
use crate::rules::problems::Span;
use crate::store_settings::StoreUrl;

impl Context<'_> {
    /// Warns of security gaps in `gateway.toml`.
    pub(super) fn warn_about_gateway(&mut self, context: FileContext<'_>, raw: &RawGateway, gateway: &GatewayRules) {
        if let StoreUrl::Postgres(url) = &gateway.store.url
            && url.may_be_downgraded()
            && let Some(at) = raw.store.url.place()
        {
            let message = "`store.url` has sslmode=prefer, which is also the default: an attacker between this gateway and \
                           the database can disable TLS, then read and change the traffic";
            let advice = "use sslmode=verify-full, or sslmode=disable if the network is trusted";
            self.diagnostics.warn(context.file, at, message, Some(advice.into()));
        }
        if gateway.admin.is_open
            && let Some(at) = raw.admin.hosts.place()
            && !gateway.admin.hosts.is_empty()
        {
            let message = "`admin.hosts` has names for a proxy, and there is no user: every client of the proxy acts as the \
                           operator `local`";
            self.diagnostics.warn(context.file, at, message, Some("add an `[[admin.users]]`, or `admin.token`".into()));
        }
        // Merchants choose callback addresses, so they could make the gateway send requests into the operator's
        // network.
        let allowed = &raw.callbacks.allow_private_addresses;
        if let Some(at) = allowed.place()
            && **allowed
            && !is_loopback(&gateway.server.public_url)
        {
            let message = "`callbacks.allow_private_addresses` is for development, but `server.public_url` is no loopback \
                           address: merchants could make this gateway send requests to hosts in its own network";
            self.diagnostics.warn(context.file, at, message, None);
        }
    }

    /// Warns when links lead to another port of this machine than the listener's. A proxy in front may have a port of its own.
    pub(super) fn warn_about_ports(
        &mut self,
        context: FileContext<'_>,
        raw: &RawServer,
        listen: SocketAddr,
        url: &str,
    ) {
        let port = origin_of(url).map_or(443, |(_, port)| port);
        let at = raw.listen.place().or_else(|| raw.public_url.place());
        if let Some(at) = at
            && listen.ip().to_canonical().is_loopback()
            && is_loopback(url)
            && listen.port() != 0
            && listen.port() != port
        {
            let message = format!(
                "`server.listen` has port {}, and `server.public_url` port {port} of the same machine: links to customers' pages \
                 lead to the latter",
                listen.port()
            );
            self.diagnostics.warn(context.file, at, message, None);
        }
    }

    /// Warns of a merchant or an API key whose requests would all be refused.
    pub(super) fn warn_about_merchant(&mut self, context: FileContext<'_>, raw: &RawMerchant) {
        let keys = raw.api_keys.get().map_or(&[][..], |keys| &keys.0);
        if keys.is_empty() {
            let message = "the merchant has no `[[api_keys]]`: all its requests are refused";
            self.warn_if_empty(context, raw.api_keys.place(), None, message);
        }
        for key in keys.iter().map(Spanned::get_ref).filter(|key| key.allowed_ips.0.is_empty()) {
            let message = "the API key cannot be used from any address: its `allowed_ips` is missing or empty";
            self.warn_if_empty(context, key.allowed_ips.place(), key.key.place(), message);
        }
        // A remote engine has shops of its own.
        if self.is_embedded && raw.shops.get().is_none_or(|shops| shops.0.is_empty()) {
            let message = "the merchant has no `[shops.<code>]` table: every operation that it creates is refused";
            self.warn_if_empty(context, raw.shops.place(), None, message);
        }
    }

    /// Warns of an empty or missing value, at its place or else at `near`. Does not warn where the value may have been
    /// intended: when an error is reported at it, or when it is missing from a file with errors, which may have it
    /// under another name.
    fn warn_if_empty(&mut self, context: FileContext<'_>, place: Option<Span>, near: Option<Span>, message: &str) {
        let intended = match &place {
            Some(place) => self.diagnostics.is_wrong(context.file, place),
            None => self.diagnostics.refuses(context.file),
        };
        if !intended {
            self.diagnostics.warn(context.file, place.or(near).unwrap_or_default(), message, None);
        }
    }
}

/// Reports whether a URL's host is this machine. Also true for an empty URL, whose problem is reported elsewhere.
fn is_loopback(url: &str) -> bool {
    let address = host_of(url).parse::<IpAddr>();
    url.is_empty() || names_loopback(url) || address.is_ok_and(|address| address.to_canonical().is_loopback())
}
