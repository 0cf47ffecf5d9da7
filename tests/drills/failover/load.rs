//! Callers who create without pause, each order until it is acknowledged, and what they were told and when.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{Client, Connection, Reply};

/// How long a caller waits after a 503. It asks again sooner than it is told to: that is the worse load.
const PAUSE: Duration = Duration::from_millis(100);

/// An order that was acknowledged.
pub struct Order {
    pub id: String,
    pub kind: Create,
    pub body: Value,
    pub reply: Value,
}

/// One reply.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub gateway: usize,
    pub at: Instant,
    pub took: Duration,
    pub acknowledged: bool,
}

/// What callers share.
pub struct Load {
    pub clients: Vec<Client>,
    pub orders: Mutex<Vec<Order>>,
    pub reported: Mutex<Vec<Attempt>>,
    pub stop: AtomicBool,
}

impl Load {
    pub fn new(clients: Vec<Client>) -> Self {
        Self { clients, orders: Mutex::default(), reported: Mutex::default(), stop: AtomicBool::default() }
    }

    /// What was told since then.
    pub fn since(&self, began: Instant) -> Vec<Attempt> {
        self.reported.lock().unwrap().iter().filter(|reported| reported.at >= began).copied().collect()
    }

    /// Creates one order after the other at one gateway.
    pub async fn call(&self, caller: usize) {
        let gateway = caller % self.clients.len();
        let kind = CREATES[caller / self.clients.len() % CREATES.len()];
        let mut connection = self.clients[gateway].connect().await;
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let id = format!("{caller}-{number}");
            let amount = 1 + number % 90;
            let amount = if kind.is_v1() { json!(format!("{amount}.00")) } else { json!(amount) };
            let body = with(kind.body(&id), "amount", Some(amount));
            let reply = self.acknowledged(&mut connection, gateway, kind, &body).await.json();
            self.orders.lock().unwrap().push(Order { id, kind, body, reply });
        }
    }

    /// Asks until the order is taken. Nothing but a 503 that says when to come again may stand in its way.
    async fn acknowledged(&self, connection: &mut Connection, gateway: usize, kind: Create, body: &Value) -> Reply {
        loop {
            // The signature of v1 has a time in it.
            let request = kind.request(&ACME, body.to_string());
            let began = Instant::now();
            let reply = connection.send(&request).await;
            let acknowledged = reply.status == 200;
            let reported = Attempt { gateway, at: Instant::now(), took: began.elapsed(), acknowledged };
            self.reported.lock().unwrap().push(reported);
            if acknowledged {
                return reply;
            }
            let reply = reply.expect(503);
            assert!(reply.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0), "{reply:?}");
            // A caller may not come again at once.
            tokio::time::sleep(PAUSE).await;
        }
    }
}
