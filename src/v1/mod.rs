//! The gateway's front: the API of legacy merchants (contract sections 4 and 5).

mod create;
mod history;
pub(crate) mod query;
pub mod reply;
pub mod translate;

use std::sync::Arc;

use crate::domain::FingerprintKey;
use crate::service::V2Service;
use crate::telemetry::Metrics;

/// Answers v1 requests with a v2 service.
pub struct V1Frontend {
    service: V2Service,
    fingerprint_key: FingerprintKey,
    metrics: Arc<Metrics>,
}

impl V1Frontend {
    /// Answers with `service`; `fingerprint_key` is the store's.
    #[must_use]
    pub const fn new(service: V2Service, fingerprint_key: FingerprintKey, metrics: Arc<Metrics>) -> Self {
        Self { service, fingerprint_key, metrics }
    }
}
