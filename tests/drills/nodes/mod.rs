//! Several gateways on one PostgreSQL database: they start at once, one after the other is killed under load while rules are
//! reloaded, and nothing that was acknowledged is lost or doubled, every callback is sent, and nothing waits longer than a
//! lease. `PAYBRIDGE_LONG=1` kills many more.
//!
//! Where PostgreSQL is not installed the tests say so and pass, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.

mod rolled;
mod trouble;
mod upgrade;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::bodies::with;
use crate::support::client::connect_any;
use crate::support::postgres::{Database, Server, server};
use crate::support::receiver::{Receiver, trusting};
use crate::support::request::{ACME, ACME_V2};
use crate::support::stored::Create;
use crate::support::{Client, Gateway, Request, Rules, eventually, text};

/// So many gateways.
const NODES: usize = 3;

/// Callers who create without pause.
const CALLERS: usize = 9;

/// Gateways on one database.
struct Nodes {
    gateways: Vec<Gateway>,
    database: Arc<Database>,
}

impl Nodes {
    /// Starts them all at once, on a database that is empty.
    fn start(server: &Server, rules: &Rules) -> Self {
        let database = Arc::new(server.database());
        let mut gateways: Vec<_> =
            (0..NODES).map(|_| Gateway::prepare_on(rules, Some(Arc::clone(&database)))).collect();
        gateways.iter_mut().for_each(Gateway::spawn);
        for gateway in &mut gateways {
            assert!(gateway.wait_ready(), "a node did not start:\n{}", gateway.log());
        }
        Self { gateways, database }
    }

    fn clients(&self) -> Vec<Client> {
        self.gateways.iter().map(Gateway::client).collect()
    }
}

/// What one caller knows of one create.
#[derive(Debug, Clone)]
struct Order {
    id: String,
    kind: Create,
    body: Value,
    reply: Value,
}

/// What callers share.
struct Load {
    clients: Vec<Client>,
    orders: Mutex<Vec<Order>>,
    answered: AtomicUsize,
    stop: AtomicBool,
    /// Whether a gateway may answer 503; the order is sent again.
    may_refuse: bool,
}

impl Load {
    /// Starts callers.
    async fn start(
        clients: Vec<Client>,
        receiver: &Arc<Receiver>,
        may_refuse: bool,
    ) -> (Arc<Self>, Vec<JoinHandle<()>>) {
        let load = Arc::new(Self {
            clients,
            orders: Mutex::default(),
            answered: AtomicUsize::default(),
            stop: AtomicBool::default(),
            may_refuse,
        });
        let callers = (0..CALLERS).map(|caller| tokio::spawn(call(Arc::clone(&load), Arc::clone(receiver), caller)));
        let callers = callers.collect();
        load.goes_on(20).await;
        (load, callers)
    }

    /// Waits until so many more orders were acknowledged.
    async fn goes_on(&self, more: usize) {
        let before = self.answered.load(Ordering::Relaxed);
        let is_there = || (self.answered.load(Ordering::Relaxed) > before + more).then_some(());
        eventually("the load goes on", async || is_there()).await;
    }

    /// Stops the callers, and returns what they know.
    async fn stop(&self, callers: Vec<JoinHandle<()>>) -> Vec<Order> {
        self.stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        self.orders.lock().unwrap().clone()
    }
}

/// Creates one order after the other, each until it is acknowledged, at whichever node answers.
async fn call(load: Arc<Load>, receiver: Arc<Receiver>, caller: usize) {
    const KINDS: [Create; 3] = [Create::Withdrawal, Create::Deposit, Create::Withdrawal];
    let kind = KINDS[caller % KINDS.len()];
    let mut nodes = (0..load.clients.len()).cycle().skip(caller);
    let mut next = || nodes.next().unwrap();
    let mut connection = None;
    for number in 0.. {
        if load.stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("{caller}-{number}");
        // Whole amounts succeed, and those of 1 hundredth fail.
        let amount = format!("{}.{:02}", 1 + number % 90, u8::from(number % 5 == 0));
        let body = with(kind.body(&id), "amount", Some(serde_json::from_str(&amount).unwrap()));
        let body = with(body, "callback_url", Some(json!(receiver.url(&format!("/cb/{id}")))));
        loop {
            // Where its node was killed, nobody knows what became of the order: it is asked for at the next one.
            let mut open = match connection.take() {
                Some(open) => open,
                None => connect_any(&load.clients, &mut next).await,
            };
            if let Some(reply) = open.try_send(&kind.request(&ACME, body.to_string())).await {
                if load.may_refuse && reply.status == 503 {
                    continue;
                }
                connection = Some(open);
                let reply = reply.expect(200).json();
                load.answered.fetch_add(1, Ordering::Relaxed);
                load.orders.lock().unwrap().push(Order { id, kind, body, reply });
                break;
            }
        }
    }
}

/// Kills one node after the other and starts it again, and has the rules of the others read anew.
async fn disturb(nodes: &mut Nodes, load: &Load, rounds: usize) {
    for round in 0..rounds {
        let victim = round % NODES;
        nodes.gateways[victim].kill();
        let shop = nodes.gateways[(victim + 1) % NODES].rules_dir().join("shops/card-eur.toml");
        let rules = std::fs::read_to_string(&shop).unwrap();
        std::fs::write(&shop, format!("{rules}# {round}\n")).unwrap();
        nodes.gateways[(victim + 2) % NODES].signal(Signal::HUP);
        load.goes_on(30).await;
        nodes.gateways[victim].restart();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_killed_lose_and_double_nothing() {
    let Some(server) = server() else { return };
    let receiver = Arc::new(Receiver::good());
    let mut nodes = Nodes::start(server, &rules(&receiver));
    let (load, callers) = Load::start(nodes.clients(), &receiver, false).await;
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 40 } else { 4 };
    disturb(&mut nodes, &load, rounds).await;
    let orders = load.stop(callers).await;
    assert_all_is_there(&nodes, &receiver, &orders).await;
}

/// Rules whose callbacks come soon.
fn rules(receiver: &Receiver) -> Rules {
    Rules::default()
        .with("callbacks", &trusting(&[&receiver.ca()]))
        .with("callbacks", "first_retry = \"100ms\"\nmax_retry = \"400ms\"\ntimeout = \"2s\"")
        .edit("shops/card-eur.toml", "50ms", "20ms")
}

async fn assert_all_is_there(nodes: &Nodes, receiver: &Receiver, orders: &[Order]) {
    assert_found_once(&nodes.clients(), orders).await;
    let stored: usize = nodes.database.sql("SELECT count(*) FROM operations").parse().unwrap();
    assert_eq!(stored, orders.len(), "rows and orders");
    assert_reported(&nodes.gateways[0].client(), receiver, orders).await;
    assert_nothing_is_left(nodes).await;
    for gateway in &nodes.gateways {
        assert_clean(gateway);
    }
}

#[track_caller]
fn assert_clean(gateway: &Gateway) {
    let checked = gateway.store_check();
    let said = [&checked.stdout, &checked.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(checked.status.success(), "{said:?}");
}

/// Every order is there once, says the same at every node, and was answered alike wherever it is asked for again.
async fn assert_found_once(clients: &[Client], orders: &[Order]) {
    let mut ids = HashSet::new();
    let mut nodes = Vec::new();
    for client in clients {
        nodes.push(client.connect().await);
    }
    for (number, order) in orders.iter().enumerate() {
        let id = text(&order.reply, "transaction_id");
        assert!(ids.insert(id.to_owned()), "two orders have one transaction: {order:?}");
        let node = &mut nodes[number % clients.len()];
        let record = node.send(&order.kind.status(&ACME, &order.id, &order.reply)).await.expect(200).json();
        assert_eq!(text(&record, order.kind.id_member()), order.id);
        if number % 10 == 0 {
            let again = node.send(&order.kind.request(&ACME, order.body.to_string())).await.expect(200).json();
            assert_eq!(again, order.reply, "a repeat of {order:?}");
        }
    }
}

/// Every withdrawal has its result, and its merchant was told so: under one name, whoever sent it and however often.
async fn assert_reported(client: &Client, receiver: &Receiver, orders: &[Order]) {
    let mut reported: HashMap<String, String> = HashMap::new();
    let mut node = client.connect().await;
    for order in orders.iter().filter(|order| order.kind == Create::Withdrawal) {
        let path = format!("/cb/{}", order.id);
        let calls = receiver.got(&path, 1).await;
        let record = Request::status(&ACME_V2, text(&order.reply, "transaction_id"));
        let record = node.send(&record).await.expect(200).json();
        assert_ne!(text(&record, "status"), "PENDING", "{path} was called");
        for callback in calls {
            assert_eq!(callback.json(), json!({ "order_id": order.id }), "{path}");
            let name = reported.entry(path.clone()).or_insert_with(|| callback.id().to_owned());
            assert_eq!(name, callback.id(), "one callback of {path}");
        }
    }
}

/// What was queued is done, also what a dead node had claimed.
async fn assert_nothing_is_left(nodes: &Nodes) {
    eventually("the queues are empty", async || {
        let left = nodes.database.sql(
            "SELECT count(*) FROM tasks t LEFT JOIN operations o ON o.transaction_id = t.key \
             LEFT JOIN contexts x ON x.id = o.context WHERE t.kind = 1 OR x.direction = 1",
        );
        (left == "0").then_some(())
    })
    .await;
}
