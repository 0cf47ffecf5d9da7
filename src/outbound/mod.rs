//! What the gateway asks of others over HTTP: one GET or POST, bounded in time and size, over pooled connections.
//!
//! HTTP/2 where the other side offers it. Redirects are answers like any other: nothing is followed, because what is sent
//! is signed for one address. Whether plain `http://` may be used is decided by the rules that name the address. Addresses
//! that others than the rules name reach the public internet only.

mod client;
mod counted;
mod reach;
mod resolver;
mod retry_after;

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rustls::pki_types::CertificateDer;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::domain::UnixMillis;
use client::{Client, ClientOptions, PoolExhausted};
pub use reach::{EgressPolicy, is_public};
use resolver::{Forbidden, ResolveError};

/// How many clients are kept, one for each set of trusted certificates and reach. Rules name a handful; one that was dropped is
/// made again when it is needed.
const CLIENTS: usize = 64;

/// How many connections are open to hosts that others than the rules name, used or not.
const PUBLIC_CONNECTIONS: usize = 2048;

/// How long the body of an answer that says nothing is read for the sake of its connection.
const DRAINING: Duration = Duration::from_secs(1);
/// The longest text of what went wrong, in bytes: parts of it are the other side's words.
const LONGEST_CAUSE: usize = 300;

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("paybridge/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request to somebody else. `Debug` would show what is signed and for whom, so there is none.
pub struct OutboundRequest<'a> {
    /// The whole address.
    pub url: &'a str,
    /// Certificates (DER) that are trusted beside the system's roots.
    pub trust: &'a Arc<[CertificateDer<'static>]>,
    /// Beside `Accept`, `User-Agent` and, with a body, `Content-Type`.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// JSON to POST; `None`: a GET.
    pub body: Option<Bytes>,
    /// From looking the name up to the last byte of the answer.
    pub timeout: Duration,
    /// What becomes of the answer's body.
    pub answer: AnswerBody,
    /// Which addresses may be connected to. Connections are not shared with questions of another reach.
    pub reach: EgressPolicy,
}

/// What becomes of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// It is part of the answer: at most so many bytes, in time and unbroken, or there is no answer.
    Whole(usize),
    /// The head is the answer. At most so many bytes are read, for a second at most, and thrown away; nothing that goes
    /// wrong with them is an error.
    Drained(usize),
}

/// What came back: any status, no redirect followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundResponse {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, counted from now; a moment that is over is zero.
    pub retry_after: Option<Duration>,
    /// The whole body; empty where it was drained.
    pub body: Bytes,
}

/// Why there is no answer. What was asked may have been done all the same, but for [`OutboundError::Unusable`],
/// [`OutboundError::Forbidden`],
/// [`OutboundError::Crowded`] and [`OutboundError::NotConnected`]. No text holds anything of what was sent but its host.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    /// The request cannot be made: a defect in what was asked for.
    #[error("the request cannot be made: {0}")]
    Unusable(String),
    /// The host has no address that the question may reach: nothing was sent to anybody.
    #[error("the address is not public: {0}")]
    Forbidden(String),
    /// As many connections are open as there may be: nothing was sent, and it is not the host's doing.
    #[error("no connection: too many are open")]
    Crowded,
    /// No connection or no TLS session: nothing of what was asked has left.
    #[error("no connection: {0}")]
    NotConnected(String),
    /// A connection, but none that held until the whole reply was there.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// The time was over.
    #[error("no answer in time")]
    Timeout,
    /// The answer's body is longer than the limit.
    #[error("the answer is too long")]
    TooLong,
}

/// The clients of the process, made when they are needed.
#[derive(Default)]
pub struct Outbound {
    /// Most lately used last.
    clients: Mutex<VecDeque<(Kind, Client)>>,
    /// Connections are not kept any more.
    retired: AtomicBool,
    system_roots: OnceCell<Arc<[CertificateDer<'static>]>>,
    ways: Ways,
}

/// The way to each reach. What the rules name has lookups and connections, however many hosts of others are silent.
struct Ways {
    anywhere: ClientOptions,
    public: ClientOptions,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            anywhere: ClientOptions { reach: EgressPolicy::Anywhere, lookups: Arc::default(), places: None },
            public: ClientOptions {
                reach: EgressPolicy::PublicOnly,
                lookups: Arc::default(),
                places: Some(Arc::new(Semaphore::new(PUBLIC_CONNECTIONS))),
            },
        }
    }
}

/// Which questions share a client, and so its connections.
#[derive(Clone, PartialEq, Eq)]
struct Kind {
    trust: Trust,
    reach: EgressPolicy,
}

/// Whom a client trusts.
#[derive(Clone, PartialEq, Eq)]
enum Trust {
    /// It speaks plain HTTP.
    Nobody,
    /// The system's roots and these.
    SystemAnd(Arc<[CertificateDer<'static>]>),
}

impl Outbound {
    /// Asks, and reads the whole answer. `now` is what a `Retry-After` that names a moment is counted from.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(&self, question: OutboundRequest<'_>, now: UnixMillis) -> Result<OutboundResponse, OutboundError> {
        let deadline = Instant::now() + question.timeout;
        let exchange = async {
            let uri: Uri =
                question.url.parse().map_err(|error| OutboundError::Unusable(format!("the address: {error}")))?;
            let client = self.client(&uri, question.trust, question.reach).await?;
            client.request(request(uri, question.headers, question.body)).await.map_err(|error| no_reply(&error))
        };
        let reply = timeout_at(deadline, exchange).await.unwrap_or(Err(OutboundError::Timeout))?;
        let (head, body) = reply.into_parts();
        let body = match question.answer {
            AnswerBody::Whole(limit) => {
                timeout_at(deadline, read(body, limit)).await.unwrap_or(Err(OutboundError::Timeout))?
            }
            AnswerBody::Drained(limit) => {
                drain(body, limit, deadline.min(Instant::now() + DRAINING)).await;
                Bytes::new()
            }
        };
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| retry_after::parse(value.to_str().ok()?, now));
        Ok(OutboundResponse { status: head.status.as_u16(), retry_after, body })
    }

    /// Closes the connections that are idle, and keeps none from here on: what is asked yet has connections of its own,
    /// which end with it.
    pub fn retire(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        self.retired.store(true, Ordering::Release);
        clients.clear();
    }

    async fn client(
        &self,
        uri: &Uri,
        trust: &Arc<[CertificateDer<'static>]>,
        reach: EgressPolicy,
    ) -> Result<Client, OutboundError> {
        let plain = uri.scheme_str() == Some("http");
        let trust = if plain { Trust::Nobody } else { Trust::SystemAnd(Arc::clone(trust)) };
        let kind = Kind { trust, reach };
        if let Some(client) = self.known(&kind) {
            return Ok(client);
        }
        let client = self.make(&kind).await.map_err(|error| OutboundError::Unusable(error.to_string()))?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if self.retired.load(Ordering::Acquire) {
            return Ok(client);
        }
        if clients.len() >= CLIENTS {
            clients.pop_front();
        }
        clients.push_back((kind, client.clone()));
        Ok(client)
    }

    async fn make(&self, kind: &Kind) -> Result<Client, rustls::Error> {
        let way = match kind.reach {
            EgressPolicy::Anywhere => &self.ways.anywhere,
            EgressPolicy::PublicOnly => &self.ways.public,
        };
        match &kind.trust {
            Trust::Nobody => client::plain(way),
            Trust::SystemAnd(extra) => {
                let system = self.system_roots.get_or_init(client::system_roots).await;
                client::https(system, extra, way)
            }
        }
    }

    fn known(&self, kind: &Kind) -> Option<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clients.iter().position(|(known, _)| known == kind)?;
        let entry = clients.remove(at)?;
        let client = entry.1.clone();
        clients.push_back(entry);
        Some(client)
    }
}

fn request(uri: Uri, headers: &[(HeaderName, HeaderValue)], body: Option<Bytes>) -> Request<Full<Bytes>> {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::new(Full::new(body.unwrap_or_default()));
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

/// Reads on, so that the connection can be used again, but never for long.
async fn drain(body: Incoming, limit: usize, until: Instant) {
    let mut body = Limited::new(body, limit);
    let _ = timeout_at(until, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

fn no_reply(error: &hyper_util::client::legacy::Error) -> OutboundError {
    if let Some(Forbidden(host)) = chain(error).find_map(forbidden) {
        return OutboundError::Forbidden(host.clone());
    }
    if chain(error).any(<dyn Error>::is::<PoolExhausted>) {
        return OutboundError::Crowded;
    }
    if error.is_connect() { OutboundError::NotConnected(causes(error)) } else { unreachable(error) }
}

fn forbidden<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Forbidden> {
    let resolving = || match error.downcast_ref()? {
        ResolveError::Forbidden(forbidden) => Some(forbidden),
        ResolveError::Failed(_) => None,
    };
    error.downcast_ref().or_else(resolving)
}

fn unreachable(error: &(dyn Error + 'static)) -> OutboundError {
    OutboundError::Unreachable(causes(error))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source()).take(8)
}

/// The error with its causes: the outermost alone says little. None of them holds what was sent, and none what came back:
/// of HTTP/2 only the code is said, because what the other side writes beside it may be anything.
fn causes(error: &(dyn Error + 'static)) -> String {
    let stated = |error: &(dyn Error + 'static)| match error.downcast_ref::<h2::Error>().and_then(h2::Error::reason) {
        Some(h2::Reason::NO_ERROR) => "the other side shut the connection down".to_owned(),
        Some(reason) => reason.description().to_owned(),
        // The library's text goes on about how servers should be written.
        None if is_closed(error) => "the other side closed the connection".to_owned(),
        None => error.to_string(),
    };
    let mut causes = chain(error).map(stated).collect::<Vec<_>>().join(": ");
    causes.truncate(causes.floor_char_boundary(LONGEST_CAUSE));
    causes
}

/// Whether a TLS connection was closed without a word, which is how most servers close.
fn is_closed(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests;
