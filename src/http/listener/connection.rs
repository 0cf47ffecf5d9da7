//! Connections: one thread accepts them, up to the limit, and distributes them among the workers in turn. Each worker is a
//! thread with a runtime of its own: a connection and all its requests stay on it, which costs less than moving them
//! between threads. There a connection is served: PROXY header, TLS, then HTTP/1 or HTTP/2 until it ends.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::head_guard::{GuardStatus, HeadGuard, RefusedHead};
use super::settings::ConnectionRules;
use super::shared::{
    AcceptedConnection, ConnectionInfo, ConnectionState, Lifecycle, Peer, Protocol, Service, Shared, Slot,
};
use super::transport::{CountedSocket, Inbound, Stream, Transport, has_arrived};
use super::{http2, proxy_header, tls};
use crate::domain::canonical_ip;

/// The most accepted connections that wait for one worker.
const QUEUE: usize = 1024;
/// How often a draining worker checks whether its tasks have ended.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Builds a runtime for one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts the workers. Returns each worker's queue and runtime. `ended` carries no value: every worker holds it until
/// its thread ends.
pub(super) fn start_workers<S: Service>(
    count: NonZeroUsize,
    shared: &Arc<Shared<S>>,
    lifecycle: &Lifecycle,
    ended: &mpsc::Sender<Infallible>,
) -> io::Result<(Vec<mpsc::Sender<AcceptedConnection>>, Vec<Handle>)> {
    (0..count.get())
        .map(|index| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let (runtime, shared, lifecycle, ended) =
                (runtime()?, Arc::clone(shared), lifecycle.clone(), ended.clone());
            let handle = runtime.handle().clone();
            thread::Builder::new().name(format!("http-{index}")).spawn(move || {
                runtime.block_on(work(receiver, shared, lifecycle));
                // Drops the remaining tasks before the thread is reported as ended.
                drop(runtime);
                drop(ended);
            })?;
            Ok((sender, handle))
        })
        .collect()
}

async fn work<S: Service>(
    mut queue: mpsc::Receiver<AcceptedConnection>,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) {
    while let Some(AcceptedConnection { socket, from, slot }) = queue.recv().await {
        match TcpStream::from_std(socket) {
            Ok(socket) => {
                tokio::spawn(serve(socket, from, Arc::clone(&shared), lifecycle.clone(), slot));
            }
            Err(error) => tracing::warn!(%error, "an accepted connection could not be registered with its worker"),
        }
    }
    tokio::select! {
        () = all_tasks_ended() => {}
        () = lifecycle.cut() => {}
    }
}

/// Waits for all tasks: connections, and work that the service continues after its client has disconnected.
async fn all_tasks_ended() {
    let metrics = Handle::current().metrics();
    while metrics.num_alive_tasks() > 0 {
        tokio::time::sleep(DRAIN_POLL).await;
    }
}

/// How long to wait when the process cannot open another socket.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Accepts until the listener drains. Dropping the workers' queues then lets the workers end.
pub(super) async fn accept_until_drained<S: Service>(
    listeners: Vec<TcpListener>,
    workers: Vec<mpsc::Sender<AcceptedConnection>>,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) {
    let mut failing = false;
    for (turn, worker) in workers.iter().cycle().enumerate() {
        let accepted = tokio::select! {
            accepted = accept(&listeners, turn, &shared, &mut failing) => accepted,
            _ = lifecycle.draining() => return,
        };
        // A drain does not interrupt this: what was accepted is served.
        if worker.send(accepted).await.is_err() {
            tracing::error!("a worker has ended; its connections are lost");
        }
    }
}

/// Accepts the next connection, however long that is not possible.
async fn accept<S: Service>(
    listeners: &[TcpListener],
    turn: usize,
    shared: &Shared<S>,
    failing: &mut bool,
) -> AcceptedConnection {
    loop {
        match next(listeners, turn, shared).await {
            Ok(Some(accepted)) => {
                if std::mem::take(failing) {
                    shared.slots.set_accepting(true);
                }
                return accepted;
            }
            Ok(None) => {}
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                shared.slots.set_accepting(false);
                if !std::mem::replace(failing, true) {
                    tracing::warn!(%error, "connections cannot be accepted; retrying");
                }
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

/// Accepts the next connection; returns `None` when there is no slot for it.
async fn next<S: Service>(
    listeners: &[TcpListener],
    turn: usize,
    shared: &Shared<S>,
) -> io::Result<Option<AcceptedConnection>> {
    shared.slots.closed().await;
    let (socket, from) = poll_fn(|context| accept_of_any(listeners, turn, context)).await?;
    let Some(slot) = shared.slots.take() else {
        shared.settings.metrics.connection_refused("limit");
        return Ok(None);
    };
    // Replies are written whole; Nagle's algorithm would only delay them.
    socket.set_nodelay(true)?;
    Ok(Some(AcceptedConnection { socket: socket.into_std()?, from, slot }))
}

/// Accepts from the first of several listeners that has a connection. Each is polled first in its turn.
fn accept_of_any(
    listeners: &[TcpListener],
    turn: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
    let first = turn.checked_rem(listeners.len()).unwrap_or_default();
    let polled = listeners.iter().cycle().skip(first).take(listeners.len());
    polled.map(|listener| listener.poll_accept(context)).find(Poll::is_ready).unwrap_or(Poll::Pending)
}

/// Reports whether an accept failed because the connection itself has ended, and not for lack of resources.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput, NotConnected, TimedOut, WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput | NotConnected | TimedOut | WouldBlock
    )
}

/// The runtimes of a listener's threads.
#[derive(Debug, Clone)]
pub struct Watchdog(Arc<[Handle]>);

impl Watchdog {
    pub(super) fn of(runtimes: Vec<Handle>) -> Self {
        Self(runtimes.into())
    }

    /// Returns once every thread has run a task since the call, or has ended. Never returns while one of them is
    /// blocked.
    pub async fn probe(&self) {
        let tasks: Vec<_> = self.0.iter().map(|runtime| runtime.spawn(async {})).collect();
        for task in tasks {
            // A task that its ending runtime dropped counts as an answer.
            let _ = task.await;
        }
    }
}

/// Serves a connection until it ends or is evicted. It has no error result: failures concern only this client.
async fn serve<S: Service>(
    socket: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared<S>>,
    lifecycle: Lifecycle,
    slot: Slot,
) {
    tokio::select! {
        biased;
        () = slot.state().evicted() => tracing::debug!(%from, "a connection was evicted for a new one"),
        () = serve_to_end(socket, from, shared, lifecycle, slot.state()) => {}
    }
}

async fn serve_to_end<S: Service>(
    socket: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
    state: &Arc<ConnectionState>,
) {
    let rules = shared.settings.rules.load_full();
    let opened = {
        // Boxed, so that an idle connection does not keep memory for its handshake.
        let opening = Box::pin(open(socket, from, &rules, &shared.settings.clients, &mut lifecycle));
        timeout(rules.limits.head_timeout, opening).await
    };
    let opened = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(refused)) => return refused.record(from, &shared),
        Err(_elapsed) => return HandshakeError::Timeout.record(from, &shared),
    };
    let ended = match opened.peer.protocol {
        Protocol::Http1 => serve_http1(opened, &rules, shared, lifecycle, state).await,
        // Boxed, so that HTTP/1 connections do not keep memory for HTTP/2, which is three times what they need
        // themselves.
        Protocol::Http2 => {
            let serving = http2::serve(opened.transport, opened.peer, &rules.limits, shared, lifecycle, state);
            Box::pin(serving).await.map_err(Into::into)
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "a connection ended early");
    }
}

/// Why a connection ended before HTTP.
enum HandshakeError {
    ProxyHeader(io::Error),
    Tls(io::Error),
    Timeout,
    /// The client had sent nothing when a drain ended its wait.
    Drained,
}

impl HandshakeError {
    fn record<S: Service>(&self, from: SocketAddr, shared: &Shared<S>) {
        let (reason, error) = match self {
            Self::ProxyHeader(error) => ("proxy_header", Some(error)),
            Self::Tls(error) => ("tls", Some(error)),
            Self::Timeout => ("timeout", None),
            Self::Drained => return,
        };
        shared.settings.metrics.connection_refused(reason);
        tracing::debug!(%from, reason, error = error.map(tracing::field::display), "a connection was refused");
    }
}

/// A connection after its handshakes, ready for HTTP.
struct Opened {
    transport: Transport,
    peer: Peer,
    /// The client sent plain HTTP to a TLS port: every request is refused with that explanation.
    plain_by_mistake: bool,
}

async fn open(
    mut socket: TcpStream,
    from: SocketAddr,
    rules: &ConnectionRules,
    clients: &crate::rules::ClientRules,
    lifecycle: &mut Lifecycle,
) -> Result<Opened, HandshakeError> {
    let mut address = canonical_ip(from.ip());
    if clients.proxy_protocol {
        await_first_byte(&socket, lifecycle).await?;
        address = proxied_address(&mut socket, address, clients).await.map_err(HandshakeError::ProxyHeader)?;
    }
    let opened = |stream, protocol, plain_by_mistake| Opened {
        transport: Transport::new(stream, rules.limits.body_timeout),
        peer: Peer { address, protocol },
        plain_by_mistake,
    };
    let Some(config) = &rules.tls else {
        return Ok(opened(Stream::Plain(CountedSocket::new(socket)), Protocol::Http1, false));
    };
    await_first_byte(&socket, lifecycle).await?;
    if speaks_plain_http(&socket).await.map_err(HandshakeError::Tls)? {
        return Ok(opened(Stream::Plain(CountedSocket::new(socket)), Protocol::Http1, true));
    }
    let accepting = TlsAcceptor::from(Arc::clone(config)).accept(CountedSocket::new(socket));
    let stream = accepting.await.map_err(HandshakeError::Tls)?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(tls::ALPN_HTTP2);
    let protocol = if http2 { Protocol::Http2 } else { Protocol::Http1 };
    Ok(opened(Stream::Tls(Box::new(stream)), protocol, false))
}

/// Waits for the first byte of a handshake, which a drain lets the client finish. Without one, a drain waits only as long as for
/// another request.
async fn await_first_byte(socket: &TcpStream, lifecycle: &mut Lifecycle) -> Result<(), HandshakeError> {
    lifecycle.set_ready();
    let mut first = [0];
    tokio::select! {
        biased;
        // An error is reported by the read that follows.
        _ = socket.peek(&mut first) => Ok(()),
        () = lifecycle.last_request() => if has_arrived(socket) { Ok(()) } else { Err(HandshakeError::Drained) },
    }
}

/// Reports whether the first byte could begin a method: no TLS record begins with a capital letter.
async fn speaks_plain_http(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(socket.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase())
}

/// Returns the address that the PROXY header names. With `trusted_proxies`, only those may send one: any other client
/// that reaches this port could claim any address.
async fn proxied_address(
    socket: &mut TcpStream,
    address: IpAddr,
    clients: &crate::rules::ClientRules,
) -> io::Result<IpAddr> {
    let trusted = &clients.trusted_proxies;
    if !trusted.is_empty() && !trusted.iter().any(|network| network.contains(&address)) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a trusted proxy"));
    }
    Ok(proxy_header::read(socket).await?.map_or(address, canonical_ip))
}

async fn serve_http1<S: Service>(
    opened: Opened,
    rules: &ConnectionRules,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
    state: &Arc<ConnectionState>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Opened { transport, peer, plain_by_mistake } = opened;
    let status = Arc::new(GuardStatus::of(Arc::clone(state)));
    lifecycle.set_ready();
    let mut io = HeadGuard::new(transport, Arc::clone(&status), &rules.limits, shared.settings.trim_idle_after);
    if plain_by_mistake {
        io = io.refusing("this port speaks TLS: use https");
    }
    // Many connections are opened long before their first request and kept long after their last. Hyper's buffers are most
    // of what a connection needs, so hyper is attached when a request arrives and detached when none follows.
    while request_follows(&mut io, &status, &mut lifecycle).await? {
        let requests = serve_requests(io, Arc::clone(&status), peer, rules, Arc::clone(&shared), lifecycle.clone());
        io = Box::pin(requests).await?;
        if !io.is_resting() {
            break;
        }
    }
    let refused = io.take_refused();
    if io.was_silent() {
        shared.settings.metrics.connection_refused("timeout");
    }
    let mut transport = io.into_transport();
    if let Some(refused) = refused {
        let reply = Box::pin(refuse(refused, peer, &status, &shared)).await;
        transport.write_all(&reply).await?;
        transport.flush().await?;
    }
    transport.shutdown().await?;
    Ok(())
}

/// Waits for the next request. Returns false when its head is refused, or when the connection has ended.
async fn request_follows(io: &mut HeadGuard, status: &GuardStatus, lifecycle: &mut Lifecycle) -> io::Result<bool> {
    loop {
        tokio::select! {
            biased;
            until = lifecycle.draining(), if !status.is_draining() => status.drain(until),
            follows = poll_fn(|cx| io.poll_request(cx)) => return follows,
        }
    }
}

/// Serves requests as long as they follow each other. Returns the connection when it is idle, has ended, or comes to a head
/// that is refused: hyper has written all its replies then.
async fn serve_requests<S: Service>(
    io: HeadGuard,
    status: Arc<GuardStatus>,
    peer: Peer,
    rules: &ConnectionRules,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) -> Result<HeadGuard, hyper::Error> {
    let service = service_fn(|request| serve_request(request, peer, Arc::clone(&status), Arc::clone(&shared)));
    let mut connection = http1::Builder::new()
        // A client that has closed its sending side still gets its replies.
        .half_close(true)
        .title_case_headers(true)
        .preserve_header_case(rules.keeps_field_case)
        // Empty lines before a head come on top of it.
        .max_buf_size((rules.limits.head + 1024).max(16 * 1024))
        .serve_connection(io, service);
    loop {
        tokio::select! {
            biased;
            // The connection then ends by itself: after its reply, or when no other request has arrived in time.
            until = lifecycle.draining(), if !status.is_draining() => status.drain(until),
            ended = &mut connection => break ended?,
        }
    }
    Ok(connection.into_parts().io)
}

async fn serve_request<S: Service>(
    request: Request<Incoming>,
    peer: Peer,
    status: Arc<GuardStatus>,
    shared: Arc<Shared<S>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let connection = status.connection();
    connection.begin_request();
    let connection_info = ConnectionInfo { peer, head_check: status.head_check(), connection: Arc::clone(connection) };
    // Boxed: hyper reserves memory for this future as long as the connection lives, and most connections are idle.
    let mut response = Box::pin(shared.service.call(request.map(Inbound::http1), connection_info)).await;
    if status.body_open() || shared.is_leaving() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Has a request refused whose head hyper does not get. Returns the reply, written as hyper writes those to good heads.
async fn refuse<S: Service>(
    RefusedHead { check, request }: RefusedHead,
    peer: Peer,
    status: &GuardStatus,
    shared: &Shared<S>,
) -> Vec<u8> {
    let is_head = request.method() == Method::HEAD;
    let connection = status.connection();
    connection.begin_request();
    let connection_info = ConnectionInfo { peer, head_check: check, connection: Arc::clone(connection) };
    let reply = shared.service.call(request.map(|()| Inbound::UNREAD), connection_info).await;
    let (mut head, body) = reply.into_parts();
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    if let Some(date) = http2::date(shared.settings.clock.now()) {
        head.headers.insert(DATE, date);
    }
    let mut bytes = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        for part in [title_case(name).as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    if !is_head {
        bytes.extend_from_slice(&body);
    }
    bytes
}

fn title_case(name: &HeaderName) -> String {
    let mut begins = true;
    let cased = |letter: char| {
        let is_first = std::mem::replace(&mut begins, letter == '-');
        if is_first { letter.to_ascii_uppercase() } else { letter }
    };
    name.as_str().chars().map(cased).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use arc_swap::ArcSwap;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;
    use tokio::sync::{oneshot, watch};

    use super::*;
    use crate::clock::SystemClock;
    use crate::domain::UnixMillis;
    use crate::http::listener::shared::WorkerLife;
    use crate::http::listener::{ConnectionSlots, ListenerSettings};
    use crate::rules::{LoadOptions, load};

    struct Echo;

    impl Service for Echo {
        async fn call(&self, request: Request<Inbound>, _: ConnectionInfo) -> Response<Full<Bytes>> {
            Response::new(Full::new(request.uri().path().to_owned().into()))
        }
    }

    async fn request(client: &mut TcpStream, path: &str) {
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut reply = String::new();
        while !reply.ends_with(path) {
            let mut bytes = [0; 1024];
            let read = client.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{reply}");
            reply.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    }

    #[tokio::test]
    async fn an_idle_connection_drops_hyper_and_continues_with_the_next_request() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("gateway.toml"), "").unwrap();
        let loaded = load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap();
        let limits = loaded.gateway.limits.clone();
        let trim_idle_after = Duration::from_millis(1);
        let rules = ConnectionRules { limits: limits.clone(), tls: None, keeps_field_case: false };
        let settings = ListenerSettings {
            rules: Arc::new(ArcSwap::from_pointee(rules.clone())),
            clients: loaded.gateway.clients.clone(),
            metrics: Arc::default(),
            clock: Arc::new(SystemClock),
            workers: NonZeroUsize::MIN,
            trim_idle_after,
        };
        let slots = ConnectionSlots::new(Arc::clone(&settings.rules), Arc::clone(&settings.metrics));
        let shared = Arc::new(Shared { service: Echo, settings, slots, leaving: Arc::default() });
        let (_life, lifecycle) = watch::channel(WorkerLife::Serving);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, from) = listener.accept().await.unwrap();
        let peer = Peer { address: from.ip(), protocol: Protocol::Http1 };
        let status = Arc::new(GuardStatus::default());
        let transport = Transport::new(Stream::Plain(CountedSocket::new(socket)), limits.body_timeout);
        let mut io = HeadGuard::new(transport, Arc::clone(&status), &limits, trim_idle_after);
        let mut lifecycle = Lifecycle::new(lifecycle);
        for path in ["/first", "/second", "/third"] {
            let served = async {
                assert!(request_follows(&mut io, &status, &mut lifecycle).await.unwrap());
                let (shared, lifecycle) = (Arc::clone(&shared), lifecycle.clone());
                serve_requests(io, Arc::clone(&status), peer, &rules, shared, lifecycle).await.unwrap()
            };
            ((), io) = tokio::join!(request(&mut client, path), served);
            assert!(io.is_resting(), "the connection stays open");
        }
        drop(client);
        assert!(!request_follows(&mut io, &status, &mut lifecycle).await.unwrap(), "the connection ended");
        assert!(!io.is_resting());
    }

    #[tokio::test]
    async fn a_stuck_thread_is_detected_until_it_continues_or_ends() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let watchdog = Watchdog::of(vec![runtime.handle().clone(), Handle::current()]);
        let (started, is_stuck) = oneshot::channel();
        let (release, stuck) = mpsc::channel::<()>();
        let (end, ending) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                started.send(()).unwrap();
                // A runtime's thread must never block like this.
                stuck.recv().unwrap();
                ending.await.unwrap();
            });
        });
        is_stuck.await.unwrap();
        let mut probe = tokio::spawn({
            let watchdog = watchdog.clone();
            async move { watchdog.probe().await }
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!probe.is_finished(), "a thread that is stuck does not answer");
        release.send(()).unwrap();
        (&mut probe).await.unwrap();
        end.send(()).unwrap();
        thread.join().unwrap();
        watchdog.probe().await;
    }
}
