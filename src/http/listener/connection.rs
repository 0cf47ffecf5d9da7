//! One connection: PROXY header, TLS, then HTTP/1 or HTTP/2 until it ends.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::accept::Slot;
use super::transport::{Stream, Transport};
use super::watch_io::{Watch, WatchIo};
use super::workers::Lifecycle;
use super::{ConnectionRules, Service, Shared, head, proxy_header, tls};
use crate::domain::canonical_ip;
use crate::http::{HeadFacts, Peer, Protocol};
use crate::rules::Limits;

/// Streams that one HTTP/2 connection may have open.
const STREAMS: u32 = 128;
/// How much of a body may be under way, in bytes: a stream's share holds a whole body of the default limit.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How much of replies may wait for one client, in bytes.
const SEND_BUFFER: usize = 256 * 1024;
/// Streams that a client may open and reset before it is answered, and that we may have to reset ourselves.
const RESET_STREAMS: usize = 32;
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an idle HTTP/2 peer has to answer when it is told that the connection ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// What an HTTP/2 head may exceed `limits.head` by and still be answered in our own words instead of h2's, in bytes.
const HTTP2_HEAD_SLACK: usize = 16 * 1024;

/// Serves a connection to its end. Never fails: what goes wrong concerns nobody but this client.
pub(super) async fn serve<S: Service>(
    socket: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
    slot: Slot,
) {
    let rules = (shared.settings.rules)();
    let opened = {
        let opening = timeout(rules.limits.head_timeout, open(socket, from, &rules, &shared.settings.clients));
        tokio::select! {
            opened = opening => opened,
            () = lifecycle.draining() => return,
        }
    };
    let opened = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(refused)) => return refused.record(from, &shared),
        Err(_elapsed) => return Refused::Timeout.record(from, &shared),
    };
    let ended = match opened.peer.protocol {
        Protocol::Http1 => serve_http1(opened, &rules.limits, shared, lifecycle).await,
        Protocol::Http2 => serve_http2(opened, &rules.limits, shared, lifecycle).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "a connection ended early");
    }
    drop(slot);
}

/// Why a connection ended before HTTP.
enum Refused {
    ProxyHeader(io::Error),
    Tls(io::Error),
    Timeout,
}

impl Refused {
    fn record<S: Service>(&self, from: SocketAddr, shared: &Shared<S>) {
        let (reason, error) = match self {
            Self::ProxyHeader(error) => ("proxy_header", Some(error)),
            Self::Tls(error) => ("tls", Some(error)),
            Self::Timeout => ("timeout", None),
        };
        shared.settings.metrics.connection_refused(reason);
        tracing::debug!(%from, reason, error = error.map(tracing::field::display), "a connection was refused");
    }
}

/// A connection that HTTP can begin on.
struct Opened {
    transport: Transport,
    peer: Peer,
    /// The client speaks plain HTTP where TLS is spoken: it is told so, and nothing else.
    plain_by_mistake: bool,
}

async fn open(
    mut socket: TcpStream,
    from: SocketAddr,
    rules: &ConnectionRules,
    clients: &crate::rules::ClientRules,
) -> Result<Opened, Refused> {
    let mut address = canonical_ip(from.ip());
    if clients.proxy_protocol {
        address = proxied(&mut socket, address, clients).await.map_err(Refused::ProxyHeader)?;
    }
    let opened = |stream, protocol, plain_by_mistake| Opened {
        transport: Transport::new(stream, rules.limits.body_timeout),
        peer: Peer { address, protocol },
        plain_by_mistake,
    };
    let Some(config) = &rules.tls else { return Ok(opened(Stream::Plain(socket), Protocol::Http1, false)) };
    if speaks_plain_http(&socket).await.map_err(Refused::Tls)? {
        return Ok(opened(Stream::Plain(socket), Protocol::Http1, true));
    }
    let stream = TlsAcceptor::from(Arc::clone(config)).accept(socket).await.map_err(Refused::Tls)?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(tls::ALPN_HTTP2);
    let protocol = if http2 { Protocol::Http2 } else { Protocol::Http1 };
    Ok(opened(Stream::Tls(Box::new(stream)), protocol, false))
}

/// Whether the first byte begins a method: no TLS record begins with a capital letter.
async fn speaks_plain_http(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(socket.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase())
}

/// The address that the PROXY header names. With `trusted_proxies`, only they may send one: whoever else reaches this port
/// could claim any address.
async fn proxied(socket: &mut TcpStream, address: IpAddr, clients: &crate::rules::ClientRules) -> io::Result<IpAddr> {
    let trusted = &clients.trusted_proxies;
    if !trusted.is_empty() && !trusted.iter().any(|network| network.contains(&address)) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a trusted proxy"));
    }
    Ok(proxy_header::read(socket).await?.map_or(address, canonical_ip))
}

async fn serve_http1<S: Service>(
    opened: Opened,
    limits: &Limits,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) -> Result<(), hyper::Error> {
    let Opened { transport, peer, plain_by_mistake } = opened;
    let watch = Arc::new(Watch::default());
    let mut io = WatchIo::new(transport, Arc::clone(&watch), limits);
    if plain_by_mistake {
        io = io.refusing("this port speaks TLS: use https");
    }
    let service = service_fn(|request| answer_http1(request, peer.clone(), Arc::clone(&watch), Arc::clone(&shared)));
    let connection = http1::Builder::new()
        // A client that has sent all it wants to say still gets its replies.
        .half_close(true)
        // A replaced head is a little longer than the one it stands for.
        .max_buf_size((limits.head + 1024).max(16 * 1024))
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = lifecycle.draining() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if watch.was_silent() {
        shared.settings.metrics.connection_refused("timeout");
    }
    ended
}

async fn answer_http1<S: Service>(
    mut request: Request<Incoming>,
    peer: Peer,
    watch: Arc<Watch>,
    shared: Arc<Shared<S>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let facts = watch.take_facts();
    introduce(&mut request, peer, facts);
    let mut response = shared.service.call(request).await;
    if facts.violation.is_some() || watch.body_open() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

fn introduce(request: &mut Request<Incoming>, peer: Peer, facts: HeadFacts) {
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(facts);
}

async fn serve_http2<S: Service>(
    Opened { transport, peer, .. }: Opened,
    limits: &Limits,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) -> Result<(), hyper::Error> {
    let activity = Arc::new(Activity::new());
    let head_limit = limits.head;
    let service = service_fn(|request| {
        answer_http2(request, peer.clone(), head_limit, OpenRequest::new(&activity), Arc::clone(&shared))
    });
    let connection = http2_builder(limits).serve_connection(TokioIo::new(transport), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = activity.idle(limits) => {}
        () = lifecycle.draining() => {
            connection.as_mut().graceful_shutdown();
            return connection.await;
        }
    }
    if activity.with(|requests| requests.idle_since.is_none()) {
        shared.settings.metrics.connection_refused("timeout");
    }
    connection.as_mut().graceful_shutdown();
    if let Ok(ended) = timeout(FAREWELL, connection.as_mut()).await {
        return ended;
    }
    // Only requests that crossed the farewell keep the connection; a client that is silent, or does not read, does not.
    if activity.with(|requests| requests.open == 0) {
        return Ok(());
    }
    timeout(limits.body_timeout, connection).await.unwrap_or(Ok(()))
}

fn http2_builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_STREAMS)
        .max_local_error_reset_streams(RESET_STREAMS * 4)
        .max_header_list_size(u32::try_from(limits.head + HTTP2_HEAD_SLACK).unwrap_or(u32::MAX))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

async fn answer_http2<S: Service>(
    mut request: Request<Incoming>,
    peer: Peer,
    head_limit: usize,
    open: OpenRequest,
    shared: Arc<Shared<S>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let facts = head::judge_http2(&request, head_limit);
    introduce(&mut request, peer, facts);
    let response = shared.service.call(request).await;
    drop(open);
    Ok(response)
}

/// The requests of an HTTP/2 connection, for its idle time.
#[derive(Debug)]
struct Activity(Mutex<Requests>);

#[derive(Debug)]
struct Requests {
    open: usize,
    /// Since when none is open; `None` before the first.
    idle_since: Option<Instant>,
}

impl Activity {
    const fn new() -> Self {
        Self(Mutex::new(Requests { open: 0, idle_since: None }))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Requests) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ready when the first request has not come within `head_timeout`, or none was open for `idle_timeout`.
    async fn idle(&self, limits: &Limits) {
        let first_until = Instant::now() + limits.head_timeout;
        let mut now = Instant::now();
        loop {
            // A connection that falls idle after this look cannot have been so for long enough before the next one.
            let next_look = now + limits.idle_timeout;
            let idle_until = self.with(|requests| match (requests.open, requests.idle_since) {
                (0, None) => first_until,
                (0, Some(since)) => since + limits.idle_timeout,
                _ => next_look,
            });
            if idle_until <= now {
                return;
            }
            sleep_until(idle_until.min(next_look)).await;
            now = Instant::now();
        }
    }
}

/// Counts a request while it lives.
struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.with(|requests| requests.open += 1);
        Self(Arc::clone(activity))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.with(|requests| {
            requests.open -= 1;
            requests.idle_since = Some(Instant::now());
        });
    }
}
