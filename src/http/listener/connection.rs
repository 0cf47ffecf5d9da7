//! One connection: PROXY header, TLS, then HTTP/1 or HTTP/2 until it ends.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::accept::Slot;
use super::transport::{Stream, Transport};
use super::watch_io::{Watch, WatchIo};
use super::workers::Lifecycle;
use super::{ConnectionRules, Inbound, Service, Shared, http2, proxy_header, tls};
use crate::domain::canonical_ip;
use crate::http::{Arrival, Peer, Protocol};
use crate::rules::Limits;

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
        // Boxed: a connection that waits for its requests does not carry room for its handshake.
        let opening = Box::pin(open(socket, from, &rules, &shared.settings.clients));
        let opening = timeout(rules.limits.head_timeout, opening);
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
        // Boxed, so that connections of HTTP/1 do not carry room for it: three times what they need themselves.
        Protocol::Http2 => Box::pin(http2::serve(opened.transport, opened.peer, &rules.limits, shared, lifecycle))
            .await
            .map_err(Into::into),
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
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Opened { transport, peer, plain_by_mistake } = opened;
    let watch = Arc::new(Watch::default());
    let mut io = WatchIo::new(transport, Arc::clone(&watch), limits);
    if plain_by_mistake {
        io = io.refusing("this port speaks TLS: use https");
    }
    // Many connections are opened long before they are used: hyper, whose buffers are most of what a connection needs, comes
    // with the first request. It closes the ones that end or drain before.
    tokio::select! {
        biased;
        () = lifecycle.draining() => {}
        readable = poll_fn(|cx| io.poll_cleared(cx)) => readable?,
    }
    Box::pin(serve_requests(io, watch, peer, limits, shared, lifecycle)).await.map_err(Into::into)
}

async fn serve_requests<S: Service>(
    io: WatchIo,
    watch: Arc<Watch>,
    peer: Peer,
    limits: &Limits,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) -> Result<(), hyper::Error> {
    let service = service_fn(|request| answer_http1(request, peer, Arc::clone(&watch), Arc::clone(&shared)));
    let connection = http1::Builder::new()
        // A client that has sent all it wants to say still gets its replies.
        .half_close(true)
        // A replaced head is a little longer than the one it stands for.
        .max_buf_size((limits.head + 1024).max(16 * 1024))
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        // A drain is looked at first: a reply that is ready at the same moment says that it is the last.
        biased;
        () = lifecycle.draining() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        ended = connection.as_mut() => ended,
    };
    if watch.was_silent() {
        shared.settings.metrics.connection_refused("timeout");
    }
    ended
}

async fn answer_http1<S: Service>(
    request: Request<Incoming>,
    peer: Peer,
    watch: Arc<Watch>,
    shared: Arc<Shared<S>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let facts = watch.take_facts();
    // Boxed: hyper keeps room for this future as long as the connection lives, which mostly waits.
    let mut response = Box::pin(shared.service.call(request.map(Inbound::http1), Arrival { peer, facts })).await;
    if facts.violation.is_some() || watch.body_open() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}
