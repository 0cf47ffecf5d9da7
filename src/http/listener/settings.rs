//! How a listener serves, and the rules for each connection.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;

use crate::clock::Clock;
use crate::rules::{ClientRules, Limits};
use crate::telemetry::Metrics;

/// The rules in force for a new connection.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// `[limits]`.
    pub limits: Limits,
    /// The server's side of TLS, from [`super::tls::server_tls`]; `None`: plain HTTP/1.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Returns the rules in force.
pub type RulesSource = Arc<dyn Fn() -> Arc<ConnectionRules> + Send + Sync>;

/// How a listener serves.
#[derive(Clone)]
pub struct ListenerSettings {
    /// Called for every connection, so that a reload is live.
    pub rules: RulesSource,
    /// `[clients]`. With `proxy_protocol` and `trusted_proxies`, only those may connect.
    pub clients: ClientRules,
    /// Counts connections.
    pub metrics: Arc<Metrics>,
    /// Dates replies over HTTP/2.
    pub clock: Arc<dyn Clock>,
    /// Threads that serve; [`super::available_workers`] unless there is a reason.
    pub workers: NonZeroUsize,
    /// How long an HTTP/1 connection that waits for another request keeps its buffers, two thirds of what it needs;
    /// [`super::REST_AFTER`] unless there is a reason.
    pub rest_after: Duration,
}
