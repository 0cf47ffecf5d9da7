//! `gateway.toml` as it is written.

use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderName;

use super::leaf::{LANGUAGE_TAG, LONGER_THAN_ZERO};
use super::{List, Prefix, RawQuota, RawSecrets, Size, raw_table};
use crate::rules::Encoding;

/// Of `store.connections`: a server has a hundred for everybody, unless it is told otherwise.
pub(in crate::rules) const MOST_CONNECTIONS: u32 = 200;

raw_table! {
    /// `gateway.toml`: the process, its listeners, TLS, store, engine and limits. Every key may be left out.
    struct RawGateway {
        /// The public listener.
        ///
        /// A change waits for a restart.
        server: RawServer,
        /// The certificate of the public listener.
        tls: RawTls,
        /// The admin listener: health, metrics, state of the rules.
        ///
        /// A change waits for a restart.
        admin: RawAdmin,
        /// Where operations are kept.
        ///
        /// A change waits for a restart.
        store: RawStore,
        /// The v2 service behind the gateway.
        ///
        /// A change waits for a restart.
        engine: RawEngine,
        /// Customers' pages and the links to them.
        pages: RawPages,
        /// Callbacks to merchants.
        callbacks: RawCallbacks,
        /// Bounds of requests and connections.
        limits: RawLimits,
        /// Who the caller is, behind a load balancer.
        ///
        /// A change waits for a restart.
        clients: RawClients,
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
        /// The old v1 service. Not supported by this version.
        legacy_url: String where { "not": {}, "deprecated": true },
        /// Extra roots for a remote engine, beside the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] },
        /// How long all exchanges with a remote engine for one request may take together: a span of time, at least `"1s"`.
        timeout: Duration = "10s" where { "pattern": LONGER_THAN_ZERO },
        /// How a remote engine signs its callbacks.
        callback_signature: RawCallbackSignature = { "header": "X-Signature", "payload": "{body}", "encoding": "hex" },
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
        link_lifetime: Duration = "30m" where { "pattern": LONGER_THAN_ZERO },
        /// How long return links are valid, from creation: a span of time.
        return_lifetime: Duration = "7d" where { "pattern": LONGER_THAN_ZERO },
        /// The language for customers who ask for none of the others: the tag of a file in `pages/`, or of a language that is
        /// built in.
        language: String = "en" where { "pattern": LANGUAGE_TAG, "examples": ["en", "pt-BR"] },
        /// Whose pages they are: shown in their header.
        name: String where { "minLength": 1, "examples": ["Example Pay"] },
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
        timeout: Duration = "10s" where { "pattern": LONGER_THAN_ZERO },
        /// The wait after the first try that failed: a span of time. It doubles, with jitter, up to `max_retry`.
        first_retry: Duration = "5s" where { "pattern": LONGER_THAN_ZERO },
        /// The longest wait between tries: a span of time, not shorter than `first_retry`.
        max_retry: Duration = "1h" where { "pattern": LONGER_THAN_ZERO },
        /// How long a callback is tried, from the result that it tells of: a span of time. The last try is then.
        give_up_after: Duration = "3d" where { "pattern": LONGER_THAN_ZERO },
        /// How long a callback that was delivered or given up is kept, with its tries, from when it was queued or last
        /// resent: a span of time, at least 7 days and not shorter than `give_up_after`. After that it is not listed and cannot be resent.
        forget_after: Duration = "90d" where { "pattern": LONGER_THAN_ZERO },
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
        body: Size = "64KiB" where { "minimum": 256 },
        /// The largest request head: a size such as `"16KiB"`, or plain bytes, at least 1 KiB.
        head: Size = "16KiB" where { "minimum": 1024 },
        /// How long a whole head may take, and the first one after the handshake; also between two requests of a connection on
        /// which nothing was authenticated yet: a span of time.
        head_timeout: Duration = "10s" where { "pattern": LONGER_THAN_ZERO },
        /// How long a whole body may take: a span of time. Longer is 408.
        body_timeout: Duration = "10s" where { "pattern": LONGER_THAN_ZERO },
        /// How long a connection may rest between two requests: a span of time.
        idle_timeout: Duration = "75s" where { "pattern": LONGER_THAN_ZERO },
        /// How many connections are open at once; fewer when the limit of open files leaves less room, and a warning says
        /// so. When all are taken, a new one takes the place of the one that has been idle longest, first of those on which
        /// nothing was authenticated.
        connections: u32 = 10000,
        /// How many failed authentications an address has before its failing requests are 429: a rate. Each
        /// gateway counts by itself.
        unauthenticated_per_ip: RawQuota = { "per_second": 50, "burst": 100 },
        /// How many requests for customers' pages an address may make before they are 429: a rate. Each gateway
        /// counts by itself.
        pages_per_ip: RawQuota = { "per_second": 50, "burst": 200 },
    }
}

raw_table! {
    /// `[clients]`.
    struct RawClients {
        /// Whether connections begin with a PROXY header, v1 or v2.
        proxy_protocol: bool = false,
        /// Whose `X-Forwarded-For` is believed, up to its rightmost entry that is not on this list: addresses and networks.
        trusted_proxies: List<Prefix> = [],
    }
}
