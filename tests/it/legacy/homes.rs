//! Where requests go: by the home of their order, and by the mode for orders that have none.

use serde_json::{Value, json};

use super::{import, old_service, operations, rules};
use crate::support::receiver::{Play, Receiver};
use crate::support::request::ACME;
use crate::support::{Gateway, Request, bodies, eventually, payin, payout};

/// Where a reply came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Here(u16),
    Legacy,
}

/// Sends a request, and reports where its reply came from: an operation here has another shape than the old service's.
async fn origin(gateway: &Gateway, request: &Request) -> From {
    let reply = gateway.client().send(request).await;
    if reply.json().get("legacy").is_some() { From::Legacy } else { From::Here(reply.status) }
}

fn status(kind: &str, id: &str) -> Request {
    Request::v1_status(&ACME, kind, id)
}

#[tokio::test]
async fn every_cell_of_the_table() {
    let old = old_service();
    let translate = rules(&old, "", "mode = \"translate\"");
    let gateway = Gateway::start(&translate);
    import(&gateway, "payin", "imported\n", &[]);
    let here = gateway.client().send(&Request::payin(&ACME, &payin("here"))).await.expect(200);
    gateway.client().send(&Request::deposit(&ACME, &bodies::deposit("native"))).await.expect(200);
    // In mode `translate`, what is at home with the old service goes there, and everything else is here.
    for (request, expected) in [
        (Request::payin(&ACME, &payin("imported")), From::Legacy),
        (Request::payin(&ACME, &json!({ "external_id": "imported", "anything": [] })), From::Legacy),
        (Request::payin(&ACME, &payin("here")), From::Here(200)),
        (Request::payin(&ACME, &payin("native")), From::Here(409)),
        (Request::payout(&ACME, &payout("imported")), From::Here(200)),
        (status("payin", "imported"), From::Legacy),
        (status("payin", "here"), From::Here(200)),
        (status("payin", "native"), From::Here(404)),
        (status("payin", "unknown"), From::Here(404)),
        (Request::deposit(&ACME, &bodies::deposit("imported")), From::Here(409)),
        (Request::v1_get(&ACME, "/api/v1/balance"), From::Here(200)),
        (Request::v1_get(&ACME, "/api/v1/transactions"), From::Here(200)),
    ] {
        assert_eq!(origin(&gateway, &request).await, expected, "translate: {request:?}");
    }
    for mode in ["legacy", "shadow", "staged"] {
        gateway.reload_with(&rules(&old, "", &format!("mode = \"{mode}\"")));
        let new = format!("new-{mode}");
        for (request, expected) in [
            (Request::payin(&ACME, &payin(&new)), From::Legacy),
            (Request::payin(&ACME, &payin(&new)), From::Legacy),
            (Request::payin(&ACME, &payin("imported")), From::Legacy),
            (Request::payin(&ACME, &payin("native")), From::Here(409)),
            (status("payin", &new), From::Legacy),
            (status("payin", "imported"), From::Legacy),
            (status("payin", "here"), From::Here(200)),
            (status("payin", "native"), From::Here(404)),
            (status("payin", "unknown"), From::Legacy),
            (Request::deposit(&ACME, &bodies::deposit(&new)), From::Here(409)),
            (Request::deposit(&ACME, &bodies::deposit(&format!("v2-{mode}"))), From::Here(200)),
            (Request::payin(&ACME, &payin(&format!("v2-{mode}"))), From::Here(409)),
            (Request::v1_get(&ACME, "/api/v1/balance"), From::Legacy),
            (Request::v1_get(&ACME, "/api/v1/transactions?page=x"), From::Legacy),
        ] {
            assert_eq!(origin(&gateway, &request).await, expected, "{mode}: {request:?}");
        }
        let again = gateway.client().send(&Request::payin(&ACME, &payin("here"))).await.expect(200);
        assert_eq!(again.json()["transaction_id"], here.json()["transaction_id"], "{mode}");
        let changed = bodies::with(payin("here"), "amount", Some(json!("11.00")));
        assert_eq!(origin(&gateway, &Request::payin(&ACME, &changed)).await, From::Here(409), "{mode}");
    }
    // Back in `translate`, everything stays where it is; without the old service it cannot be reached.
    gateway.reload_with(&translate);
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("new-legacy"))).await, From::Legacy);
    assert_eq!(origin(&gateway, &status("payin", "new-shadow")).await, From::Legacy);
    let count = old.count();
    gateway.reload_with(&crate::support::Rules::default());
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("new-legacy"))).await, From::Here(409));
    assert_eq!(origin(&gateway, &status("payin", "new-legacy")).await, From::Here(404));
    assert_eq!(old.count(), count);
    // here, native, the payout, and one native order in each mode.
    assert_eq!(operations(&gateway), 6);
}

#[tokio::test]
async fn the_claimed_id_is_the_one_that_a_service_may_read() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", "mode = \"legacy\""));
    // Refused, and not forwarded: the old service might read an id there that is not claimed.
    for body in [
        "",
        "[]",
        "null",
        "{\"external_id\":\"a\"",
        "{\"external_id\":\"a\",\"external_id\":\"a\"}",
        "{\"external_id\":\"a\",\"External_Id\":\"b\"}",
        "{\"external_id\":1.0}",
        "{\"external_id\":[\"a\"]}",
    ] {
        let reply = gateway.client().send(&Request::payin(&ACME, &body)).await.expect(400);
        assert!(!reply.message().contains("order_id"), "{body}: {}", reply.message());
    }
    assert_eq!(old.count(), 0);
    // Forwarded without a claim: no order here could have these.
    let long = format!("{{\"external_id\":\"{}\"}}", "x".repeat(256));
    for body in ["{}", "{\"external_id\":null}", "{\"external_id\":\"\"}", "{\"external_id\":\"\\u0000\"}", &long] {
        assert_eq!(origin(&gateway, &Request::payin(&ACME, &body)).await, From::Legacy, "{body}");
    }
    // Claimed, in any spelling, and whatever else the body holds.
    for (body, id) in [
        ("{\"external_id\":17}", "17"),
        ("{\"external\\u005fid\":\"\\u0061b\",\"x\":{\"a\":1,\"a\":2}}", "ab"),
        ("{\"EXTERNAL_ID\":\"loud\"}", "loud"),
    ] {
        assert_eq!(origin(&gateway, &Request::payin(&ACME, &body)).await, From::Legacy, "{body}");
        assert_eq!(origin(&gateway, &Request::deposit(&ACME, &bodies::deposit(id))).await, From::Here(409), "{id}");
    }
    assert_eq!(operations(&gateway), 0);
}

#[tokio::test]
async fn a_claim_stays_whatever_comes_of_it() {
    let old = Receiver::start(|received, _| match received.json()["external_id"].as_str() {
        Some("refused") => super::answer(422, "", "no"),
        Some("cut") => Play::Cut,
        _ => Play::Hang,
    });
    let gateway = Gateway::start(&rules(&old, "timeout = \"3s\"", "mode = \"legacy\""));
    for (id, expected) in [("refused", 422), ("cut", 502), ("hangs", 504)] {
        let reply = gateway.client().send_unchecked(&Request::payin(&ACME, &payin(id))).await;
        assert_eq!(reply.status, expected, "{id}");
        if expected > 500 {
            assert!(reply.message().ends_with("with the same external_id, may be sent again"), "{}", reply.message());
        }
    }
    // Nothing listens any more: nothing is sent, and the claim is made all the same.
    drop(old);
    let reply = gateway.client().send(&Request::payin(&ACME, &payin("gone"))).await.expect(502);
    assert!(reply.message().contains("could not be reached"), "{}", reply.message());
    // What creates nothing has no order that makes a repeat safe.
    let reply = gateway.client().send(&Request::v1_get(&ACME, "/api/v1/balance")).await.expect(502);
    let message = "the payment service could not be reached; the same request may be sent again";
    assert_eq!(reply.message(), message);
    let logged = eventually("the log has it in words", async || {
        let log = gateway.log();
        log.lines().find(|line| line.contains("the old v1 service gave no reply")).map(str::to_owned)
    });
    let logged = logged.await;
    assert!(logged.contains("error=") && !logged.contains("cause"), "{logged}");
    gateway.reload_with(&crate::support::Rules::default());
    for id in ["refused", "cut", "hangs", "gone"] {
        assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin(id))).await, From::Here(409), "{id}");
    }
    assert_eq!(operations(&gateway), 0);
}

#[tokio::test]
async fn staged_orders_are_split_by_their_hash() {
    let old = old_service();
    let staged = |percent: &str| rules(&old, "", &format!("mode = \"staged\", percent = {percent}"));
    let gateway = Gateway::start(&staged("100"));
    // Until the list of old ids is complete, everything goes to the old service.
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("early"))).await, From::Legacy);
    let warning = "makes none of their new orders here until `paybridge import-ids --complete`";
    eventually("a warning", async || gateway.log().contains(warning).then_some(())).await;
    import(&gateway, "payin", "", &["--complete"]);
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("all"))).await, From::Here(200));
    assert_eq!(origin(&gateway, &Request::payout(&ACME, &payout("all"))).await, From::Legacy);
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("early"))).await, From::Legacy);
    // A later import that reserves something takes the mark away.
    import(&gateway, "payin", "late\n", &[]);
    assert_eq!(origin(&gateway, &Request::payin(&ACME, &payin("more"))).await, From::Legacy);
    import(&gateway, "payin", "late\n", &["--complete"]);

    gateway.reload_with(&staged("{ payin = 25, payout = 100 }"));
    let mut homes = Vec::new();
    let mut connection = gateway.client().connect().await;
    for number in 0..400 {
        let id = format!("{number}-of-many");
        let reply = connection.send(&Request::payin(&ACME, &payin(&id))).await.expect(200);
        homes.push((id, reply.json().get("legacy").is_none()));
    }
    let here = homes.iter().filter(|(_, here)| *here).count();
    // Three standard deviations of a quarter of 400.
    assert!((74..=126).contains(&here), "{here} of 400");
    // Another share moves nothing that has a home.
    for percent in ["100", "0"] {
        gateway.reload_with(&staged(percent));
        for (id, here) in &homes {
            let reply: Value = connection.send(&Request::payin(&ACME, &payin(id))).await.expect(200).json();
            assert_eq!(reply.get("legacy").is_none(), *here, "{id}");
        }
    }
}
