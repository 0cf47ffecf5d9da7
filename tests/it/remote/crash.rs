//! Processes that end between the request and its reply.

use super::scripted::{Play, Scripted, created, error};
use super::{assert_again, before, before_scripted, id_of, metric, payin, payout, send, v1_status};
use crate::support::bodies;
use crate::support::request::{ACME, BETA, hmac_hex};
use crate::support::{Gateway, Request, Rules, eventually};

#[tokio::test]
async fn the_engine_is_killed_between_the_request_and_the_reply() {
    let mut engine = Gateway::start(&Rules::default());
    let proxy = Scripted::before(&engine, |_, before| match before {
        0 => Play::Lose,
        1 => Play::Close,
        _ => Play::Forward,
    })
    .await;
    let gateway = before_scripted(&proxy, "");
    assert_again(&payout(&gateway, &bodies::payout("out-1")).await, 502);
    engine.kill();
    engine.restart();
    let made = id_of(&payout(&gateway, &bodies::payout("out-1")).await);
    let direct = send(&engine, &Request::v2_post(&ACME, "/api/v2/withdrawals", proxy.asked()[0].body.clone())).await;
    assert_eq!(id_of(&direct), made, "the one that was made before the engine was killed");
    assert_eq!(id_of(&v1_status(&gateway, "payout", "out-1").await), made);
}

#[tokio::test]
async fn the_gateway_is_killed_between_the_request_and_the_reply() {
    let engine = Gateway::start(&Rules::default());
    let proxy = Scripted::before(&engine, |_, before| if before < 2 { Play::Keep } else { Play::Forward }).await;
    let mut gateway = before_scripted(&proxy, "");
    let requests = [Request::payin(&ACME, &bodies::payin("in-1")), Request::payout(&ACME, &bodies::payout("out-1"))];
    let callers: Vec<_> = requests
        .iter()
        .map(|request| {
            let (client, request) = (gateway.client(), request.clone());
            tokio::spawn(async move { client.connect().await.try_send(&request).await })
        })
        .collect();
    proxy.keeps(2).await;
    gateway.kill();
    for caller in callers {
        assert!(caller.await.unwrap().is_none(), "nobody was answered");
    }
    gateway.restart();
    eventually("both are recovered", async || {
        (gateway.log().matches("recovered: the engine has it").count() == 2).then_some(())
    })
    .await;
    assert_eq!(proxy.count(), 4);
    let mut bodies_sent: Vec<_> = proxy.asked().into_iter().map(|asked| asked.body).collect();
    bodies_sent.sort();
    assert_eq!(bodies_sent[0], bodies_sent[1]);
    assert_eq!(bodies_sent[2], bodies_sent[3]);
    eventually("recovery ends", async || {
        gateway.log().contains("every create of the last process has a response").then_some(())
    })
    .await;
    let made = id_of(&v1_status(&gateway, "payin", "in-1").await);
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("in-1")).await), made);
    let direct = bodies_sent.iter().find(|body| body.contains("success_url")).unwrap();
    let direct = Request::v2_post(&ACME, "/api/v2/deposits", direct.clone());
    assert_eq!(id_of(&send(&engine, &direct).await), made, "one operation at the engine");
    v1_status(&gateway, "payout", "out-1").await.expect(200);
    assert_eq!(metric(&gateway, "paybridge_journal_recovering"), 0);
}

#[tokio::test]
async fn recovery_goes_on_until_the_engine_answers_and_takes_no_for_an_answer() {
    let engine = Scripted::start(|asked, before| {
        if asked.method == "GET" {
            return error(503, "later");
        }
        match (asked.json()["order_id"].as_str().unwrap(), before) {
            (_, 0 | 1) => Play::Hang,
            ("bad", _) => error(400, "amount: is too small"),
            (_, 2..6) => Play::Close,
            _ => created("7"),
        }
    })
    .await;
    let mut gateway = before_scripted(&engine, "");
    for order in ["good", "bad"] {
        let (client, request) = (gateway.client(), Request::payin(&ACME, &bodies::payin(order)));
        tokio::spawn(async move { client.connect().await.try_send(&request).await });
    }
    engine.was_asked(2).await;
    gateway.kill();
    gateway.restart();
    eventually("recovery ends", async || {
        gateway.log().contains("every create of the last process has a response").then_some(())
    })
    .await;
    let log = gateway.log();
    assert!(log.contains("sending them again") || log.contains("are sent to the engine again"), "{log}");
    assert!(log.contains("the engine refuses it now: amount: is too small"), "{log}");
    // The request that was cut off may be under way still: that it was refused now proves nothing.
    assert_again(&v1_status(&gateway, "payin", "bad").await, 504);
    let asked = engine.count();
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("good")).await), "7");
    assert_eq!(engine.count(), asked, "it is known");
}

#[tokio::test]
async fn what_a_caller_was_reported_of_is_not_sent_again_by_a_restart() {
    let engine = Scripted::start(|_, before| if before < 2 { Play::Close } else { created("7") }).await;
    let mut gateway = before_scripted(&engine, "");
    assert_again(&payout(&gateway, &bodies::payout("out-1")).await, 502);
    gateway.kill();
    gateway.restart();
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("in-1")).await), "7");
    let orders: Vec<_> = engine.asked().iter().map(|asked| asked.json()["order_id"].clone()).collect();
    assert_eq!(orders, ["out-1", "out-1", "in-1"]);
    assert!(!gateway.log().contains("cut off"), "{}", gateway.log());
}

#[tokio::test]
async fn a_key_that_is_gone_is_confirmed_in_for_by_its_merchants_first() {
    let engine = Scripted::start(|_, before| if before < 2 { Play::Hang } else { created("7") }).await;
    let mut gateway = before_scripted(&engine, "");
    for (key, order) in [(ACME, "acme-1"), (BETA, "beta-1")] {
        let (client, request) = (gateway.client(), Request::payin(&key, &bodies::payin(order)));
        tokio::spawn(async move { client.connect().await.try_send(&request).await });
    }
    engine.was_asked(2).await;
    gateway.kill();
    let rules = before(engine.address.port(), &engine.ca(), "")
        .edit("merchants/acme.toml", "key = \"acme-live\"\n", "key = \"acme-next\"\n")
        .without("merchants/beta.toml");
    std::fs::remove_file(gateway.rules_dir().join("merchants/beta.toml")).unwrap();
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.restart();
    eventually("recovery ends", async || {
        gateway.log().contains("every create of the last process has a response").then_some(())
    })
    .await;
    let asked = engine.asked();
    assert_eq!(asked.len(), 3, "nobody signs for a merchant that is gone");
    assert_eq!(asked[2].json()["order_id"], "acme-1");
    assert_eq!(asked[2].header("x-api-key"), Some("acme-next"));
    assert_eq!(asked[2].header("x-signature"), Some(&*hmac_hex(ACME.v2.unwrap(), asked[2].body.as_bytes())));
    assert!(gateway.log().contains("the outcome of an interrupted create stays unknown"), "{}", gateway.log());
}
