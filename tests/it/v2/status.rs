//! The status record, its absences, and the link that a deposit's create gives.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_V2, BETA, unix_now};
use crate::support::stored::Create;
use crate::support::{Reply, Request, Rules, eventually, payin, payout, text};
use crate::v2::KINDS;
use crate::v2::table::Table;

/// Creates and gives the record as soon as it has this status.
async fn reaches(table: &mut Table, kind: Create, body: &Value, status: &str) -> Value {
    let record = table.take(kind, &body.to_string(), None).await;
    let client = table.gateway.client();
    let request = Request::status(&ACME, text(&record, "transaction_id"));
    eventually(status, async || {
        let record = client.send(&request).await.expect(200).json();
        (record["status"] == status).then_some(record)
    })
    .await
}

// keeps P001, P002, P003, P011, P012, P021, P022, P096, P097, P107, P108, P148, P172, D048
#[tokio::test]
async fn operations_reach_the_result_that_their_amount_asks_for() {
    let mut table = Table::new();
    for (kind, amount, status) in [
        (Create::Deposit, json!(5.01), "FAILED"),
        (Create::Deposit, json!(5.02), "PENDING"),
        (Create::Deposit, json!(5), "PENDING"),
        (Create::Withdrawal, json!(5.01), "FAILED"),
        (Create::Withdrawal, json!(5.02), "PENDING"),
        (Create::Withdrawal, json!(5.03), "SUCCESS"),
        (Create::Withdrawal, json!(5.04), "FAILED"),
        (Create::Withdrawal, json!(5), "SUCCESS"),
    ] {
        let id = table.order();
        let body = with(kind.body(&id), "amount", Some(amount));
        let record = reaches(&mut table, kind, &body, status).await;
        // A repeat tells the same, whatever the result, and the result stands.
        let again = table.take(kind, &body.to_string(), None).await;
        assert_eq!(again, record);
    }
}

// keeps P181
#[tokio::test]
async fn a_preparation_that_stops_leaves_the_order_pending() {
    let mut table = Table::new();
    let stopped = table.order();
    let stopped = with(Create::Deposit.body(&stopped), "amount", Some(json!(5.02)));
    let record = table.take(Create::Deposit, &stopped.to_string(), None).await;
    // Another operation of the same shop reaches its result meanwhile.
    let id = table.order();
    reaches(&mut table, Create::Withdrawal, &Create::Withdrawal.body(&id), "SUCCESS").await;
    let again = table.take(Create::Deposit, &stopped.to_string(), None).await;
    assert_eq!((&again["status"], &again), (&json!("PENDING"), &record));
}

// keeps P018, P019, P020, P025, P028, P030, P033, P034, P105, P106, P147, P165, P166, D003, D043
#[tokio::test]
async fn a_record_has_these_members_and_echoes_no_fields() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        // A payer's account in `fields` is the merchant's data, not the payer's account.
        let fields = json!({ "card": "4000123412341299", "holder": "Ann Lee", "last_name": "Lee", "account": "7", "payer": "x" });
        let body = with(with(kind.body(&id), "fields", Some(fields)), "customer_account_id", Some(json!(42)));
        let record = table.take(kind, &body.to_string(), None).await;
        let names: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[&str] = match kind {
            Create::Deposit => &["amount", "currency", "method", "order_id", "status", "transaction_id"],
            _ => &["account_number", "amount", "currency", "method", "order_id", "status", "transaction_id"],
        };
        assert_eq!(names, expected);
    }
}

// keeps P026, P027
#[tokio::test]
async fn an_omitted_method_is_shown_as_the_payment_method_or_unknown() {
    let rules = Rules::default().edit("shops/card-eur.toml", "payment_method = \"card\"\n", "");
    for (rules, shown) in [(Rules::default(), "card"), (rules, "unknown")] {
        let gateway = crate::v2::Gateway::start(&rules);
        let client = gateway.client();
        for kind in KINDS {
            let created = kind.create(&client, &ACME, &with(kind.body("omitted"), "method", None)).await.json();
            let record =
                client.send(&Request::status(&ACME, text(&created, "transaction_id"))).await.expect(200).json();
            assert_eq!(text(&record, "method"), shown);
        }
    }
}

/// What is no transaction id of ours.
const ABSENT: &[&str] = &[
    // keeps P173, P228
    "1",
    "2",
    "1234567890123456789",
    "9223372036854775807",
    // keeps D041
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551617",
    "99999999999999999999",
    "340282366920938463463374607431768211457",
    "0",
    "00",
    "01",
    "-1",
    "+1",
    "1.0",
    "1e3",
    "0x1",
    "1_000",
    "1,000",
    "abc",
    "12a",
    "a12",
    "null",
    "true",
    "NaN",
    "~",
    "..",
    ".",
    "*",
    "%31",
    "%00",
    "1%00",
    "1%2F2",
    "%20",
    "1%20",
    "%",
    "%zz",
    "%C3%A9",
    "%ff",
    "row-1",
    "1;2",
    "1:2",
    "1@2",
    "1&2",
    "1=2",
    "$1",
    "!1",
];

// keeps P173, P174, P175, P205, P228, P236, P237, P238, P258, D004, D041
#[tokio::test]
async fn every_absence_is_the_same_404() {
    let mut table = Table::new();
    let theirs = table.send(&Request::deposit(&BETA, &Create::Deposit.body("theirs"))).await.expect(200).json();
    let theirs = text(&theirs, "transaction_id").to_owned();
    let unknown = table.send(&Request::status(&ACME, "1")).await.expect(404);
    assert_eq!(unknown.json()["error"]["code"], 404);
    assert!(unknown.message().len() < 80, "a short text: {}", unknown.message());
    let long = [
        "1".repeat(20),
        "1".repeat(300),
        "1".repeat(4000),
        "x".repeat(4000),
        format!("{theirs}0"),
        format!("0{theirs}"),
    ];
    // What was made through v1, and v1's own names for it.
    let by_v1 = table.send(&Create::Payin.request(&ACME, payin("5000001").to_string())).await.expect(200).json();
    let paid = table.send(&Create::Payout.request(&ACME, payout("5000002").to_string())).await.expect(200).json();
    let by_v1 = [text(&by_v1, "transaction_id"), text(&paid, "transaction_id"), "5000001", "5000002"];
    let ids = ABSENT.iter().copied().chain(long.iter().map(String::as_str)).chain([theirs.as_str()]).chain(by_v1);
    for id in ids {
        let reply = table.send(&Request::status(&ACME, id)).await;
        assert_eq!((reply.status, reply.text()), (404, unknown.text()), "{id}");
        let names = |reply: &Reply| reply.headers.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
        assert_eq!(names(&reply), names(&unknown), "{id}");
    }
    // It is there for its own merchant, and ours for every key of ours.
    table.send(&Request::status(&BETA, &theirs)).await.expect(200);
    let record = table.take(Create::Deposit, &Create::Deposit.body("ours").to_string(), None).await;
    table.send(&Request::status(&ACME_V2, text(&record, "transaction_id"))).await.expect(200);
    table.send(&Request::status(&BETA, text(&record, "transaction_id"))).await.expect(404);
}

// keeps P013, P017, P175, P242, P246, P258, P278, D004
#[tokio::test]
async fn both_versions_share_rules_and_the_scope_of_orders() {
    let mut table = Table::new();
    for (v1, v2) in [(Create::Payin, Create::Deposit), (Create::Payout, Create::Withdrawal)] {
        // The shop's rules hold for both.
        let (inner, member, bad) = match v2 {
            Create::Deposit => ("paymentData.bank_code", "fields.bank_code", "BANK-C"),
            _ => ("paymentData.holder", "fields.holder", "A"),
        };
        let id = table.order();
        let v1_body = with(v1.body(&id), inner, Some(bad.into())).to_string();
        table.send(&v1.request(&ACME, v1_body)).await.expect(400);
        let v2_body = with(v2.body(&id), member, Some(bad.into())).to_string();
        table.refuse(v2, &id, v2_body, 400).await;
        // What v2 made is no v1 operation, and its id is taken there.
        table.send(&v1.request(&ACME, v1.body(&id).to_string())).await.expect(409);
        let kind = if v1 == Create::Payin { "payin" } else { "payout" };
        table.send(&Request::v1_status(&ACME, kind, &id)).await.expect(404);
        // What v1 made is no v2 operation, before its result or after it, and its id is taken there.
        let id = table.order();
        let created = table.send(&v1.request(&ACME, v1.body(&id).to_string())).await.expect(200).json();
        table.send(&Request::status(&ACME, text(&created, "transaction_id"))).await.expect(404);
        table.send(&Request::v1_status(&ACME, kind, &id)).await.expect(200);
        table.send(&v2.request(&ACME, v2.body(&id).to_string())).await.expect(409);
    }
}

/// The expiry and the signature of an entry link.
fn link(reply: &Value, port: u16) -> (u64, String) {
    let id = text(reply, "transaction_id");
    let url = text(reply, "redirect_url");
    let query = url.strip_prefix(&format!("https://localhost:{port}/pay/{id}?expires=")).expect("an entry link");
    let (expires, signature) = query.split_once("&signature=").expect("a signature");
    assert!(signature.len() == 64 && signature.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    (expires.parse().unwrap(), signature.to_owned())
}

// keeps P035, P036, P037, P038, P149, P189, P190, P255, D036
#[tokio::test]
async fn a_link_is_signed_expires_and_is_not_renewed() {
    let mut table = Table::with(&Rules::default().with("pages", "link_lifetime = \"1s\""));
    let port = table.gateway.public.port();
    let body = Create::Deposit.body("linked").to_string();
    let before = unix_now();
    let first = table.send(&Create::Deposit.request(&ACME, body.as_str())).await.expect(200);
    let (expires, signature) = link(&first.json(), port);
    assert!((before + 1..=unix_now() + 2).contains(&expires), "{before} {expires}");
    let other =
        table.send(&Create::Deposit.request(&ACME, Create::Deposit.body("other").to_string())).await.expect(200);
    assert_ne!(link(&other.json(), port).1, signature, "every link has a signature of its own");
    eventually("the link's expiry", async || (unix_now() > expires).then_some(())).await;
    let again = table.send(&Create::Deposit.request(&ACME, body.as_str())).await.expect(200);
    assert_eq!(again.text(), first.text(), "neither renewed nor another one");
    let id = text(&first.json(), "transaction_id").to_owned();
    let record = table.send(&Request::status(&ACME, &id)).await.expect(200).json();
    assert_eq!(record["status"], "PENDING", "an expired link has not failed");
}

// keeps P255
#[tokio::test]
async fn the_lifetime_of_a_link_is_configured() {
    for (lifetime, seconds) in [("90m", 5400), ("3d", 259_200)] {
        let mut table = Table::with(&Rules::default().with("pages", &format!("link_lifetime = \"{lifetime}\"")));
        let port = table.gateway.public.port();
        let before = unix_now();
        let reply =
            table.send(&Create::Deposit.request(&ACME, Create::Deposit.body("x").to_string())).await.expect(200);
        let (expires, _) = link(&reply.json(), port);
        assert!((before + seconds..=unix_now() + seconds + 1).contains(&expires), "{lifetime}: {before} {expires}");
    }
}
