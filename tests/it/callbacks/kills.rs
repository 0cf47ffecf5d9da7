//! kill -9 between results and their callbacks: every acknowledged operation that came to a result is told of, by one name,
//! however often the process dies. `PAYBRIDGE_LONG=1` runs many more rounds, `PAYBRIDGE_SEED` repeats a run.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::callbacks::book::Book;
use crate::callbacks::verify::{V1, assert_v1, assert_v2};
use crate::callbacks::{create, path, rules, status, withdrawal};
use crate::support::bodies::with;
use crate::support::receiver::{Play, Receiver};
use crate::support::request::ACME;
use crate::support::{self, Gateway, Request, eventually, text, tools, within};

/// A create, and its `transaction_id` when it was acknowledged.
struct Order {
    id: String,
    cents: u64,
    is_v1: bool,
    acknowledged: Option<String>,
}

impl Order {
    fn amount(&self) -> String {
        format!("{}.{:02}", self.cents / 100, self.cents % 100)
    }

    fn request(&self, receiver: &Receiver) -> Request {
        if !self.is_v1 {
            return Request::withdrawal(&ACME, &withdrawal(receiver, &self.id, &self.amount()));
        }
        let body = with(support::payout(&self.id), "amount", Some(self.amount().into()));
        Request::payout(&ACME, &with(body, "callback_url", Some(receiver.url(&path(&self.id)).into())))
    }

    async fn status(&self, gateway: &Gateway, transaction_id: &str) -> String {
        if !self.is_v1 {
            return status(gateway, &ACME, transaction_id).await;
        }
        let request = Request::v1_status(&ACME, "payout", &self.id);
        text(&gateway.client().send(&request).await.expect(200).json(), "status").to_owned()
    }

    /// The sandbox's result; `None` for what stays PENDING.
    const fn result(&self) -> Option<&'static str> {
        match self.cents % 100 {
            2 => None,
            1 | 4 => Some("FAILED"),
            _ => Some("SUCCESS"),
        }
    }

    fn reported(&self, transaction_id: &str) -> Value {
        json!({ "external_id": self.id, "transaction_id": transaction_id, "status": self.result().unwrap(),
            "amount": self.amount(), "currency": "EUR", "shop_code": "card-eur" })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_result_is_reported_whenever_the_process_dies() {
    let seed = tools::seed();
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 60 } else { 4 };
    // Fails now and then, and by the same callback never more than three times.
    let receiver = Receiver::start(move |received, before| {
        let of_body = received.body.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        match Rng::with_seed(seed ^ of_body).u8(..5) {
            0 if before < 3 => Play::Say(500),
            1 if before < 2 => Play::Cut,
            2 if before < 1 => Play::Late(200, Duration::from_millis(150)),
            _ => Play::Say(200),
        }
    });
    let keys = "first_retry = \"50ms\"\nmax_retry = \"500ms\"\ntimeout = \"2s\"";
    let mut gateway = Gateway::start(&rules(&[&receiver], keys).edit("shops/card-eur.toml", "0s", "60ms"));
    let mut orders = Vec::new();
    for round in 0..rounds {
        let replies = Rng::with_seed(seed.wrapping_add(round)).u64(1..=400);
        orders.extend(load_and_kill(&mut gateway, &receiver, round, replies).await);
        gateway.restart();
    }
    assert!(orders.iter().any(|order| order.acknowledged.is_some()), "seed {seed}: the load never got going");
    let names = settled(&gateway, &receiver, &orders, seed).await;
    reported(&gateway, &receiver, &names, seed).await;
    let check = gateway.store_check();
    assert!(check.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&check.stdout));
}

/// Lets callers create without pause, and kills the gateway after so many replies.
async fn load_and_kill(gateway: &mut Gateway, receiver: &Receiver, round: u64, replies: u64) -> Vec<Order> {
    let orders = Mutex::new(Vec::new());
    let answered = Arc::new(AtomicU64::new(0));
    let client = gateway.client();
    let load = futures(8, async |caller| {
        let Some(mut connection) = client.try_connect().await else { return };
        for number in 0..200 {
            let cents = 700 + number % 6;
            let id = format!("{round}-{caller}-{number}");
            let mut order = Order { id, cents, is_v1: caller % 2 == 0, acknowledged: None };
            let reply = connection.try_send(&order.request(receiver)).await;
            let died = reply.is_none();
            order.acknowledged = reply.map(|reply| text(&reply.expect(200).json(), "transaction_id").to_owned());
            orders.lock().unwrap().push(order);
            answered.fetch_add(1, Ordering::Relaxed);
            if died {
                return;
            }
        }
    });
    let kill = async {
        eventually("replies", async || (answered.load(Ordering::Relaxed) >= replies).then_some(())).await;
        gateway.kill();
    };
    tokio::join!(load, kill);
    orders.into_inner().unwrap()
}

/// So many at a time.
async fn futures(count: usize, work: impl AsyncFn(usize)) {
    let mut all: Vec<_> = (0..count).map(|number| Box::pin(work(number))).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Waits until every order has its result; the orders by their path, with their `transaction_id`.
async fn settled<'a>(
    gateway: &Gateway,
    receiver: &Receiver,
    orders: &'a [Order],
    seed: u64,
) -> HashMap<String, (&'a Order, String)> {
    let mut names = HashMap::new();
    for order in orders {
        // A repeat makes of what was not acknowledged an operation, too, and finds what was.
        let id = create(gateway, &order.request(receiver)).await;
        assert!(order.acknowledged.as_ref().is_none_or(|known| *known == id), "seed {seed}: {} is another", order.id);
        if let Some(result) = order.result() {
            eventually(&format!("{} has its result", order.id), async || {
                let status = order.status(gateway, &id).await;
                assert!(status == "PENDING" || status == result, "seed {seed}: {}: {status}", order.id);
                (status == result).then_some(())
            })
            .await;
        }
        names.insert(path(&order.id), (order, id));
    }
    names
}

/// Waits until nothing waits to be told, and asserts what was.
async fn reported(gateway: &Gateway, receiver: &Receiver, names: &HashMap<String, (&Order, String)>, seed: u64) {
    let book = Book::of(gateway);
    // There are tens of thousands after many rounds: they take as long as they take, while fewer and fewer wait.
    let mut sizes = (u64::MAX, 0);
    while sizes != (0, 0) {
        let fewer = within(Duration::from_mins(1), async || {
            let now = book.sizes().await;
            (now == (0, 0) || now.0 < sizes.0).then_some(now)
        });
        sizes = fewer.await.unwrap_or_else(|| panic!("seed {seed}: {sizes:?} wait and failed"));
    }
    let mut ids: HashMap<String, String> = HashMap::new();
    for received in receiver.received() {
        let (order, transaction_id) = &names[&received.target];
        assert!(order.result().is_some(), "seed {seed}: {} has no result", order.id);
        if order.is_v1 {
            assert_v1(&received, &V1, &ACME, &order.reported(transaction_id));
        } else {
            assert_v2(&received, ACME.v2.unwrap(), &order.id);
        }
        let id = ids.entry(received.target.clone()).or_insert_with(|| received.id().to_owned());
        assert_eq!(id, received.id(), "seed {seed}: {} has two names", order.id);
    }
    let different: HashSet<_> = ids.values().collect();
    assert_eq!(different.len(), ids.len(), "seed {seed}: two operations share a name");
    for (target, (order, _)) in names {
        assert_eq!(ids.contains_key(target), order.result().is_some(), "seed {seed}: {} was not told", order.id);
    }
}
