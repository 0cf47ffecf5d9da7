//! What operators do about operations whose provider does not report: find them, read why, ask again, set the result.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::scripted::{Play, Scripted};
use super::{becomes, counted, payin, payout, report, rules, status};
use crate::console::{encoded, page};
use crate::export::run;
use crate::support::request::ACME;
use crate::support::{self, Gateway, Request, Rules, eventually, text};

const ADA: &str = "ada-is-an-operator-7";
const BOB: &str = "bob-is-an-operator-8";
const GIVEN_UP: &str = r#"paybridge_provider_jobs_total{outcome="given_up"}"#;

/// Asks the API, as a user or without one.
fn api(gateway: &Gateway, line: &str, token: &str, body: &str) -> (u16, Value) {
    let (status, body) = admin(gateway, line, token, body);
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

fn admin(gateway: &Gateway, line: &str, token: &str, body: &str) -> (u16, String) {
    let (host, length) = (gateway.admin, body.len());
    let user = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let request =
        format!("{line} HTTP/1.1\r\nHost: {host}\r\n{user}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    gateway.admin_request(&request).expect("a reply")
}

fn listed(gateway: &Gateway, query: &str) -> Vec<Value> {
    let (status, list) = api(gateway, &format!("GET /api/operations?{query}"), "", "");
    assert_eq!(status, 200, "{list}");
    list["operations"].as_array().unwrap().clone()
}

fn shown(gateway: &Gateway, id: &str, token: &str) -> Value {
    let (status, found) = api(gateway, &format!("GET /api/operations/{id}"), token, "");
    assert_eq!(status, 200, "{found}");
    found
}

fn resolve(gateway: &Gateway, id: &str, token: &str, status: &str) -> (u16, Value) {
    let body = json!({ "status": status, "reason": "by the statement" }).to_string();
    api(gateway, &format!("POST /api/operations/{id}/resolve"), token, &body)
}

/// Rules whose provider is given up soon.
fn impatient(url: &str) -> Rules {
    rules(url, "timeout = \"1s\"\ngive_up_after = \"300ms\"\nexpected_within = \"1ms\"")
}

#[tokio::test]
async fn an_operation_given_up_is_found_asked_again_and_resolved() {
    let provider = Scripted::start(|_, _| Play::Bytes(Vec::new())).await;
    let gateway = Gateway::start(&impatient(&provider.url()));
    let id = payout(&gateway, "o-1", "5.10").await;
    let other = payout(&gateway, "o-2", "6.10").await;
    counted(&gateway, GIVEN_UP, 2).await;
    let attention: BTreeSet<_> =
        listed(&gateway, "attention=true").iter().map(|one| text(one, "transaction_id").to_owned()).collect();
    assert_eq!(attention, BTreeSet::from([id.clone(), other.clone()]));
    assert_eq!(shown(&gateway, &id, "")["waits_for"], "operator");
    let given_up = |id: &str| {
        let events = events(&gateway, id);
        let event = events.iter().find(|event| event["title"] == "The provider was given up").expect("the event");
        text(event, "detail").to_owned()
    };
    let why = given_up(&other);
    assert!(why.contains(" The last one without a result: "), "{why}");

    let before = provider.asked(&id).len();
    let ask = format!("POST /api/operations/{id}/ask");
    gateway.reload_with(&Rules::default());
    let (code, refused) = api(&gateway, &ask, "", "");
    assert!(code == 409 && refused.to_string().contains("no longer give its shop"), "{refused}");
    let found = shown(&gateway, &id, "");
    assert_eq!((&found["can_be_resolved"], &found["can_be_queried"]), (&json!(true), &json!(false)));
    gateway.reload_with(&impatient(&provider.url()));
    assert_eq!(api(&gateway, &ask, "", "").0, 200);
    assert_eq!(api(&gateway, &ask, "", "").0, 429, "a moment ago");
    counted(&gateway, GIVEN_UP, 3).await;
    assert!(provider.asked(&id).len() > before, "it was called anew");
    let titles = events(&gateway, &id).into_iter().map(|event| text(&event, "title").to_owned()).collect::<Vec<_>>();
    let (end, again) = ("The provider was given up", "An operator had the provider called again");
    assert_eq!(titles[1..], [end, again, end], "what was before stays");

    assert_eq!(resolve(&gateway, &id, "", "SUCCESS").0, 200);
    assert_eq!(status(&gateway, &id).await, "SUCCESS");
    let (code, refused) = resolve(&gateway, &id, "", "FAILED");
    assert!(code == 409 && refused.to_string().contains("SUCCESS"), "{refused}");
    assert_eq!(api(&gateway, &ask, "", "").0, 409);
    assert_eq!(resolve(&gateway, &other, "", "FAILED").0, 200);
    assert_eq!(shown(&gateway, &other, "")["cause"], "operator");
    assert_eq!(given_up(&other), why.replace(" so far", ""), "it is kept");
    assert_eq!(listed(&gateway, "attention=true").len(), 0);
    assert_eq!(resolve(&gateway, "1", "", "FAILED").0, 404);

    // The provider finds out later.
    report(&gateway, &id, json!({ "status": "SUCCESS" })).await.expect(200);
    report(&gateway, &other, json!({ "status": "SUCCESS" })).await.expect(409);
    assert_eq!(listed(&gateway, "attention=true")[0]["transaction_id"], other.as_str());
    let acknowledge = format!("POST /api/operations/{other}/acknowledge");
    assert_eq!(api(&gateway, &acknowledge, "", "").0, 200);
    assert_eq!(api(&gateway, &acknowledge, "", "").0, 409);
    assert_eq!(api(&gateway, "POST /api/operations/1/acknowledge", "", "").0, 404);
    assert_eq!(listed(&gateway, "attention=true").len(), 0);
    let (_, trail) = gateway.admin_get("/audit").unwrap();
    for action in ["operations.ask", "operations.resolve", "operations.acknowledge"] {
        assert!(trail.contains(action), "{action}");
    }
}

/// Returns the timeline of an operation.
fn events(gateway: &Gateway, id: &str) -> Vec<Value> {
    shown(gateway, id, "")["timeline"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_timeline_says_when_a_provider_was_called() {
    let provider = Scripted::start(|_, _| Play::Bytes(Vec::new())).await;
    let gateway = Gateway::start(&rules(&provider.url(), "").edit("shops/card-eur.toml", "0ms\"", "0m\""));
    let id = payout(&gateway, "o-1", "5.10").await;
    let called = async || {
        events(&gateway, &id).into_iter().find(|event| event["title"] == "The provider was called, without a result")
    };
    let before = eventually("it was called", called).await;
    let next = events(&gateway, &id).into_iter().find(|event| event["title"] == "The provider is called next").unwrap();
    assert!(text(&next, "at") > text(&before, "at"), "{before} {next}");
    assert_eq!(resolve(&gateway, &id, "", "FAILED").0, 200);
    let after = called().await.unwrap();
    assert_eq!(after["at"], before["at"], "not when the result was set");
    assert!(text(&after, "detail").starts_with("Attempts: 1. The last one without a result: "), "{after}");
}

#[tokio::test]
async fn a_provider_says_why_it_refused() {
    let failed = r#"{"status":"FAILED","code":"51","message":"no funds on 4111 1111 1111 1111\u0007"}"#;
    let provider = Scripted::start(move |_, _| Play::Say(failed)).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let id = payout(&gateway, "o-1", "5.10").await;
    becomes(&gateway, &id, "FAILED").await;
    let found = shown(&gateway, &id, "");
    assert_eq!((&found["cause"], &found["cause_code"]), (&json!("provider"), &json!("51")));
    let words = text(&found, "cause_text");
    assert!(words.starts_with("no funds on ") && !words.contains("1111 1111") && !words.contains('\u{7}'), "{words}");
    for page in ["/operations?status=FAILED".to_owned(), format!("/operations/{id}")] {
        let (code, page) = gateway.admin_get(&page).unwrap();
        assert!(code == 200 && page.contains("no funds on"), "{page}");
    }
}

#[tokio::test]
async fn another_operator_confirms_a_resolution() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let user = |name: &str, token: &str| format!("{{ name = \"{name}\", role = \"operator\", token = \"{token}\" }}");
    let users = format!("users = [{}, {}]", user("ada", ADA), user("bob", BOB));
    let keys = format!("second_operator = true\ntoken = \"token-of-the-process\"\n{users}");
    let gateway = Gateway::start(&rules(&provider.url(), "").with("admin", &keys));
    let id = payout(&gateway, "o-1", "5.10").await;
    eventually("it waits for a report", async || {
        (shown(&gateway, &id, ADA)["waits_for"] == "provider_report").then_some(())
    })
    .await;
    let (_, page) = admin(&gateway, &format!("GET /operations/{id}"), ADA, "");
    assert!(page.contains("Propose this result to another operator?"), "{page}");
    assert_eq!(resolve(&gateway, &id, "token-of-the-process", "FAILED").0, 403, "that is no user of its own");
    let (code, waits) = resolve(&gateway, &id, ADA, "FAILED");
    assert_eq!(code, 202, "{waits}");
    assert_eq!(shown(&gateway, &id, ADA)["waits_for"], "confirmation");
    assert_eq!(status(&gateway, &id).await, "PENDING");
    let confirm = |token: &str, body: &Value| {
        api(&gateway, &format!("POST /api/operations/{id}/confirm"), token, &body.to_string())
    };
    assert_eq!(confirm(BOB, &json!({ "resolution": "5" })).0, 409, "another one waits");
    assert_eq!(confirm(BOB, &json!({})).0, 400);
    assert_eq!(confirm(ADA, &waits).0, 403);
    assert_eq!(confirm(BOB, &waits).0, 200);
    assert_eq!(status(&gateway, &id).await, "FAILED");
    assert_eq!(confirm(BOB, &waits).0, 409, "none waits any more");
    let (_, trail) = api(&gateway, &format!("GET /api/operations/{id}"), ADA, "");
    assert!(trail.to_string().contains("FAILED by ada, confirmed by bob"), "{trail}");
}

#[tokio::test]
async fn an_id_leads_to_its_page_and_the_list_has_pages() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let gateway = Gateway::start(&rules(&provider.url(), ""));
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(payin(&gateway, &format!("o-{number}"), "5.10").await);
    }
    ids.reverse();
    let (mut found, mut query) = (Vec::new(), "merchant=acme&status=PENDING&limit=2".to_owned());
    loop {
        let (_, list) = api(&gateway, &format!("GET /api/operations?{query}"), "", "");
        found.extend(list["operations"].as_array().unwrap().iter().map(|one| text(one, "transaction_id").to_owned()));
        let Some(next) = list["next"].as_str() else { break };
        query = format!("merchant=acme&status=PENDING&limit=2&after={next}");
    }
    assert_eq!(found, ids, "the newest first, each once");
    for order_id in ["o-3", "%20o-3%09"] {
        assert_eq!(listed(&gateway, &format!("order_id={order_id}"))[0]["transaction_id"], ids[1].as_str());
    }
    for wrong in ["limit=0", "limit=201", "status=pending", "created_from=soon", "attention=false", "x=1"] {
        assert_eq!(api(&gateway, &format!("GET /api/operations?{wrong}"), "", "").0, 400, "{wrong}");
    }
    let location = |q: &str| {
        let head = format!("GET /search?q={q} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.admin);
        gateway.admin_head(&head)
    };
    assert_eq!(location(&ids[0]).unwrap(), format!("/operations/{}", ids[0]));
    // A refused request's id is what its caller chose.
    let named = Request::deposit(&ACME, &support::deposit("o-2")).header("x-request-id", "o-2");
    gateway.client().send(&named.replace("X-Signature", Some("00"))).await.expect(401);
    assert_eq!(location("o-2").unwrap(), format!("/operations/{}", ids[2]));
    assert_eq!(location("+o-2+").unwrap(), format!("/operations/{}", ids[2]));
    assert_eq!(location("nothing").unwrap(), "/operations?order_id=nothing");
}

#[tokio::test]
async fn the_command_line_does_not_act_where_the_console_is_read_only() {
    let provider = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    let acting = rules(&provider.url(), "");
    let gateway = Gateway::start(&acting.clone().with("admin", "read_only = true"));
    let id = payout(&gateway, "o-1", "5.10").await;
    let id = id.as_str();
    let resolve = ["operations", "resolve", id, "--status", "FAILED", "--reason", "by the statement"];
    for words in [
        &["operations", "ask", id][..],
        &resolve,
        &["operations", "confirm", id, "--resolution", "7"],
        &["operations", "acknowledge", id],
    ] {
        let ran = run(&gateway, words);
        assert!(ran.code == Some(1) && ran.out.is_empty(), "{words:?}: {:?} {}", ran.code, ran.out);
        assert!(ran.err.contains("admin.read_only is set"), "{words:?}: {}", ran.err);
    }
    assert!(gateway.actions().is_empty(), "{:?}", gateway.actions());
    assert_eq!(status(&gateway, id).await, "PENDING");
    // It looks, and contract section 13 stops no other command.
    for words in [&["operations", "show", id][..], &["operations", "list"], &["callbacks", "resend", "--failed"]] {
        let ran = run(&gateway, words);
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.err);
    }
    acting.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    assert_eq!(run(&gateway, &resolve).code, Some(0));
    assert_eq!(status(&gateway, id).await, "FAILED");
}

#[tokio::test]
async fn the_list_of_what_needs_attention_says_why() {
    let provider = Scripted::start(|_, _| Play::Bytes(Vec::new())).await;
    let gateway = Gateway::start(&impatient(&provider.url()));
    let given_up = payout(&gateway, "o-1", "5.10").await;
    let contradicted = payout(&gateway, "o-2", "6.10").await;
    counted(&gateway, GIVEN_UP, 2).await;
    assert_eq!(resolve(&gateway, &contradicted, "", "FAILED").0, 200);
    report(&gateway, &contradicted, json!({ "status": "SUCCESS" })).await.expect(409);
    let reports = Scripted::start(|_, _| Play::Say(r#"{"status":"PENDING"}"#)).await;
    gateway.reload_with(&rules(&reports.url(), "expected_within = \"1ms\""));
    let late = payout(&gateway, "o-3", "7.10").await;
    for (id, reason) in [(&given_up, "given up"), (&contradicted, "contradicted"), (&late, "late")] {
        let link = format!("href=\"/operations/{id}\"");
        eventually(reason, async || {
            let list = page(&gateway, "/operations?attention=true");
            let row = list.lines().find(|line| line.contains(&link))?.to_owned();
            assert!(row.contains(&format!("needs attention: {reason}<")), "{row}");
            Some(())
        })
        .await;
        assert!(!page(&gateway, &format!("/operations?transaction_id={id}")).contains("needs attention"));
    }
    assert!(listed(&gateway, "attention=true").iter().all(|one| one["attention"].is_string()));
    assert!(listed(&gateway, "").iter().all(|one| one.get("attention").is_none()));
}

#[tokio::test]
async fn a_search_that_finds_no_order_says_that_it_searched_the_merchants_of_the_rules() {
    let all = Rules::default();
    let gateway = Gateway::start(&all);
    let id = payin(&gateway, "o-1", "5.10").await;
    let note = "nly the merchants of the rules were searched";
    assert!(!page(&gateway, "/operations?order_id=o-1").contains(note));
    std::fs::remove_file(gateway.rules_dir().join("merchants/acme.toml")).unwrap();
    gateway.reload_with(&all.without("merchants/acme.toml"));
    let list = page(&gateway, "/operations?order_id=o-1");
    assert!(list.contains(note) && list.contains("No operation matches."), "{list}");
    let ran = run(&gateway, &["operations", "list", "--order-id", "o-1"]);
    assert!(ran.code == Some(0) && ran.err.contains(note) && ran.err.contains("no matching operations"), "{}", ran.err);
    let list = page(&gateway, "/operations?order_id=o-1&merchant=acme");
    assert!(!list.contains(note) && list.contains(&format!("href=\"/operations/{id}\"")), "{list}");
}

#[tokio::test]
async fn the_page_takes_times_as_the_other_lists_of_the_console_do() {
    let gateway = Gateway::start(&Rules::default());
    let id = payin(&gateway, "o-1", "5.10").await;
    let made = shown(&gateway, &id, "");
    let made = text(&made, "created_at");
    let second = format!("{} {}", &made[..10], &made[11..19]);
    let second = second.as_str();
    let is_listed = |filter: &str, time: &str| {
        let list = page(&gateway, &format!("/operations?{filter}={}", encoded(time)));
        assert!(list.contains(&format!("name=\"{filter}\" value=\"{time}\"")), "the form keeps it: {list}");
        list.contains(&format!("href=\"/operations/{id}\""))
    };
    assert!(page(&gateway, "/operations").contains(second), "as it is shown");
    for (time, is_before) in [("24h", true), (second, true), (made, true), ("2020-01-01", true), ("2100-01-01", false)]
    {
        assert_eq!(is_listed("created_from", time), is_before, "{time}");
        assert_eq!(is_listed("created_to", time), !is_before, "{time}");
    }
    for time in ["24h", second] {
        let query = format!("GET /api/operations?created_from={}", encoded(time));
        assert_eq!(api(&gateway, &query, "", "").0, 400, "the API takes a time of RFC 3339 or a date: {time}");
    }
}
