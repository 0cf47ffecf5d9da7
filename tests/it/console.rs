//! The operators' console from outside: its links, and what it shows while something is broken. `callbacks::console` has
//! its actions, `browser` walks it in a real browser.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::support::bodies::with;
use crate::support::gateway::on_postgres;
use crate::support::postgres::Server;
use crate::support::request::ACME;
use crate::support::{Gateway, Request, Rules, eventually, payin, payout};

/// An order id that is a card number by its digits: ids are shown whole.
const CARD: &str = "5500005555555559";

/// The pages of the navigation.
const PAGES: [&str; 8] = ["/", "/rules", "/merchants", "/operations", "/callbacks", "/requests", "/explain", "/audit"];

/// The page at a path, which must be there.
#[track_caller]
pub fn page(gateway: &Gateway, path: &str) -> String {
    let (status, page) = gateway.admin_get(path).expect("a reply");
    assert_eq!(status, 200, "{path}: {page}");
    page
}

/// The pages that links lead to from these, with their HTML.
pub fn crawl(gateway: &Gateway, from: &[&str]) -> BTreeMap<String, String> {
    let link = Regex::new(r#" href="([^"]*)""#).unwrap();
    let mut next: BTreeSet<String> = from.iter().copied().map(str::to_owned).collect();
    let mut pages = BTreeMap::new();
    while let Some(path) = next.pop_first() {
        let html = page(gateway, &path);
        let base = path.split('?').next().unwrap();
        for link in link.captures_iter(&html) {
            let to = link[1].replace("&#x2f;", "/").replace("&amp;", "&");
            let to = if to.starts_with('?') { format!("{base}{to}") } else { to };
            if to.starts_with('/') && !to.starts_with("/console/") && !pages.contains_key(&to) {
                next.insert(to);
            }
        }
        pages.insert(path, html);
        assert!(pages.len() < 200, "links lead on without an end: {:?}", pages.keys());
    }
    pages
}

#[tokio::test]
async fn every_link_leads_to_a_page() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for request in [Request::payin(&ACME, &payin(CARD)), Request::payout(&ACME, &payout("order-2"))] {
        client.send(&request).await.expect(200);
    }
    let metrics = gateway.admin_get("/metrics").unwrap().1;
    assert!(
        metrics.contains("paybridge_commits_total ") && !metrics.contains("paybridge_commits_total 0\n"),
        "{metrics}"
    );
    let pages =
        crawl(&gateway, &["/", &format!("/operations?merchant=acme&order_id={CARD}&direction="), "/merchants/acme"]);
    for (path, html) in &pages {
        assert!(html.len() <= 40 * 1024, "{path} has {} bytes", html.len());
        assert!(html.contains("</h1>"), "{path}: {html}");
    }
    for expected in PAGES {
        assert!(pages.contains_key(expected), "{expected}");
    }
    assert!(pages.keys().any(|path| path.starts_with("/operations/")), "{:?}", pages.keys());
    let found = page(&gateway, &format!("/operations?merchant=acme&order_id={CARD}"));
    assert!(found.contains("PENDING") && found.contains(&format!("value=\"{CARD}\"")), "{found}");
    let of_order = pages.keys().find(|path| path.starts_with("/callbacks?") && path.contains(CARD));
    let callbacks = of_order.and_then(|path| pages.get(path)).expect("a link to the callbacks of the order");
    assert!(callbacks.contains(&format!("value=\"{CARD}\"")), "{callbacks}");
    // Order ids are compared exactly, with the spaces around them.
    client.send(&Request::payin(&ACME, &payin(" order-3 "))).await.expect(200);
    for (order, is_found) in [("+order-3+", true), ("order-3", false)] {
        let found = page(&gateway, &format!("/operations?merchant=acme&order_id={order}"));
        assert_eq!(found.contains("warn\">PENDING"), is_found, "{order}: {found}");
    }
    let members: Vec<String> = (0..3000).map(|number| format!("\"m{number}\":\"{}\"", "1".repeat(20))).collect();
    let form = format!("merchant=acme&kind=payin&body={{{}}}", members.join(","));
    let (status, explained) = gateway.console_post("/explain", "", &form);
    assert!(status == 200 && explained.len() <= 40 * 1024, "{status}: {} bytes", explained.len());
    let (status, refused) = gateway.admin_get("/callbacks?since=yesterday&state=").unwrap();
    assert!(status == 400 && refused.contains("since") && refused.contains("yesterday"), "{refused}");
}

/// The request that a merchant or a customer names, by the page and by the API.
#[tokio::test]
async fn refused_requests_are_found() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let named = |request: Request, id: &str| request.replace("x-request-id", Some(id));
    let without_amount = with(payin(CARD), "amount", None);
    let other_amount = with(payin("order-1"), "amount", Some("11.00".into()));
    for (request, id, status) in [
        (Request::payin(&ACME, &payin("order-1")), "made", 200),
        (Request::payin(&ACME, &without_amount), "refused", 400),
        (Request::payin(&ACME, &other_amount), "conflict", 409),
        (Request::v1_status(&ACME, "payin", "order-9"), "absent", 404),
        (Request::payin(&ACME, &payin("order-2")).replace("x-signature", Some("00")), "forged", 401),
        (Request::new("GET", "/pay/1?expires=1&signature=00", "").header("accept", "application/json"), "page", 403),
        (Request::new("GET", "/nowhere", ""), "no-route", 404),
    ] {
        client.send(&named(request, id)).await.expect(status);
    }
    let listed = |query: &str| -> Vec<serde_json::Value> {
        let (status, body) = gateway.admin_get(&format!("/api/requests{query}")).unwrap();
        assert_eq!(status, 200, "{query}: {body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap()["requests"].as_array().unwrap().clone()
    };
    let ids = |query: &str| -> Vec<String> {
        listed(query).iter().map(|request| request["request_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(""), ["page", "forged", "absent", "conflict", "refused"]);
    assert_eq!(ids("?limit=2"), ["page", "forged"]);
    assert_eq!(ids("?merchant=acme&reason=not_found"), ["absent"]);
    assert!(ids("?request_id=made").is_empty(), "it was not refused");
    let refused = &listed("?request_id=refused")[0];
    for (name, expected) in [
        ("merchant", "acme"),
        ("method", "POST"),
        ("route", "payin"),
        ("reason", "shape"),
        ("member", "amount"),
        ("order_id", CARD),
        ("peer", "127.0.0.1"),
    ] {
        assert_eq!(refused[name], expected, "{refused}");
    }
    assert_eq!((&refused["status"], &refused["transaction_id"]), (&400.into(), &serde_json::Value::Null));
    let conflict = &listed("?request_id=conflict")[0];
    assert!(conflict["order_id"] == "order-1" && conflict["transaction_id"].is_string(), "{conflict}");
    assert_eq!(listed("?request_id=absent")[0]["order_id"], "order-9");
    assert_eq!(listed("?request_id=forged")[0]["order_id"], serde_json::Value::Null, "its body proves nothing");
    let html = page(&gateway, "/requests?request_id=refused");
    assert!(html.contains(CARD) && html.contains("shape") && html.contains("amount"), "{html}");
    assert!(page(&gateway, "/operations?order_id=made").contains("href=\"/requests?request_id=made\""));
    assert!(page(&gateway, "/requests?request_id=made").contains("look in the log"));
    assert_eq!(gateway.admin_get("/api/requests?limit=0").unwrap().0, 400);
    assert_eq!(gateway.admin_get("/requests?merchant=%2F").unwrap().0, 400);
}

/// A value in the body of a form.
pub fn encoded(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}

/// The text of the cells of a page's tables, row by row.
fn cells(html: &str) -> Vec<Vec<String>> {
    let [row, cell, tag] =
        [r"(?s)<tr>(.*?)</tr>", r"(?s)<t[dh][^>]*>(.*?)</t[dh]>", r"<[^>]*>"].map(|text| Regex::new(text).unwrap());
    let text = |html: &str| tag.replace_all(html, "").replace("&#x2f;", "/").replace("&quot;", "\"");
    row.captures_iter(html).map(|row| cell.captures_iter(&row[1]).map(|cell| text(&cell[1])).collect()).collect()
}

#[tokio::test]
async fn an_explanation_shows_addresses_by_one_rule_and_keeps_what_was_pasted() {
    let gateway = Gateway::start(&Rules::default());
    let explain = |merchant: &str, body: &str| {
        gateway.console_post("/explain", "", &format!("merchant={merchant}&kind=payin&body={}", encoded(body)))
    };
    let explained = |merchant: &str, body: &str| {
        let (status, explained) = explain(merchant, body);
        assert_eq!(status, 200, "{explained}");
        assert!(!explained.contains("paste it again"), "{explained}");
        cells(&explained)
    };
    let value = |rows: &[Vec<String>], v1: &str, v2: &str| {
        let found = rows.iter().find(|cells| cells.len() == 5 && cells[0] == v1 && cells[1] == v2);
        found.unwrap_or_else(|| panic!("{v1}, {v2}: {rows:?}"))[2].clone()
    };
    let body = payin("order-1").to_string();
    let rows = explained("acme", &body);
    assert_eq!(value(&rows, "callback_url", "v1 callback"), "\"https://acme.example/cb\"");
    assert_eq!(value(&rows, "paymentData.return_user_url", "success_url"), "\"https://acme.example/done?x=1\"");
    let relay = value(&rows, "none", "callback_url");
    assert!(relay.ends_with("/relay/acme.payin.00000000000000000000000000000000\""), "{relay}");
    let rows = explained("beta", &with(payin("o"), "paymentData.return_user_url", None).to_string());
    assert_eq!(value(&rows, "none", "success_url"), "\"https://beta.example/back\"");
    let long = format!("https://acme.example/{}", "x".repeat(250));
    let rows = explained("acme", &with(payin("o"), "paymentData.return_user_url", Some(long.into())).to_string());
    assert!(value(&rows, "paymentData.return_user_url", "fail_url").ends_with("xxx…"), "{rows:?}");

    // A wrong merchant is named at its field; with the right one the same form is sent again.
    let card = r#"{"external_id":"o","card_number":"4111111111111111"}"#;
    let field = Regex::new(
        r#" name="merchant" list="merchants" value="nowhere"[^>]* aria-invalid="true" aria-describedby="problem">"#,
    );
    let (field, area) = (field.unwrap(), Regex::new("(?s)<textarea[^>]*>\n(.*?)</textarea>").unwrap());
    for (pasted, shown) in [(&*body, &*body), (card, r#"{"external_id":"o","card_number":"411111******1111"}"#)] {
        let (status, refused) = explain("nowhere", pasted);
        assert_eq!(status, 400, "{refused}");
        assert!(field.is_match(&refused) && refused.contains("id=\"problem\""), "{refused}");
        let kept = area.captures(&refused).unwrap()[1].replace("&#x2f;", "/").replace("&quot;", "\"");
        assert_eq!(kept, shown);
        assert_eq!(refused.contains("paste it again"), pasted == card, "{refused}");
    }
}

#[tokio::test]
async fn a_masked_body_is_not_judged() {
    let gateway = Gateway::start(&Rules::default());
    let area = Regex::new("(?s)<textarea([^>]*)>\n(.*?)</textarea>").unwrap();
    let explain = |body: &str| {
        let form = format!("merchant=acme&kind=payout&body={}", encoded(body));
        let (status, html) = gateway.console_post("/explain", "", &form);
        let area = area.captures(&html).unwrap();
        let kept = area[2].replace("&#x2f;", "/").replace("&quot;", "\"");
        (status, area[1].contains("aria-invalid=\"true\""), kept, html.clone())
    };
    let body = with(payout("o"), "merchant_user_id", Some("4111111111111111".into()));
    let body = with(body, "card_number", Some(CARD.into())).to_string();
    let (status, is_marked, masked, html) = explain(&body);
    assert!(status == 200 && !is_marked && html.contains("id=\"outcome\""), "{status} {html}");
    assert!(!html.contains(CARD) && masked.contains("550000******5559"), "{masked}");
    let rows = cells(&html);
    let user = rows.iter().find(|cells| cells.first().is_some_and(|name| name == "merchant_user_id"));
    assert!(user.is_some_and(|cells| cells[2].contains("4111111111111111")), "{rows:?}");
    assert!(masked.contains("4111111111111111"), "an id is shown whole: {masked}");
    let (status, is_marked, kept, html) = explain(&masked);
    assert!(status == 400 && is_marked && !html.contains("id=\"outcome\""), "{status} {html}");
    assert!(html.contains("the card number was masked here. Paste the body again.") && kept == masked, "{html}");
    let long = with(payin("o"), "note", Some("x".repeat(9000).into())).to_string();
    let (_, _, cut, _) = explain(&long);
    let (status, is_marked, _, html) = explain(&cut);
    assert!(status == 400 && is_marked && html.contains("its end was cut here"), "{status} {html}");
}

#[tokio::test]
async fn refused_rules_show_on_every_page() {
    let gateway = Gateway::start(&Rules::default());
    let refused = "The files on disk are refused";
    assert!(PAGES.iter().all(|path| !page(&gateway, path).contains(refused)));
    let broken = Rules::default().edit("merchants/acme.toml", "default_shop", "default_shoe");
    broken.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    assert_eq!(gateway.try_reload().0, 422);
    assert!(PAGES.iter().all(|path| page(&gateway, path).contains(refused)));
    let rules = page(&gateway, "/rules");
    for shown in ["merchants&#x2f;acme.toml:2:1", "default_shoe", "default_shop", "secret"] {
        assert_eq!(rules.contains(shown), shown != "secret", "{shown}: {rules}");
    }
    assert!(page(&gateway, "/").contains("Rules on disk are refused"));
    gateway.reload_with(&Rules::default());
    assert!(!page(&gateway, "/").contains(refused));
}

#[tokio::test]
async fn an_action_without_a_row_is_refused() {
    let gateway = Gateway::start(&Rules::default());
    gateway.tamper("ALTER TABLE actions RENAME TO gone");
    let changed = Rules::default().edit("merchants/acme.toml", "Acme Ltd", "Acme and Sons");
    changed.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    let version = |gateway: &Gateway| gateway.admin_get("/api/rules").unwrap().1;
    let (before, (status, refused)) = (version(&gateway), gateway.console_post("/rules/reload", "", "form="));
    assert!(status == 503 && refused.contains("href=\"/\""), "{refused}");
    assert_eq!(gateway.try_reload().0, 503);
    let row = "the watcher loads them later, without an action";
    eventually(row, async || (version(&gateway) != before).then_some(())).await;
    gateway.tamper("ALTER TABLE gone RENAME TO actions");
    assert!(gateway.actions().is_empty(), "{:?}", gateway.actions());
    assert_eq!(gateway.try_reload().0, 200);
    assert_eq!(gateway.actions().len(), 1);
}

/// Only where the store is a server, it can be away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_store_the_console_says_so() {
    if !on_postgres() {
        return;
    }
    let Some(mut server) = Server::start(&[]) else { return };
    let mut gateway = Gateway::prepare_on(&Rules::default(), Some(server.database().into()));
    gateway.spawn();
    assert!(gateway.wait_ready());
    server.stop_at_once();
    let banner = "New requests are not accepted here";
    eventually("the banner", async || page(&gateway, "/rules").contains(banner).then_some(())).await;
    for path in PAGES {
        let (status, html) = gateway.admin_get(path).expect("a reply");
        let needs_the_store = ["/audit", "/callbacks", "/operations"].contains(&path);
        assert_eq!(status, if needs_the_store { 503 } else { 200 }, "{path}: {html}");
        assert!(html.contains(banner) && html.contains(">Rules</a>"), "{path}: {html}");
    }
    assert!(page(&gateway, "/").contains("The store does not respond"));
    assert_eq!(gateway.console_post("/rules/reload", "", "form=").0, 503);
    server.start_again();
    eventually("no banner", async || (!page(&gateway, "/rules").contains(banner)).then_some(())).await;
    gateway.console_act("/rules/reload", "form=");
}
