//! The gateway and the stub of a provider, as the documentation lets them meet.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::stub::Stub;
use super::{SECRET, becomes, counted, logged, metric, payin, payout, record, report, report_request, rules, status};
use crate::support::gateway::free_port;
use crate::support::{CARD, Gateway, eventually};

const PREPARED: &str = r#"paybridge_provider_jobs_total{outcome="prepared"}"#;
const PENDING: &str = r#"paybridge_provider_jobs_total{outcome="pending"}"#;
const RETRIED: &str = r#"paybridge_provider_jobs_total{outcome="retried"}"#;

fn together() -> (Gateway, Stub, u16) {
    let port = free_port();
    let gateway = Gateway::start(&rules(&format!("http://127.0.0.1:{port}/operations"), ""));
    let stub = Stub::start(&gateway, port);
    (gateway, stub, port)
}

#[tokio::test]
async fn withdrawals_come_to_their_results() {
    let (gateway, _stub, _) = together();
    for (order_id, amount, expected) in [
        ("p-25", "7.25", "SUCCESS"),
        ("p-01", "7.01", "FAILED"),
        ("p-04", "7.04", "SUCCESS"),
        ("p-05", "7.05", "FAILED"),
    ] {
        let id = payout(&gateway, order_id, amount).await;
        becomes(&gateway, &id, expected).await;
        assert_eq!(payout(&gateway, order_id, amount).await, id, "a repeat of the create");
    }
    let waiting = payout(&gateway, "p-02", "7.02").await;
    counted(&gateway, PENDING, 3).await;
    assert_eq!(status(&gateway, &waiting).await, "PENDING");
    assert_eq!(metric(&gateway, RETRIED), 0, "PENDING is an answer");
    for secret in [SECRET, CARD] {
        assert!(!gateway.log().contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn deposits_are_prepared_and_paid() {
    let (gateway, _stub, port) = together();
    let refused = payin(&gateway, "d-01", "10.01").await;
    becomes(&gateway, &refused, "FAILED").await;
    let prepared = [("d-02", "10.02"), ("d-03", "10.03"), ("d-00", "10")];
    let mut ids = Vec::new();
    for (order_id, amount) in prepared {
        ids.push(payin(&gateway, order_id, amount).await);
    }
    counted(&gateway, PREPARED, 3).await;
    for id in &ids {
        assert_eq!(status(&gateway, id).await, "PENDING");
    }
    let reported = payin(&gateway, "d-04", "10.04").await;
    becomes(&gateway, &reported, "SUCCESS").await;
    assert_eq!(record(&gateway, &reported).await["account_number"], "411111******1111");

    // The customer pays on the page of the last one.
    let page = browse(port, "GET", &format!("/pay/{}", ids[2])).await;
    assert!(page.contains("Pay 10.00 EUR") && page.contains("<button>Decline</button>"), "{page}");
    let back = format!("<a href=\"https://localhost:{}/return/{}?expires=", gateway.public.port(), ids[2]);
    assert!(page.contains(&back) && page.contains("&amp;signature="), "{page}");
    let paid = browse(port, "POST", &format!("/pay/{}/SUCCESS", ids[2])).await;
    assert!(paid.contains("is over"), "{paid}");
    becomes(&gateway, &ids[2], "SUCCESS").await;
    browse(port, "POST", &format!("/pay/{}/FAILED", ids[2])).await;
    assert_eq!(status(&gateway, &ids[2]).await, "SUCCESS", "a result is for ever");
}

async fn browse(port: u16, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    reply
}

#[tokio::test]
async fn reports_are_idempotent_and_contradictions_refused() {
    let (gateway, _stub, _) = together();
    let id = payin(&gateway, "d-03", "10.03").await;
    counted(&gateway, PREPARED, 1).await;
    let success = || json!({ "status": "SUCCESS", "payer_account": CARD });
    let client = gateway.client();

    let forged = json!({ "transaction_id": id, "status": "SUCCESS" });
    client.send(&report_request("card-eur", "another secret", &forged)).await.expect(401);
    let unsigned = report_request("card-eur", SECRET, &forged).replace("X-Signature", None);
    client.send(&unsigned).await.expect(401);
    for foreign in ["slow-eur", "nothing", "plain-usd"] {
        client.send(&report_request(foreign, SECRET, &forged)).await.expect(404);
    }
    for (wrong, member) in [
        (json!({ "status": "DONE" }), "status"),
        (json!({ "status": "SUCCESS", "payer_account": 1 }), "payer_account"),
        (json!({ "status": "PENDING", "page": { "url": "http://a.example/" } }), "page.url"),
    ] {
        let message = report(&gateway, &id, wrong).await.expect(400).message();
        assert!(message.starts_with(member), "{message}");
    }
    assert_eq!(status(&gateway, &id).await, "PENDING", "nothing of it was taken");

    for body in
        [json!({ "status": "PENDING" }), json!({ "status": "PENDING", "page": { "url": "https://p.example/" } })]
    {
        let reply = report(&gateway, &id, body).await.expect(200).json();
        assert_eq!(reply, json!({ "transaction_id": id, "status": "PENDING" }));
    }
    for body in [success(), success(), json!({ "status": "SUCCESS" }), json!({ "status": "PENDING" })] {
        let reply = report(&gateway, &id, body).await.expect(200).json();
        assert_eq!(reply, json!({ "transaction_id": id, "status": "SUCCESS" }));
    }
    assert_eq!(record(&gateway, &id).await["account_number"], "400012******1234");
    let refused = report(&gateway, &id, json!({ "status": "FAILED" })).await.expect(409);
    assert!(refused.message().starts_with("status"), "{}", refused.message());
    assert_eq!(status(&gateway, &id).await, "SUCCESS");
    logged(&gateway, "a contradicting result was refused", 1).await;
    assert!(!gateway.log().contains(CARD));
}

#[tokio::test]
async fn a_provider_that_was_away_is_asked_when_it_is_back() {
    let port = free_port();
    let gateway = Gateway::start(&rules(&format!("http://127.0.0.1:{port}/operations"), ""));
    let id = payout(&gateway, "p-1", "7.25").await;
    counted(&gateway, RETRIED, 3).await;
    assert_eq!(status(&gateway, &id).await, "PENDING");
    let _stub = Stub::start(&gateway, port);
    becomes(&gateway, &id, "SUCCESS").await;
    logged(&gateway, "a provider gives no result", 1).await;
    assert_eq!(gateway.log().matches("a provider gives no result").count(), 1, "once a minute at most");
}

#[tokio::test]
async fn of_concurrent_reports_one_result_stands() {
    let (gateway, _stub, _) = together();
    for round in 0..3 {
        let id = payin(&gateway, &format!("d-{round}"), "10.03").await;
        let mut reports = tokio::task::JoinSet::new();
        for number in 0..12 {
            let body = json!({ "transaction_id": id, "status": if number % 2 == 0 { "SUCCESS" } else { "FAILED" } });
            let (client, request) = (gateway.client(), report_request("card-eur", SECRET, &body));
            reports.spawn(async move { (number % 2 == 0, client.send(&request).await.status) });
        }
        let replies = reports.join_all().await;
        let stands = eventually("a result", async || {
            let status = status(&gateway, &id).await;
            (status != "PENDING").then_some(status)
        })
        .await;
        for (success, status) in replies {
            assert_eq!(status, if success == (stands == "SUCCESS") { 200 } else { 409 }, "{stands}");
        }
    }
}
