//! HTTP providers from outside: a gateway process beside the stub of a provider, which is run as it is, and beside one that
//! behaves as badly as providers do.

mod operators;
pub mod scripted;
mod stub;
mod together;
mod trouble;
mod way_back;

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::{ACME, hmac_hex};
use crate::support::{self, Gateway, Reply, Request, Rules, eventually, text};

/// The secret of the tests' providers.
const SECRET: &str = "provider-hush-5Tg";

/// A shop's file with an HTTP provider; `keys` are more keys of `[provider]`.
fn shop(url: &str, keys: &str) -> String {
    let secret = if keys.contains("secret") { String::new() } else { format!("secret = \"{SECRET}\"\n") };
    format!(
        "currency = \"EUR\"\npayment_method = \"bank\"\n[payout]\naccount = \"card\"\n[provider]\nkind = \"http\"\n\
         url = \"{url}\"\nfirst_retry = \"50ms\"\nmax_retry = \"200ms\"\n{secret}{keys}\n"
    )
}

/// Rules in which `card-eur` has an HTTP provider.
fn rules(url: &str, keys: &str) -> Rules {
    Rules::default().file("shops/card-eur.toml", shop(url, keys))
}

/// Creates an operation of a shop and gives its id.
async fn create(gateway: &Gateway, body: Value, shop: &str, amount: &str) -> String {
    let amount = serde_json::from_str(amount).unwrap();
    let body = with(with(body, "method", Some(shop.into())), "amount", Some(amount));
    let is_deposit = body.get("success_url").is_some();
    let request = if is_deposit { Request::deposit(&ACME, &body) } else { Request::withdrawal(&ACME, &body) };
    let reply = gateway.client().send(&request).await.expect(200).json();
    text(&reply, "transaction_id").to_owned()
}

/// A withdrawal of `card-eur`.
async fn payout(gateway: &Gateway, order_id: &str, amount: &str) -> String {
    create(gateway, support::withdrawal(order_id), "card-eur", amount).await
}

/// A deposit of `card-eur`.
async fn payin(gateway: &Gateway, order_id: &str, amount: &str) -> String {
    create(gateway, support::deposit(order_id), "card-eur", amount).await
}

/// The status record.
async fn record(gateway: &Gateway, id: &str) -> Value {
    gateway.client().send(&Request::status(&ACME, id)).await.expect(200).json()
}

/// The status.
async fn status(gateway: &Gateway, id: &str) -> String {
    text(&record(gateway, id).await, "status").to_owned()
}

/// Waits for a status.
async fn becomes(gateway: &Gateway, id: &str, expected: &str) {
    let what = format!("{id} is {expected}");
    eventually(&what, async || (status(gateway, id).await == expected).then_some(())).await;
}

/// A metric's value; zero while it is not there.
fn metric(gateway: &Gateway, name: &str) -> u64 {
    let (_, page) = gateway.admin_get("/metrics").unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Waits until a metric is at least this.
async fn counted(gateway: &Gateway, name: &str, least: u64) {
    eventually(name, async || (metric(gateway, name) >= least).then_some(())).await;
}

/// Waits until something was logged so often.
async fn logged(gateway: &Gateway, line: &str, times: usize) {
    eventually(line, async || (gateway.log().matches(line).count() >= times).then_some(())).await;
}

/// The request of a report, signed with this secret.
fn report_request(shop: &str, secret: &str, body: &Value) -> Request {
    let body = body.to_string();
    let signature = hmac_hex(secret, body.as_bytes());
    Request::new("POST", &format!("/providers/{shop}/events"), body)
        .header("Content-Type", "application/json")
        .header("X-Signature", &signature)
}

/// Reports, rightly signed.
async fn report(gateway: &Gateway, id: &str, members: Value) -> Reply {
    let mut body = json!({ "transaction_id": id });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    gateway.client().send(&report_request("card-eur", SECRET, &body)).await
}
