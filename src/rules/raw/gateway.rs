//! `gateway.toml` as it is written.

use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderName;

use super::{List, Prefix, RawQuota, RawSecrets, Size, raw_table};
use crate::rules::Encoding;

raw_table! {
    /// `gateway.toml`: the process.
    struct RawGateway {
        /// The public listener.
        server: RawServer,
        /// Certificates.
        tls: RawTls,
        /// The admin listener.
        admin: RawAdmin,
        /// Where operations are kept.
        store: RawStore,
        /// The v2 service behind the gateway.
        engine: RawEngine,
        /// Customer pages.
        pages: RawPages,
        /// Callbacks to merchants.
        callbacks: RawCallbacks,
        /// Bounds of requests and connections.
        limits: RawLimits,
        /// Who the caller is, behind a load balancer.
        clients: RawClients,
    }
}

raw_table! {
    /// `[server]`.
    struct RawServer {
        /// Address and port of the public listener.
        listen: SocketAddr,
        /// How customers, and the engine's callbacks, reach this gateway.
        public_url: String,
        /// How long requests in flight may take after a signal to stop.
        shutdown_grace: Duration,
        /// Between `/readyz` 503 and closing the listeners.
        drain_delay: Duration,
    }
}

raw_table! {
    /// `[tls]`.
    struct RawTls {
        /// PEM chain.
        certificate: String,
        /// PEM key.
        key: String,
        /// Make a local CA and this pair when both are missing.
        generate: bool,
        /// When set, callers must present a certificate that it signed.
        client_ca: String,
    }
}

raw_table! {
    /// `[admin]`.
    struct RawAdmin {
        /// Address and port of the admin listener.
        listen: SocketAddr,
        /// Bearer token; required when not on loopback.
        token: RawSecrets,
    }
}

raw_table! {
    /// `[store]`.
    struct RawStore {
        /// `sqlite:PATH`.
        url: String,
        /// 32 bytes each, in base64: the first wraps the store's data keys, all unwrap.
        keys: RawSecrets,
    }
}

raw_table! {
    /// `[engine]`.
    struct RawEngine {
        /// `embedded`, or the base of a remote v2 service.
        url: String,
        /// The old v1 service.
        legacy_url: String,
        /// Extra roots for a remote engine, PEM files.
        trust: List<String>,
        /// For a whole exchange with a remote engine.
        timeout: Duration,
        /// How a remote engine signs its callbacks.
        callback_signature: RawCallbackSignature,
    }
}

raw_table! {
    /// `[engine] callback_signature`.
    struct RawCallbackSignature {
        /// The header with the signature.
        header: HeaderName,
        /// What is signed.
        payload: String,
        /// How the signature is written.
        encoding: Encoding,
    }
}

raw_table! {
    /// `[pages]`.
    struct RawPages {
        /// Signs entry and return links.
        secret: RawSecrets,
        /// Entry links, from creation.
        link_lifetime: Duration,
        /// Return links, from creation.
        return_lifetime: Duration,
    }
}

raw_table! {
    /// `[callbacks]`.
    struct RawCallbacks {
        /// Of one try.
        timeout: Duration,
        /// After the first try; doubles up to `max_retry`.
        first_retry: Duration,
        /// The longest wait between tries.
        max_retry: Duration,
        /// From the first try.
        give_up_after: Duration,
        /// Loopback and private targets are allowed.
        allow_private_addresses: bool,
        /// Extra roots for callback targets, PEM files.
        trust: List<String>,
    }
}

raw_table! {
    /// `[limits]`.
    struct RawLimits {
        /// Of a request body.
        body: Size,
        /// Of a request head.
        head: Size,
        /// For a whole head.
        head_timeout: Duration,
        /// For a whole body.
        body_timeout: Duration,
        /// Between requests.
        idle_timeout: Duration,
        /// Open at once.
        connections: u32,
        /// Failed authentications of an address.
        unauthenticated_per_ip: RawQuota,
    }
}

raw_table! {
    /// `[clients]`.
    struct RawClients {
        /// Connections begin with a PROXY header, v1 or v2.
        proxy_protocol: bool,
        /// Networks whose `X-Forwarded-For` is believed.
        trusted_proxies: List<Prefix>,
    }
}
