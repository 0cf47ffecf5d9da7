//! `gateway.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use toml::Spanned;

use super::{Context, Here};
use crate::domain::{BrowserUrl, CallbackUrl, is_host};
use crate::rules::files::{Role, is_absent};
use crate::rules::postgres::DEFAULT_CONNECTIONS;
use crate::rules::raw::{
    Field, MOST_CONNECTIONS, Prefix, RawAdmin, RawCallbacks, RawClients, RawEngine, RawGateway, RawLimits, RawPages,
    RawQuota, RawSecret, RawServer, RawStore, RawTls, Size,
};
use crate::rules::{
    CallbackRules, CallbackSignature, ClientRules, EngineKeys, EngineRules, Gateway, Limits, PageRules, Quota,
    RemoteEngine, Secrets, ServerRules, StoreRules, StoreUrl, TlsRules,
};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_mins(1);
/// Of `engine.timeout`.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_hours(1);
pub(super) const DAY: Duration = Duration::from_hours(24);

/// Every v1 and v2 request with a body has a larger one.
const SMALLEST_BODY: usize = 256;

/// What follows the address of a v2 service.
const API: &str = "/api/v2";

/// The signature headers and a few of every client's own.
const SMALLEST_HEAD: usize = 1 << 10;

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Context<'_> {
    pub(super) fn gateway(&mut self, directory: &Path) -> Option<Gateway> {
        let Some(file) = self.files.get(&Role::Gateway) else {
            if directory.is_dir() && is_absent(&directory.join("gateway.toml")) {
                let message = "gateway.toml is missing (an empty file takes every default)";
                self.findings.add_unreadable(&directory.join("gateway.toml"), message);
            }
            return None;
        };
        let (here, raw) = self.read::<RawGateway>(file)?;
        let (admin_listen, admin_token, admin_hosts) =
            self.admin(here, raw.admin.get().unwrap_or(&RawAdmin::default()));
        let store = self.store(here, raw.store.get().unwrap_or(&RawStore::default()));
        let tls = self.tls(here, raw.tls.get().unwrap_or(&RawTls::default()));
        let made = tls.generate.then(|| tls.certificate.with_file_name("ca.pem"));
        let made = made.as_deref();
        let server = self.server(here, raw.server.get().unwrap_or(&RawServer::default()));
        let no_engine = RawEngine::default();
        let engine = raw.engine.get().unwrap_or(&no_engine);
        let gateway = Gateway {
            engine: self.engine(here, engine, &server, made),
            engine_keys: self.engine_keys(here, engine),
            server,
            tls,
            admin_listen,
            admin_token,
            admin_hosts,
            pages: self.page_rules(here, raw.pages.get().unwrap_or(&RawPages::default()), &store),
            store,
            callbacks: self.callbacks(here, raw.callbacks.get().unwrap_or(&RawCallbacks::default()), made),
            limits: self.limits(here, raw.limits.get().unwrap_or(&RawLimits::default())),
            clients: clients(raw.clients.get().unwrap_or(&RawClients::default())),
        };
        self.gateway_advice(here, &raw, &gateway);
        Some(gateway)
    }

    fn server(&mut self, here: Here<'_>, raw: &RawServer) -> ServerRules {
        let public_url = match raw.public_url.given() {
            Some(url) => self.origin(here, url).unwrap_or_default(),
            None => "https://localhost:8443".into(),
        };
        ServerRules {
            listen: raw.listen.or(loopback(8443)),
            public_url,
            shutdown_grace: raw.shutdown_grace.or(30 * SECOND),
            drain_delay: raw.drain_delay.or(Duration::ZERO),
        }
    }

    /// `https://host[:port]`; a trailing slash is dropped.
    fn origin(&mut self, here: Here<'_>, url: &Spanned<String>) -> Option<Box<str>> {
        let text = url.get_ref().strip_suffix('/').unwrap_or(url.get_ref());
        let reason = match BrowserUrl::new(text) {
            Err(invalid) => invalid.reason().to_owned(),
            Ok(_) => match text.split_once("://") {
                Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") && !rest.contains(['/', '?', '#']) => {
                    return Some(text.into());
                }
                _ => "must be an https:// URL without a path, such as \"https://pay.example.com\"".to_owned(),
            },
        };
        self.problem(here, url.span(), format!("`server.public_url` {reason}"));
        None
    }

    fn admin(&mut self, here: Here<'_>, raw: &RawAdmin) -> (SocketAddr, Option<Secrets>, Vec<Box<str>>) {
        let listen = raw.listen.or(loopback(9090));
        if let Some(given) = raw.listen.given()
            && !listen.ip().to_canonical().is_loopback()
            && raw.token.is_absent()
        {
            self.problem(here, given.span(), "`admin.token` is required when `admin.listen` is not on loopback");
        }
        let hosts = raw.hosts.get().map_or(&[][..], |list| list.0.as_slice());
        for host in hosts.iter().filter(|host| !is_host(host.get_ref())) {
            self.problem(here, host.span(), "`admin.hosts` must hold host names or IP addresses, without a port");
        }
        let hosts = hosts.iter().map(|host| host.get_ref().to_ascii_lowercase().into()).collect();
        (listen, self.secrets(here, &raw.token), hosts)
    }

    pub(super) fn store(&mut self, here: Here<'_>, raw: &RawStore) -> StoreRules {
        const DEFAULT_KEY: &str = "../secrets/store.key";
        let connections = self.store_connections(here, &raw.connections);
        let url = match raw.url.given() {
            Some(url) => self.store_url(here, url, connections),
            None => Some(StoreUrl::Sqlite(here.relative("../data/paybridge.db"))),
        };
        let default = [Spanned::new(0..0, RawSecret::File(DEFAULT_KEY.into()))];
        let keys = match &raw.keys {
            Field::Given(keys) => keys.get_ref().0.as_slice(),
            Field::Absent | Field::Wrong => &default,
        };
        let keys = self.store_keys(here, keys);
        StoreRules { url: url.unwrap_or(StoreUrl::Sqlite(PathBuf::new())), connections, keys }
    }

    fn store_connections(&mut self, here: Here<'_>, field: &Field<u32>) -> usize {
        if let Some(given) = field.given()
            && *given.get_ref() > MOST_CONNECTIONS
        {
            self.problem(here, given.span(), format!("`store.connections` must be {MOST_CONNECTIONS} at most"));
        }
        field.get().map_or(DEFAULT_CONNECTIONS, |most| *most as usize)
    }

    /// `None`: it is wrong, or it stands elsewhere and is not asked for.
    fn store_url(&mut self, here: Here<'_>, url: &Spanned<String>, connections: usize) -> Option<StoreUrl> {
        let text = url.get_ref();
        let parsed = match RawSecret::parse(text) {
            Ok(RawSecret::Environment(_) | RawSecret::File(_)) if !self.check_secrets => return None,
            Ok(reference @ (RawSecret::Environment(_) | RawSecret::File(_))) => self.referred_url(here, &reference),
            Ok(RawSecret::Literal(_)) | Err(_) => StoreUrl::parse(text, |path| here.relative(path)),
        };
        if text.contains("://") && !text.starts_with("sqlite:") {
            // Whatever database was meant, its URL may hold a password.
            self.findings.hide(here.file, url.span());
        }
        match parsed {
            Ok(StoreUrl::Postgres(url)) => Some(StoreUrl::Postgres(Box::new(url.with_connections(connections)))),
            Ok(url) => Some(url),
            Err(why) => {
                self.problem(here, url.span(), format!("`store.url` {why}"));
                None
            }
        }
    }

    /// The URL that stands where a reference says.
    fn referred_url(&mut self, here: Here<'_>, secret: &RawSecret) -> Result<StoreUrl, String> {
        let text = self.secret_text(here, secret).map_err(|why| format!("cannot be had: {why}"))?;
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err("names a place that holds no \"postgres://\" URL".to_owned());
        }
        StoreUrl::parse(&text, |path| here.relative(path)).map_err(|why| format!("names a place whose URL {why}"))
    }

    fn engine(&mut self, here: Here<'_>, raw: &RawEngine, server: &ServerRules, made: Option<&Path>) -> EngineRules {
        if let Some(url) = raw.legacy_url.given() {
            self.problem(here, url.span(), "`engine.legacy_url` is not supported by this version");
        }
        let timeout = self.positive(here, "engine.timeout", &raw.timeout, ENGINE_TIMEOUT);
        if let Some(given) = raw.timeout.given().filter(|given| !given.get_ref().is_zero() && *given.get_ref() < SECOND)
        {
            // How long a lost request may be under way is told by it.
            self.problem(here, given.span(), "`engine.timeout` must be at least 1s");
        }
        let trust = self.trusted_certificates(here, "engine.trust", &raw.trust, made);
        let Some(url) = raw.url.given().filter(|url| url.get_ref() != "embedded") else {
            return EngineRules::Embedded;
        };
        let base = self.engine_base(here, url, server).unwrap_or_default();
        EngineRules::Remote(RemoteEngine { base, trust, timeout })
    }

    fn engine_keys(&mut self, here: Here<'_>, raw: &RawEngine) -> EngineKeys {
        let trust = raw.trust.get().map_or(&[][..], |list| list.0.as_slice());
        EngineKeys {
            trust: trust.iter().map(|path| here.relative(path.get_ref())).collect(),
            timeout: raw.timeout.or(ENGINE_TIMEOUT),
            callback_signature: self.callback_signature(here, raw),
        }
    }

    fn callback_signature(&mut self, here: Here<'_>, raw: &RawEngine) -> CallbackSignature {
        let default = CallbackSignature::default();
        let Some(raw) = raw.callback_signature.get() else { return default };
        self.free_header(here, &raw.header);
        let key = "engine.callback_signature.payload";
        let payload = raw.payload.given().and_then(|text| self.signing_payload(here, key, text));
        CallbackSignature {
            header: raw.header.or(default.header),
            payload: payload.unwrap_or(default.payload),
            encoding: raw.encoding.or(default.encoding),
        }
    }

    /// Where the paths of a remote engine begin.
    fn engine_base(&mut self, here: Here<'_>, url: &Spanned<String>, server: &ServerRules) -> Option<Box<str>> {
        let text = url.get_ref();
        let reason = match CallbackUrl::new(text) {
            Err(invalid) if invalid.reason().starts_with("must be an ") => {
                format!("{}, or \"embedded\"", invalid.reason())
            }
            Err(invalid) => invalid.reason().to_owned(),
            Ok(_) if text.contains(['?', '#']) => "must not have a query or a fragment".to_owned(),
            Ok(_) if origin_of(text).is_some_and(|origin| Some(origin) == origin_of(&server.public_url)) => {
                "is this gateway's own `server.public_url`: it would send every request to itself".to_owned()
            }
            Ok(_) => {
                let base = text.trim_end_matches('/');
                if !base.ends_with(API) {
                    return Some(format!("{base}{API}").into());
                }
                format!("must not end in {API}, which is appended")
            }
        };
        self.problem(here, url.span(), format!("`engine.url` {reason}"));
        None
    }

    fn page_rules(&mut self, here: Here<'_>, raw: &RawPages, store: &StoreRules) -> PageRules {
        let beside = store.keys.create_at.clone().unwrap_or_else(|| here.relative("../secrets/store.key"));
        PageRules {
            secret: self.secrets(here, &raw.secret),
            default_secret: beside.with_file_name("pages.key"),
            link_lifetime: self.lifetime(here, "pages.link_lifetime", &raw.link_lifetime, 30 * MINUTE),
            return_lifetime: self.lifetime(here, "pages.return_lifetime", &raw.return_lifetime, 7 * DAY),
            language: self.default_language(here, &raw.language),
            brand: self.brand(here, raw),
        }
    }

    fn callbacks(&mut self, here: Here<'_>, raw: &RawCallbacks, made: Option<&Path>) -> CallbackRules {
        let first_retry = self.positive(here, "callbacks.first_retry", &raw.first_retry, 5 * SECOND);
        let max_retry = self.positive(here, "callbacks.max_retry", &raw.max_retry, HOUR);
        if let (true, Some(given)) = (first_retry > max_retry, raw.max_retry.given().or(raw.first_retry.given())) {
            self.problem(here, given.span(), "`callbacks.max_retry` must not be shorter than `callbacks.first_retry`");
        }
        let give_up_after = self.positive(here, "callbacks.give_up_after", &raw.give_up_after, 3 * DAY);
        self.give_up_after(here, "callbacks", (&raw.first_retry, first_retry), (&raw.give_up_after, give_up_after));
        let forget_after = self.positive(here, "callbacks.forget_after", &raw.forget_after, 90 * DAY);
        // Engines announce again what they were not heard with: what was forgotten would be told anew.
        if let (true, Some(given)) = (forget_after < 7 * DAY, raw.forget_after.given()) {
            self.problem(here, given.span(), "`callbacks.forget_after` must be at least 7 days");
        }
        if let (true, Some(given)) =
            (give_up_after > forget_after, raw.forget_after.given().or(raw.give_up_after.given()))
        {
            let message = "`callbacks.forget_after` must not be shorter than `callbacks.give_up_after`";
            self.problem(here, given.span(), message);
        }
        CallbackRules {
            timeout: self.positive(here, "callbacks.timeout", &raw.timeout, 10 * SECOND),
            first_retry,
            max_retry,
            give_up_after,
            forget_after,
            allow_private_addresses: raw.allow_private_addresses.or(false),
            trust: self.trusted_certificates(here, "callbacks.trust", &raw.trust, made),
        }
    }

    fn limits(&mut self, here: Here<'_>, raw: &RawLimits) -> Limits {
        let default = Quota { per_second: number(50), burst: number(100) };
        Limits {
            body: self.size(here, "limits.body", &raw.body, 64 << 10, SMALLEST_BODY),
            head: self.size(here, "limits.head", &raw.head, 16 << 10, SMALLEST_HEAD),
            head_timeout: self.positive(here, "limits.head_timeout", &raw.head_timeout, 10 * SECOND),
            body_timeout: self.positive(here, "limits.body_timeout", &raw.body_timeout, 10 * SECOND),
            idle_timeout: self.positive(here, "limits.idle_timeout", &raw.idle_timeout, 75 * SECOND),
            connections: raw.connections.or(10_000) as usize,
            unauthenticated_per_ip: self
                .quota(here, "limits.unauthenticated_per_ip", &raw.unauthenticated_per_ip)
                .unwrap_or(default),
            pages_per_ip: self
                .quota(here, "limits.pages_per_ip", &raw.pages_per_ip)
                .unwrap_or(Quota { per_second: number(50), burst: number(200) }),
        }
    }

    fn tls(&mut self, here: Here<'_>, raw: &RawTls) -> TlsRules {
        let rules = tls_rules(here, raw);
        if let (Some(given), Some(path)) = (raw.client_ca.given(), &rules.client_ca) {
            let made = rules.generate.then(|| rules.certificate.with_file_name("ca.pem"));
            self.certificates(here, "tls.client_ca", given.span(), path, made.as_deref());
        }
        rules
    }

    /// A size that is not so small that it refuses every request.
    fn size(&mut self, here: Here<'_>, key: &str, field: &Field<Size>, default: usize, least: usize) -> usize {
        if let Some(given) = field.given()
            && given.get_ref().0 < least
        {
            self.problem(here, given.span(), format!("`{key}` must be at least {least} bytes"));
        }
        field.or(Size(default)).0
    }

    /// A span of time that may not be zero.
    pub(super) fn positive(
        &mut self,
        here: Here<'_>,
        key: &str,
        field: &Field<Duration>,
        default: Duration,
    ) -> Duration {
        if let Some(given) = field.given()
            && given.get_ref().is_zero()
        {
            self.problem(here, given.span(), format!("`{key}` must be longer than 0"));
        }
        field.or(default)
    }

    /// How long links hold: they say it in whole seconds.
    fn lifetime(&mut self, here: Here<'_>, key: &str, field: &Field<Duration>, default: Duration) -> Duration {
        let whole = |span: &Duration| *span >= SECOND && span.subsec_nanos() == 0;
        if let Some(given) = field.given().filter(|given| !whole(given.get_ref())) {
            self.problem(here, given.span(), format!("`{key}` must be whole seconds, at least 1s"));
        }
        field.or(default)
    }

    /// A rate; without `burst` it may be used up as fast as a second refills it.
    pub(super) fn quota(&mut self, here: Here<'_>, key: &str, field: &Field<RawQuota>) -> Option<Quota> {
        let given = field.given()?;
        let raw = given.get_ref();
        if raw.per_second.is_absent() {
            self.problem(here, given.span(), format!("`{key}` must say `per_second`"));
        }
        let per_second = *raw.per_second.get()?;
        Some(Quota { per_second: number(per_second), burst: number(raw.burst.or(per_second)) })
    }
}

/// `[tls]`, its defaults filled in.
pub(in crate::rules) fn tls_rules(here: Here<'_>, raw: &RawTls) -> TlsRules {
    TlsRules {
        certificate: here.relative(&raw.certificate.or("../certs/server.pem".into())),
        key: here.relative(&raw.key.or("../certs/server.key".into())),
        generate: raw.generate.or(false),
        client_ca: raw.client_ca.get().map(|path| here.relative(path)),
    }
}

/// Host and port of an `https` URL that has no path: what it is, however it is spelt.
fn origin_of(url: &str) -> Option<(String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let host = uri.host()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(443);
    uri.path().trim_matches('/').is_empty().then(|| (host.trim_end_matches('.').to_owned(), port))
}

/// Numbers that were read are at least 1.
fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

fn clients(raw: &RawClients) -> ClientRules {
    let prefixes = raw.trusted_proxies.get().map_or(&[][..], |list| list.0.as_slice());
    let prefix = |prefix: &Spanned<Prefix>| prefix.get_ref().0;
    ClientRules { proxy_protocol: raw.proxy_protocol.or(false), trusted_proxies: prefixes.iter().map(prefix).collect() }
}
