//! Prometheus metrics, names `paybridge_*` (contract section 13).

use std::time::Duration;

/// A stage of a request whose latency is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// From the head to a known caller.
    Admission,
    /// Reading the body.
    Body,
    /// Verifying the signature.
    Signature,
    /// v1 to v2.
    Translate,
    /// The engine, the commit included.
    Engine,
}

/// All metrics of the process.
#[derive(Debug, Default)]
pub struct Metrics {}

impl Metrics {
    /// A request was answered.
    pub fn request(&self, route: &'static str, status: u16, duration: Duration) {
        let _ = (route, status, duration);
    }

    /// A stage of a request took so long.
    pub fn stage(&self, stage: Stage, duration: Duration) {
        let _ = (stage, duration);
    }

    /// A request was refused for this reason (`signature`, `unknown_key`, `address`, `rate_limit`, ...).
    pub fn refused(&self, reason: &'static str) {
        let _ = reason;
    }

    /// A v1 body could not be translated, by reason.
    pub fn translation_refused(&self, reason: &'static str) {
        let _ = reason;
    }

    /// A connection was opened.
    pub fn connection_opened(&self) {}

    /// A connection was closed.
    pub fn connection_closed(&self) {}

    /// A connection ended before it served: `limit`, `proxy_header`, `tls`, `timeout`.
    pub fn connection_refused(&self, reason: &'static str) {
        let _ = reason;
    }

    /// The store committed a batch of so many commands.
    pub fn commit(&self, batch: usize, duration: Duration) {
        let _ = (batch, duration);
    }

    /// A commit failed.
    pub fn commit_failed(&self) {}

    /// The provider worker finished a job, by outcome.
    pub fn provider_job(&self, outcome: &'static str) {
        let _ = outcome;
    }

    /// A rule set was loaded or refused.
    pub fn reload(&self, accepted: bool, version: &str) {
        let _ = (accepted, version);
    }

    /// The Prometheus text of all metrics.
    #[must_use]
    pub fn render(&self) -> String {
        String::new()
    }
}
