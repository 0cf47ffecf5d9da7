//! Whose secret signs: the creating key's first one at the time of the try; when that key is gone, the merchant's first.

use serde_json::Value;

use paybridge::store::CallbackState;

use crate::callbacks::book::Book;
use crate::callbacks::verify::{V1, assert_v1, assert_v2};
use crate::callbacks::{a_while, create, path, quick, rules, withdraw, withdrawal};
use crate::support::bodies::with;
use crate::support::receiver::{Play, Receiver};
use crate::support::request::{ACME, ACME_V2, BETA, KEYS, Key};
use crate::support::{self, Gateway, Request, Rules};

const ROTATED: Key = Key { name: "acme-live", v1: Some("acme-v1-fresh-2Jm"), v2: Some("acme-v2-fresh-5Hn") };

/// Retries that leave time for a reload between them.
const SLOW: &str = "first_retry = \"4s\"\nmax_retry = \"5s\"";

/// Fails once.
fn receiver() -> Receiver {
    Receiver::start(|_, before| Play::Say(if before == 0 { 503 } else { 200 }))
}

fn rotated(rules: Rules) -> Rules {
    let list = |new: &str, old: &str| format!("= [\"{new}\", \"{old}\"]");
    let swap = |rules: Rules, old: &str, new: &str| {
        rules.edit("merchants/acme.toml", &format!("= \"{old}\""), &list(new, old))
    };
    swap(swap(rules, ACME.v1.unwrap(), ROTATED.v1.unwrap()), ACME.v2.unwrap(), ROTATED.v2.unwrap())
}

fn payout(receiver: &Receiver, external_id: &str) -> Value {
    with(support::payout(external_id), "callback_url", Some(receiver.url(&path(external_id)).into()))
}

fn reported(external_id: &str, id: &str) -> Value {
    serde_json::json!({ "external_id": external_id, "transaction_id": id, "status": "SUCCESS", "amount": "7.25",
        "currency": "EUR", "shop_code": "card-eur" })
}

#[tokio::test]
async fn the_first_secret_signs_from_the_next_try_on() {
    let receiver = receiver();
    let before = rules(&[&receiver], SLOW);
    let gateway = Gateway::start(&before);
    withdraw(&gateway, &receiver, "native").await;
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "translated"))).await;
    let native = receiver.got(&path("native"), 1).await;
    let translated = receiver.got(&path("translated"), 1).await;
    assert_v2(&native[0], ACME.v2.unwrap(), "native");
    assert_v1(&translated[0], &V1, &ACME, &reported("translated", &id));
    gateway.reload_with(&rotated(before));
    let native = receiver.got(&path("native"), 2).await;
    let translated = receiver.got(&path("translated"), 2).await;
    assert_v2(&native[1], ROTATED.v2.unwrap(), "native");
    assert_v1(&translated[1], &V1, &ROTATED, &reported("translated", &id));
    assert_eq!(native[0].id(), native[1].id());
    assert_eq!(translated[0].id(), translated[1].id());
}

#[tokio::test]
async fn a_key_that_is_gone_is_confirmed_in_for_by_its_merchants_first() {
    let receiver = receiver();
    let before = rules(&[&receiver], SLOW);
    let others = before.clone().edit("merchants/acme.toml", "\"acme-live\"", "\"acme-first\"").edit(
        "merchants/acme.toml",
        "\"acme-native\"",
        "\"acme-second\"",
    );
    let gateway = Gateway::start(&before);
    create(&gateway, &Request::withdrawal(&ACME_V2, &withdrawal(&receiver, "native", "7.25"))).await;
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "translated"))).await;
    assert_v2(&receiver.got(&path("native"), 1).await[0], ACME_V2.v2.unwrap(), "native");
    receiver.got(&path("translated"), 1).await;
    gateway.reload_with(&others);
    let native = receiver.got(&path("native"), 2).await;
    assert_v2(&native[1], ACME.v2.unwrap(), "native");
    let translated = receiver.got(&path("translated"), 2).await;
    let first = Key { name: "acme-first", ..ACME };
    assert_v1(&translated[1], &V1, &first, &reported("translated", &id));
}

#[tokio::test]
async fn a_merchant_that_is_away_is_reported_when_it_is_back() {
    let receiver = receiver();
    let before = rules(&[&receiver], SLOW);
    let gateway = Gateway::start(&before);
    let body = withdrawal(&receiver, "away", "7.25");
    create(&gateway, &Request::withdrawal(&BETA, &body)).await;
    let reported = receiver.got(&path("away"), 1).await;
    std::fs::remove_file(gateway.rules_dir().join("merchants/beta.toml")).unwrap();
    gateway.reload_with(&before.clone().without("merchants/beta.toml").without("shops/beta-only.toml"));
    let book = Book::of(&gateway);
    // Its next try falls into the time when nobody could sign it.
    let due = book.received(&reported[0]).await.0.due;
    crate::callbacks::eventually("its try was due", async || {
        let (record, _) = book.received(&reported[0]).await;
        (record.due > due).then_some(())
    })
    .await;
    assert_eq!(receiver.count(), 1, "nobody signs for a merchant that is gone");
    gateway.reload_with(&before);
    let reported = receiver.got(&path("away"), 2).await;
    assert_v2(&reported[1], BETA.v2.unwrap(), "away");
    assert_eq!(reported[0].id(), reported[1].id());
    book.becomes(&reported[0], CallbackState::Delivered).await;
}

#[tokio::test]
async fn no_secret_and_no_signature_is_written_to_the_log() {
    let receiver = receiver();
    let gateway = quick(&receiver);
    withdraw(&gateway, &receiver, "native").await;
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "translated"))).await;
    receiver.got(&path("native"), 2).await;
    receiver.got(&path("translated"), 2).await;
    a_while(&gateway).await;
    let log = gateway.log();
    for secret in KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten().chain([support::CARD]) {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    for received in receiver.received() {
        for name in ["x-signature", "webhook-signature"] {
            for signature in received.all(name) {
                assert!(!log.contains(signature), "{name} is in the log");
            }
        }
    }
}
