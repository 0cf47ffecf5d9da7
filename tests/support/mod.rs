//! What the black-box tests stand on: rule files, a gateway process on free ports, a signing client over real sockets
//! that checks every reply, and the bodies that the tests vary. Nothing here uses the crate's own code.
#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use tokio::time::Instant;

pub mod bodies;
pub mod client;
pub mod gateway;
pub mod http2;
pub mod load;
pub mod postgres;
pub mod receiver;
pub mod reply;
pub mod request;
pub mod rules;
pub mod stored;
pub mod tools;

pub use bodies::{deposit, payin, payout, withdrawal};
pub use client::{Client, Connection};
pub use gateway::Gateway;
pub use reply::Reply;
pub use request::{Key, Protocol, Request, Signing};
pub use rules::Rules;

/// A card number that must never be seen again once it was sent.
pub const CARD: &str = "4000123412341234";

/// The member of a JSON reply, as text.
#[track_caller]
pub fn text<'a>(value: &'a serde_json::Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("no text {member} in {value}"))
}

/// Polls until the condition holds, for at most 30 s.
pub async fn eventually<T>(what: &str, condition: impl AsyncFnMut() -> Option<T>) -> T {
    within(Duration::from_secs(30), condition).await.unwrap_or_else(|| panic!("never happened: {what}"))
}

/// Polls until the condition holds, for at most 30 s, and blocks the thread meanwhile.
#[track_caller]
pub fn eventually_blocking(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Polls until the condition holds; `None` when it does not in this time.
pub async fn within<T>(span: Duration, mut condition: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + span;
    loop {
        let value = condition().await;
        if value.is_some() || Instant::now() > deadline {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
