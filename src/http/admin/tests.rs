//! Tests of the admin listener over real sockets.

mod callbacks;
mod sign_in;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::listen::{CONNECTION_TIMEOUT, CONNECTIONS};
use super::server::OPENAPI;
use super::*;
use crate::auth::Interface;
use crate::callback::Sampled;
use crate::clock::{Clock as _, Random, SystemRandomness};
use crate::domain::{CallbackUrl, MerchantId, UnixMillis};
use crate::engine::tests::World;
use crate::operations::Overdue;
use crate::rules::{AdminListen, LiveRules, LoadOptions, Loader, Merchant, ReloadOutcome, RuleSet};
use crate::shadow::{Minimums, Readiness, read_readiness};
use crate::store::{
    AttentionCounts, CallbackClaim, CallbackNext, CallbackTarget, CallbackTry, Store, StoreError, TryOutcome,
};
use crate::telemetry::{History, HistorySnapshot, RefusedRequests, metrics, prometheus_text};

struct Source {
    not_ready: Mutex<Option<String>>,
    /// Why the operations that need attention cannot be counted.
    uncounted: Mutex<Option<String>>,
    reload_error: Mutex<Option<String>>,
    reloads: AtomicUsize,
    page_bytes: AtomicUsize,
    /// Reports of readiness wait for it.
    gate: Semaphore,
    /// How many have waited.
    waiting: AtomicUsize,
    refused: RefusedRequests,
    world: World,
    random: SystemRandomness,
    live: LiveRules,
}

impl Source {
    /// Creates a process whose `[admin]` has these lines.
    fn new(admin: &str) -> Self {
        Self::of(World::new(), admin)
    }

    /// Creates a process around an engine and its store.
    fn of(world: World, admin: &str) -> Self {
        world.edit("gateway.toml", &gateway(&world, admin));
        let mut loader = Loader::new(&world.rules_directory(), LoadOptions::default());
        let first = loader.load(world.clock.now(), None).unwrap_or_else(|problems| panic!("{problems}"));
        let live = LiveRules::new(loader, first, world.clock.clone());
        Self {
            not_ready: Mutex::default(),
            uncounted: Mutex::default(),
            reload_error: Mutex::default(),
            reloads: AtomicUsize::default(),
            page_bytes: AtomicUsize::default(),
            gate: Semaphore::new(1),
            waiting: AtomicUsize::default(),
            refused: RefusedRequests::default(),
            world,
            random: SystemRandomness::default(),
            live,
        }
    }

    /// Replaces the lines of `[admin]` and reloads.
    fn edit(&self, admin: &str) {
        self.world.edit("gateway.toml", &gateway(&self.world, admin));
        let outcome = self.live.reload();
        assert!(matches!(outcome, ReloadOutcome::Loaded { .. }), "{outcome:?}");
    }
}

/// The world's `gateway.toml` with these lines of `[admin]`.
fn gateway(world: &World, admin: &str) -> String {
    let rest = std::fs::read_to_string(world.rules_directory().join("gateway.toml")).unwrap();
    let rest = rest.split("[admin]").next().unwrap();
    format!("{rest}\n[admin]\nlisten = \"127.0.0.1:0\"\nhosts = [\"console.example\", \"fd00::0001\"]\n{admin}\n")
}

impl AdminSource for Source {
    fn ready(&self) -> Pending<'_, Result<(), String>> {
        let not_ready = self.not_ready.lock().unwrap().clone();
        Box::pin(std::future::ready(not_ready.map_or(Ok(()), Err)))
    }

    fn rule_set(&self) -> Arc<RuleSet> {
        self.live.current()
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
            excerpt: "3 | x".to_owned(),
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

    fn store(&self) -> &dyn Store {
        &**self.world.engine.store()
    }

    fn attention(&self) -> Pending<'_, Result<AttentionCounts, String>> {
        let uncounted = self.uncounted.lock().unwrap().clone();
        Box::pin(async {
            let counted = self.store().attention(self.overdue().late).await;
            uncounted.map_or_else(|| counted.map_err(|error| error.to_string()), Err)
        })
    }

    fn overdue(&self) -> Overdue {
        Overdue::default()
    }

    fn count_resolution(&self, _outcome: &'static str) {}

    fn history(&self) -> HistorySnapshot {
        History::default().snapshot()
    }

    fn refused(&self) -> &RefusedRequests {
        &self.refused
    }

    fn open_circuits(&self) -> (usize, Vec<String>) {
        (1, vec!["https://shop.example:443".to_owned()])
    }

    fn rules_directory(&self) -> String {
        self.world.rules_directory().display().to_string()
    }

    fn node(&self) -> String {
        "node-a".to_owned()
    }

    fn random(&self) -> &dyn Random {
        &self.random
    }

    fn sample(&self, request: SampleRequest) -> Pending<'_, Result<Sampled, String>> {
        if request.merchant.as_str() == "unknown" {
            return Box::pin(std::future::ready(Err("there is no such merchant".to_owned())));
        }
        let outcome = TryOutcome::Status(204);
        Box::pin(std::future::ready(Ok(Sampled {
            id: "sample_1".to_owned(),
            through: request.through.unwrap_or(Interface::V1),
            url: request.url.unwrap_or_else(|| CallbackUrl::new("https://shop.example/default").unwrap()),
            body: request.api_key.unwrap_or_default(),
            tried: CallbackTry { at: UnixMillis(0), duration: Duration::from_millis(3), outcome },
        })))
    }

    fn readiness(&self, merchants: Vec<Arc<Merchant>>) -> Pending<'_, Result<Readiness, StoreError>> {
        let world = &self.world;
        Box::pin(async move {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            drop(self.gate.acquire().await);
            let (store, minimums) = (&**world.engine.store(), Minimums::default());
            read_readiness(store, &world.rules(), &merchants, minimums, world.clock.now()).await
        })
    }

    fn now(&self) -> UnixMillis {
        self.world.clock.now()
    }

    fn monotonic(&self) -> std::time::Instant {
        self.world.clock.monotonic()
    }
}

struct Running {
    address: SocketAddr,
    source: Arc<Source>,
    _serving: JoinSet<()>,
}

/// Starts a listener whose `[admin]` has these lines.
async fn start(admin: &str) -> Running {
    start_with(Source::new(admin)).await
}

async fn start_with_world(world: World) -> Running {
    start_with(Source::of(world, "")).await
}

async fn start_with(source: Source) -> Running {
    let admin = Admin::bind(&source.rule_set().gateway.admin.listen).await.unwrap();
    let [AdminListen::Tcp(address)] = *admin.places() else { panic!("{:?}", admin.places()) };
    let source = Arc::new(source);
    let mut serving = JoinSet::new();
    serving.spawn(admin.serve(source.clone(), None, Arc::new(SystemRandomness::default())));
    Running { address, source, _serving: serving }
}

impl Running {
    /// Sends a request line and headers, and reads the whole reply.
    async fn send(&self, line: &str, headers: &[&str]) -> (u16, String) {
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
        self.send(line, headers).await.0
    }
}

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").unwrap().1.trim_end()
}

const LOCAL: &str = "Host: localhost:9090";

#[tokio::test]
async fn every_path_answers() {
    let admin = start("").await;
    assert_eq!(body(&admin.send("GET /healthz", &[LOCAL]).await.1), "ok");
    assert_eq!(body(&admin.send("GET /readyz", &[LOCAL]).await.1), "ready");
    let (status, reply) = admin.send("GET /metrics", &[LOCAL]).await;
    assert!(status == 200 && reply.contains(prometheus_text::CONTENT_TYPE) && body(&reply).is_empty(), "{reply}");
    for accept in [
        "application/openmetrics-text",
        "Application/OpenMetrics-Text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        "text/plain, application/openmetrics-text",
    ] {
        let (status, reply) = admin.send("GET /metrics", &[LOCAL, &format!("Accept: {accept}")]).await;
        assert!(status == 200 && reply.contains(metrics::CONTENT_TYPE) && body(&reply) == "# EOF", "{reply}");
    }
    for accept in ["*/*", "text/plain", "application/openmetrics-texts"] {
        let (_, reply) = admin.send("GET /metrics", &[LOCAL, &format!("Accept: {accept}")]).await;
        assert!(reply.contains(prometheus_text::CONTENT_TYPE), "{reply}");
    }
    let (_, reply) = admin.send("GET /api/rules", &[LOCAL]).await;
    assert_eq!(
        body(&reply),
        concat!(
            r#"{"version":"00aa","loaded_at":"2026-03-02T00:00:00.007Z","error":null,"needs_restart":["server.listen"],"#,
            r#""problems":[],"problem_count":0,"warnings":["a"],"warning_count":1,"#,
            r#""certificate":{"not_after":"2026-03-02T00:00:00.000Z","error":null}}"#
        )
    );
    let (status, reply) = admin.send("GET /nothing", &[LOCAL]).await;
    assert_eq!((status, body(&reply)), (404, r#"{"error":{"code":404,"message":"not found"}}"#));
    let (status, reply) = admin.send("POST /metrics", &[LOCAL]).await;
    assert!(status == 405 && reply.contains("Allow: GET, HEAD\r\n"), "{reply}");
    assert_eq!(admin.status("GET /api/rules/reload", &[LOCAL]).await, 405);
    let (status, reply) = admin.send("GET /api/openapi.json", &[LOCAL]).await;
    assert!(status == 200 && reply.contains("Content-Type: application/json\r\n"), "{reply}");
    assert_eq!(body(&reply), OPENAPI.trim_end());
    assert_eq!(admin.status("POST /api/openapi.json", &[LOCAL]).await, 405);
    assert_eq!(body(&admin.send("HEAD /healthz", &[LOCAL]).await.1), "");
    let (_, reply) = admin.send("GET /healthz", &[LOCAL, "X-Request-Id: probe-7"]).await;
    assert!(reply.contains("X-Request-Id: probe-7\r\n"), "{reply}");
    assert!(admin.send("GET /healthz", &[]).await.1.contains("X-Request-Id: "));
}

#[tokio::test]
async fn a_user_s_error_pages_have_the_navigation() {
    let admin = start("").await;
    let own = "Origin: http://localhost:9090";
    let html = "Accept: text/html";
    for (line, headers, expected) in [
        ("GET /nothing", &[html][..], 404),
        ("GET /rules/", &[html], 404),
        ("GET /merchants/none", &[], 404),
        ("GET /operations/none", &[], 404),
        ("GET /rules/reload", &[], 405),
        ("POST /explain", &[own], 415),
        ("POST /rules/reload", &["Origin: https://evil.example"], 403),
    ] {
        let (status, reply) = admin.send(line, &[&[LOCAL][..], headers].concat()).await;
        assert!(status == expected && reply.contains("<nav aria-label=\"Console\">"), "{line}: {reply}");
    }
    let (status, reply) = admin.send("GET /rules", &["Host: evil.example", html]).await;
    assert!(status == 403 && !reply.contains("<nav") && !reply.contains("<b>local</b>"), "another name: {reply}");
}

#[tokio::test]
async fn readiness_names_the_reason() {
    let admin = start("").await;
    *admin.source.not_ready.lock().unwrap() = Some("draining".to_owned());
    let (status, reply) = admin.send("GET /readyz", &[LOCAL]).await;
    assert_eq!((status, body(&reply)), (503, r#"{"error":{"code":503,"message":"draining"}}"#));
    assert_eq!(admin.status("GET /healthz", &[LOCAL]).await, 200);
}

#[tokio::test]
async fn a_rejected_reload_returns_the_problems() {
    let admin = start("").await;
    assert_eq!(admin.status("POST /api/rules/reload", &[LOCAL]).await, 200);
    *admin.source.reload_error.lock().unwrap() = Some("gateway.toml:3:1: \"x\"".to_owned());
    let (status, reply) = admin.send("POST /api/rules/reload", &[LOCAL]).await;
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
async fn web_pages_are_refused() {
    let admin = start("").await;
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.9.9.9:9090",
        "[::1]:9090",
        "console.example",
        "Console.Example:443",
        "[fd00::1]:9090",
    ] {
        assert_eq!(admin.status("GET /metrics", &[&format!("Host: {host}")]).await, 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example:9090",
        "127.0.0.1.evil.example",
        "[::1",
        "localhost:x",
        "0x7f.1",
        "10.1.2.3:80",
        "a.console.example",
        "console.example.",
        "console.example:x",
    ] {
        for line in ["GET /metrics", "GET /", "GET /sign-in", "GET /console/x.css", "GET /nothing", "GET /healthz/"] {
            assert_eq!(admin.status(line, &[&format!("Host: {host}")]).await, 403, "{line} {host}");
        }
        for probe in ["GET /healthz", "HEAD /readyz"] {
            let host = format!("Host: {host}");
            assert_eq!(admin.status(probe, &[&host]).await, 200, "{probe} {host}");
            assert_eq!(admin.status(probe, &[&host, "Authorization: Bearer x"]).await, 200, "{probe} {host}");
            assert_eq!(admin.status(probe, &[&host, "Origin: https://other.example"]).await, 403, "{probe} {host}");
        }
    }
    for line in ["GET /healthz", "GET /metrics"] {
        assert_eq!(admin.status(line, &[]).await, 400);
        assert_eq!(admin.status(line, &[LOCAL, LOCAL]).await, 400);
    }
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
async fn everything_but_probes_requires_the_token() {
    let admin = start("token = [\"next-of-16-or-more\", \"s3cret-of-16-or-more\"]").await;
    for probe in ["GET /healthz", "GET /readyz"] {
        assert_eq!(admin.status(probe, &[LOCAL]).await, 200);
    }
    for headers in [
        &[LOCAL][..],
        &[LOCAL, "Authorization: Bearer wrong"],
        &[LOCAL, "Authorization: Bearer s3cret-of-16-or-more2"],
        &[LOCAL, "Authorization: Basic s3cret-of-16-or-more"],
        &[LOCAL, "Authorization: s3cret-of-16-or-more"],
        &[LOCAL, "Authorization: Bearer s3cret-of-16-or-more", "Authorization: Bearer s3cret-of-16-or-more"],
    ] {
        for line in
            ["GET /metrics", "GET /api/rules", "POST /api/rules/reload", "GET /api/openapi.json", "GET /nothing"]
        {
            admin.source.world.clock.advance(Duration::from_mins(1));
            let (status, reply) = admin.send(line, headers).await;
            assert!(
                status == 401 && reply.contains("Www-Authenticate: Bearer realm=\"paybridge\"\r\n"),
                "{line} {headers:?}: {reply}"
            );
        }
    }
    for good in ["Authorization: Bearer s3cret-of-16-or-more", "authorization: bearer next-of-16-or-more"] {
        assert_eq!(admin.status("GET /metrics", &[LOCAL, good]).await, 200);
        assert_eq!(admin.status("GET /metrics", &["Host: admin.example", good]).await, 200);
        let origin = "Origin: http://evil.example";
        assert_eq!(admin.status("GET /metrics", &["Host: admin.example", good, origin]).await, 403);
    }
    assert_eq!(admin.status("GET /readyz", &["Host: admin.example"]).await, 200);
    assert_eq!(admin.status("GET /api/rules", &["Host: admin.example"]).await, 403);
}

#[tokio::test]
async fn a_probe_of_http_1_0_needs_no_host() {
    let admin = start("").await;
    for (target, head, status) in [
        ("/readyz", "", "200"),
        ("/readyz", "Host: 10.1.2.3:9090\r\n", "200"),
        ("/readyz", "Host: a\r\nHost: a\r\n", "400"),
        ("/metrics", "", "403"),
    ] {
        let mut socket = TcpStream::connect(admin.address).await.unwrap();
        socket.write_all(format!("GET {target} HTTP/1.0\r\n{head}\r\n").as_bytes()).await.unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.unwrap();
        assert_eq!(reply.split(' ').nth(1), Some(status), "{target} {head}: {reply}");
    }
}

#[tokio::test]
async fn a_connection_serves_one_request() {
    let admin = start("").await;
    let mut socket = TcpStream::connect(admin.address).await.unwrap();
    socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.unwrap();
    assert!(reply.contains("Connection: close\r\n") && body(&reply) == "ok", "{reply}");
}

/// Opens connections, each of which sends this.
async fn opened(admin: &Running, sent: &str) -> Vec<TcpStream> {
    let mut opened = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut socket = TcpStream::connect(admin.address).await.unwrap();
        socket.write_all(sent.as_bytes()).await.unwrap();
        opened.push(socket);
    }
    opened
}

/// Reads what a connection still receives.
async fn rest(socket: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_one_longest_without_a_whole_request() {
    let admin = start("").await;
    let form = "POST /explain HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\nbody";
    let whole = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";
    for (sent, end) in [("", whole), (&whole[..9], &whole[9..]), (form, "=abc")] {
        let mut held = opened(&admin, sent).await;
        assert_eq!(admin.status("GET /readyz", &[LOCAL]).await, 200, "{sent:?}");
        for kept in &mut held[1..] {
            kept.write_all(end.as_bytes()).await.unwrap();
            assert!(rest(kept).await.starts_with("HTTP/1.1 "), "{sent:?}");
        }
        assert_eq!(rest(&mut held[0]).await, "", "{sent:?}");
    }
}

#[tokio::test]
async fn a_connection_whose_request_is_served_keeps_its_place() {
    let admin = start("").await;
    let source = Arc::clone(&admin.source);
    let gate = source.gate.acquire().await.unwrap();
    let mut served = opened(&admin, "GET /api/readiness HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    while source.waiting.load(Ordering::SeqCst) < CONNECTIONS {
        tokio::task::yield_now().await;
    }
    let mut newest = TcpStream::connect(admin.address).await.unwrap();
    assert_eq!(rest(&mut newest).await, "", "closed without a reply");
    drop(gate);
    for socket in &mut served {
        assert!(rest(socket).await.starts_with("HTTP/1.1 200 "));
    }
    assert_eq!(admin.status("GET /readyz", &[LOCAL]).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_dropped() {
    let admin = start("").await;
    admin.source.page_bytes.store(32 * 1024 * 1024, Ordering::SeqCst);
    let mut socket = TcpStream::connect(admin.address).await.unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(CONNECTION_TIMEOUT * 2).await;
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply).await;
    assert!(reply.len() < 32 * 1024 * 1024, "{}", reply.len());
}

#[tokio::test]
async fn a_port_in_use_is_stated_in_one_line() {
    let admin = start("").await;
    let message = Admin::bind(&AdminListen::Tcp(admin.address)).await.unwrap_err().to_string();
    let start = format!("`admin.listen`: cannot listen on {}: ", admin.address);
    assert!(message.starts_with(&start) && !message.contains('\n'), "{message}");
}

/// Sends a request; returns the status and the JSON of the reply.
async fn json(admin: &Running, line: &str) -> (u16, serde_json::Value) {
    let (status, reply) = admin.send(line, &[LOCAL]).await;
    (status, serde_json::from_str(body(&reply)).unwrap_or_else(|error| panic!("{line}: {error}: {reply}")))
}

#[tokio::test]
async fn readiness_is_reported_for_all_merchants_or_one() {
    let world = World::new();
    let gateway = std::fs::read_to_string(world.rules_directory().join("gateway.toml")).unwrap();
    world.edit("gateway.toml", &format!("{gateway}\n[legacy]\nurl = \"https://v1.example\"\n"));
    world.replace("merchants/acme.toml", "[v1]", "[v1]\nmode = \"staged\"");
    let admin = start_with_world(world).await;
    let (status, all) = json(&admin, "GET /api/readiness").await;
    let merchants: Vec<_> =
        all["merchants"].as_array().unwrap().iter().map(|one| one["merchant"].as_str().unwrap()).collect();
    assert_eq!((status, merchants), (200, vec!["acme"]));
    let (status, one) = json(&admin, "GET /api/readiness?merchant=acme").await;
    assert_eq!((status, &one["merchants"][0]), (200, &all["merchants"][0]));
    assert_eq!(one["merchants"][0]["verdict"], "not ready");
    let (_, selected) = json(&admin, "GET /api/readiness?merchant=acme&shop=card&kind=payin").await;
    let rows = selected["merchants"][0]["rows"].as_array().unwrap();
    assert!(rows.len() == 1 && rows[0]["shop"] == "card" && rows[0]["kind"] == "payin", "{selected}");
    let (status, unknown) = json(&admin, "GET /api/readiness?shop=crad").await;
    assert_eq!(
        (status, &unknown["error"]["message"]),
        (404, &"there is no shop `crad` in the rules (did you mean `card`?)".into())
    );
    let (_, unknown) = json(&admin, "GET /api/readiness?merchant=amce").await;
    assert_eq!(unknown["error"]["message"], "there is no merchant `amce` in the rules (did you mean `acme`?)");
    for (line, expected) in [
        ("GET /api/readiness?merchant=other", 200),
        ("GET /api/readiness?merchant=nothing", 404),
        ("GET /api/readiness?merchant=a%2Fb", 404),
        ("GET /api/readiness?merchant=+acme+&shop=card&kind=payin", 200),
        ("GET /api/readiness?kind=deposit", 400),
        ("GET /api/readiness?days=7", 400),
        ("POST /api/readiness", 405),
    ] {
        assert_eq!(json(&admin, line).await.0, expected, "{line}");
    }
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let admin = start_with_world(World::new()).await;
    for (line, name) in [
        ("GET /api/callbacks?states=failed", "states"),
        ("GET /api/callbacks?state=sent", "state"),
        ("GET /api/callbacks?state=failed&state=pending", "state"),
        ("GET /api/callbacks?state=", "state"),
        ("GET /api/callbacks?merchant=a%2Fb", "merchant"),
        ("GET /api/callbacks?order_id=o", "order_id"),
        ("GET /api/callbacks?since=soon", "since"),
        ("GET /api/callbacks?until=2026-01-32", "until"),
        ("GET /api/callbacks?limit=0", "limit"),
        ("GET /api/callbacks?limit=1001", "limit"),
        ("GET /api/callbacks?after=1", "after"),
        ("POST /api/callbacks/resend", "state"),
        ("POST /api/callbacks/resend?state=delivered", "state"),
        ("POST /api/callbacks/resend?state=pending", "receiver"),
        ("POST /api/callbacks/resend?state=pending&receiver=https%3A%2F%2Fa.example%2Fcb", "receiver"),
        ("POST /api/callbacks/resend?state=pending&receiver=https%3A%2F%2Fa.example&since=1h", "since"),
        ("POST /api/callbacks/resend?state=pending&receiver=https%3A%2F%2Fa.example&after=x", "after"),
        ("POST /api/callbacks/resend?state=failed&receiver=https%3A%2F%2Fa.example", "receiver"),
        ("POST /api/callbacks/resend?state=failed&order_id=o", "order_id"),
        ("POST /api/callbacks/sample", "merchant"),
        ("POST /api/callbacks/sample?merchant=acme&kind=v3", "kind"),
        ("POST /api/callbacks/sample?merchant=acme&url=shop.example", "url"),
        ("POST /api/callbacks/sample?merchant=acme&id=1", "id"),
        ("POST /api/callbacks/cb_00000000000000010000000000000001/resend?now=1", "now"),
    ] {
        let (status, reply) = json(&admin, line).await;
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.starts_with(&format!("{name}: ")), "{line}: {status} {message}");
    }
    let line = "POST /api/callbacks/sample?merchant=acme&url=https%3A%2F%2Fu%3Ap%40localhost%2F";
    assert_eq!(json(&admin, line).await.1["error"]["message"], "url: must not contain credentials");
    for (line, allow) in [
        ("POST /api/callbacks", "GET, HEAD"),
        ("DELETE /api/callbacks/x", "GET, HEAD"),
        ("GET /api/callbacks/resend", "POST"),
        ("GET /api/callbacks/x/resend", "POST"),
        ("GET /api/callbacks/sample", "POST"),
    ] {
        let (status, reply) = admin.send(line, &[LOCAL]).await;
        assert!(status == 405 && reply.contains(&format!("Allow: {allow}\r\n")), "{line}: {reply}");
    }
    let (_, reply) = admin.send("HEAD /api/callbacks", &[LOCAL]).await;
    assert!(reply.starts_with("HTTP/1.1 200") && body(&reply).is_empty(), "{reply}");
}

#[tokio::test]
async fn the_overview_shows_the_rest_where_attention_is_not_counted() {
    let admin = start("").await;
    *admin.source.uncounted.lock().unwrap() = Some("the search takes over two seconds".to_owned());
    let (status, page) = admin.send("GET /", &[LOCAL]).await;
    assert!(status == 200 && page.contains("were not counted") && page.contains("over two seconds"), "{page}");
    assert!(!page.contains("The store does not respond"), "{page}");
}

#[tokio::test]
async fn a_sample_is_sent_as_requested() {
    let admin = start("").await;
    let (status, reply) = json(&admin, "POST /api/callbacks/sample?merchant=acme").await;
    let expected = serde_json::json!({
        "id": "sample_1", "kind": "v1", "url": "https://shop.example/default", "body": "",
        "at": "1970-01-01T00:00:00.000Z", "duration_ms": 3, "status": 204, "error": null,
    });
    assert_eq!((status, reply), (200, expected));
    let line = "POST /api/callbacks/sample?merchant=acme&key=k&kind=v2&url=http%3A%2F%2F127.0.0.1%3A1%2Fcb%3Fa";
    let (_, reply) = json(&admin, line).await;
    assert_eq!((&reply["kind"], &reply["body"]), (&"v2".into(), &"k".into()));
    assert_eq!(reply["url"], "http://127.0.0.1:1/cb?a");
    let (status, reply) = json(&admin, "POST /api/callbacks/sample?merchant=unknown").await;
    assert_eq!((status, &reply["error"]["message"]), (400, &"there is no such merchant".into()));
}
