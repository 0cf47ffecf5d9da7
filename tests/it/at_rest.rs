//! What must not be found by a byte search: card numbers, `fields`, secrets and signatures, in the store's files, alive
//! and dead, and in the log at its most talkative.

use rustix::process::Signal;
use serde_json::json;

use crate::console::crawl;
use crate::support::bodies::with;
use crate::support::gateway::files_below;
use crate::support::request::{ACME, KEYS};
use crate::support::stored::{CREATES, Create};
use crate::support::{CARD, Gateway, Request, Rules, deposit, eventually, payin, payout, text, withdrawal};

/// Sent in `fields`, in every place that the shops take.
const MARKS: [&str; 4] = ["mark-in-a-name", "mark@example.com", "mark-without-a-schema", "mark-nested"];

/// Whether bytes hold a text.
fn search(haystack: &[u8], needle: &str) -> bool {
    regex::bytes::Regex::new(&regex::escape(needle)).unwrap().is_match(haystack)
}

/// Sends good and bad requests full of what must not be kept, and gives the signatures that went over the wire, those of
/// the links at the end.
async fn traffic(gateway: &Gateway) -> (Vec<String>, Vec<String>) {
    let client = gateway.client();
    let mut requests = Vec::new();
    let fields = json!({ "first_name": MARKS[0], "email": MARKS[1], "card": CARD, "extra": { "deep": MARKS[3] } });
    let mut v1 = with(payin("rest-1"), "paymentData", Some(fields.clone()));
    v1 = with(v1, "paymentData.return_user_url", Some("https://acme.example/".into()));
    requests.push(Request::payin(&ACME, &v1));
    requests.push(Request::payout(&ACME, &payout("rest-2")));
    requests.push(Request::deposit(&ACME, &with(deposit("rest-3"), "fields", Some(fields))));
    let open = json!({ "note": MARKS[2], "card": CARD });
    let slow = with(with(withdrawal("rest-4"), "method", Some("slow-eur".into())), "fields", Some(open));
    requests.push(Request::withdrawal(&ACME, &slow));
    for kind in CREATES {
        // Refusals, too, hold what was sent: in a name, in a value, in a member of the wrong type, in a broken body.
        requests.push(kind.request(&ACME, with(kind.body("bad"), CARD, Some(1.into())).to_string()));
        requests.push(kind.request(&ACME, with(kind.body("bad"), "currency", Some(CARD.into())).to_string()));
        requests.push(kind.request(&ACME, with(kind.body("bad"), "callback_url", Some(CARD.into())).to_string()));
        requests.push(kind.request(&ACME, kind.body("bad").to_string().replace("EUR\"", CARD)));
        requests.push(kind.request(&ACME, kind.body("bad").to_string()).replace("X-Signature", Some(&"ab".repeat(32))));
        let mut query = kind.request(&ACME, kind.body("bad").to_string());
        query.target = format!("{}?card={CARD}", query.target);
        requests.push(query);
    }
    requests.push(Request::deposit(&ACME, &with(deposit("bad"), "fields.email", Some(CARD.into()))));
    requests.push(Request::withdrawal(&ACME, &with(withdrawal("rest-4"), "account_number", Some(CARD.into()))));
    requests.push(Request::status(&ACME, CARD));
    requests.push(Request::v1_status(&ACME, "payin", CARD));
    requests.push(Request::new("GET", &format!("/{CARD}?card={CARD}"), ""));
    let mut links = Vec::new();
    let mut signatures = Vec::new();
    for request in requests {
        let reply = client.send(&request).await;
        signatures.extend(request.value("x-signature").map(str::to_owned));
        if reply.status == 200 && reply.text().contains("redirect_url") {
            let stated = reply.json();
            let (_, signature) = text(&stated, "redirect_url").split_once("signature=").unwrap();
            links.push(signature.to_owned());
        }
    }
    assert_eq!(links.len(), 2, "both deposits were taken");
    eventually("the withdrawal is settled", async || {
        let record = client.send(&Request::v1_status(&ACME, "payout", "rest-2")).await.expect(200).json();
        (record["status"] == "SUCCESS").then_some(())
    })
    .await;
    (signatures, links)
}

fn assert_absent(when: &str, gateway: &Gateway, signatures: &[String], links: &[String]) {
    let secrets: Vec<&str> = KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten().collect();
    let kept: Vec<&str> = [CARD]
        .into_iter()
        .chain(MARKS)
        .chain(secrets.iter().copied())
        .chain(signatures.iter().map(String::as_str))
        .collect();
    let stored = gateway.store_files();
    let bytes: usize = stored.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes > 100_000, "{when}: no database");
    for (path, bytes) in &stored {
        for needle in &kept {
            assert!(!search(bytes, needle), "{when}: {needle} is in {}", path.display());
        }
    }
    let log = gateway.log();
    assert!(log.lines().count() > 10, "the log is captured: {log}");
    for needle in kept.iter().copied().chain(links.iter().map(String::as_str)) {
        if let Some(line) = log.lines().find(|line| line.contains(needle)) {
            panic!("{when}: {needle} is in the log: {line}");
        }
    }
    // Whatever else the process writes: everything but the rules that hold the secrets.
    for (path, bytes) in files_below(gateway.root.path()) {
        if !path.starts_with(gateway.rules_dir()) {
            assert!(!search(&bytes, CARD), "{when}: the card is in {}", path.display());
        }
    }
}

// keeps D058
#[tokio::test]
async fn cards_fields_secrets_and_signatures_are_nowhere() {
    let mut gateway = Gateway::start(&Rules::default());
    let (signatures, links) = traffic(&gateway).await;
    assert_absent("while it runs", &gateway, &signatures, &links);
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    for needle in [CARD, "rest-1", "acme-live"] {
        assert!(!metrics.contains(needle), "{needle} is in the metrics");
    }
    let orders =
        ["rest-1", "rest-2", "rest-3", "rest-4"].map(|order| format!("/operations?merchant=acme&order_id={order}"));
    let from: Vec<&str> =
        orders.iter().map(String::as_str).chain(["/", "/callbacks?state=pending,delivered,failed"]).collect();
    let pages = crawl(&gateway, &from);
    let operations = pages.keys().filter(|path| path.starts_with("/operations/"));
    assert!(operations.count() >= 4, "{:?}", pages.keys());
    for (path, html) in &pages {
        // Ids that a merchant chose are shown whole: here the one of a status request.
        let html = html.replace(&format!("<span class=\"id\">{CARD}</span>"), "");
        let secrets = KEYS.iter().flat_map(|key| [Some(key.name), key.v1, key.v2]).flatten();
        for needle in [CARD].into_iter().chain(MARKS).chain(secrets).chain(links.iter().map(String::as_str)) {
            assert!(!html.contains(needle), "{needle} is at {path}: {html}");
        }
    }
    gateway.kill();
    assert_absent("after a kill", &gateway, &signatures, &links);
    gateway.restart();
    Create::Payout.create(&gateway.client(), &ACME, &payout("rest-2")).await;
    gateway.signal(Signal::TERM);
    gateway.wait();
    assert_absent("after a stop", &gateway, &signatures, &links);
}

#[tokio::test]
async fn every_request_has_one_line_in_the_log() {
    let mut gateway = Gateway::start(&Rules::default());
    let request = Request::payin(&ACME, &payin("logged")).header("X-Request-Id", "find-me-1");
    gateway.client().send(&request).await.expect(200);
    let refused = Request::status(&ACME, "1").replace("X-Signature", Some("00")).header("X-Request-Id", "find-me-2");
    gateway.client().send(&refused).await.expect(401);
    let as_id = Request::payin(&ACME, &payin("card")).header("X-Request-Id", "4111-1111-1111-1111");
    gateway.client().send(&as_id).await.expect(200);
    gateway.client().raw(b"\0\r\n\r\n").await;
    gateway.signal(Signal::TERM);
    gateway.wait();
    let log = gateway.log();
    assert!(log.contains("request_id=4111-11**-****-1111 ") && !log.contains("4111-1111-1111"), "{log}");
    assert!(log.contains(" method=- status=400 reason=malformed "), "{log}");
    assert!(log.contains(" status=401 reason=signature "), "{log}");
    for (id, status) in [("find-me-1", "200"), ("find-me-2", "401")] {
        let lines: Vec<_> = log.lines().filter(|line| line.contains(id) && line.contains(status)).collect();
        assert_eq!(lines.len(), 1, "{id}: {log}");
    }
    assert!(log.lines().any(|line| line.contains("find-me-1") && line.contains("acme")), "the merchant is named");
}
