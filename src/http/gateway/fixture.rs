//! A gateway over a store in memory, and requests to it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use governor::RateLimiter;
use http::request::Builder;
use http::{HeaderMap, HeaderName};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

use http::Method;

use super::*;
use crate::auth::signatures::{V1Input, sign_v1, sign_v2};
use crate::clock::ManualClock;
use crate::domain::{
    Amount, Balance, Bucket, Currency, Fingerprint, FingerprintKey, HistoryQuery, MerchantId, Operation, OperationView,
    OrderId, Outcome, Page, Preparation, ShopCode, Status, StatusRecord, TransactionId, UnixMillis,
};
use crate::engine::{AtCreation, NextAction, PageSecret, Provider};
use crate::http::{ConnectionInfo, Peer, Protocol};
use crate::rules::{
    AccountRule, AddressSet, Algorithm, ApiKey, BalanceRules, Brand, CallbackRules, CallbackSignature, CallbackStyle,
    ClientRules, Dialect, Encoding, EngineRules, GatewayRules, IdPolicy, KeyEntry, Limits, Merchant, PageRules,
    PaymentChecks, ProviderRules, Quota, RateLimit, Recipe, Replies, Secret, Secrets, Segment, ServerRules, Shop,
    ShopAccess, ShopSide, StatusWords, StoreKeys, StoreRules, StoreUrl, TimestampFormat, TlsRules, UnknownFields,
    V1Route, V1Rules, built_in_pages,
};
use crate::store::{
    Audit, AuditProgress, CallbackClaim, CallbackCursor, CallbackId, CallbackJob, CallbackLease, CallbackNext,
    CallbackQuery, CallbackQueue, CallbackRecord, CallbackTry, Claim, CompletionOutcome, CreateOutcome, EngineAnswer,
    EntryId, EntryProgress, ExpireRequest, Fields, InsertOutcome, Journal, JournalEntry, JournalOutcome, NewOperation,
    NotKept, OrderLookup, Outbox, OutboxSize, PendingCreate, ProviderJob, ProviderQueue, RelayTarget, Relayed,
    RemoteOperation, Resent, Reservations, StatusUpdate, Store, StoreError, StoreFuture, Stored, V1Lookup,
};
use crate::telemetry::AccessLine;
use crate::v2::Embedded;

pub(super) const NOW: UnixMillis = UnixMillis(1_735_689_600_000);
pub(super) const V1_SECRET: &[u8] = b"the-v1-secret";
pub(super) const V2_SECRET: &[u8] = b"the-v2-secret";
pub(super) const BODY_LIMIT: usize = 1024;

/// An id whose lookup panics, and one whose lookup finds the store away.
pub(super) const PANICS: &str = "13";
pub(super) const AWAY: &str = "14";

pub(super) const DEPOSIT: &str = r#"{"order_id":"o-1","amount":10.5,"currency":"EUR","callback_url":"https://a.example/cb","success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":"https://a.example/f"}"#;
pub(super) const PAYIN: &str = r#"{"external_id":"o-1","amount":"10.50","currency":"EUR"}"#;

/// Keeps nothing: every create is new, no operation is found.
pub(super) struct EmptyStore {
    fingerprint_key: FingerprintKey,
    pub created: AtomicU64,
    pub relayed: AtomicU64,
    /// Creates wait for `go_on` while this is set.
    pub holds: AtomicBool,
    /// It cannot answer while this is set.
    pub away: AtomicBool,
    pub entered: Notify,
    pub go_on: Notify,
    pub queued: Notify,
}

fn answer<'a, T: Send + 'a>(value: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(async { value })
}

impl EmptyStore {
    fn present(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) { Err(full_disk()) } else { Ok(()) }
    }
}

fn full_disk() -> StoreError {
    StoreError::Unavailable("the disk is full".to_owned())
}

impl Store for EmptyStore {
    fn fingerprint_key(&self) -> &FingerprintKey {
        &self.fingerprint_key
    }

    fn create(&self, _: NewOperation) -> StoreFuture<'_, InsertOutcome> {
        Box::pin(async {
            self.present()?;
            if self.holds.load(Ordering::SeqCst) {
                self.entered.notify_one();
                self.go_on.notified().await;
            }
            self.created.fetch_add(1, Ordering::SeqCst);
            Ok(InsertOutcome::Created(CreateOutcome::AsDrafted))
        })
    }

    fn by_order<'a>(&'a self, _: &'a MerchantId, _: Direction, _: &'a OrderId) -> StoreFuture<'a, OrderLookup> {
        answer(self.present().map(|()| OrderLookup::Free))
    }

    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>> {
        match id.to_string().as_str() {
            PANICS => panic!("looked up {id}"),
            AWAY => answer(Err(full_disk())),
            _ => answer(Ok(None)),
        }
    }

    fn v1_status<'a>(
        &'a self,
        _: &'a MerchantId,
        _: Direction,
        _: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>> {
        answer(self.present().map(|()| None))
    }

    fn v2_status<'a>(&'a self, _: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>> {
        Box::pin(async move { self.by_id(id).await.map(|_| None) })
    }

    fn fields(&self, _: TransactionId) -> StoreFuture<'_, Option<Fields>> {
        answer(Ok(None))
    }

    fn complete(&self, _: TransactionId, _: Outcome, _: UnixMillis) -> StoreFuture<'_, CompletionOutcome> {
        answer(Ok(CompletionOutcome::Unknown))
    }

    fn prepare(&self, _: TransactionId, _: Preparation) -> StoreFuture<'_, bool> {
        answer(Ok(false))
    }

    fn preparation(&self, _: TransactionId) -> StoreFuture<'_, Option<Preparation>> {
        answer(Ok(None))
    }

    fn history(&self, _: HistoryQuery) -> StoreFuture<'_, Page<Operation>> {
        answer(Ok(Page::empty()))
    }

    fn provider_queues(&self) -> StoreFuture<'_, Vec<ProviderQueue>> {
        answer(Ok(Vec::new()))
    }

    fn claim_provider_jobs(&self, _: Claim) -> StoreFuture<'_, Vec<ProviderJob>> {
        answer(Ok(Vec::new()))
    }

    fn postpone_provider_job(&self, _: TransactionId, _: UnixMillis) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn end_provider_job(&self, _: TransactionId) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn reserve<'a>(
        &'a self,
        _: &'a MerchantId,
        _: Direction,
        _: &'a [OrderId],
        _: UnixMillis,
    ) -> StoreFuture<'a, Reservations> {
        answer(Ok(Reservations::default()))
    }

    fn open_ledger<'a>(
        &'a self,
        _: &'a MerchantId,
        _: Arc<[(Currency, Amount)]>,
        _: UnixMillis,
    ) -> StoreFuture<'a, ()> {
        answer(Ok(()))
    }

    fn balances<'a>(&'a self, _: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>> {
        answer(Ok(Vec::new()))
    }

    fn audit(&self, _: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit> {
        answer(Ok(Audit::default()))
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }
}

impl Journal for EmptyStore {
    fn record_create(&self, _: PendingCreate) -> StoreFuture<'_, JournalOutcome> {
        answer(Ok(JournalOutcome::Written(EntryId(1))))
    }

    fn entry<'a>(&'a self, _: &'a MerchantId, _: Direction, _: &'a OrderId) -> StoreFuture<'a, Option<JournalEntry>> {
        answer(Ok(None))
    }

    fn of_v1<'a>(&'a self, _: &'a MerchantId, _: Direction, _: &'a OrderId) -> StoreFuture<'a, Option<V1Lookup>> {
        answer(Ok(None))
    }

    fn answer(
        &self,
        entry: JournalEntry,
        engine_answer: EngineAnswer,
    ) -> StoreFuture<'_, Result<JournalEntry, NotKept>> {
        let passed = RemoteOperation { answer: engine_answer, status: Status::Pending, account: None };
        answer(Ok(Ok(JournalEntry { progress: EntryProgress::Answered(passed), ..entry })))
    }

    fn mark_unknown(&self, _: EntryId, _: UnixMillis) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn sent_again(&self, _: EntryId, _: UnixMillis) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn cancel(&self, _: EntryId, _: Option<UnixMillis>) -> StoreFuture<'_, bool> {
        answer(Ok(true))
    }

    fn open_entries(&self, _: Option<EntryId>, _: u16) -> StoreFuture<'_, Vec<JournalEntry>> {
        answer(Ok(Vec::new()))
    }

    fn update_status(&self, _: EntryId, _: StatusUpdate) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn passed(&self, _: HistoryQuery) -> StoreFuture<'_, Page<JournalEntry>> {
        answer(Ok(Page::empty()))
    }
}

impl Outbox for EmptyStore {
    fn callbacks_queued(&self) -> &Notify {
        &self.queued
    }

    fn callback_queues(&self) -> StoreFuture<'_, Vec<CallbackQueue>> {
        answer(Ok(Vec::new()))
    }

    fn claim_callbacks(&self, _: CallbackClaim) -> StoreFuture<'_, Vec<CallbackJob>> {
        answer(Ok(Vec::new()))
    }

    fn callback_tried(&self, _: CallbackLease, _: CallbackTry, _: CallbackNext) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn postpone_callback(&self, _: CallbackLease, _: UnixMillis) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn callback_ready(&self, _: CallbackId, _: UnixMillis) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn drop_callback(&self, _: CallbackLease) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn expire_callbacks(&self, _: ExpireRequest) -> StoreFuture<'_, usize> {
        answer(Ok(0))
    }

    fn forget_callbacks(&self, _: UnixMillis, _: usize) -> StoreFuture<'_, usize> {
        answer(Ok(0))
    }

    /// Only the deposit `o-1` of the first merchant passed to a remote engine.
    fn addressee<'a>(&'a self, owner: &'a MerchantId, order: Fingerprint) -> StoreFuture<'a, Option<RelayTarget>> {
        let (merchant, order_id) = (MerchantId::new("acme").unwrap(), OrderId::new("o-1").unwrap());
        let known =
            *owner == merchant && self.fingerprint_key.order_key(&merchant, Direction::Payin, &order_id) == order;
        let (api_key, entry) = ("acme-live".into(), Some(EntryId(7)));
        let addressee = RelayTarget { merchant, direction: Direction::Payin, order_id, api_key, entry };
        answer(self.present().map(|()| known.then_some(addressee)))
    }

    fn relayed(&self, entry: EntryId, _: UnixMillis) -> StoreFuture<'_, Relayed> {
        assert_eq!(entry, EntryId(7));
        self.relayed.fetch_add(1, Ordering::SeqCst);
        answer(Ok(Relayed::Queued))
    }

    fn callback(&self, _: CallbackId) -> StoreFuture<'_, Option<(CallbackRecord, Vec<CallbackTry>)>> {
        answer(Ok(None))
    }

    fn callbacks(&self, _: CallbackQuery) -> StoreFuture<'_, Vec<CallbackRecord>> {
        answer(Ok(Vec::new()))
    }

    fn resend_callback(&self, _: CallbackId, _: UnixMillis) -> StoreFuture<'_, Resent> {
        answer(Ok(Resent::Unknown))
    }

    fn resend_failed(&self, _: CallbackQuery, _: UnixMillis) -> StoreFuture<'_, (usize, Option<CallbackCursor>)> {
        answer(Ok((0, None)))
    }

    fn outbox_size(&self) -> StoreFuture<'_, OutboxSize> {
        answer(Ok(OutboxSize::default()))
    }
}

struct PatientProvider;

impl Provider for PatientProvider {
    fn at_creation(&self, _: &Shop, _: Direction, _: Amount, _: UnixMillis) -> AtCreation {
        AtCreation::Wait
    }

    fn customer_way(&self, _: &ProviderRules, _: &Operation, _: UnixMillis) -> Option<NextAction> {
        None
    }

    fn job_stored(&self) {}
}

/// Every number once.
#[derive(Default)]
struct Counting(AtomicU64);

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let next = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.fill(0);
        for (byte, digit) in bytes.iter_mut().rev().zip(next.iter().rev()) {
            *byte = *digit;
        }
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
    pub store: Arc<EmptyStore>,
    pub lines: Arc<LogLines>,
    pub metrics: Arc<Metrics>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut RuleSet)) -> Self {
        let mut rules = rule_set();
        change(&mut rules);
        let rules = Arc::new(rules);
        let store = Arc::new(EmptyStore {
            fingerprint_key: FingerprintKey::new(&[7; 32]),
            created: AtomicU64::new(0),
            relayed: AtomicU64::new(0),
            holds: AtomicBool::new(false),
            away: AtomicBool::new(false),
            entered: Notify::new(),
            go_on: Notify::new(),
            queued: Notify::new(),
        });
        let (lines, metrics) = (Arc::<LogLines>::default(), Arc::<Metrics>::default());
        let (clock, random) = (Arc::new(ManualClock::at(NOW)), Arc::<Counting>::default());
        let engine = Arc::new(Engine::new(
            Arc::clone(&store) as Arc<dyn Store>,
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(&random) as Arc<dyn Random>,
            Arc::new(PatientProvider),
            PageSecret::new(Secret::new(b"the-page-secret")),
            Arc::clone(&metrics),
        ));
        let gateway = Gateway::new(GatewayDeps {
            rules: Arc::new(move || Arc::clone(&rules)),
            store: Arc::clone(&store) as Arc<dyn Store>,
            service: Arc::new(Embedded::new(Arc::clone(&engine))),
            engine: Some(engine),
            clock,
            random,
            metrics: Arc::clone(&metrics),
            access_log: Arc::clone(&lines) as Arc<dyn AccessLog>,
        });
        Self { gateway, store, lines, metrics }
    }

    /// The reply as it is.
    pub(super) async fn handle(&self, call: Call) -> Reply {
        let arrival = call.arrival();
        self.gateway.handle(call.into_request(), arrival).await
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
    pub facts: HeadCheck,
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
        Self { method, target: target.to_owned(), headers, body: Pieces::of(body), peer, facts: HeadCheck::default() }
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
        let signature = sign_v1(&recipe("x-api-key"), &Secret::new(V1_SECRET), &input);
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

    pub(super) fn arrival(&self) -> ConnectionInfo {
        ConnectionInfo { peer: self.peer, facts: self.facts, connection: Arc::default() }
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

fn secrets(bytes: &[u8]) -> Option<Secrets> {
    Secrets::new(vec![Secret::new(b"a-newer-secret"), Secret::new(bytes)])
}

fn api_key(key: &str, allowed: &str) -> ApiKey {
    ApiKey {
        key: key.into(),
        v1_secrets: secrets(V1_SECRET),
        v2_secrets: secrets(V2_SECRET),
        allowed_ips: AddressSet::new([allowed.parse().unwrap()]),
        rate_limit: None,
        shops: None,
    }
}

fn quota(per_second: u32, burst: u32) -> Quota {
    Quota { per_second: NonZeroU32::new(per_second).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
}

/// A limit of one request an hour, so that no test depends on how fast it runs.
fn one_an_hour() -> RateLimit {
    let slow = governor::Quota::with_period(Duration::from_hours(1)).unwrap();
    RateLimit { quota: quota(1, 1), limiter: Arc::new(RateLimiter::direct(slow)) }
}

pub(super) fn recipe(api_key: &'static str) -> Recipe {
    let dot = || Segment::Literal(".".into());
    Recipe {
        api_key: HeaderName::from_static(api_key),
        signature: HeaderName::from_static("x-signature"),
        timestamp: HeaderName::from_static("x-timestamp"),
        timestamp_format: TimestampFormat::Unix,
        window: Duration::from_mins(5),
        payload: vec![Segment::Timestamp, dot(), Segment::Method, dot(), Segment::Path, dot(), Segment::Body],
        algorithm: Algorithm::HmacSha256,
        encoding: Encoding::Hex,
    }
}

fn dialect(name: &str, api_key: &'static str, error: Option<&'static str>) -> Arc<Dialect> {
    let mut environment = minijinja::Environment::new();
    if let Some(error) = error {
        environment.add_template("error", error).unwrap();
    }
    Arc::new(Dialect {
        name: name.into(),
        signature: recipe(api_key),
        routes: Vec::new(),
        statuses: StatusWords { pending: "PENDING".into(), success: "SUCCESS".into(), failed: "FAILED".into() },
        replies: Replies::new(environment),
        empty_list_is_object: false,
    })
}

fn merchant(id: &str, dialect: &Arc<Dialect>, shop: &Arc<Shop>, api_keys: Vec<ApiKey>) -> Arc<Merchant> {
    let id = MerchantId::new(id).unwrap();
    let access = ShopAccess { shop: Arc::clone(shop), payin: true, payout: true };
    Arc::new(Merchant {
        bucket: Bucket::of(&id),
        name: id.as_str().into(),
        id,
        default_shop: Some(shop.code.clone()),
        api_keys,
        shops: HashMap::from([(shop.code.clone(), access)]),
        v1: V1Rules {
            dialect: Arc::clone(dialect),
            callbacks: CallbackStyle::V1,
            callback_url: None,
            return_url: Some(crate::domain::BrowserUrl::new("https://acme.example/done").unwrap()),
            non_numeric_user_id: IdPolicy::Reject,
            unknown_fields: UnknownFields::Reject,
            allow_http_callbacks: false,
            notices: vec![("Deprecation", "@1782777600".into()), ("Link", "<https://docs.example/v2>".into())],
        },
        balance: BalanceRules::default(),
    })
}

fn v1_route(method: Method, api_key: &'static str, endpoints: &[(&str, Endpoint)]) -> V1Route {
    V1Route {
        method,
        api_key: HeaderName::from_static(api_key),
        endpoints: endpoints.iter().map(|(dialect, endpoint)| (Box::from(*dialect), *endpoint)).collect(),
    }
}

fn v1_routes() -> HashMap<Box<str>, Vec<V1Route>> {
    use Endpoint::{Balance, Payin, PayinStatus, Payout, PayoutStatus, Transactions};
    let key = "x-api-key";
    HashMap::from([
        ("/api/v1/payin".into(), vec![v1_route(Method::POST, key, &[("v1", Payin), ("shaped", Payin)])]),
        ("/api/v1/payout".into(), vec![v1_route(Method::POST, key, &[("v1", Payout)])]),
        ("/api/v1/payin/status".into(), vec![v1_route(Method::GET, key, &[("v1", PayinStatus)])]),
        ("/api/v1/balance".into(), vec![v1_route(Method::GET, key, &[("v1", Balance)])]),
        ("/api/v1/transactions".into(), vec![v1_route(Method::GET, key, &[("v1", Transactions)])]),
        (
            "/shaped".into(),
            vec![
                v1_route(Method::POST, key, &[("shaped", Payout)]),
                v1_route(Method::GET, key, &[("shaped", PayoutStatus)]),
            ],
        ),
    ])
}

fn gateway_rules() -> GatewayRules {
    GatewayRules {
        server: ServerRules {
            listen: "127.0.0.1:8443".parse().unwrap(),
            public_url: "https://pay.example".into(),
            shutdown_grace: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
        },
        tls: TlsRules { certificate: PathBuf::new(), key: PathBuf::new(), generate: false, client_ca: None },
        admin_listen: "127.0.0.1:9090".parse().unwrap(),
        admin_token: None,
        admin_hosts: Vec::new(),
        store: StoreRules {
            url: StoreUrl::Sqlite(PathBuf::new()),
            connections: 16,
            keys: StoreKeys { create_at: None, keys: Vec::new() },
        },
        engine: EngineRules::Embedded,
        engine_trust: Vec::new(),
        engine_timeout: Duration::from_secs(10),
        callback_signature: CallbackSignature::default(),
        pages: PageRules {
            language: "en".into(),
            secret: None,
            default_secret: PathBuf::new(),
            link_lifetime: Duration::from_mins(30),
            return_lifetime: Duration::from_hours(168),
            brand: Brand::default(),
        },
        callbacks: CallbackRules {
            timeout: Duration::from_secs(10),
            first_retry: Duration::from_secs(5),
            max_retry: Duration::from_hours(1),
            give_up_after: Duration::from_hours(72),
            forget_after: Duration::from_hours(90 * 24),
            allow_private_addresses: false,
            trust: Arc::default(),
        },
        limits: Limits {
            body: BODY_LIMIT,
            head: 16 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            connections: 100,
            unauthenticated_per_ip: quota(100_000, 100_000),
            pages_per_ip: quota(100_000, 100_000),
        },
        clients: ClientRules { proxy_protocol: false, trusted_proxies: Vec::new() },
    }
}

/// Merchant `acme` (dialect `v1`) with keys `acme-live`, `acme-far` (another network) and `acme-slow` (one request an
/// hour); merchant `shaped`, whose dialect has its own error shape.
pub(super) fn rule_set() -> RuleSet {
    let shop = Arc::new(Shop {
        code: ShopCode::new("card-eur").unwrap(),
        name: "Cards in euro".into(),
        currency: Currency::new("EUR").unwrap(),
        active: true,
        payment_method: None,
        payin: ShopSide::default(),
        payout: ShopSide::default(),
        account: AccountRule::Any,
        checks: PaymentChecks::default(),
        provider: ProviderRules::Sandbox { delay: Duration::from_secs(1) },
    });
    let v1 = dialect("v1", "x-api-key", None);
    let shaped = dialect("shaped", "x-api-key", Some(r#"{"oops":{{ message|tojson }},"no":{{ code }}}"#));
    let slow = ApiKey { rate_limit: Some(one_an_hour()), ..api_key("acme-slow", "127.0.0.1/32") };
    let only_v2 = ApiKey { v1_secrets: None, ..api_key("acme-v2", "127.0.0.1/32") };
    let keys = vec![api_key("acme-live", "127.0.0.1/32"), api_key("acme-far", "203.0.113.0/24"), slow, only_v2];
    let merchants = [
        merchant("acme", &v1, &shop, keys),
        merchant("shaped", &shaped, &shop, vec![api_key("shaped-live", "127.0.0.1/32")]),
    ];
    let api_keys = merchants.iter().flat_map(|merchant| {
        let entry = |index| KeyEntry { merchant: Arc::clone(merchant), index };
        merchant.api_keys.iter().enumerate().map(move |(index, key)| (key.key.clone(), entry(index)))
    });
    RuleSet {
        version: "0123456789abcdef".into(),
        loaded_at: NOW,
        gateway: gateway_rules(),
        api_keys: api_keys.collect(),
        merchants: merchants.iter().map(|merchant| (merchant.id.clone(), Arc::clone(merchant))).collect(),
        shops: HashMap::from([(shop.code.clone(), shop)]),
        dialects: [v1, shaped].map(|dialect| (dialect.name.clone(), dialect)).into_iter().collect(),
        v1_routes: v1_routes(),
        schemas: HashMap::new(),
        pages: Arc::new(built_in_pages()),
        warnings: Vec::new(),
        filled: HashSet::new(),
    }
}
