//! Orders whose outcome nobody knows yet.

use serde_json::json;

use super::scripted::{Play, Scripted, created, error};
use super::{Pair, Request, assert_again, before_scripted, id_of, payin, send, v1_status};
use crate::support::Gateway;
use crate::support::bodies::{self, with};
use crate::support::eventually;
use crate::support::request::{ACME, ACME_PLAIN_ONLY};

/// A lost request is taken to be under way for twelve times as long.
const SOON: &str = "timeout = \"1s\"";

/// Creates that are lost before anything is known, then answered by `then`.
async fn lost_then(then: impl Fn(&str) -> Play + Send + Sync + 'static) -> (Scripted, Gateway) {
    lost_with("", then).await
}

/// The same; `SOON` is over soon.
async fn lost_with(rules: &str, then: impl Fn(&str) -> Play + Send + Sync + 'static) -> (Scripted, Gateway) {
    let engine = Scripted::start(move |asked, before| match (asked.method.as_str(), before) {
        // The first try and its repeat.
        ("POST", 0 | 1) => Play::Close,
        ("POST", _) => then(&asked.json()["amount"].to_string()),
        _ => {
            let record = json!({ "order_id": "o", "transaction_id": "7", "status": "PENDING", "amount": 10.5,
                "currency": "EUR", "method": "card-eur" });
            Play::Say(200, record.to_string())
        }
    })
    .await;
    let gateway = before_scripted(&engine, rules);
    assert_again(&payin(&gateway, &bodies::payin("o")).await, 502);
    assert_eq!(engine.count(), 2);
    (engine, gateway)
}

#[tokio::test]
async fn the_same_request_settles_it_with_the_stored_bytes() {
    let (engine, gateway) = lost_then(|_| created("7")).await;
    let respelt = with(bodies::payin("o"), "amount", Some("010.50".into()));
    assert_eq!(id_of(&payin(&gateway, &respelt).await), "7");
    let asked = engine.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].body, asked[0].body);
}

#[tokio::test]
async fn a_status_settles_it() {
    let (engine, gateway) = lost_then(|_| created("7")).await;
    assert_eq!(id_of(&v1_status(&gateway, "payin", "o").await), "7");
    let asked = engine.asked();
    assert_eq!(asked[2].body, asked[0].body);
    assert_eq!(asked[3].path, "/api/v2/transactions/7");
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("o")).await), "7");
    assert_eq!(engine.count(), 4, "it is known now");
}

#[tokio::test]
async fn what_the_engine_refuses_then_is_gone_when_nothing_can_be_under_way() {
    let engine_refuses = |_: &str| error(400, "fields.bank_code: is required");
    let (_, gateway) = lost_with(SOON, engine_refuses).await;
    assert_again(&v1_status(&gateway, "payin", "o").await, 504);
    eventually("the lost request is given up", async || {
        let reply = v1_status(&gateway, "payin", "o").await;
        (reply.status == 404).then_some(())
    })
    .await;
    let (_, gateway) = lost_with(SOON, engine_refuses).await;
    assert_again(&payin(&gateway, &bodies::payin("o")).await, 504);
    let refused = eventually("the lost request is given up", async || {
        let reply = payin(&gateway, &bodies::payin("o")).await;
        (reply.status == 400).then_some(reply)
    })
    .await;
    assert_eq!(refused.message(), "paymentData.bank_code: is required");
    v1_status(&gateway, "payin", "o").await.expect(404);
}

#[tokio::test]
async fn a_key_that_may_less_does_not_make_an_order_forgotten() {
    // Whatever asks, the order's own key signs.
    let (engine, gateway) = lost_then(|_| Play::Close).await;
    let other = Request::v1_status(&ACME_PLAIN_ONLY, "payin", "o");
    assert_again(&send(&gateway, &other).await, 502);
    let keys: Vec<_> = engine.asked().iter().map(|asked| asked.header("x-api-key").map(str::to_owned)).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| key.as_deref() == Some(ACME.name)), "{keys:?}");
}

#[tokio::test]
async fn a_native_caller_is_not_reported_no_while_its_lost_request_may_be_under_way() {
    let engine =
        Scripted::start(|_, before| if before == 0 { Play::Close } else { error(400, "amount: is too small") }).await;
    let gateway = before_scripted(&engine, "");
    let request = Request::deposit(&ACME, &bodies::deposit("n"));
    let reported = send(&gateway, &request).await.expect(504);
    assert!(reported.message().ends_with("with the same order_id, may be sent again"), "{}", reported.message());
    assert_eq!(engine.count(), 2);
    send(&gateway, &request).await.expect(400);
}

#[tokio::test]
async fn what_never_left_is_no_doubt() {
    let Pair { mut engine, gateway } = Pair::start();
    engine.kill();
    assert_again(&payin(&gateway, &bodies::payin("never")).await, 502);
    v1_status(&gateway, "payin", "never").await.expect(404);
    engine.restart();
    let corrected = with(bodies::payin("never"), "amount", Some("11".into()));
    payin(&gateway, &corrected).await.expect(200);
}

#[tokio::test]
async fn two_orders_of_one_transaction_are_not_both_believed() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let gateway = before_scripted(&engine, "");
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("first")).await), "7");
    assert_again(&payin(&gateway, &bodies::payin("second")).await, 502);
    eventually("it is told", async || gateway.log().contains("the same transaction_id").then_some(())).await;
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("first")).await), "7");
}

#[tokio::test]
async fn another_body_waits_for_the_first_ones_outcome() {
    let other = with(bodies::payin("o"), "amount", Some("11".into()));

    let (engine, gateway) = lost_then(|_| created("7")).await;
    payin(&gateway, &other).await.expect(409);
    assert_eq!(engine.count(), 3);
    assert_eq!(engine.asked()[2].body, engine.asked()[0].body, "the other body never left");
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("o")).await), "7");

    let refuses_first = |amount: &str| if amount == "10.5" { error(400, "amount: is too small") } else { created("8") };
    let (engine, gateway) = lost_with(SOON, refuses_first).await;
    assert_again(&payin(&gateway, &other).await, 504);
    assert!(engine.asked().iter().all(|asked| asked.json()["amount"] == 10.5), "the other body never left");
    let made = eventually("the lost request is given up", async || {
        let reply = payin(&gateway, &other).await;
        (reply.status == 200).then(|| id_of(&reply))
    })
    .await;
    assert_eq!(made, "8");
    payin(&gateway, &bodies::payin("o")).await.expect(409);

    let (engine, gateway) = lost_then(|_| Play::Close).await;
    assert_again(&payin(&gateway, &other).await, 502);
    assert!(engine.asked().iter().all(|asked| asked.json()["amount"] == 10.5), "the other body never left");
}

#[tokio::test]
async fn callers_at_once_make_one_operation() {
    let engine = Gateway::start(&super::Rules::default());
    let proxy = Scripted::before(&engine, |_, before| if before % 3 == 1 { Play::Lose } else { Play::Forward }).await;
    let gateway = before_scripted(&proxy, "");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (client, body) = (gateway.client(), bodies::payin("o"));
        callers.spawn(async move {
            let reply = client.send(&Request::payin(&ACME, &body)).await;
            if reply.status == 200 {
                Some(id_of(&reply))
            } else {
                assert_again(&reply, 502);
                None
            }
        });
    }
    let ids: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    let settled = id_of(&payin(&gateway, &bodies::payin("o")).await);
    assert!(ids.iter().all(|id| *id == settled), "{ids:?} {settled}");
}
