//! A remote v2 service behind the gateway (contract section 6).
//!
//! What v1 requests ask of it is written down first, in the [`Journal`], so that neither a crash nor a reply that never
//! came forgets an operation: `v1` creates, their repeats, statuses and histories go by the journal, and an entry without
//! an answer is settled by sending the very same body again, which v2 takes as the same operation. Native v2 requests pass
//! through untouched, and nothing of them is written down.

mod callbacks;
mod exchange;
mod history;
mod messages;
mod native;
mod orders;
mod outages;
mod recovery;
mod resolve;
mod responses;
#[cfg(test)]
mod tests;
mod v1;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

pub use callbacks::EngineCallback;
pub use recovery::Recovery;
pub use v1::{is_final, shown};

use crate::auth::SignedBody;
use crate::clock::Clock;
use crate::domain::{
    Balance, CreateReply, Currency, Direction, Fingerprint, HistoryQuery, OperationView, OrderId, Page,
};
use crate::engine::CreateError;
use crate::failure::ApiError;
use crate::outbound::Outbound;
use crate::rules::RemoteEngine;
use crate::store::{Journal, Store, V1Request};
use crate::telemetry::Metrics;
use crate::v2::{ForwardedHeaders, ServiceCall, ServiceFuture, V2Service};
use history::StatusRefresher;
use orders::OrderLocks;
use outages::OutageLog;

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

    /// The same engine, as one request calls it.
    fn for_call(&self, call: ServiceCall<'_>) -> Self {
        Self { parts: Arc::clone(&self.parts), passing: call.forwarded.clone() }
    }

    fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    fn journal(&self) -> &dyn Journal {
        &*self.parts.store
    }
}

impl V2Service for Remote {
    fn create<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: &'a SignedBody,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Bytes> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.pass_create(call.caller, direction, body, signature).await })
    }

    fn status<'a>(
        &'a self,
        call: ServiceCall<'a>,
        transaction_id: &'a str,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Bytes> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.pass_status(call.caller, transaction_id, signature).await })
    }

    fn create_from_v1<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: Bytes,
        v1: V1Request,
    ) -> ServiceFuture<'a, CreateReply, CreateError> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.create_by_journal(call.caller, direction, &body, v1).await })
    }

    fn repeat<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
        fingerprint: Fingerprint,
    ) -> ServiceFuture<'a, Option<CreateReply>, CreateError> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.repeat_by_journal(call.caller, direction, external_id, fingerprint).await })
    }

    fn find<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
    ) -> ServiceFuture<'a, OperationView> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.find_by_journal(call.caller, direction, external_id).await })
    }

    fn history<'a>(&'a self, call: ServiceCall<'a>, query: HistoryQuery) -> ServiceFuture<'a, Page<OperationView>> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.list_journal(call.caller, query).await })
    }

    fn balances<'a>(&'a self, _: ServiceCall<'a>) -> ServiceFuture<'a, Vec<(Currency, Balance)>> {
        Box::pin(async { Err(ApiError::NotOffered("the balance")) })
    }
}
