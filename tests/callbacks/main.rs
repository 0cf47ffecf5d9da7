//! Callbacks from outside: a gateway process over real TLS sockets, and merchants' receivers that behave as badly as
//! receivers and networks do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod itself;
mod receiver;
#[path = "../support/mod.rs"]
mod support;
mod verify;
mod wire;

use serde_json::Value;

use receiver::{Receiver, trusting};
use support::bodies::with;
use support::request::{ACME, Key, hmac_hex};
use support::{Gateway, Reply, Request, Rules, eventually, text};

/// What signs links in the tests' rules, so that a test can sign the way of a customer.
const PAGES: &str = "pages-hush-2Vw-7Kd-4Rt-8Bn-1Qx-5";

/// Retries that a test can wait for.
const QUICK: &str = "first_retry = \"100ms\"\nmax_retry = \"400ms\"\ngive_up_after = \"10m\"\ntimeout = \"2s\"";

/// Rules of a gateway that may call these receivers, with these keys of `[callbacks]` besides.
fn rules(receivers: &[&Receiver], keys: &str) -> Rules {
    let roots: Vec<_> = receivers.iter().map(|receiver| receiver.ca()).collect();
    let roots: Vec<_> = roots.iter().map(std::path::PathBuf::as_path).collect();
    Rules::default()
        .with("callbacks", &trusting(&roots))
        .with("callbacks", keys)
        .with("pages", &format!("secret = \"{PAGES}\""))
        .edit("shops/card-eur.toml", "50ms", "0s")
}

/// A gateway that calls this receiver, and tries again soon.
#[track_caller]
fn quick(receiver: &Receiver) -> Gateway {
    Gateway::start(&rules(&[receiver], QUICK))
}
