//! The receiver's side of the network: connections, TLS, HTTP. What came is handed to the one who decides.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

use super::answer::{Closed, Decision};
use super::verify::Received;
use crate::clock::{Clock, SystemClock};

/// The longest body that is read, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// The longest head, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// How many connections are open at once; others wait.
const CONNECTIONS: usize = 256;
/// How many requests of an HTTP/2 connection are open at once.
const STREAMS: u32 = 64;
/// For a handshake, for a body.
const PATIENCE: Duration = Duration::from_secs(10);
/// For the next head of a connection.
const IDLE: Duration = Duration::from_mins(1);
/// For a whole connection.
const LONGEST_CONNECTION: Duration = Duration::from_hours(1);

/// What happens at the listener.
pub enum Event {
    /// A callback came and waits for what becomes of it.
    Came(Received, oneshot::Sender<Decision>),
    /// Something came that is no callback: a line for people.
    Refused(String),
}

/// Accepts connections and hands on what comes.
pub struct Server {
    tls: Option<TlsAcceptor>,
    events: mpsc::Sender<Event>,
}

impl Server {
    /// Hands what comes to `events`; without `tls` over plain HTTP.
    pub const fn new(tls: Option<TlsAcceptor>, events: mpsc::Sender<Event>) -> Self {
        Self { tls, events }
    }

    /// Serves until it is dropped. Connections are told to `graceful` and end by themselves when it ends.
    pub async fn run(self, listener: TcpListener, graceful: &GracefulShutdown) {
        let (server, room) = (Arc::new(self), Arc::new(Semaphore::new(CONNECTIONS)));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // Such as too many open files: it passes, but not at once.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (server, watcher) = (Arc::clone(&server), graceful.watcher());
            tokio::spawn(async move {
                let _ = tokio::time::timeout(LONGEST_CONNECTION, server.connection(stream, watcher)).await;
                drop(permit);
            });
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, watcher: Watcher) {
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = &self.tls else { return self.http1(stream, watcher).await };
        match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => self.http2(stream, watcher).await,
            Ok(Ok(stream)) => self.http1(stream, watcher).await,
            Ok(Err(error)) => self.refused(format!("no TLS session: {error}{}", hint(&error))),
            Err(_) => self.refused("no TLS session: the other side fell silent".to_owned()),
        }
    }

    async fn http1(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, watcher: Watcher) {
        let service = service_fn(|request| Arc::clone(&self).request(request));
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(LONGEST_HEAD);
        let _ = watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await;
    }

    async fn http2(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, watcher: Watcher) {
        let service = service_fn(|request| Arc::clone(&self).request(request));
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(IDLE)
            .keep_alive_timeout(PATIENCE)
            .max_header_list_size(16 * 1024)
            .max_concurrent_streams(STREAMS);
        let _ = watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await;
    }

    async fn request(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Closed> {
        let (head, body) = request.into_parts();
        let body = match tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST_BODY).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                self.refused(format!("a body of more than {LONGEST_BODY} bytes"));
                return Decision::TOO_LONG.carry_out().await;
            }
            Ok(Err(_)) | Err(_) => {
                self.refused("a body that did not come whole in time".to_owned());
                return Decision::TOO_SLOW.carry_out().await;
            }
        };
        let received = Received {
            at: SystemClock.now(),
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body,
        };
        let (decide, decision) = oneshot::channel();
        // Nobody decides once the listener ends.
        let decision = match self.events.send(Event::Came(received, decide)).await {
            Ok(()) => decision.await.unwrap_or(Decision::LATE),
            Err(_) => Decision::LATE,
        };
        decision.carry_out().await
    }

    /// Tells of it, unless there is more to tell than anybody reads.
    fn refused(&self, line: String) {
        let _ = self.events.try_send(Event::Refused(line));
    }
}

/// What a failed handshake asks to be done.
fn hint(error: &std::io::Error) -> &'static str {
    use rustls::AlertDescription::{BadCertificate, CertificateUnknown, UnknownCA};
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::AlertReceived(UnknownCA | BadCertificate | CertificateUnknown)) => {
            " (the sender does not trust this certificate: [callbacks] trust names the CA)"
        }
        Some(rustls::Error::InvalidMessage(_)) => " (the sender may speak plain HTTP: --plain)",
        _ => "",
    }
}
