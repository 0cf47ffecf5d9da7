//! Orders whose outcome nobody knows yet.

use serde_json::json;

use super::scripted::{Play, Scripted, created, error};
use super::support::Gateway;
use super::support::bodies::{self, with};
use super::{assert_again, before_scripted, id_of, payin, v1_status};

/// Creates that are lost before anything is known, then answered by `then`.
async fn lost_then(then: impl Fn(&str) -> Play + Send + Sync + 'static) -> (Scripted, Gateway) {
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
    let gateway = before_scripted(&engine, "");
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
async fn what_the_engine_refuses_then_is_gone() {
    let (_, gateway) = lost_then(|_| error(400, "fields.bank_code: is required")).await;
    v1_status(&gateway, "payin", "o").await.expect(404);
    let (_, gateway) = lost_then(|_| error(400, "fields.bank_code: is required")).await;
    let refused = payin(&gateway, &bodies::payin("o")).await.expect(400);
    assert_eq!(refused.message(), "paymentData.bank_code: is required");
    v1_status(&gateway, "payin", "o").await.expect(404);
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
    let (engine, gateway) = lost_then(refuses_first).await;
    assert_eq!(id_of(&payin(&gateway, &other).await), "8");
    assert_eq!(engine.count(), 4);
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
            let reply = client.send(&super::Request::payin(&super::ACME, &body)).await;
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
