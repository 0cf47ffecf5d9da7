//! What the gateway asks of others over HTTP: one GET or POST, bounded in time and size, over pooled connections.
//!
//! HTTP/2 where the other side offers it. Redirects are answers like any other: nothing is followed, because what is sent
//! is signed for one address. Whether plain `http://` may be used is decided by the rules that name the address.

mod client;
mod retry_after;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rustls::pki_types::CertificateDer;
use tokio::sync::OnceCell;

use crate::domain::UnixMillis;
use client::Client;

/// How many clients are kept, one for each set of trusted certificates. Rules name a handful; one that was dropped is
/// made again when it is needed.
const CLIENTS: usize = 64;

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("paybridge/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request to somebody else. `Debug` would show what is signed and for whom, so there is none.
pub struct Question<'a> {
    /// The whole address.
    pub url: &'a str,
    /// Certificates (DER) that are trusted beside the system's roots.
    pub trust: &'a Arc<[CertificateDer<'static>]>,
    /// Beside `Accept`, `User-Agent` and, with a body, `Content-Type`.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// JSON to POST; `None`: a GET.
    pub body: Option<Bytes>,
    /// From connecting to the last byte of the answer.
    pub timeout: Duration,
    /// The longest body of an answer, in bytes.
    pub answer_limit: usize,
}

/// What came back: any status, no redirect followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, counted from now; a moment that is over is zero.
    pub retry_after: Option<Duration>,
    /// The whole body.
    pub body: Bytes,
}

/// Why there is no answer. What was asked may have been done all the same, but for [`OutboundError::Unusable`] and
/// [`OutboundError::NotConnected`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    /// The request cannot be made: a defect in what was asked for.
    #[error("the request cannot be made: {0}")]
    Unusable(String),
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
    clients: Mutex<VecDeque<(Trust, Client)>>,
    /// Connections are not kept any more.
    retired: AtomicBool,
    system_roots: OnceCell<Arc<[CertificateDer<'static>]>>,
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
    pub async fn ask(&self, question: Question<'_>, now: UnixMillis) -> Result<Answer, OutboundError> {
        let limit = question.answer_limit;
        let exchange = async {
            let uri: Uri =
                question.url.parse().map_err(|error| OutboundError::Unusable(format!("the address: {error}")))?;
            let client = self.client(&uri, question.trust).await?;
            let reply = client
                .request(request(uri, question.headers, question.body))
                .await
                .map_err(|error| no_reply(&error))?;
            let (head, body) = reply.into_parts();
            let body = read(body, limit).await?;
            let retry_after = head.headers.get(header::RETRY_AFTER);
            let retry_after = retry_after.and_then(|value| retry_after::parse(value.to_str().ok()?, now));
            Ok(Answer { status: head.status.as_u16(), retry_after, body })
        };
        tokio::time::timeout(question.timeout, exchange).await.unwrap_or(Err(OutboundError::Timeout))
    }

    /// Closes the connections that are idle, and keeps none from here on: what is asked yet has connections of its own,
    /// which end with it.
    pub fn retire(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        self.retired.store(true, Ordering::Release);
        clients.clear();
    }

    async fn client(&self, uri: &Uri, trust: &Arc<[CertificateDer<'static>]>) -> Result<Client, OutboundError> {
        let plain = uri.scheme_str() == Some("http");
        let trust = if plain { Trust::Nobody } else { Trust::SystemAnd(Arc::clone(trust)) };
        if let Some(client) = self.known(&trust) {
            return Ok(client);
        }
        let made = match &trust {
            Trust::Nobody => client::plain(),
            Trust::SystemAnd(extra) => client::https(self.system_roots.get_or_init(client::system_roots).await, extra),
        };
        let client = made.map_err(|error| OutboundError::Unusable(error.to_string()))?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if self.retired.load(Ordering::Acquire) {
            return Ok(client);
        }
        if clients.len() >= CLIENTS {
            clients.pop_front();
        }
        clients.push_back((trust, client.clone()));
        Ok(client)
    }

    fn known(&self, trust: &Trust) -> Option<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clients.iter().position(|(known, _)| known == trust)?;
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

fn no_reply(error: &hyper_util::client::legacy::Error) -> OutboundError {
    if error.is_connect() { OutboundError::NotConnected(causes(error)) } else { unreachable(error) }
}

fn unreachable(error: &(dyn std::error::Error + 'static)) -> OutboundError {
    OutboundError::Unreachable(causes(error))
}

/// The error with its causes: the outermost alone says little. None of them holds what was sent.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source()).take(8);
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests;
