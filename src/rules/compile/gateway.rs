//! `gateway.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, Uri};
use toml::Spanned;

use super::{Context, FileContext};
use crate::domain::{CallbackUrl, is_host, service_url};
use crate::rules::files::{FileRole, is_absent};
use crate::rules::raw::{
    Cidr, DisplayName, Key, LANGUAGE_TAG, Lasting, List, RawSecrets, Size, WholeSeconds, raw_table,
};
use crate::rules::secret::SecretRef;
use crate::rules::{
    CallbackRules, CallbackSignature, ClientRules, Encoding, EngineRules, GatewayRules, Limits, PageRules, Quota,
    RemoteEngine, Secrets, ServerRules, StoreRules, StoreUrl, TlsRules,
};

/// Engines announce again what they were not heard with: what was forgotten earlier would be sent anew. In milliseconds.
const WEEK: u64 = 7 * 86_400_000;

/// What follows the address of a v2 service.
const API: &str = "/api/v2";

/// Of `store.connections`: a server has a hundred for everybody, unless it is told otherwise.
const MOST_CONNECTIONS: u32 = 200;

raw_table! {
    /// `gateway.toml`: the process, its listeners, TLS, store, engine and limits. Every key may be left out.
    struct RawGateway {
        /// The public listener.
        ///
        /// A change waits for a restart.
        server: RawServer = section,
        /// The certificate of the public listener.
        tls: RawTls = section,
        /// The admin listener: health, metrics, state of the rules.
        ///
        /// A change waits for a restart.
        admin: RawAdmin = section,
        /// Where operations are kept.
        ///
        /// A change waits for a restart.
        store: RawStore = section,
        /// The v2 service behind the gateway.
        ///
        /// A change waits for a restart.
        engine: RawEngine = section,
        /// Links to customer pages.
        pages: RawPages = section,
        /// Callbacks to merchants.
        callbacks: RawCallbacks = section,
        /// Bounds of requests and connections.
        limits: RawLimits = section,
        /// Who the caller is, behind a load balancer.
        ///
        /// A change waits for a restart.
        clients: RawClients = section,
    }
}

raw_table! {
    /// `[server]`.
    struct RawServer {
        /// Address and port of the public listener (TLS).
        listen: SocketAddr = "127.0.0.1:8443",
        /// How customers, and the engine's callbacks, reach this gateway: `https://host[:port]`, no path.
        public_url: String = "https://localhost:8443" where {
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]://[^/?#]+/?$",
            "examples": ["https://pay.example.com"],
        },
        /// How long requests in flight may take after a signal to stop: a span of time.
        shutdown_grace: Duration = "30s",
        /// How long `/readyz` says 503 before the listeners close, so that load balancers look away first: a span of
        /// time.
        drain_delay: Duration = "0s",
    }
}

raw_table! {
    /// `[tls]`.
    struct RawTls {
        /// The certificate chain: a PEM file, its path relative to this file. Watched, and exchanged without a restart.
        certificate: String = "../certs/server.pem",
        /// The certificate's private key: a PEM file, its path relative to this file. Watched like the certificate.
        key: String = "../certs/server.key",
        /// `true`: when both files are missing, make a local CA (`ca.pem` beside the certificate) and this pair. For
        /// development.
        generate: bool = false,
        /// When set, callers must present a certificate that one of these signed: a PEM file, its path relative to this
        /// file.
        client_ca: String where { "examples": ["../certs/clients.pem"] },
    }
}

raw_table! {
    /// `[admin]`.
    struct RawAdmin {
        /// Address and port of `/healthz`, `/readyz`, `/metrics` and `/api/...` (plain HTTP). Off loopback, `token` is
        /// required.
        listen: SocketAddr = "127.0.0.1:9090",
        /// The bearer token, a secret or a list of secrets: `"env:NAME"`, `"file:PATH"` or the secret itself. Required
        /// when `listen` is not on loopback.
        token: RawSecrets where { "examples": ["env:PAYBRIDGE_ADMIN_TOKEN"] },
        /// Names that `Host` may have besides loopback and the listening address, without a port. A request with the token may
        /// name any.
        hosts: List<String> = [] where { "examples": [["console.example"]] },
    }
}

raw_table! {
    /// `[store]`.
    struct RawStore {
        /// `sqlite:` and the path of a file, relative to this file, for one gateway. Or the `postgres://` URL of a database,
        /// for any number of gateways: several hosts, and libpq's parameters, `sslmode` and `sslrootcert` (a path relative
        /// to this file) among them. What the store needs is made in it and migrated at start.
        ///
        /// A password in it is not shown anywhere. An `@` in a user or a password is written `%40`. `"env:NAME"` and
        /// `"file:PATH"` say where the whole `postgres://` URL is, as of a secret.
        url: String = "sqlite:../data/paybridge.db" where {
            "pattern": "^sqlite:[^/]|^sqlite:/([^/]|$)|^postgres(ql)?://.|^env:[^=]+$|^file:.",
            "examples": [
                "sqlite:../data/paybridge.db",
                "postgres://paybridge:password@db-1.example,db-2.example/paybridge?sslmode=verify-full",
                "env:PAYBRIDGE_STORE_URL",
            ],
        },
        /// The most connections of this process to a PostgreSQL database.
        connections: u32 = 16 where { "maximum": MOST_CONNECTIONS },
        /// Secrets of 32 bytes in base64, each `"env:NAME"`, `"file:PATH"` or the secret itself: the first wraps the store's
        /// data keys, all unwrap. A single `file:` that is missing is made (mode 0600) with a new store.
        ///
        /// Keep them safe and backed up: without them nobody can read the accounts in the store.
        keys: RawSecrets = ["file:../secrets/store.key"] where { "examples": [["file:../secrets/store.key"]] },
    }
}

raw_table! {
    /// `[engine]`.
    struct RawEngine {
        /// `"embedded"`: the v2 service in this process. Or the `https://` address of a remote one, whose `/api/v2` is
        /// appended; not the gateway's own `public_url`.
        url: String = "embedded" where {
            "pattern": "^(embedded|[Hh][Tt][Tt][Pp][Ss]://[!-~]+)$",
            "examples": ["embedded", "https://v2.example.com"],
        },
        /// Extra roots for a remote engine, beside the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] },
        /// How long all exchanges with a remote engine for one request may take together: a span of time, at least `"1s"`.
        timeout: Lasting<1000> = "10s",
        /// How a remote engine signs its callbacks.
        callback_signature: RawCallbackSignature = { header = "X-Signature", payload = "{body}", encoding = "hex" },
    }
}

raw_table! {
    /// `[engine] callback_signature`.
    struct RawCallbackSignature {
        /// The header with the signature.
        header: HeaderName = "X-Signature",
        /// What is signed. It must hold `{body}` or `{body_sha256}`, and may hold what the payload of a dialect may.
        payload: String = "{body}" where { "pattern": r"\{body(_sha256)?\}" },
        /// How the signature is written.
        encoding: Encoding = "hex",
    }
}

raw_table! {
    /// `[pages]`.
    struct RawPages {
        /// Signs entry and return links: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the secret itself.
        ///
        /// Default: 32 random bytes in `pages.key` beside the store's key, made when missing while the store holds no
        /// operations.
        secret: RawSecrets where { "examples": ["env:PAYBRIDGE_PAGE_SECRET"] },
        /// How long entry links are valid, from creation: a span of time.
        link_lifetime: WholeSeconds = "30m",
        /// How long return links are valid, from creation: a span of time.
        return_lifetime: WholeSeconds = "7d",
        /// The language for customers who ask for none of the others: the tag of a file in `pages/`, or of a language that is
        /// built in.
        language: String = "en" where { "pattern": LANGUAGE_TAG, "examples": ["en", "pt-BR"] },
        /// Whose pages they are: shown in their header.
        name: DisplayName where { "examples": ["Example Pay"] },
        /// The accent colour of links and buttons. White upon it, and it upon white, must have the contrast of WCAG AA.
        color: String where { "pattern": "^#[0-9a-fA-F]{6}$", "examples": ["#0b5fff"] },
        /// The logo in the header: an SVG or PNG file of at most 64 KiB, its path relative to this file. Every page has it
        /// inside.
        logo: String where { "examples": ["logo.svg"] },
    }
}

raw_table! {
    /// `[callbacks]`.
    struct RawCallbacks {
        /// How long one try may take: a span of time.
        timeout: Lasting = "10s",
        /// The wait after the first try that failed: a span of time. It doubles, with jitter, up to `max_retry`.
        first_retry: Lasting = "5s",
        /// The longest wait between tries: a span of time, not shorter than `first_retry`.
        max_retry: Lasting = "1h",
        /// How long a callback is tried, from the result that it tells of: a span of time. The last try is then.
        give_up_after: Lasting = "3d",
        /// How long a callback that was delivered or given up is kept, with its tries, from when it was queued or last
        /// resent: a span of time, at least 7 days and not shorter than `give_up_after`. After that it is not listed and cannot be resent.
        forget_after: Lasting<WEEK> = "90d",
        /// Whether loopback, private and link-local targets are allowed. For development.
        allow_private_addresses: bool = false,
        /// Extra roots for callback targets, beside the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] },
    }
}

raw_table! {
    /// `[limits]`.
    struct RawLimits {
        /// The largest request body: a size such as `"64KiB"`, or plain bytes, at least 256. More is 413.
        body: Size<256> = "64KiB",
        /// The largest request head: a size such as `"16KiB"`, or plain bytes, at least 1 KiB.
        head: Size<1024> = "16KiB",
        /// How long a whole head may take, and the first one after the handshake; also between two requests of a connection on
        /// which nothing was authenticated yet: a span of time.
        head_timeout: Lasting = "10s",
        /// How long a whole body may take: a span of time. Longer is 408.
        body_timeout: Lasting = "10s",
        /// How long a connection may rest between two requests: a span of time.
        idle_timeout: Lasting = "75s",
        /// How many connections are open at once; fewer when the limit of open files leaves less room, and a warning says
        /// so. When all are taken, a new one takes the place of the one that has been idle longest, first of those on which
        /// nothing was authenticated.
        connections: u32 = 10000,
        /// How many failed authentications an address has before its failing requests are 429: a rate. Each
        /// gateway counts by itself.
        unauthenticated_per_ip: Quota = { per_second = 50, burst = 100 },
        /// How many requests for customers' pages an address may make before they are 429: a rate. Each gateway
        /// counts by itself.
        pages_per_ip: Quota = { per_second = 50, burst = 200 },
    }
}

raw_table! {
    /// `[clients]`.
    struct RawClients {
        /// Whether connections begin with a PROXY header, v1 or v2.
        proxy_protocol: bool = false,
        /// Whose `X-Forwarded-For` is believed, up to its rightmost entry that is not on this list: addresses and networks.
        trusted_proxies: List<Cidr> = [],
    }
}

impl Context<'_> {
    pub(super) fn gateway(&mut self, directory: &Path) -> Option<GatewayRules> {
        let Some(file) = self.files.get(&FileRole::Gateway) else {
            if directory.is_dir() && is_absent(&directory.join("gateway.toml")) {
                let message = "gateway.toml is missing (an empty file takes every default)";
                self.findings.add_unreadable(&directory.join("gateway.toml"), message);
            }
            return None;
        };
        let (here, raw) = self.read::<RawGateway>(file)?;
        let (tls, made) = self.tls(here, &raw.tls);
        let made = made.as_deref();
        let RawLimits { body, head, head_timeout, body_timeout, idle_timeout, .. } = &*raw.limits;
        let store = self.store(here, &raw.store);
        let server = self.server(here, &raw.server);
        let gateway = GatewayRules {
            engine: self.engine(here, &raw.engine, &server, made),
            engine_trust: raw.engine.trust.values().map(|path| here.relative(path)).collect(),
            engine_timeout: raw.engine.timeout.0,
            callback_signature: self.callback_signature(here, &raw.engine.callback_signature),
            server,
            tls,
            admin_listen: *raw.admin.listen,
            admin_token: self.admin_token(here, &raw.admin),
            admin_hosts: self.admin_hosts(here, &raw.admin),
            pages: self.page_rules(here, &raw.pages, &store),
            store,
            callbacks: self.callbacks(here, &raw.callbacks, made),
            limits: Limits {
                body: body.0,
                head: head.0,
                head_timeout: head_timeout.0,
                body_timeout: body_timeout.0,
                idle_timeout: idle_timeout.0,
                connections: usize::try_from(*raw.limits.connections).unwrap_or(usize::MAX),
                unauthenticated_per_ip: *raw.limits.unauthenticated_per_ip,
                pages_per_ip: *raw.limits.pages_per_ip,
            },
            clients: ClientRules {
                proxy_protocol: *raw.clients.proxy_protocol,
                trusted_proxies: raw.clients.trusted_proxies.values().map(|prefix| prefix.0).collect(),
            },
        };
        self.gateway_advice(here, &raw, &gateway);
        Some(gateway)
    }

    fn server(&mut self, here: FileContext<'_>, raw: &RawServer) -> ServerRules {
        let public_url = service_url(&raw.public_url).unwrap_or_else(|invalid| {
            let at = raw.public_url.place().unwrap_or_default();
            self.problem(here, at, format!("`server.public_url` {invalid}"));
            Box::default()
        });
        let (listen, shutdown_grace, drain_delay) = (*raw.listen, *raw.shutdown_grace, *raw.drain_delay);
        ServerRules { listen, public_url, shutdown_grace, drain_delay }
    }

    fn admin_token(&mut self, here: FileContext<'_>, raw: &RawAdmin) -> Option<Secrets> {
        if let Some(at) = raw.listen.place()
            && !raw.listen.ip().to_canonical().is_loopback()
            && raw.token.is_absent()
        {
            self.problem(here, at, "`admin.token` is required when `admin.listen` is not on loopback");
        }
        self.secrets(here, &raw.token)
    }

    fn admin_hosts(&mut self, here: FileContext<'_>, raw: &RawAdmin) -> Vec<Box<str>> {
        for host in raw.hosts.0.iter().filter(|host| !is_host(host.get_ref())) {
            self.problem(here, host.span(), "`admin.hosts` must hold host names or IP addresses, without a port");
        }
        raw.hosts.values().map(|host| host.to_ascii_lowercase().into()).collect()
    }

    pub(super) fn store(&mut self, here: FileContext<'_>, raw: &RawStore) -> StoreRules {
        if let Some(at) = raw.connections.place()
            && *raw.connections > MOST_CONNECTIONS
        {
            self.problem(here, at, format!("`store.connections` must be {MOST_CONNECTIONS} at most"));
        }
        let connections = usize::try_from(*raw.connections).unwrap_or(usize::MAX);
        let url = if raw.url.is_wrong { None } else { self.store_url(here, &raw.url.spanned(), connections) };
        // A default has no place of its own.
        let place = |key: &Spanned<SecretRef>| raw.keys.place().map_or(0..0, |_| key.span());
        let keys: Vec<_> = raw.keys.0.iter().map(|key| Spanned::new(place(key), key.get_ref().clone())).collect();
        let keys = self.store_keys(here, &keys);
        StoreRules { url: url.unwrap_or(StoreUrl::Sqlite(PathBuf::new())), connections, keys }
    }

    /// `None`: it is wrong, or it stands elsewhere and is not asked for.
    fn store_url(&mut self, here: FileContext<'_>, url: &Spanned<&String>, connections: usize) -> Option<StoreUrl> {
        let text = url.get_ref();
        let parsed = match SecretRef::parse(text) {
            Ok(SecretRef::Environment(_) | SecretRef::File(_)) if !self.check_secrets => return None,
            Ok(reference @ (SecretRef::Environment(_) | SecretRef::File(_))) => self.referred_url(here, &reference),
            Ok(SecretRef::Literal(_)) | Err(_) => StoreUrl::parse(text, |path| here.relative(path)),
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
    fn referred_url(&mut self, here: FileContext<'_>, secret: &SecretRef) -> Result<StoreUrl, String> {
        let text = self.secret_text(here, secret).map_err(|why| format!("cannot be had: {why}"))?;
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err("names a place that holds no \"postgres://\" URL".to_owned());
        }
        StoreUrl::parse(&text, |path| here.relative(path)).map_err(|why| format!("names a place whose URL {why}"))
    }

    fn engine(
        &mut self,
        here: FileContext<'_>,
        raw: &RawEngine,
        server: &ServerRules,
        made: Option<&Path>,
    ) -> EngineRules {
        let trust = self.trusted_certificates(here, "engine.trust", &raw.trust.0, made);
        let Some(url) = raw.url.given().filter(|url| *url.get_ref() != "embedded") else {
            return EngineRules::Embedded;
        };
        let base = self.engine_base(here, &url, server).unwrap_or_default();
        EngineRules::Remote(RemoteEngine { base, trust, timeout: raw.timeout.0 })
    }

    fn callback_signature(&mut self, here: FileContext<'_>, raw: &RawCallbackSignature) -> CallbackSignature {
        self.free_header(here, &raw.header);
        let payload = self.signing_payload(here, "engine.callback_signature.payload", &raw.payload);
        CallbackSignature {
            header: (*raw.header).clone(),
            payload: payload.unwrap_or_default(),
            encoding: *raw.encoding,
        }
    }

    /// Where the paths of a remote engine begin.
    fn engine_base(&mut self, here: FileContext<'_>, url: &Spanned<&String>, server: &ServerRules) -> Option<Box<str>> {
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

    fn page_rules(&mut self, here: FileContext<'_>, raw: &RawPages, store: &StoreRules) -> PageRules {
        let beside = store.keys.create_at.clone().unwrap_or_else(|| here.relative("../secrets/store.key"));
        PageRules {
            secret: self.secrets(here, &raw.secret),
            default_secret: beside.with_file_name("pages.key"),
            link_lifetime: raw.link_lifetime.0,
            return_lifetime: raw.return_lifetime.0,
            language: self.default_language(here, &raw.language),
            brand: self.brand(here, raw),
        }
    }

    fn callbacks(&mut self, here: FileContext<'_>, raw: &RawCallbacks, made: Option<&Path>) -> CallbackRules {
        let RawCallbacks { first_retry, max_retry, give_up_after, forget_after, .. } = raw;
        self.not_shorter(here, "callbacks", ("max_retry", max_retry), ("first_retry", first_retry));
        self.not_shorter(here, "callbacks", ("give_up_after", give_up_after), ("first_retry", first_retry));
        self.not_shorter(here, "callbacks", ("forget_after", forget_after), ("give_up_after", give_up_after));
        CallbackRules {
            timeout: raw.timeout.0,
            first_retry: first_retry.0,
            max_retry: max_retry.0,
            give_up_after: give_up_after.0,
            forget_after: forget_after.0,
            allow_private_addresses: *raw.allow_private_addresses,
            trust: self.trusted_certificates(here, "callbacks.trust", &raw.trust.0, made),
        }
    }

    /// One span of time of a table must not be shorter than another one.
    pub(super) fn not_shorter<const LEAST: u64>(
        &mut self,
        here: FileContext<'_>,
        table: &str,
        (long, longer): (&str, &Key<Lasting<LEAST>>),
        (short, shorter): (&str, &Key<Lasting>),
    ) {
        if longer.0 < shorter.0
            && let Some(at) = longer.place().or(shorter.place())
        {
            self.problem(here, at, format!("`{table}.{long}` must not be shorter than `{table}.{short}`"));
        }
    }

    /// Returns the table's meaning, and where the certificate of the authority is made, when it is.
    fn tls(&mut self, here: FileContext<'_>, raw: &RawTls) -> (TlsRules, Option<PathBuf>) {
        let rules = raw.rules(here);
        let made = rules.generate.then(|| rules.certificate.with_file_name("ca.pem"));
        self.trusted_certificates(here, "tls.client_ca", raw.client_ca.given(), made.as_deref());
        (rules, made)
    }
}

impl RawTls {
    /// Returns what the table means, its paths resolved.
    pub(in crate::rules) fn rules(&self, here: FileContext<'_>) -> TlsRules {
        TlsRules {
            certificate: here.relative(&self.certificate),
            key: here.relative(&self.key),
            generate: *self.generate,
            client_ca: self.client_ca.get().map(|path| here.relative(path)),
        }
    }
}

/// Host and port of an `https` URL that has no path: what it is, however it is spelt.
fn origin_of(url: &str) -> Option<(String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let host = uri.host()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(443);
    uri.path().trim_matches('/').is_empty().then(|| (host.trim_end_matches('.').to_owned(), port))
}
