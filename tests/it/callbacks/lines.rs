//! No receiver waits for another: what is queued for a target that is dead or slow delays nobody else's.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::callbacks::book::Book;
use crate::callbacks::verify::assert_v2;
use crate::callbacks::{path, rules, withdraw, withdrawal};
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::request::ACME;
use crate::support::{Client, Gateway, Request, eventually, text, within};

/// How many callbacks wait for each dead target. `PAYBRIDGE_LONG=1` makes it thousands.
fn backlog() -> usize {
    if std::env::var_os("PAYBRIDGE_LONG").is_some() { 3000 } else { 300 }
}

/// Whoever waits for a dead target waits for longer than a test does.
const KEYS: &str = "first_retry = \"200ms\"\nmax_retry = \"1s\"\ntimeout = \"2m\"";

/// Withdrawals that fail at creation, told to a receiver.
fn bodies(receiver: &Receiver, name: &str) -> Vec<Value> {
    (0..backlog()).map(|number| withdrawal(receiver, &format!("{name}-{number}"), "7.01")).collect()
}

/// Creates them, by a few connections at a time.
async fn queue(gateway: &Gateway, bodies: &[Value]) {
    let share = bodies.len().div_ceil(8);
    let callers: Vec<_> =
        bodies.chunks(share).map(|share| tokio::spawn(create_all(gateway.client(), share.to_vec()))).collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn create_all(client: Client, bodies: Vec<Value>) {
    let mut connection = client.connect().await;
    for body in bodies {
        connection.send(&Request::withdrawal(&ACME, &body)).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_target_delays_no_other() {
    let alive = Arc::new(AtomicBool::new(false));
    let (first, second) = (alive.clone(), alive.clone());
    let manner = move |_| if first.load(Ordering::Relaxed) { Manner::Serve } else { Manner::Mute };
    // One accepts and says nothing, one hears every request and never answers, one refuses.
    let mute = Receiver::with(manner, |_, _| Play::Say(200));
    let deaf = Receiver::start(move |_, _| if second.load(Ordering::Relaxed) { Play::Say(200) } else { Play::Hang });
    let identity = Arc::new(Identity::new(&["http/1.1"]));
    let start = |port| Receiver::on(port, &identity, |_| Manner::Serve, |_, _| Play::Say(200));
    let gone = start(0);
    let live = Receiver::good();
    let gateway = Gateway::start(&rules(&[&mute, &deaf, &gone, &live], KEYS));
    let orders = [bodies(&mute, "mute"), bodies(&deaf, "deaf"), bodies(&gone, "gone")];
    let port = gone.address.port();
    drop(gone);
    for orders in &orders {
        queue(&gateway, orders).await;
    }
    let book = Book::of(&gateway);
    for number in 0..5 {
        let order_id = format!("live-{number}");
        withdraw(&gateway, &live, &order_id).await;
        assert_v2(&live.got(&path(&order_id), 1).await[0], ACME.v2.unwrap(), &order_id);
        let (pending, failed) = book.sizes().await;
        assert!(pending >= u64::try_from(3 * backlog()).unwrap(), "the dead ones were not waited for: {pending} wait");
        assert_eq!(failed, 0);
    }
    assert_eq!(mute.count(), 0);
    // All three come to life.
    alive.store(true, Ordering::Relaxed);
    mute.let_go();
    deaf.let_go();
    let back = start(port);
    for (receiver, orders) in [&mute, &deaf, &back].into_iter().zip(&orders) {
        drained(receiver, orders).await;
    }
    eventually("nothing waits", async || (book.sizes().await == (0, 0)).then_some(())).await;
}

/// Waits until every order was told, however long the line is.
async fn drained(receiver: &Receiver, orders: &[Value]) {
    let drained = within(Duration::from_mins(3), async || {
        let reported: HashSet<_> = receiver.received().into_iter().map(|one| one.target).collect();
        orders.iter().all(|order| reported.contains(&path(text(order, "order_id")))).then_some(())
    });
    assert!(drained.await.is_some(), "{} were told of {}", receiver.count(), orders.len());
}

/// One slow receiver in a row of quick ones, all of one merchant.
#[tokio::test]
async fn a_slow_target_delays_no_other() {
    let slow = Receiver::start(|_, _| Play::Late(200, Duration::from_secs(2)));
    let quick = Receiver::good();
    let gateway = Gateway::start(&rules(&[&slow, &quick], KEYS));
    for number in 0..40 {
        withdraw(&gateway, &slow, &format!("slow-{number}")).await;
    }
    for number in 0..10 {
        withdraw(&gateway, &quick, &format!("quick-{number}")).await;
    }
    for number in 0..10 {
        quick.got(&path(&format!("quick-{number}")), 1).await;
    }
    let reported: HashSet<_> = slow.received().into_iter().map(|one| one.target).collect();
    assert!(reported.len() < 40, "the slow ones were waited for");
}
