//! The receiver itself, called by a client that is made by hand: what it records, and that its faults are faults.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::callbacks::verify::{V1, assert_v1, assert_v2};
use crate::support::http2::Http2;
use crate::support::receiver::{Identity, Manner, Play, Received, Receiver, received_now};
use crate::support::request::{ACME, hmac_hex};
use crate::support::{Client, Request, eventually};

/// What comes back of one request: everything up to the end, or to 64 KiB.
async fn call(receiver: &Receiver, target: &str, body: &str) -> std::io::Result<String> {
    let client = Client::new(receiver.address, &receiver.ca());
    let mut stream = client.tls(&["http/1.1"]).await?;
    let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).await?;
    let mut stated = Vec::new();
    let mut chunk = [0; 4096];
    while stated.len() < 64 * 1024 && !stated.ends_with(b"noted") {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(length) => stated.extend_from_slice(&chunk[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&stated).into_owned())
}

#[tokio::test]
async fn it_plays_and_remembers() {
    let receiver = Receiver::start(|received, before| match (received.target.as_str(), before) {
        ("/garbage", _) => Play::Garbage,
        ("/inside", _) => Play::CutInHead,
        ("/body", _) => Play::EndlessBody(200),
        ("/head", _) => Play::EndlessHead,
        (_, 0) => Play::Cut,
        (_, 1) => Play::With(429, "Retry-After: 2\r\n".to_owned()),
        _ => Play::Say(204),
    });
    assert_eq!(call(&receiver, "/cb?a=1", "one").await.unwrap(), "");
    let busy = call(&receiver, "/cb?a=1", "two").await.unwrap();
    assert_eq!(busy, "HTTP/1.1 429 Said\r\nRetry-After: 2\r\nContent-Length: 5\r\n\r\nnoted");
    assert!(call(&receiver, "/garbage", "").await.unwrap().starts_with("220 "));
    assert_eq!(call(&receiver, "/inside", "").await.unwrap(), "HTTP/1.1 200 OK\r\nContent-Len");
    assert!(call(&receiver, "/body", "").await.unwrap().len() >= 64 * 1024);
    assert!(call(&receiver, "/head", "").await.unwrap().len() >= 64 * 1024);
    let bodies: Vec<_> = receiver.of("/cb?a=1").into_iter().map(|received| received.body).collect();
    assert_eq!(bodies, [b"one", b"two"]);
    assert_eq!((receiver.count(), receiver.connections()), (6, 6));
    assert_eq!(receiver.of("/garbage")[0].header("host"), "localhost");
}

#[tokio::test]
async fn its_connections_have_manners() {
    const MANNERS: [Manner; 4] = [Manner::Close, Manner::OtherName, Manner::OtherCa, Manner::CloseInside];
    let receiver = Receiver::with(|number| *MANNERS.get(number).unwrap_or(&Manner::Serve), |_, _| Play::Say(200));
    for manner in MANNERS {
        assert!(!call(&receiver, "/", "x").await.is_ok_and(|stated| !stated.is_empty()), "{manner:?}");
    }
    assert!(call(&receiver, "/", "x").await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!((receiver.count(), receiver.connections()), (1, 5));
    let address = receiver.address;
    drop(receiver);
    eventually("nobody listens", async || tokio::net::TcpStream::connect(address).await.err()).await;
}

#[tokio::test]
async fn it_speaks_http2() {
    let identity = std::sync::Arc::new(Identity::new(&["h2"]));
    let receiver = Receiver::on(0, &identity, |_| Manner::Serve, |_, _| Play::Say(202));
    let mut connection = Http2::connect(&Client::new(receiver.address, &receiver.ca())).await;
    let request = Request::new("POST", "/cb", "hello").header("X-A", "b");
    assert_eq!(connection.exchange("localhost", &request, false).await.unwrap().status, 202);
    let call = &receiver.of("/cb")[0];
    assert_eq!((call.is_http2, call.header("x-a"), &*call.body), (true, "b", &b"hello"[..]));
    assert_eq!(call.header("host"), "localhost");
}

const ID: &str = "cb_0123456789abcdef0123456789abcdef";

/// A callback as the contract describes it.
fn callback(body: &str, headers: &[(&str, String)]) -> Received {
    let mut received =
        Received { method: "POST".into(), target: "/cb".into(), body: body.into(), ..received_now(0, false) };
    let plain = [
        ("host", "localhost:1".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("content-length", body.len().to_string()),
        ("x-callback-id", ID.to_owned()),
    ];
    for (name, value) in plain.iter().chain(headers) {
        received.headers.push(((*name).to_owned(), value.clone()));
    }
    received
}

fn v2(body: &str) -> Received {
    let at = received_now(0, false).unix.to_string();
    let secret = ACME.v2.unwrap();
    let hex = hmac_hex(secret, format!("{ID}.{at}.{body}").as_bytes());
    let bytes: Vec<_> = (0..32).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    callback(
        body,
        &[
            ("x-signature", hmac_hex(secret, body.as_bytes())),
            ("webhook-id", ID.to_owned()),
            ("webhook-timestamp", at),
            ("webhook-signature", format!("v1,{encoded}")),
        ],
    )
}

/// Whether a check takes a callback. What it says when it does not is expected, and kept from the test's output.
fn takes(check: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(check).is_ok()
}

#[test]
fn the_checks_take_what_the_contract_says_and_nothing_else() {
    let good = || v2(r#"{"order_id":"one"}"#);
    assert!(takes(|| assert_v2(&good(), ACME.v2.unwrap(), "one")));
    assert!(!takes(|| assert_v2(&v2(r#"{"order_id": "one"}"#), ACME.v2.unwrap(), "one")), "a space");
    assert!(!takes(|| assert_v2(&good(), ACME.v1.unwrap(), "one")), "another secret");
    for at in 0..good().headers.len() {
        let mut without = good();
        let (name, _) = without.headers.remove(at);
        assert!(!takes(|| assert_v2(&without, ACME.v2.unwrap(), "one")), "without {name}");
        let mut changed = good();
        changed.headers[at].1.insert(1, '0');
        let taken = takes(|| assert_v2(&changed, ACME.v2.unwrap(), "one"));
        assert!(!taken, "with another {name}");
        let mut twice = good();
        twice.headers.push(twice.headers[at].clone());
        assert!(!takes(|| assert_v2(&twice, ACME.v2.unwrap(), "one")), "with two {name}");
    }
}

#[test]
fn the_checks_know_the_dialects() {
    let reported = json!({ "external_id": "e", "transaction_id": "7", "status": "SUCCESS", "amount": "7.25",
        "currency": "EUR", "shop_code": "card-eur" });
    let body = r#"{"external_id":"e","transaction_id":"7","status":"SUCCESS","amount":"7.25","currency":"EUR","shop_code":"card-eur"}"#;
    let at = received_now(0, false).unix.to_string();
    let signature = hmac_hex(ACME.v1.unwrap(), format!("{at}.POST./cb.{body}").as_bytes());
    let good = callback(body, &[("x-api-key", ACME.name.to_owned()), ("x-timestamp", at), ("x-signature", signature)]);
    assert!(takes(|| assert_v1(&good, &V1, &ACME, &reported)));
    let mut moved = good;
    moved.target = "/cb2".to_owned();
    assert!(!takes(|| assert_v1(&moved, &V1, &ACME, &reported)), "another path");
}
