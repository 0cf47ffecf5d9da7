//! Tests of the handler over the real store, with a clock that the test moves and a receiver whose answers it sets.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;
use crate::clock::Clock as _;
use crate::domain::Direction;
use crate::engine::tests::{World, id};
use crate::queue_worker::QueueWorker;
use crate::store::{CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackTry};

const OK: &str = "200 OK\r\nContent-Length: 0\r\n\r\n";
const BUSY: &str = "503 Busy\r\nRetry-After: 40\r\nContent-Length: 0\r\n\r\n";

const CALLBACKS: &str = "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n[callbacks]\n\
    timeout = \"300ms\"\nfirst_retry = \"4s\"\nmax_retry = \"20s\"\ngive_up_after = \"1m\"\nallow_private_addresses = true\n";

const ACME: &str = r#"
default_shop = "spare"
[[api_keys]]
key = "k"
v1_secret = "v1"
v2_secret = "s"
allowed_ips = ["127.0.0.1"]
[v1]
return_url = "https://a.example/r"
allow_http_callbacks = true
[shops.spare]
payin = true
payout = true
"#;

/// A receiver over plain http, whose answers a test sets.
struct Receiver {
    url: String,
    reply: Arc<Mutex<&'static str>>,
    /// How many callbacks it has received.
    received: Arc<AtomicUsize>,
}

impl Receiver {
    async fn start(reply: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/cb", listener.local_addr().unwrap());
        let (reply, received) = (Arc::new(Mutex::new(reply)), Arc::<AtomicUsize>::default());
        let this = Self { url, reply: Arc::clone(&reply), received: Arc::clone(&received) };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (reply, received) = (Arc::clone(&reply), Arc::clone(&received));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    loop {
                        while !bytes.ends_with(b"}") {
                            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                                return;
                            }
                        }
                        bytes.clear();
                        received.fetch_add(1, Ordering::SeqCst);
                        let reply = *reply.lock().unwrap();
                        stream.write_all(format!("HTTP/1.1 {reply}").as_bytes()).await.unwrap();
                    }
                });
            }
        });
        this
    }

    /// Returns an address on a port that refuses connections.
    async fn unreachable_url() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/cb", listener.local_addr().unwrap())
    }

    fn set_reply(&self, reply: &'static str) {
        *self.reply.lock().unwrap() = reply;
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }
}

struct Fixture {
    world: World,
    worker: QueueWorker<CallbackHandler>,
}

impl Fixture {
    fn new() -> Self {
        let world = World::with(&[("gateway.toml", CALLBACKS), ("merchants/acme.toml", ACME)]);
        let worker = Self::worker(&world);
        Self { world, worker }
    }

    fn worker(world: &World) -> QueueWorker<CallbackHandler> {
        QueueWorker::new(CallbackHandler::new(world.deps.clone(), None))
    }

    /// Creates an operation that fails at once, with a callback to this address.
    async fn failed(&self, external_id: &str, url: &str) -> CallbackId {
        let body = format!(
            r#"{{"external_id":"{external_id}","amount":"10.01","currency":"EUR","callback_url":"{url}","card_number":"4111111111111111"}}"#
        );
        let reply = self.world.v1(Direction::Payout, &body).await.unwrap();
        let query = CallbackQuery {
            states: vec![CallbackState::Pending],
            merchant: None,
            order_id: None,
            since: None,
            until: None,
            after: None,
            limit: 1000,
        };
        let found = self.world.engine.store().callbacks(query).await.unwrap();
        let about = id(&reply).to_stored();
        found.into_iter().find(|found| found.id.subject().key() == about).unwrap().id
    }

    /// Works until nothing is in flight or due at the current time of the clock.
    async fn run(&mut self) {
        while self.worker.run_round().await {}
    }

    async fn callback(&self, id: CallbackId) -> (CallbackRecord, Vec<CallbackTry>) {
        self.world.engine.store().callback(id).await.unwrap().unwrap()
    }

    async fn state(&self, id: CallbackId) -> (CallbackState, u32) {
        let (record, tries) = self.callback(id).await;
        assert_eq!(record.tries as usize, tries.len());
        (record.state, record.tries)
    }

    fn advance_to(&self, at: UnixMillis) {
        self.world.clock.advance(self.world.clock.now().until(at));
    }
}

#[tokio::test]
async fn a_stopped_worker_finishes_callbacks_in_flight() {
    for is_dropped in [false, true] {
        let (fixture, receiver) = (Fixture::new(), Receiver::start(OK).await);
        let id = fixture.failed("o-1", &receiver.url).await;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(fixture.worker.run(stopped));
        while receiver.received() == 0 {
            tokio::task::yield_now().await;
        }
        if is_dropped {
            drop(stop);
        } else {
            stop.send(()).unwrap();
        }
        running.await.unwrap();
        let (record, _) = fixture.world.engine.store().callback(id).await.unwrap().unwrap();
        assert_eq!((record.state, record.tries), (CallbackState::Delivered, 1));
    }
}

#[tokio::test]
async fn a_worker_that_is_stopped_before_it_starts_does_nothing() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start(OK).await);
    let id = fixture.failed("o-1", &receiver.url).await;
    let (stop, stopped) = oneshot::channel();
    drop(stop);
    Fixture::worker(&fixture.world).run(stopped).await;
    assert_eq!(fixture.state(id).await, (CallbackState::Pending, 0));
}

#[tokio::test]
async fn a_callback_delayed_by_downtime_gets_its_attempt() {
    let (mut fixture, receiver, dead) = (Fixture::new(), Receiver::start(OK).await, Receiver::unreachable_url().await);
    let (well, late) = (fixture.failed("well", &receiver.url).await, fixture.failed("late", &dead).await);
    fixture.world.clock.advance(Duration::from_hours(24));
    fixture.run().await;
    assert_eq!(fixture.state(well).await, (CallbackState::Delivered, 1));
    assert_eq!(fixture.state(late).await, (CallbackState::Failed, 1), "one attempt, and no time for another");
}

/// In milliseconds.
const HOUR: i64 = 3_600_000;

/// As after another node whose clock is ahead retried it: this one was right all the time.
#[tokio::test]
async fn what_waits_longer_than_the_longest_wait_is_due() {
    let (mut fixture, receiver) = (Fixture::new(), Receiver::start(BUSY).await);
    let id = fixture.failed("o-1", &receiver.url).await;
    fixture.run().await;
    let (record, _) = fixture.callback(id).await;
    let store = Arc::clone(fixture.world.engine.store());
    for (wait, delivered) in [(60, false), (61, true)] {
        fixture.advance_to(record.due);
        let now = fixture.world.clock.now();
        let shares = vec![(record.target.clone(), 1)];
        let claim = CallbackClaim { shares, now, lease_until: now.plus(LEASE) };
        if let Some(job) = store.claim_callbacks(claim).await.unwrap().first() {
            store.postpone_callback(job.lease(), now.plus(Duration::from_secs(wait))).await.unwrap();
            receiver.set_reply(OK);
            fixture.world.clock.advance(Duration::from_millis(1));
            fixture.run().await;
            assert_eq!(fixture.state(id).await.0 == CallbackState::Delivered, delivered, "{wait}");
        }
        fixture.world.clock.advance(Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_clock_that_is_ahead_for_a_moment_gives_no_callback_up() {
    let (mut fixture, receiver, dead) =
        (Fixture::new(), Receiver::start(BUSY).await, Receiver::unreachable_url().await);
    fixture.world.clock.advance(Duration::from_hours(1));
    let (busy, silent) = (fixture.failed("busy", &receiver.url).await, fixture.failed("silent", &dead).await);
    // The circuit of the dead target opens.
    for number in 0..8 {
        fixture.failed(&format!("dead-{number}"), &dead).await;
    }
    fixture.run().await;
    assert_eq!(fixture.worker.handler().targets.open_origins(9).0, 1);
    fixture.world.clock.set_ahead(96 * HOUR);
    for _ in 0..3 {
        fixture.worker.handler().maintained_at = None;
        fixture.run().await;
        fixture.world.clock.advance(Duration::from_secs(1));
    }
    assert!(fixture.state(busy).await.1 > 1, "it is tried, since it is due by this clock");
    assert_eq!(fixture.state(silent).await.0, CallbackState::Pending, "it waits for a probe");
    fixture.world.clock.set_ahead(-96 * HOUR);
    receiver.set_reply(OK);
    fixture.worker.handler().maintained_at = None;
    fixture.run().await;
    assert_eq!(fixture.state(busy).await.0, CallbackState::Delivered);
    assert_eq!(fixture.state(silent).await.0, CallbackState::Pending);
    let query = CallbackQuery {
        states: vec![CallbackState::Failed],
        merchant: None,
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: 9,
    };
    assert_eq!(fixture.world.engine.store().callbacks(query).await.unwrap(), []);
}
