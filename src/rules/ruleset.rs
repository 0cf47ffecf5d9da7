//! The rule set: the compiled content of all rule files.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;

use super::admin::AdminRules;
use super::files::ContentHash;
use super::pages::Brand;
use super::{ApiKey, Dialect, Endpoint, FieldsSchema, Merchant, Pages, Problem, Shop};
use crate::domain::{CallbackSignature, MerchantId, Quota, Secrets, ShopCode, UnixMillis};
use crate::names::{did_you_mean, quoted};
use crate::store_settings::{StoreKeys, StoreSettings};

/// All rules of one moment, immutable. A request fetches the set once and keeps it until its reply.
#[derive(Debug)]
pub struct RuleSet {
    /// The version: the first 16 hexadecimal digits of a hash over all rule files and the files of trusted
    /// certificates.
    pub version: Box<str>,
    /// When the files were read.
    pub loaded_at: UnixMillis,
    /// The rules of the process.
    pub gateway: GatewayRules,
    /// Merchants, by id.
    pub merchants: HashMap<MerchantId, Arc<Merchant>>,
    /// Shops, by code.
    pub shops: HashMap<ShopCode, Arc<Shop>>,
    /// Dialects, by name; `v1` always exists.
    pub dialects: HashMap<Box<str>, Arc<Dialect>>,
    /// The merchants of API keys, by key.
    pub api_keys: HashMap<Arc<str>, KeyEntry>,
    /// The routes of all dialects, by path.
    pub v1_routes: HashMap<Box<str>, Vec<V1Route>>,
    /// The dialect whose header names authenticate requests to `[legacy] paths`, the same in all dialects that are used;
    /// `None` when there are no such paths.
    pub legacy_dialect: Option<Arc<Dialect>>,
    /// The compiled schemas by a hash of their sources, which the next rule set reuses.
    pub(crate) schemas: HashMap<ContentHash, Arc<FieldsSchema>>,
    /// The parts of customers' pages.
    pub pages: Arc<Pages>,
    /// The warnings: problems that do not keep the set from being loaded.
    pub warnings: Vec<Problem>,
    /// The non-empty files that may be empty, by the paths that problems use: a reload rejects them when they become
    /// empty.
    pub filled: HashSet<Arc<Path>>,
}

impl RuleSet {
    /// Returns the merchant and key of an `X-Api-Key` value.
    #[must_use]
    pub fn api_key(&self, key: &str) -> Option<&KeyEntry> {
        self.api_keys.get(key)
    }

    /// Returns why an id names no merchant, with the one that was probably meant: of a like id, or of this name.
    #[must_use]
    pub fn no_such_merchant(&self, id: &str) -> String {
        let known = self.merchants.values().map(|merchant| (merchant.id.as_str(), &*merchant.name));
        no_such("merchant", id, known)
    }

    /// Returns why a code names no shop, with the one that was probably meant: of a like code, or of this name.
    #[must_use]
    pub fn no_such_shop(&self, code: &str) -> String {
        no_such("shop", code, self.shops.values().map(|shop| (shop.code.as_str(), &*shop.name)))
    }
}

/// Returns why a text names nothing of what is `known`, by id and name.
fn no_such<'a>(what: &str, id: &str, known: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let near = did_you_mean(id, known.clone().map(|(id, _)| id));
    let named = || {
        let named = known.filter(|(_, name)| name.eq_ignore_ascii_case(id));
        named.map(|(id, _)| format!("did you mean `{id}`?")).min()
    };
    let meant = near.or_else(named).map_or_else(String::new, |meant| format!(" ({meant})"));
    format!("there is no {what} {} in the rules{meant}", quoted(id))
}

/// The location of an API key: its merchant, and its index there.
#[derive(Debug, Clone)]
pub struct KeyEntry {
    /// The merchant of the key.
    pub merchant: Arc<Merchant>,
    /// Its index in [`Merchant::api_keys`].
    pub index: usize,
}

impl KeyEntry {
    /// Returns the key.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "an entry is made with its index in this list")]
    pub fn api_key(&self) -> &ApiKey {
        &self.merchant.api_keys[self.index]
    }
}

/// A method on a v1 path. Dialects that share a route have the same header names, so that the caller can be found
/// before its dialect is known.
#[derive(Debug, Clone)]
pub struct V1Route {
    /// The method.
    pub method: Method,
    /// The header with the API key, the same in all of `endpoints`.
    pub api_key: HeaderName,
    /// The endpoint in each dialect that has the route, by dialect name.
    pub endpoints: Vec<(Box<str>, Endpoint)>,
}

/// `gateway.toml`.
#[derive(Debug)]
pub struct GatewayRules {
    /// `[server]`.
    pub server: ServerRules,
    /// `[tls]`.
    pub tls: TlsRules,
    /// `[admin]`.
    pub admin: AdminRules,
    /// `[store]`.
    pub store: StoreSettings,
    /// `[engine]`.
    pub engine: EngineRules,
    /// `[engine] trust`, also for an engine that does not use it, so that a change is noticed.
    pub engine_trust: Vec<PathBuf>,
    /// `[engine] timeout`, likewise.
    pub engine_timeout: Duration,
    /// `[engine] callback_signature`.
    pub callback_signature: CallbackSignature,
    /// `[legacy]`; `None`: there is no old v1 service.
    pub legacy: Option<LegacyRules>,
    /// `[pages]`.
    pub pages: PageRules,
    /// `[callbacks]`.
    pub callbacks: CallbackRules,
    /// `[limits]`.
    pub limits: Limits,
    /// `[clients]`.
    pub clients: ClientRules,
}

impl GatewayRules {
    /// Reports whether the store keys are the same. A key that the process itself created at start is no change.
    pub(super) fn has_same_store_keys(&self, new: &Self) -> bool {
        let bytes = |keys: &StoreKeys| keys.keys.iter().map(|key| key.expose().to_vec()).collect::<Vec<_>>();
        let (running, new) = (&self.store.keys, &new.store.keys);
        running.create_at == new.create_at && (running.keys.is_empty() || bytes(running) == bytes(new))
    }

    /// Reports whether `engine.trust` is the same, also the certificates in its files, which are read only for a remote
    /// engine.
    pub(super) fn has_same_engine_trust(&self, new: &Self) -> bool {
        let has_same_certificates = match (&self.engine, &new.engine) {
            (EngineRules::Remote(running), EngineRules::Remote(new)) => running.trust == new.trust,
            _ => true,
        };
        self.engine_trust == new.engine_trust && has_same_certificates
    }
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRules {
    /// The public listener.
    pub listen: SocketAddr,
    /// The URL at which customers and engines reach it: `https://host[:port]`, without a trailing slash.
    pub public_url: Box<str>,
    /// Whether the host of `public_url` is not a loopback one.
    pub is_public: bool,
    /// How long requests in flight may take after SIGTERM.
    pub shutdown_grace: Duration,
    /// The time between `/readyz` returning 503 and closing the listeners.
    pub drain_delay: Duration,
}

/// `[tls]`. Paths are absolute or relative to the working directory, already resolved against the rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRules {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// Whether to create a local CA and this pair when both files are missing.
    pub generate: bool,
    /// The authority that must have signed the callers' certificates; `None`: callers need none.
    pub client_ca: Option<PathBuf>,
}

impl TlsRules {
    /// Returns the files that the listener reads.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca)
    }
}

/// `[engine]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineRules {
    /// The engine runs in the same process.
    Embedded,
    /// The engine is another service.
    Remote(RemoteEngine),
}

impl EngineRules {
    /// Reports whether the engine is another service, which has the operations.
    #[must_use]
    pub const fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }
}

impl fmt::Display for EngineRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Remote(engine) => f.write_str(&engine.base),
        }
    }
}

/// A v2 service behind the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteEngine {
    /// The base of its paths: `https://host[:port][/path]/api/v2`, without a trailing slash.
    pub base: Box<str>,
    /// Certificates (DER) that are trusted besides the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
    /// The timeout of all exchanges for one request together, repeats included.
    pub timeout: Duration,
}

/// `[legacy]`: the old v1 service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyRules {
    /// Its address: `https://host[:port]`, without a trailing slash.
    pub url: Box<str>,
    /// Certificates (DER) that are trusted besides the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
    /// The timeout of a forwarded request, its whole reply included.
    pub timeout: Duration,
    /// The largest body of a reply, in bytes.
    pub reply_limit: usize,
    /// Further v1 paths that are forwarded, with what is below them.
    pub paths: Vec<Box<str>>,
    /// Headers that are set to the caller's address.
    pub client_address_headers: Vec<HeaderName>,
}

/// `[pages]`.
#[derive(Debug)]
pub struct PageRules {
    /// The secrets of links; `None`: the secret is in the file `pages.key` beside the store's key, which is created
    /// when it is missing and the store is new.
    pub secret: Option<Secrets>,
    /// The file of the secret when the rules name none.
    pub default_secret: PathBuf,
    /// How long entry links are valid, from creation.
    pub link_lifetime: Duration,
    /// How long return links are valid, from creation.
    pub return_lifetime: Duration,
    /// The tag of the fallback language, for customers who accept none of the others.
    pub language: Box<str>,
    /// Name, colour and logo.
    pub(crate) brand: Brand,
}

/// `[callbacks]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRules {
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The wait after the first attempt; it doubles with every further one.
    pub first_retry: Duration,
    /// The longest wait between attempts.
    pub max_retry: Duration,
    /// How long a callback is attempted, from the result that it reports.
    pub give_up_after: Duration,
    /// How long a delivered or failed callback is kept, from when it was queued or last resent.
    pub forget_after: Duration,
    /// Whether loopback and private targets are allowed.
    pub allow_private_addresses: bool,
    /// Certificates (DER) that are trusted besides the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub body: usize,
    /// The largest request head, in bytes.
    pub head: usize,
    /// The timeout from the first byte of a head (or the handshake) to its last.
    pub head_timeout: Duration,
    /// The timeout of a whole body.
    pub body_timeout: Duration,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Duration,
    /// The most open connections.
    pub connections: usize,
    /// The quota of failed authentications from one address.
    pub unauthenticated_per_ip: Quota,
    /// The quota of requests from one address for customers' pages.
    pub pages_per_ip: Quota,
}

/// `[clients]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRules {
    /// Whether connections begin with a PROXY header, v1 or v2.
    pub proxy_protocol: bool,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
}
