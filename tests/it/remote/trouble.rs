//! Engines that are slow, away, or not what they should be.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpListener;

use super::scripted::{Play, Scripted, certified, created, error, reply};
use super::{assert_again, before, before_scripted, id_of, metric, payin, payout, send, v1_status};
use crate::support::gateway::free_port;
use crate::support::request::{ACME, hmac_hex};
use crate::support::{Gateway, Request, bodies};

#[tokio::test]
async fn a_connection_that_breaks_off_is_tried_once_more_with_the_same_bytes() {
    let engine = Scripted::start(|_, before| if before == 0 { Play::Close } else { created("7") }).await;
    let gateway = before_scripted(&engine, "");
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("in-1")).await), "7");
    let asked = engine.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1]);
    assert_eq!(metric(&gateway, "paybridge_engine_requests_total{outcome=\"unreachable\"}"), 1);
    assert_eq!(metric(&gateway, "paybridge_engine_requests_total{outcome=\"ok\"}"), 1);
}

#[tokio::test]
async fn an_engine_that_breaks_off_always_is_asked_twice_and_no_more() {
    let engine = Scripted::start(|_, _| Play::Close).await;
    let gateway = before_scripted(&engine, "");
    assert_again(&payin(&gateway, &bodies::payin("in-1")).await, 502);
    assert_eq!(engine.count(), 2);
    let native = send(&gateway, &Request::deposit(&ACME, &bodies::deposit("n-1"))).await.expect(502);
    assert!(native.message().ends_with("with the same order_id, may be sent again"), "{}", native.message());
    assert_eq!(engine.count(), 4);
}

#[tokio::test]
async fn a_slow_engine_is_a_504_and_not_asked_twice() {
    let engine = Scripted::start(|_, before| if before < 3 { Play::Hang } else { created("7") }).await;
    let gateway = before_scripted(&engine, "timeout = \"1s\"");
    assert_again(&payin(&gateway, &bodies::payin("in-1")).await, 504);
    assert_eq!(engine.count(), 1);
    assert_again(&v1_status(&gateway, "payin", "in-1").await, 504);
    send(&gateway, &Request::deposit(&ACME, &bodies::deposit("n-1"))).await.expect(504);
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("in-1")).await), "7");
    let asked = engine.asked();
    assert_eq!(asked[0], super::scripted::EngineRequest { headers: asked[0].headers.clone(), ..asked[3].clone() });
}

#[tokio::test]
async fn nobody_there_and_nobody_to_be_trusted() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let other = Scripted::start(|_, _| created("8")).await;
    for rules in [before(free_port(), &engine.ca(), ""), before(engine.address.port(), &other.ca(), "")] {
        let gateway = Gateway::start(&rules);
        assert_again(&payin(&gateway, &bodies::payin("in-1")).await, 502);
        v1_status(&gateway, "payin", "in-1").await.expect(404);
    }
    assert_eq!(engine.count(), 0, "nothing is said to who is not trusted");
}

#[tokio::test]
async fn answers_that_v2_does_not_promise_are_a_502() {
    let engine = Scripted::start(|asked, _| {
        let order = asked.json()["order_id"].as_str().unwrap().to_owned();
        order.parse().map_or_else(|_| created("9"), |number: usize| unpromised().swap_remove(number))
    })
    .await;
    let gateway = before_scripted(&engine, "");
    for number in 0..unpromised().len() {
        let order = number.to_string();
        assert_again(&payin(&gateway, &bodies::payin(&order)).await, 502);
    }
    assert_eq!(id_of(&payin(&gateway, &bodies::payin("good")).await), "9", "nobody else is harmed");
    assert!(!gateway.log().contains("pay.example/7"), "a link in the log");
}

/// What no v2 service says to a create.
fn unpromised() -> Vec<Play> {
    let stated = |body: &str| Play::Say(200, body.to_owned());
    let long =
        format!(r#"{{"transaction_id":"7","redirect_url":"https://pay.example/7","x":"{}"}}"#, "x".repeat(70_000));
    vec![
        stated("{}"),
        stated("<html>"),
        stated(r#"{"transaction_id":"7"}"#),
        stated(r#"{"transaction_id":7,"redirect_url":"https://pay.example/7"}"#),
        stated(r#"{"transaction_id":"7","redirect_url":"/7"}"#),
        stated(r#"{"transaction_id":"7","transaction_id":"8","redirect_url":"https://pay.example/7"}"#),
        stated(&long),
        Play::Say(201, r#"{"transaction_id":"7","redirect_url":"https://pay.example/7"}"#.to_owned()),
        Play::Say(302, String::new()),
        error(401, "who are you"),
        error(404, "no such path"),
        error(500, "oh"),
        Play::Bytes(b"garbage\r\n\r\n".to_vec()),
        Play::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_vec()),
    ]
}

#[tokio::test]
async fn an_engine_that_is_busy_keeps_its_status_and_its_wait() {
    let engine = Scripted::start(|asked, _| {
        let (status, header) = match asked.json()["order_id"].as_str().unwrap().trim_end_matches('2') {
            "busy" => (503, "Retry-After: 7\r\n"),
            "many" => (429, "Retry-After: 3\r\n"),
            _ => (503, ""),
        };
        Play::Bytes(reply(status, header, &stated_busy(status)))
    })
    .await;
    let gateway = before_scripted(&engine, "");
    for (order, status, wait) in [("busy", 503, "7"), ("many", 429, "3"), ("silent", 503, "1")] {
        let reported = payin(&gateway, &bodies::payin(order)).await;
        assert_again(&reported, status);
        assert_eq!(reported.header("retry-after"), wait);
        let native =
            send(&gateway, &Request::deposit(&ACME, &bodies::deposit(&format!("{order}2")))).await.expect(status);
        assert_eq!(native.text(), stated_busy(status), "native callers are told in the engine's words");
        assert_eq!(native.header("retry-after"), wait);
    }
}

fn stated_busy(status: u16) -> String {
    format!(r#"{{"error":{{"code":{status},"message":"order_id: slow down"}}}}"#)
}

#[tokio::test]
async fn the_engine_is_reported_who_asks_and_nothing_else() {
    let engine = Scripted::start(|asked, _| match asked.method.as_str() {
        "POST" => created("7"),
        _ => error(503, "later"),
    })
    .await;
    let gateway = before_scripted(&engine, "");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = Request::payin(&ACME, &bodies::payin("in-1"))
        .header("X-Request-Id", "req-17")
        .header("traceparent", trace)
        .header("Cookie", "a=b")
        .header("X-Forwarded-For", "203.0.113.5")
        .header("X-Anything", "1");
    send(&gateway, &request).await.expect(200);
    v1_status(&gateway, "payin", "in-1").await.expect(503);
    let asked = engine.asked();
    let mut names: Vec<_> = asked[0].headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let own = ["accept", "content-length", "content-type", "host", "traceparent", "user-agent", "x-api-key"];
    assert_eq!(names, [&own[..], &["x-request-id", "x-signature"]].concat());
    assert_eq!(asked[0].path, "/api/v2/deposits");
    assert_eq!(asked[0].header("x-request-id"), Some("req-17"));
    assert_eq!(asked[0].header("traceparent"), Some(trace));
    assert_eq!(asked[0].header("x-api-key"), Some(ACME.name));
    let signature = hmac_hex(ACME.v2.unwrap(), asked[0].body.as_bytes());
    assert_eq!(asked[0].header("x-signature"), Some(&*signature));
    assert_eq!(asked[1].path, "/api/v2/transactions/7");
    assert_eq!(asked[1].header("x-signature"), Some(&*hmac_hex(ACME.v2.unwrap(), b"")));
    assert_eq!((asked[1].header("content-type"), asked[1].body.as_str()), (None, ""));
    assert!(asked[1].header("x-request-id").is_some(), "a new one where the caller has none");
}

#[tokio::test]
async fn a_record_of_something_else_is_no_status() {
    let engine = Scripted::start(|asked, before| {
        if asked.method == "POST" {
            return created("7");
        }
        let good = json!({ "order_id": "out-1", "transaction_id": "7", "status": "SUCCESS", "amount": 7.25,
            "currency": "EUR", "method": "card-eur", "account_number": "4000123412341234" });
        let (member, value) = match before {
            1 => ("order_id", json!("out-2")),
            2 => ("transaction_id", json!("8")),
            3 => ("amount", json!(7.26)),
            4 => ("amount", json!("7.25")),
            5 => ("status", json!("PAID")),
            6 => return error(404, "not found"),
            _ => ("more", json!(1)),
        };
        Play::Say(200, bodies::with(good, member, Some(value)).to_string())
    })
    .await;
    let gateway = before_scripted(&engine, "");
    id_of(&payout(&gateway, &bodies::payout("out-1")).await);
    for _ in 1..=6 {
        assert_again(&v1_status(&gateway, "payout", "out-1").await, 502);
    }
    for _ in 0..2 {
        let shown = v1_status(&gateway, "payout", "out-1").await.expect(200).json();
        assert_eq!((&shown["status"], &shown["amount"]), (&json!("SUCCESS"), &json!("7.25")));
        assert_eq!(shown["account_number"], "400012******1234", "masked, though the engine forgot to");
    }
    assert_eq!(engine.count(), 8, "a result is not asked for again");
    for (path, content) in gateway.store_files() {
        assert!(!content.windows(16).any(|window| window == b"4000123412341234"), "a card in {}", path.display());
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered() {
    let (directory, acceptor) = certified(&[b"h2", b"http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = acceptor.accept(stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let made = std::sync::atomic::AtomicUsize::new(1);
            let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                assert_eq!(request.version(), http::Version::HTTP_2);
                let id = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let body = format!(r#"{{"transaction_id":"{id}","redirect_url":"https://pay.example/7"}}"#);
                async move { Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from(body)))) }
            });
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let gateway = Gateway::start(&before(port, &directory.path().join("ca.pem"), ""));
    for number in 0..5 {
        id_of(&payin(&gateway, &bodies::payin(&format!("in-{number}"))).await);
    }
    assert_eq!(connections.load(std::sync::atomic::Ordering::Relaxed), 1, "one connection is kept");
}
