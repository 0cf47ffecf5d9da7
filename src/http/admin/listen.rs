//! The connections of the admin listener: over TCP or a Unix socket, plain or TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::request::{ConnectionEnds, PeerAddress};
use super::server::Server;
use super::source::AdminSource;
use crate::clock::Random;
use crate::connection_error::of_binding;
use crate::http::listener::{
    ConnectionRules, ConnectionSlots, ConnectionState, PassedAdminSocket, UnixSocket, bound_to,
};
use crate::rules::{AdminListen, Limits};

/// The most open connections. A new one takes the place of another.
pub(super) const CONNECTIONS: usize = 64;

/// The pause after each accept. A client that opens connections without end then leaves every other one [`CONNECTIONS`]
/// times this long for its handshake and its head before it can be evicted.
const PACE: Duration = Duration::from_millis(2);

/// The read buffer of a connection, in bytes, which bounds a request's head. Browsers send the cookies of everything that
/// runs on the same host.
const HEAD_BYTES: usize = 16 * 1024;

/// How long a request's head may take, and the handshake before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may take for its one request: a peer that does not read its reply is dropped.
pub(super) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// The pause after a failed accept, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The error of an admin address that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("`admin.listen`: cannot listen on {listen}: {}", why(listen, cause))]
pub struct BindError {
    listen: AdminListen,
    cause: io::Error,
}

fn why(listen: &AdminListen, cause: &io::Error) -> String {
    match listen {
        AdminListen::Tcp(_) => of_binding(cause),
        AdminListen::Unix(_) => cause.to_string(),
    }
}

/// The TLS configuration for new connections, which a renewed certificate replaces.
pub type AdminTls = Arc<ArcSwap<ServerConfig>>;

/// A bound admin listener, of one or more sockets.
#[derive(Debug)]
pub struct Admin {
    sockets: Vec<AdminSocket>,
    places: Vec<AdminListen>,
}

#[derive(Debug)]
enum AdminSocket {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

impl Admin {
    /// Binds the address, or makes the Unix socket with mode 0600. The socket of a process that has ended is replaced.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine; the path is that of another file, or cannot be
    /// written.
    pub async fn bind(listen: &AdminListen) -> Result<Self, BindError> {
        let bound = match listen {
            AdminListen::Tcp(address) => bound_to(*address).and_then(tcp),
            AdminListen::Unix(path) => {
                UnixSocket::bind(path).await.map(|socket| (AdminSocket::Unix(socket), listen.clone()))
            }
        };
        let (socket, listen) = bound.map_err(|cause| BindError { listen: listen.clone(), cause })?;
        Ok(Self { sockets: vec![socket], places: vec![listen] })
    }

    /// Returns the listener of sockets that the service manager passed.
    ///
    /// # Errors
    /// A socket cannot be registered with the runtime.
    pub fn of_passed(passed: Vec<PassedAdminSocket>) -> io::Result<Self> {
        let opened = passed.into_iter().map(|socket| match socket {
            PassedAdminSocket::Tcp(socket) => tcp(socket),
            PassedAdminSocket::Unix(socket) => {
                let path = socket.local_addr()?.as_pathname().unwrap_or(Path::new("")).to_owned();
                Ok((AdminSocket::Unix(UnixSocket::passed(socket)?), AdminListen::Unix(path)))
            }
        });
        let (sockets, places) = opened.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Self { sockets, places })
    }

    /// Returns where it listens, with the actual ports.
    #[must_use]
    pub fn places(&self) -> &[AdminListen] {
        &self.places
    }

    /// Serves requests until the future is dropped, which closes every connection. `tls`: `None` for plain HTTP.
    pub async fn serve(self, source: Arc<dyn AdminSource>, tls: Option<AdminTls>, random: Arc<dyn Random>) {
        let slots = connection_slots(&source.rule_set().gateway.limits);
        let server = Arc::new(Server::new(source, random));
        let accepting = self.sockets.iter().map(|socket| accept(socket, &server, tls.as_ref(), &slots));
        join_all(accepting).await;
    }
}

/// Serves the connections of one socket, until the future is dropped.
async fn accept(socket: &AdminSocket, server: &Arc<Server>, tls: Option<&AdminTls>, slots: &Arc<ConnectionSlots>) {
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        while connections.try_join_next().is_some() {}
        slots.closed().await;
        match socket.accept().await {
            Ok((socket, mut ends)) => {
                failing = false;
                sleep(PACE).await;
                ends.is_tls = tls.is_some();
                // A connection that waited here would wait without any reply; one that is closed can retry.
                let Some(slot) = slots.take() else { continue };
                let (server, tls) = (Arc::clone(server), tls.map(|tls| tls.load_full()));
                connections.spawn(async move {
                    let serving = serve_connection(socket, ends, tls, server, slot.state());
                    tokio::select! {
                        biased;
                        () = slot.state().evicted() => {}
                        // Failures of a connection concern only its peer: it disconnected, was too slow, or sent no
                        // HTTP.
                        _ = timeout(CONNECTION_TIMEOUT, serving) => {}
                    }
                });
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "the admin listener cannot accept connections; retrying");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns the slots of a listener. Until a request is admitted, its connection counts as one on which nothing was
/// authenticated: it may be evicted at any moment. The public listener's metrics do not count these connections.
fn connection_slots(limits: &Limits) -> Arc<ConnectionSlots> {
    let limits = Limits { connections: CONNECTIONS, ..limits.clone() };
    let rules = ConnectionRules { limits, tls: None, keeps_field_case: false };
    ConnectionSlots::new(Arc::new(ArcSwap::from_pointee(rules)), Arc::default())
}

/// A connection's bytes.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl AdminSocket {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, ConnectionEnds)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, peer) = listener.accept().await?;
                let local = socket.local_addr().ok().map(|local| local.ip());
                let peer = PeerAddress::Ip(peer.ip().to_canonical());
                Ok((Box::new(socket), ConnectionEnds { peer, local, is_tls: false }))
            }
            Self::Unix(socket) => {
                let socket = socket.accept().await?;
                Ok((Box::new(socket), ConnectionEnds { peer: PeerAddress::Unix, local: None, is_tls: false }))
            }
        }
    }
}

async fn serve_connection(
    socket: Box<dyn Stream>,
    ends: ConnectionEnds,
    tls: Option<Arc<ServerConfig>>,
    server: Arc<Server>,
    state: &ConnectionState,
) {
    let Some(config) = tls else { return serve_http(socket, ends, server, state).await };
    if let Ok(Ok(socket)) = timeout(HEAD_TIMEOUT, TlsAcceptor::from(config).accept(socket)).await {
        serve_http(Box::new(socket), ends, server, state).await;
    }
}

async fn serve_http(socket: Box<dyn Stream>, ends: ConnectionEnds, server: Arc<Server>, state: &ConnectionState) {
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move {
            let reply = server.reply(ends, state, request).await;
            // While its reply is not taken, it may be evicted as well, after those without a reply.
            state.end_request();
            Ok::<_, std::convert::Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service);
    let _ = connection.await;
}

fn tcp(socket: std::net::TcpListener) -> io::Result<(AdminSocket, AdminListen)> {
    let listener = TcpListener::from_std(socket)?;
    let address = listener.local_addr()?;
    Ok((AdminSocket::Tcp(listener), AdminListen::Tcp(address)))
}
