//! A remote v2 service behind the gateway (contract section 6).
//!
//! What v1 requests ask of it is written down first, in the [`Journal`], so that neither a crash nor a reply that never
//! came forgets an operation: `v1` creates, their repeats, statuses and histories go by the journal, and an entry without
//! an answer is settled by sending the very same body again, which v2 takes as the same operation. Native v2 requests pass
//! through untouched, and nothing of them is written down.

mod announced;
mod answers;
mod asking;
mod history;
mod native;
mod orders;
mod recovery;
mod resolve;
#[cfg(test)]
mod tests;
mod trouble;
mod v1;
mod words;

use std::sync::Arc;

pub use announced::EngineCallback;
pub use asking::ForwardedHeaders;
pub use recovery::Recovery;
pub use v1::{is_final, shown};

use crate::clock::Clock;
use crate::domain::FingerprintKey;
use crate::outbound::Outbound;
use crate::rules::RemoteEngine;
use crate::store::{Journal, Store};
use crate::telemetry::Metrics;
use history::StatusRefresher;
use orders::OrderLocks;
use trouble::OutageLog;

/// What a remote upstream is made of.
pub struct RemoteDeps {
    /// Where the engine is.
    pub engine: RemoteEngine,
    /// Holds the journal, and knows the `order_id`s that are reserved for v1.
    pub store: Arc<dyn Store>,
    /// Reaches the engine.
    pub outbound: Arc<Outbound>,
    /// Tells when a request came.
    pub clock: Arc<dyn Clock>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// What all requests share.
struct Shared {
    engine: RemoteEngine,
    store: Arc<dyn Store>,
    outbound: Arc<Outbound>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    orders: OrderLocks,
    trouble: OutageLog,
    refreshes: StatusRefresher,
}

/// A remote v2 service, as one request sees it. Clones share everything but the request.
#[derive(Clone)]
pub struct Remote {
    parts: Arc<Shared>,
    passing: ForwardedHeaders,
}

impl Remote {
    /// A remote engine; what it is asked names no request yet.
    #[must_use]
    pub fn new(parts: RemoteDeps) -> Self {
        let RemoteDeps { engine, store, outbound, clock, metrics } = parts;
        let (orders, trouble, refreshes) = (OrderLocks::default(), OutageLog::default(), StatusRefresher::default());
        let parts = Arc::new(Shared { engine, store, outbound, clock, metrics, orders, trouble, refreshes });
        Self { parts, passing: ForwardedHeaders::default() }
    }

    /// The same engine, as a request sees it: what is asked for the request names it.
    #[must_use]
    pub fn of_request(&self, passing: ForwardedHeaders) -> Self {
        Self { parts: Arc::clone(&self.parts), passing }
    }

    pub(super) fn fingerprint_key(&self) -> &FingerprintKey {
        self.parts.store.fingerprint_key()
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    fn journal(&self) -> &dyn Journal {
        &*self.parts.store
    }
}
