//! What v1 merchants are told: their dialect's body, in their dialect's headers, at the address that they named.

use serde_json::{Value, json};

use crate::callbacks::book::Book;
use crate::callbacks::verify::{MERIDIAN, V1, assert_v1, assert_v2};
use crate::callbacks::{QUICK, a_while, assert_all, assert_one, create, decide, path, quick, rules};
use crate::support::bodies::with;
use crate::support::receiver::{Manner, Play, Received, Receiver, received_now};
use crate::support::request::{ACME, BETA, GAMMA};
use crate::support::{self, Gateway, Request, Rules};

/// A withdrawal's v1 body, told to a receiver.
fn payout(receiver: &Receiver, external_id: &str, amount: &str) -> Value {
    let body = with(support::payout(external_id), "amount", Some(amount.into()));
    with(body, "callback_url", Some(receiver.url(&path(external_id)).into()))
}

/// What is told of an operation.
fn reported(external_id: &str, transaction_id: &str, status: &str, amount: &str) -> Value {
    json!({ "external_id": external_id, "transaction_id": transaction_id, "status": status, "amount": amount,
        "currency": "EUR", "shop_code": "card-eur" })
}

#[tokio::test]
async fn a_result_is_reported_in_the_default_shape() {
    let receiver = Receiver::start(|_, before| Play::Say(if before == 0 { 500 } else { 200 }));
    let gateway = quick(&receiver);
    for (external_id, amount, status) in [
        ("paid", "7.25", "SUCCESS"),
        ("round", "0007", "SUCCESS"),
        ("refused", "7.01", "FAILED"),
        ("failed", "7.04", "FAILED"),
    ] {
        let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, external_id, amount))).await;
        let tries = receiver.got(&path(external_id), 2).await;
        assert_one(&tries);
        let shown = if amount == "0007" { "7.00" } else { amount };
        let reported = reported(external_id, &id, status, shown);
        assert_all(&tries, |received| assert_v1(received, &V1, &ACME, &reported));
    }
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 8);
}

#[tokio::test]
async fn a_deposits_result_is_reported_in_v1_words() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    for (external_id, decision, status) in [("paid", "pay", "SUCCESS"), ("declined", "decline", "FAILED")] {
        let body = with(support::payin(external_id), "callback_url", Some(receiver.url(&path(external_id)).into()));
        // Where the request names no shop, the selected one is told.
        let body = with(body, "shop_code", None);
        let reply = gateway.client().send(&Request::payin(&ACME, &body)).await.expect(200);
        decide(&gateway, &reply, decision).await;
        let id = reply.json()["transaction_id"].as_str().unwrap().to_owned();
        let calls = receiver.got(&path(external_id), 1).await;
        assert_v1(&calls[0], &V1, &ACME, &reported(external_id, &id, status, "10.50"));
    }
}

/// Rules in which two merchants speak a dialect of their own.
fn meridian(receiver: &Receiver) -> Rules {
    let (name, text) = MERIDIAN.file.unwrap();
    rules(&[receiver], QUICK).file(&format!("dialects/{name}.toml"), text).edit(
        "merchants/acme.toml",
        "name = \"Acme Ltd\"\n",
        &format!("name = \"Acme Ltd\"\nv1.dialect = \"{name}\"\n"),
    )
}

/// A create in the words of [`MERIDIAN`], which signs its callbacks as requests are signed.
fn foreign(target: &str, body: &Value) -> Request {
    let body = body.to_string();
    let timestamp = (support::request::unix_now() * 1000).to_string();
    let mut request = Request::new("POST", target, body.clone()).header("Content-Type", "application/json");
    let as_received = Received {
        method: "POST".to_owned(),
        target: target.to_owned(),
        body: body.into_bytes(),
        ..received_now(0, false)
    };
    let signature = MERIDIAN.signature(&as_received, &timestamp, &ACME);
    for (name, value) in [("X-Merchant", ACME.name), ("X-Sent-At", &timestamp), ("X-Mac", &signature)] {
        request = request.header(name, value);
    }
    request
}

#[tokio::test]
async fn a_dialect_of_its_own_is_spoken_to_the_end() {
    let receiver = Receiver::start(|_, before| Play::Say(if before == 0 { 404 } else { 201 }));
    let gateway = Gateway::start(&meridian(&receiver));
    for (external_id, amount, word) in [("paid", "7.25", MERIDIAN.words[0]), ("refused", "7.01", MERIDIAN.words[1])] {
        let target = format!("/hooks/{external_id}?shop=a%20b&to=");
        let body = with(payout(&receiver, external_id, amount), "callback_url", Some(receiver.url(&target).into()));
        let reply = gateway
            .client()
            .send_shaped(support::Protocol::Http1, &foreign("/gate/withdrawals.php", &body))
            .await
            .expect(200);
        let id = reply.json()["result"]["id"].as_str().unwrap().to_owned();
        let tries = receiver.got(&target, 2).await;
        assert_all(&tries, |one| assert_v1(one, &MERIDIAN, &ACME, &reported(external_id, &id, word, amount)));
    }
}

/// What v2 merchants send is told as v2 tells it, whatever dialect the same merchant has.
#[tokio::test]
async fn native_operations_of_a_v1_merchant_are_reported_as_v2_tells_them() {
    let receiver = Receiver::good();
    let gateway = Gateway::start(&meridian(&receiver));
    crate::callbacks::withdraw(&gateway, &receiver, "native").await;
    assert_v2(&receiver.got(&path("native"), 1).await[0], ACME.v2.unwrap(), "native");
}

#[tokio::test]
async fn a_v1_merchant_may_take_v2_callbacks() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    create(&gateway, &Request::payout(&GAMMA, &payout(&receiver, "modern", "7.25"))).await;
    assert_v2(&receiver.got(&path("modern"), 1).await[0], GAMMA.v2.unwrap(), "modern");
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn without_an_address_nothing_is_sent() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    let body = with(payout(&receiver, "silent", "7.25"), "callback_url", None);
    create(&gateway, &Request::payout(&ACME, &body)).await;
    crate::callbacks::eventually("its result", async || {
        let reply = gateway.client().send(&Request::v1_status(&ACME, "payout", "silent")).await.expect(200);
        (reply.json()["status"] == "SUCCESS").then_some(())
    })
    .await;
    a_while(&gateway).await;
    assert!(Book::of(&gateway).of_order("acme", "silent").await.is_empty());
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn the_merchants_own_address_stands_in_for_one_that_is_missing() {
    let receiver = Receiver::good();
    let defaults = format!("name = \"Acme Ltd\"\nv1.callback_url = \"{}\"\n", receiver.url("/default?all"));
    let gateway =
        Gateway::start(&rules(&[&receiver], QUICK).edit("merchants/acme.toml", "name = \"Acme Ltd\"\n", &defaults));
    let body = with(payout(&receiver, "quiet", "7.25"), "callback_url", None);
    let id = create(&gateway, &Request::payout(&ACME, &body)).await;
    let calls = receiver.got("/default?all", 1).await;
    assert_v1(&calls[0], &V1, &ACME, &reported("quiet", &id, "SUCCESS", "7.25"));
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "named", "7.25"))).await;
    receiver.got(&path("named"), 1).await;
    assert_eq!(receiver.count(), 2);
}

#[tokio::test]
async fn plain_http_is_for_merchants_that_may() {
    let receiver = Receiver::with(|_| Manner::Plain, |_, before| Play::Say(if before == 0 { 500 } else { 200 }));
    let gateway = quick(&receiver);
    let plain = |external_id: &str| {
        with(support::payout(external_id), "callback_url", Some(receiver.plain_url(&path(external_id)).into()))
    };
    for (key, request) in [(ACME, Request::payout), (GAMMA, Request::payout)] {
        gateway.client().send(&request(&key, &plain("refused"))).await.expect(400);
    }
    let id = create(&gateway, &Request::payout(&BETA, &plain("plain"))).await;
    let tries = receiver.got(&path("plain"), 2).await;
    assert_all(&tries, |received| assert_v1(received, &V1, &BETA, &reported("plain", &id, "SUCCESS", "7.25")));
    assert!(receiver.of(&path("refused")).is_empty());
}

/// Every member is told as it is, whatever is in it.
#[tokio::test]
async fn names_are_reported_as_they_are() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    for (number, external_id) in ["a\"b\\c", "ä/☃ 🧾", "x\ty"].into_iter().enumerate() {
        let target = format!("/names/{number}");
        let body = with(payout(&receiver, external_id, "7.25"), "callback_url", Some(receiver.url(&target).into()));
        let id = create(&gateway, &Request::payout(&ACME, &body)).await;
        let calls = receiver.got(&target, 1).await;
        assert_eq!(calls[0].json(), reported(external_id, &id, "SUCCESS", "7.25"));
        assert_v1(&calls[0], &V1, &ACME, &reported(external_id, &id, "SUCCESS", "7.25"));
    }
}

/// Who speaks which dialect is read when a callback is sent.
#[tokio::test]
async fn a_dialect_that_changes_is_followed() {
    let receiver = Receiver::start(|_, before| Play::Say(if before == 0 { 500 } else { 200 }));
    let keys = "first_retry = \"1500ms\"\nmax_retry = \"2s\"";
    let gateway = Gateway::start(&rules(&[&receiver], keys));
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "moving", "7.25"))).await;
    let tries = receiver.got(&path("moving"), 1).await;
    assert_v1(&tries[0], &V1, &ACME, &reported("moving", &id, "SUCCESS", "7.25"));
    gateway.reload_with(&meridian(&receiver));
    let tries = receiver.got(&path("moving"), 2).await;
    assert_eq!(tries[0].id(), tries[1].id());
    assert_v1(&tries[1], &MERIDIAN, &ACME, &reported("moving", &id, MERIDIAN.words[0], "7.25"));
}
