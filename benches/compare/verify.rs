//! Checks, before the measurement, that the servers that claim to do the whole job do it.
//!
//! All of them refuse invalid requests with the right status. Those that store give a repeat its first reply, and
//! 409 to other data. nginx with Lua forwards the v2 body that `paybridge translate` prints for the same v1 body, under a
//! valid v2 signature.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::gateway;
use crate::common::load::Target;
use crate::servers::{Server, Servers};
use crate::stub::Stub;
use crate::support::Request;
use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_NOWHERE, Key, Signing, hmac_hex, unix_now};
use crate::workload::{Answers, v1_body};

/// A number above those of all loads' orders.
const FIRST_ORDER: usize = 900_000_000_000;

/// Checks every server that is a gateway.
///
/// # Panics
/// One of them does not do its job.
pub async fn all(servers: &Servers, stub: &Stub) {
    for server in servers.all.iter().filter(|server| server.answers == Answers::Gateway) {
        refuses(server).await;
        match server.name {
            "nginx-lua" => forwards(server, servers, stub).await,
            "node" | "paybridge" | "paybridge-before" => stores(server).await,
            _ => drop(creates(server).await),
        }
    }
}

/// Sends a request over a new connection. Returns status and body.
async fn ask(target: &Target, request: &Request) -> (u16, Value) {
    let mut connection = target.connect(1).await.pop().unwrap();
    let reply = connection.exchange(&request.bytes()).await;
    let body = serde_json::from_slice(reply.body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(reply.body)));
    (reply.status, body)
}

fn body(number: usize) -> Value {
    serde_json::from_str(&v1_body(FIRST_ORDER + number)).unwrap()
}

async fn refuses(server: &Server) {
    let good = body(0);
    let signed = |key: &Key, body: &Value| Request::payin(key, body);
    let unsigned = Request::new("POST", "/api/v1/payin", good.to_string()).header("Content-Type", "application/json");
    let unknown = Key { name: "unknown", v1: ACME.v1, v2: ACME.v2 };
    let mut cases = vec![
        ("a wrong signature", 401, signed(&ACME, &good).replace("X-Signature", Some(&"0f".repeat(32)))),
        ("no signature", 401, signed(&ACME, &good).replace("X-Signature", None)),
        ("an unknown key", 401, signed(&unknown, &good)),
        ("an old timestamp", 401, unsigned.clone().signed_at(Signing::V1, &ACME, unix_now() - 301)),
        ("a timestamp in the future", 401, unsigned.signed_at(Signing::V1, &ACME, unix_now() + 330)),
        ("an address that is not allowed", 403, signed(&ACME_NOWHERE, &good)),
        ("another content type", 415, signed(&ACME, &good).replace("Content-Type", Some("text/plain"))),
        ("a body that is not an object", 400, signed(&ACME, &json!([1]))),
        ("a body that is not JSON", 400, Request::v1_post(&ACME, "/api/v1/payin", "{\"external_id\":")),
    ];
    for (member, value) in [
        ("amount", Some(json!("10.505"))),
        ("amount", Some(json!("1e3"))),
        ("amount", Some(json!(" 10"))),
        ("amount", Some(json!("0.00"))),
        ("amount", Some(json!("99999999999999"))),
        ("amount", Some(json!(10.5))),
        ("external_id", Some(json!(""))),
        ("external_id", Some(json!("x".repeat(256)))),
        ("external_id", None),
        ("currency", Some(json!("EURO"))),
        ("callback_url", Some(json!("http://acme.example/cb"))),
        ("callback_url", Some(json!("https://user@acme.example/cb"))),
        ("merchant_user_id", Some(json!("007"))),
        ("merchant_user_id", Some(json!("9223372036854775808"))),
        ("merchant_user_ip", Some(json!("203.0.113.9 "))),
        ("surprise", Some(json!(1))),
        ("paymentData", Some(json!("text"))),
        ("paymentData.return_user_url", None),
        ("paymentData.return_user_url", Some(json!("https://acme.example/a b"))),
        ("paymentData.success_url", Some(json!("https://acme.example/"))),
        ("paymentData.first_name", Some(json!(5))),
        ("paymentData.merchant_user_ip", Some(json!("203.0.113.10"))),
    ] {
        cases.push((member, 400, signed(&ACME, &with(good.clone(), member, value))));
    }
    for (what, status, request) in cases {
        let (answered, body) = ask(&server.target, &request).await;
        let sent = String::from_utf8_lossy(&request.body).into_owned();
        assert_eq!(
            (answered, &body["error"]["code"]),
            (status, &json!(status)),
            "{}: {what}: {body}\n{sent}",
            server.name
        );
    }
}

async fn creates(server: &Server) -> Value {
    let (status, made) = ask(&server.target, &Request::payin(&ACME, &body(0))).await;
    assert_eq!(status, 200, "{}: {made}", server.name);
    assert_eq!(made["external_id"], body(0)["external_id"], "{}", server.name);
    assert!(made["transaction_id"].is_string() && made["redirect_url"].is_string(), "{}: {made}", server.name);
    made
}

async fn stores(server: &Server) {
    let made = creates(server).await;
    assert_eq!(creates(server).await, made, "{}: a repeat", server.name);
    let other = with(body(0), "amount", Some(json!("11")));
    let (status, reported) = ask(&server.target, &Request::payin(&ACME, &other)).await;
    assert_eq!(status, 409, "{}: {reported}", server.name);
    let unlike = with(body(1), "paymentData.level", Some(json!(9)));
    let (status, reported) = ask(&server.target, &Request::payin(&ACME, &unlike)).await;
    assert_eq!(status, 400, "{}: the shop's schema: {reported}", server.name);
}

/// Returns bodies whose translation is compared, member by member.
fn varied() -> Vec<Value> {
    let mut bodies = vec![body(0)];
    for (number, (member, value)) in [
        ("amount", Some(json!("0010.50"))),
        ("amount", Some(json!("10.00"))),
        ("amount", Some(json!("9999999999999.99"))),
        ("shop_code", None),
        ("shop_code", Some(Value::Null)),
        ("merchant_user_id", Some(json!("0"))),
        ("merchant_user_id", Some(json!(77))),
        ("merchant_user_id", Some(json!("9223372036854775807"))),
        ("merchant_user_id", None),
        ("merchant_user_ip", Some(json!("2001:db8::7"))),
        ("merchant_user_ip", None),
        ("external_id", Some(json!("Bestellung \u{1f4b6} \"7\" \\ /"))),
        ("paymentData", Some(json!({ "return_user_url": "http://acme.example:8080/a?b=c#d" }))),
        ("paymentData.first_name", Some(json!("Ren\u{e9}e \u{5c71}"))),
        ("paymentData.extra", Some(json!({ "a": [1, 2.5, true, null, "x"], "b": { "c": -7 } }))),
    ]
    .into_iter()
    .enumerate()
    {
        bodies.push(with(body(number + 1), member, value));
    }
    bodies
}

async fn forwards(server: &Server, servers: &Servers, stub: &Stub) {
    // The merchant's callbacks are in the v2 format: a relay would have to store the merchant's address.
    let rules = gateway::rules();
    let section = "[shops.card-eur]";
    let rules = rules.edit("merchants/acme.toml", section, &format!("[v1]\ncallbacks = \"v2\"\n{section}"));
    rules.write(&servers.root.join("expected"), 8443, 9090);
    for body in varied() {
        let request = Request::payin(&ACME, &body);
        stub.keep();
        let (status, answered) = ask(&server.target, &request).await;
        let kept = stub.take();
        assert_eq!(status, 200, "{body}: {answered}");
        assert_eq!(answered["external_id"], body["external_id"]);
        assert_eq!(answered["transaction_id"], "1234567890123456789");
        let [forwarded] = &kept[..] else { panic!("{} requests were forwarded for one", kept.len()) };
        let forwarded = String::from_utf8(forwarded.clone()).unwrap();
        let (head, v2) = forwarded.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /api/v2/deposits HTTP/1.1\r\n"), "{head}");
        assert_eq!(header(head, "x-api-key"), ACME.name);
        assert_eq!(header(head, "x-signature"), hmac_hex(ACME.v2.unwrap(), v2.as_bytes()), "the signature of {v2}");
        let (is, expected): (Value, Value) = (serde_json::from_str(v2).unwrap(), translated(servers, &body));
        assert_eq!(is, expected, "the translation of {body}");
    }
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let value = head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    });
    value.unwrap_or_else(|| panic!("no {name} in {head}"))
}

/// Returns the v2 body that `paybridge translate` prints for a v1 body.
fn translated(servers: &Servers, body: &Value) -> Value {
    let mut child = Command::new(&servers.binary)
        .args(["translate", "--merchant", "acme", "--kind", "payin", "--rules"])
        .arg(servers.root.join("expected/rules"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
