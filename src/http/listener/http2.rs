//! Serves one HTTP/2 connection with the h2 crate directly. Hyper's HTTP/2 server never answers `Expect: 100-continue`,
//! so that curl waits a second with every request and other clients for ever, and it sends a body with the reply to
//! `HEAD`.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h2::server::{Builder, Connection, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, EXPECT};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::head;
use super::pace::Pace;
use super::shared::{ConnectionInfo, ConnectionState, Lifecycle, Peer, Service, Shared};
use super::transport::{Inbound, Transport};
use crate::domain::{UnixMillis, wide};
use crate::reply_room::ReservedRoom;
use crate::rules::Limits;

/// The most open streams of one connection.
const STREAMS: u32 = 128;
/// The flow-control windows, in bytes. A stream's window holds a whole body of the default limit.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The most reply bytes that are buffered for one stream.
const SEND_BUFFER: usize = 256 * 1024;
/// The most streams that a client may open and reset before they are served; four times as many may be reset by the
/// server.
const RESET_STREAMS: usize = 32;
/// How often a peer is pinged, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection may take to close after GOAWAY.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a draining connection checks whether all its requests are answered.
const DRAIN_POLL: Duration = Duration::from_millis(10);
/// How far a head may exceed `limits.head` and still get the gateway's own error reply instead of h2's, in bytes.
const HEAD_SLACK: usize = 16 * 1024;

/// Serves a connection whose client chose HTTP/2, until it ends.
pub(super) async fn serve<S: Service>(
    transport: Transport,
    peer: Peer,
    limits: &Limits,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
    state: &Arc<ConnectionState>,
) -> Result<(), h2::Error> {
    lifecycle.set_ready();
    let activity = Arc::new(Activity::new(Arc::clone(state)));
    let mut idle = pin!(activity.idle(limits));
    let mut connection = tokio::select! {
        biased;
        connection = builder(limits).handshake(transport) => connection?,
        () = idle.as_mut() => {
            shared.settings.metrics.connection_refused("timeout");
            return Ok(());
        }
        () = lifecycle.last_request() => return Ok(()),
    };
    let ping_pong = connection.ping_pong();
    let mut serving = Serving { connection, peer, head_limit: limits.head, activity: Arc::clone(&activity), shared };
    let mut ping_lost = pin!(ping_lost(ping_pong));
    let goaway = async {
        lifecycle.leaving().await;
        // A connection without a request yet may still send one; GOAWAY follows it.
        if activity.is_unused() {
            lifecycle.last_request().await;
        }
    };
    tokio::select! {
        ended = serving.accept(ping_lost.as_mut()) => return ended,
        () = idle => {}
        () = activity.stuck.notified() => {}
        () = goaway => {
            serving.connection.graceful_shutdown();
            let answered = async {
                lifecycle.last_request().await;
                while activity.with(|requests| requests.open > 0) {
                    sleep(DRAIN_POLL).await;
                }
            };
            tokio::select! {
                ended = serving.accept(ping_lost.as_mut()) => return ended,
                () = answered => {}
            }
            // The time-out keeps a peer that does not read from delaying the drain; the last replies have this long to
            // leave.
            return timeout(GOAWAY_TIMEOUT, serving.accept(ping_lost)).await.unwrap_or(Ok(()));
        }
    }
    if activity.is_unused() {
        serving.shared.settings.metrics.connection_refused("timeout");
    }
    serving.connection.graceful_shutdown();
    if let Ok(ended) = timeout(GOAWAY_TIMEOUT, serving.accept(ping_lost.as_mut())).await {
        return ended;
    }
    // Only requests that crossed the GOAWAY keep the connection open. A client that is silent or does not read does
    // not.
    if activity.with(|requests| requests.open == 0) {
        return Ok(());
    }
    timeout(limits.body_timeout, serving.accept(ping_lost)).await.unwrap_or(Ok(()))
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_STREAMS)
        .max_local_error_reset_streams(Some(RESET_STREAMS * 4))
        .max_header_list_size(u32::try_from(limits.head + HEAD_SLACK).unwrap_or(u32::MAX));
    builder
}

/// Waits until the peer fails to answer a ping. Must not be dropped before its connection: a pending ping would be
/// lost.
async fn ping_lost(ping_pong: Option<PingPong>) {
    let Some(mut ping_pong) = ping_pong else { return pending().await };
    loop {
        sleep(PING).await;
        match timeout(PING_TIMEOUT, ping_pong.ping(Ping::opaque())).await {
            Ok(Ok(_pong)) => {}
            // The connection itself reports its end.
            Ok(Err(_closed)) => return pending().await,
            Err(_elapsed) => return,
        }
    }
}

/// A connection with the state that its requests need.
struct Serving<S> {
    connection: Connection<Transport, ReplyBytes>,
    peer: Peer,
    head_limit: usize,
    activity: Arc<Activity>,
    shared: Arc<Shared<S>>,
}

impl<S: Service> Serving<S> {
    /// Accepts requests until the connection ends, and spawns a task for each. May be cancelled and called again.
    async fn accept(&mut self, mut ping_lost: Pin<&mut impl Future<Output = ()>>) -> Result<(), h2::Error> {
        loop {
            let next = tokio::select! {
                next = self.connection.accept() => next,
                () = ping_lost.as_mut() => return Ok(()),
            };
            let Some(accepted) = next else { return Ok(()) };
            let (request, respond) = accepted?;
            let head_check = head::check_http2(&request, self.head_limit);
            let (request, wanted) = with_body(request);
            let connection_info =
                ConnectionInfo { peer: self.peer, head_check, connection: Arc::clone(&self.activity.connection) };
            let open = OpenRequest::new(&self.activity);
            tokio::spawn(answer(request, connection_info, wanted, respond, open, Arc::clone(&self.shared)));
            if self.shared.is_leaving() {
                self.connection.graceful_shutdown();
            }
        }
    }
}

/// Wraps the request's body for the service. If the client waits for a 100, the receiver is notified when to send it:
/// never before admission, and not at all when the request is refused without reading its body.
fn with_body(request: Request<RecvStream>) -> (Request<Inbound>, oneshot::Receiver<()>) {
    let (sender, wanted) = oneshot::channel();
    let headers = request.headers();
    let expects = headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    (request.map(|stream| Inbound::http2(stream, announced, expects.then_some(sender))), wanted)
}

/// Answers one request. When the client resets the stream, the service call is dropped.
async fn answer<S: Service>(
    request: Request<Inbound>,
    connection_info: ConnectionInfo,
    wanted: oneshot::Receiver<()>,
    mut respond: SendResponse<ReplyBytes>,
    open: OpenRequest,
    shared: Arc<Shared<S>>,
) {
    let is_head = request.method() == Method::HEAD;
    let connection = Arc::clone(&connection_info.connection);
    let Some(Some(first)) = unless_reset(&mut respond, connection.room().enter()).await else { return };
    // Boxed, so that a request that waits has no memory for its answer yet, and its reply none any more.
    let calling = Box::pin(shared.service.call(request, connection_info));
    let Some(mut reply) = call(calling, wanted, &mut respond).await else { return };
    let more = if let Some(made_within) = reply.extensions_mut().remove() {
        made_within
    } else {
        let length = usize::try_from(reply.body().size_hint().lower()).unwrap_or(usize::MAX);
        let Some(Some(more)) = unless_reset(&mut respond, connection.room().reserve(length)).await else { return };
        more
    };
    let pace = Pace::over(shared.settings.rules.load().limits.body_timeout);
    let open = Arc::new(OpenReply { request: open, _room: (first, more) });
    if let Err(error) = send(reply, is_head, shared.settings.clock.now(), respond, &open, pace).await {
        tracing::debug!(%error, "a reply could not be sent");
    }
}

/// Waits for `work`, unless the client resets the stream first.
async fn unless_reset<T>(respond: &mut SendResponse<ReplyBytes>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        // First: the end of a connection makes room as well.
        _gone = poll_fn(|cx| respond.poll_reset(cx)) => None,
        done = work => Some(done),
    }
}

/// Waits for the reply of a service call, unless the client resets the stream first. Lets a client that holds its body back
/// send it when the service begins to read.
async fn call(
    mut calling: Pin<Box<impl Future<Output = Response<Full<Bytes>>>>>,
    wanted: oneshot::Receiver<()>,
    respond: &mut SendResponse<ReplyBytes>,
) -> Option<Response<Full<Bytes>>> {
    let mut wanted = pin!(body_wanted(wanted));
    let mut waits = true;
    loop {
        tokio::select! {
            reply = calling.as_mut() => return Some(reply),
            _gone = poll_fn(|cx| respond.poll_reset(cx)) => return None,
            () = wanted.as_mut(), if waits => {
                waits = false;
                if let Ok(proceed) = Response::builder().status(100).body(()) {
                    let _ = respond.send_informational(proceed);
                }
            }
        }
    }
}

/// Waits until the service begins to read a body that the client holds back; for other bodies, waits for ever.
async fn body_wanted(wanted: oneshot::Receiver<()>) {
    if wanted.await.is_err() {
        pending::<()>().await;
    }
}

/// Sends a reply, as fast as the client takes it. One that takes too little is reset.
async fn send(
    reply: Response<Full<Bytes>>,
    is_head: bool,
    now: UnixMillis,
    mut respond: SendResponse<ReplyBytes>,
    open: &Arc<OpenReply>,
    mut pace: Pace,
) -> Result<(), h2::Error> {
    let (mut head, body) = reply.into_parts();
    let Ok(body) = body.collect().await;
    let mut data = body.to_bytes();
    // HTTP/2 forbids connection headers.
    head.headers.remove(CONNECTION);
    // A reply without a body may give the length of another one: a forwarded reply to HEAD does.
    if !matches!(head.status.as_u16(), 204 | 304) {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(data.len()));
    }
    if let Some(now) = date(now) {
        head.headers.insert(DATE, now);
    }
    if is_head {
        data.clear();
    }
    let began = Instant::now();
    let length = data.len();
    let mut stream = respond.send_response(Response::from_parts(head, ()), data.is_empty())?;
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let taken = wide(length - data.len());
        let capacity = tokio::select! {
            biased;
            capacity = poll_fn(|cx| stream.poll_capacity(cx)) => capacity.transpose()?,
            () = poll_fn(|cx| pace.poll_too_slow(cx, taken)) => {
                open.request.0.reply_was_too_slow(began);
                stream.send_reset(Reason::CANCEL);
                None
            }
        };
        let Some(capacity) = capacity else { return Ok(()) };
        let bytes = data.split_to(capacity.min(data.len()));
        if !bytes.is_empty() {
            stream.send_data(ReplyBytes { bytes, _open: Arc::clone(open) }, data.is_empty())?;
        }
    }
    // A head needs no window, and so shows nothing of the client.
    if length > 0 {
        open.request.0.with(|requests| requests.taken_at = Some(Instant::now()));
    }
    Ok(())
}

/// Bytes of a reply that h2 has not written yet.
struct ReplyBytes {
    bytes: Bytes,
    _open: Arc<OpenReply>,
}

impl Buf for ReplyBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

/// A reply of which the client has not taken the last byte.
struct OpenReply {
    request: OpenRequest,
    _room: (OwnedSemaphorePermit, ReservedRoom),
}

/// Returns the current time as a `Date` header value.
pub(super) fn date(now: UnixMillis) -> Option<HeaderValue> {
    let now = jiff::Timestamp::from_millisecond(now.0).ok()?;
    let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
    HeaderValue::try_from(text).ok()
}

/// Tracks the open requests of a connection, for its idle time.
#[derive(Debug)]
struct Activity {
    connection: Arc<ConnectionState>,
    requests: Mutex<Requests>,
    /// Notified when the client takes no reply.
    stuck: Notify,
}

#[derive(Debug)]
struct Requests {
    open: usize,
    /// Since when no request is open; `None` before the first.
    idle_since: Option<Instant>,
    /// When the client had last taken a whole reply.
    taken_at: Option<Instant>,
}

impl Activity {
    const fn new(connection: Arc<ConnectionState>) -> Self {
        let requests = Requests { open: 0, idle_since: None, taken_at: None };
        Self { connection, requests: Mutex::new(requests), stuck: Notify::const_new() }
    }

    fn with<T>(&self, read: impl FnOnce(&mut Requests) -> T) -> T {
        read(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports whether no request has come yet.
    fn is_unused(&self) -> bool {
        self.with(|requests| requests.open == 0 && requests.idle_since.is_none())
    }

    /// Notes that a reply ended because it was taken too slowly, since `began`. If no other reply was taken in the meantime,
    /// the connection ends, and what waits on it is not answered any more.
    fn reply_was_too_slow(&self, began: Instant) {
        if self.with(|requests| requests.taken_at.is_none_or(|taken| taken < began)) {
            self.connection.room().close();
            self.stuck.notify_one();
        }
    }

    /// Waits until the first request did not arrive within `head_timeout`, or no request was open for `idle_timeout`
    /// (`head_timeout` while no request was authenticated).
    async fn idle(&self, limits: &Limits) {
        let first_until = Instant::now() + limits.head_timeout;
        let mut now = Instant::now();
        loop {
            // A connection that becomes idle after this check cannot reach the limit before the next check.
            let span = if self.connection.is_authenticated() { limits.idle_timeout } else { limits.head_timeout };
            let next_check = now + limits.idle_timeout.min(limits.head_timeout);
            let idle_until = self.with(|requests| match (requests.open, requests.idle_since) {
                (0, None) => first_until,
                (0, Some(since)) => since + span,
                _ => next_check,
            });
            if idle_until <= now {
                return;
            }
            sleep_until(idle_until.min(next_check)).await;
            now = Instant::now();
        }
    }
}

/// Counts a request as open until it is dropped.
struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.with(|requests| requests.open += 1);
        activity.connection.begin_request();
        Self(Arc::clone(activity))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.with(|requests| {
            requests.open -= 1;
            requests.idle_since = Some(Instant::now());
            if requests.open == 0 {
                self.0.connection.end_request();
            }
        });
    }
}
