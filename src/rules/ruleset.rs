//! The snapshot: what all rule files mean together.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;

use super::files::ContentHash;
use super::limits::Quota;
use super::pages::Brand;
use super::{
    ApiKey, Dialect, Encoding, Endpoint, FieldsSchema, Merchant, Pages, PostgresUrl, Problem, Secret, Secrets, Segment,
    Shop,
};
use crate::domain::{MerchantId, ShopCode, UnixMillis, names_loopback};

/// All rules of one moment. A request fetches it once and keeps it to its reply.
#[derive(Debug)]
pub struct RuleSet {
    /// The first 16 hexadecimal digits of a hash over all files, those of trusted certificates included.
    pub version: Box<str>,
    /// When it was read.
    pub loaded_at: UnixMillis,
    /// The process.
    pub gateway: GatewayRules,
    /// By id.
    pub merchants: HashMap<MerchantId, Arc<Merchant>>,
    /// By code.
    pub shops: HashMap<ShopCode, Arc<Shop>>,
    /// By name; there is always `v1`.
    pub dialects: HashMap<Box<str>, Arc<Dialect>>,
    /// By API key.
    pub api_keys: HashMap<Box<str>, KeyEntry>,
    /// The paths of all dialects.
    pub v1_routes: HashMap<Box<str>, Vec<V1Route>>,
    /// The shops' schemas by a hash of what they were made of, for the next rule set.
    pub(crate) schemas: HashMap<ContentHash, Arc<FieldsSchema>>,
    /// What customers' pages are made of.
    pub pages: Arc<Pages>,
    /// What is no reason to refuse the set, and would fail requests.
    pub warnings: Vec<Problem>,
    /// The files that may be empty and were not, as problems name them: a reload refuses them when their text is gone.
    pub filled: HashSet<Arc<Path>>,
}

impl RuleSet {
    /// Finds the merchant and key that an `X-Api-Key` names.
    #[must_use]
    pub fn api_key(&self, key: &str) -> Option<&KeyEntry> {
        self.api_keys.get(key)
    }
}

/// Where an API key stands: its merchant, and its place in the merchant's list.
#[derive(Debug, Clone)]
pub struct KeyEntry {
    /// Whose it is.
    pub merchant: Arc<Merchant>,
    /// Its index in [`Merchant::api_keys`].
    pub index: usize,
}

impl KeyEntry {
    /// The key itself.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "an entry is made with its index in this list")]
    pub fn api_key(&self) -> &ApiKey {
        &self.merchant.api_keys[self.index]
    }
}

/// A method on a path of v1. Dialects that share a route share header names, so that the caller is found before its
/// dialect is known.
#[derive(Debug, Clone)]
pub struct V1Route {
    /// The method.
    pub method: Method,
    /// The header with the API key, the same in all of `endpoints`.
    pub api_key: HeaderName,
    /// What the route is in each dialect that has it, by dialect name.
    pub endpoints: Vec<(Box<str>, Endpoint)>,
}

/// `gateway.toml`.
#[derive(Debug)]
pub struct GatewayRules {
    /// `[server]`.
    pub server: ServerRules,
    /// `[tls]`.
    pub tls: TlsRules,
    /// `[admin] listen`.
    pub admin_listen: SocketAddr,
    /// `[admin] token`; required when `admin_listen` is not on loopback.
    pub admin_token: Option<Secrets>,
    /// `[admin] hosts`, in lower case: what `Host` may name besides loopback and the listening address.
    pub admin_hosts: Vec<Box<str>>,
    /// `[store]`.
    pub store: StoreRules,
    /// `[engine]`.
    pub engine: EngineRules,
    /// `[engine] trust`, whether this engine has a use for it or not, so that a change can be told.
    pub engine_trust: Vec<PathBuf>,
    /// `[engine] timeout`, likewise.
    pub engine_timeout: Duration,
    /// `[engine] callback_signature`.
    pub callback_signature: CallbackSignature,
    /// `[pages]`.
    pub pages: PageRules,
    /// `[callbacks]`.
    pub callbacks: CallbackRules,
    /// `[limits]`.
    pub limits: Limits,
    /// `[clients]`.
    pub clients: ClientRules,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRules {
    /// The public listener.
    pub listen: SocketAddr,
    /// How customers and engines reach it: `https://host[:port]`, without a trailing slash.
    pub public_url: Box<str>,
    /// How long requests in flight may take after SIGTERM.
    pub shutdown_grace: Duration,
    /// Between `/readyz` 503 and closing the listeners.
    pub drain_delay: Duration,
}

impl ServerRules {
    /// Returns whether `public_url` names another host than a loopback one.
    #[must_use]
    pub fn is_public(&self) -> bool {
        !names_loopback(&self.public_url)
    }
}

/// `[tls]`. Paths are absolute or relative to the working directory, already resolved against the rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRules {
    /// PEM chain.
    pub certificate: PathBuf,
    /// PEM key.
    pub key: PathBuf,
    /// Make a local CA and this pair when both are missing.
    pub generate: bool,
    /// When set, callers must present a certificate that it signed.
    pub client_ca: Option<PathBuf>,
}

/// `[store]`.
#[derive(Debug, Clone)]
pub struct StoreRules {
    /// Where the store is.
    pub url: StoreUrl,
    /// The most connections to a database, which its URL knows too.
    pub connections: usize,
    /// The keys that wrap the store's data keys.
    pub keys: StoreKeys,
}

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file, resolved.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PostgresUrl>),
}

impl StoreUrl {
    /// Reads the address of a store; `resolve` finds the files that it names.
    ///
    /// # Errors
    /// Why it is none, as the end of a sentence that begins with what was read. It holds nothing of the text, which may hold
    /// a password.
    pub fn parse(text: &str, resolve: impl FnOnce(&str) -> PathBuf) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return PostgresUrl::parse(text, resolve).map(|url| Self::Postgres(Box::new(url)));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() && !path.starts_with("//") && path != ":memory:" && !path.contains('\0') => {
                Ok(Self::Sqlite(resolve(path)))
            }
            _ => Err("must be \"sqlite:\" and the path of a file, or a \"postgres://\" URL".to_owned()),
        }
    }
}

/// The keys that wrap the store's data keys: the first wraps, all unwrap.
#[derive(Debug, Clone)]
pub struct StoreKeys {
    /// Where the first key is to be made when it is missing and the store is new.
    pub create_at: Option<PathBuf>,
    /// The keys, 32 bytes each. Empty only when `create_at` names a file that does not exist yet.
    pub keys: Vec<Secret>,
}

/// `[engine]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineRules {
    /// In the same process.
    Embedded,
    /// Somewhere else.
    Remote(RemoteEngine),
}

impl fmt::Display for EngineRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Remote(engine) => f.write_str(&engine.base),
        }
    }
}

/// `[engine] callback_signature`: how a remote engine signs its callbacks, with HMAC-SHA256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSignature {
    /// The header with the signature.
    pub header: HeaderName,
    /// What is signed.
    pub payload: Vec<Segment>,
    /// How the signature is written.
    pub encoding: Encoding,
}

impl Default for CallbackSignature {
    fn default() -> Self {
        let header = HeaderName::from_static("x-signature");
        Self { header, payload: vec![Segment::Body], encoding: Encoding::Hex }
    }
}

/// A v2 service behind the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteEngine {
    /// What its paths follow: `https://host[:port][/path]/api/v2`, without a trailing slash.
    pub base: Box<str>,
    /// Certificates (DER) that are trusted beside the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
    /// How long all exchanges for one request may take together, repeats included.
    pub timeout: Duration,
}

/// `[pages]`.
#[derive(Debug)]
pub struct PageRules {
    /// Signs links; `None`: the file `pages.key` beside the store's key, made when it is missing and the store is new.
    pub secret: Option<Secrets>,
    /// Where the secret is kept when the rules name none.
    pub default_secret: PathBuf,
    /// Entry links, from creation.
    pub link_lifetime: Duration,
    /// Return links, from creation.
    pub return_lifetime: Duration,
    /// The tag of the language for customers who ask for none of the others.
    pub language: Box<str>,
    /// Name, colour and logo.
    pub(crate) brand: Brand,
}

/// `[callbacks]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRules {
    /// Of one try.
    pub timeout: Duration,
    /// After the first try; doubles.
    pub first_retry: Duration,
    /// The longest wait between tries.
    pub max_retry: Duration,
    /// From the result that it tells of.
    pub give_up_after: Duration,
    /// From when it was queued or last resent, once it was delivered or given up.
    pub forget_after: Duration,
    /// Loopback and private targets are allowed.
    pub allow_private_addresses: bool,
    /// Certificates (DER) that are trusted beside the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Of a request body, in bytes.
    pub body: usize,
    /// Of a request head, in bytes.
    pub head: usize,
    /// From the first byte of a head (or the handshake) to its last.
    pub head_timeout: Duration,
    /// For a whole body.
    pub body_timeout: Duration,
    /// Between requests.
    pub idle_timeout: Duration,
    /// Open at once.
    pub connections: usize,
    /// Failed authentications of an address.
    pub unauthenticated_per_ip: Quota,
    /// Requests of an address for customers' pages.
    pub pages_per_ip: Quota,
}

/// `[clients]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRules {
    /// Connections begin with a PROXY header, v1 or v2.
    pub proxy_protocol: bool,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}
