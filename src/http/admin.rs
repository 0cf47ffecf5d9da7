//! The admin listener: plain HTTP/1, for probes, metrics and operators (contract sections 1 and 13).
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200: the process lives |
//! | `/readyz` | 200, or 503 with what stands in the way |
//! | `/metrics` | the metrics, as Prometheus text 0.0.4 or, when `Accept` names it, as `OpenMetrics` |
//! | `/api/rules` | `{"version","loaded_at","error"}`, and besides `needs_restart` (keys of `gateway.toml`), `problems` and `problem_count`, `warnings` and `warning_count`, `certificate` |
//! | `POST /api/rules/reload` | the same after a reload: 200, or 422 when the rules on disk are refused |
//! | `/api/openapi.json` | the v2 interface as an `OpenAPI` 3.1 document, as this binary serves it |
//!
//! No web page can talk to it: `Host` must be an address or `localhost` (a name that an attacker points here is neither),
//! and an `Origin` or `Sec-Fetch-Site` of another site is refused. With a token configured, everything but the two probes
//! needs it; whoever presents it may use any `Host`, since no web page knows it. Probes stay open because they are asked
//! by machines that hold no secrets, and tell none.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::correlation::request_id;
use crate::clock::SystemRandomness;
use crate::domain::UnixMillis;
use crate::rules::Secrets;
use crate::telemetry::{classic, metrics};

/// Open at once; more are closed as they come.
const CONNECTIONS: usize = 64;

/// hyper's smallest buffer; a probe's head is a tenth of it.
const HEAD_BYTES: usize = 8192;

/// For a head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// For everything a connection does, which is one request: a peer that does not read its reply is dropped.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// For the checks behind `/readyz`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// After an accept failed, for want of descriptors usually.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The media type that asks for [`metrics::CONTENT_TYPE`].
const OPENMETRICS: &str = "application/openmetrics-text";

/// The v2 interface, as this binary serves it. The document is written by hand; tests hold it against the code.
const OPENAPI: &str = include_str!("../../api/openapi.json");

/// A pending answer of an [`AdminSource`].
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The rule set in force, as `/api/rules` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesInfo {
    /// Its content hash.
    pub version: String,
    /// When it was read.
    pub loaded_at: UnixMillis,
    /// What is wrong with the rules or the certificate on disk, when they are not in force.
    pub error: Option<String>,
    /// The keys of `gateway.toml` that take effect at the next start.
    pub needs_restart: Vec<&'static str>,
    /// What the rules on disk are refused for: the first problems.
    pub problems: Vec<ProblemInfo>,
    /// How many problems there are.
    pub problem_count: usize,
    /// The first warnings of the rule set in force.
    pub warnings: Vec<String>,
    /// How many there are.
    pub warning_count: usize,
    /// The certificate.
    pub certificate: CertificateInfo,
}

/// A problem of rules that are refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProblemInfo {
    /// The file, below the rules directory as the process was told of it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
}

/// The certificate, as `/api/rules` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The last moment the one that serves is good for, where that is known.
    pub not_after: Option<UnixMillis>,
    /// Why the one on disk does not serve.
    pub error: Option<String>,
}

/// What the admin listener tells about the process.
pub trait AdminSource: Send + Sync + 'static {
    /// Whether requests can be served now, or what stands in the way: draining, or a check that failed.
    fn ready(&self) -> Pending<'_, Result<(), String>>;

    /// The rule set in force.
    fn rules(&self) -> RulesInfo;

    /// Reads the rules again now; [`RulesInfo::error`] says whether they were refused.
    fn reload(&self) -> Pending<'_, RulesInfo>;

    /// The text of the metrics.
    fn metrics(&self) -> String;
}

/// The admin address cannot be used.
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
    /// Takes the address.
    ///
    /// # Errors
    /// It is in use, or not this machine's.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound.await.map_err(|cause| BindError { address, cause })
    }

    /// The address with the port that was taken.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the future is dropped, which closes every connection. `token` is the bearer token, when there is
    /// one.
    pub async fn serve(self, source: Arc<dyn AdminSource>, token: Option<Secrets>) {
        let desk = Arc::new(Desk { source, token, random: SystemRandomness::default() });
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut failing = false;
        loop {
            while connections.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((socket, _)) => {
                    failing = false;
                    // One that waited for a place would wait without a word; one that is dropped can try again.
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                    let desk = Arc::clone(&desk);
                    connections.spawn(async move {
                        serve_connection(socket, desk).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the admin listener cannot accept; trying on");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve_connection(socket: TcpStream, desk: Arc<Desk>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let desk = Arc::clone(&desk);
        async move {
            let (head, _body) = request.into_parts();
            let mut reply = desk.answer(&head.method, &head.uri, &head.headers).await;
            reply.headers_mut().insert("x-request-id", request_id(&head.headers, &desk.random));
            Ok::<_, std::convert::Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service);
    // What goes wrong on a connection is its peer's affair: it left, was too slow, or spoke no HTTP.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
}

type Reply = Response<Full<Bytes>>;

/// Who may ask, and what is answered.
struct Desk {
    source: Arc<dyn AdminSource>,
    token: Option<Secrets>,
    random: SystemRandomness,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Health,
    Readiness,
    Metrics,
    Rules,
    Reload,
    OpenApi,
}

impl Page {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Readiness),
            "/metrics" => Some(Self::Metrics),
            "/api/rules" => Some(Self::Rules),
            "/api/rules/reload" => Some(Self::Reload),
            "/api/openapi.json" => Some(Self::OpenApi),
            _ => None,
        }
    }

    /// The value of `Allow`.
    const fn methods(self) -> &'static str {
        match self {
            Self::Reload => "POST",
            _ => "GET, HEAD",
        }
    }

    fn takes(self, method: &Method) -> bool {
        self.methods().split(", ").any(|allowed| allowed == method.as_str())
    }

    const fn is_probe(self) -> bool {
        matches!(self, Self::Health | Self::Readiness)
    }
}

impl Desk {
    async fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Reply {
        let page = Page::of(uri.path());
        let token_shown = self.shows_token(headers);
        if let Some(refusal) = self.refuse(page, token_shown, uri, headers) {
            return refusal;
        }
        let Some(page) = page else { return error(StatusCode::NOT_FOUND, "not found") };
        if !page.takes(method) {
            let mut reply = error(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method");
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(page.methods()));
            return reply;
        }
        match page {
            Page::Health => text(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
            Page::Readiness => self.readiness().await,
            Page::Metrics => self.metrics(headers),
            Page::Rules => rules(StatusCode::OK, &self.source.rules()),
            Page::Reload => self.reload().await,
            Page::OpenApi => text(StatusCode::OK, "application/json", OPENAPI),
        }
    }

    fn refuse(&self, page: Option<Page>, token_shown: bool, uri: &Uri, headers: &HeaderMap) -> Option<Reply> {
        let Some(host) = host_of(uri, headers) else {
            return Some(error(StatusCode::BAD_REQUEST, "send exactly one Host"));
        };
        if !token_shown && !names_this_machine(host) {
            return Some(error(StatusCode::FORBIDDEN, "Host must be an IP address or localhost"));
        }
        if comes_from_another_site(host, headers) {
            return Some(error(StatusCode::FORBIDDEN, "web pages of other origins may not use this listener"));
        }
        let open = self.token.is_none() || page.is_some_and(Page::is_probe);
        (!open && !token_shown).then(|| {
            let mut reply = error(StatusCode::UNAUTHORIZED, "send the admin token as Authorization: Bearer");
            reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            reply
        })
    }

    /// Whether the request shows the token; false when none is configured.
    fn shows_token(&self, headers: &HeaderMap) -> bool {
        let (Some(token), Some(credentials)) = (&self.token, only(headers, &AUTHORIZATION)) else { return false };
        let Some((scheme, shown)) = credentials.split_once(' ') else { return false };
        // Every secret is compared, so that the time tells nothing about which of them is near.
        let equal = |secret: &crate::rules::Secret| verify_slices_are_equal(secret.expose(), shown.as_bytes()).is_ok();
        let matching = token.verifying().filter(|secret| equal(secret)).count();
        scheme.eq_ignore_ascii_case("bearer") && matching > 0
    }

    async fn readiness(&self) -> Reply {
        let ready = tokio::time::timeout(CHECK_TIMEOUT, self.source.ready()).await;
        let ready = ready.unwrap_or_else(|_| Err("the checks do not come to an end".to_owned()));
        match ready {
            Ok(()) => text(StatusCode::OK, "text/plain; charset=utf-8", "ready\n"),
            Err(reason) => error(StatusCode::SERVICE_UNAVAILABLE, &reason),
        }
    }

    /// In the format that the scraper asks for; without a word about it, in the one that every scraper reads.
    fn metrics(&self, headers: &HeaderMap) -> Reply {
        let page = self.source.metrics();
        if takes_openmetrics(headers) {
            text(StatusCode::OK, metrics::CONTENT_TYPE, page)
        } else {
            text(StatusCode::OK, classic::CONTENT_TYPE, classic::classic(&page))
        }
    }

    async fn reload(&self) -> Reply {
        let info = self.source.reload().await;
        let status = if info.error.is_none() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
        rules(status, &info)
    }
}

/// Whether `Accept` names the format. Scrapers that know it ask for it first, so that weights are not looked at.
fn takes_openmetrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    ranges.filter_map(|range| range.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case(OPENMETRICS))
}

/// The only value of a header that is sent once, as text.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The one `Host`; an absolute request target must say the same.
fn host_of<'a>(uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = only(headers, &HOST)?;
    uri.authority().is_none_or(|authority| authority.as_str() == host).then_some(host)
}

/// Whether `Host` is an IP address or `localhost`, with or without a port.
fn names_this_machine(host: &str) -> bool {
    let without_port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(_, port)| is_port(port)).map(|(address, _)| address),
        None => host.find(':').map_or(Some(host), |at| is_port(&host[at..]).then_some(&host[..at])),
    };
    without_port.is_some_and(|name| name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

/// Nothing, or a colon and a port.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

/// Browsers name the origin of what may change something, and newer ones the relation of every request.
fn comes_from_another_site(host: &str, headers: &HeaderMap) -> bool {
    let own =
        |origin: &HeaderValue| origin.as_bytes().strip_prefix(b"http://").is_some_and(|rest| rest == host.as_bytes());
    let same = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get_all(ORIGIN).iter().any(|origin| !own(origin))
        || headers.get_all("sec-fetch-site").iter().any(|site| !same(site))
}

fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    reply
}

fn error(status: StatusCode, message: &str) -> Reply {
    let body = serde_json::json!({ "error": { "code": status.as_u16(), "message": message } });
    text(status, "application/json", format!("{body}\n"))
}

fn rules(status: StatusCode, info: &RulesInfo) -> Reply {
    let shown = ShownRules {
        version: &info.version,
        loaded_at: rfc3339(info.loaded_at),
        error: info.error.as_deref(),
        needs_restart: &info.needs_restart,
        problems: &info.problems,
        problem_count: info.problem_count,
        warnings: &info.warnings,
        warning_count: info.warning_count,
        certificate: ShownCertificate {
            not_after: info.certificate.not_after.map(rfc3339),
            error: info.certificate.error.as_deref(),
        },
    };
    let body = serde_json::to_string(&shown).unwrap_or_default();
    text(status, "application/json", body + "\n")
}

fn rfc3339(moment: UnixMillis) -> String {
    let moment = jiff::Timestamp::from_millisecond(moment.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{moment:.3}")
}

#[derive(serde::Serialize)]
struct ShownRules<'a> {
    version: &'a str,
    loaded_at: String,
    error: Option<&'a str>,
    needs_restart: &'a [&'static str],
    problems: &'a [ProblemInfo],
    problem_count: usize,
    warnings: &'a [String],
    warning_count: usize,
    certificate: ShownCertificate<'a>,
}

#[derive(serde::Serialize)]
struct ShownCertificate<'a> {
    not_after: Option<String>,
    error: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::rules::Secret;

    #[derive(Default)]
    struct Source {
        obstacle: Mutex<Option<String>>,
        reload_error: Mutex<Option<String>>,
        reloads: AtomicUsize,
        page_bytes: AtomicUsize,
    }

    impl AdminSource for Source {
        fn ready(&self) -> Pending<'_, Result<(), String>> {
            let obstacle = self.obstacle.lock().unwrap().clone();
            Box::pin(std::future::ready(obstacle.map_or(Ok(()), Err)))
        }

        fn rules(&self) -> RulesInfo {
            let error = self.reload_error.lock().unwrap().clone();
            let problem = ProblemInfo {
                file: "gateway.toml".to_owned(),
                line: 3,
                column: 1,
                severity: "error",
                message: "\"x\"".to_owned(),
                suggestion: None,
            };
            RulesInfo {
                version: "00aa".to_owned(),
                loaded_at: UnixMillis(1_772_409_600_007),
                needs_restart: vec!["server.listen"],
                problems: error.iter().map(|_| problem.clone()).collect(),
                problem_count: error.iter().count(),
                warnings: vec!["a".to_owned()],
                warning_count: 1,
                certificate: CertificateInfo { not_after: Some(UnixMillis(1_772_409_600_000)), error: None },
                error,
            }
        }

        fn reload(&self) -> Pending<'_, RulesInfo> {
            self.reloads.fetch_add(1, Ordering::SeqCst);
            Box::pin(std::future::ready(self.rules()))
        }

        fn metrics(&self) -> String {
            match self.page_bytes.load(Ordering::SeqCst) {
                0 => "# EOF\n".to_owned(),
                length => "#".repeat(length),
            }
        }
    }

    struct Running {
        address: SocketAddr,
        source: Arc<Source>,
        _serving: JoinSet<()>,
    }

    async fn start(token: Option<&str>) -> Running {
        let admin = Admin::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, source) = (admin.address(), Arc::new(Source::default()));
        let token = token.and_then(|text| Secrets::new(vec![Secret::new(b"next"), Secret::new(text.as_bytes())]));
        let mut serving = JoinSet::new();
        serving.spawn(admin.serve(source.clone(), token));
        Running { address, source, _serving: serving }
    }

    impl Running {
        /// Sends a request line and headers, and reads the whole reply.
        async fn ask(&self, line: &str, headers: &[&str]) -> (u16, String) {
            let mut socket = TcpStream::connect(self.address).await.unwrap();
            let head = format!("{line} HTTP/1.1\r\nConnection: close\r\n{}\r\n\r\n", headers.join("\r\n"));
            let head = if headers.is_empty() { head.replace("\r\n\r\n\r\n", "\r\n\r\n") } else { head };
            socket.write_all(head.as_bytes()).await.unwrap();
            let mut reply = String::new();
            socket.read_to_string(&mut reply).await.unwrap();
            let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
            (status, reply)
        }

        async fn status(&self, line: &str, headers: &[&str]) -> u16 {
            self.ask(line, headers).await.0
        }
    }

    fn body(reply: &str) -> &str {
        reply.split_once("\r\n\r\n").unwrap().1.trim_end()
    }

    const LOCAL: &str = "Host: localhost:9090";

    #[tokio::test]
    async fn every_page_answers() {
        let admin = start(None).await;
        assert_eq!(body(&admin.ask("GET /healthz", &[LOCAL]).await.1), "ok");
        assert_eq!(body(&admin.ask("GET /readyz", &[LOCAL]).await.1), "ready");
        let (status, reply) = admin.ask("GET /metrics", &[LOCAL]).await;
        assert!(status == 200 && reply.contains(classic::CONTENT_TYPE) && body(&reply).is_empty(), "{reply}");
        for accept in [
            "application/openmetrics-text",
            "Application/OpenMetrics-Text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            "text/plain, application/openmetrics-text",
        ] {
            let (status, reply) = admin.ask("GET /metrics", &[LOCAL, &format!("Accept: {accept}")]).await;
            assert!(status == 200 && reply.contains(metrics::CONTENT_TYPE) && body(&reply) == "# EOF", "{reply}");
        }
        for accept in ["*/*", "text/plain", "application/openmetrics-texts"] {
            let (_, reply) = admin.ask("GET /metrics", &[LOCAL, &format!("Accept: {accept}")]).await;
            assert!(reply.contains(classic::CONTENT_TYPE), "{reply}");
        }
        let (_, reply) = admin.ask("GET /api/rules", &[LOCAL]).await;
        assert_eq!(
            body(&reply),
            concat!(
                r#"{"version":"00aa","loaded_at":"2026-03-02T00:00:00.007Z","error":null,"needs_restart":["server.listen"],"#,
                r#""problems":[],"problem_count":0,"warnings":["a"],"warning_count":1,"#,
                r#""certificate":{"not_after":"2026-03-02T00:00:00.000Z","error":null}}"#
            )
        );
        let (status, reply) = admin.ask("GET /nothing", &[LOCAL]).await;
        assert_eq!((status, body(&reply)), (404, r#"{"error":{"code":404,"message":"not found"}}"#));
        let (status, reply) = admin.ask("POST /metrics", &[LOCAL]).await;
        assert!(status == 405 && reply.contains("allow: GET, HEAD\r\n"), "{reply}");
        assert_eq!(admin.status("GET /api/rules/reload", &[LOCAL]).await, 405);
        let (status, reply) = admin.ask("GET /api/openapi.json", &[LOCAL]).await;
        assert!(status == 200 && reply.contains("content-type: application/json\r\n"), "{reply}");
        assert_eq!(body(&reply), OPENAPI.trim_end());
        assert_eq!(admin.status("POST /api/openapi.json", &[LOCAL]).await, 405);
        assert_eq!(body(&admin.ask("HEAD /healthz", &[LOCAL]).await.1), "");
        let (_, reply) = admin.ask("GET /healthz", &[LOCAL, "X-Request-Id: probe-7"]).await;
        assert!(reply.contains("x-request-id: probe-7\r\n"), "{reply}");
        assert!(admin.ask("GET /healthz", &[]).await.1.contains("x-request-id: "));
    }

    #[tokio::test]
    async fn readiness_says_what_stands_in_the_way() {
        let admin = start(None).await;
        *admin.source.obstacle.lock().unwrap() = Some("draining".to_owned());
        let (status, reply) = admin.ask("GET /readyz", &[LOCAL]).await;
        assert_eq!((status, body(&reply)), (503, r#"{"error":{"code":503,"message":"draining"}}"#));
        assert_eq!(admin.status("GET /healthz", &[LOCAL]).await, 200);
    }

    #[tokio::test]
    async fn a_refused_reload_tells_why() {
        let admin = start(None).await;
        assert_eq!(admin.status("POST /api/rules/reload", &[LOCAL]).await, 200);
        *admin.source.reload_error.lock().unwrap() = Some("gateway.toml:3:1: \"x\"".to_owned());
        let (status, reply) = admin.ask("POST /api/rules/reload", &[LOCAL]).await;
        assert!(
            status == 422 && body(&reply).contains(r#""error":"gateway.toml:3:1: \"x\"","needs_restart":["#),
            "{reply}"
        );
        let problem =
            r#"{"file":"gateway.toml","line":3,"column":1,"severity":"error","message":"\"x\"","suggestion":null}"#;
        assert!(body(&reply).contains(&format!("\"problems\":[{problem}],\"problem_count\":1,")), "{reply}");
        assert_eq!(admin.source.reloads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn no_web_page_can_talk_to_it() {
        let admin = start(None).await;
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9090", "[::1]:9090", "10.1.2.3:80"] {
            assert_eq!(admin.status("GET /healthz", &[&format!("Host: {host}")]).await, 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:9090", "127.0.0.1.evil.example", "[::1", "localhost:x", "0x7f.1"]
        {
            assert_eq!(admin.status("GET /healthz", &[&format!("Host: {host}")]).await, 403, "{host}");
        }
        assert_eq!(admin.status("GET /healthz", &[]).await, 400);
        assert_eq!(admin.status("GET /healthz", &[LOCAL, LOCAL]).await, 400);
        assert_eq!(admin.status("GET http://evil.example/healthz", &[LOCAL]).await, 400);
        let reload = "POST /api/rules/reload";
        for foreign in [
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: https://localhost:9090",
            "Origin: http://localhost:8080",
            "Sec-Fetch-Site: cross-site",
        ] {
            assert_eq!(admin.status(reload, &[LOCAL, foreign]).await, 403, "{foreign}");
        }
        assert_eq!(admin.source.reloads.load(Ordering::SeqCst), 0);
        assert_eq!(admin.status(reload, &[LOCAL, "Origin: http://localhost:9090"]).await, 200);
    }

    #[tokio::test]
    async fn the_token_opens_all_but_probes() {
        let admin = start(Some("s3cret")).await;
        for probe in ["GET /healthz", "GET /readyz"] {
            assert_eq!(admin.status(probe, &[LOCAL]).await, 200);
        }
        for headers in [
            &[LOCAL][..],
            &[LOCAL, "Authorization: Bearer wrong"],
            &[LOCAL, "Authorization: Bearer s3cret2"],
            &[LOCAL, "Authorization: Basic s3cret"],
            &[LOCAL, "Authorization: s3cret"],
            &[LOCAL, "Authorization: Bearer s3cret", "Authorization: Bearer s3cret"],
        ] {
            for line in
                ["GET /metrics", "GET /api/rules", "POST /api/rules/reload", "GET /api/openapi.json", "GET /nothing"]
            {
                let (status, reply) = admin.ask(line, headers).await;
                assert!(status == 401 && reply.contains("www-authenticate: Bearer"), "{line} {headers:?}: {reply}");
            }
        }
        for good in ["Authorization: Bearer s3cret", "authorization: bearer next"] {
            assert_eq!(admin.status("GET /metrics", &[LOCAL, good]).await, 200);
            assert_eq!(admin.status("GET /metrics", &["Host: admin.example", good]).await, 200);
            let origin = "Origin: http://evil.example";
            assert_eq!(admin.status("GET /metrics", &["Host: admin.example", good, origin]).await, 403);
        }
        assert_eq!(admin.status("GET /readyz", &["Host: admin.example"]).await, 403);
    }

    #[tokio::test]
    async fn a_connection_serves_one_request() {
        let admin = start(None).await;
        let mut socket = TcpStream::connect(admin.address).await.unwrap();
        socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.unwrap();
        assert!(reply.contains("connection: close\r\n") && body(&reply) == "ok", "{reply}");
    }

    #[tokio::test]
    async fn what_is_over_the_limit_is_closed_at_once() {
        let admin = start(None).await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS {
            silent.push(TcpStream::connect(admin.address).await.unwrap());
        }
        let mut newest = TcpStream::connect(admin.address).await.unwrap();
        assert!(matches!(newest.read(&mut [0]).await, Ok(0) | Err(_)), "closed without a word");
        silent.truncate(CONNECTIONS / 2);
        // The server sees them leave a moment later.
        loop {
            let mut socket = TcpStream::connect(admin.address).await.unwrap();
            let mut reply = Vec::new();
            let asked = socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
            if asked.is_ok() && socket.read_to_end(&mut reply).await.is_ok() && reply.starts_with(b"HTTP/1.1 200") {
                break;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_dropped() {
        let admin = start(None).await;
        admin.source.page_bytes.store(32 * 1024 * 1024, Ordering::SeqCst);
        let mut socket = TcpStream::connect(admin.address).await.unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        tokio::time::sleep(CONNECTION_TIMEOUT * 2).await;
        let mut reply = Vec::new();
        let _ = socket.read_to_end(&mut reply).await;
        assert!(reply.len() < 32 * 1024 * 1024, "{}", reply.len());
    }

    #[tokio::test]
    async fn a_port_in_use_is_said_in_one_line() {
        let admin = start(None).await;
        let message = Admin::bind(admin.address).await.unwrap_err().to_string();
        let start = format!("cannot listen on {} ([admin] listen): ", admin.address);
        assert!(message.starts_with(&start) && !message.contains('\n'), "{message}");
    }
}
