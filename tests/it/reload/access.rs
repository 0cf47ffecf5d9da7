//! Every access line names the rule set that served the request, refusals of every kind included.

use serde_json::json;

use crate::reload::{reload_good, rules, save};
use crate::support::bodies::with;
use crate::support::http2::Http2;
use crate::support::request::{ACME, ACME_LIMITED, ACME_NOWHERE, BETA, PROTOCOLS};
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Key, Protocol, Request, Rules, eventually, text};

/// A request of every kind, and what it is answered with.
fn kinds() -> Vec<(u16, Request)> {
    let stranger = Key { name: "nobody", v1: Some("unknown"), v2: Some("unknown") };
    let question = Request::status(&ACME, "1");
    let mut kinds: Vec<(u16, Request)> = CREATES
        .iter()
        .map(|create| (200, create.request(&ACME, create.body(&format!("a-{create:?}")).to_string())))
        .collect();
    let large = with(Create::Deposit.body("large"), "fields.extra", Some(json!({"a": "b".repeat(80_000)})));
    kinds.extend([
        (404, question.clone()),
        (404, Request::v1_status(&ACME, "payin", "none")),
        (200, Request::v1_get(&ACME, "/api/v1/balance")),
        (401, Request::status(&stranger, "1")),
        (401, question.clone().replace("X-Signature", Some(&"0".repeat(64)))),
        (401, Request::new("GET", "/api/v2/transactions/1", "")),
        (403, Request::status(&ACME_NOWHERE, "1")),
        (404, Request::new("GET", "/nothing/here", "")),
        (404, Request::new("POST", "/provider/v1/card-eur/events", "{}").header("X-Signature", "00")),
        (405, Request::new("DELETE", "/api/v2/deposits", "")),
        (413, Create::Deposit.request(&ACME, large.to_string())),
        (400, Create::Deposit.request(&ACME, "no json")),
        (400, Create::Payin.request(&BETA, "no json")),
    ]);
    kinds
}

#[tokio::test]
async fn every_access_line_names_the_rule_set() {
    let gateway = Gateway::start(&Rules::default());
    let first = text(&rules(&gateway), "version").to_owned();
    let client = gateway.client();
    let mut asked = 0;
    for protocol in PROTOCOLS {
        for (status, request) in kinds() {
            let reply = client.send_by(protocol, &request).await;
            assert!(reply.status == status || request.target.starts_with("/provider"), "{request:?}: {reply:?}");
            asked += 1;
        }
    }
    let malformed: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        b"no http at all\r\n\r\n",
        &[b"GET / HTTP/1.1\r\nHost: a\r\nX: ".as_slice(), &vec![b'x'; 40_000], b"\r\n\r\n"].concat(),
    ];
    for bytes in malformed {
        let replies = client.raw(bytes).await;
        assert!(matches!(replies[..], [ref reply] if [400, 431].contains(&reply.status)), "{replies:?}");
        asked += 1;
    }
    let mut twice = Http2::connect(&client).await;
    let bad_host = Request::status(&ACME, "1").header("Host", "elsewhere");
    let reply = twice.exchange("localhost", &bad_host, false).await.unwrap();
    assert_eq!(reply.status, 400);
    asked += 1;
    for _ in 0..4 {
        client.send_by(Protocol::Http1, &Request::status(&ACME_LIMITED, "1")).await;
        asked += 1;
    }

    save(&gateway, "lists/banks.txt", "BANK-A\n");
    let second = reload_good(&gateway);
    client.send(&Request::status(&ACME, "1")).await.expect(404);
    let stated = |version: &str| {
        let log = gateway.log();
        let lines = log.lines().filter(|line| line.contains(" paybridge::access: ")).map(str::to_owned);
        lines.filter(|line| line.contains(&format!(" rules_version={version} "))).collect::<Vec<_>>()
    };
    eventually("every line", async || (stated(&second).len() == 1).then_some(())).await;
    let lines = stated(&first);
    assert_eq!(lines.len(), asked, "one line a request, each with its rule set");
    for status in [200, 400, 401, 403, 404, 405, 413, 429, 431] {
        let status = format!(" status={status} ");
        assert!(lines.iter().any(|line| line.contains(&status)), "no{status}in {lines:#?}");
    }
}
