//! v1 dialects other than the default one: their own headers, signatures, routes, words and shapes, beside merchants who
//! keep to the default (contract section 4), and secrets that are being rotated (section 2).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod support;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};

use support::bodies::with;
use support::request::{ACME, BETA, GAMMA, Key, PROTOCOLS, unix_now};
use support::stored::Create;
use support::{Client, Gateway, Reply, Request, Rules, eventually, payin, payout, text};

const LEGACY: &str = r#"
[signature]
api_key = "X-Merchant"
signature = "X-Mac"
timestamp = "X-Sent-At"
timestamp_format = "unix-ms"
window = "1m"
payload = "{api_key}|{timestamp}|{method}|{target}|{query}|{body_sha256}|v=1"
algorithm = "hmac-sha512"
encoding = "base64"

[routes]
payin = "POST /legacy/deposits"
payout = "POST /legacy/withdrawals"
payin_status = "GET /legacy/deposits"
payout_status = "GET /legacy/withdrawals/find"
balance = "GET /legacy/balance"
transactions = "GET /legacy/history"

[statuses]
PENDING = "waiting"
SUCCESS = "done"
FAILED = "lost"

[replies]
payin = '{"ok":true,"id":{{ transaction_id }},"order":{{ external_id }},"go_to":{{ redirect_url }}}'
status = '{"order":{{ external_id }},"state":{{ status }},"money":{"value":{{ amount }},"unit":{{ currency }}},"shop":{{ shop_code }}}'
error = '{"ok":false,"status":{{ code }},"why":{{ message }}}'
"#;

fn rules() -> Rules {
    let acme = "name = \"Acme Ltd\"";
    Rules::default().file("dialects/legacy.toml", LEGACY).edit(
        "merchants/acme.toml",
        acme,
        &format!("{acme}\nv1.dialect = \"legacy\""),
    )
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Signs as [`LEGACY`] says.
fn legacy(key: &Key, method: &str, target: &str, body: &str) -> Request {
    let sent_at = format!("{}123", unix_now());
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let digest = hex(&Sha256::digest(body));
    let payload = format!("{}|{sent_at}|{method}|{target}|{query}|{digest}|v=1", key.name);
    let mut mac = Hmac::<Sha512>::new_from_slice(key.v1.unwrap().as_bytes()).unwrap();
    mac.update(payload.as_bytes());
    let request = Request::new(method, target, body)
        .header("X-Merchant", key.name)
        .header("X-Mac", &BASE64_STANDARD.encode(mac.finalize().into_bytes()))
        .header("X-Sent-At", &sent_at);
    if method == "GET" { request } else { request.header("Content-Type", "application/json") }
}

/// A reply of the default shape is checked by the client; the dialect's errors have another one.
async fn raw(client: &Client, request: &Request) -> Reply {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = client.tls(&["http/1.1"]).await.unwrap();
    stream.write_all(&request.bytes()).await.unwrap();
    let mut received = Vec::new();
    loop {
        assert!(stream.read_buf(&mut received).await.unwrap() > 0, "closed inside a reply");
        if let Some(reply) = support::reply::take_reply(&mut received) {
            return reply;
        }
    }
}

#[tokio::test]
async fn a_dialect_has_its_own_headers_routes_words_and_shapes() {
    let gateway = Gateway::start(&rules());
    let client = gateway.client();
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let id = format!("legacy-{number}");
        let created =
            client.send_by(protocol, &legacy(&ACME, "POST", "/legacy/deposits", &payin(&id).to_string())).await;
        let created = created.expect(200).json();
        assert_eq!((&created["ok"], text(&created, "order")), (&json!(true), id.as_str()));
        assert!(text(&created, "go_to").contains(&format!("/pay/{}?", text(&created, "id"))), "{created}");
        let target = format!("/legacy/deposits?external_id={id}");
        let status = client.send_by(protocol, &legacy(&ACME, "GET", &target, "")).await.expect(200).json();
        let money = json!({ "value": "10.50", "unit": "EUR" });
        assert_eq!(status, json!({ "order": id, "state": "waiting", "money": money, "shop": "card-eur" }));
    }
    let body = payout("legacy-out").to_string();
    let created = client.send(&legacy(&ACME, "POST", "/legacy/withdrawals", &body)).await.expect(200).json();
    assert_eq!(text(&created, "external_id"), "legacy-out", "the default shape where the dialect has none");
    eventually("the withdrawal is done", async || {
        let target = "/legacy/withdrawals/find?external_id=legacy-out";
        let status = client.send(&legacy(&ACME, "GET", target, "")).await.expect(200).json();
        (status["state"] == "done").then_some(())
    })
    .await;
}

#[tokio::test]
async fn errors_have_the_dialects_shape_once_the_merchant_is_proven() {
    let gateway = Gateway::start(&rules());
    let client = gateway.client();
    let bad = with(payin("bad"), "amount", Some("0".into())).to_string();
    let refused = raw(&client, &legacy(&ACME, "POST", "/legacy/deposits", &bad)).await;
    assert_eq!(refused.status, 400);
    let said = refused.json();
    assert_eq!((&said["ok"], &said["status"]), (&json!(false), &json!(400)));
    assert!(text(&said, "why").contains("amount"), "{said}");
    let stranger = Key { name: "nobody-knows", ..ACME };
    client.send(&legacy(&stranger, "POST", "/legacy/deposits", &bad)).await.expect(401);
}

#[tokio::test]
async fn dialects_stay_apart() {
    let gateway = Gateway::start(&rules());
    let client = gateway.client();
    // The default routes are there for the merchants of the default dialect, and only for them.
    Create::Payin.create(&client, &BETA, &payin("default")).await;
    let crossed = [
        Request::payin(&ACME, &payin("crossed")),
        Request::v1_status(&ACME, "payin", "crossed"),
        legacy(&BETA, "POST", "/legacy/deposits", &payin("crossed").to_string()),
        legacy(&ACME, "POST", "/legacy/deposits", &payin("crossed").to_string()).replace("X-Mac", Some("AAAA")),
    ];
    for request in crossed {
        let reply = raw(&client, &request).await;
        assert!([401, 403, 404].contains(&reply.status), "{} {}: {}", request.target, reply.status, reply.text());
    }
    let reply = client.send(&Request::new("PUT", "/legacy/deposits", "")).await.expect(405);
    let mut allowed: Vec<_> = reply.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "POST"]);
    let created = client.send(&legacy(&ACME, "POST", "/legacy/deposits", &payin("crossed").to_string())).await;
    created.expect(200);
}

#[tokio::test]
async fn a_secret_is_rotated_without_a_refused_request() {
    let rotated = Rules::default()
        .edit("merchants/gamma.toml", "\"gamma-v1-hush-4Qs\"", "[\"gamma-v1-hush-new\", \"gamma-v1-hush-4Qs\"]")
        .edit("merchants/gamma.toml", "\"gamma-v2-hush-6Uv\"", "[\"gamma-v2-hush-new\", \"gamma-v2-hush-6Uv\"]");
    let gateway = Gateway::start(&rotated);
    let client = gateway.client();
    let new = Key { v1: Some("gamma-v1-hush-new"), v2: Some("gamma-v2-hush-new"), ..GAMMA };
    for (number, key) in [GAMMA, new].iter().enumerate() {
        Create::Payin.create(&client, key, &payin(&format!("v1-{number}"))).await;
        Create::Deposit.create(&client, key, &support::deposit(&format!("v2-{number}"))).await;
    }
    let wrong = Key { v1: Some("gamma-v1-hush-old"), v2: Some("gamma-v2-hush-old"), ..GAMMA };
    client.send(&Request::payin(&wrong, &payin("v1-3"))).await.expect(401);
    client.send(&Request::deposit(&wrong, &support::deposit("v2-3"))).await.expect(401);
}
