//! A gateway over rule files and a store in a temporary directory, and requests to it.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use governor::RateLimiter;
use http::request::Builder;
use http::{HeaderMap, Method};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::*;
use crate::auth::signatures::{PageSecret, V1Input, sign_v1, sign_v2};
use crate::clock::{ManualClock, Random};
use crate::domain::{Secret, UnixMillis};
use crate::engine::Engine;
use crate::http::listener::{ConnectionInfo, HeadCheck, Peer, Protocol};
use crate::provider::Providers;
use crate::rules::{KeyEntry, LoadOptions, RuleSet, load};
use crate::service::V2Service;
use crate::store::Store;
use crate::store_settings::StoreUrl;
use crate::telemetry::{AccessLine, AccessLog, Metrics};

pub(super) const NOW: UnixMillis = UnixMillis(1_735_689_600_000);
pub(super) const V1_SECRET: &[u8] = b"the-v1-secret";
pub(super) const V2_SECRET: &[u8] = b"the-v2-secret";
pub(super) const BODY_LIMIT: usize = 1024;

pub(super) const DEPOSIT: &str = r#"{"order_id":"o-1","amount":10.5,"currency":"EUR","callback_url":"https://a.example/cb","success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":"https://a.example/f"}"#;
pub(super) const PAYIN: &str = r#"{"external_id":"o-1","amount":"10.50","currency":"EUR"}"#;

const GATEWAY: &str = r#"
[server]
public_url = "https://pay.example"
[store]
keys = ["file:../store.key"]
[limits]
unauthenticated_per_ip = { per_second = 100000, burst = 100000 }
pages_per_ip = { per_second = 100000, burst = 100000 }
"#;

/// Dialect `v1`, keys `acme-live`, `acme-far` (another network) and `acme-slow` (one request an hour).
const ACME: &str = r#"
name = "Acme"
default_shop = "card-eur"
[[api_keys]]
key = "acme-live"
v1_secret = ["a-newer-secret", "the-v1-secret"]
v2_secret = ["a-newer-secret", "the-v2-secret"]
allowed_ips = ["127.0.0.1"]
[[api_keys]]
key = "acme-far"
v1_secret = ["a-newer-secret", "the-v1-secret"]
v2_secret = ["a-newer-secret", "the-v2-secret"]
allowed_ips = ["203.0.113.0/24"]
[[api_keys]]
key = "acme-slow"
v1_secret = ["a-newer-secret", "the-v1-secret"]
v2_secret = ["a-newer-secret", "the-v2-secret"]
allowed_ips = ["127.0.0.1"]
rate_limit = { per_second = 1, burst = 1 }
[shops.card-eur]
payin = true
payout = true
[v1]
return_url = "https://acme.example/done"
deprecated_since = 2026-06-30
migration_url = "https://docs.example/v2"
"#;

/// A merchant whose dialect has an error shape and paths of its own.
const SHAPED: &str = r#"
name = "Shaped"
default_shop = "card-eur"
[[api_keys]]
key = "shaped-live"
v1_secret = ["a-newer-secret", "the-v1-secret"]
v2_secret = ["a-newer-secret", "the-v2-secret"]
allowed_ips = ["127.0.0.1"]
[shops.card-eur]
payin = true
payout = true
[v1]
dialect = "shaped"
return_url = "https://acme.example/done"
deprecated_since = 2026-06-30
migration_url = "https://docs.example/v2"
"#;

const SHAPED_DIALECT: &str = r#"
[routes]
payin = "POST /api/v1/payin"
payout = "POST /shaped"
payin_status = "GET /shaped/payin"
payout_status = "GET /shaped"
balance = "GET /shaped/balance"
transactions = "GET /shaped/transactions"
[replies]
error = '{"oops":{{ message|tojson }},"no":{{ code }}}'
"#;

const SANDBOX: &str = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n";

/// A shop that takes no new operations, with a provider that reports.
const BANK: &str = r#"
currency = "EUR"
active = false
[provider]
kind = "http"
url = "https://p.example/"
secret = ["new", "old"]
"#;

/// The rules above, whose store is to be in a directory.
pub(super) fn rules_in(directory: &Path) -> RuleSet {
    for (name, text) in [
        ("gateway.toml", GATEWAY),
        ("dialects/shaped.toml", SHAPED_DIALECT),
        ("merchants/acme.toml", ACME),
        ("merchants/shaped.toml", SHAPED),
        ("shops/card-eur.toml", SANDBOX),
        ("shops/bank-eur.toml", BANK),
    ] {
        let path = directory.join("rules").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut rules = load(&directory.join("rules"), NOW, None, LoadOptions::default()).unwrap();
    rules.gateway.store.url = StoreUrl::Sqlite(directory.join("store.db"));
    rules.gateway.limits.body = BODY_LIMIT;
    rules.version = "0123456789abcdef".into();
    slow_down(&mut rules);
    rules
}

/// Makes the rate of `acme-slow` one request an hour, so that no test depends on how fast it runs.
fn slow_down(rules: &mut RuleSet) {
    rules.api_keys.clear();
    for merchant in rules.merchants.values_mut() {
        for key in &mut Arc::get_mut(merchant).unwrap().api_keys {
            if let Some(rate) = &mut key.rate_limit {
                let hourly = governor::Quota::with_period(Duration::from_hours(1)).unwrap();
                rate.limiter = Arc::new(RateLimiter::direct(hourly));
            }
        }
        let keys = merchant.api_keys.iter().enumerate();
        let entries = keys.map(|(index, key)| (key.key.clone(), KeyEntry { merchant: Arc::clone(merchant), index }));
        rules.api_keys.extend(entries);
    }
}

/// The rules of a fixture without a change.
pub(super) fn rule_set() -> Arc<RuleSet> {
    static RULES: LazyLock<Arc<RuleSet>> = LazyLock::new(|| Arc::new(rules_in(tempfile::tempdir().unwrap().path())));
    Arc::clone(&RULES)
}

/// Every number once. The next number may be made to panic; what is drawn as bytes, such as a request's id, never does.
#[derive(Default)]
pub(super) struct Counting {
    drawn: AtomicU64,
    pub(super) panics: AtomicBool,
}

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let next = self.drawn.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.fill(0);
        for (byte, digit) in bytes.iter_mut().rev().zip(next.iter().rev()) {
            *byte = *digit;
        }
    }

    fn number(&self) -> u64 {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "a panic for {}", 4711);
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }
}

/// What was logged of each request, as text.
#[derive(Default)]
pub(super) struct LogLines(Mutex<Vec<String>>);

impl LogLines {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl AccessLog for LogLines {
    fn line(&self, line: &AccessLine<'_>) {
        self.0.lock().unwrap().push(format!("{line:?}"));
    }
}

pub(super) struct Fixture {
    pub gateway: Gateway,
    pub store: Arc<dyn Store>,
    pub lines: Arc<LogLines>,
    pub metrics: Arc<Metrics>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) random: Arc<Counting>,
    directory: tempfile::TempDir,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut RuleSet)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut rules = rules_in(directory.path());
        change(&mut rules);
        let lines = Arc::<LogLines>::default();
        let (clock, random) = (Arc::new(ManualClock::at(NOW)), Arc::<Counting>::default());
        let deps = Deps { random: random.clone(), ..Deps::open(rules, clock.clone()) };
        let page_secret = PageSecret::new(Secret::new(b"the-page-secret"));
        let engine = Arc::new(Engine::new(deps.clone(), Arc::<Providers>::default(), page_secret));
        let services = GatewayServices {
            checks: None,
            service: V2Service::Embedded(Arc::clone(&engine)),
            engine: Some(engine),
            access_log: lines.clone(),
            refused: Arc::default(),
        };
        let gateway = Gateway::new(deps.clone(), services);
        Self { gateway, store: deps.store, lines, metrics: deps.metrics, clock, random, directory }
    }

    /// A gateway whose store can answer nothing any more.
    pub(super) async fn without_store() -> Self {
        let fixture = Self::new();
        fixture.store.close().await.unwrap();
        fixture
    }

    /// How many operations are on disk.
    pub(super) fn created(&self) -> u64 {
        let database = rusqlite::Connection::open(self.directory.path().join("store.db")).unwrap();
        let count: i64 = database.query_row("SELECT count(*) FROM operations", [], |row| row.get(0)).unwrap();
        u64::try_from(count).unwrap()
    }

    /// The reply as it is.
    pub(super) async fn handle(&self, call: Call) -> Reply {
        let connection_info = call.connection_info();
        self.gateway.handle(call.into_request(), connection_info).await
    }

    pub(super) async fn send(&self, call: Call) -> Answered {
        let (head, body) = self.handle(call).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answered {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

/// A reply, read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answered {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The message of an error in the default shape.
    pub(super) fn message(&self) -> String {
        let error: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(error["error"]["code"], self.status, "{self:?}");
        assert_eq!((error.as_object().unwrap().len(), error["error"].as_object().unwrap().len()), (1, 2), "{self:?}");
        error["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// A request to be sent; a good one until it is changed.
#[derive(Clone)]
pub(super) struct Call {
    pub method: Method,
    pub target: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Pieces,
    pub peer: Peer,
    pub head_check: HeadCheck,
}

impl Call {
    pub(super) fn v2(method: Method, target: &str, body: &'static str) -> Self {
        let mut headers = vec![
            ("x-api-key", "acme-live".to_owned()),
            ("x-signature", sign_v2(&Secret::new(V2_SECRET), body.as_bytes())),
        ];
        if method == Method::POST {
            headers.push(("content-type", "application/json".to_owned()));
        }
        let peer = Peer { address: "127.0.0.1".parse().unwrap(), protocol: Protocol::Http1 };
        Self {
            method,
            target: target.to_owned(),
            headers,
            body: Pieces::of(body),
            peer,
            head_check: HeadCheck::default(),
        }
    }

    pub(super) fn v1(method: Method, target: &str, body: &'static str) -> Self {
        let mut call = Self::v2(method, target, body);
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let timestamp = NOW.seconds().to_string();
        let input = V1Input {
            timestamp: &timestamp,
            method: call.method.as_str(),
            path,
            query,
            api_key: "acme-live",
            body: body.as_bytes(),
        };
        let signature = sign_v1(&rule_set().dialects["v1"].signature, &Secret::new(V1_SECRET), &input);
        call.set("x-signature", &signature);
        call.set("x-timestamp", &timestamp);
        call
    }

    pub(super) fn deposit() -> Self {
        Self::v2(Method::POST, "/api/v2/deposits", DEPOSIT)
    }

    pub(super) fn payin() -> Self {
        Self::v1(Method::POST, "/api/v1/payin", PAYIN)
    }

    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.headers.retain(|(header, _)| *header != name);
        self.add(name, value);
    }

    pub(super) fn add(&mut self, name: &'static str, value: &str) {
        self.headers.push((name, value.to_owned()));
    }

    pub(super) fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn connection_info(&self) -> ConnectionInfo {
        ConnectionInfo { peer: self.peer, head_check: self.head_check, connection: Arc::default() }
    }

    pub(super) fn into_request(self) -> Request<Pieces> {
        let builder = Builder::new().method(self.method).uri(self.target);
        let builder = self.headers.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        builder.body(self.body).unwrap()
    }
}

/// A body in pieces, whose length may be announced.
#[derive(Clone, Default)]
pub(super) struct Pieces {
    pub data: VecDeque<Bytes>,
    pub announced: Option<u64>,
    pub trailers: bool,
    /// It never ends.
    pub stalls: bool,
}

impl Pieces {
    pub(super) fn of(text: &'static str) -> Self {
        let data: VecDeque<Bytes> = [text].into_iter().filter(|text| !text.is_empty()).map(Bytes::from).collect();
        Self { data, announced: Some(text.len() as u64), ..Self::default() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.data.pop_front() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None if self.stalls => Poll::Pending,
            None if std::mem::take(&mut self.trailers) => Poll::Ready(Some(Ok(Frame::trailers(HeaderMap::new())))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.announced == Some(0) && !self.trailers && !self.stalls
    }

    fn size_hint(&self) -> SizeHint {
        self.announced.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
