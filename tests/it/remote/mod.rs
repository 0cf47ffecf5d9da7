//! A remote engine from outside: a gateway process before a second one that is its engine, and before an engine that
//! behaves as badly as networks and services do.

mod crash;
mod doubt;
mod lists;
mod passing;
pub mod scripted;
mod start;
mod trouble;

use std::path::Path;

use serde_json::Value;

use crate::support::request::{ACME, KEYS};
use crate::support::{Gateway, Reply, Request, Rules, text};
use scripted::Scripted;

/// Rules of a gateway before the engine on this port of this machine, which shows a certificate by this CA.
pub fn before(port: u16, ca: &Path, keys: &str) -> Rules {
    let ca = ca.to_str().unwrap();
    Rules::default().with("engine", &format!("url = \"https://localhost:{port}\"\ntrust = [\"{ca}\"]\n{keys}"))
}

/// A gateway before a second one.
pub struct Pair {
    engine: Gateway,
    pub gateway: Gateway,
}

impl Pair {
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&Rules::default(), |rules| rules)
    }

    /// With these rules of the engine, and the gateway's changed.
    #[track_caller]
    fn with(engine: &Rules, change: impl FnOnce(Rules) -> Rules) -> Self {
        let engine = Gateway::start(engine);
        let ca = engine.root.path().join("certs/ca.pem");
        let gateway = Gateway::start(&change(before(engine.public.port(), &ca, "")));
        Self { engine, gateway }
    }
}

/// A gateway before a scripted engine.
#[track_caller]
fn before_scripted(engine: &Scripted, keys: &str) -> Gateway {
    Gateway::start(&before(engine.address.port(), &engine.ca(), keys))
}

async fn send(gateway: &Gateway, request: &Request) -> Reply {
    let reply = gateway.client().send(request).await;
    for key in KEYS {
        assert!(!reply.text().contains(key.name), "a key in {}", reply.text());
    }
    reply
}

async fn payin(gateway: &Gateway, body: &Value) -> Reply {
    send(gateway, &Request::payin(&ACME, body)).await
}

async fn payout(gateway: &Gateway, body: &Value) -> Reply {
    send(gateway, &Request::payout(&ACME, body)).await
}

async fn v1_status(gateway: &Gateway, kind: &str, external_id: &str) -> Reply {
    send(gateway, &Request::v1_status(&ACME, kind, external_id)).await
}

/// The id of a 200.
#[track_caller]
fn id_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    text(&reply.json(), "transaction_id").to_owned()
}

/// Asserts a failure of the engine, which says that the same `external_id` may be sent again.
#[track_caller]
fn assert_again(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert!(reply.message().ends_with("with the same external_id, may be sent again"), "{}", reply.message());
}

/// A metric's value; zero while it is not there.
fn metric(gateway: &Gateway, name: &str) -> u64 {
    let (_, page) = gateway.admin_get("/metrics").unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}
