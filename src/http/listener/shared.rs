//! What all connections of a listener share: the service, the settings, and the phases of a drain.

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

/// Answers requests. A request whose [`HeadCheck`](crate::http::HeadCheck) holds a violation has to be refused for it.
pub trait Service: Send + Sync + 'static {
    /// Answers one request. It runs on the worker thread of its connection and may spawn tasks there. It is dropped when
    /// the client goes away; what must not stop half way belongs into a task of its own, which a drain waits for.
    fn call(
        &self,
        request: Request<Inbound>,
        arrival: ConnectionInfo,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// What all connections share.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) settings: ListenerSettings,
    pub(super) slots: Arc<ConnectionSlots>,
    /// Whether replies over HTTP/1 close their connections, since the listener drains.
    pub(super) leaving: Arc<AtomicBool>,
}

impl<S> Shared<S> {
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }
}

/// The phases of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerLife {
    /// Accepting.
    Serving,
    /// Accepting, while clients are asked to leave.
    Leaving,
    /// Finishing what is in flight. A connection between two requests may begin another one until `last_request`.
    Draining { last_request: Instant },
    /// Dropping what is left.
    Cut,
}

/// Waits for the next [`WorkerLife`]. A listener whose handle was dropped has ended.
#[derive(Debug, Clone)]
pub(super) struct Lifecycle(watch::Receiver<WorkerLife>);

impl Lifecycle {
    pub(super) const fn new(receiver: watch::Receiver<WorkerLife>) -> Self {
        Self(receiver)
    }

    /// Ready when clients are asked to leave.
    pub(super) async fn leaving(&mut self) {
        let _ = self.0.wait_for(|life| *life != WorkerLife::Serving).await;
    }

    /// Ready when no new connection is taken; until when the ones that are open may begin another request.
    pub(super) async fn draining(&mut self) -> Instant {
        match self.0.wait_for(|life| !matches!(life, WorkerLife::Serving | WorkerLife::Leaving)).await.as_deref() {
            Ok(WorkerLife::Draining { last_request }) => *last_request,
            _ => Instant::now(),
        }
    }

    /// Ready when no new request may begin.
    pub(super) async fn last_request(&mut self) {
        let until = self.draining().await;
        tokio::time::sleep_until(until).await;
    }

    /// Ready when everything has to end.
    pub(super) async fn cut(&mut self) {
        let _ = self.0.wait_for(|life| *life == WorkerLife::Cut).await;
    }
}

/// A connection on its way to a worker.
pub(super) struct AcceptedConnection {
    pub(super) socket: std::net::TcpStream,
    pub(super) from: SocketAddr,
    pub(super) slot: Slot,
}
