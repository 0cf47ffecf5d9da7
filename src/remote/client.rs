//! The handle of a remote engine: what every call of it needs.

use std::sync::Arc;

use super::orders::OrderLocks;
use super::outages::OutageLog;
use super::refresher::StatusRefresher;
use crate::clock::{Clock, ClockJumps};
use crate::outbound::{Outbound, RequestPlaces};
use crate::rules::RemoteEngine;
use crate::store::{Journal, Store};
use crate::telemetry::Metrics;
use crate::v2::{ForwardedHeaders, ServiceCall};

/// The most requests to the engine at once.
const IN_FLIGHT: usize = 2048;

/// What a remote v2 service needs.
pub struct RemoteDeps {
    /// The engine's address and limits.
    pub engine: RemoteEngine,
    /// Holds the journal and the `order_id`s that are reserved for v1.
    pub store: Arc<dyn Store>,
    /// Sends the requests.
    pub outbound: Arc<Outbound>,
    /// Dates the journal's entries.
    pub clock: Arc<dyn Clock>,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
}

/// What all calls share.
pub(super) struct RemoteState {
    pub(super) engine: RemoteEngine,
    pub(super) store: Arc<dyn Store>,
    pub(super) outbound: Arc<Outbound>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) jumps: ClockJumps,
    pub(super) metrics: Arc<Metrics>,
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
    /// Creates the service; its calls carry no request's headers.
    #[must_use]
    pub fn new(parts: RemoteDeps) -> Self {
        let RemoteDeps { engine, store, outbound, clock, metrics } = parts;
        let (orders, outages, refresher) = (OrderLocks::default(), OutageLog::default(), StatusRefresher::default());
        let jumps = ClockJumps::new(Arc::clone(&clock));
        let places = RequestPlaces::new(IN_FLIGHT);
        let parts = Arc::new(RemoteState {
            engine,
            store,
            outbound,
            clock,
            jumps,
            metrics,
            places,
            orders,
            outages,
            refresher,
        });
        Self { parts, forwarded: ForwardedHeaders::default() }
    }

    /// Returns the same engine, with the headers of a request.
    pub(crate) fn for_call(&self, call: ServiceCall<'_>) -> Self {
        Self { parts: Arc::clone(&self.parts), forwarded: call.forwarded.clone() }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    pub(super) fn journal(&self) -> &dyn Journal {
        &*self.parts.store
    }
}
