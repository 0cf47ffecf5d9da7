//! Histories: what passed through this gateway, by what was last heard of it.

use serde_json::{Value, json};

use super::scripted::{Play, Scripted, created};
use super::{Pair, before_scripted, id_of, payin, payout, send};
use crate::support::request::{ACME, BETA};
use crate::support::{Gateway, Key, Request, bodies, eventually, text};

async fn list(gateway: &Gateway, key: &Key, query: &str) -> Value {
    send(gateway, &Request::v1_get(key, &format!("/api/v1/transactions{query}"))).await.expect(200).json()
}

fn orders(page: &Value) -> Vec<&str> {
    page["transactions"].as_array().unwrap().iter().map(|row| text(row, "external_id")).collect()
}

#[tokio::test]
async fn a_history_lists_what_passed_through_here() {
    let Pair { mut engine, gateway } = Pair::start();
    let first = payin(&gateway, &bodies::payin("in-1")).await.expect(200).json();
    id_of(&payout(&gateway, &bodies::payout("out-1")).await);
    id_of(&payin(&gateway, &bodies::payin("in-2")).await);
    send(&gateway, &Request::deposit(&ACME, &bodies::deposit("native"))).await.expect(200);
    send(&gateway, &Request::payin(&ACME, &bodies::with(bodies::payin("bad"), "currency", Some("USD".into()))))
        .await
        .expect(400);

    let all = list(&gateway, &ACME, "").await;
    assert_eq!(orders(&all), ["in-2", "out-1", "in-1"]);
    assert_eq!((&all["page"], &all["per_page"], &all["has_more"]), (&json!(1), &json!(50), &json!(false)));
    let mut row = all["transactions"][2].clone();
    assert!(row.as_object_mut().unwrap().remove("created_at").is_some_and(|at| at.is_string()));
    let expected = json!({ "transaction_id": first["transaction_id"], "external_id": "in-1", "status": "PENDING",
        "amount": "10.50", "currency": "EUR", "shop_code": "card-eur", "type": "payin" });
    assert_eq!(row, expected);
    assert!(list(&gateway, &BETA, "").await["transactions"].as_array().unwrap().is_empty());

    // Nobody asked for its status: the list does.
    eventually("the payout is listed with its success", async || {
        let found = list(&gateway, &ACME, "?status=SUCCESS").await;
        (orders(&found) == ["out-1"]).then_some(())
    })
    .await;
    assert_eq!(orders(&list(&gateway, &ACME, "?status=PENDING").await), ["in-2", "in-1"]);
    assert_eq!(orders(&list(&gateway, &ACME, "?type=payin&per_page=1&page=2").await), ["in-1"]);
    assert_eq!(orders(&list(&gateway, &ACME, "?external_id=out-1").await), ["out-1"]);
    assert!(orders(&list(&gateway, &ACME, "?shop_code=slow-eur").await).is_empty());
    assert!(orders(&list(&gateway, &ACME, "?external_id=native").await).is_empty());

    engine.kill();
    let without = list(&gateway, &ACME, "").await;
    assert_eq!(orders(&without), ["in-2", "out-1", "in-1"]);
    assert_eq!(without["transactions"][1]["status"], "SUCCESS", "as last heard");
}

#[tokio::test]
async fn rows_that_cannot_be_asked_in_time_are_shown_as_last_received() {
    let engine = Scripted::start(|asked, before| match asked.method.as_str() {
        "POST" => created(&(100 + before).to_string()),
        _ if asked.path.ends_with("/101") => Play::Hang,
        _ => {
            let id = asked.path.rsplit('/').next().unwrap();
            let order = id.parse::<u32>().unwrap() - 100;
            let record = json!({ "order_id": order.to_string(), "transaction_id": id, "status": "FAILED",
                "amount": 10.5, "currency": "EUR", "method": "card" });
            Play::Say(200, record.to_string())
        }
    })
    .await;
    let gateway = before_scripted(&engine, "timeout = \"2s\"");
    for order in 0..40 {
        id_of(&payin(&gateway, &bodies::payin(&order.to_string())).await);
    }
    let all = list(&gateway, &ACME, "").await;
    let rows = all["transactions"].as_array().unwrap();
    assert_eq!(rows.len(), 40);
    for row in rows {
        let expected = if row["external_id"] == "1" { "PENDING" } else { "FAILED" };
        assert_eq!(row["status"], expected, "{row}");
    }
    assert_eq!(engine.count(), 80, "one question a row");
    let failed = list(&gateway, &ACME, "?status=FAILED").await;
    assert_eq!(orders(&failed).len(), 39);
    // The pending row may have been asked for a moment ago.
    assert!(engine.count() <= 81, "results are not asked for again");
}

#[tokio::test]
async fn without_a_shop_the_records_word_stands() {
    let Pair { engine: _engine, gateway } = Pair::with(
        &super::Rules::default().edit(
            "merchants/beta.toml",
            "name = \"Beta\"",
            "name = \"Beta\"\ndefault_shop = \"card-eur\"",
        ),
        |rules| rules,
    );
    let body = bodies::with(bodies::payin("in-1"), "shop_code", None);
    send(&gateway, &Request::payin(&BETA, &body)).await.expect(200);
    let shown = send(&gateway, &Request::v1_status(&BETA, "payin", "in-1")).await.expect(200).json();
    assert_eq!(shown["shop_code"], "card", "the engine's default shop is known to nobody here");
    assert_eq!(list(&gateway, &BETA, "").await["transactions"][0]["shop_code"], "card");
}
