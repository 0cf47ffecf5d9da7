//! Callbacks from outside: a gateway process over real TLS sockets, and merchants' receivers that behave as badly as
//! receivers and networks do.

mod addresses;
mod book;
mod console;
mod crowds;
mod examples_v1;
mod faults;
mod itself;
mod keys;
mod kills;
mod library;
mod lines;
mod operator;
mod plain;
mod remote;
mod retries;
mod v1;
mod verify;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::bodies::with;
use crate::support::http2::Http2;
use crate::support::receiver::{Manner, Play, Received, Receiver, trusting};
use crate::support::request::{ACME, BETA, Key, hmac_hex};
use crate::support::{self, Gateway, Reply, Request, Rules, eventually, text};

/// What signs links in the tests' rules, so that a test can go the way of a customer.
const PAGES: &str = "pages-hush-2Vw-7Kd-4Rt-8Bn-1Qx-5";

/// Retries that a test can wait for.
const QUICK: &str = "first_retry = \"100ms\"\nmax_retry = \"400ms\"\ntimeout = \"2s\"";

/// Rules of a gateway that may call these receivers, with these keys of `[callbacks]` besides.
fn rules(receivers: &[&Receiver], keys: &str) -> Rules {
    let roots: Vec<PathBuf> = receivers.iter().map(|receiver| receiver.ca()).collect();
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
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

/// The path that an order is told at.
fn path(order_id: &str) -> String {
    format!("/cb/{order_id}")
}

/// The body of a withdrawal that is told to a receiver; the cents tell the sandbox what to do.
fn withdrawal(receiver: &Receiver, order_id: &str, amount: &str) -> Value {
    let body = with(support::withdrawal(order_id), "amount", Some(serde_json::from_str(amount).unwrap()));
    with(body, "callback_url", Some(receiver.url(&path(order_id)).into()))
}

/// The same of a deposit.
fn deposit(receiver: &Receiver, order_id: &str, amount: &str) -> Value {
    let body = with(support::deposit(order_id), "amount", Some(serde_json::from_str(amount).unwrap()));
    with(body, "callback_url", Some(receiver.url(&path(order_id)).into()))
}

/// Sends a request that is answered 200; the `transaction_id`.
async fn create(gateway: &Gateway, request: &Request) -> String {
    text(&gateway.client().send(request).await.expect(200).json(), "transaction_id").to_owned()
}

/// Creates a withdrawal of [`ACME`] that succeeds, told to a receiver.
async fn withdraw(gateway: &Gateway, receiver: &Receiver, order_id: &str) -> String {
    create(gateway, &Request::withdrawal(&ACME, &withdrawal(receiver, order_id, "7.25"))).await
}

/// The status.
async fn status(gateway: &Gateway, key: &Key, id: &str) -> String {
    text(&gateway.client().send(&Request::status(key, id)).await.expect(200).json(), "status").to_owned()
}

/// Decides a deposit on the sandbox's page, once it is there.
async fn decide(gateway: &Gateway, created: &Reply, decision: &str) {
    let page = Request::new("GET", &sandbox(created), "").header("Accept", "text/html");
    let client = gateway.client();
    eventually("the page is ready", async || {
        let mut connection = Http2::connect(&client).await;
        let reply = connection.exchange("localhost", &page, false).await.expect("a page");
        reply.text().contains("decision").then_some(())
    })
    .await;
    assert_eq!(press(gateway, created, decision).await, 200);
}

/// Presses a button of that page, whether it is there or not; the status.
async fn press(gateway: &Gateway, created: &Reply, decision: &str) -> u16 {
    let form = Request::new("POST", &sandbox(created), format!("decision={decision}"))
        .header("Accept", "text/html")
        .header("Content-Type", "application/x-www-form-urlencoded");
    let mut connection = Http2::connect(&gateway.client()).await;
    connection.exchange("localhost", &form, false).await.expect("a page").status
}

/// The signed link of that page.
#[track_caller]
fn sandbox(created: &Reply) -> String {
    let entry = text(&created.json(), "redirect_url").to_owned();
    let (_, rest) = entry.split_once("/pay/").unwrap();
    let target = format!("/sandbox/{}", rest.split_once("&signature=").unwrap().0);
    format!("{target}&signature={}", hmac_hex(PAGES, target.as_bytes()))
}

/// Waits as long as several tries of a callback take, so that one that is sent again would have come.
async fn a_while(gateway: &Gateway) {
    let receiver = Receiver::with(|_| Manner::Plain, |_, before| Play::Say(if before < 4 { 503 } else { 200 }));
    let order_id = format!("while-{}", receiver.address.port());
    let body = with(support::payout(&order_id), "callback_url", Some(receiver.plain_url("/while").into()));
    create(gateway, &Request::payout(&BETA, &body)).await;
    receiver.got("/while", 5).await;
}

/// Asserts that tries are of one callback: one id, one body, one after the other.
#[track_caller]
fn assert_one(tries: &[Received]) {
    for pair in tries.windows(2) {
        assert_eq!(pair[0].id(), pair[1].id());
        assert_eq!(pair[0].body, pair[1].body);
        assert!(pair[0].at <= pair[1].at);
    }
}

/// The same, and that each of them passes a check.
#[track_caller]
fn assert_all(tries: &[Received], check: impl Fn(&Received)) {
    assert_one(tries);
    for one in tries {
        check(one);
    }
}
