//! Admission over the wire: who gets in, what is refused before a body is parsed, and in which order (contract section
//! 3). What concerns connections rather than requests is in `connections.rs`.

use crate::support::http2::Http2;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_LIMITED, ACME_NOWHERE, Key, PROTOCOLS, Signing, unix_now};
use crate::support::stored::{CREATES, Create};
use crate::support::{self, Gateway, Protocol, Request, Rules, deposit, payin};

/// A key that no merchant has.
const STRANGER: Key = Key { name: "nobody-knows", v1: Some("a-guess-of-mine"), v2: Some("a-guess-of-mine") };

#[tokio::test]
async fn paths_that_do_not_exist_are_404_and_methods_405_with_allow() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for protocol in PROTOCOLS {
        for path in ["/", "/nope", "/api", "/api/v2", "/api/v2/deposits/", "/api/v2/deposit", "/API/v2/deposits"]
            .into_iter()
            .chain([
                "/api/v2/transactions",
                "/api/v1/payin/",
                "//api/v1/payin",
                "/api/v1/%70ayin",
                "/api/v2/../v2/deposits",
            ])
            .chain(["/healthz", "/metrics", "/pay", "/api/v1/payin/status/x"])
        {
            for method in ["GET", "POST", "DELETE"] {
                client.send_by(protocol, &Request::new(method, path, "")).await.expect(404);
            }
        }
        let rows = [
            ("/api/v1/payin", "POST"),
            ("/api/v1/payout", "POST"),
            ("/api/v2/deposits", "POST"),
            ("/api/v2/withdrawals", "POST"),
            ("/api/v1/payin/status", "GET"),
            ("/api/v1/payout/status", "GET"),
            ("/api/v2/transactions/1", "GET"),
        ];
        for (path, allowed) in rows {
            let other = if allowed == "GET" { "POST" } else { "GET" };
            for method in [other, "PUT", "DELETE", "PATCH", "OPTIONS", "get", "BREW"] {
                let reply = client.send_by(protocol, &Request::new(method, path, "")).await.expect(405);
                let list = reply.header("allow");
                assert!(list.split(',').any(|method| method.trim() == allowed), "{method} {path}: Allow: {list}");
            }
        }
    }
}

#[tokio::test]
async fn a_post_is_json_and_not_encoded() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for protocol in PROTOCOLS {
        for kind in CREATES {
            let id = format!("{kind:?}-{protocol:?}");
            let good = kind.request(&ACME, kind.body(&id).to_string());
            for bad in [
                None,
                Some(""),
                Some("text/plain"),
                Some("application/x-www-form-urlencoded"),
                Some("application/jsonp"),
            ]
            .into_iter()
            .chain([
                Some("application/json+x"),
                Some("*/*"),
                Some("application/json, text/plain"),
                Some("json"),
            ]) {
                let reply = client.send_by(protocol, &good.clone().replace("content-type", bad)).await;
                assert_eq!(reply.status, 415, "{bad:?}");
            }
            let twice = good.clone().header("Content-Type", "text/plain");
            let reply = client.send_by(protocol, &twice).await;
            assert!([400, 415].contains(&reply.status), "{}", reply.status);
            for encoding in ["gzip", "br", "identity", "gzip, identity", "x"] {
                client.send_by(protocol, &good.clone().header("Content-Encoding", encoding)).await.expect(415);
            }
            kind.assert_nothing_stored(&client, &ACME, &id).await;
            for (number, fine) in
                ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"]
                    .into_iter()
                    .enumerate()
            {
                let fine_id = format!("{id}-{number}");
                let request = kind.request(&ACME, kind.body(&fine_id).to_string()).replace("content-type", Some(fine));
                client.send_by(protocol, &request).await.expect(200);
            }
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_announced_or_streamed() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let padded = |id: &str, length: usize| {
        let body = deposit(id).to_string();
        " ".repeat(length - body.len()) + &body
    };
    for protocol in PROTOCOLS {
        let id = format!("{protocol:?}");
        client.send_by(protocol, &Request::v2_post(&ACME, "/api/v2/deposits", padded(&id, 65_536))).await.expect(200);
        let over = Request::v2_post(&ACME, "/api/v2/deposits", padded("over", 65_537));
        client.send_by(protocol, &over).await.expect(413);
        // The length alone is enough, whoever asks.
        let stranger = Request::v2_post(&STRANGER, "/api/v2/deposits", padded("over", 65_537));
        client.send_by(protocol, &stranger).await.expect(413);
    }
    let over = Request::v2_post(&ACME, "/api/v2/deposits", padded("over", 65_537));
    for announced in ["65537", "18446744073709551615", "999999999999999999999999"] {
        let mut connection = client.connect().await;
        connection.write(&over.head(&format!("Content-Length: {announced}\r\n"))).await;
        let reply = connection.reply().await.expect("a reply before a byte of the body");
        assert!(reply.status == 413 || announced.len() > 19 && reply.status == 400, "{}", reply.status);
    }
    let mut connection = client.connect().await;
    let chunks = format!("8000\r\n{}\r\n", "x".repeat(0x8000)).repeat(3) + "0\r\n\r\n";
    connection.write(&[over.head("Transfer-Encoding: chunked\r\n"), chunks.into_bytes()].concat()).await;
    connection.reply().await.expect("a reply").expect(413);
    let reply = Http2::connect(&client).await.exchange("localhost", &over, true).await.expect("a reply");
    reply.check(Some(&over));
    reply.expect(413);
    Create::Deposit.assert_nothing_stored(&client, &ACME, "over").await;
}

#[tokio::test]
async fn a_refusal_is_readable_while_a_large_body_is_still_sent() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for (request, length, status) in [
        (Request::v2_post(&STRANGER, "/api/v2/deposits", ""), 60_000, 401),
        (Request::v2_post(&ACME_NOWHERE, "/api/v2/deposits", ""), 60_000, 403),
        (Request::v2_post(&ACME, "/api/v2/deposits", ""), 3_000_000, 413),
        (Request::new("POST", "/nope", ""), 3_000_000, 404),
    ] {
        let mut connection = client.connect().await;
        connection.write(&request.head(&format!("Content-Length: {length}\r\n"))).await;
        // The peer may stop reading at any time; what counts is that its reply arrives.
        for _ in 0..length / 10_000 {
            if !connection.write(&[b'x'; 10_000]).await {
                break;
            }
        }
        let replies = connection.rest().await;
        assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [status]);
    }
}

#[tokio::test]
async fn a_dripped_body_is_408() {
    let gateway = Gateway::start(&Rules::default().with("limits", "body_timeout = \"400ms\""));
    let client = gateway.client();
    let request = Request::deposit(&ACME, &deposit("dripped"));
    let mut connection = client.connect().await;
    connection.write(&request.head(&format!("Content-Length: {}\r\n", request.body.len()))).await;
    let replies = connection.drip(&request.body).await;
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [408], "and the connection closes");

    let mut connection = Http2::connect(&client).await;
    let (response, mut body) = connection.start("localhost", &request, true).await.unwrap();
    body.send_data(bytes::Bytes::copy_from_slice(&request.body[..9]), false).unwrap();
    support::http2::finish(response).await.expect("a reply").expect(408);
    Create::Deposit.assert_nothing_stored(&client, &ACME, "dripped").await;
}

#[tokio::test]
async fn an_unknown_key_and_a_wrong_signature_get_the_same_reply() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for protocol in PROTOCOLS {
        for kind in CREATES {
            let good = kind.request(&ACME, kind.body("x").to_string());
            let unknown =
                client.send_by(protocol, &kind.request(&STRANGER, kind.body("x").to_string())).await.expect(401);
            let zeros = "0".repeat(64);
            for wrong in [
                good.clone().replace("X-Signature", Some(&zeros)),
                good.clone().replace("X-Signature", Some("")),
                good.clone().replace("X-Signature", Some("nonsense")),
                good.clone().replace("X-Signature", Some(&good.value("x-signature").unwrap()[..62])),
                good.clone().replace("X-Signature", None),
                good.clone().replace("X-Api-Key", None),
                good.clone().replace("X-Api-Key", Some("")),
                good.clone().replace("X-Api-Key", Some("ACME-LIVE")),
            ] {
                assert_same(&client.send_by(protocol, &wrong).await.expect(401), &unknown);
            }
            let mut altered = good.clone();
            altered.body.push(b' ');
            client.send_by(protocol, &altered).await.expect(401);
            kind.assert_nothing_stored(&client, &ACME, &format!("x-{kind:?}-{protocol:?}")).await;
        }
        for question in [Request::v1_status(&STRANGER, "payin", "x"), Request::status(&STRANGER, "1")] {
            client.send_by(protocol, &question).await.expect(401);
        }
    }
}

#[tokio::test]
async fn a_connection_outlives_refusals_of_short_requests() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut connection = client.connect().await;
    let good = Request::deposit(&ACME, &deposit("kept"));
    for _ in 0..3 {
        connection.send(&Request::deposit(&STRANGER, &deposit("kept"))).await.expect(401);
        connection.send(&good.clone().replace("X-Signature", Some("00"))).await.expect(401);
        connection.send(&Request::deposit(&ACME_NOWHERE, &deposit("kept"))).await.expect(403);
    }
    connection.send(&Request::deposit(&ACME, &deposit("next"))).await.expect(200);
    Create::Deposit.assert_nothing_stored(&client, &ACME, "kept").await;

    // A body that does not come, and one that its sender holds back.
    for head in ["Content-Length: 100\r\n", "Content-Length: 100\r\nExpect: 100-continue\r\n"] {
        let mut connection = client.connect().await;
        connection.write(&Request::v2_post(&STRANGER, "/api/v2/deposits", "").head(head)).await;
        let replies = connection.rest().await;
        assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [401], "{head}");
    }
}

#[tokio::test]
async fn each_interface_takes_its_own_signature_only() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let upper = |request: Request| {
        let signature = request.value("x-signature").unwrap().to_ascii_uppercase();
        request.replace("X-Signature", Some(&signature))
    };
    client.send(&upper(Request::payin(&ACME, &payin("upper")))).await.expect(200);
    client.send(&upper(Request::deposit(&ACME, &deposit("upper-2")))).await.expect(401);
    let body = payin("mixed").to_string();
    let json = |path: &str| Request::new("POST", path, body.clone()).header("Content-Type", "application/json");
    client.send(&json("/api/v1/payin").signed(Signing::V2, &ACME)).await.expect(401);
    client.send(&json("/api/v2/deposits").signed(Signing::V1, &ACME)).await.expect(401);
    // A v1 signature binds path and method.
    let payin_signed = Request::payin(&ACME, &body);
    let moved = Request { target: "/api/v1/payout".to_owned(), ..payin_signed };
    client.send(&moved).await.expect(401);
    Create::Payin.assert_nothing_stored(&client, &ACME, "mixed").await;
    Create::Deposit.assert_nothing_stored(&client, &ACME, "upper-2").await;
}

#[tokio::test]
async fn v1_timestamps_are_within_the_window() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let at = |id: &str, timestamp: u64| {
        Request::new("POST", "/api/v1/payin", payin(id).to_string())
            .header("Content-Type", "application/json")
            .signed_at(Signing::V1, &ACME, timestamp)
    };
    for (number, far) in [0, 1, unix_now() - 420, unix_now() + 420, unix_now() * 1000, u64::MAX].into_iter().enumerate()
    {
        let id = format!("stale-{number}");
        client.send(&at(&id, far)).await.expect(401);
        Create::Payin.assert_nothing_stored(&client, &ACME, &id).await;
    }
    client.send(&at("early", unix_now() - 200)).await.expect(200);
    client.send(&at("late", unix_now() + 200)).await.expect(200);
    let good = at("x", unix_now());
    for malformed in ["", "now", "1e9", "-1", "0x10", "1700000000.5", "99999999999999999999999999"] {
        client.send(&good.clone().replace("X-Timestamp", Some(malformed))).await.expect(401);
    }
    client.send(&good.replace("X-Timestamp", None)).await.expect(401);
}

#[tokio::test]
async fn an_address_that_is_not_on_the_list_is_403() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for protocol in PROTOCOLS {
        for kind in CREATES {
            let good = kind.request(&ACME_NOWHERE, kind.body("far").to_string());
            client.send_by(protocol, &good).await.expect(403);
            for (header, claim) in [
                ("X-Forwarded-For", "203.0.113.5"),
                ("Forwarded", "for=203.0.113.5"),
                ("X-Real-IP", "203.0.113.5"),
                ("True-Client-IP", "203.0.113.5"),
            ] {
                client.send_by(protocol, &good.clone().header(header, claim)).await.expect(403);
            }
            kind.assert_nothing_stored(&client, &ACME, &format!("far-{kind:?}-{protocol:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_trusted_proxys_rightmost_untrusted_entry_is_the_caller() {
    let rules = Rules::default().with("clients", "trusted_proxies = [\"127.0.0.1/32\", \"198.51.100.0/24\"]");
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    let question = |key: &Key| Request::status(key, "1");
    for (entries, status) in [
        (&["203.0.113.5"][..], 404),
        (&["192.0.2.1, 203.0.113.5"], 404),
        (&["192.0.2.1, 203.0.113.5, 198.51.100.9"], 404),
        (&["192.0.2.1", "203.0.113.5", "198.51.100.9,198.51.100.10"], 404),
        (&["::ffff:203.0.113.5"], 404),
        (&["2001:db8::99"], 404),
        (&["203.0.113.5, 192.0.2.1"], 403),
        (&["203.0.113.5", "192.0.2.1"], 403),
        (&["203.0.113.5, 127.0.0.2"], 403),
        (&["nonsense"], 403),
        (&["203.0.113.5, nonsense"], 403),
        (&[""], 403),
        (&[], 403),
    ] {
        let mut request = question(&ACME_NOWHERE);
        for entry in entries {
            request = request.header("X-Forwarded-For", entry);
        }
        for protocol in PROTOCOLS {
            let reply = client.send_by(protocol, &request).await;
            assert_eq!(reply.status, status, "{entries:?} {}", reply.text());
        }
    }
    client.send(&question(&ACME).header("X-Forwarded-For", "203.0.113.5")).await.expect(403);
    client.send(&question(&ACME)).await.expect(404);
}

#[tokio::test]
async fn a_key_has_its_rate() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut refused = None;
    for number in 0..20 {
        let reply = client.send(&Request::status(&ACME_LIMITED, "1")).await;
        match reply.status {
            404 => {}
            status => {
                assert_eq!(status, 429, "{}", reply.text());
                assert!(number >= 2, "the burst is two");
                refused.get_or_insert(reply);
            }
        }
    }
    let refused = refused.expect("a refusal among 20 requests");
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    client.send(&Request::status(&ACME, "1")).await.expect(404);
}

#[tokio::test]
async fn failed_authentications_have_a_rate_that_valid_requests_never_feel() {
    let rules = Rules::default().with("limits", "unauthenticated_per_ip = { per_second = 1, burst = 3 }");
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let reply = client.send(&Request::deposit(&STRANGER, &deposit("x"))).await;
        if reply.status == 429 {
            assert!(reply.header("retry-after").parse::<u32>().unwrap() >= 1);
        }
        statuses.push(reply.status);
        client.send(&Request::status(&ACME, "1")).await.expect(404);
    }
    assert_eq!(statuses[..3], [401, 401, 401]);
    assert!(statuses.contains(&429), "{statuses:?}");
    let wrong = Request::deposit(&ACME, &deposit("x")).replace("X-Signature", Some("00"));
    let reply = client.send(&wrong).await;
    assert!([401, 429].contains(&reply.status), "{}", reply.status);
    Create::Deposit.assert_nothing_stored(&client, &ACME, "x").await;
}

#[tokio::test]
async fn repeated_authentication_headers_are_refused() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for protocol in PROTOCOLS {
        for kind in CREATES {
            let good = kind.request(&ACME, kind.body("twice").to_string());
            for name in ["X-Api-Key", "X-Signature", "X-Timestamp"] {
                let Some(value) = good.value(name).map(str::to_owned) else { continue };
                for second in [value.as_str(), "other"] {
                    let reply = client.send_by(protocol, &good.clone().header(name, second)).await;
                    assert!([400, 401].contains(&reply.status), "{name}: {}", reply.status);
                }
            }
            kind.assert_nothing_stored(&client, &ACME, &format!("twice-{kind:?}-{protocol:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_body_on_get_is_400() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for question in [Request::status(&ACME, "1"), Request::v1_status(&ACME, "payin", "x")] {
        let head = question.head("Content-Length: 2\r\n");
        let mut connection = client.connect().await;
        connection.write(&[&head[..], b"{}"].concat()).await;
        connection.reply().await.expect("a reply").expect(400);
        let mut connection = client.connect().await;
        connection
            .write(&[&question.head("Transfer-Encoding: chunked\r\n")[..], b"2\r\n{}\r\n0\r\n\r\n"].concat())
            .await;
        connection.reply().await.expect("a reply").expect(400);
        let with_body = Request { body: b"{}".to_vec(), ..question };
        for trickle in [false, true] {
            let reply =
                Http2::connect(&client).await.exchange("localhost", &with_body, trickle).await.expect("a reply");
            reply.expect(400);
        }
    }
    // No body, said aloud, is no body.
    let question = Request::status(&ACME, "1");
    let mut connection = client.connect().await;
    connection.write(&question.head("Content-Length: 0\r\n")).await;
    connection.reply().await.expect("a reply").expect(404);
}

#[tokio::test]
async fn the_earlier_check_wins() {
    let gateway = Gateway::start(&Rules::default().with("limits", "body = \"1KiB\""));
    let client = gateway.client();
    let large = "x".repeat(2000);
    let post = |key: &Key, path: &str, body: &str| Request::v2_post(key, path, body.to_owned());
    let unsigned = |request: Request| request.replace("X-Signature", Some("00"));
    let text = |request: Request| request.replace("Content-Type", Some("text/plain"));
    let nowhere = || post(&ACME_NOWHERE, "/api/v2/deposits", "not json");
    let mut limited = post(&ACME_LIMITED, "/api/v2/deposits", "not json");
    for _ in 0..3 {
        client.send(&unsigned(limited.clone())).await;
    }
    limited = unsigned(limited);
    let rows = [
        (text(post(&STRANGER, "/nope", &large)), 404),
        (text(Request { method: "PUT".to_owned(), ..post(&STRANGER, "/api/v2/deposits", &large) }), 405),
        (text(post(&STRANGER, "/api/v2/deposits", &large)), 415),
        (post(&STRANGER, "/api/v2/deposits", &large), 413),
        (post(&STRANGER, "/api/v2/deposits", "not json"), 401),
        (unsigned(nowhere()), 403),
        (limited, 429),
        (unsigned(post(&ACME, "/api/v2/deposits", "not json")), 401),
        (post(&ACME, "/api/v2/deposits", "not json"), 400),
    ];
    for protocol in PROTOCOLS {
        for (request, status) in &rows {
            let reply = client.send_by(protocol, request).await;
            assert_eq!(reply.status, *status, "{request:?}: {}", reply.text());
        }
    }
    // Streamed over the limit, signed wrongly: the limit comes first.
    let streamed = unsigned(post(&ACME, "/api/v2/deposits", &large));
    Http2::connect(&client).await.exchange("localhost", &streamed, true).await.expect("a reply").expect(413);
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let question = Request::status(&ACME, "1");
    let (longest, too_long) = ("x".repeat(128), "x".repeat(129));
    // The client itself compares what comes back.
    for id in ["a", "6f1c-42/~!\"'", &longest, &too_long, "two words", "tab\there", "caf\u{e9}"] {
        for protocol in PROTOCOLS {
            client.send_by(protocol, &question.clone().header("X-Request-Id", id)).await.expect(404);
            client.send_by(protocol, &Request::new("GET", "/nope", "").header("X-Request-Id", id)).await.expect(404);
        }
    }
    let first = client.send(&question).await;
    let second = client.send(&question).await;
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
}

#[tokio::test]
async fn connection_options_take_no_header_away() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for options in ["X-Api-Key", "X-Signature, X-Timestamp", "Content-Type, keep-alive"] {
        let request = Request::payin(&ACME, &payin("options")).header("Connection", options);
        client.send(&request).await.expect(200);
    }
    let stranger = Request::payin(&STRANGER, &payin("options")).header("Connection", "X-Api-Key");
    client.send_by(Protocol::Http1, &stranger).await.expect(401);
}
