//! Random histories of orders that two nodes with different rules, crashes, imports, losses and an unreliable old service have
//! a hand in: no order is ever made both here and there (contract section 6, "Homes and modes").

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use fastrand::Rng;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{ByHome, Homes};
use crate::auth::signatures::{PageSecret, sign_v2};
use crate::auth::{Caller, Interface, KnownKey, SignedBody};
use crate::clock::testing::seed;
use crate::clock::{Random as _, SystemClock, SystemRandomness};
use crate::deps::Deps;
use crate::domain::{Direction, MerchantId, OrderId, Secret, UnixMillis};
use crate::engine::Engine;
use crate::legacy::RequestHead;
use crate::provider::Providers;
use crate::rules::{LoadOptions, RuleSet, load};
use crate::service::V2Service;
use crate::store::{OrderLookup, Store, open_store, postgres};
use crate::v1::V1Frontend;
use crate::v2::{ForwardedHeaders, ServiceCall};

/// How many histories run at once.
const AT_ONCE: usize = 48;

/// The `[v1]` of the rules that nodes change between.
const MODES: [&str; 7] = [
    "mode = \"translate\"",
    "mode = \"legacy\"",
    "mode = \"shadow\"",
    "mode = \"staged\"\npercent = 0",
    "mode = \"staged\"\npercent = 40",
    "mode = \"staged\"\npercent = 100",
    "mode = \"translate\"\nunknown_fields = \"ignore\"",
];

/// The old service: it answers, refuses, hangs, answers late or hangs up.
#[derive(Default)]
struct OldService {
    /// How often each order reached it.
    reached: Mutex<HashMap<String, u32>>,
}

impl OldService {
    /// Serves on a free port; returns it, and the certificate to trust.
    async fn start(self: Arc<Self>) -> (u16, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, service) = (acceptor.clone(), Arc::clone(&self));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(socket).await else { return };
                    let answer = service_fn(|request| Arc::clone(&service).answer(request));
                    let _ =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        (port, made.cert.pem())
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let id = match &body["external_id"] {
            serde_json::Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        *self.reached.lock().unwrap().entry(id).or_default() += 1;
        let status = match SystemRandomness::default().number() % 24 {
            // No answer, until the caller gives up.
            0..=2 => std::future::pending().await,
            3 | 4 => return Err(std::io::Error::other("hangs up")),
            5 => 422,
            6 => 503,
            _ => 200,
        };
        Ok(Response::builder().status(status).body(Full::new(Bytes::from_static(b"{}"))).unwrap())
    }
}

/// A node: its front, and the service that native callers reach.
struct Node {
    frontend: V1Frontend,
    homes: Homes,
    service: V2Service,
}

impl Node {
    fn on(store: Arc<dyn Store>, rules: &Arc<RuleSet>) -> Self {
        let deps = Deps::over(store, Arc::clone(rules), Arc::new(SystemClock));
        let page_secret = PageSecret::new(Secret::new(b"pages"));
        let engine = Engine::new(deps.clone(), Arc::<Providers>::default(), page_secret);
        let service = V2Service::Embedded(Arc::new(engine));
        let key = deps.store.fingerprint_key().clone();
        let frontend = V1Frontend::new(service.clone(), key, Arc::clone(&deps.metrics));
        Self { frontend, homes: Homes::new(deps, None), service }
    }
}

/// What histories share.
struct World {
    nodes: Vec<Node>,
    store: Arc<dyn Store>,
    /// One for each mode, and a last one without `[legacy]`.
    rules: Vec<Arc<RuleSet>>,
    merchant: MerchantId,
    old: Arc<OldService>,
    /// The orders that were lost before anything was made of them.
    lost: Mutex<HashSet<String>>,
}

fn rules(directory: &Path, gateway: &str, v1: &str) -> Arc<RuleSet> {
    let put = |path: &str, text: &str| {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("gateway.toml", gateway);
    put("shops/card.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n");
    let merchant = "default_shop = \"card\"\n[[api_keys]]\nkey = \"k\"\nv1_secret = \"s\"\nv2_secret = \"s\"\n\
                    allowed_ips = [\"127.0.0.1\"]\n[shops.card]\n[v1]\nreturn_url = \"https://m.example/\"\n";
    put("merchants/acme.toml", &format!("{merchant}{v1}\n"));
    Arc::new(
        load(directory, UnixMillis(0), None, LoadOptions::default()).unwrap_or_else(|problems| panic!("{problems}")),
    )
}

impl World {
    async fn new(directory: &Path, stores: Vec<Arc<dyn Store>>) -> Self {
        let old = Arc::<OldService>::default();
        let (port, certificate) = Arc::clone(&old).start().await;
        std::fs::write(directory.join("old.pem"), certificate).unwrap();
        let legacy =
            format!("[legacy]\nurl = \"https://localhost:{port}\"\ntrust = [\"../old.pem\"]\ntimeout = \"100ms\"\n");
        let below = directory.join("rules");
        let mut all: Vec<_> = MODES.iter().map(|mode| rules(&below, &legacy, mode)).collect();
        all.push(rules(&below, "", "mode = \"translate\""));
        let merchant = MerchantId::new("acme").unwrap();
        let store = Arc::clone(&stores[0]);
        for direction in [Direction::Payin, Direction::Payout] {
            store.mark_complete(&merchant, direction, UnixMillis(0)).await.unwrap();
        }
        let nodes = stores.into_iter().map(|store| Node::on(store, &all[0])).collect();
        Self { nodes, store, rules: all, merchant, old, lost: Mutex::default() }
    }

    /// Runs random steps for one order.
    async fn history(&self, seed: u64, id: &str) {
        let mut rng = Rng::with_seed(seed);
        for _ in 0..2 + rng.u64(..6) {
            match rng.u64(..10) {
                0 if rng.bool() => self.lose(id).await,
                0 => self.import(id).await,
                1 => self.native_create(&mut rng, id).await,
                2 | 3 => {
                    let (mut one, mut other) = (rng.fork(), rng.fork());
                    tokio::join!(self.create(&mut one, id), self.create(&mut other, id));
                }
                _ => self.create(&mut rng, id).await,
            }
        }
    }

    async fn import(&self, id: &str) {
        let ids = [OrderId::new(id).unwrap()];
        self.store.reserve(&self.merchant, Direction::Payin, &ids, UnixMillis(1)).await.unwrap();
        self.store.mark_complete(&self.merchant, Direction::Payin, UnixMillis(1)).await.unwrap();
    }

    async fn lose(&self, id: &str) {
        let lost = [(self.merchant.clone(), Direction::Payin, OrderId::new(id).unwrap())];
        if self.store.lose(&lost, UnixMillis(1)).await.unwrap().new == 1 {
            self.lost.lock().unwrap().insert(id.to_owned());
        }
    }

    async fn native_create(&self, rng: &mut Rng, id: &str) {
        let body = format!(
            "{{\"order_id\":\"{id}\",\"amount\":1,\"currency\":\"EUR\",\"callback_url\":\"https://m.example/c\",\
             \"success_url\":\"https://m.example/\",\"pending_url\":\"https://m.example/\",\"fail_url\":\"https://m.example/\"}}"
        );
        let (caller, body) = signed(rng.choice(&self.rules).unwrap(), body);
        let forwarded = ForwardedHeaders::default();
        let call = ServiceCall { caller: &caller, forwarded: &forwarded };
        let node = rng.choice(&self.nodes).unwrap();
        let create = node.service.create(call, Direction::Payin, &body, HeaderValue::from_static(""));
        drop(until_crash(rng, create).await);
    }

    /// Sends a create to some node with some rules; perhaps the node crashes on the way.
    async fn create(&self, rng: &mut Rng, id: &str) {
        let spelled = id.chars().fold(String::new(), |text, c| format!("{text}\\u{:04x}", u32::from(c)));
        let body = match rng.u64(..8) {
            0 => format!("{{\"external_id\":\"{id}\",\"amount\":\"2.00\",\"currency\":\"EUR\"}}"),
            1 => format!("{{\"external_id\":\"{id}\",\"amount\":1,\"currency\":\"EUR\"}}"),
            2 => format!("{{\"external_id\":\"{id}\",\"amount\":\"1.00\",\"currency\":\"USD\"}}"),
            3 => format!("{{\"external_id\":\"{id}\",\"amount\":\"1.00\",\"currency\":\"EUR\",\"x\":1}}"),
            4 => format!("{{\"external\\u005fid\":\"{spelled}\",\"amount\":\"1.00\",\"currency\":\"EUR\"}}"),
            _ => format!("{{\"external_id\":\"{id}\",\"amount\":\"1.00\",\"currency\":\"EUR\"}}"),
        };
        let (caller, body) = signed(rng.choice(&self.rules).unwrap(), body);
        let forwarded = ForwardedHeaders::default();
        let call = ServiceCall { caller: &caller, forwarded: &forwarded };
        let node = rng.choice(&self.nodes).unwrap();
        let rules = caller.rules();
        let Some(legacy) = &rules.gateway.legacy else {
            return drop(until_crash(rng, node.frontend.create(call, Direction::Payin, &body)).await);
        };
        let head = RequestHead {
            method: Method::POST,
            target: "/api/v1/payin".into(),
            headers: HeaderMap::new(),
            extensions: http::Extensions::new(),
            address: caller.address(),
        };
        let by_home =
            ByHome { frontend: &node.frontend, homes: &node.homes, call, rules: legacy, head: &head, body: &body };
        drop(until_crash(rng, by_home.create(Direction::Payin)).await);
    }

    /// Returns how many orders are here and how many reached the old service; none may be both.
    async fn count(&self, ids: impl Iterator<Item = String>) -> (usize, usize) {
        let (mut here, mut there) = (0, 0);
        let reached = self.old.reached.lock().unwrap().clone();
        for id in ids {
            let order_id = OrderId::new(&id).unwrap();
            let stored = self.store.by_order(&self.merchant, Direction::Payin, &order_id).await.unwrap();
            let is_here = matches!(stored, OrderLookup::Operation(_));
            assert!(!(is_here && reached.contains_key(&id)), "{id} was made here, and reached the old service");
            let is_lost = self.lost.lock().unwrap().contains(&id);
            assert!(!is_lost || !(is_here || reached.contains_key(&id)), "{id} was lost, and made all the same");
            here += usize::from(is_here);
            there += usize::from(reached.contains_key(&id));
        }
        (here, there)
    }
}

/// Returns a caller and its body. v2's signature proves it: how it was proven makes no difference from here on.
fn signed(rules: &Arc<RuleSet>, body: String) -> (Caller, SignedBody) {
    let signature = sign_v2(&Secret::new(b"s"), body.as_bytes());
    let key = KnownKey::find(rules, Interface::V2, "k").unwrap().admit("127.0.0.1".parse().unwrap()).unwrap();
    key.verify_v2(body.into(), signature.as_bytes()).unwrap()
}

/// Runs a request to its end, or drops it at some step, as the end of the process would.
async fn until_crash<T>(rng: &mut Rng, work: impl Future<Output = T>) -> Result<Option<T>, Infallible> {
    let mut steps = if rng.u64(..4) == 0 { rng.u64(..8) } else { u64::MAX };
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        if steps == 0 {
            return Poll::Ready(Ok(None));
        }
        steps -= 1;
        work.as_mut().poll(context).map(|output| Ok(Some(output)))
    })
    .await
}

async fn run(directory: &Path, stores: Vec<Arc<dyn Store>>, histories: u64) {
    let seed = seed();
    let world = Arc::new(World::new(directory, stores).await);
    let mut running: JoinSet<()> = JoinSet::new();
    for number in 0..histories {
        if running.len() >= AT_ONCE {
            running.join_next().await.unwrap().unwrap();
        }
        if number > 0 && number.is_multiple_of(10_000) {
            println!("{number} of {histories} histories");
        }
        let world = Arc::clone(&world);
        running.spawn(async move { Box::pin(world.history(seed.wrapping_add(number), &format!("h{number}"))).await });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    let (here, there) = world.count((0..histories).map(|number| format!("h{number}"))).await;
    // On a loaded machine many requests are given up before they reach the old service.
    let least = usize::try_from(histories / 50).unwrap();
    assert!(here > least && there > least, "{here} orders are here, and {there} at the old service");
}

/// How many histories run: a million in long drills, on both stores together.
fn histories(usual: u64) -> u64 {
    if std::env::var_os("PAYBRIDGE_LONG").is_some() { 500_000 } else { usual }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_has_one_home_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let rules = rules(
        &directory.path().join("store"),
        "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n",
        "",
    );
    let random = Arc::new(SystemRandomness::default());
    let opened = open_store(&rules.gateway.store, Arc::new(SystemClock), random, Arc::default()).unwrap();
    run(directory.path(), vec![Arc::clone(&opened.store), opened.store], histories(2_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_has_one_home_in_a_database() {
    let Some((_database, stores)) = postgres::tests::two_nodes() else { return };
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), stores, histories(1_000)).await;
}
