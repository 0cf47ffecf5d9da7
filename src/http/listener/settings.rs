//! The settings of a listener, and the rules for its connections.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;

use crate::clock::Clock;
use crate::rules::{ClientRules, Limits};
use crate::telemetry::Metrics;

/// The rules in force for a new connection.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// `[limits]`.
    pub limits: Limits,
    /// The TLS configuration, from [`super::tls::server_tls`]; `None`: plain HTTP/1.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether the case of field names is kept over HTTP/1, for requests that may be forwarded: it costs half a microsecond
    /// a request.
    pub keeps_field_case: bool,
}

/// The settings of a listener.
#[derive(Clone)]
pub struct ListenerSettings {
    /// Read for every connection, so that a reload takes effect.
    pub rules: Arc<ArcSwap<ConnectionRules>>,
    /// `[clients]`. With `proxy_protocol` and `trusted_proxies`, only those may connect.
    pub clients: ClientRules,
    /// Counts connections.
    pub metrics: Arc<Metrics>,
    /// Dates replies over HTTP/2.
    pub clock: Arc<dyn Clock>,
    /// The number of worker threads, usually [`super::available_workers`].
    pub workers: NonZeroUsize,
    /// How long an idle HTTP/1 connection keeps its buffers, which are two thirds of its memory; usually
    /// [`super::TRIM_IDLE_AFTER`].
    pub trim_idle_after: Duration,
}
