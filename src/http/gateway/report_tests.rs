//! Admission of providers' reports: the same order as for merchants, with the shop in a key's place.

use super::fixture::{BODY_LIMIT, Call, Fixture};

use http::Method;

use crate::auth::signatures::sign_v2;

use crate::domain::Secret;

const REPORT: &str = r#"{"transaction_id":"7","status":"SUCCESS"}"#;

fn report(body: &'static str) -> Call {
    Call::v2(Method::POST, "/providers/bank-eur/events", body).but(|call| {
        call.headers.retain(|(name, _)| *name != "x-api-key");
        call.set("x-signature", &sign_v2(&Secret::new(b"new"), body.as_bytes()));
    })
}

/// A fault, the status and a word of the message that report it, and how to make it.
type Fault = (&'static str, u16, &'static str, fn(&mut Call));

const FAULTS: &[Fault] = &[
    ("path", 404, "not found", |call| call.target = call.target.replace("/events", "/event")),
    ("method", 405, "POST only", |call| call.method = Method::PUT),
    ("content type", 415, "Content-Type", |call| call.set("content-type", "text/json")),
    ("content encoding", 415, "Content-Encoding", |call| call.set("content-encoding", "gzip")),
    ("announced length", 413, "too large", |call| call.body.announced = Some(BODY_LIMIT as u64 + 1)),
    ("repeated header", 400, "more than once", |call| call.add("x-signature", "00")),
    ("shop", 404, "not found", |call| call.target = call.target.replace("bank-eur", "bank-usd")),
    ("body time", 408, "body", |call| call.body.stalls = true),
    ("signature", 401, "authentication", |call| call.set("x-signature", &"0".repeat(64))),
    ("query", 400, "query", |call| call.target.push_str("?status=SUCCESS")),
    ("transaction", 404, "not found", |_| ()),
];

#[tokio::test(start_paused = true)]
async fn the_first_fault_of_a_report_wins() {
    let fixture = Fixture::new();
    for (at, (name, status, word, _)) in FAULTS.iter().enumerate() {
        let mut call = report(REPORT);
        for (_, _, _, apply) in FAULTS[at..].iter().rev() {
            apply(&mut call);
        }
        let answered = fixture.send(call).await;
        assert_eq!(answered.status, *status, "{name}: {answered:?}");
        assert!(answered.message().contains(word), "{name}: {answered:?}");
    }
    assert!(fixture.lines.all().last().unwrap().contains("provider_events"), "{:?}", fixture.lines.all());
}

#[tokio::test]
async fn malformed_reports_name_their_member() {
    let fixture = Fixture::new();
    for (body, word) in [
        ("", "JSON"),
        ("[]", "object"),
        (r#"{"status":"SUCCESS"}"#, "transaction_id: is required"),
        (r#"{"transaction_id":7,"status":"SUCCESS"}"#, "transaction_id: must be a string"),
        (r#"{"transaction_id":"7","transaction_id":"7","status":"SUCCESS"}"#, "twice"),
    ] {
        let answered = fixture.send(report(body)).await;
        assert_eq!(answered.status, 400, "{body}");
        assert!(answered.message().contains(word), "{body}: {answered:?}");
    }
    for absent in
        [r#"{"transaction_id":"07"}"#, r#"{"transaction_id":""}"#, r#"{"transaction_id":"99999999999999999999"}"#]
    {
        assert_eq!(fixture.send(report(absent)).await.status, 404, "{absent}");
    }
    assert_eq!(Fixture::without_store().await.send(report(REPORT)).await.status, 503);
}
