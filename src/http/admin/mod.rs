//! The admin listener: plain HTTP/1, for probes, metrics and operators (contract sections 1 and 13).
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200: the process is alive |
//! | `/readyz` | 200, or 503 with the reason |
//! | `/metrics` | the metrics, as Prometheus text 0.0.4 or, when `Accept` names it, as `OpenMetrics` |
//! | `/api/rules` | `{"version","loaded_at","error"}`, and also `needs_restart` (keys of `gateway.toml`), `problems` and `problem_count`, `warnings` and `warning_count`, `certificate` |
//! | `POST /api/rules/reload` | the same after a reload: 200, or 422 when the rules on disk are refused |
//! | `/api/callbacks` | `{"callbacks":[...],"next"}`: callbacks to merchants, the newest first. `state` (`pending`, `delivered`, `failed`, separated by commas; default `pending,failed`), `merchant`, `order_id` (with `merchant`), `since` and `until` (RFC 3339, or an age such as `2h`), `limit` (1 to 1000, default 50), `after` (the `next` of an earlier answer) |
//! | `/api/callbacks/{id}` | one callback, with its `tries` |
//! | `POST /api/callbacks/{id}/resend` | queues it again and returns it: 200, 404, or 409 while it is being sent |
//! | `POST /api/callbacks/resend` | `{"resent","next"}`: queues failed callbacks again, 500 a request or `limit`. `state=failed` is required; `merchant`, `since`, `until`, `after` as above, until `next` is `null` |
//! | `POST /api/callbacks/sample` | sends `merchant` a callback that is marked as a sample and not stored, and returns the outcome. `key` (whose secret signs), `kind` (`v1`, `v2`), `url` |
//! | `/api/readiness` | whether merchants can move to v2, as `paybridge readiness --format json` prints it; `merchant`: this one alone |
//! | `/api/openapi.json` | the v2 interface as an `OpenAPI` 3.1 document, as this binary serves it |
//!
//! Web pages cannot use this listener: `Host` must be a loopback name, the listening address or one of `[admin] hosts`
//! (an attacker's name that resolves to this address is none of them), and an `Origin` or `Sec-Fetch-Site` of another
//! site is refused. If a token is configured, everything but the two probes requires it; a request with the token may
//! use any `Host`, since no web page knows the token. Probes stay open because they are requested by machines that hold
//! no secrets, and reveal none.

mod callbacks;
mod guard;
mod readiness;
mod reply;
mod rules;
mod source;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Uri};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::rules::{CertificateInfo, ProblemInfo, RulesInfo};
pub use self::source::{AdminSource, Pending, SampleRequest};

use self::guard::Guard;
use self::reply::AdminReply;
use super::context::request_id_of;
use super::reply::REQUEST_ID;
use crate::clock::Random;
use crate::domain::Secrets;
use crate::telemetry::{classic, metrics};

/// The most open connections; more are closed as they arrive.
const CONNECTIONS: usize = 64;

/// The read buffer of a connection, in bytes: hyper's minimum, ten times a probe's head.
const HEAD_BYTES: usize = 8192;

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may take for its one request: a peer that does not read its reply is dropped.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the checks behind `/readyz` may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after a failed accept, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The media type in `Accept` that selects [`metrics::CONTENT_TYPE`].
const OPENMETRICS: &str = "application/openmetrics-text";

/// The `OpenAPI` document of the v2 interface, as this binary serves it. It is written by hand; tests compare it with
/// the code.
const OPENAPI: &str = include_str!("../../../docs/openapi.json");

/// The error of an admin address that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ([admin] listen): {cause}")]
pub struct BindError {
    address: SocketAddr,
    cause: io::Error,
}

/// A bound admin listener.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
}

impl Admin {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound.await.map_err(|cause| BindError { address, cause })
    }

    /// Returns the bound address, with the actual port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until the future is dropped, which closes every connection. `token`: the bearer token, if one is
    /// configured; `hosts`: the names that `Host` may have, in lower case.
    pub async fn serve(
        self,
        source: Arc<dyn AdminSource>,
        token: Option<Secrets>,
        hosts: Vec<Box<str>>,
        random: Arc<dyn Random>,
    ) {
        let server = Arc::new(Server { source, guard: Guard { token, hosts }, random });
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut failing = false;
        loop {
            while connections.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((socket, _)) => {
                    failing = false;
                    // A connection that waited here would wait without any reply; one that is closed can retry.
                    let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
                    let server = Arc::clone(&server);
                    connections.spawn(async move {
                        serve_connection(socket, server).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the admin listener cannot accept connections; retrying");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve_connection(socket: TcpStream, server: Arc<Server>) {
    let Ok(local) = socket.local_addr() else { return };
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let server = Arc::clone(&server);
        async move {
            let (head, _body) = request.into_parts();
            let mut reply = server.answer(local, &head.method, &head.uri, &head.headers).await;
            reply.headers_mut().insert(REQUEST_ID, request_id_of(&head.headers, &*server.random));
            Ok::<_, std::convert::Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service);
    // Failures of a connection concern only its peer: it disconnected, was too slow, or sent no HTTP.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
}

/// Authorizes and answers the requests of the admin listener.
struct Server {
    source: Arc<dyn AdminSource>,
    guard: Guard,
    random: Arc<dyn Random>,
}

/// The resource that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Health,
    Readiness,
    Metrics,
    Rules,
    Reload,
    OpenApi,
    /// Whether merchants can move to v2.
    MerchantReadiness,
    Callbacks,
    /// With the callback's id, as sent.
    Callback(&'a str),
    Resend(&'a str),
    ResendFailed,
    Sample,
}

impl<'a> Route<'a> {
    fn of(uri: &'a Uri) -> Option<Self> {
        match uri.path() {
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Readiness),
            "/metrics" => Some(Self::Metrics),
            "/api/rules" => Some(Self::Rules),
            "/api/rules/reload" => Some(Self::Reload),
            "/api/openapi.json" => Some(Self::OpenApi),
            "/api/readiness" => Some(Self::MerchantReadiness),
            "/api/callbacks" => Some(Self::Callbacks),
            "/api/callbacks/resend" => Some(Self::ResendFailed),
            "/api/callbacks/sample" => Some(Self::Sample),
            path => {
                let rest = path.strip_prefix("/api/callbacks/")?;
                let route = rest.strip_suffix("/resend").map_or(Self::Callback(rest), Self::Resend);
                let (Self::Callback(id) | Self::Resend(id)) = route else { return None };
                (!id.contains('/')).then_some(route)
            }
        }
    }

    /// Returns the value of `Allow`.
    const fn methods(self) -> &'static str {
        match self {
            Self::Reload | Self::Resend(_) | Self::ResendFailed | Self::Sample => "POST",
            Self::Health
            | Self::Readiness
            | Self::Metrics
            | Self::Rules
            | Self::OpenApi
            | Self::MerchantReadiness
            | Self::Callbacks
            | Self::Callback(_) => "GET, HEAD",
        }
    }

    fn allows(self, method: &Method) -> bool {
        self.methods().split(", ").any(|allowed| allowed == method.as_str())
    }

    const fn is_probe(self) -> bool {
        matches!(self, Self::Health | Self::Readiness)
    }
}

impl Server {
    async fn answer(&self, local: SocketAddr, method: &Method, uri: &Uri, headers: &HeaderMap) -> AdminReply {
        let route = Route::of(uri);
        if let Some(refusal) = self.guard.refuse(route.is_some_and(Route::is_probe), local, uri, headers) {
            return refusal;
        }
        let Some(route) = route else { return reply::not_found("not found") };
        if !route.allows(method) {
            return reply::method_not_allowed(route.methods());
        }
        match route {
            Route::Health => reply::text_line("ok\n"),
            Route::Readiness => self.readiness().await,
            Route::Metrics => self.metrics(headers),
            Route::Rules => reply::document(&rules::rules_document(&self.source.rules())),
            Route::Reload => self.reload().await,
            Route::OpenApi => reply::ok("application/json", OPENAPI),
            Route::MerchantReadiness => readiness::show(&*self.source, uri.query()).await,
            Route::Callbacks => callbacks::list(&*self.source, uri.query()).await,
            Route::Callback(id) => callbacks::show(&*self.source, id).await,
            Route::Resend(id) => callbacks::resend(&*self.source, id, uri.query()).await,
            Route::ResendFailed => callbacks::resend_failed(&*self.source, uri.query()).await,
            Route::Sample => callbacks::sample(&*self.source, uri.query()).await,
        }
    }

    async fn readiness(&self) -> AdminReply {
        match self.ready().await {
            Ok(()) => reply::text_line("ready\n"),
            Err(reason) => reply::unavailable(&reason),
        }
    }

    async fn ready(&self) -> Result<(), String> {
        let ready = tokio::time::timeout(CHECK_TIMEOUT, self.source.ready()).await;
        ready.unwrap_or_else(|_| Err("the readiness checks did not finish in time".to_owned()))
    }

    /// Returns the metrics in the format that `Accept` selects, by default in the one that every scraper reads.
    fn metrics(&self, headers: &HeaderMap) -> AdminReply {
        let text = self.source.metrics();
        if accepts_openmetrics(headers) {
            reply::ok(metrics::CONTENT_TYPE, text)
        } else {
            reply::ok(classic::CONTENT_TYPE, classic::classic(&text))
        }
    }

    async fn reload(&self) -> AdminReply {
        let info = self.source.reload().await;
        let document = rules::rules_document(&info);
        if info.error.is_none() { reply::document(&document) } else { reply::unprocessable(&document) }
    }
}

/// Reports whether `Accept` names `OpenMetrics`. Scrapers that support it prefer it, so weights are ignored.
fn accepts_openmetrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    ranges.filter_map(|range| range.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case(OPENMETRICS))
}
