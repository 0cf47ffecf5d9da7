//! Tests of the worker over the real store, with a clock that the test moves and a receiver whose answers it sets.

use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::clock::SystemRandomness;
use crate::domain::Direction;
use crate::engine::tests::{START, World, id};
use crate::store::{CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackTry, Resent, TryOutcome};

const OK: &str = "200 OK\r\nContent-Length: 0\r\n\r\n";
const BUSY: &str = "503 Busy\r\nRetry-After: 40\r\nContent-Length: 0\r\n\r\n";
const GONE: &str = "410 Gone\r\nContent-Length: 0\r\n\r\n";
/// No answer; the connection stays open.
const SILENCE: &str = "";

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
    says: Arc<Mutex<&'static str>>,
    /// The `X-Callback-Id` of each received callback.
    came: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(says: &'static str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), says)
    }

    fn on(listener: TcpListener, says: &'static str) -> Self {
        let url = format!("http://{}/cb", listener.local_addr().unwrap());
        let (says, came) = (Arc::new(Mutex::new(says)), Arc::new(Mutex::new(Vec::new())));
        let receiver = Self { url, says: Arc::clone(&says), came: Arc::clone(&came) };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (says, came) = (Arc::clone(&says), Arc::clone(&came));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    loop {
                        while !bytes.ends_with(b"}") {
                            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                                return;
                            }
                        }
                        let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
                        let id = text.split_once("x-callback-id: ").unwrap().1.split("\r\n").next().unwrap().to_owned();
                        came.lock().unwrap().push(id);
                        let says = *says.lock().unwrap();
                        if says == SILENCE {
                            std::future::pending::<()>().await;
                        }
                        stream.write_all(format!("HTTP/1.1 {says}").as_bytes()).await.unwrap();
                    }
                });
            }
        });
        receiver
    }

    /// Returns an address on a port that refuses connections.
    async fn nowhere() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/cb", listener.local_addr().unwrap())
    }

    fn say(&self, says: &'static str) {
        *self.says.lock().unwrap() = says;
    }

    fn came(&self) -> Vec<String> {
        self.came.lock().unwrap().clone()
    }
}

struct Desk {
    world: World,
    worker: CallbackWorker,
    under_way: JoinSet<Done>,
    rules: Arc<Mutex<Arc<RuleSet>>>,
}

impl Desk {
    fn new() -> Self {
        let world = World::with(&[("gateway.toml", CALLBACKS), ("merchants/acme.toml", ACME)]);
        let rules = Arc::new(Mutex::new(world.rules()));
        let worker = Self::worker(&world, &rules);
        Self { world, worker, under_way: JoinSet::new(), rules }
    }

    fn worker(world: &World, rules: &Arc<Mutex<Arc<RuleSet>>>) -> CallbackWorker {
        let rules = Arc::clone(rules);
        CallbackWorker::new(CallbackDeps {
            store: Arc::clone(world.engine.store()),
            remote: None,
            rules: Arc::new(move || Arc::clone(&rules.lock().unwrap())),
            outbound: Arc::default(),
            clock: Arc::clone(&world.clock) as Arc<dyn Clock>,
            random: Arc::new(SystemRandomness::default()),
            metrics: Arc::default(),
        })
    }

    fn reload(&self) {
        *self.rules.lock().unwrap() = self.world.rules();
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
    async fn work(&mut self) {
        loop {
            let wait = self.worker.round(&mut self.under_way).await.unwrap();
            match self.under_way.join_next_with_id().await {
                Some(landed) => self.worker.landed(landed),
                None if wait.is_zero() => {}
                None => return,
            }
        }
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
async fn a_result_is_reported_once() {
    let (mut desk, receiver) = (Desk::new(), Receiver::start(OK).await);
    let id = desk.failed("o-1", &receiver.url).await;
    desk.work().await;
    let (record, tries) = desk.callback(id).await;
    assert_eq!((record.state, record.is_v1, record.order_id.as_str()), (CallbackState::Delivered, true, "o-1"));
    assert!(matches!(&tries[..], [CallbackTry { at: START, outcome: TryOutcome::Status(200), .. }]), "{tries:?}");
    desk.world.clock.advance(Duration::from_hours(24));
    desk.work().await;
    assert_eq!(receiver.came(), [id.to_string()]);
}

#[tokio::test]
async fn a_dead_receiver_is_tried_with_growing_waits_until_it_is_given_up() {
    let (mut desk, url) = (Desk::new(), Receiver::nowhere().await);
    let id = desk.failed("o-1", &url).await;
    let mut waits = Vec::new();
    loop {
        // Once the circuit is open, an attempt may have to wait for the time of a probe.
        let mut later = 0;
        while desk.state(id).await.1 as usize == waits.len() {
            desk.work().await;
            desk.world.clock.advance(Duration::from_secs(1));
            later += 1;
            assert!(later <= 21, "the longest wait is exceeded");
        }
        desk.work().await;
        let now = desk.world.clock.now();
        let (record, tries) = desk.callback(id).await;
        assert_eq!(tries.len(), waits.len() + 1, "one attempt at each time");
        assert!(matches!(&tries.last().unwrap().outcome, TryOutcome::Error(text) if text.starts_with("no connection")));
        if record.state == CallbackState::Failed {
            assert!(
                tries.last().unwrap().at >= START.plus(Duration::from_mins(1)),
                "the last attempt is at give_up_after"
            );
            break;
        }
        waits.push(tries.last().unwrap().at.until(record.due).as_secs_f64());
        desk.advance_to(UnixMillis(record.due.0 - 1));
        assert!(desk.world.clock.now() > now || record.due <= now);
        if record.due > now {
            desk.work().await;
            assert_eq!(desk.state(id).await.1 as usize, waits.len(), "not before it is due");
        }
        desk.advance_to(record.due);
    }
    for (wait, longest) in waits.iter().zip([4.0, 8.0, 16.0, 20.0]) {
        assert!((longest / 2.0..=longest).contains(wait), "{waits:?}");
    }
    desk.world.clock.advance(Duration::from_hours(24));
    let before = desk.state(id).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, before, "there are no more attempts");
    assert_eq!(desk.world.engine.store().resend_callback(id, desk.world.clock.now()).await.unwrap(), Resent::Queued);
    desk.work().await;
    assert_eq!(desk.state(id).await, (CallbackState::Pending, before.1 + 1), "give_up_after counts anew");
}

#[tokio::test]
async fn retry_after_is_honoured_within_the_longest_wait_and_gone_ends_it() {
    let (mut desk, receiver) = (Desk::new(), Receiver::start(BUSY).await);
    let id = desk.failed("o-1", &receiver.url).await;
    desk.work().await;
    let (record, _) = desk.callback(id).await;
    assert_eq!(record.due, START.plus(Duration::from_secs(20)), "40 s were requested, max_retry is 20 s");
    receiver.say(GONE);
    desk.advance_to(record.due);
    desk.work().await;
    assert_eq!(desk.state(id).await, (CallbackState::Failed, 2));
    assert_eq!(receiver.came(), [id.to_string(), id.to_string()], "all attempts have the same id");
}

#[tokio::test]
async fn a_dead_target_holds_up_nobody_and_gets_a_connection_now_and_then() {
    let (mut desk, dead, receiver) = (Desk::new(), Receiver::nowhere().await, Receiver::start(OK).await);
    let mut waiting = Vec::new();
    for number in 0..40 {
        waiting.push(desk.failed(&format!("dead-{number}"), &dead).await);
    }
    let live = desk.failed("live", &receiver.url).await;
    desk.work().await;
    assert_eq!(desk.state(live).await, (CallbackState::Delivered, 1));
    let tries = async |desk: &Desk| {
        let mut tries = 0;
        for id in &waiting {
            tries += desk.state(*id).await.1;
        }
        tries
    };
    let first = tries(&desk).await;
    assert!((5..=8).contains(&first), "one window, then the circuit opens: {first}");
    desk.world.clock.advance(Duration::from_secs(4));
    desk.work().await;
    assert_eq!(tries(&desk).await, first + 1, "one probe");
    let (open, named) = desk.worker.targets.open(5);
    assert_eq!((open, named.len()), (1, 1));
    desk.reload();
    desk.world.clock.advance(Duration::from_secs(90));
    desk.worker.looked = None;
    desk.work().await;
    for id in &waiting {
        assert_eq!(desk.state(*id).await.0, CallbackState::Failed, "none waits longer than give_up_after");
    }
}

#[tokio::test]
async fn what_was_cut_off_between_sending_and_recording_is_sent_again_under_its_name() {
    let (mut desk, receiver) = (Desk::new(), Receiver::start(SILENCE).await);
    let id = desk.failed("o-1", &receiver.url).await;
    desk.worker.round(&mut desk.under_way).await.unwrap();
    while receiver.came().is_empty() {
        tokio::task::yield_now().await;
    }
    // As if the process died here.
    desk.under_way.shutdown().await;
    desk.worker = Desk::worker(&desk.world, &desk.rules);
    receiver.say(OK);
    desk.work().await;
    assert_eq!(desk.state(id).await, (CallbackState::Pending, 0), "it is still leased");
    assert_eq!(desk.world.engine.store().resend_callback(id, START).await.unwrap(), Resent::UnderWay);
    desk.world.clock.advance(LEASE + Duration::from_millis(300));
    desk.work().await;
    assert_eq!(desk.state(id).await, (CallbackState::Delivered, 1));
    assert_eq!(receiver.came(), [id.to_string(), id.to_string()]);
}

#[tokio::test]
async fn a_silent_receiver_is_given_up_after_the_timeout() {
    let (mut desk, receiver) = (Desk::new(), Receiver::start(SILENCE).await);
    let id = desk.failed("o-1", &receiver.url).await;
    desk.work().await;
    let (record, tries) = desk.callback(id).await;
    assert_eq!(
        (record.state, &tries[0].outcome),
        (CallbackState::Pending, &TryOutcome::Error("no answer in time".into()))
    );
}

#[tokio::test]
async fn rules_that_cannot_tell_are_waited_for() {
    let (mut desk, receiver) = (Desk::new(), Receiver::start(OK).await);
    let id = desk.failed("o-1", &receiver.url).await;
    desk.world.edit("merchants/acme.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"s\"\nallowed_ips = []\n");
    desk.reload();
    desk.work().await;
    let (record, tries) = desk.callback(id).await;
    let TryOutcome::Error(text) = &tries[0].outcome else { panic!("{tries:?}") };
    assert!(record.state == CallbackState::Pending && text.contains("plain http"), "{text}");
    desk.world.edit("merchants/acme.toml", ACME);
    desk.reload();
    desk.advance_to(record.due);
    desk.work().await;
    assert_eq!(desk.state(id).await, (CallbackState::Delivered, 2));
    assert_eq!(receiver.came().len(), 1);
}

#[tokio::test]
async fn a_worker_that_is_stopped_finishes_what_is_under_way() {
    let (desk, receiver) = (Desk::new(), Receiver::start(OK).await);
    let id = desk.failed("o-1", &receiver.url).await;
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(Desk::worker(&desk.world, &desk.rules).run(stopped));
    while receiver.came().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(stop);
    running.await.unwrap();
    assert_eq!(desk.state(id).await, (CallbackState::Delivered, 1));
}

#[tokio::test]
async fn what_waited_for_a_gateway_that_was_down_has_its_try() {
    let (mut desk, receiver, dead) = (Desk::new(), Receiver::start(OK).await, Receiver::nowhere().await);
    let (well, late) = (desk.failed("well", &receiver.url).await, desk.failed("late", &dead).await);
    desk.world.clock.advance(Duration::from_hours(24));
    desk.work().await;
    assert_eq!(desk.state(well).await, (CallbackState::Delivered, 1));
    assert_eq!(desk.state(late).await, (CallbackState::Failed, 1), "one attempt, and no time for another");
}
