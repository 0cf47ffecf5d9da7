//! The HTTP client of the gateway: each call is one GET or POST, limited in time and size, over pooled connections.
//!
//! It uses HTTP/2 if the server offers it. Redirects are returned like any other response and never followed, because
//! requests are signed for one address. Whether plain `http://` may be used is decided by the rules that name the
//! address. Addresses that do not come from the rules (a merchant's callback address, for example) are limited to the
//! public internet by [`EgressPolicy`], unless the rules allow private ones.

mod client;
mod counted;
mod egress;
mod field_case;
mod lanes;
mod permits;
mod places;
mod resolver;
mod retry_after;

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Extensions, HeaderName, HeaderValue, Method, Request, Response, Uri, Version, header, response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::connect::capture_connection;
use rustls::pki_types::CertificateDer;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::connection_error::reason;
use crate::domain::UnixMillis;
use crate::reply_room::ReplyRoom;
use client::{Client, ClientOptions, PoolExhausted};
pub use egress::{EgressPolicy, is_public};
use lanes::{Lane, Lanes};
pub use permits::on_behalf_of;
pub use places::{RequestPlace, RequestPlaces};
use resolver::{Forbidden, ResolveError};

/// The most clients that are kept, one for each set of trusted certificates and egress policy. Rules name a handful; a
/// dropped client is created again when it is needed.
const CLIENTS: usize = 64;

/// The most open connections, used or idle, to hosts that do not come from the rules.
const PUBLIC_CONNECTIONS: usize = 2048;

/// How long the body of a drained response is read, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("paybridge/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An outbound request. It has no `Debug`, which would show its content and its signatures.
pub struct OutboundRequest<'a> {
    /// The absolute URL.
    pub url: &'a str,
    /// Certificates (DER) that are trusted in addition to the system's roots.
    pub trust: &'a Arc<[CertificateDer<'static>]>,
    /// Headers in addition to `Accept`, `User-Agent` and, with a body, `Content-Type`.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// Names of headers as HTTP/1 writes them; others are written in title case.
    pub spelled: &'a [Box<str>],
    /// The JSON to POST; `None`: a GET.
    pub body: Option<Bytes>,
    /// The time from the name lookup to the last byte of the response.
    pub timeout: Duration,
    /// How the response's body is read.
    pub response_body: ResponseBody,
    /// Which addresses may be connected to. Requests of different policies share no connections.
    pub egress: EgressPolicy,
}

/// How a response's body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseBody {
    /// The body is part of the response: if it is longer than this many bytes, late or incomplete, the request fails.
    Whole(usize),
    /// The head is the response. At most this many bytes of the body are read, for a second at most, and discarded;
    /// failures of the body are no errors.
    Drained(usize),
}

/// A response of any status; redirects are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundResponse {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, as a duration from now; zero if it names a moment in the past.
    pub retry_after: Option<Duration>,
    /// The whole body; empty if it was drained.
    pub body: Bytes,
}

/// Why there is no response. The other side may have processed the request all the same, except for
/// [`OutboundError::Unusable`], [`OutboundError::Forbidden`], [`OutboundError::Crowded`] and
/// [`OutboundError::NotConnected`]. The texts are in plain words, and contain nothing of the request but its host.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    /// The request cannot be made: its URL or the TLS configuration is invalid.
    #[error("the request cannot be made: {0}")]
    Unusable(String),
    /// The host has no address that the egress policy allows: nothing was sent.
    #[error("the address is not public: {0}")]
    Forbidden(String),
    /// The connection limit is reached: nothing was sent, and the host is not the cause.
    #[error("no connection: too many are open")]
    Crowded,
    /// No connection or TLS session could be established: nothing of the request was sent.
    #[error("{0}")]
    NotConnected(String),
    /// The connection broke before the whole response was received.
    #[error("{0}")]
    Unreachable(String),
    /// The time-out elapsed.
    #[error("timed out")]
    Timeout,
    /// The response's body is longer than the limit.
    #[error("the answer is too long")]
    TooLong,
    /// The length of the response's body can be read in several ways, or in none.
    #[error("the answer's length is not clear")]
    Malformed,
}

impl OutboundError {
    /// Returns the name of the outcome in metrics.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Unusable(_) | Self::Forbidden(_) | Self::Crowded => "unusable",
            Self::NotConnected(_) => "not_connected",
            Self::Unreachable(_) => "unreachable",
            Self::Timeout => "timeout",
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
        }
    }
}

/// The HTTP clients of the process, created on demand.
#[derive(Default)]
pub struct Outbound {
    /// In the order of their last use, the most recent last.
    clients: Mutex<VecDeque<(ClientKey, Arc<Lanes>)>>,
    /// Whether [`Outbound::retire`] was called: connections are not kept any more.
    retired: AtomicBool,
    system_roots: OnceCell<Arc<[CertificateDer<'static>]>>,
    options: PolicyOptions,
}

/// The client options of each egress policy. Hosts named by the rules have lookups and connections of their own: other
/// hosts, however silent, cannot use them up.
struct PolicyOptions {
    anywhere: ClientOptions,
    public: ClientOptions,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            anywhere: ClientOptions { egress: EgressPolicy::Anywhere, lookups: Arc::default(), permits: None },
            public: ClientOptions {
                egress: EgressPolicy::PublicOnly,
                lookups: Arc::default(),
                permits: Some(Arc::new(Semaphore::new(PUBLIC_CONNECTIONS))),
            },
        }
    }
}

/// The requests that share a client, and so its connections.
#[derive(Clone, PartialEq, Eq)]
struct ClientKey {
    trust: Trust,
    egress: EgressPolicy,
}

/// The certificates that a client trusts.
#[derive(Clone, PartialEq, Eq)]
enum Trust {
    /// None: it speaks plain HTTP.
    Nothing,
    /// The system's roots and these.
    SystemAnd(Arc<[CertificateDer<'static>]>),
}

impl Outbound {
    /// Sends a request and reads the whole response. A date in `Retry-After` is counted from `now`.
    ///
    /// # Errors
    /// [`OutboundError`] states why there is no response.
    pub async fn send(&self, request: OutboundRequest<'_>, now: UnixMillis) -> Result<OutboundResponse, OutboundError> {
        let deadline = Instant::now() + request.timeout;
        let exchange = async {
            let uri: Uri =
                request.url.parse().map_err(|error| OutboundError::Unusable(format!("the address: {error}")))?;
            let lane = self.lane(&uri, request.trust, request.egress).await?;
            let extensions = field_case::spelled(request.spelled);
            let response = send(&lane.client, build_request(uri, request.headers, extensions, request.body)).await?;
            Ok((lane, response))
        };
        let (_lane, (response, framing)) =
            timeout_at(deadline, exchange).await.unwrap_or(Err(OutboundError::Timeout))?;
        let (head, body) = response.into_parts();
        let body = match request.response_body {
            ResponseBody::Whole(limit) => {
                framing?;
                timeout_at(deadline, read(body, limit)).await.unwrap_or(Err(OutboundError::Timeout))?
            }
            ResponseBody::Drained(limit) => {
                drain(body, limit, deadline.min(Instant::now() + DRAIN_TIMEOUT)).await;
                Bytes::new()
            }
        };
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| retry_after::parse(value.to_str().ok()?, now));
        Ok(OutboundResponse { status: head.status.as_u16(), retry_after, body })
    }

    /// Sends a request as it is, and reads the whole response, whose body has at most `limit` bytes, within `timeout`.
    /// `Host` is that of the URI. Over HTTP/1 field names keep their case: the request's extensions say it, and the
    /// response's extensions say it of the response. If the request's extensions have a [`ReplyRoom`], a long body is read
    /// only when there is room for it, and the response's extensions hold that room.
    ///
    /// # Errors
    /// [`OutboundError`] states why there is no response.
    pub async fn forward(
        &self,
        mut request: Request<Bytes>,
        trust: &Arc<[CertificateDer<'static>]>,
        timeout: Duration,
        limit: usize,
    ) -> Result<Response<Bytes>, OutboundError> {
        let room = request.extensions_mut().remove::<ReplyRoom>().unwrap_or_default();
        let exchange = async {
            let lane = self.lane(request.uri(), trust, EgressPolicy::Anywhere).await?;
            let (response, framing) = send(&lane.client, request.map(Full::new)).await?;
            framing?;
            let (mut head, body) = response.into_parts();
            let (body, reserved) = read_within(body, limit, &room).await?;
            head.extensions.extend(reserved);
            Ok(Response::from_parts(head, body))
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(OutboundError::Timeout))
    }

    /// Closes idle connections, and keeps none from now on: later requests use connections of their own, which are
    /// closed after them.
    pub fn retire(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        self.retired.store(true, Ordering::Release);
        clients.clear();
    }

    async fn lane(
        &self,
        uri: &Uri,
        trust: &Arc<[CertificateDer<'static>]>,
        egress: EgressPolicy,
    ) -> Result<Lane, OutboundError> {
        let plain = uri.scheme_str() == Some("http");
        let trust = if plain { Trust::Nothing } else { Trust::SystemAnd(Arc::clone(trust)) };
        let key = ClientKey { trust, egress };
        if let Some(lanes) = self.cached(&key) {
            return Ok(lanes.lane());
        }
        let lanes = self.build(&key).await.map_err(|error| OutboundError::Unusable(error.to_string()))?;
        let (lanes, mut clients) = (Arc::new(lanes), self.clients.lock().unwrap_or_else(PoisonError::into_inner));
        if self.retired.load(Ordering::Acquire) {
            return Ok(lanes.lane());
        }
        if clients.len() >= CLIENTS {
            clients.pop_front();
        }
        clients.push_back((key, Arc::clone(&lanes)));
        Ok(lanes.lane())
    }

    async fn build(&self, key: &ClientKey) -> Result<Lanes, rustls::Error> {
        let options = match key.egress {
            EgressPolicy::Anywhere => &self.options.anywhere,
            EgressPolicy::PublicOnly => &self.options.public,
        };
        let connector = match &key.trust {
            Trust::Nothing => client::plain(options)?,
            Trust::SystemAnd(extra) => {
                let system = self.system_roots.get_or_init(client::system_roots).await;
                client::https(system, extra, options)?
            }
        };
        Ok(Lanes::new(connector, key.egress == EgressPolicy::Anywhere))
    }

    fn cached(&self, key: &ClientKey) -> Option<Arc<Lanes>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clients.iter().position(|(cached, _)| cached == key)?;
        let entry = clients.remove(at)?;
        let lanes = Arc::clone(&entry.1);
        clients.push_back(entry);
        Some(lanes)
    }
}

/// Sends a request; returns the response, and whether its framing is valid. A connection with another response is not used
/// again: where the next one begins on it is not clear either.
async fn send(
    client: &Client,
    mut request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, Result<(), OutboundError>), OutboundError> {
    let connection = capture_connection(&mut request);
    let response = client.request(request).await.map_err(|error| request_error(&error))?;
    let (head, body) = response.into_parts();
    let framing = if has_valid_framing(&head) { Ok(()) } else { Err(OutboundError::Malformed) };
    if framing.is_err()
        && let Some(connected) = &*connection.connection_metadata()
    {
        connected.poison();
    }
    Ok((Response::from_parts(head, body), framing))
}

/// Reports whether the length of a response is given in one way (RFC 9112, section 6). Hyper takes the last of several
/// transfer codings, prefers them to a length, and checks neither where there is no body. Of HTTP/2 it refuses such a
/// response by itself.
fn has_valid_framing(head: &response::Parts) -> bool {
    let mut lengths = head.headers.get_all(header::CONTENT_LENGTH).iter();
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter().map(HeaderValue::as_bytes);
    match (codings.next(), codings.next()) {
        (None, _) => {
            lengths.all(|length| length.as_bytes().iter().all(|byte| matches!(byte, b'0'..=b'9' | b',' | b' ')))
        }
        (Some(coding), None) => {
            coding.trim_ascii().eq_ignore_ascii_case(b"chunked")
                && lengths.next().is_none()
                && head.version == Version::HTTP_11
                && head.status.as_u16() != 204
        }
        (Some(_), Some(_)) => false,
    }
}

fn build_request(
    uri: Uri,
    headers: &[(HeaderName, HeaderValue)],
    extensions: Extensions,
    body: Option<Bytes>,
) -> Request<Full<Bytes>> {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::new(Full::new(body.unwrap_or_default()));
    *request.extensions_mut() = extensions;
    let all = request.headers_mut();
    if method == Method::POST {
        all.insert(header::CONTENT_TYPE, JSON);
    }
    all.insert(header::ACCEPT, JSON);
    all.insert(header::USER_AGENT, USER_AGENT);
    for (name, value) in headers {
        all.insert(name, value.clone());
    }
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, OutboundError> {
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(OutboundError::TooLong);
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(OutboundError::TooLong),
        Err(error) => Err(unreachable(error.as_ref())),
    }
}

/// Reads a body, waiting for room before anything that is not short is kept.
async fn read_within(mut body: Incoming, limit: usize, room: &ReplyRoom) -> Result<(Bytes, Extensions), OutboundError> {
    let (mut whole, mut reserved) = (BytesMut::new(), Extensions::new());
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > limit) {
        return Err(OutboundError::TooLong);
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreachable(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(OutboundError::TooLong);
        }
        if whole.len() + data.len() > ReplyRoom::SHORT && reserved.is_empty() {
            let ends = || OutboundError::Unreachable("the caller takes no reply".to_owned());
            reserved.insert(room.reserve(length.unwrap_or(limit)).await.ok_or_else(ends)?);
        }
        whole.extend_from_slice(&data);
    }
    Ok((whole.freeze(), reserved))
}

/// Reads the rest of a body, within bounds, so that the connection can be reused.
async fn drain(body: Incoming, limit: usize, until: Instant) {
    let mut body = Limited::new(body, limit);
    let _ = timeout_at(until, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

fn request_error(error: &hyper_util::client::legacy::Error) -> OutboundError {
    if let Some(Forbidden(host)) = chain(error).find_map(forbidden) {
        return OutboundError::Forbidden(host.clone());
    }
    if chain(error).any(<dyn Error>::is::<PoolExhausted>) {
        return OutboundError::Crowded;
    }
    if error.is_connect() {
        OutboundError::NotConnected(reason(error).unwrap_or_else(|| "no connection".to_owned()))
    } else {
        unreachable(error)
    }
}

fn forbidden<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Forbidden> {
    let resolving = || match error.downcast_ref()? {
        ResolveError::Forbidden(forbidden) => Some(forbidden),
        ResolveError::Failed(_) => None,
    };
    error.downcast_ref().or_else(resolving)
}

fn unreachable(error: &(dyn Error + 'static)) -> OutboundError {
    OutboundError::Unreachable(reason(error).unwrap_or_else(|| "no answer".to_owned()))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source()).take(8)
}

#[cfg(test)]
mod tests;
