//! A shop with an HTTP provider: its customers wait until it answered, then see what it prepared, and a result that it
//! reports leads them back.

use serde_json::{Value, json};

use crate::pages::browser::{assert_state, location, open, page, press};
use crate::pages::{Deposit, FAIL_URL, PENDING_URL, SUCCESS_URL, rules};
use crate::provider::scripted::{Play, Scripted};
use crate::support::request::hmac_hex;
use crate::support::{self, Gateway, Request, Rules, eventually};

const PROVIDER_SECRET: &str = "provider-hush-5Tg";

/// A page whose address a careless reader would repair.
const PAGE: &str = "https://bank.example/a%2Fb/;v=1/@me?order=A-17&next=%2F..%2f&x=~";
const WITH_PAGE: &str =
    r#"{"status":"PENDING","page":{"url":"https://bank.example/a%2Fb/;v=1/@me?order=A-17&next=%2F..%2f&x=~"}}"#;
const TOLD: &str = r#"{"status":"PENDING","instructions":{"text":"Pay to this account.\nToday.","details":[{"label":"IBAN","value":"DE02 1203 0000 0000 2020 51"}]}}"#;
const HOSTILE: &str = r#"{"status":"PENDING","instructions":{"text":"<script>alert(1)</script>\n\"'&amp;{{ 7 * 7 }}{% if x %}","details":[{"label":"</dt><h1>IBAN</h1>","value":"\"><img src=x onerror=alert(1)>"}]}}"#;
const STOPPED: &str = r#"{"status":"PENDING","preparation":"stopped"}"#;
const NOTHING: &str = r#"{"status":"PENDING"}"#;

/// Plays by the amount's cents.
async fn provider() -> Scripted {
    Scripted::start(|cents, _| match cents {
        "10" => Play::Hold(WITH_PAGE),
        "20" => Play::Say(TOLD),
        "21" => Play::Say(HOSTILE),
        "30" => Play::Say(STOPPED),
        _ => Play::Say(NOTHING),
    })
    .await
}

fn rules_of(provider: &Scripted) -> Rules {
    let url = provider.url();
    rules().file(
        "shops/card-eur.toml",
        format!(
            "currency = \"EUR\"\n[provider]\nkind = \"http\"\nurl = \"{url}\"\nsecret = \"{PROVIDER_SECRET}\"\n\
             first_retry = \"50ms\"\nmax_retry = \"200ms\"\n"
        ),
    )
}

/// Reports, rightly signed.
async fn report(gateway: &Gateway, deposit: &Deposit, mut members: Value) {
    members["transaction_id"] = json!(deposit.id);
    let body = members.to_string();
    let signature = hmac_hex(PROVIDER_SECRET, body.as_bytes());
    let request = Request::new("POST", "/providers/card-eur/events", body)
        .header("Content-Type", "application/json")
        .header("X-Signature", &signature);
    gateway.client().send(&request).await.expect(200);
}

/// Polls an entry link until its page is the one of this state.
async fn becomes(gateway: &Gateway, deposit: &Deposit, state: &str) -> crate::pages::markup::Document {
    eventually(state, async || {
        let reply = open(gateway, &deposit.entry).await;
        let preparing = !reply.all("refresh").is_empty() && reply.header("refresh") == "2";
        (!preparing).then(|| {
            let document = page(&reply, 200);
            assert_state(&document, state);
            document
        })
    })
    .await
}

// keeps P176, P178, P182
#[tokio::test]
async fn a_providers_page_is_where_the_link_leads_once_it_is_ready() {
    let provider = provider().await;
    let gateway = Gateway::start(&rules_of(&provider));
    let deposit = Deposit::create(&gateway, "held", "10.10").await;
    provider.was_asked(&deposit.id, 1).await;
    for _ in 0..3 {
        let reply = open(&gateway, &deposit.entry).await;
        assert_eq!(reply.header("refresh"), "2");
        assert_state(&page(&reply, 200), "preparing");
    }
    provider.go_on();
    let ready = eventually("it is ready", async || {
        Some(open(&gateway, &deposit.entry).await).filter(|reply| reply.status == 303)
    })
    .await;
    assert_eq!(location(&ready), PAGE);
    assert_eq!(provider.asked(&deposit.id).len(), 1, "looking asks nobody");

    assert_eq!(location(&open(&gateway, &deposit.link("return")).await), PENDING_URL);
    report(&gateway, &deposit, json!({ "status": "SUCCESS", "payer_account": support::CARD })).await;
    for kind in ["pay", "return", "sandbox"] {
        assert_eq!(location(&open(&gateway, &deposit.link(kind)).await), SUCCESS_URL, "{kind}");
    }
}

#[tokio::test]
async fn a_providers_instructions_are_shown_as_text() {
    let provider = provider().await;
    let gateway = Gateway::start(&rules_of(&provider));
    let reported = Deposit::create(&gateway, "told", "10.20").await;
    let harmless = becomes(&gateway, &reported, "instructions").await;
    for text in ["Pay to this account.", "Today.", "IBAN", "DE02 1203 0000 0000 2020 51"] {
        assert!(harmless.text().contains(text), "{text:?} in {}", harmless.text());
    }
    harmless.return_link();

    let hostile = Deposit::create(&gateway, "hostile", "10.21").await;
    let document = becomes(&gateway, &hostile, "instructions").await;
    assert_eq!(document.shape, harmless.shape);
    for text in [
        "<script>alert(1)</script>",
        "\"'&amp;{{ 7 * 7 }}{% if x %}",
        "</dt><h1>IBAN</h1>",
        "\"><img src=x onerror=alert(1)>",
    ] {
        assert!(document.text().contains(text), "{text:?} in {}", document.text());
    }
    report(&gateway, &reported, json!({ "status": "FAILED" })).await;
    assert_eq!(location(&open(&gateway, &reported.entry).await), FAIL_URL);
}

// keeps P180, P181
#[tokio::test]
async fn where_a_provider_stopped_the_customer_waits() {
    let provider = provider().await;
    let gateway = Gateway::start(&rules_of(&provider));
    let stopped = Deposit::create(&gateway, "stopped", "10.30").await;
    let document = becomes(&gateway, &stopped, "stopped").await;
    assert_eq!(location(&open(&gateway, &document.return_link()).await), PENDING_URL);
    stopped.assert_status(&gateway, "PENDING").await;
    report(&gateway, &stopped, json!({ "status": "SUCCESS" })).await;
    assert_eq!(location(&open(&gateway, &stopped.entry).await), SUCCESS_URL);
}

/// The sandbox's page is nothing for another provider's deposits: nobody can pay them with a button.
#[tokio::test]
async fn a_providers_deposit_cannot_be_paid_on_the_sandboxs_page() {
    let provider = provider().await;
    let gateway = Gateway::start(&rules_of(&provider));
    let deposit = Deposit::create(&gateway, "not the sandbox's", "10.40").await;
    provider.was_asked(&deposit.id, 1).await;
    let hosted = deposit.link("sandbox");
    assert_eq!(location(&open(&gateway, &hosted).await), deposit.url);
    for decision in ["pay", "decline"] {
        assert_eq!(location(&press(&gateway, &hosted, decision).await), deposit.url);
    }
    deposit.assert_status(&gateway, "PENDING").await;
}
