//! kill -9 among claims and forwards: gateways with different modes are killed while callers create the same orders at all of
//! them, and no order is ever made both here and at the old v1 service. `PAYBRIDGE_LONG=1` runs many more rounds,
//! `PAYBRIDGE_SEED` repeats a run.

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use paybridge::clock::SystemRandomness;
use paybridge::domain::{Direction, MerchantId, OrderId, UnixMillis};
use paybridge::rules::{self, LoadOptions};
use paybridge::store::{OrderLookup, StoreAccess, open_beside};
use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::client::connect_any;
use crate::support::postgres::server;
use crate::support::receiver::{Play, Receiver};
use crate::support::request::ACME;
use crate::support::tools::seed;
use crate::support::{Client, Gateway, Request, Rules, eventually, payin};

/// What each gateway does with new orders, changed at every restart.
const MODES: [&str; 4] = [
    "mode = \"translate\"",
    "mode = \"legacy\"",
    "mode = \"staged\", percent = 50",
    "mode = \"staged\", percent = 100",
];

/// How many callers create.
const CALLERS: usize = 12;

/// An old service that answers at once, late, with an error, or hangs up.
fn old_service() -> Receiver {
    let count = AtomicUsize::new(0);
    Receiver::start(move |_, _| match count.fetch_add(1, Ordering::Relaxed) % 7 {
        0 => Play::Late(200, Duration::from_millis(30)),
        1 => Play::Cut,
        2 => Play::Say(503),
        _ => Play::Say(200),
    })
}

fn rules(old: &Receiver, mode: &str) -> Rules {
    let (url, ca) = (old.url(""), old.ca());
    let ca = ca.display();
    Rules::default().with("legacy", &format!("url = \"{url}\"\ntrust = [\"{ca}\"]\ntimeout = \"1s\"")).edit(
        "merchants/acme.toml",
        "name = \"Acme Ltd\"\n",
        &format!("name = \"Acme Ltd\"\nv1 = {{ {mode} }}\n"),
    )
}

/// What callers share.
struct Load {
    clients: Vec<Client>,
    sent: Mutex<HashSet<String>>,
    answered: AtomicUsize,
    stop: AtomicBool,
}

/// Creates orders that other callers create, too, at any gateway that answers.
async fn call(load: Arc<Load>, mut chance: Rng, round: u64) {
    while !load.stop.load(Ordering::Relaxed) {
        let choose = || chance.usize(..load.clients.len());
        let mut connection = connect_any(&load.clients, choose).await;
        for _ in 0..4 {
            // Sometimes an order of an earlier round.
            let of = round - chance.u64(..2).min(round);
            let id = format!("order-{of}-{}", chance.u64(..300));
            let body: Value = match chance.u64(..5) {
                0 => with(payin(&id), "amount", Some(json!("11.00"))),
                1 => with(payin(&id), "x", Some(json!(1))),
                _ => payin(&id),
            };
            load.sent.lock().unwrap().insert(id);
            if !connection.send_to_any_end(&Request::payin(&ACME, &body)).await {
                break;
            }
            load.answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Kills one of the gateways over and over while callers create, then counts homes.
async fn drill(gateways: &mut [Gateway], old: &Receiver) {
    let seed = seed();
    let mut chance = Rng::with_seed(seed);
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 80 } else { 5 };
    complete(&gateways[0]);
    // In turn: a short drill has each of them.
    let mut modes = MODES.iter().cycle().skip(chance.usize(..MODES.len()));
    let mut sent = HashSet::new();
    for round in 0..rounds {
        let load = Arc::new(Load {
            clients: gateways.iter().map(Gateway::client).collect(),
            sent: Mutex::default(),
            answered: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(call(load.clone(), chance.fork(), round))).collect();
        let answered = 30 + chance.usize(..200);
        eventually("the load goes on", async || (load.answered.load(Ordering::Relaxed) > answered).then_some(())).await;
        let killed = chance.usize(..gateways.len());
        let gateway = &mut gateways[killed];
        gateway.kill();
        let mode = modes.next().unwrap();
        rules(old, mode).write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
        gateway.restart();
        load.stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        sent.extend(load.sent.lock().unwrap().drain());
    }
    gateways.iter_mut().for_each(Gateway::kill);
    let (here, there) = count(&gateways[0], old, &sent).await;
    assert!(here > 20 && there > 20, "seed {seed}: {here} orders are here, and {there} at the old service");
}

/// Marks the list of old ids as whole, so that mode `staged` makes orders here.
fn complete(gateway: &Gateway) {
    let output = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["import-ids", "--merchant", "acme", "--kind", "payin", "--complete", "--rules"])
        .arg(gateway.rules_dir())
        .arg("/dev/null")
        .current_dir(gateway.root.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns how many of the orders are here and how many reached the old service; none may be both.
async fn count(gateway: &Gateway, old: &Receiver, sent: &HashSet<String>) -> (usize, usize) {
    let reached: HashSet<String> =
        old.received().iter().map(|received| received.json()["external_id"].as_str().unwrap().to_owned()).collect();
    let rules = rules::load(&gateway.rules_dir(), UnixMillis(0), None, LoadOptions::default()).unwrap();
    let store =
        open_beside(&rules.gateway.store, StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
            .unwrap();
    let audit = store.audit(Arc::new(|_| {})).await.unwrap();
    assert!(audit.is_clean(), "{audit:?}");
    let (acme, mut here) = (MerchantId::new("acme").unwrap(), 0);
    for id in sent {
        let stored = store.by_order(&acme, Direction::Payin, &OrderId::new(id).unwrap()).await.unwrap();
        let is_here = matches!(stored, OrderLookup::Operation(_));
        assert!(!(is_here && reached.contains(id)), "{id} was made here, and reached the old service");
        here += usize::from(is_here);
    }
    assert!(reached.iter().all(|id| sent.contains(id)), "the old service got what nobody sent");
    (here, reached.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_has_two_homes_after_kill_9() {
    let old = old_service();
    let mut gateways = [Gateway::start_on_file(&rules(&old, MODES[2]))];
    drill(&mut gateways, &old).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_has_two_homes_on_two_nodes_after_kill_9() {
    let Some(server) = server() else { return };
    let old = old_service();
    let database = Arc::new(server.database());
    let mut gateways = [MODES[2], MODES[1]].map(|mode| Gateway::prepare_on(&rules(&old, mode), Some(database.clone())));
    for gateway in &mut gateways {
        gateway.spawn();
        assert!(gateway.wait_ready(), "a node did not start:\n{}", gateway.log());
    }
    drill(&mut gateways, &old).await;
}
