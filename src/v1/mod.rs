//! The gateway's front: the API of legacy merchants (contract sections 4 and 5).

mod create;
mod history;
mod homes;
pub(crate) mod query;
pub mod reply;
pub mod translate;

use std::sync::Arc;

pub use create::{relay_url, v2_body};
pub use homes::{ByHome, V1Reply};

use crate::clock::Clock;
use crate::domain::FingerprintKey;
use crate::legacy::Legacy;
use crate::outbound::Outbound;
use crate::shadow::ShadowChecks;
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::v2::V2Service;

/// Answers v1 requests with a v2 service, or forwards them to the old v1 service.
pub struct V1Frontend {
    service: Arc<dyn V2Service>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    legacy: Legacy,
    fingerprint_key: FingerprintKey,
    /// `None` where nothing is checked.
    checks: Option<Arc<ShadowChecks>>,
    metrics: Arc<Metrics>,
}

/// What [`V1Frontend`] needs.
pub struct V1Deps {
    /// Answers translated requests.
    pub service: Arc<dyn V2Service>,
    /// Knows the homes of orders.
    pub store: Arc<dyn Store>,
    /// Reaches the old v1 service.
    pub outbound: Arc<Outbound>,
    /// Checks the creates of merchants in mode `shadow`; `None`: nothing is checked.
    pub checks: Option<Arc<ShadowChecks>>,
    /// Dates claims.
    pub clock: Arc<dyn Clock>,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
}

impl V1Frontend {
    /// Answers with these.
    #[must_use]
    pub fn new(deps: V1Deps) -> Self {
        let V1Deps { service, store, outbound, checks, clock, metrics } = deps;
        let fingerprint_key = store.fingerprint_key().clone();
        let legacy = Legacy::new(outbound, Arc::clone(&metrics), &fingerprint_key);
        Self { service, store, clock, legacy, fingerprint_key, checks, metrics }
    }
}
