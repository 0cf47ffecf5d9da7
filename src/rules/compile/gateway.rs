//! Compiles `gateway.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::admin::RawAdmin;
use super::engine::RawEngine;
use super::legacy::RawLegacy;
use super::spellings::{certificates, path, store_url};
use super::{Context, FileContext, ReadFile};
use crate::domain::{Quota, names_loopback, service_url};
use crate::names::quoted;
use crate::rules::files::{FileRole, is_absent};
use crate::rules::raw::{
    BoundedDuration, Cidr, DisplayName, FromToml, LANGUAGE_TAG, List, OrVariable, RawReader, RawSecrets, Size,
    WholeSeconds, raw_table,
};
use crate::rules::secret::SecretRef;
use crate::rules::setting::Effect::{Allows, Neither, Refuses};
use crate::rules::setting::{OnChange, SettingEntry, restart_value};
use crate::rules::{CallbackRules, ClientRules, GatewayRules, Limits, PageRules, ServerRules, TlsRules};
use crate::store_settings::{StoreSettings, StoreUrl};

/// The shortest `callbacks.forget_after`, in milliseconds. An engine repeats callbacks that were not acknowledged: for
/// one that was already forgotten, the merchant's callback would be sent anew.
const WEEK: u64 = 7 * 86_400_000;

/// The largest `store.connections`. By default, a PostgreSQL server accepts a hundred connections in all.
const MOST_CONNECTIONS: u32 = 200;

raw_table! {
    /// `gateway.toml`: the process, its listeners, TLS, store, engine and limits. Every key may be left out.
    struct RawGateway {
        /// The public listener.
        ///
        /// Changes take effect after a restart.
        server: RawServer = section,
        /// The certificate of the public listener.
        tls: RawTls = section,
        /// The admin listener: the operators' console, health, metrics and an API.
        ///
        /// Changes take effect after a restart, but for `users`, `read_only` and `second_operator`.
        admin: RawAdmin = section,
        /// The database of operations.
        ///
        /// Changes take effect after a restart.
        store: RawStore = section,
        /// The v2 service behind the gateway.
        ///
        /// Changes take effect after a restart.
        engine: RawEngine = section,
        /// The old v1 service: for merchants in mode `legacy`, `shadow` or `staged`, and for orders that are at home
        /// there. Without it, nothing is forwarded.
        legacy: RawLegacy,
        /// Links to customer pages.
        pages: RawPages = section,
        /// Callbacks to merchants.
        callbacks: RawCallbacks = section,
        /// Bounds of requests and connections.
        limits: RawLimits = section => OnChange::more(),
        /// How the client's address is found behind a load balancer.
        ///
        /// Changes take effect after a restart.
        clients: RawClients = section,
    }
}

raw_table! {
    /// `[server]`.
    struct RawServer {
        /// Address and port of the public listener (TLS). `"env:NAME"` names the environment variable that holds them.
        listen: OrVariable<SocketAddr> = "127.0.0.1:8443"
            => OnChange::always(Refuses).meaning("callers reach the gateway only there")
                .restart(restart_value!(server.listen)),
        /// The address at which customers, and a remote engine's callbacks, reach this gateway: `https://host[:port]`,
        /// no path. `"env:NAME"` names the environment variable that holds it.
        public_url: OrVariable<PublicUrl> = "https://localhost:8443"
            => OnChange::always(Refuses).meaning("new links begin with it")
                .restart(restart_value!(server.public_url)),
        /// How long requests in flight may take after a signal to stop: a span of time.
        shutdown_grace: Duration = "30s"
            => OnChange::always(Neither)
                .restart(restart_value!(server.shutdown_grace)),
        /// How long `/readyz` returns 503 before the listeners close, so that load balancers stop sending requests
        /// first: a span of time.
        drain_delay: Duration = "0s"
            => OnChange::always(Neither)
                .restart(restart_value!(server.drain_delay)),
    }
}

/// `[server] public_url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct PublicUrl(pub Box<str>);

impl FromToml for PublicUrl {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let text = reader.text(value, "an https:// URL without a path")?;
        service_url(text).map(Self).map_err(|invalid| reader.wrong(value.span(), invalid)).ok()
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]://[^/?#]+/?$",
            "examples": ["https://pay.example.com"],
        })
    }

    fn entry(text: &str) -> SettingEntry {
        SettingEntry::spelled(text, text.trim_end_matches('/').to_owned())
    }
}

raw_table! {
    /// `[tls]`.
    struct RawTls {
        /// The certificate chain: a PEM file, its path relative to this file. Watched, and replaced without a restart.
        certificate: String = "../certs/server.pem" => OnChange::always(Refuses).read_by(path),
        /// The certificate's private key: a PEM file, its path relative to this file. Watched like the certificate.
        key: String = "../certs/server.key" => OnChange::always(Refuses).read_by(path),
        /// `true`: when both files are missing, a local CA (`ca.pem` beside the certificate) and this pair are
        /// generated. For development.
        generate: bool = false => OnChange::always(Neither),
        /// When set, clients must present a certificate that a CA in this PEM file signed. Its path is relative to this
        /// file.
        client_ca: String where { "examples": ["../certs/clients.pem"] }
            => OnChange::always(Refuses).meaning("callers without a certificate that it signed are refused")
                .read_by(certificates),
    }
}

raw_table! {
    /// `[store]`.
    struct RawStore {
        /// `sqlite:` and the path of a file, relative to this file, for one gateway: without `//`, and without `?`, `#`
        /// and `%`, which other tools give a meaning. Or the `postgres://` URL of a database, for any number of gateways: with several hosts, and libpq's parameters, such as `sslmode` and
        /// `sslrootcert` (a path relative to this file). The tables are created and upgraded at start.
        ///
        /// A password in it is never shown. An `@` in a user or a password is written `%40`. `"env:NAME"` and
        /// `"file:PATH"` name where the whole URL is, as for a secret.
        url: String = "sqlite:../data/paybridge.db" where {
            "pattern": "^sqlite:/?[^/?#%][^?#%]*$|^sqlite:/$|^postgres(ql)?://.|^env:[^=]+$|^file:.",
            "examples": [
                "sqlite:../data/paybridge.db",
                "postgres://paybridge:password@db-1.example,db-2.example/paybridge?sslmode=verify-full",
                "env:PAYBRIDGE_STORE_URL",
            ],
        }
            => OnChange::always(Refuses).meaning("operations in the old store are not found")
                .unseen("as before, but its user, password or parameters changed")
                .read_by(store_url)
                .restart(restart_value!(store.url)),
        /// The most connections of this process to a PostgreSQL database.
        connections: u32 = 16 where { "maximum": MOST_CONNECTIONS }
            => OnChange::more().restart(restart_value!(store.connections)),
        /// Secrets of 32 bytes in base64, each `"env:NAME"`, `"file:PATH"` or the secret itself: the first wraps the
        /// store's data keys, any unwraps them. A single `file:` that is missing is generated (mode 0600) with a new
        /// store.
        ///
        /// Keep them safe and backed up: without them, the accounts in the store cannot be read.
        keys: RawSecrets = ["file:../secrets/store.key"] where { "examples": [["file:../secrets/store.key"]] }
            => OnChange::secret().restart(restart_value!(store.keys, GatewayRules::has_same_store_keys)),
    }
}

raw_table! {
    /// `[pages]`.
    struct RawPages {
        /// Signs entry and return links: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the secret
        /// itself.
        ///
        /// Default: 32 random bytes in `pages.key` beside the store's key, generated when missing while the store holds
        /// no operations.
        secret: RawSecrets where { "examples": ["env:PAYBRIDGE_PAGE_SECRET"] }
            => OnChange::secret_with(
                (Refuses, "links signed with pages.key beside the store's key no longer verify"),
                (Refuses, "pages.key beside the store's key signs: earlier links no longer verify"),
            ),
        /// How long entry links are valid, from creation: a span of time.
        link_lifetime: WholeSeconds = "30m" => OnChange::more(),
        /// How long return links are valid, from creation: a span of time.
        return_lifetime: WholeSeconds = "7d" => OnChange::more(),
        /// The language for customers whose browser requests none of the others: the tag of a file in `pages/` or of a
        /// built-in language.
        language: String = "en" where { "pattern": LANGUAGE_TAG, "examples": ["en", "pt-BR"] }
            => OnChange::always(Neither).meaning("customers' pages show it").in_any_case(),
        /// The name in the header of pages.
        name: DisplayName where { "examples": ["Example Pay"] }
            => OnChange::always(Neither).meaning("customers' pages show it"),
        /// The accent colour of links and buttons. White on it, and it on white, must have the contrast of WCAG AA.
        color: String where { "pattern": "^#[0-9a-fA-F]{6}$", "examples": ["#0b5fff"] }
            => OnChange::always(Neither).meaning("customers' pages show it"),
        /// The logo in the header: an SVG or PNG file of at most 64 KiB, its path relative to this file. It is embedded
        /// in every page.
        logo: String where { "examples": ["logo.svg"] }
            => OnChange::always(Neither).meaning("customers' pages show it"),
    }
}

raw_table! {
    /// `[callbacks]`.
    struct RawCallbacks {
        /// How long one attempt may take: a span of time.
        timeout: BoundedDuration = "10s" => OnChange::always(Neither),
        /// The wait after the first failed attempt: a span of time. It doubles, with jitter, up to `max_retry`.
        first_retry: BoundedDuration = "5s" => OnChange::always(Neither),
        /// The longest wait between attempts: a span of time, not shorter than `first_retry`.
        max_retry: BoundedDuration = "1h" => OnChange::always(Neither),
        /// How long a callback is attempted, from the result that it reports: a span of time. The last attempt is made
        /// at its end.
        give_up_after: BoundedDuration = "3d" => OnChange::more(),
        /// How long a delivered or failed callback is kept, with its attempts, from when it was queued or last resent:
        /// a span of time, at least 7 days and not shorter than `give_up_after`. After that it is not listed and cannot
        /// be resent.
        forget_after: BoundedDuration<WEEK> = "90d" => OnChange::more(),
        /// Whether callbacks may be sent to loopback, private and link-local addresses. For development.
        allow_private_addresses: bool = false
            => OnChange::when("true", Allows, Refuses)
                .meaning("whether loopback and private targets are called"),
        /// Trusted roots for callback targets in addition to the system's: PEM files, their paths relative to this
        /// file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] }
            => OnChange::always(Refuses).read_by(certificates),
    }
}

raw_table! {
    /// `[limits]`.
    struct RawLimits {
        /// The largest request body: a size such as `"64KiB"`, or a number of bytes, at least 256. A larger one is 413.
        body: Size<256> = "64KiB",
        /// The largest request head: a size such as `"16KiB"`, or a number of bytes, at least 1 KiB.
        head: Size<1024> = "16KiB",
        /// How long receiving a whole request head may take: a span of time. Also the longest wait for the first head
        /// after the handshake, and between two requests of a connection on which no request was authenticated yet.
        head_timeout: BoundedDuration = "10s",
        /// How long receiving a whole body may take: a span of time. Longer is 408. Also the time over which a client has
        /// to take 1 KiB a second of a reply that waits for it: a slower one ends.
        body_timeout: BoundedDuration = "10s",
        /// How long a connection may be idle between two requests: a span of time.
        idle_timeout: BoundedDuration = "75s",
        /// The most open connections; fewer when the limit of open files leaves less room, which is logged as a
        /// warning. When all are in use, a new connection replaces the one that has been idle longest, first among
        /// those on which no request was authenticated, unless the others have more than seven eighths.
        connections: u32 = 10000,
        /// How many failed authentications an address may have before its failing requests are 429: a rate. Each
        /// gateway counts separately.
        unauthenticated_per_ip: Quota = { per_second = 50, burst = 100 },
        /// How many requests for customers' pages an address may make before they are 429: a rate. Each gateway counts
        /// separately.
        pages_per_ip: Quota = { per_second = 50, burst = 200 },
    }
}

raw_table! {
    /// `[clients]`.
    struct RawClients {
        /// Whether connections begin with a PROXY header, v1 or v2.
        proxy_protocol: bool = false
            => OnChange::always(Refuses).meaning("connections of the other kind are refused")
                .restart(restart_value!(clients.proxy_protocol)),
        /// Addresses and networks of proxies whose `X-Forwarded-For` is trusted, up to its rightmost entry that is not
        /// on this list.
        trusted_proxies: List<Cidr> = []
            => OnChange::entries(Refuses, Refuses).meaning("whose X-Forwarded-For is trusted")
                .restart(restart_value!(clients.trusted_proxies)),
    }
}

impl Context<'_> {
    pub(super) fn gateway(&mut self, directory: &Path) -> Option<GatewayRules> {
        let Some(file) = self.files.get(&FileRole::Gateway) else {
            if directory.is_dir() && is_absent(&directory.join("gateway.toml")) {
                let message = "gateway.toml is missing (an empty file takes every default)";
                self.diagnostics.add_unreadable(&directory.join("gateway.toml"), message);
            }
            return None;
        };
        let ReadFile { context, raw, .. } = self.read::<RawGateway>(file)?;
        let (tls, generated_ca) = self.tls(context, &raw.tls);
        let generated_ca = generated_ca.as_deref();
        let RawLimits { body, head, head_timeout, body_timeout, idle_timeout, .. } = &*raw.limits;
        let store = self.store(context, &raw.store);
        let server = self.server(context, &raw.server);
        self.has_legacy = !raw.legacy.is_absent();
        let legacy = raw.legacy.get().map(|legacy| self.legacy(context, legacy, &server, generated_ca));
        let gateway = GatewayRules {
            engine: self.engine(context, &raw.engine, &server, generated_ca),
            engine_trust: raw.engine.trust.values().map(|path| context.relative(path)).collect(),
            engine_timeout: raw.engine.timeout.0,
            callback_signature: self.callback_signature(context, &raw.engine.callback_signature),
            server,
            tls,
            admin: self.admin(context, &raw.admin),
            legacy,
            pages: self.page_rules(context, &raw.pages, &store),
            store,
            callbacks: self.callbacks(context, &raw.callbacks, generated_ca),
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
        self.warn_about_gateway(context, &raw, &gateway);
        Some(gateway)
    }

    fn server(&mut self, context: FileContext<'_>, raw: &RawServer) -> ServerRules {
        let listen = self.value(context, "server.listen", &raw.listen);
        let public_url = self.value(context, "server.public_url", &raw.public_url);
        if let (Some(listen), Some(PublicUrl(url))) = (listen, &public_url) {
            self.warn_about_ports(context, raw, listen, url);
        }
        let (shutdown_grace, drain_delay) = (*raw.shutdown_grace, *raw.drain_delay);
        // What is not read is as if it was left out.
        let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8443)));
        let public_url = public_url.map_or_else(|| "https://localhost:8443".into(), |url| url.0);
        let is_public = !names_loopback(&public_url);
        ServerRules { listen, public_url, is_public, shutdown_grace, drain_delay }
    }

    pub(super) fn store(&mut self, context: FileContext<'_>, raw: &RawStore) -> StoreSettings {
        if let Some(at) = raw.connections.place()
            && *raw.connections > MOST_CONNECTIONS
        {
            self.problem(context, at, format!("`store.connections` must be {MOST_CONNECTIONS} at most"));
        }
        let connections = usize::try_from(*raw.connections).unwrap_or(usize::MAX);
        let url = if raw.url.is_wrong { None } else { self.store_url(context, &raw.url.spanned(), connections) };
        // A default has no place in the file.
        let place = |key: &Spanned<SecretRef>| raw.keys.place().map_or(0..0, |_| key.span());
        let keys: Vec<_> = raw.keys.0.iter().map(|key| Spanned::new(place(key), key.get_ref().clone())).collect();
        let keys = self.store_keys(context, &keys);
        StoreSettings { url: url.unwrap_or(StoreUrl::Sqlite(PathBuf::new())), connections, keys }
    }

    /// Parses `store.url`; `None` when it is wrong, or when it is a reference and secrets are not read.
    fn store_url(&mut self, context: FileContext<'_>, url: &Spanned<&String>, connections: usize) -> Option<StoreUrl> {
        let text = url.get_ref();
        let parsed = match SecretRef::parse(text) {
            Ok(SecretRef::Environment(_) | SecretRef::File(_)) if !self.check_secrets => return None,
            Ok(reference @ (SecretRef::Environment(_) | SecretRef::File(_))) => {
                self.url_from_reference(context, &reference)
            }
            Ok(SecretRef::Literal(_)) | Err(_) => {
                StoreUrl::parse(text, |path| context.relative(path)).map_err(|why| format!(" {why}"))
            }
        };
        match parsed {
            Ok(StoreUrl::Postgres(url)) => Some(StoreUrl::Postgres(Box::new(url.with_connections(connections)))),
            Ok(url) => Some(url),
            Err(why) => {
                self.problem(context, url.span(), format!("`store.url`{why}"));
                None
            }
        }
    }

    /// Reads the URL from the environment variable or file that a reference names. A problem follows the key's name.
    fn url_from_reference(&mut self, context: FileContext<'_>, secret: &SecretRef) -> Result<StoreUrl, String> {
        let text = self.secret_text(context, secret).map_err(|why| format!(" cannot be read: {why}"))?;
        let source = match secret {
            SecretRef::Environment(name) => format!("the environment variable {}", quoted(name)),
            SecretRef::File(path) => format!("the file {}", context.relative(path).display()),
            SecretRef::Literal(_) => "the text".to_owned(),
        };
        StoreUrl::parse(&text, |path| context.relative(path)).map_err(|why| format!(": {source} {why}"))
    }

    fn page_rules(&mut self, context: FileContext<'_>, raw: &RawPages, store: &StoreSettings) -> PageRules {
        let store_key = store.keys.create_at.clone().unwrap_or_else(|| context.relative("../secrets/store.key"));
        PageRules {
            secret: self.secrets(context, &raw.secret),
            default_secret: store_key.with_file_name("pages.key"),
            link_lifetime: raw.link_lifetime.0,
            return_lifetime: raw.return_lifetime.0,
            language: self.default_language(context, &raw.language),
            brand: self.brand(context, raw),
        }
    }

    fn callbacks(
        &mut self,
        context: FileContext<'_>,
        raw: &RawCallbacks,
        generated_ca: Option<&Path>,
    ) -> CallbackRules {
        let RawCallbacks { first_retry, max_retry, give_up_after, forget_after, .. } = raw;
        self.check_not_shorter(context, "callbacks", ("max_retry", max_retry), ("first_retry", first_retry));
        self.check_not_shorter(context, "callbacks", ("give_up_after", give_up_after), ("first_retry", first_retry));
        self.check_not_shorter(context, "callbacks", ("forget_after", forget_after), ("give_up_after", give_up_after));
        CallbackRules {
            timeout: raw.timeout.0,
            first_retry: first_retry.0,
            max_retry: max_retry.0,
            give_up_after: give_up_after.0,
            forget_after: forget_after.0,
            allow_private_addresses: *raw.allow_private_addresses,
            trust: self.trusted_certificates(context, "callbacks.trust", &raw.trust.0, generated_ca),
        }
    }

    /// Returns the TLS rules, and the path of the CA certificate that is generated, if it is.
    fn tls(&mut self, context: FileContext<'_>, raw: &RawTls) -> (TlsRules, Option<PathBuf>) {
        let rules = raw.rules(context);
        let generated_ca = rules.generate.then(|| rules.certificate.with_file_name("ca.pem"));
        self.trusted_certificates(context, "tls.client_ca", raw.client_ca.given(), generated_ca.as_deref());
        (rules, generated_ca)
    }
}

impl RawTls {
    /// Returns the TLS rules, their paths resolved.
    pub(in crate::rules) fn rules(&self, context: FileContext<'_>) -> TlsRules {
        TlsRules {
            certificate: context.relative(&self.certificate),
            key: context.relative(&self.key),
            generate: *self.generate,
            client_ca: self.client_ca.get().map(|path| context.relative(path)),
        }
    }
}
