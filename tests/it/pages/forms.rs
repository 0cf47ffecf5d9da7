//! The sandbox's form, as no browser sends it: refused with a page, and nothing is posted.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::pages::browser::{assert_state, check, form, location, open, page, press, visit};
use crate::pages::{Deposit, books, rules};
use crate::support::client::PATIENCE;
use crate::support::reply::take_reply;
use crate::support::request::{ACME, PROTOCOLS};
use crate::support::{Gateway, Request};

const FORM: &str = "application/x-www-form-urlencoded";

/// A form of this type; none where there is none.
fn typed(target: &str, content_type: Option<&str>, body: &str) -> Request {
    form(target, body).replace("Content-Type", content_type)
}

fn wrong(link: &str) -> Vec<(u16, &'static str, Request)> {
    let long = format!("decision=pay&rest={}", "x".repeat(2048));
    vec![
        (400, "empty", typed(link, Some(FORM), "")),
        (400, "another member", typed(link, Some(FORM), "choice=pay")),
        (400, "no value", typed(link, Some(FORM), "decision")),
        (400, "an empty value", typed(link, Some(FORM), "decision=")),
        (400, "another value", typed(link, Some(FORM), "decision=refund")),
        (400, "another case", typed(link, Some(FORM), "decision=PAY")),
        (400, "a line end", typed(link, Some(FORM), "decision=pay\r\n")),
        (400, "twice", typed(link, Some(FORM), "decision=pay&decision=pay")),
        (400, "both", typed(link, Some(FORM), "decision=pay&decision=decline")),
        (400, "JSON by another name", typed(link, Some(FORM), r#"{"decision":"pay"}"#)),
        (400, "bytes", typed(link, Some(FORM), "\u{0}\u{fffd}%FF=%FE&decision=%70ay")),
        (415, "JSON", typed(link, Some("application/json"), r#"{"decision":"pay"}"#)),
        (415, "text", typed(link, Some("text/plain"), "decision=pay")),
        (415, "multipart", typed(link, Some("multipart/form-data; boundary=x"), "decision=pay")),
        (415, "no type", typed(link, None, "decision=pay")),
        (415, "two types", typed(link, Some(FORM), "decision=pay").header("Content-Type", FORM)),
        (415, "packed", typed(link, Some(FORM), "decision=pay").header("Content-Encoding", "gzip")),
        (415, "as it is", typed(link, Some(FORM), "decision=pay").header("Content-Encoding", "identity")),
        (413, "long", typed(link, Some(FORM), &long)),
    ]
}

#[tokio::test]
async fn a_wrong_form_is_a_page_and_books_nothing() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "wrong", "10.50").await;
    let link = deposit.link("sandbox");
    let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
    for protocol in PROTOCOLS {
        for (status, what, request) in wrong(&link) {
            let reply = visit(&gateway, protocol, &request).await;
            assert_eq!(reply.status, status, "{what}: {}", reply.text());
            assert_state(&page(&reply, status), "error");
        }
    }
    assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
    // And it still can be paid.
    for body in ["decision=pay", "a=1&decision=pay&b"] {
        let sent = typed(&link, Some("Application/X-WWW-Form-Urlencoded; charset=UTF-8"), body);
        visit(&gateway, PROTOCOLS[0], &sent).await.expect(200);
    }
}

/// A decision for a deposit of another provider, signed by whoever knows the secret, is refused like any other.
#[tokio::test]
async fn only_what_waits_for_the_page_takes_a_decision() {
    let gateway = Gateway::start(&rules());
    let failed = Deposit::create(&gateway, "failed", "10.01").await;
    page(&press(&gateway, &failed.link("sandbox"), "pay").await, 409);
    failed.assert_status(&gateway, "FAILED").await;
    assert_eq!(location(&open(&gateway, &failed.entry).await), crate::pages::FAIL_URL);
    let withdrawal = crate::pages::withdrawal(&gateway, "withdrawal").await;
    let link = crate::pages::signed("sandbox", &withdrawal, &failed.expires().to_string());
    page(&press(&gateway, &link, "pay").await, 403);
    let record = gateway.client().send(&Request::status(&ACME, &withdrawal)).await.expect(200).json();
    assert_eq!(record["status"], "PENDING");
}

/// A form that never comes whole is given up with a page.
#[tokio::test]
async fn a_form_that_does_not_arrive_is_given_up() {
    let gateway = Gateway::start(&rules().with("limits", "body_timeout = \"100ms\""));
    let deposit = Deposit::create(&gateway, "dripped", "10.50").await;
    let request = form(&deposit.link("sandbox"), "decision=pay");
    let mut stream = gateway.client().tls(&["http/1.1"]).await.unwrap();
    stream.write_all(&request.head("Content-Length: 13\r\n")).await.unwrap();
    stream.write_all(b"decision=pay").await.unwrap();
    let mut received = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received)).await.expect("an answer in time");
    let reply = take_reply(&mut received).expect("a whole reply");
    check(&request, &reply);
    assert_state(&page(&reply, 408), "error");
    deposit.assert_status(&gateway, "PENDING").await;
}
