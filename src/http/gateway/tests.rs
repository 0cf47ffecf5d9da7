//! The order of admission and the shape of replies, pinned. Bodies are scripted; sockets belong to the listener's tests.

use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use super::fixture::{BODY_LIMIT, Call, DEPOSIT, Fixture, NOW, PAYIN, Pieces, rule_set};
use http::Method;

use super::*;
use crate::clock::Clock as _;
use crate::http::admission::Credentials;
use crate::http::listener::{HeadCheck, HeadError};
use crate::http::router;

/// A fault, the status and a word of the message that report it, and how to make it.
type Fault = (&'static str, u16, &'static str, fn(&mut Call));

/// What may be wrong with a `POST`, in the order in which it is reported.
const FAULTS: &[Fault] = &[
    ("head", 400, "Host", |call| call.head_check = HeadCheck::violating(HeadError::Malformed, "two Host headers")),
    ("path", 404, "not found", |call| call.target = call.target.replace("/api/", "/ipa/")),
    ("method", 405, "POST only", |call| call.method = Method::PUT),
    ("content type", 415, "Content-Type", |call| call.set("content-type", "text/json")),
    ("content encoding", 415, "Content-Encoding", |call| call.set("content-encoding", "gzip")),
    ("announced length", 413, "too large", |call| call.body.announced = Some(BODY_LIMIT as u64 + 1)),
    ("repeated header", 400, "more than once", |call| call.add("x-signature", "00")),
    ("unknown key", 401, "authentication", |call| call.set("x-api-key", "unknown")),
    ("address", 403, "address", |call| call.set("x-api-key", "acme-far")),
    ("rate", 429, "this API key", |call| call.set("x-api-key", "acme-slow")),
    ("body length", 413, "too large", |call| {
        call.body.announced = None;
        call.body.data.push_back(vec![b' '; BODY_LIMIT].into());
    }),
    ("body time", 408, "body", |call| call.body.stalls = true),
    ("trailers", 400, "trailers", |call| call.body.trailers = true),
    ("signature", 401, "authentication", |call| call.set("x-signature", &"0".repeat(64))),
    ("query", 400, "query", |call| call.target.push_str("?order_id=o-2")),
];

async fn first_fault_wins(good: fn() -> Call) {
    let fixture = Fixture::new();
    // The hourly request of the slow key.
    fixture.send(good().but(|call| call.set("x-api-key", "acme-slow"))).await;
    assert_eq!(fixture.created(), 1);
    for (at, (name, status, word, _)) in FAULTS.iter().enumerate() {
        let mut call = good();
        for (_, _, _, apply) in FAULTS[at..].iter().rev() {
            apply(&mut call);
        }
        let answered = fixture.send(call).await;
        assert_eq!(answered.status, *status, "{name}: {answered:?}");
        assert!(answered.message().contains(word), "{name}: {answered:?}");
    }
    assert_eq!(fixture.created(), 1, "what was refused stored nothing");
    let answered = fixture.send(good()).await;
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_fault_of_a_v2_request_wins() {
    first_fault_wins(Call::deposit).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_fault_of_a_v1_request_wins() {
    first_fault_wins(Call::payin).await;
}

#[tokio::test]
async fn requests_are_counted_for_the_merchant_that_made_them() {
    let fixture = Fixture::new();
    let wrong_signature = |call: &mut Call| call.set("x-signature", &"0".repeat(64));
    for call in [
        Call::payin(),
        Call::deposit(),
        Call::v2(Method::GET, "/api/v2/transactions/1", ""),
        Call::v1(Method::POST, "/api/v1/payin", "{}"),
        Call::v1(Method::POST, "/api/v1/payin", r#"{"external_id":"x","amount":"1.00","currency":"EUR","more":1}"#),
        Call::v2(Method::POST, "/api/v2/deposits", "{}"),
        Call::payin().but(wrong_signature),
        Call::deposit().but(wrong_signature),
        Call::deposit().but(|call| call.set("x-api-key", "acme-far")),
        Call::deposit().but(|call| call.set("x-api-key", "unknown")),
    ] {
        fixture.send(call).await;
    }
    let counted = |name: &str| {
        let rules = fixture.gateway.0.deps.rules.load();
        let merchant = rules.merchants.values().find(|merchant| merchant.id.as_str() == name).unwrap();
        let view = merchant.traffic.view();
        (view.v1, view.v2, view.last_v1, view.refusals)
    };
    let refusals = vec![
        ("signature", 2),
        ("address", 1),
        ("conflict", 1),
        ("invalid", 1),
        ("not_found", 1),
        ("shape", 1),
        ("unknown_field", 1),
    ];
    assert_eq!(counted("acme"), (3, 3, Some(NOW), refusals), "unproven requests may be of any caller");
    assert_eq!(counted("shaped"), (0, 0, None, Vec::new()));
}

#[tokio::test]
async fn the_last_v1_call_is_the_last_authenticated_one_refused_or_not() {
    let fixture = Fixture::new();
    let last = || {
        let rules = fixture.gateway.0.deps.rules.load();
        rules.merchants.values().find(|merchant| merchant.id.as_str() == "acme").unwrap().traffic.view().last_v1
    };
    let other = r#"{"external_id":"o-1","amount":"11.50","currency":"EUR"}"#;
    let shape = Call::v1(Method::POST, "/api/v1/payin", "{}");
    let conflict = Call::v1(Method::POST, "/api/v1/payin", other);
    let unknown = Call::v1(Method::GET, "/api/v1/payin/status?external_id=none", "");
    for (call, status) in [(Call::payin(), 200), (shape, 400), (conflict, 409), (unknown, 404)] {
        fixture.clock.advance(Duration::from_secs(1));
        assert_eq!(fixture.send(call).await.status, status);
        assert_eq!(last(), Some(fixture.clock.now()), "{status}");
    }
    let before = last();
    fixture.clock.advance(Duration::from_secs(1));
    for call in [
        Call::payin().but(|call| call.set("x-signature", &"0".repeat(64))),
        Call::payin().but(|call| call.set("x-api-key", "unknown")),
        Call::deposit(),
    ] {
        fixture.send(call).await;
    }
    assert_eq!(last(), before);
}

#[tokio::test]
async fn bodies_of_unknown_keys_are_read_like_those_of_known_ones() {
    let fixture = Fixture::with(|rules| rules.gateway.limits.body = 64 * 1024);
    let pieces = |count| std::iter::repeat_n(Bytes::from(vec![b' '; 1024]), count).collect();
    for (count, announced, expect, connection) in [
        (8, None, None, None),
        (9, None, None, Some("close")),
        (8, Some(8 * 1024), None, None),
        (9, Some(9 * 1024), None, Some("close")),
        (1, Some(1024), Some("100-continue"), Some("close")),
    ] {
        let refused = |header: &'static str, value: &'static str| {
            Call::deposit().but(|call| {
                call.set("x-request-id", "same");
                call.set(header, value);
                if let Some(expect) = expect {
                    call.set("expect", expect);
                }
                call.body = Pieces { data: pieces(count), announced, ..Pieces::default() };
            })
        };
        let unknown = fixture.send(refused("x-api-key", "unknown")).await;
        assert_eq!((unknown.status, unknown.header("connection")), (401, connection), "{count} {announced:?}");
        assert_eq!(fixture.send(refused("x-signature", "00")).await, unknown, "{count} {announced:?} {expect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_signature_is_proven_no_reply_depends_on_the_merchant() {
    let fixture = Fixture::new();
    let same = |call: Call| call.but(|call| call.set("x-request-id", "same"));
    let named = |key: &'static str| move |call: &mut Call| call.set("x-api-key", key);
    let far = |call: &mut Call| call.peer.address = "192.0.2.1".parse().unwrap();
    let long = |call: &mut Call| {
        call.body = Pieces { announced: None, ..Pieces::default() };
        call.body.data.push_back(vec![b' '; BODY_LIMIT + 1].into());
    };
    let stalled = |call: &mut Call| call.body.stalls = true;
    let broken = |call: &mut Call| call.body.trailers = true;
    for (status, fault) in [(403, far as fn(&mut Call)), (413, long), (408, stalled), (400, broken)] {
        let mut seen = Vec::new();
        for (key, path) in [
            ("acme-live", "/api/v1/payin"),
            ("shaped-live", "/api/v1/payin"),
            ("shaped-live", "/api/v1/payout"),
            ("acme-live", "/shaped"),
        ] {
            let call = same(Call::v1(Method::POST, path, PAYIN)).but(named(key)).but(fault);
            seen.push(fixture.send(call).await);
        }
        assert_eq!(seen[0].status, status, "{:?}", seen[0]);
        assert!(!seen[0].message().is_empty());
        for name in ["deprecation", "sunset", "link"] {
            assert_eq!(seen[0].header(name), None);
        }
        for other in &seen {
            assert_eq!(other, &seen[0]);
        }
    }
    // The key's own rate has its own waiting time, and nothing else of the merchant.
    fixture.send(Call::payin().but(named("acme-slow"))).await;
    let slow = fixture.send(Call::payin().but(named("acme-slow"))).await;
    assert_eq!((slow.status, slow.header("deprecation")), (429, None));
    slow.message();
}

#[tokio::test]
async fn wrong_signatures_are_throttled_like_unknown_keys_on_every_path() {
    for key in ["unknown", "acme-live", "shaped-live"] {
        let fixture = Fixture::with(|rules| {
            let one = std::num::NonZeroU32::MIN;
            rules.gateway.limits.unauthenticated_per_ip = crate::domain::Quota { per_second: one, burst: one };
        });
        let wrong = Call::v1(Method::POST, "/api/v1/payout", PAYIN).but(|call| {
            call.set("x-api-key", key);
            call.set("x-signature", "00");
        });
        let mut held_up = 0;
        for _ in 0..300 {
            let answered = fixture.send(wrong.clone()).await;
            assert!(answered.message().contains("failed"), "{answered:?}");
            assert_eq!(answered.header("deprecation"), None);
            held_up += usize::from(answered.status == 429);
        }
        assert!(held_up > 0, "{key}");
    }
}

#[tokio::test]
async fn failures_that_pass_say_that_a_repeat_is_safe() {
    let fixture = Fixture::without_store().await;
    let answered = fixture.send(Call::v2(Method::GET, "/api/v2/transactions/14", "")).await;
    assert_eq!((answered.status, answered.header("retry-after")), (503, Some("1")));
    assert!(answered.message().contains("may be sent again"), "{answered:?}");
    let line = fixture.lines.all().pop().unwrap();
    assert!(line.contains(r#"reason: Some("unavailable")"#), "{line}");
}

#[tokio::test]
async fn a_panic_is_a_500_without_detail() {
    let fixture = Fixture::new();
    fixture.random.panics.store(true, Ordering::SeqCst);
    let answered = fixture.send(Call::deposit()).await;
    assert_eq!(answered.status, 500);
    assert!(!answered.body.contains("a panic for"), "{answered:?}");
    assert_eq!(fixture.send(Call::deposit()).await.status, 200);
    assert_eq!(fixture.lines.all().len(), 2);
}

#[tokio::test]
async fn a_caller_who_hangs_up_abandons_nothing() {
    hangs_up_on_the_way_to_the_store(Call::deposit()).await;
}

/// A new order that is on its way to the store when its caller hangs up gets there.
pub(super) async fn hangs_up_on_the_way_to_the_store(call: Call) {
    let fixture = Fixture::new();
    let connection_info = call.connection_info();
    let mut handling = Box::pin(fixture.gateway.handle(call.into_request(), connection_info));
    // The commit waits for the disk, so that the first poll ends on the way to it.
    assert!(poll_fn(|context| Poll::Ready(handling.as_mut().poll(context).is_pending())).await);
    drop(handling);
    while fixture.lines.all().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.created(), 1);
}

#[tokio::test]
async fn a_caller_who_hangs_up_before_its_body_ends_is_logged() {
    let fixture = Fixture::new();
    let gateway = fixture.gateway.clone();
    let call = Call::payin().but(|call| call.body.stalls = true);
    let mut handling = Box::pin(gateway.handle(call.clone().into_request(), call.connection_info()));
    assert!(poll_fn(|context| Poll::Ready(handling.as_mut().poll(context).is_pending())).await);
    assert!(fixture.lines.all().is_empty());
    drop(handling);
    let lines = fixture.lines.all();
    assert_eq!(lines.len(), 1);
    for word in ["499", "\"payin\"", "acme"] {
        assert!(lines[0].contains(word), "{word}: {}", lines[0]);
    }
    assert!(fixture.metrics.render().contains(r#"route="payin",status="499""#));
}

#[tokio::test]
async fn a_wrong_method_is_logged_with_its_path() {
    let fixture = Fixture::new();
    for (method, target, route) in [
        (Method::GET, "/api/v2/deposits", "v2_deposits"),
        (Method::PUT, "/api/v2/transactions/1", "v2_transactions"),
        (Method::GET, "/api/v1/payin", "payin"),
        (Method::PUT, "/shaped", "payout"),
        (Method::PUT, "/nowhere", "none"),
    ] {
        let answered = fixture.send(Call::v2(method, target, "")).await;
        assert!([404, 405].contains(&answered.status), "{answered:?}");
        let line = fixture.lines.all().pop().unwrap();
        assert!(line.contains(&format!("route: {route:?}")), "{route}: {line}");
    }
}

#[test]
fn the_proofs_of_authentication_show_no_secret() {
    let rules = rule_set();
    let call = Call::v2(Method::POST, "/api/v2/deposits", DEPOSIT);
    let signature = call.headers.iter().find(|(name, _)| *name == "x-signature").unwrap().1.clone();
    let (head, _) = call.into_request().into_parts();
    let route = router::find(&rules, &head.method, head.uri.path()).unwrap();
    let credentials = Credentials::of(&rules, route, &head.headers).unwrap();
    let key = credentials.known_key(&rules).unwrap();
    let mut shown = vec![format!("{credentials:?}"), format!("{key:?}")];
    let key = key.admit("127.0.0.1".parse().unwrap()).unwrap();
    shown.push(format!("{key:?}"));
    let (caller, body) = credentials.prove(key, &head, Bytes::from_static(DEPOSIT.as_bytes()), NOW).unwrap();
    shown.extend([format!("{caller:?}"), format!("{body:?}")]);
    assert_eq!(shown.iter().filter(|shown| shown.contains("acme")).count(), 3, "{shown:?}");
    let shown = shown.join("\n");
    for secret in ["acme-", "shaped-live", "secret", "order_id", "o-1", "a.example", &signature] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
