//! Providers that hang, break off, lie and die; gateways that are killed; rules that change.

use rustix::process::Signal;
use serde_json::json;

use super::scripted::{Play, Scripted};
use super::{
    SECRET, becomes, counted, create, logged, metric, payin, payout, report, report_request, rules, shop, status,
};
use crate::support::request::hmac_hex;
use crate::support::rules::write_file;
use crate::support::{self, Gateway, deposit, eventually, text, withdrawal};

const SUCCESS: &str = r#"{"status":"SUCCESS"}"#;
const FAILED: &str = r#"{"status":"FAILED"}"#;
const RETRIED: &str = r#"paybridge_provider_jobs_total{outcome="retried"}"#;

fn reply(head: &str, body: &str) -> Play {
    Play::Bytes(format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

/// What is no answer, by the cents of the amount.
fn no_answer(cents: &str) -> Play {
    match cents {
        "10" => Play::Hang,
        "11" => Play::Say("FAILED"),
        "12" => Play::Say(r#"{"status":"FAILED","status":"FAILED"}"#),
        "13" => reply("500 Oops", FAILED),
        "14" => reply("404 Not Found", FAILED),
        "15" => reply("302 Found\r\nLocation: http://127.0.0.1:1/", FAILED),
        "16" => reply("200 OK", &format!(r#"{{"status":"FAILED","x":"{}"}}"#, "x".repeat(70_000))),
        "17" => Play::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"status\":\"FAILED\"}".to_vec()),
        "18" => Play::Bytes(Vec::new()),
        "19" => Play::Say(r#"{"status":"PENDING","page":{"url":"https://p.example/"}}"#),
        "20" => Play::Say(r#"{"status":"SUCCESS","payer_account":"4000123412341234"}"#),
        "21" => reply("204 No Content", ""),
        "22" => reply("503 Busy\r\nRetry-After: 0", ""),
        _ => Play::Say(r#"{"status":"PENDING","instructions":{}}"#),
    }
}

#[tokio::test]
async fn whatever_is_no_answer_is_unknown_and_asked_again() {
    let play = |cents: &str, before| if before < 2 { no_answer(cents) } else { Play::Say(SUCCESS) };
    let provider = Scripted::start(play).await;
    let gateway = Gateway::start(&rules(&provider.url(), "timeout = \"2s\""));
    let mut ids = Vec::new();
    for cents in 10..=23 {
        ids.push(payout(&gateway, &format!("p-{cents}"), &format!("5.{cents}")).await);
    }
    for id in &ids {
        becomes(&gateway, id, "SUCCESS").await;
        let asked = provider.asked(id);
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|again| again.body == asked[0].body), "the same bytes at every try");
        assert_eq!(asked[0].path, "/operations?from=paybridge");
        assert_eq!(asked[0].headers["idempotency-key"], *id);
        assert_eq!(asked[0].headers["content-type"], "application/json");
        assert_eq!(asked[0].headers["x-signature"], hmac_hex(SECRET, asked[0].body.as_bytes()));
        assert!(asked[0].headers["user-agent"].starts_with("paybridge/"));
    }
    counted(&gateway, RETRIED, 28).await;
    assert_eq!(metric(&gateway, r#"paybridge_provider_jobs_total{outcome="posted"}"#), 14);
}

// keeps P091
#[tokio::test]
async fn a_provider_is_reported_everything_about_an_operation() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let body = super::with(withdrawal("o-1"), "customer_account_id", Some(0.into()));
    let body = super::with(body, "account_channel", Some("sepa".into()));
    let body = super::with(body, "fields", Some(json!({ "merchant_user_ip": "2001:db8::1", "n": 1.50 })));
    let id = create(&gateway, body, "card-eur", "1.5").await;
    provider.was_asked(&id, 1).await;
    let mut asked = provider.asked(&id)[0].json();
    let created_at = asked.as_object_mut().unwrap().remove("created_at").unwrap();
    assert!(created_at.as_str().unwrap().ends_with('Z'), "{created_at}");
    let port = gateway.public.port();
    let expected = json!({
        "transaction_id": id, "direction": "payout", "merchant": "acme", "order_id": "o-1", "shop": "card-eur",
        "payment_method": "bank", "amount": "1.50", "currency": "EUR", "customer_account_id": 0,
        "customer_ip": "2001:db8::1", "account_number": support::CARD, "account_channel": "sepa",
        "fields": { "merchant_user_ip": "2001:db8::1", "n": 1.5 },
        "events_url": format!("https://localhost:{port}/providers/card-eur/events"),
    });
    assert_eq!(asked, expected);

    let id = create(&gateway, deposit("o-2"), "card-eur", "2").await;
    provider.was_asked(&id, 1).await;
    let asked = provider.asked(&id)[0].json();
    assert_eq!(text(&asked, "direction"), "payin");
    assert!(asked.get("account_number").is_none() && asked.get("customer_account_id").is_none(), "{asked}");
}

#[tokio::test]
async fn a_killed_gateway_asks_again_and_books_once() {
    let provider = Scripted::start(|_, before| if before == 0 { Play::Hang } else { Play::Say(SUCCESS) }).await;
    let mut gateway = Gateway::start(&rules(&provider.url(), "timeout = \"2s\""));
    let id = payout(&gateway, "p-1", "7.25").await;
    provider.was_asked(&id, 1).await;
    gateway.kill();
    gateway.restart();
    becomes(&gateway, &id, "SUCCESS").await;
    let asked = provider.asked(&id);
    assert!(asked.len() >= 2 && asked.iter().all(|again| again.body == asked[0].body), "{}", asked.len());
    // A report of what was posted is a repeat.
    report(&gateway, &id, json!({ "status": "SUCCESS" })).await.expect(200);
    report(&gateway, &id, json!({ "status": "FAILED" })).await.expect(409);
}

#[tokio::test]
async fn a_dead_provider_delays_no_other_shop() {
    let dead = Scripted::start(|_, _| Play::Hang).await;
    let alive = Scripted::start(|_, _| Play::Say(SUCCESS)).await;
    let rules = rules(&alive.url(), "").file("shops/slow-eur.toml", shop(&dead.url(), "timeout = \"60s\""));
    let gateway = Gateway::start(&rules);
    let mut waiting = Vec::new();
    for number in 0..40 {
        waiting.push(create(&gateway, withdrawal(&format!("dead-{number}")), "slow-eur", "1").await);
    }
    eventually("as many as a shop may have", async || (dead.count() >= 32).then_some(())).await;
    let id = payout(&gateway, "alive", "1").await;
    becomes(&gateway, &id, "SUCCESS").await;
    let body = super::with(withdrawal("sandbox"), "currency", Some("USD".into()));
    let body = super::with(body, "account_number", Some("DE1234567890".into()));
    let id = create(&gateway, body, "plain-usd", "1").await;
    becomes(&gateway, &id, "SUCCESS").await;
    assert_eq!(dead.count(), 32, "the others wait their turn");
    for id in waiting {
        assert_eq!(status(&gateway, &id).await, "PENDING");
    }
}

#[tokio::test]
async fn a_report_may_come_before_the_answer() {
    let play = |cents: &str, _| Play::Hold(if cents == "10" { r#"{"status":"PENDING"}"# } else { FAILED });
    let provider = Scripted::start(play).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let (agreeing, contradicting) = (payin(&gateway, "d-1", "1.10").await, payin(&gateway, "d-2", "1.11").await);
    for id in [&agreeing, &contradicting] {
        provider.was_asked(id, 1).await;
        report(&gateway, id, json!({ "status": "SUCCESS" })).await.expect(200);
    }
    provider.go_on();
    counted(&gateway, r#"paybridge_provider_jobs_total{outcome="contradicted"}"#, 1).await;
    counted(&gateway, r#"paybridge_provider_jobs_total{outcome="repeated"}"#, 1).await;
    for id in [&agreeing, &contradicting] {
        assert_eq!(status(&gateway, id).await, "SUCCESS");
        assert_eq!(provider.asked(id).len(), 1);
    }
}

#[tokio::test]
async fn an_operation_that_was_given_up_waits_for_a_report() {
    let provider = Scripted::start(|_, _| reply("500 Oops", "")).await;
    let gateway = Gateway::start(&rules(&provider.url(), "give_up_after = \"600ms\""));
    let ids = [payin(&gateway, "d-1", "1").await, payout(&gateway, "p-1", "1").await];
    counted(&gateway, r#"paybridge_provider_jobs_total{outcome="given_up"}"#, 2).await;
    for id in &ids {
        assert_eq!(status(&gateway, id).await, "PENDING");
        report(&gateway, id, json!({ "status": "SUCCESS" })).await.expect(200);
        assert_eq!(status(&gateway, id).await, "SUCCESS");
    }
    logged(&gateway, "gave up: the provider returned no result", 2).await;
}

#[tokio::test]
async fn secrets_are_rotated_without_a_refused_request() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let mut number = 0;
    for (list, signs, refused) in [
        (format!("[\"{SECRET}\", \"next\"]"), SECRET, "other"),
        (format!("[\"next\", \"{SECRET}\"]"), "next", "other"),
        ("[\"next\"]".to_owned(), "next", SECRET),
    ] {
        let file = shop(&provider.url(), &format!("secret = {list}"));
        write_file(&gateway.rules_dir().join("shops/card-eur.toml"), &file);
        gateway.reload();
        number += 1;
        let id = payin(&gateway, &format!("d-{number}"), "1").await;
        provider.was_asked(&id, 1).await;
        let asked = &provider.asked(&id)[0];
        assert_eq!(asked.headers["x-signature"], hmac_hex(signs, asked.body.as_bytes()));
        let body = json!({ "transaction_id": id, "status": "SUCCESS" });
        gateway.client().send(&report_request("card-eur", refused, &body)).await.expect(401);
        for secret in [SECRET, "next"].into_iter().filter(|secret| *secret != refused) {
            gateway.client().send(&report_request("card-eur", secret, &body)).await.expect(200);
        }
    }
}

#[tokio::test]
async fn a_stopped_gateway_does_not_wait_for_a_provider_for_long() {
    let provider = Scripted::start(|_, _| Play::Hang).await;
    let mut gateway = Gateway::start(&rules(&provider.url(), "timeout = \"60s\""));
    let id = payout(&gateway, "p-1", "1").await;
    provider.was_asked(&id, 1).await;
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0), "{}", gateway.log());
}

#[tokio::test]
async fn a_shop_that_is_switched_off_still_takes_reports() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let id = payin(&gateway, "d-1", "1").await;
    provider.was_asked(&id, 1).await;
    let file = format!("active = false\n{}", shop(&provider.url(), ""));
    write_file(&gateway.rules_dir().join("shops/card-eur.toml"), &file);
    gateway.reload();
    report(&gateway, &id, json!({ "status": "SUCCESS" })).await.expect(200);
    assert_eq!(status(&gateway, &id).await, "SUCCESS");
}

#[tokio::test]
async fn whoever_guesses_shops_or_signatures_is_held_up() {
    let provider = Scripted::start(|_, _| Play::Hang).await;
    let rules = rules(&provider.url(), "").with("limits", "unauthenticated_per_ip = { per_second = 1, burst = 3 }");
    let gateway = Gateway::start(&rules);
    let mut statuses = Vec::new();
    for number in 0..12 {
        let shop = if number % 2 == 0 { format!("guess-{number}") } else { "card-eur".to_owned() };
        let body = json!({ "transaction_id": "1", "status": "SUCCESS" });
        statuses.push(gateway.client().send(&report_request(&shop, "wrong", &body)).await.status);
    }
    assert_eq!(statuses[..3], [404, 401, 404]);
    assert!(statuses[3..].contains(&429), "{statuses:?}");
    // A good report of the same address is not.
    report(&gateway, "1", json!({ "status": "SUCCESS" })).await.expect(404);
    let answer = gateway.client().send(&report_request("card-eur", SECRET, &json!({}))).await;
    answer.expect(400);
}
