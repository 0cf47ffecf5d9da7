//! Merchants that do not stop asking: several connections that are kept, HTTP/1.1 and HTTP/2, every kind of request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::bodies::with;
use crate::support::http2::Http2;
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::support::{Client, Connection, Gateway, Protocol, Reply, Request, deposit, payin, text};

/// Connections of each protocol.
const CONNECTIONS: usize = 3;

/// The shop that edits switch on and off.
pub const SWITCHED: &str = "half-eur";

/// What was answered to a request for the switched shop.
pub struct Seen {
    /// What its access line is found by.
    pub request_id: String,
    /// Whether it was taken.
    pub taken: bool,
}

/// Traffic under way. What goes wrong on any connection fails the test that stops it.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    merchants: Vec<JoinHandle<Vec<Seen>>>,
}

impl Traffic {
    /// Starts it, and waits until every connection has been served.
    pub async fn start(gateway: &Gateway, name: &str) -> Self {
        let (stop, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let mut merchants = Vec::new();
        for number in 0..CONNECTIONS * 2 {
            let protocol = if number % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
            let line = Line::open(&gateway.client(), protocol).await;
            let merchant = Merchant { line, name: format!("{name}-{number}"), asked: 0, seen: Vec::new() };
            merchants.push(tokio::spawn(merchant.ask(Arc::clone(&stop), Arc::clone(&rounds))));
        }
        let traffic = Self { stop, rounds, merchants };
        traffic.goes_on().await;
        traffic
    }

    /// Waits until everything was asked a few times more.
    pub async fn goes_on(&self) {
        let wanted = self.rounds.load(Ordering::Relaxed) + self.merchants.len() * 2;
        crate::support::eventually("traffic goes on", async || {
            assert!(!self.merchants.iter().any(JoinHandle::is_finished), "a connection failed");
            (self.rounds.load(Ordering::Relaxed) >= wanted).then_some(())
        })
        .await;
    }

    /// How often everything was asked.
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Stops it: what was seen on each connection, in its order.
    pub async fn stop(self) -> Vec<Vec<Seen>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        for merchant in self.merchants {
            seen.push(merchant.await.expect("no request failed and no connection was dropped"));
        }
        seen
    }
}

/// One connection, never opened again.
enum Line {
    Http1(Box<Connection>),
    Http2(Http2),
}

impl Line {
    async fn open(client: &Client, protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http1 => Self::Http1(Box::new(client.connect().await)),
            Protocol::Http2 => Self::Http2(Http2::connect(client).await),
        }
    }

    async fn send(&mut self, request: &Request) -> Reply {
        match self {
            Self::Http1(connection) => connection.send(request).await,
            Self::Http2(connection) => connection.send(request).await,
        }
    }
}

struct Merchant {
    line: Line,
    name: String,
    asked: usize,
    seen: Vec<Seen>,
}

impl Merchant {
    async fn ask(mut self, stop: Arc<AtomicBool>, rounds: Arc<AtomicUsize>) -> Vec<Seen> {
        let mut first: Option<(Request, Reply)> = None;
        while !stop.load(Ordering::Relaxed) {
            let id = format!("{}-{}", self.name, self.asked);
            let create = Request::payin(&ACME, &payin(&id));
            let created = self.line.send(&create).await.expect(200);
            let (order, stated) = first.get_or_insert((create, created));
            // Signed anew: a v1 timestamp grows old.
            let repeat = Request::v1_post(&ACME, "/api/v1/payin", order.body.clone());
            assert_eq!(
                self.line.send(&repeat).await.expect(200).json(),
                stated.json(),
                "a repeat gets the first reply"
            );
            self.line.send(&Request::v1_status(&ACME, "payin", &id)).await.expect(200);
            let native = self.line.send(&Request::deposit(&ACME, &deposit(&format!("{id}-d")))).await.expect(200);
            let status = Request::status(&ACME, text(&native.json(), "transaction_id"));
            self.line.send(&status).await.expect(200);
            self.switched(&id).await;
            self.asked += 1;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        self.seen
    }

    /// A request that is right under one rule set, and refused under the other.
    async fn switched(&mut self, id: &str) {
        let body = with(deposit(&format!("{id}-s")), "method", Some(json!(SWITCHED)));
        let request_id = format!("{id}-switched");
        let request = Create::Deposit.request(&ACME, body.to_string()).header("X-Request-Id", &request_id);
        let reply = self.line.send(&request).await;
        assert!([200, 400].contains(&reply.status), "{reply:?}");
        self.seen.push(Seen { request_id, taken: reply.status == 200 });
    }
}

/// The rule set's version of every access line, by request id.
pub fn versions(log: &str) -> HashMap<&str, &str> {
    let mut versions = HashMap::new();
    for line in log.lines().filter(|line| line.contains(" paybridge::access: ")) {
        let value = |name: &str| {
            let mut values = line.split(' ').filter_map(|word| word.strip_prefix(name));
            values.next().unwrap_or_else(|| panic!("no {name} in {line}"))
        };
        versions.insert(value("request_id="), value("rules_version="));
    }
    versions
}
