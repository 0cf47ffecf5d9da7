//! How requests and replies pass: byte for byte, but for what belongs to a connection.

use super::{answer, old_service, operations, rules};
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::request::{ACME, GAMMA, PROTOCOLS};
use crate::support::{Gateway, Request, payin, payout};

const LEGACY: &str = "mode = \"legacy\"";

#[tokio::test]
async fn a_request_passes_byte_for_byte() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", LEGACY));
    let body = "  { \"external_id\" : \"o-1\", \"amount\":1.10, \"x\":\"\\u00e9\u{e9}\" }\n";
    for protocol in PROTOCOLS {
        let request = Request::payin(&ACME, &body)
            .replace("Content-Type", Some("application/json; charset=UTF-8"))
            .header("X-Request-Id", "their-id")
            .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .header("X-Own", "a, b")
            .header("X-Own", "c")
            .header("Accept-Encoding", "br, gzip")
            .header("User-Agent", "shop/1.0")
            .header("X-Forwarded-For", "203.0.113.9")
            .header("X-Forwarded-Host", "elsewhere.example")
            .header("Forwarded", "for=203.0.113.9");
        gateway.client().send_by(protocol, &request).await.expect(200);
        let received = old.received().pop().unwrap();
        assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/api/v1/payin"));
        assert_eq!(received.body, body.as_bytes());
        for (name, value) in [
            ("host", format!("localhost:{}", old.address.port())),
            ("content-length", body.len().to_string()),
            ("content-type", "application/json; charset=UTF-8".to_owned()),
            ("x-api-key", ACME.name.to_owned()),
            ("x-signature", request.value("x-signature").unwrap().to_owned()),
            ("x-timestamp", request.value("x-timestamp").unwrap().to_owned()),
            ("x-request-id", "their-id".to_owned()),
            ("traceparent", request.value("traceparent").unwrap().to_owned()),
            ("accept-encoding", "br, gzip".to_owned()),
            ("user-agent", "shop/1.0".to_owned()),
            ("x-forwarded-for", "127.0.0.1".to_owned()),
            ("x-forwarded-proto", "https".to_owned()),
        ] {
            assert_eq!(received.header(name), value, "{name}");
        }
        assert_eq!(received.all("x-own"), ["a, b", "c"]);
        assert_eq!(received.all("forwarded").len() + received.all("x-forwarded-host").len(), 0);
        assert!(received.header("via").starts_with("1.1 paybridge-"), "{}", received.header("via"));
    }
    // Connections are kept.
    assert_eq!(old.connections(), 1);
}

#[tokio::test]
async fn only_the_gateway_names_the_callers_address() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "client_address_headers = [\"X-Real-IP\", \"Caller_IP\"]", LEGACY));
    let request = |id: &str| {
        let names = [
            "X-Real-IP",
            "TRUE-client-ip",
            "x_real_ip",
            "CF-Connecting-IP",
            "WL_Proxy-Client_IP",
            "Caller-IP",
            "X-Own",
        ];
        names.iter().fold(Request::payin(&ACME, &payin(id)), |request, name| request.header(name, "203.0.113.9"))
    };
    for protocol in PROTOCOLS {
        gateway.client().send_by(protocol, &request("o-1")).await.expect(200);
        let received = old.received().pop().unwrap();
        for name in ["x-real-ip", "caller_ip", "x-forwarded-for"] {
            assert_eq!(received.header(name), "127.0.0.1", "{name}");
        }
        let claimed: Vec<_> = received.headers.iter().filter(|(_, value)| value == "203.0.113.9").collect();
        assert_eq!(claimed, [&("x-own".to_owned(), "203.0.113.9".to_owned())]);
    }
    // A reload is enough.
    gateway.reload_with(&rules(&old, "client_address_headers = [\"True-Client-IP\"]", LEGACY));
    gateway.client().send(&request("o-2")).await.expect(200);
    let received = old.received().pop().unwrap();
    assert_eq!((received.all("x-real-ip"), received.header("true-client-ip")), (vec![], "127.0.0.1"));
}

#[tokio::test]
async fn what_belongs_to_a_connection_stays_there() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", LEGACY));
    let request = Request::payin(&ACME, &payin("o-1"))
        .header("Connection", "keep-alive, X-Secret-Hop")
        .header("X-Secret-Hop", "1")
        .header("Keep-Alive", "timeout=5")
        .header("TE", "trailers")
        .header("Expect", "100-continue");
    gateway.client().send(&request).await.expect(200);
    let received = old.received().pop().unwrap();
    for name in ["connection", "x-secret-hop", "keep-alive", "te", "expect", "transfer-encoding"] {
        assert_eq!(received.all(name), [""; 0], "{name}");
    }
    // A chunked body arrives with its length.
    let body = payin("o-2").to_string();
    let mut bytes = Request::payin(&ACME, &payin("o-2")).head("Transfer-Encoding: chunked\r\n");
    let (first, rest) = body.split_at(10);
    for part in [first, rest, ""] {
        bytes.extend(format!("{:x}\r\n{part}\r\n", part.len()).into_bytes());
    }
    let mut connection = gateway.client().connect().await;
    connection.write(&bytes).await;
    connection.reply().await.unwrap().expect(200);
    assert_eq!(old.received().pop().unwrap().body, body.as_bytes());
}

#[tokio::test]
async fn a_reply_passes_byte_for_byte() {
    let zipped: &[u8] = b"\x1f\x8b\x08\x00\xff\x00\x01";
    let replies: &[(&str, Vec<u8>, u16, &[u8])] = &[
        ("no-content", b"HTTP/1.1 204 No\r\nX-Own: 1\r\n\r\n".to_vec(), 204, b""),
        (
            "redirect",
            b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
            302,
            b"hi",
        ),
        (
            "chunked",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-End: 1\r\n\r\n"
                .to_vec(),
            200,
            b"abcde",
        ),
        (
            "zipped",
            [&b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\n"[..], zipped].concat(),
            200,
            zipped,
        ),
        ("early", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx".to_vec(), 201, b"x"),
        ("teapot", b"HTTP/1.1 418 No\r\nContent-Length: 5\r\n\r\nplain".to_vec(), 418, b"plain"),
        ("broken", b"HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\n<html>".to_vec(), 500, b"<html>"),
        ("until-close", b"HTTP/1.1 200 OK\r\n\r\nall of it".to_vec(), 200, b"all of it"),
    ];
    let script: Vec<_> = replies.iter().map(|(id, bytes, ..)| ((*id).to_owned(), bytes.clone())).collect();
    let old = Receiver::start(move |received, _| {
        let id = received.json()["external_id"].as_str().unwrap().to_owned();
        let bytes = script.iter().find(|(known, _)| *known == id).unwrap().1.clone();
        if id == "until-close" { Play::LastBytes(bytes) } else { Play::Bytes(bytes) }
    });
    let gateway = Gateway::start(&rules(&old, "", LEGACY));
    for ((id, _, status, body), protocol) in
        replies.iter().flat_map(|reply| PROTOCOLS.map(|protocol| (reply, protocol)))
    {
        let reply = gateway.client().unchecked_by(protocol, &Request::payin(&ACME, &payin(id))).await;
        assert_eq!((reply.status, reply.body.as_slice()), (*status, *body), "{id}");
        assert_eq!(reply.all("x-request-id").len(), 1, "{id}");
        for name in ["trailer", "transfer-encoding", "cache-control", "strict-transport-security", "alt-svc"] {
            assert_eq!(reply.all(name), [""; 0], "{id}: {name}");
        }
        match *id {
            "no-content" => assert_eq!((reply.header("x-own"), reply.all("content-length")), ("1", vec![])),
            "redirect" => assert_eq!(reply.header("location"), "https://elsewhere.example/"),
            "zipped" => assert_eq!(reply.header("content-encoding"), "gzip"),
            "early" => assert_eq!(reply.all("link"), [""; 0]),
            _ => assert_eq!(reply.all("content-type"), [""; 0], "{id}"),
        }
    }
    assert_eq!(old.count(), replies.len() * 2, "a redirect is not followed");
}

#[tokio::test]
async fn headers_of_a_reply_pass_with_the_gateways_own() {
    let old = Receiver::start(|_, _| {
        let lines = "Content-Type: text/plain\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Request-Id: old\r\n\
                     Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nAlt-Svc: h3=\":443\"\r\n\
                     Link: </a>; rel=next\r\nSunset: never\r\nServer: old/1\r\nCache-Control: private\r\n";
        answer(200, lines, "ok")
    });
    let rules = rules(&old, "", LEGACY).edit(
        "merchants/gamma.toml",
        "callbacks = \"v2\"",
        "callbacks = \"v2\"\nmode = \"legacy\"",
    );
    let gateway = Gateway::start(&rules);
    let reply =
        gateway.client().send_unchecked(&Request::payin(&GAMMA, &payin("o-1")).header("X-Request-Id", "r-1")).await;
    assert_eq!(reply.all("set-cookie"), ["a=1", "b=2"]);
    for (name, value) in [
        ("content-type", "text/plain"),
        ("server", "old/1"),
        ("cache-control", "private"),
        ("x-request-id", "r-1"),
        ("deprecation", "@1782777600"),
        ("sunset", "Wed, 30 Jun 2027 00:00:00 GMT"),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    let link = "<https://docs.example/v2>; rel=\"deprecation\", <https://docs.example/v2>; rel=\"sunset\"";
    assert_eq!(reply.all("link"), ["</a>; rel=next", link]);
    for name in ["x-hop", "keep-alive", "alt-svc", "connection"] {
        assert_eq!(reply.all(name), [""; 0], "{name}");
    }
}

/// A reply of one chunk with these lines about its framing.
fn framed(lines: &str) -> Play {
    Play::Bytes(format!("HTTP/1.1 200 OK\r\n{lines}\r\n2\r\nok\r\n0\r\n\r\n").into_bytes())
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_502_or_504() {
    let old = Receiver::start(|received, _| match received.json()["external_id"].as_str().unwrap() {
        "cut" => Play::Cut,
        "cut-in-head" => Play::CutInHead,
        "garbage" => Play::Garbage,
        "endless-head" => Play::EndlessHead,
        "endless-body" => Play::EndlessBody(200),
        "too-long" => answer(200, "", &"x".repeat(2049)),
        "longest" => answer(200, "", &"x".repeat(2048)),
        "upgrade" => Play::Bytes(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n".to_vec()),
        "missing-body" => Play::MissingBody(200),
        "drip" => Play::Drip,
        "zipped-chunks" => framed("Transfer-Encoding: gzip, chunked\r\n"),
        "zipped" => framed("Transfer-Encoding: gzip\r\n"),
        "twice-chunked" => framed("Transfer-Encoding: chunked, chunked\r\n"),
        "chunked-in-two" => framed("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        "chunked-and-length" => framed("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
        "length-and-chunked" => framed("Content-Length: 2\r\nTransfer-Encoding: Chunked\r\n"),
        "identity" => framed("Transfer-Encoding: identity\r\n"),
        "two-lengths" => framed("Content-Length: 2\r\nContent-Length: 3\r\n"),
        "signed-length" => framed("Content-Length: +2\r\n"),
        "nothing-chunked" => Play::Bytes(b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec()),
        "old-chunked" => Play::Bytes(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec()),
        "chunked" => framed("Transfer-Encoding: ChunKed\r\n"),
        _ => Play::Hang,
    });
    let gateway = Gateway::start(&rules(&old, "timeout = \"3s\"\nreply_limit = \"2KiB\"", LEGACY));
    let cases = [
        ("cut", 502),
        ("cut-in-head", 502),
        ("garbage", 502),
        ("endless-head", 502),
        ("endless-body", 502),
        ("too-long", 502),
        ("upgrade", 502),
        ("zipped-chunks", 502),
        ("zipped", 502),
        ("twice-chunked", 502),
        ("chunked-in-two", 502),
        ("chunked-and-length", 502),
        ("length-and-chunked", 502),
        ("identity", 502),
        ("two-lengths", 502),
        ("signed-length", 502),
        ("nothing-chunked", 502),
        ("old-chunked", 502),
        ("chunked", 200),
        ("missing-body", 504),
        ("drip", 504),
        ("hang", 504),
        ("longest", 200),
    ];
    let replies = cases.map(|(id, _)| {
        let client = gateway.client();
        tokio::spawn(async move { client.send_unchecked(&Request::payout(&ACME, &payout(id))).await })
    });
    for ((id, expected), reply) in cases.into_iter().zip(replies) {
        let reply = reply.await.unwrap();
        assert_eq!(reply.status, expected, "{id}: {}", reply.text());
        let sent = old.received().iter().filter(|received| received.json()["external_id"] == id).count();
        assert_eq!(sent, 1, "{id} is sent once");
        if expected > 500 {
            reply.check(None);
            assert!(reply.message().ends_with("with the same external_id, may be sent again"), "{}", reply.message());
        }
    }
    assert_eq!(operations(&gateway), 0);
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    for line in [
        "paybridge_legacy_requests_total{outcome=\"timeout\"} 3",
        "paybridge_legacy_requests_total{outcome=\"success\"} 2",
        "paybridge_creates_by_home_total{mode=\"legacy\",home=\"legacy\"} 23",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn a_stranger_gets_nothing() {
    for conduct in [Manner::OtherCa, Manner::OtherName, Manner::Close, Manner::CloseInside] {
        let identity = std::sync::Arc::new(Identity::new(&["http/1.1"]));
        let old = Receiver::on(0, &identity, move |_| conduct, |_, _| Play::Say(200));
        let gateway = Gateway::start(&rules(&old, "", LEGACY));
        gateway.client().send(&Request::payin(&ACME, &payin("o-1"))).await.expect(502);
        assert_eq!(old.count(), 0, "{conduct:?}");
    }
}

#[tokio::test]
async fn further_paths_are_forwarded_and_never_claimed() {
    let old = old_service();
    let paths = "paths = [\"/api/v1/refunds\", \"/api/v1/reports/\"]";
    // Also of merchants in mode `translate`.
    let gateway = Gateway::start(&rules(&old, paths, "mode = \"translate\""));
    let signed = |method: &str, target: &str, body: &str| {
        let request = Request::new(method, target, body);
        let request = if body.is_empty() { request } else { request.header("Content-Type", "application/json") };
        request.signed(crate::support::Signing::V1, &ACME)
    };
    for (method, target, body) in [
        ("POST", "/api/v1/refunds", "{\"external_id\":\"o-1\"}"),
        ("GET", "/api/v1/refunds/7?full=1&a=%2F", ""),
        ("GET", "/api/v1/refunds/SO%2F2026%2f12/lines?a=..%2f", ""),
        ("GET", "/api/v1/refunds/100%25", ""),
        ("PUT", "/api/v1/refunds/7", "{}"),
        ("PATCH", "/api/v1/refunds/7", "{}"),
        ("DELETE", "/api/v1/reports/7", ""),
    ] {
        let reply = gateway.client().send(&signed(method, target, body)).await.expect(200);
        assert_eq!(reply.json()["legacy"], format!("{method} {target}"));
        assert_eq!(old.received().pop().unwrap().body, body.as_bytes());
    }
    for protocol in PROTOCOLS {
        let head = gateway.client().unchecked_by(protocol, &signed("HEAD", "/api/v1/refunds/7", "")).await;
        assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, "35", 0));
    }
    let count = old.count();
    for (request, expected) in [
        (signed("GET", "/api/v1/reports", ""), 404),
        (signed("GET", "/api/v1/refunds-admin", ""), 404),
        (signed("POST", "/api/v1/refunds/..%2fpayin", "{}"), 404),
        (signed("POST", "/api/v1/refunds/..%252fpayin", "{}"), 404),
        (signed("POST", "/api/v1/refunds/..%3b/payin", "{}"), 404),
        (signed("POST", "/api/v1/refunds/..\\payin", "{}"), 404),
        (signed("POST", "/api/v1/refunds/7%3fa=1", "{}"), 404),
        (signed("POST", "/api/v1/refunds/7%0d%0a", "{}"), 404),
        (signed("GET", "/api/v1/refunds/../payin/status?external_id=a", ""), 404),
        (signed("POST", "/api/v1/refunds/%2e%2e/payin", "{}"), 404),
        (signed("POST", "/api/v1/refunds//payin", "{}"), 404),
        (signed("POST", "/api/v1/refunds/..;/payin", "{}"), 404),
        (signed("TRACE", "/api/v1/refunds", ""), 405),
        (signed("POST", "/api/v1/refunds?a=1", "{}"), 400),
        (signed("GET", "/api/v1/refunds", "{}"), 400),
        (signed("POST", "/api/v1/refunds", "{}").replace("X-Signature", Some("00")), 401),
        (signed("POST", "/api/v1/refunds", "{}").replace("X-Api-Key", Some("nobody")), 401),
        (signed("POST", "/api/v1/refunds", "{}").replace("Content-Type", Some("text/plain")), 415),
    ] {
        let reply = gateway.client().send(&request).await;
        assert_eq!(reply.status, expected, "{request:?}");
    }
    assert_eq!(old.count(), count);
    gateway.client().send(&Request::payin(&ACME, &payin("o-1"))).await.expect(200);
    assert_eq!(operations(&gateway), 1);
    // What a refund did is not known, so nothing is promised of its repeat.
    drop(old);
    let reply = gateway.client().send(&signed("POST", "/api/v1/refunds", "{}")).await.expect(502);
    assert!(reply.message().ends_with("whether it has done anything is not known"), "{}", reply.message());
}

#[tokio::test]
async fn a_request_that_comes_back_is_refused() {
    // The old service is this gateway again, under another name.
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", LEGACY));
    gateway.client().send(&Request::payin(&ACME, &payin("o-1"))).await.expect(200);
    let via = old.received().pop().unwrap().header("via").to_owned();
    for via in [via.clone(), format!("1.0 fred, {via}, 1.1 other")] {
        let reply = gateway.client().send(&Request::payin(&ACME, &payin("o-1")).header("Via", &via)).await.expect(502);
        assert!(reply.message().contains("came back"), "{}", reply.message());
    }
    gateway.client().send(&Request::payin(&ACME, &payin("o-1")).header("Via", "1.1 paybridge-other")).await.expect(200);
    assert_eq!(old.count(), 2);
}

#[tokio::test]
async fn admission_comes_first() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", LEGACY));
    let good = Request::payin(&ACME, &payin("o-1"));
    for (request, expected) in [
        (good.clone().replace("X-Signature", Some("00")), 401),
        (good.clone().replace("X-Timestamp", Some("1")), 401),
        (good.clone().replace("Content-Type", None), 415),
        // The old service might read another order by it than the one that is claimed.
        (good.clone().replace("Content-Type", Some("application/json; charset=utf-7")), 415),
        (good.clone().replace("Content-Type", Some("application/json;a=b; Charset = \"iso-8859-1\"")), 415),
        (good.clone().header("Content-Encoding", "gzip"), 415),
        (Request::payin(&crate::support::request::ACME_NOWHERE, &payin("o-1")), 403),
        (Request::v1_post(&ACME, "/api/v1/payin?a=1", payin("o-1").to_string()), 400),
        (Request::payin(&ACME, &format!("{{\"external_id\":\"{}\"}}", "x".repeat(65_536))), 413),
    ] {
        assert_eq!(gateway.client().send(&request).await.status, expected);
    }
    assert_eq!(old.count(), 0);
    gateway.reload_with(&crate::support::Rules::default());
    gateway.client().send(&good).await.expect(200);
}
