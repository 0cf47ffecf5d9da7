use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use super::super::verify::Signer;
use super::*;
use crate::domain::{MerchantId, UnixMillis};

fn received(body: &'static [u8], headers: &[(&'static str, &'static str)]) -> Received {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    Received {
        at: UnixMillis(1_780_000_000_500),
        method: Method::POST,
        path: "/cb".to_owned(),
        query: Some("a=%1b".to_owned()),
        headers: headers.iter().map(pair).collect::<HeaderMap>(),
        body: Bytes::from_static(body),
    }
}

fn findings() -> Findings {
    let signer = Signer { merchant: MerchantId::new("acme").unwrap(), key: "live".to_owned() };
    let check = |header, verdict| Check { header: HeaderName::from_static(header), verdict };
    Findings {
        style: Style::V2,
        shown: vec![HeaderName::from_static("webhook-id"), HeaderName::from_static("webhook-timestamp")],
        checks: vec![
            check("x-signature", Verdict::Verified(signer)),
            check("webhook-signature", Verdict::Wrong("it is old".to_owned())),
        ],
    }
}

fn decision() -> Decision {
    Decision { answer: "500".parse().unwrap(), delay: Duration::from_millis(1500), retry_after: None }
}

const HEADERS: &[(&str, &str)] = &[
    ("x-callback-id", "cb_1"),
    ("webhook-id", "cb_1"),
    ("webhook-timestamp", "1779999997"),
    ("x-signature", "c0ffee"),
    ("webhook-signature", "v1,c0ffee"),
    ("content-type", "application/json"),
    ("authorization", "Bearer c0ffee"),
];

#[test]
fn people_see_what_matters() {
    let (received, findings) = (received(br#"{"order_id":"o-1"}"#, HEADERS), findings());
    let report =
        Report { number: 3, received: &received, findings: &findings, times_seen: Some(2), decision: decision() };
    assert_eq!(
        report.text(),
        "2026-05-28T20:26:40.500Z #3 POST /cb?a=%1b, a repeat: its id came 2 times\n\
         \x20 X-Callback-Id        cb_1\n\
         \x20 webhook-id           cb_1\n\
         \x20 webhook-timestamp    1779999997 (3 s ago)\n\
         \x20 Content-Type         application/json\n\
         \x20 X-Signature          verified: key live, merchant acme\n\
         \x20 webhook-signature    WRONG: it is old\n\
         \x20 {\"order_id\":\"o-1\"}\n\
         \x20 -> 500 after 1500 ms\n\n"
    );
}

#[test]
fn programs_get_one_object_a_line() {
    let (received, findings) = (received(b"{\n\"order_id\":\"o-1\"}", HEADERS), findings());
    let report =
        Report { number: 3, received: &received, findings: &findings, times_seen: Some(1), decision: decision() };
    let line = report.json();
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&value["callback_id"], &value["style"], &value["times_seen"]),
        (&"cb_1".into(), &"v2".into(), &1.into())
    );
    assert_eq!((&value["body"], &value["answer"]), (&"{\n\"order_id\":\"o-1\"}".into(), &"500".into()));
    let verified = serde_json::json!({"header":"x-signature","result":"verified","merchant":"acme","key":"live"});
    assert_eq!(value["signatures"][0], verified);
    let wrong = serde_json::json!({"header":"webhook-signature","result":"wrong","reason":"it is old"});
    assert_eq!(value["signatures"][1], wrong);
    assert!(!line.contains("c0ffee"), "{line}");
}

#[test]
fn nothing_moves_the_cursor() {
    let hostile = received(
        "{\"order_id\":\"\u{9b}2J\u{202e}\u{7f}\"}".as_bytes(),
        &[("x-callback-id", "\u{9b}2J"), ("x-callback-sample", "true"), ("user-agent", "\u{e9}\u{202e}")],
    );
    for body in [hostile.body.clone(), Bytes::from_static(b"\x1b[2Jno json\x07"), Bytes::new()] {
        let (received, findings) = (Received { body, ..hostile.clone() }, findings());
        let times_seen = Some(1);
        let report = Report { number: 1, received: &received, findings: &findings, times_seen, decision: decision() };
        let text = report.text();
        assert!(text.contains("/cb?a=%1b, a sample\n"), "{text}");
        let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.chars().any(moves), "{text:?}");
        assert_eq!(report.json().matches('\n').count(), 1);
    }
}
