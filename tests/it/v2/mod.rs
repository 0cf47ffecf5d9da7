//! v2 over the wire: creates, repeats, refusals and the status, as docs/promise.md and contract section 7 word them.

mod accounts;
mod amounts;
mod authentication;
mod documents;
mod enabled;
mod fields;
mod names;
mod status;
mod table;
mod urls;

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_PLAIN_ONLY, ACME_V2, BETA, PROTOCOLS};
use crate::support::stored::{CREATES, Create};
use crate::support::{self, Client, Gateway, Reply, Request, Rules, deposit, eventually, payin, text, withdrawal};

const KINDS: [Create; 2] = [Create::Deposit, Create::Withdrawal];

#[tokio::test]
async fn deposits_and_withdrawals_are_created_and_shown() {
    let gateway = Gateway::start(&Rules::default());
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let client = gateway.client();
        let id = format!("order-{number}");
        let created = client.send_by(protocol, &Request::deposit(&ACME_V2, &deposit(&id))).await.expect(200).json();
        let transaction_id = text(&created, "transaction_id");
        let link = format!("https://localhost:{}/pay/{transaction_id}?expires=", gateway.public.port());
        let rest = text(&created, "redirect_url").strip_prefix(&link).expect("a signed entry link");
        let (expires, signature) = rest.split_once("&signature=").expect("a signature at the end");
        assert!(expires.parse::<u64>().unwrap() > support::request::unix_now());
        assert!(signature.len() == 64 && signature.bytes().all(|b| b.is_ascii_hexdigit()));
        let status = client.send_by(protocol, &Request::status(&ACME, transaction_id)).await.expect(200);
        assert_eq!(
            status.json(),
            json!({ "order_id": id, "transaction_id": transaction_id, "status": "PENDING", "amount": 10.5,
                    "currency": "EUR", "method": "card-eur" })
        );
        assert!(status.text().contains("10.5,") || status.text().contains("10.5}"), "no trailing zeros");

        let created = client.send_by(protocol, &Request::withdrawal(&ACME, &withdrawal(&id))).await.expect(200).json();
        assert_eq!(created.as_object().unwrap().len(), 1, "{created}");
        let record = finished(&client, text(&created, "transaction_id")).await;
        assert_eq!(
            record,
            json!({ "order_id": id, "transaction_id": created["transaction_id"], "status": "SUCCESS", "amount": 7.25,
                    "currency": "EUR", "method": "card-eur", "account_number": "400012******1234" })
        );
    }
}

async fn finished(client: &Client, transaction_id: &str) -> Value {
    eventually("a terminal status", async || {
        let record = client.send(&Request::status(&ACME, transaction_id)).await.expect(200).json();
        (record["status"] != "PENDING").then_some(record)
    })
    .await
}

async fn record(client: &Client, created: &Reply) -> Value {
    client.send(&Request::status(&ACME, text(&created.json(), "transaction_id"))).await.expect(200).json()
}

// keeps P026, P027, P124
#[tokio::test]
async fn the_method_of_the_status_follows_what_was_sent() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let omitted = with(deposit("omitted"), "method", None);
    let created = Create::Deposit.create(&client, &ACME, &omitted).await;
    assert_eq!(text(&record(&client, &created).await, "method"), "card", "the shop's payment method");
    // The default shop of a key's merchant, in a world where it has no payment method.
    let plain = Gateway::start(&Rules::default().edit("shops/card-eur.toml", "payment_method = \"card\"\n", ""));
    let created = Create::Deposit.create(&plain.client(), &ACME, &omitted).await;
    assert_eq!(text(&record(&plain.client(), &created).await, "method"), "unknown");
    let body = with(deposit("none"), "method", None).to_string();
    Create::Deposit.assert_refused(&client, &BETA, "none", body, 400).await;
}

#[tokio::test]
async fn every_member_is_checked() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let urls = [
        "",
        "acme.example/cb",
        "/cb",
        "https:",
        "https://",
        "https:///cb",
        "https:acme.example",
        "ftp://acme.example/",
        "https://u@acme.example/",
        "https://u:p@acme.example/",
        "https://acme.example/a b",
        " https://acme.example/",
        "https://acme.example/\t",
        "https://acme.example/\n",
        "https://acme.example\\cb",
        "https://acme.example/\u{7f}",
        "https://acme.example/\u{a0}",
        "https://жж.example/",
        "https://acme.example/%zz",
        "https://acme.example:99999/",
        "https://[::1/",
        "https://@acme.example/",
    ];
    let urls: Vec<Value> = urls.into_iter().map(Value::from).chain([json!(null), json!(7), json!({})]).collect();
    let plain_http = vec![json!("http://acme.example/cb")];
    let long_url = vec![json!(format!("https://acme.example/{}", "x".repeat(2028)))];
    let currencies =
        vec![json!("EU"), json!("EURO"), json!(""), json!("E R"), json!("ЕUR"), json!(978), json!(null), json!("USD")];
    let methods = vec![
        json!(""),
        json!("nowhere"),
        json!("card-eur "),
        json!("CARD-EUR"),
        json!(1),
        json!(null),
        json!("off-eur"),
        json!("beta-only"),
    ];
    let accounts_ids = vec![json!("42"), json!(1.5), json!(true), json!([]), json!({})];
    let fields = vec![json!([]), json!(null), json!("x"), json!(1), json!(true)];
    let amounts = vec![
        json!("10.50"),
        json!(0),
        json!(-1),
        json!(0.001),
        json!(10.555),
        json!(null),
        json!(true),
        json!([10]),
        json!({}),
    ];
    let mut rows: Vec<(Create, &str, &[Value])> = Vec::new();
    for kind in KINDS {
        rows.extend([
            (kind, "amount", &amounts[..]),
            (kind, "currency", &currencies),
            (kind, "method", &methods),
            (kind, "customer_account_id", &accounts_ids),
            (kind, "callback_url", &urls),
            (kind, "callback_url", &plain_http),
            (kind, "callback_url", &long_url),
            (kind, "fields", &fields),
        ]);
    }
    for member in ["success_url", "pending_url", "fail_url"] {
        rows.extend([(Create::Deposit, member, &urls[..]), (Create::Deposit, member, &long_url)]);
    }
    let stray = vec![json!("x"), json!(null)];
    for (kind, member) in [
        (Create::Deposit, "return_user_url"),
        (Create::Deposit, "merchant_user_ip"),
        (Create::Deposit, "external_id"),
        (Create::Deposit, "account_number"),
        (Create::Deposit, "Amount"),
        (Create::Deposit, ""),
        (Create::Withdrawal, "success_url"),
        (Create::Withdrawal, "merchant_user_ip"),
        (Create::Withdrawal, "card_number"),
    ] {
        rows.push((kind, member, &stray));
    }
    let accounts = [json!(""), json!(null), json!(4_000_123_412_341_i64), json!("40001234123"), json!("+254712345678")];
    let more_accounts = vec![json!("40001234123412341234"), json!("4000 1234 1234"), json!("4000123412341234\n")];
    rows.extend([
        (Create::Withdrawal, "account_number", &accounts[..]),
        (Create::Withdrawal, "account_number", &more_accounts),
    ]);
    let channels = vec![json!(""), json!("x".repeat(65)), json!(1), json!(null)];
    rows.push((Create::Withdrawal, "account_channel", &channels));
    for (row, (kind, member, values)) in rows.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            refused_member(&client, *kind, &format!("bad-{row}-{column}"), member, value).await;
        }
    }
}

async fn refused_member(client: &Client, kind: Create, id: &str, member: &str, value: &Value) {
    let body = with(kind.body(id), member, Some(value.clone())).to_string();
    let reply = client.send(&kind.request(&ACME, body)).await;
    assert_eq!(reply.status, 400, "{kind:?} {member} {value}: {}", reply.text());
    let message = reply.message();
    let last = member.rsplit('.').next().unwrap();
    assert!(message.contains(last), "{member} {value} is not named: {message}");
    if let Some(text) = value.as_str().filter(|text| text.len() > 8 && !text.contains(' ')) {
        assert!(!message.contains(text), "{text} is echoed: {message}");
    }
    kind.assert_nothing_stored(client, &ACME, id).await;
}

#[tokio::test]
async fn required_members_may_not_be_missing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let common = ["amount", "currency", "callback_url"];
    let of_deposits = common.iter().chain(&["success_url", "pending_url", "fail_url"]);
    let rows = of_deposits
        .map(|m| (Create::Deposit, m))
        .chain(common.iter().chain(&["account_number"]).map(|m| (Create::Withdrawal, m)));
    for (kind, member) in rows {
        let id = format!("absent-{member}");
        let body = with(kind.body(&id), member, None).to_string();
        let message = kind.assert_refused(&client, &ACME, &id, body, 400).await.message();
        assert!(message.contains(member), "{member} is not named: {message}");
    }
    for kind in KINDS {
        for id in [
            None,
            Some(json!("")),
            Some(json!("x".repeat(256))),
            Some(json!("a\u{0}")),
            Some(json!(7)),
            Some(json!(null)),
        ] {
            let body = with(kind.body("x"), "order_id", id).to_string();
            let message = client.send(&kind.request(&ACME, body)).await.expect(400).message();
            assert!(message.contains("order_id"), "{message}");
        }
        kind.create(&client, &ACME, &kind.body(&"€".repeat(255))).await;
    }
}

/// A body with an amount, or another raw value, spelt exactly so.
fn raw(kind: Create, id: &str, member: &str, spelling: &str) -> String {
    with(kind.body(id), member, Some(json!("@@"))).to_string().replace("\"@@\"", spelling)
}

#[tokio::test]
async fn amounts_are_read_by_value_and_never_as_binary_floats() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let good = [
        ("10", "10"),
        ("10.0", "10"),
        ("10.00", "10"),
        ("10.000", "10"),
        ("1e1", "10"),
        ("1E+1", "10"),
        ("100e-1", "10"),
        ("0.01", "0.01"),
        ("1e-2", "0.01"),
        ("9999999999999.99", "9999999999999.99"),
        ("0.10", "0.1"),
        ("1.15", "1.15"),
        ("0.29", "0.29"),
        ("4503599627370.51", "4503599627370.51"),
        ("1200", "1200"),
        ("12e2", "1200"),
    ];
    for (number, (spelling, shown)) in good.into_iter().enumerate() {
        let body = raw(Create::Deposit, &format!("good-{number}"), "amount", spelling);
        let created = client.send(&Create::Deposit.request(&ACME, body)).await.expect(200);
        let id = text(&created.json(), "transaction_id").to_owned();
        let status = client.send(&Request::status(&ACME, &id)).await.expect(200).text();
        assert!(
            status.contains(&format!("\"amount\":{shown},")) || status.contains(&format!("\"amount\":{shown}}}")),
            "{spelling}: {status}"
        );
    }
    let huge = format!("1{}", "0".repeat(400));
    let tiny = format!("0.{}1", "0".repeat(400));
    let bad = [
        "0",
        "0.00",
        "-0",
        "-10.5",
        "10.555",
        "1e-3",
        "10000000000000",
        "9999999999999.991",
        "1e14",
        "1e999999999",
        "1e-999999999",
        "1e99999999999999999999999",
        "0e99999999999999999999",
        huge.as_str(),
        tiny.as_str(),
        "NaN",
        "Infinity",
        "01",
        "+1",
        "1.",
        ".5",
        "0x1",
        "1_0",
        "\"10.5\"",
    ];
    for (number, spelling) in bad.into_iter().enumerate() {
        let id = format!("bad-{number}");
        let reply = client.send(&Create::Deposit.request(&ACME, raw(Create::Deposit, &id, "amount", spelling))).await;
        assert_eq!(reply.status, 400, "{spelling}: {}", reply.text());
        Create::Deposit.assert_nothing_stored(&client, &ACME, &id).await;
    }
}

#[tokio::test]
async fn customer_account_ids_are_integers_of_64_bits() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for (number, good) in ["0", "-1", "9223372036854775807", "-9223372036854775808", "null"].into_iter().enumerate() {
        let body = raw(Create::Deposit, &format!("id-{number}"), "customer_account_id", good);
        client.send(&Create::Deposit.request(&ACME, body)).await.expect(200);
    }
    for bad in ["9223372036854775808", "-9223372036854775809", "1.0", "1e3", "0.0", "\"1\"", "true", "1e-1"] {
        let body = raw(Create::Deposit, "bad-id", "customer_account_id", bad);
        let message = client.send(&Create::Deposit.request(&ACME, body)).await.expect(400).message();
        assert!(message.contains("customer_account_id"), "{message}");
    }
    Create::Deposit.assert_nothing_stored(&client, &ACME, "bad-id").await;
    let null = with(deposit("same"), "customer_account_id", Some(Value::Null));
    let first = Create::Deposit.create(&client, &ACME, &null).await;
    assert_same(&Create::Deposit.create(&client, &ACME, &deposit("same")).await, &first);
    let zero = with(deposit("same"), "customer_account_id", Some(0.into()));
    client.send(&Request::deposit(&ACME, &zero)).await.expect(409);
}

// keeps P050, P051, P052, P053, P054, P063, P064, P065, P066, P217, P218, P219, P220
#[tokio::test]
async fn fields_obey_the_document_and_the_shops_schema() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let both = ["method", "customer_account_id"];
    let deposits = ["success_url", "pending_url", "fail_url", "return_user_url"];
    let withdrawals = ["account_channel", "recipient_account", "account_number"];
    let rows = both.iter().chain(&deposits).map(|name| (Create::Deposit, name));
    for (kind, name) in rows.chain(both.iter().chain(&withdrawals).map(|name| (Create::Withdrawal, name))) {
        for shop in ["card-eur", "slow-eur"] {
            let id = format!("reserved-{shop}-{name}");
            let body =
                with(with(kind.body(&id), "method", Some(shop.into())), &format!("fields.{name}"), Some("x".into()));
            let message = kind.assert_refused(&client, &ACME, &id, body.to_string(), 400).await.message();
            assert!(message.contains(name), "{name} is not named: {message}");
        }
    }
    // The standard customer fields are strings, with or without a schema; empty is null or the empty string.
    for name in ["first_name", "last_name", "middle_name", "email", "phone"] {
        let path = format!("fields.{name}");
        for bad in [json!(7), json!(false), json!([]), json!({})] {
            let body = |id: &str| with(with(deposit(id), "method", Some("slow-eur".into())), &path, Some(bad.clone()));
            let id = format!("{name}-{bad}");
            let message =
                Create::Deposit.assert_refused(&client, &ACME, &id, body(&id).to_string(), 400).await.message();
            assert!(message.contains(name), "{message}");
        }
        for (number, empty) in [json!(null), json!("")].into_iter().enumerate() {
            let body = with(deposit(&format!("{name}-{number}")), "method", Some("slow-eur".into()));
            Create::Deposit.create(&client, &ACME, &with(body, &path, Some(empty))).await;
        }
    }
    let schema: &[(&str, Value)] = &[
        ("email", json!("nobody")),
        ("bank_code", json!("BANK-C")),
        ("level", json!(9)),
        ("level", json!("1")),
        ("channel", json!("post")),
        ("first_name", json!("x".repeat(41))),
        ("extra", json!([1])),
        ("ratio", json!("1")),
    ];
    for (number, (name, value)) in schema.iter().enumerate() {
        refused_member(&client, Create::Deposit, &format!("schema-{number}"), &format!("fields.{name}"), value).await;
    }
    let mobile = with(with(deposit("m"), "method", Some("mobile-kes".into())), "currency", Some("KES".into()));
    for (number, bad) in
        [None, Some(json!(712_345_678)), Some(json!("712345678")), Some(json!(null))].into_iter().enumerate()
    {
        let id = format!("mobile-{number}");
        let body = with(with(mobile.clone(), "order_id", Some(id.clone().into())), "fields.mobile_number", bad);
        let message = Create::Deposit.assert_refused(&client, &ACME, &id, body.to_string(), 400).await.message();
        assert!(message.contains("mobile_number"), "{message}");
    }
    Create::Deposit.create(&client, &ACME, &with(mobile, "fields.mobile_number", Some("0712345678".into()))).await;
    let bare = with(deposit("bare"), "fields", None);
    Create::Deposit.create(&client, &ACME, &bare).await;
}

#[tokio::test]
async fn merchant_user_ip_is_one_address_or_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let bad = [
        json!(""),
        json!(" 203.0.113.9"),
        json!("203.0.113.9 "),
        json!("203.0.113.9:443"),
        json!("[2001:db8::1]"),
        json!("203.0.113.0/24"),
        json!("203.0.113.9,203.0.113.10"),
        json!("localhost"),
        json!("203.0.113"),
        json!("::1%eth0"),
        json!("256.1.1.1"),
        json!("010.1.1.1"),
        json!(7),
        json!(["203.0.113.9"]),
        json!(false),
    ];
    for kind in KINDS {
        for (number, value) in bad.iter().enumerate() {
            refused_member(&client, kind, &format!("ip-{number}"), "fields.merchant_user_ip", value).await;
        }
        for (number, good) in [json!("203.0.113.9"), json!("2001:db8::1"), json!("::ffff:203.0.113.9"), json!(null)]
            .into_iter()
            .enumerate()
        {
            let body = with(kind.body(&format!("good-{number}")), "fields.merchant_user_ip", Some(good));
            kind.create(&client, &ACME, &body).await;
        }
        let strict = |id: &str, ip: Option<Value>| {
            let body = with(
                with(kind.body(id), "method", Some("strict-eur".into())),
                "fields",
                Some(json!({ "holder": "Ann" })),
            );
            with(body, "fields.merchant_user_ip", ip)
        };
        for (id, ip) in [("omitted", None), ("null", Some(Value::Null))] {
            let body = strict(id, ip).to_string();
            let message = kind.assert_refused(&client, &ACME, id, body, 400).await.message();
            assert!(message.contains("merchant_user_ip"), "no default stands in: {message}");
        }
        kind.create(&client, &ACME, &strict("given", Some("203.0.113.9".into()))).await;
        client.send(&kind.request(&ACME, strict("given", Some("203.0.113.8".into())).to_string())).await.expect(409);
        // Null is like absent where it is optional.
        let null = with(kind.body("nothing"), "fields.merchant_user_ip", Some(Value::Null));
        let first = kind.create(&client, &ACME, &null).await;
        let absent = with(kind.body("nothing"), "fields.merchant_user_ip", None);
        assert_same(&kind.create(&client, &ACME, &absent).await, &first);
    }
}

// keeps P149, P243, D028, D029, D031, D032, D033
#[tokio::test]
async fn a_repeat_is_the_same_by_value() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let body = with(deposit("again"), "fields.extra", Some(json!({ "n": 1, "list": [1, 2], "t": "é" })));
    let body = with(body, "fields.ratio", Some(json!(2)));
    let first = Create::Deposit.create(&client, &ACME, &body).await;
    let spelt = body.to_string();
    for same in [
        spelt.clone(),
        spelt.replace("10.5", "10.50"),
        spelt.replace("10.5", "1050e-2"),
        spelt.replace("\"EUR\"", "\"eur\""),
        spelt.replace("é", "\\u00e9"),
        spelt.replace("https://acme.example/ok", "https:\\/\\/acme.example\\/ok"),
        spelt.replace("\"n\":1", "\"n\":1.0").replace("\"ratio\":2", "\"ratio\":20e-1"),
        spelt.replacen("\"fields\":{", "\"fields\":{\"unknown_to_the_schema\":[true],", 1),
        format!(" {} ", spelt.replace(':', " : ").replace("https : ", "https:")),
        with(body.clone(), "customer_account_id", Some(Value::Null)).to_string(),
    ] {
        let reply = client.send(&Create::Deposit.request(&ACME, same.clone())).await;
        assert_eq!(reply.status, 200, "{same}: {}", reply.text());
        assert_eq!(reply.json(), first.json(), "{same}");
        let other_key = client.send(&Create::Deposit.request(&ACME_V2, same)).await.expect(200);
        assert_eq!(other_key.json(), first.json(), "the merchant's keys share its orders");
    }
    let empty = with(withdrawal("empty"), "fields", Some(json!({})));
    let first = Create::Withdrawal.create(&client, &ACME, &empty).await;
    let absent = Create::Withdrawal.create(&client, &ACME, &with(empty, "fields", None)).await;
    assert_eq!(absent.json(), first.json(), "absent fields are like {{}}");
}

// keeps P229, P230, P231, P232, P233, P234, P241, P245, D026, D034, D035, D037, D038
#[tokio::test]
async fn changed_data_is_409_and_names_the_members_without_values() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let rows: &[(Create, &str, Option<Value>)] = &[
        (Create::Deposit, "amount", Some(json!(10.51))),
        (Create::Deposit, "currency", Some("USD".into())),
        (Create::Deposit, "method", Some("slow-eur".into())),
        (Create::Deposit, "method", Some("no-such-shop".into())),
        (Create::Deposit, "method", None),
        (Create::Deposit, "customer_account_id", Some(json!(771_177))),
        (Create::Deposit, "callback_url", Some("https://acme.example/CB".into())),
        (Create::Deposit, "success_url", Some("https://acme.example/ok/".into())),
        (Create::Deposit, "pending_url", Some("https://ACME.example/wait".into())),
        (Create::Deposit, "fail_url", Some("https://acme.example:443/no".into())),
        (Create::Deposit, "fields", None),
        (Create::Deposit, "fields.email", Some("Ann@example.com".into())),
        (Create::Deposit, "fields.bank_code", Some("BANK-A".into())),
        (Create::Deposit, "fields.bank_code", Some("NO-BANK-77".into())),
        (Create::Deposit, "fields.merchant_user_ip", Some("203.0.113.77".into())),
        (Create::Deposit, "fields.merchant_user_ip", None),
        (Create::Withdrawal, "amount", Some(json!(7.26))),
        (Create::Withdrawal, "account_number", Some("4000123412341299".into())),
        (Create::Withdrawal, "account_channel", Some("channel-77".into())),
        (Create::Withdrawal, "fields.holder", Some("Somebody Else".into())),
    ];
    for kind in KINDS {
        kind.create(&client, &ACME, &kind.body("fixed")).await;
    }
    for (kind, member, value) in rows {
        let changed = with(kind.body("fixed"), member, value.clone()).to_string();
        let reply = client.send(&kind.request(&ACME, changed)).await;
        assert_eq!(reply.status, 409, "{member} {value:?}: {}", reply.text());
        let message = reply.message();
        let top = member.split('.').next().unwrap();
        assert!(message.contains(top), "{member} is not named: {message}");
        for echo in ["10.51", "771177", "77", "4000123412341299", "Somebody", "slow-eur", "acme.example"] {
            assert!(!message.contains(echo), "{echo} is echoed: {message}");
        }
    }
    for kind in KINDS {
        kind.create(&client, &ACME, &kind.body("fixed")).await;
        // The shape comes before the comparison.
        let misshapen = with(kind.body("fixed"), "surprise", Some(json!(1))).to_string();
        client.send(&kind.request(&ACME, misshapen)).await.expect(400);
    }
}

// keeps P239, P240, P242, P246
#[tokio::test]
async fn the_scope_of_an_order_is_merchant_and_kind_across_shops_and_versions() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let ours = Create::Deposit.create(&client, &ACME, &deposit("shared")).await;
    let theirs = Create::Deposit.create(&client, &BETA, &deposit("shared")).await;
    let withdrawn = Create::Withdrawal.create(&client, &ACME, &withdrawal("shared")).await;
    assert_ne!(ours.json()["transaction_id"], theirs.json()["transaction_id"]);
    assert_ne!(ours.json()["transaction_id"], withdrawn.json()["transaction_id"]);
    client.send(&Request::payin(&ACME, &payin("shared"))).await.expect(409);
    client.send(&Request::payout(&ACME, &support::payout("shared"))).await.expect(409);
    Create::Payin.create(&client, &ACME, &payin("from-v1")).await;
    client.send(&Request::deposit(&ACME, &deposit("from-v1"))).await.expect(409);
    Create::Withdrawal.create(&client, &ACME, &withdrawal("from-v1")).await;
}

#[tokio::test]
async fn an_unknown_transaction_is_the_same_404_whatever_the_reason() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let theirs = Create::Deposit.create(&client, &BETA, &deposit("theirs")).await.json();
    let theirs = text(&theirs, "transaction_id").to_owned();
    let unknown = client.send(&Request::status(&ACME, "1234567890123456789")).await.expect(404);
    let long = "1".repeat(300);
    for id in [
        theirs.as_str(),
        "0",
        "01",
        "-1",
        "+1",
        "1e3",
        "abc",
        "12a",
        "99999999999999999999",
        "18446744073709551617",
        &long,
    ]
    .into_iter()
    .chain(["%31", "1%00", "1%2F2", "..", "~"])
    {
        for protocol in PROTOCOLS {
            assert_same(&client.send(&Request::status(&ACME, id)).await.expect(404), &unknown);
            assert_eq!(client.send_by(protocol, &Request::status(&ACME, id)).await.expect(404).body, unknown.body);
        }
    }
    client.send(&Request::status(&BETA, &theirs)).await.expect(200);
    let query = Request::v2_get(&BETA, &format!("/api/v2/transactions/{theirs}?shop_code=x&shop_code=y&%zz"));
    client.send(&query).await.expect(200);
    let narrow = Request::status(&ACME_PLAIN_ONLY, "1234567890123456789");
    client.send(&narrow).await.expect(404);
}

#[tokio::test]
async fn a_post_takes_no_query() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for kind in CREATES {
        for query in ["?x=1", "?", "?amount=10.5", "?order_id=query&external_id=query"] {
            let mut request = kind.request(&ACME, kind.body("query").to_string());
            request.target += query;
            let reply = client.send(&request).await;
            let allowed: &[u16] = if query == "?" { &[200, 400] } else { &[400] };
            assert!(allowed.contains(&reply.status), "{kind:?} {query}: {}", reply.text());
        }
    }
}

// keeps D040
#[tokio::test]
async fn malformed_json_is_400_and_stores_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for kind in KINDS {
        let good = with(kind.body("json"), "fields", Some(json!({ "last_name": "Lee" }))).to_string();
        let inner = &good[1..good.len() - 1];
        let nested = |depth: usize| {
            good.replace("\"Lee\"", &format!("\"Lee\",\"deep\":{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)))
        };
        let texts = [
            String::new(),
            " ".to_owned(),
            "null".to_owned(),
            "true".to_owned(),
            "1".to_owned(),
            "\"x\"".to_owned(),
            "[]".to_owned(),
            format!("[{good}]"),
            format!("{good},"),
            format!("{good}{good}"),
            format!("{good}\0"),
            good[1..].to_owned(),
            good[..good.len() - 1].to_owned(),
            format!("{{{inner},}}"),
            format!("\u{feff}{good}"),
            format!("{{{inner},\"currency\":\"EUR\"}}"),
            format!("{{{inner},\"curr\\u0065ncy\":\"EUR\"}}"),
            good.replace("\"Lee\"", "\"Lee\",\"last_name\":\"Lee\""),
            good.replace("\"Lee\"", "\"Lee\",\"dropped\":{\"a\":[{\"b\":1,\"\\u0062\":1}]}"),
            good.replace("Lee", "\\ud800"),
            good.replace("Lee", "\\udc00\\ud800"),
            good.replace("Lee", "\\u12"),
            good.replace("Lee", "a\tb"),
            good.replace("Lee", "\\x41"),
            nested(31),
            nested(60),
            "[".repeat(60_000),
            good.replace("\"Lee\"", "NaN"),
            good.replace("\"Lee\"", "'Lee'"),
            format!("{good}/* */"),
            good.replace("\"last_name\"", "last_name"),
        ];
        let raw = [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"].map(|bytes| {
            let at = good.find("Lee").unwrap();
            [&good.as_bytes()[..at], bytes, &good.as_bytes()[at..]].concat()
        });
        let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for body in texts.into_iter().map(String::into_bytes).chain(raw).chain([utf16]) {
            let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            let reply = client.send(&kind.request(&ACME, body)).await;
            assert_eq!(reply.status, 400, "{shown}: {}", reply.text());
        }
        kind.assert_nothing_stored(&client, &ACME, "json").await;
    }
    // As deep as is allowed, and odd but good.
    let deep = format!("{}1{}", "[".repeat(29), "]".repeat(29));
    let body =
        deposit("deep").to_string().replacen("\"fields\":{", &format!("\"fields\":{{\"x\":{deep},\"y\":1e400,"), 1);
    client.send(&Create::Deposit.request(&ACME, body)).await.expect(200);
    let body = deposit("pair").to_string().replace("ann@", "\\uD83D\\uDE00\\u0000@").replace("email", "note");
    client.send(&Create::Deposit.request(&ACME, format!("\r\n\t {body} \n"))).await.expect(200);
}

// keeps P244
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_of_one_order_make_one_operation() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for kind in CREATES {
        let body = kind.body(if kind.is_v1() { "race-1" } else { "race-2" }).to_string();
        let tasks: Vec<_> = (0..32)
            .map(|_| {
                let (client, request) = (client.clone(), kind.request(&ACME, body.clone()));
                tokio::spawn(async move { client.send(&request).await.expect(200).json() })
            })
            .collect();
        let mut replies = Vec::new();
        for task in tasks {
            replies.push(task.await.unwrap());
        }
        assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "{replies:?}");
    }
}

// keeps P244, D042
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_with_mixed_data_make_one_operation() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for kind in KINDS {
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let amount = json!(5 + number % 3);
                let body = with(kind.body("mixed"), "amount", Some(amount.clone())).to_string();
                let (client, request) = (client.clone(), kind.request(&ACME, body));
                tokio::spawn(async move { (amount, client.send(&request).await) })
            })
            .collect();
        let mut made = Vec::new();
        for task in tasks {
            let (amount, reply) = task.await.unwrap();
            match reply.status {
                200 => made.push((amount, reply.text())),
                _ => assert_eq!(reply.status, 409, "{}", reply.text()),
            }
        }
        assert!(!made.is_empty() && made.windows(2).all(|pair| pair[0] == pair[1]), "{made:?}");
    }
}

// keeps D027, D033, D036, D049
#[tokio::test]
async fn a_changed_schema_or_page_secret_disturbs_no_repeat() {
    let mut gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let body = with(deposit("kept"), "fields.dropped_today", Some("x".into()));
    let first = Create::Deposit.create(&client, &ACME, &body).await;
    gateway.kill();
    let stricter = Rules::default()
        .file(
            "shops/card-eur.payin.json",
            r#"{"type":"object","required":["dropped_today","nonsense"],
            "properties":{"dropped_today":{"type":"string"},"nonsense":{"type":"string"}}}"#,
        )
        .with("pages", "secret = \"another page secret, long enough\"\nlink_lifetime = \"1m\"");
    stricter.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.restart();
    assert_eq!(Create::Deposit.create(&client, &ACME, &body).await.json(), first.json());
    let without = with(body.clone(), "fields.dropped_today", None);
    assert_eq!(Create::Deposit.create(&client, &ACME, &without).await.json(), first.json());
    let changed = with(body, "fields.email", Some("bob@example.com".into()));
    client.send(&Request::deposit(&ACME, &changed)).await.expect(409);
}
