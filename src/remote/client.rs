//! The handle of a remote engine: what every call of it needs.

use std::sync::Arc;

use super::orders::OrderLocks;
use super::outages::OutageLog;
use super::refresher::StatusRefresher;
use crate::clock::ClockJumps;
use crate::deps::Deps;
use crate::outbound::RequestPlaces;
use crate::rules::RemoteEngine;
use crate::store::Journal;
use crate::telemetry::Metrics;
use crate::v2::{ForwardedHeaders, ServiceCall};

/// The most requests to the engine at once.
const IN_FLIGHT: usize = 2048;

/// What all calls share.
pub(super) struct RemoteState {
    pub(super) engine: RemoteEngine,
    pub(super) deps: Deps,
    pub(super) jumps: ClockJumps,
    pub(super) places: RequestPlaces,
    pub(super) orders: OrderLocks,
    pub(super) outages: OutageLog,
    pub(super) refresher: StatusRefresher,
}

/// A remote v2 service, called for one request or for none. Clones share everything but the request.
#[derive(Clone)]
pub struct Remote {
    pub(super) parts: Arc<RemoteState>,
    /// The headers of the request that it is called for.
    pub(super) forwarded: ForwardedHeaders,
}

impl Remote {
    /// Creates the service of an engine with this address and limits; its calls carry no request's headers.
    #[must_use]
    pub fn new(engine: RemoteEngine, deps: Deps) -> Self {
        let (orders, outages, refresher) = (OrderLocks::default(), OutageLog::default(), StatusRefresher::default());
        let jumps = ClockJumps::new(Arc::clone(&deps.clock));
        let places = RequestPlaces::new(IN_FLIGHT);
        let parts = Arc::new(RemoteState { engine, deps, jumps, places, orders, outages, refresher });
        Self { parts, forwarded: ForwardedHeaders::default() }
    }

    /// Returns the same engine, with the headers of a request.
    pub(crate) fn for_call(&self, call: ServiceCall<'_>) -> Self {
        Self { parts: Arc::clone(&self.parts), forwarded: call.forwarded.clone() }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.parts.deps.metrics
    }

    pub(super) fn journal(&self) -> &dyn Journal {
        &*self.parts.deps.store
    }
}
