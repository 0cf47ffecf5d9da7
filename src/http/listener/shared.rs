//! The interface between the listener and the service behind it, and the state that all connections share: the service,
//! the settings and the lifecycle.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::watch;
use tokio::time::Instant;

use super::settings::ListenerSettings;
use super::slots::{ConnectionSlots, ConnectionState, Slot};
use super::transport::Inbound;
use crate::error::AdmissionError;
use crate::telemetry::Stopwatch;

/// Answers requests. It must refuse a request whose [`HeadCheck`] holds a violation.
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
    /// Whether clients are made to disconnect: HTTP/1 replies then close their connections.
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
    /// Accepting, while clients are made to disconnect.
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

    /// Waits until clients are made to disconnect.
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

/// What the listener knows of a request, beside the request itself.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The client.
    pub peer: Peer,
    /// The check of its head.
    pub head_check: HeadCheck,
    /// Notified when the caller is authenticated.
    pub connection: Arc<ConnectionState>,
}

/// The other end of a connection, as the listener knows it before any request is read.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address the connection counts as coming from: the socket's, or the PROXY header's.
    pub address: IpAddr,
    /// The negotiated protocol.
    pub protocol: Protocol,
}

/// The protocol that ALPN chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, also without ALPN.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What the listener found in a request's head that hyper does not report (contract section 3, "What hyper leaves to its
/// user").
///
/// A request with a violation is refused before anything else: over HTTP/1 the head that follows is a substitute without a
/// body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadCheck {
    /// Why the head is refused, worded for the caller; an HTTP/1 connection closes after the reply.
    pub violation: Option<&'static str>,
    /// The kind of violation, when there is one.
    pub fault: HeadError,
    /// When its first byte came, if it did not come in one piece.
    pub began: Option<Stopwatch>,
}

/// The kinds of violation of a head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeadError {
    /// It is not HTTP as it is allowed here.
    #[default]
    Malformed,
    /// It is over `limits.head`, or has too many header lines.
    TooLarge,
    /// It did not arrive within `limits.head_timeout`.
    TooSlow,
}

impl HeadCheck {
    /// Marks a head as refused.
    #[must_use]
    pub const fn violating(fault: HeadError, violation: &'static str) -> Self {
        Self { violation: Some(violation), fault, began: None }
    }

    /// Returns the refusal of the request, if its head is refused.
    #[must_use]
    pub fn refusal(&self) -> Option<AdmissionError> {
        self.violation.map(|violation| match self.fault {
            HeadError::Malformed => AdmissionError::Malformed(violation),
            HeadError::TooLarge => AdmissionError::HeadTooLarge,
            HeadError::TooSlow => AdmissionError::HeadTooSlow,
        })
    }
}
