//! v1's status, balance and history over the wire: shapes byte for byte, filters, pages, and the merchant's own rows only
//! (contract section 4).

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::client::Connection;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_PLAIN_ONLY, ACME_V2, BETA, GAMMA, Key, PROTOCOLS};
use crate::support::stored::Create;
use crate::support::{self, Client, Gateway, Reply, Request, Rules, eventually, payin, payout, text};

/// A history question, percent-encoding left to the caller.
fn history(key: &Key, query: &str) -> Request {
    Request::v1_get(key, &format!("/api/v1/transactions{query}"))
}

async fn page(client: &Client, key: &Key, query: &str) -> Value {
    client.send(&history(key, query)).await.expect(200).json()
}

/// The `external_id`s of a page, as `payin a`.
fn names(page: &Value) -> Vec<String> {
    let lines = page["transactions"].as_array().unwrap();
    lines.iter().map(|line| format!("{} {}", text(line, "type"), text(line, "external_id"))).collect()
}

async fn balance(client: &Client, key: &Key) -> String {
    client.send(&Request::v1_get(key, "/api/v1/balance")).await.expect(200).text()
}

async fn status_is(client: &Client, key: &Key, kind: &str, id: &str, word: &str) -> Value {
    eventually(word, async || {
        let status = client.send(&Request::v1_status(key, kind, id)).await.expect(200).json();
        (status["status"] == word).then_some(status)
    })
    .await
}

/// Creates of several shops, currencies and results, oldest first.
async fn some_history(client: &Client) {
    Create::Payin.create(client, &ACME, &payin("p-card")).await;
    Create::Payout.create(client, &ACME, &payout("w-card")).await;
    let failed = with(payin("p-failed"), "amount", Some("3.01".into()));
    Create::Payin.create(client, &ACME, &failed).await;
    let slow = with(payout("w-slow"), "shop_code", Some("slow-eur".into()));
    Create::Payout.create(client, &ACME, &slow).await;
    let plain = with(with(payin("both"), "shop_code", Some("plain-usd".into())), "currency", Some("usd".into()));
    Create::Payin.create(client, &ACME, &plain).await;
    let unnamed = with(with(payout("both"), "shop_code", None), "amount", Some("8.02".into()));
    Create::Payout.create(client, &ACME, &unnamed).await;
    Create::Deposit.create(client, &ACME, &support::deposit("native")).await;
    Create::Payin.create(client, &BETA, &payin("theirs")).await;
    status_is(client, &ACME, "payout", "w-card", "SUCCESS").await;
}

/// All of it, newest first.
const ALL: [&str; 6] =
    ["payout both", "payin both", "payout w-slow", "payin p-failed", "payout w-card", "payin p-card"];

#[tokio::test]
async fn a_history_has_the_contracts_shape_byte_for_byte() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let empty = client.send(&history(&ACME, "")).await.expect(200);
    assert_eq!(empty.text(), r#"{"transactions":[],"page":1,"per_page":50,"has_more":false}"#);
    Create::Payin.create(&client, &ACME, &payin("a\"é/1")).await;
    Create::Payout.create(&client, &ACME, &payout("w")).await;
    let withdrawal = status_is(&client, &ACME, "payout", "w", "SUCCESS").await;
    for protocol in PROTOCOLS {
        let reply = client.send_by(protocol, &history(&ACME, "")).await.expect(200);
        assert_eq!(reply.header("cache-control"), "no-store");
        let stated = reply.json();
        let created_at = |at: usize| text(&stated["transactions"][at], "created_at").to_owned();
        let (first, second) = (created_at(1), created_at(0));
        for at in [&first, &second] {
            assert!(at.len() == 24 && &at[19..20] == "." && at.ends_with('Z'), "{at}");
        }
        let deposit = text(&stated["transactions"][1], "transaction_id");
        let withdrawal = text(&withdrawal, "transaction_id");
        assert_eq!(
            reply.text(),
            format!(
                r#"{{"transactions":[{{"transaction_id":"{withdrawal}","external_id":"w","status":"SUCCESS","amount":"7.25","currency":"EUR","shop_code":"card-eur","account_number":"400012******1234","type":"payout","created_at":"{second}"}},{{"transaction_id":"{deposit}","external_id":"a\"é/1","status":"PENDING","amount":"10.50","currency":"EUR","shop_code":"card-eur","type":"payin","created_at":"{first}"}}],"page":1,"per_page":50,"has_more":false}}"#
            )
        );
    }
}

#[tokio::test]
async fn every_filter_leaves_what_it_names() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    some_history(&client).await;
    let rows: &[(&str, &[&str])] = &[
        ("", &ALL),
        ("?", &ALL),
        ("?&&", &ALL),
        ("?type=payin", &["payin both", "payin p-failed", "payin p-card"]),
        ("?type=payout", &["payout both", "payout w-slow", "payout w-card"]),
        ("?status=SUCCESS", &["payout w-card"]),
        ("?status=FAILED", &["payin p-failed"]),
        ("?status=PENDING", &["payout both", "payin both", "payout w-slow", "payin p-card"]),
        ("?shop_code=slow-eur", &["payout w-slow"]),
        ("?shop_code=card-eur&type=payout", &["payout both", "payout w-card"]),
        ("?shop_code=Card-eur", &[]),
        ("?shop_code=never-was", &[]),
        ("?currency=USD", &["payin both"]),
        ("?currency=usd", &["payin both"]),
        ("?currency=KES", &[]),
        ("?external_id=both", &["payout both", "payin both"]),
        ("?external_id=both&type=payin", &["payin both"]),
        ("?external_id=both&currency=EUR", &["payout both"]),
        ("?external_id=both&shop_code=plain-usd", &["payin both"]),
        ("?external_id=both&status=FAILED", &[]),
        ("?external_id=both&per_page=1&page=2", &["payin both"]),
        ("?external_id=both&page=2", &[]),
        ("?external_id=both&created_to=2020-01-01T00:00:00Z", &[]),
        ("?external_id=p%2Dcard&created_from=2020-01-01T00:00:00Z", &["payin p-card"]),
        ("?external_id=p-card&", &["payin p-card"]),
        ("?external%5Fid=p-card", &["payin p-card"]),
        ("?external_id=P-card", &[]),
        ("?external_id=native", &[]),
        ("?external_id=theirs", &[]),
        ("?external_id=never-was", &[]),
        ("?type=payin&status=PENDING&currency=eur&shop_code=card-eur", &["payin p-card"]),
        ("?created_from=2020-01-01T00:00:00Z", &ALL),
        ("?created_to=2020-01-01T00:00:00%2B02:00", &[]),
        ("?created_from=2020-01-01T00:00:00+02:00&created_to=2999-01-01T00:00:00-02:00", &ALL),
        ("?created_from=2999-01-01T00:00:00Z&created_to=2020-01-01T00:00:00Z", &[]),
    ];
    for (query, expected) in rows {
        assert_eq!(names(&page(&client, &ACME, query).await), *expected, "{query}");
    }
    // The merchant's own rows only, whichever of its keys asks.
    assert_eq!(names(&page(&client, &BETA, "").await), ["payin theirs"]);
    assert_eq!(names(&page(&client, &GAMMA, "").await), Vec::<String>::new());
    assert_eq!(names(&page(&client, &ACME_PLAIN_ONLY, "").await), ALL);
    client.send(&history(&ACME_V2, "")).await.expect(401);
}

#[tokio::test]
async fn a_creation_time_finds_its_operation_and_is_included_on_both_sides() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    some_history(&client).await;
    let all = page(&client, &ACME, "").await;
    for line in all["transactions"].as_array().unwrap() {
        let at = text(line, "created_at");
        let named = format!("{} {}", text(line, "type"), text(line, "external_id"));
        for query in [
            format!("?created_from={at}&created_to={at}"),
            format!("?created_from={at}&created_to={at}&external_id={}", text(line, "external_id")),
        ] {
            assert!(names(&page(&client, &ACME, &query).await).contains(&named), "{named} at {at}: {query}");
        }
        // A microsecond later it is out of reach, on the one side and on the other.
        let finer = format!("{}001Z", at.trim_end_matches('Z'));
        assert!(!names(&page(&client, &ACME, &format!("?created_from={finer}")).await).contains(&named));
        assert!(names(&page(&client, &ACME, &format!("?created_to={finer}")).await).contains(&named));
    }
}

#[tokio::test]
async fn a_malformed_parameter_is_400_and_named() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut connection = client.connect().await;
    let long = "x".repeat(256);
    let rows: &[(&str, &[&str])] = &[
        ("type", &["", "deposit", "PAYIN", "payin,payout", "payin%20", "%ff", "%4"]),
        ("status", &["", "success", "DONE", "PENDING%00", "SUCCESS%2CFAILED"]),
        ("shop_code", &["", "card%20eur", ".card", "a%2Fb", "%C3%A9"]),
        ("currency", &["", "EU", "EURO", "E1R", "978", "EUR%20"]),
        ("external_id", &["", "%00", "%ff", "%", "%e", &long]),
        ("created_from", &["", "today", "2026-01-02", "1767323045", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"]),
        ("created_to", &["", "2026-01-02%2003:04:05Z", "2026-02-30T00:00:00Z", "2026-01-02T03:04:05Z[UTC]"]),
        ("page", &["", "0", "-1", "+1", "1.0", "1e3", "one", "0x1", "%D9%A1", "18446744073709551616", "1%00"]),
        ("per_page", &["", "0", "201", "-1", "50.0", "all", "4294967346", "99999999999999999999"]),
    ];
    for (name, values) in rows {
        for value in *values {
            let reply = connection.send(&history(&ACME, &format!("?{name}={value}"))).await;
            let message = reply.expect(400).message();
            assert!(message.starts_with(&format!("{name}: ")), "{name}={value}: {message}");
        }
        for doubled in [format!("?{name}=1&{name}=1"), format!("?{name}"), format!("?page=1&per_page=1&{name}&")] {
            let message = connection.send(&history(&ACME, &doubled)).await.expect(400).message();
            assert!(message.starts_with(&format!("{name}: ")), "{doubled}: {message}");
        }
    }
    for (query, name) in [
        ("?limit=10", "limit"),
        ("?offset=0&page=1", "offset"),
        ("?Type=payin", "Type"),
        ("?type%5B%5D=payin", "(a member whose name cannot be shown)"),
        ("?page[]=1", "page[]"),
        ("?external_id=a&transaction_id=1", "transaction_id"),
        ("?=1", "(a member whose name cannot be shown)"),
        ("?%ff=1", "the names of query parameters"),
        ("?4111111111111111=1", "(a member whose name cannot be shown)"),
    ] {
        let message = connection.send(&history(&ACME, query)).await.expect(400).message();
        assert!(message.starts_with(name) || message.starts_with("type[]"), "{query}: {message}");
    }
}

#[tokio::test]
async fn pages_tile_the_history_exactly() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut connection = client.connect().await;
    let mut created = Vec::new();
    for number in 0..23 {
        let (kind, body) = if number % 3 == 0 {
            (Create::Payout, payout(&format!("o{number}")))
        } else {
            (Create::Payin, payin(&format!("o{number}")))
        };
        connection.send(&kind.request(&ACME, body.to_string())).await.expect(200);
        let kind = if number % 3 == 0 { "payout" } else { "payin" };
        created.push(format!("{kind} o{number}"));
    }
    let whole = connection.send(&history(&ACME, "?per_page=200")).await.expect(200).json();
    let expected = names(&whole);
    assert_newest_first(&whole);
    assert!(created.iter().all(|name| expected.contains(name)) && created.len() == expected.len(), "{whole}");
    let payins: Vec<_> = expected.iter().filter(|name| name.starts_with("payin")).cloned().collect();
    for (filter, expected) in [("", &expected), ("&type=payin", &payins)] {
        for per_page in [1, 2, 5, 7, 22, 23, 24, 200] {
            assert_tiles(&mut connection, filter, per_page, expected).await;
        }
    }
    for number in ["24", "9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        let far = connection.send(&history(&ACME, &format!("?page={number}&per_page=200"))).await.expect(200);
        let expected = format!(r#"{{"transactions":[],"page":{number},"per_page":200,"has_more":false}}"#);
        assert_eq!(far.text(), expected);
    }
}

/// Those of one millisecond are in an order of their own, always the same.
#[track_caller]
fn assert_newest_first(page: &Value) {
    let times: Vec<_> = page["transactions"].as_array().unwrap().iter().map(|line| text(line, "created_at")).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
}

async fn assert_tiles(connection: &mut Connection, filter: &str, per_page: usize, expected: &[String]) {
    let mut seen = Vec::new();
    for number in 1.. {
        let query = format!("?page={number}&per_page={per_page}{filter}");
        let page = connection.send(&history(&ACME, &query)).await.expect(200).json();
        assert_eq!((&page["page"], &page["per_page"]), (&json!(number), &json!(per_page)));
        let names = names(&page);
        let more = page["has_more"].as_bool().unwrap();
        seen.extend(names.iter().cloned());
        assert_eq!(more, seen.len() < expected.len(), "{query}: has_more");
        assert!(names.len() == per_page || !more, "{query}: only the last page may be short");
        if !more {
            break;
        }
    }
    assert_eq!(seen, expected, "{filter} {per_page}");
}

#[tokio::test]
async fn a_balance_has_the_contracts_shape_byte_for_byte() {
    let opening = "[balance]\nopening = { EUR = \"130.00\" }\n[v1]";
    let rules = Rules::default().edit("merchants/gamma.toml", "[v1]", opening);
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    let one = |available: &str, held: &str| {
        format!(r#"{{"balances":[{{"currency":"EUR","available":"{available}","held":"{held}"}}]}}"#)
    };
    // Opened by the question itself: there was no operation yet.
    assert_eq!(balance(&client, &GAMMA).await, one("130.00", "0.00"));
    let held = with(payout("held"), "amount", Some("10.02".into()));
    Create::Payout.create(&client, &GAMMA, &held).await;
    assert_eq!(balance(&client, &GAMMA).await, one("119.98", "10.02"));
    let over = with(payout("over"), "amount", Some("120.02".into()));
    Create::Payout.create(&client, &GAMMA, &over).await;
    for protocol in PROTOCOLS {
        let request = Request::v1_get(&GAMMA, "/api/v1/balance?currency=USD&x=%zz");
        let reply = client.send_by(protocol, &request).await.expect(200);
        assert_eq!(reply.text(), one("-0.04", "130.04"), "below zero where it is not enforced; queries are ignored");
    }
    assert_eq!(balance(&client, &BETA).await, one("0.00", "0.00"), "a new merchant has nothing of what it could have");
    let several = r#"{"balances":[{"currency":"EUR","available":"0.00","held":"0.00"},{"currency":"KES","available":"0.00","held":"0.00"},{"currency":"USD","available":"0.00","held":"0.00"}]}"#;
    assert_eq!(balance(&client, &ACME).await, several, "sorted by currency");
    assert_eq!(balance(&client, &ACME_PLAIN_ONLY).await, several, "the merchant's, whichever of its keys asks");
    let native = support::withdrawal("native");
    Create::Withdrawal.create(&client, &ACME, &native).await;
    status_of_native(&client, &native).await;
    assert!(balance(&client, &ACME).await.contains(r#""EUR","available":"-7.25","held":"0.00""#), "v1 and v2 share it");
    client.send(&Request::v1_get(&ACME_V2, "/api/v1/balance")).await.expect(401);
}

/// Waits until the withdrawal is taken, by its repeat's id.
async fn status_of_native(client: &Client, body: &Value) {
    let created = Create::Withdrawal.create(client, &ACME, body).await.json();
    let id = text(&created, "transaction_id").to_owned();
    eventually("the withdrawal succeeds", async || {
        let record = client.send(&Request::status(&ACME, &id)).await.expect(200).json();
        (record["status"] == "SUCCESS").then_some(())
    })
    .await;
}

/// Whatever comes first opens the ledger, and only that.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_questions_and_creates_open_one_ledger() {
    let balance_rules = "[balance]\nenforce = true\nopening = { EUR = \"100.00\" }\n[v1]";
    let mut gateway = Gateway::start(&Rules::default().edit("merchants/gamma.toml", "[v1]", balance_rules));
    let client = gateway.client();
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                if number % 2 == 0 {
                    return assert_adds_up(&balance(&client, &GAMMA).await);
                }
                let body = with(payout(&format!("w{number}")), "amount", Some("10.02".into()));
                Create::Payout.create(&client, &GAMMA, &body).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let expected = r#"{"balances":[{"currency":"EUR","available":"9.82","held":"90.18"}]}"#;
    assert_eq!(balance(&client, &GAMMA).await, expected, "nine are covered");
    gateway.kill();
    gateway.restart();
    assert_eq!(balance(&client, &GAMMA).await, expected);
}

fn assert_adds_up(balance: &str) {
    let balance: Value = serde_json::from_str(balance).unwrap();
    let hundredths = |name| text(&balance["balances"][0], name).replace('.', "").parse::<u64>().unwrap();
    assert_eq!(hundredths("available") + hundredths("held"), 10_000, "{balance}");
}

#[tokio::test]
async fn the_end_of_v1_is_announced_on_every_reply() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    Create::Payin.create(&client, &GAMMA, &payin("p")).await;
    for (target, status) in [
        ("/api/v1/balance", 200),
        ("/api/v1/transactions", 200),
        ("/api/v1/transactions?what=1", 400),
        ("/api/v1/payin/status?external_id=p", 200),
        ("/api/v1/payin/status?external_id=q", 404),
        ("/api/v1/payin/status", 400),
    ] {
        for protocol in PROTOCOLS {
            let request = Request::v1_get(&GAMMA, target).header("X-Request-Id", "asked-7");
            let reply = client.send_by(protocol, &request).await.expect(status);
            assert_eq!(reply.header("x-request-id"), "asked-7");
            assert_eq!(reply.header("deprecation"), "@1782777600", "{target}");
            assert_eq!(reply.header("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT", "{target}");
            assert!(reply.all("link").join(",").contains("<https://docs.example/v2>"), "{reply:?}");
        }
        let unproven = Request::v1_get(&GAMMA, target).replace("X-Signature", Some(&"0".repeat(64)));
        let reply = client.send(&unproven).await.expect(401);
        assert!(reply.all("deprecation").is_empty() && reply.all("sunset").is_empty(), "{reply:?}");
        let posted = client.send(&Request::v1_post(&GAMMA, target.split('?').next().unwrap(), "{}")).await.expect(405);
        assert_eq!(posted.header("allow"), "GET");
    }
}

#[tokio::test]
async fn a_status_asks_for_one_order() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    Create::Payin.create(&client, &ACME, &payin("a+b c&d")).await;
    Create::Payin.create(&client, &ACME, &with(payin("default"), "shop_code", None)).await;
    let get = |query: &str| Request::v1_get(&ACME, &format!("/api/v1/payin/status?{query}"));
    for found in [
        "external_id=a%2Bb+c%26d",
        "external_id=a%2bb%20c%26d&shop_code=card-eur",
        "shop_code=card-eur&&external%5Fid=a%2Bb+c%26d&",
        "_=1767323045&external_id=a%2Bb+c%26d&%zz=%ff&utm_source=old&_=2",
    ] {
        let status = client.send(&get(found)).await.expect(200).json();
        assert_eq!(text(&status, "external_id"), "a+b c&d", "{found}");
    }
    client.send(&get("external_id=default&shop_code=card-eur")).await.expect(200);
    let unknown = client.send(&get("external_id=unknown")).await.expect(404);
    client.send(&get("external_id=default&shop_code=")).await.expect(200);
    for absent in ["external_id=default&shop_code=%20", "external_id=default+"] {
        assert_same(&client.send(&get(absent)).await.expect(404), &unknown);
    }
    for malformed in ["external_id=default&shop_code=%ff", "external_id=%f", "external_id=default&external_id=default"]
        .into_iter()
        .chain(["external_id=default&shop_code=card-eur&shop_code=card-eur", "external_id", "external_id=a%00"])
    {
        client.send(&get(malformed)).await.expect(400);
    }
}

const OTHER: &str = r#"
[routes]
payin_status = "GET /old/find"
balance = "GET /old/money"
transactions = "GET /old/list"

[statuses]
PENDING = "in work"
SUCCESS = "Done"
FAILED = "done"

[replies]
status = '{"no":{{ external_id }},"kind":{{ type }},"at":{{ created_at }}}'
balance = '''{ {%- for b in balances %}{% if not loop.first %},{% endif %}{{ b.currency }}:{"free":{{ b.available }},"busy":{{ b.held }}}{% endfor -%} }'''
transactions = '''
{"rows": [
  {%- for t in transactions %}
  {"no": {{ t.external_id }}, "id": {{ t.transaction_id }}, "state": {{ t.status }}, "kind": {{ t.type }},
   "money": {"value": {{ t.amount }}, "unit": {{ t.currency }}}, "shop": {{ t.shop_code }}, "at": {{ t.created_at }}
   {%- if t.account_number %}, "account": {{ t.account_number }}{% endif %}}{% if not loop.last %},{% endif %}
  {%- endfor %}],
 "paging": {"number": {{ page }}, "size": {{ per_page }}, "next": {% if has_more %}{{ page + 1 }}{% else %}null{% endif %}}}
'''
"#;

fn other_rules() -> Rules {
    let acme = "name = \"Acme Ltd\"";
    Rules::default().file("dialects/other.toml", OTHER).edit(
        "merchants/acme.toml",
        acme,
        &format!("{acme}\nv1.dialect = \"other\""),
    )
}

#[tokio::test]
async fn another_dialect_has_its_own_words_and_shapes() {
    let gateway = Gateway::start(&other_rules());
    let client = gateway.client();
    let get = |target: &str| Request::v1_get(&ACME, target);
    let none = client.send(&get("/old/list")).await.expect(200).json();
    assert_eq!(none, json!({ "rows": [], "paging": { "number": 1, "size": 50, "next": null } }));
    Create::Payin.create(&client, &ACME, &payin("p")).await;
    Create::Payout.create(&client, &ACME, &payout("w")).await;
    Create::Payin.create(&client, &ACME, &with(payin("f"), "amount", Some("1.01".into()))).await;
    let done = eventually("the withdrawal is done", async || {
        let list = client.send(&get("/old/list?status=Done")).await.expect(200).json();
        list["rows"].as_array().unwrap().first().cloned()
    })
    .await;
    let at = text(&done, "at").to_owned();
    assert_eq!(
        done,
        json!({ "no": "w", "id": done["id"], "state": "Done", "kind": "payout",
                "money": { "value": "7.25", "unit": "EUR" }, "shop": "card-eur", "at": at,
                "account": "400012******1234" })
    );
    let states = |query: &'static str| {
        let (client, request) = (client.clone(), get(&format!("/old/list{query}")));
        async move {
            let list = client.send(&request).await.expect(200).json();
            let rows = list["rows"].as_array().unwrap();
            rows.iter().map(|row| format!("{} {}", text(row, "no"), text(row, "state"))).collect::<Vec<_>>()
        }
    };
    assert_eq!(states("").await, ["f done", "w Done", "p in work"]);
    assert_eq!(states("?status=in+work").await, ["p in work"]);
    assert_eq!(states("?status=done").await, ["f done"]);
    for word in ["DONE", "PENDING", "SUCCESS", "In%20work"] {
        client.send(&get(&format!("/old/list?status={word}"))).await.expect(400);
    }
    let paged = client.send(&get("/old/list?per_page=2")).await.expect(200).json();
    assert_eq!(paged["paging"], json!({ "number": 1, "size": 2, "next": 2 }));
    let money = client.send(&get("/old/money")).await.expect(200).json();
    let nothing = json!({ "free": "0.00", "busy": "0.00" });
    assert_eq!(money, json!({ "EUR": { "free": "-7.25", "busy": "0.00" }, "KES": nothing, "USD": nothing }));
    let payout = client.send(&get("/old/find?external_id=w")).await;
    assert_eq!(payout.status, 404, "at the payins' status");
    let payin = client.send(&get("/old/find?external_id=p")).await.expect(200).json();
    assert_eq!((text(&payin, "kind"), text(&payin, "at").len()), ("payin", 24));
    client.send(&get("/api/v1/transactions")).await.expect(404);
}

/// The largest page, through a template that says all there is, keeps within a template's bounds.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_page_is_rendered_by_a_template() {
    let gateway = Gateway::start(&other_rules());
    let client = gateway.client();
    let tasks: Vec<_> = (0..8).map(|lane| tokio::spawn(fill(client.clone(), lane))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let get = |query: &str| Request::v1_get(&ACME, &format!("/old/list{query}"));
    let first: Reply = client.send(&get("?per_page=200")).await.expect(200);
    let list = first.json();
    assert_eq!(list["rows"].as_array().unwrap().len(), 200);
    assert_eq!(list["paging"], json!({ "number": 1, "size": 200, "next": 2 }));
    let rest = client.send(&get("?per_page=200&page=2")).await.expect(200).json();
    assert_eq!(rest["rows"].as_array().unwrap().len(), 8);
    assert_eq!(rest["paging"], json!({ "number": 2, "size": 200, "next": null }));
    assert!(!gateway.log().contains("default shape"), "no template failed");
}

/// Creates a lane's share of 208 withdrawals.
async fn fill(client: Client, lane: usize) {
    let mut connection = client.connect().await;
    for number in 0..26 {
        let body = payout(&format!("lane-{lane}-{number}")).to_string();
        connection.send(&Create::Payout.request(&ACME, body)).await.expect(200);
    }
}
