//! The state that all connections of a listener share: the service, the settings and the lifecycle.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::watch;
use tokio::time::Instant;

use super::inbound::Inbound;
use super::settings::ListenerSettings;
use super::slots::{ConnectionSlots, Slot};
use crate::http::ConnectionInfo;

/// Answers requests. It must refuse a request whose [`HeadCheck`](crate::http::HeadCheck) holds a violation.
pub trait Service: Send + Sync + 'static {
    /// Answers one request, on the worker thread of its connection; it may spawn tasks there. The future is dropped
    /// when the client disconnects. Work that must not stop half-way belongs in a task of its own, which a drain waits
    /// for.
    fn call(
        &self,
        request: Request<Inbound>,
        arrival: ConnectionInfo,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// The state that all connections share.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) settings: ListenerSettings,
    pub(super) slots: Arc<ConnectionSlots>,
    /// Whether clients are asked to disconnect: HTTP/1 replies then close their connections.
    pub(super) leaving: Arc<AtomicBool>,
}

impl<S> Shared<S> {
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }
}

/// The lifecycle stage of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerLife {
    /// Accepting.
    Serving,
    /// Accepting, while clients are asked to disconnect.
    Leaving,
    /// Finishing open requests. An idle connection may begin another one until `last_request`.
    Draining { last_request: Instant },
    /// Dropping the remaining requests.
    Cut,
}

/// Waits for the next [`WorkerLife`]. A listener whose handle was dropped has ended.
#[derive(Debug, Clone)]
pub(super) struct Lifecycle(watch::Receiver<WorkerLife>);

impl Lifecycle {
    pub(super) const fn new(receiver: watch::Receiver<WorkerLife>) -> Self {
        Self(receiver)
    }

    /// Waits until clients are asked to disconnect.
    pub(super) async fn leaving(&mut self) {
        let _ = self.0.wait_for(|life| *life != WorkerLife::Serving).await;
    }

    /// Waits until no new connection is accepted. Returns until when open connections may begin another request.
    pub(super) async fn draining(&mut self) -> Instant {
        match self.0.wait_for(|life| !matches!(life, WorkerLife::Serving | WorkerLife::Leaving)).await.as_deref() {
            Ok(WorkerLife::Draining { last_request }) => *last_request,
            _ => Instant::now(),
        }
    }

    /// Waits until no new request may begin.
    pub(super) async fn last_request(&mut self) {
        let until = self.draining().await;
        tokio::time::sleep_until(until).await;
    }

    /// Waits until everything has to end.
    pub(super) async fn cut(&mut self) {
        let _ = self.0.wait_for(|life| *life == WorkerLife::Cut).await;
    }
}

/// An accepted connection that a worker has to serve.
pub(super) struct AcceptedConnection {
    pub(super) socket: std::net::TcpStream,
    pub(super) from: SocketAddr,
    pub(super) slot: Slot,
}
