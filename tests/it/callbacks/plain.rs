//! What v2 tells of a result: once, signed, to the address that the create named.

use std::sync::Arc;

use crate::callbacks::verify::assert_v2;
use crate::callbacks::{a_while, create, decide, deposit, path, press, quick, rules, status, withdraw, withdrawal};
use crate::support::bodies::with;
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::request::{ACME, ACME_V2};
use crate::support::{Gateway, Request, text};

// keeps P207, P208, P209
#[tokio::test]
async fn a_withdrawals_result_is_reported_once() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    for (order_id, amount, result) in [
        ("paid", "7.25", "SUCCESS"),
        ("refused", "7.01", "FAILED"),
        ("failed", "7.04", "FAILED"),
        ("late", "7.03", "SUCCESS"),
    ] {
        let id = create(&gateway, &Request::withdrawal(&ACME, &withdrawal(&receiver, order_id, amount))).await;
        let reported = receiver.got(&path(order_id), 1).await;
        assert_v2(&reported[0], ACME.v2.unwrap(), order_id);
        assert_eq!(status(&gateway, &ACME, &id).await, result, "what is told of is to be read");
    }
    a_while(&gateway).await;
    let mut ids: Vec<_> = receiver.received().iter().map(|received| received.id().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((receiver.count(), ids.len()), (4, 4), "each once, by a name of its own");
}

// keeps P206, P208, P209
#[tokio::test]
async fn a_deposits_result_is_reported_once() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    let client = gateway.client();
    let refused = Request::deposit(&ACME, &deposit(&receiver, "refused", "10.01"));
    client.send(&refused).await.expect(200);
    assert_v2(&receiver.got(&path("refused"), 1).await[0], ACME.v2.unwrap(), "refused");
    for (order_id, decision, result) in [("paid", "pay", "SUCCESS"), ("declined", "decline", "FAILED")] {
        let reply = client.send(&Request::deposit(&ACME, &deposit(&receiver, order_id, "10.50"))).await.expect(200);
        a_while(&gateway).await;
        assert!(receiver.of(&path(order_id)).is_empty(), "PENDING is no result");
        decide(&gateway, &reply, decision).await;
        assert_v2(&receiver.got(&path(order_id), 1).await[0], ACME.v2.unwrap(), order_id);
        assert_eq!(status(&gateway, &ACME, text(&reply.json(), "transaction_id")).await, result);
        // What comes after the result is no news.
        for decision in ["pay", "decline"] {
            press(&gateway, &reply, decision).await;
        }
    }
    client.send(&refused).await.expect(200);
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 3);
}

#[tokio::test]
async fn what_has_no_result_is_not_reported() {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    let pending = withdrawal(&receiver, "pending", "7.02");
    create(&gateway, &Request::withdrawal(&ACME, &pending)).await;
    let unlike = with(withdrawal(&receiver, "unlike", "7.25"), "currency", Some("USD".into()));
    gateway.client().send(&Request::withdrawal(&ACME, &unlike)).await.expect(400);
    withdraw(&gateway, &receiver, "told").await;
    receiver.got(&path("told"), 1).await;
    create(&gateway, &Request::withdrawal(&ACME, &pending)).await;
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 1);
}

// keeps P210
#[tokio::test]
async fn every_2xx_ends_it() {
    const STATUSES: [u16; 7] = [200, 201, 202, 204, 205, 226, 299];
    let receiver =
        Receiver::start(|received, _| Play::Say(received.target.rsplit('/').next().unwrap().parse().unwrap()));
    let gateway = quick(&receiver);
    for status in STATUSES {
        withdraw(&gateway, &receiver, &status.to_string()).await;
    }
    for status in STATUSES {
        receiver.got(&path(&status.to_string()), 1).await;
    }
    a_while(&gateway).await;
    assert_eq!(receiver.count(), STATUSES.len());
}

/// The head ends it, whatever the body is.
#[tokio::test]
async fn a_2xx_ends_it_whatever_follows_its_head() {
    let receiver = Receiver::start(|received, _| match received.target.as_str() {
        "/cb/endless" => Play::EndlessBody(200),
        "/cb/missing" => Play::MissingBody(200),
        _ => Play::Say(200),
    });
    let gateway = quick(&receiver);
    for order_id in ["endless", "missing", "whole"] {
        withdraw(&gateway, &receiver, order_id).await;
        receiver.got(&path(order_id), 1).await;
    }
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 3);
}

#[tokio::test]
async fn receivers_may_speak_http2() {
    let identity = Arc::new(Identity::new(&["h2", "http/1.1"]));
    let receiver = Receiver::on(
        0,
        &identity,
        |_| Manner::Serve,
        |_, before| match before {
            0 => Play::Cut,
            1 => Play::Say(500),
            _ => Play::Say(200),
        },
    );
    let gateway = quick(&receiver);
    withdraw(&gateway, &receiver, "two").await;
    let tries = receiver.got(&path("two"), 3).await;
    crate::callbacks::assert_one(&tries);
    for received in &tries {
        assert_v2(received, ACME.v2.unwrap(), "two");
        assert!(received.is_http2, "what ALPN offers is spoken");
    }
}

/// The key that created it signs, and names are told as they are.
#[tokio::test]
async fn the_creating_keys_secret_signs() {
    let receiver = Receiver::good();
    let gateway = Gateway::start(&rules(&[&receiver], crate::callbacks::QUICK));
    for (number, order_id) in ["a\"b\\c", "ä/☃ 🧾", "x\ty\u{7f}", "</script>"].into_iter().enumerate() {
        let body = with(withdrawal(&receiver, "path", "7.25"), "order_id", Some(order_id.into()));
        let target = format!("/hooks/{number}?shop=1&to=%2F%41");
        let body = with(body, "callback_url", Some(receiver.url(&target).into()));
        create(&gateway, &Request::withdrawal(&ACME_V2, &body)).await;
        assert_v2(&receiver.got(&target, 1).await[0], ACME_V2.v2.unwrap(), order_id);
    }
}
