//! Callers who create while gateways are restarted: 64 over connections that they keep, and 50 a second over new ones. None may
//! be refused, nor end before its request was read.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::request::ACME;
use super::tools::say;
use super::{Client, Connection, Reply, Request, eventually, payin, text};

const KEPT: usize = 64;
/// How long a kept connection rests after a reply: shorter than a drain waits for another request.
const REST: Duration = Duration::from_millis(200);
/// From one new connection to the next.
const NEW_EACH: Duration = Duration::from_millis(20);

/// The callers, who go on until they are stopped.
pub struct Load {
    callers: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    sent: AtomicUsize,
    /// Requests that were sent while their kept connection was closed, and sent again over a new one.
    repeated: AtomicUsize,
    acknowledged: Mutex<Acknowledged>,
    is_over: AtomicBool,
}

/// What was acknowledged, and when.
struct Acknowledged {
    /// Order and transaction of each create.
    creates: Vec<(String, String)>,
    last: Instant,
    longest_silence: Duration,
}

impl Load {
    /// Starts the callers.
    pub fn start(client: Client) -> Self {
        let acknowledged = Acknowledged { creates: Vec::new(), last: Instant::now(), longest_silence: Duration::ZERO };
        let shared = Arc::new(Shared {
            client,
            sent: AtomicUsize::default(),
            repeated: AtomicUsize::default(),
            acknowledged: Mutex::new(acknowledged),
            is_over: AtomicBool::default(),
        });
        let mut callers: JoinSet<_> = (0..KEPT).map(|_| Arc::clone(&shared).over_kept()).collect();
        callers.spawn(Arc::clone(&shared).over_new());
        Self { callers, shared }
    }

    /// Waits until every caller had a few more replies.
    pub async fn goes_on(&self) {
        let before = self.shared.count();
        let is_there = || (self.shared.count() > before + 4 * KEPT).then_some(());
        eventually("the load goes on", async || is_there()).await;
    }

    /// Stops the callers, asks for every order, and tells how it went. Returns how many creates were acknowledged, and how many
    /// of them were sent twice.
    pub async fn stop(mut self, what: &str) -> (usize, usize) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        let Shared { client, sent, repeated, acknowledged, .. } = Arc::into_inner(self.shared).expect("they ended");
        let Acknowledged { creates, longest_silence, .. } = acknowledged.into_inner().unwrap();
        let (sent, repeated, silence) = (sent.into_inner(), repeated.into_inner(), longest_silence.as_millis());
        assert_eq!(creates.len(), sent, "all were acknowledged");
        assert_found_once(&client, &creates).await;
        say(&format!("{what}: {sent} creates, {repeated} of them sent twice, the longest silence {silence} ms"));
        (sent, repeated)
    }
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().creates.len()
    }

    fn next(&self) -> (String, Request) {
        let order = format!("load-{}", self.sent.fetch_add(1, Ordering::Relaxed));
        let create = Request::payin(&ACME, &payin(&order));
        (order, create)
    }

    async fn connect(&self) -> Connection {
        self.client.try_connect().await.expect("no connection is refused, and none ends in its handshake")
    }

    fn acknowledge(&self, order: String, reply: &Reply) {
        let transaction = text(&reply.json(), "transaction_id").to_owned();
        let mut acknowledged = self.acknowledged.lock().unwrap();
        let silence = acknowledged.last.elapsed();
        acknowledged.longest_silence = acknowledged.longest_silence.max(silence);
        acknowledged.last = Instant::now();
        acknowledged.creates.push((order, transaction));
    }

    async fn over_kept(self: Arc<Self>) {
        let mut kept: Option<Connection> = None;
        while self.goes_on() {
            let (order, create) = self.next();
            let mut reply = None;
            if let Some(connection) = &mut kept {
                reply = connection.try_send(&create).await;
                // It ended between two requests, and nobody has read this one.
                self.repeated.fetch_add(usize::from(reply.is_none()), Ordering::Relaxed);
            }
            let reply = match reply {
                Some(reply) => reply,
                None => kept.insert(self.connect().await).send(&create).await,
            }
            .expect(200);
            self.acknowledge(order, &reply);
            if reply.all("connection").contains(&"close") {
                kept = None;
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn over_new(self: Arc<Self>) {
        let mut ticks = interval(NEW_EACH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut callers = JoinSet::new();
        while self.goes_on() {
            ticks.tick().await;
            let shared = Arc::clone(&self);
            callers.spawn(async move {
                let (order, create) = shared.next();
                let reply = shared.connect().await.send(&create).await.expect(200);
                shared.acknowledge(order, &reply);
            });
            while let Some(ended) = callers.try_join_next() {
                ended.unwrap();
            }
        }
        callers.join_all().await;
    }
}

/// Every order is there, under the transaction that its create was acknowledged with, and no two have one.
async fn assert_found_once(client: &Client, creates: &[(String, String)]) {
    let transactions: HashSet<_> = creates.iter().map(|(_, transaction)| transaction).collect();
    assert_eq!(transactions.len(), creates.len(), "a transaction each");
    let mut connection = client.connect().await;
    for (order, transaction) in creates {
        let status = connection.send(&Request::v1_status(&ACME, "payin", order)).await.expect(200).json();
        assert_eq!(text(&status, "transaction_id"), transaction, "{order}");
    }
}
