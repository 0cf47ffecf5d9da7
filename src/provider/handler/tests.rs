//! Tests of the handler over the real store, with a clock that the test moves and a provider whose answers it sets.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::auth::callers::{Interface, KnownKey};
use crate::auth::signatures::{PageSecret, sign_v2};
use crate::clock::{Clock as _, ManualClock};
use crate::domain::{Direction, Preparation, Secret, Status, TransactionId};
use crate::queue_worker::QueueWorker;
use crate::rules::{LoadOptions, load};
use crate::wire::v2::read_create;

const START: UnixMillis = UnixMillis(1_780_000_000_000);
const SANDBOX: &str = "kind = \"sandbox\"\n";
/// `@` stands for the operation's id.
const SUCCESS: &str = "200 OK\r\nConnection: close\r\n\r\n{\"transaction_id\":\"@\",\"status\":\"SUCCESS\"}";
const BUSY: &str = "503 Busy\r\nContent-Length: 0\r\n\r\n";

/// A provider whose answers a test sets.
struct Fake {
    url: String,
    reply: Arc<Mutex<&'static str>>,
    requests: Arc<AtomicUsize>,
}

impl Fake {
    async fn start(reply: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (reply, requests) = (Arc::new(Mutex::new(reply)), Arc::new(AtomicUsize::new(0)));
        let fake = Self { url, reply: Arc::clone(&reply), requests: Arc::clone(&requests) };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut received = Vec::new();
                while !received.ends_with(b"}") && stream.read_buf(&mut received).await.is_ok_and(|read| read > 0) {}
                if !received.ends_with(b"}") {
                    // Its job was abandoned.
                    continue;
                }
                requests.fetch_add(1, Ordering::SeqCst);
                let body = String::from_utf8(received).unwrap();
                let id = body.split_once("{\"transaction_id\":\"").unwrap().1.split('"').next().unwrap();
                let reply = reply.lock().unwrap().replace('@', id);
                stream.write_all(format!("HTTP/1.1 {reply}").as_bytes()).await.unwrap();
            }
        });
        fake
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn http(&self) -> String {
        format!(
            "kind = \"http\"\nurl = \"{}\"\nsecret = \"s\"\ntimeout = \"20s\"\nfirst_retry = \"4s\"\n\
             max_retry = \"10s\"\ngive_up_after = \"1m\"\n",
            self.url
        )
    }
}

struct World {
    directory: tempfile::TempDir,
    deps: Deps,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    worker: QueueWorker<ProviderHandler>,
}

impl World {
    fn new(provider: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(directory.path(), path, text);
        put("rules/gateway.toml", "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n");
        put(
            "rules/merchants/acme.toml",
            "default_shop = \"card\"\n[[api_keys]]\nkey = \"k\"\nv2_secret = \"s\"\nallowed_ips = [\"127.0.0.1\"]\n\
             [shops.card]\n[shops.other]\n",
        );
        put("rules/shops/card.toml", &format!("currency = \"EUR\"\n[provider]\n{provider}"));
        put("rules/shops/other.toml", &format!("currency = \"EUR\"\n[provider]\n{SANDBOX}"));
        let clock = Arc::new(ManualClock::at(START));
        let deps = Deps::open(read(directory.path()), clock.clone());
        let (providers, page_secret) = (Arc::<Providers>::default(), PageSecret::new(Secret::new(b"pages")));
        let engine = Arc::new(Engine::new(deps.clone(), providers.clone(), page_secret));
        let worker = QueueWorker::new(ProviderHandler::new(deps.clone(), Arc::clone(&engine), providers));
        Self { directory, deps, clock, engine, worker }
    }

    /// Makes another worker over the same store, as a new process would.
    fn restart(&mut self) {
        self.worker =
            QueueWorker::new(ProviderHandler::new(self.deps.clone(), Arc::clone(&self.engine), Arc::default()));
    }

    /// Gives the shop another provider.
    fn provider(&self, provider: &str) {
        put(self.directory.path(), "rules/shops/card.toml", &format!("currency = \"EUR\"\n[provider]\n{provider}"));
        self.deps.rules.store(Arc::new(read(self.directory.path())));
    }

    async fn create(&self, direction: Direction, order_id: &str) -> TransactionId {
        let rules = self.deps.rules.load_full();
        let sign = |body: &[u8]| sign_v2(&Secret::new(b"s"), body);
        let key = KnownKey::find(&rules, Interface::V2, "k").unwrap().admit("127.0.0.1".parse().unwrap()).unwrap();
        let (caller, _) = key.verify_v2(Bytes::new(), sign(b"").as_bytes()).unwrap();
        let rest = match direction {
            Direction::Payin => {
                r#""success_url":"https://a.example","pending_url":"https://a.example","fail_url":"https://a.example""#
            }
            Direction::Payout => r#""account_number":"4000123412341234""#,
        };
        let body = format!(
            r#"{{"order_id":"{order_id}","amount":1,"currency":"EUR","callback_url":"https://a.example",{rest}}}"#
        );
        let created =
            self.engine.create(&caller, &read_create(direction, body.as_bytes()).unwrap(), None).await.unwrap();
        TransactionId::parse(&created.transaction_id).unwrap()
    }

    /// Runs one round of the worker, and waits for the jobs that it started.
    async fn round(&mut self) {
        self.worker.run_round().await;
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    async fn status(&self, id: TransactionId) -> Status {
        self.engine.store().by_id(id).await.unwrap().unwrap().operation.state.status()
    }

    /// Returns in how many milliseconds the shop's next job is due.
    async fn due_in(&self) -> Option<i64> {
        let queues = self.engine.store().provider_queues().await.unwrap();
        queues.first().map(|queue| queue.due.0 - self.clock.now().0)
    }
}

fn put(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(directory: &Path) -> RuleSet {
    load(&directory.join("rules"), START, None, LoadOptions::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

#[tokio::test]
async fn a_job_is_never_done_by_another_kind_of_provider() {
    let fake = Fake::start(SUCCESS).await;
    for (created, ruled) in [(fake.http(), SANDBOX.to_owned()), (SANDBOX.to_owned(), fake.http())] {
        let mut world = World::new(&created);
        let id = world.create(Direction::Payout, "o").await;
        world.provider(&ruled);
        let before = fake.requests();
        for _ in 0..3 {
            world.advance(61);
            world.round().await;
            assert_eq!(world.status(id).await, Status::Pending);
            assert_eq!(world.due_in().await, Some(60_000));
        }
        assert_eq!(fake.requests(), before);
        world.provider(&created);
        world.round().await;
        assert_eq!(world.status(id).await, Status::Pending, "not due yet");
        world.advance(60);
        world.round().await;
        assert_eq!(world.status(id).await, Status::Success);
        assert_eq!(world.due_in().await, None);
    }
}

#[tokio::test]
async fn the_jobs_of_a_removed_shop_wait_for_it() {
    let mut world = World::new(SANDBOX);
    let id = world.create(Direction::Payout, "o").await;
    world.advance(2);
    let merchant = world.directory.path().join("rules/merchants/acme.toml");
    let text = fs::read_to_string(&merchant).unwrap();
    fs::write(&merchant, text.replace("[shops.card]\n", "").replace("\"card\"", "\"other\"")).unwrap();
    fs::remove_file(world.directory.path().join("rules/shops/card.toml")).unwrap();
    world.deps.rules.store(Arc::new(read(world.directory.path())));
    world.round().await;
    assert_eq!((world.status(id).await, world.due_in().await), (Status::Pending, Some(60_000)));
}

#[tokio::test]
async fn a_silent_provider_is_retried_with_growing_waits_until_it_is_given_up() {
    let fake = Fake::start(BUSY).await;
    for direction in [Direction::Payin, Direction::Payout] {
        let mut world = World::new(&fake.http());
        let id = world.create(direction, "o").await;
        let last = START.plus(Duration::from_mins(1));
        assert_eq!(world.due_in().await, Some(0));
        for longest in [4_000, 8_000].into_iter().chain(std::iter::repeat(10_000)) {
            world.round().await;
            let due = world.due_in().await.unwrap();
            let is_last = world.clock.now().0 + due == last.0;
            assert!(due <= longest && (due >= longest / 2 || is_last), "{longest}: {due}");
            world.clock.advance(Duration::from_millis(u64::try_from(due).unwrap()));
            if is_last {
                break;
            }
        }
        let (before, store) = (fake.requests(), Arc::clone(world.engine.store()));
        assert_eq!(store.preparation(id).await.unwrap(), None);
        world.round().await;
        assert_eq!((fake.requests(), world.due_in().await), (before + 1, None), "one last request, then given up");
        assert_eq!(world.status(id).await, Status::Pending);
        let shown = (direction == Direction::Payin).then_some(Preparation::Stopped);
        assert_eq!(store.preparation(id).await.unwrap(), shown);
    }
}

#[tokio::test]
async fn a_providers_retry_after_is_honoured() {
    let fake = Fake::start("429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n").await;
    let mut world = World::new(&fake.http());
    world.create(Direction::Payout, "o").await;
    world.round().await;
    assert_eq!(world.due_in().await, Some(7_000));
    *fake.reply.lock().unwrap() = "503 Busy\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n";
    world.advance(7);
    world.round().await;
    assert_eq!(world.due_in().await, Some(10_000), "within max_retry");
}

#[tokio::test]
async fn a_dropped_job_is_claimed_again_after_its_lease() {
    let fake = Fake::start(SUCCESS).await;
    let mut world = World::new(&fake.http());
    let id = world.create(Direction::Payout, "o").await;
    world.worker.start_round().await;
    world.worker.abandon().await;
    assert_eq!(
        world.worker.handler().limiter.capacity(&ShopCode::new("card").unwrap()),
        32,
        "it is no longer in flight"
    );
    assert_eq!(world.due_in().await, Some(30_000), "the time-out and the lease");
    world.round().await;
    assert_eq!(world.status(id).await, Status::Pending);
    world.advance(30);
    world.round().await;
    assert_eq!(world.status(id).await, Status::Success);
}

/// In milliseconds.
const HOUR: i64 = 3_600_000;

#[tokio::test]
async fn a_clock_that_was_ahead_delays_no_job() {
    for restarted in [false, true] {
        for ahead in [HOUR, 8_000] {
            let fake = Fake::start(BUSY).await;
            let mut world = World::new(&fake.http());
            world.round().await;
            world.clock.set_ahead(ahead);
            let id = world.create(Direction::Payout, "o").await;
            world.round().await;
            assert_eq!((fake.requests(), world.due_in().await.is_some()), (1, true), "it is retried soon");
            world.clock.set_ahead(-ahead);
            if restarted {
                world.restart();
            }
            *fake.reply.lock().unwrap() = SUCCESS;
            world.round().await;
            world.round().await;
            assert_eq!(world.status(id).await, Status::Success, "restarted: {restarted}, {ahead}");
            let status = world.engine.store().by_id(id).await.unwrap().unwrap().operation;
            assert!(status.created_at > world.clock.now(), "what is stored stays as it was written");
        }
    }
}

#[tokio::test]
async fn a_lease_of_a_clock_that_was_ahead_ends() {
    let fake = Fake::start(SUCCESS).await;
    let mut world = World::new(&fake.http());
    let id = world.create(Direction::Payout, "o").await;
    world.clock.set_ahead(HOUR);
    world.worker.start_round().await;
    world.worker.start_round().await;
    world.worker.abandon().await;
    world.clock.set_ahead(-HOUR);
    // As another node finds it: a store that one process serves ends the leases when it is opened.
    world.restart();
    for _ in 0..4 {
        world.round().await;
    }
    assert_eq!(world.status(id).await, Status::Success);
}

#[tokio::test]
async fn a_clock_that_is_ahead_for_a_moment_gives_no_job_up() {
    let fake = Fake::start(BUSY).await;
    let mut world = World::new(&fake.http());
    // Longer than the first grace.
    world.advance(3600);
    let id = world.create(Direction::Payout, "o").await;
    world.round().await;
    world.advance(3);
    world.clock.set_ahead(96 * HOUR);
    for _ in 0..3 {
        world.round().await;
        world.advance(1);
    }
    assert!(fake.requests() > 1, "it is tried, since it is due by this clock");
    assert!(world.due_in().await.is_some(), "and tried again");
    world.clock.set_ahead(-96 * HOUR);
    *fake.reply.lock().unwrap() = SUCCESS;
    world.round().await;
    world.round().await;
    assert_eq!(world.status(id).await, Status::Success);
}

#[tokio::test]
async fn a_job_of_an_earlier_process_is_tried_for_a_while() {
    let fake = Fake::start(BUSY).await;
    let mut world = World::new(&fake.http());
    let id = world.create(Direction::Payin, "o").await;
    world.round().await;
    world.advance(24 * 3600);
    world.restart();
    world.round().await;
    assert_eq!((fake.requests(), world.due_in().await.is_some()), (2, true), "its time is over, but it is tried again");
    for _ in 0..6 {
        world.advance(10);
        world.round().await;
    }
    assert_eq!((fake.requests(), world.due_in().await), (8, None), "given up a minute later");
    assert_eq!(world.engine.store().preparation(id).await.unwrap(), Some(Preparation::Stopped));
}
