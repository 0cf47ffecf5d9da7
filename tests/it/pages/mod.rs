//! Customers' pages from outside, over real TLS sockets: entry links, return links and the sandbox's hosted page, as a
//! browser meets them. What a page says and how it is built is not looked at beyond what the contract names.

mod altered;
mod browser;
mod destinations;
mod entry;
mod forms;
mod headers;
mod limits;
mod markup;
mod methods;
mod provider;
mod readers;
mod remote;
mod returns;
mod rotation;
mod sandbox;
mod strangers;

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::{ACME, Key, hmac_hex, unix_now};
use crate::support::{self, Gateway, Reply, Request, Rules, eventually, text};

/// What signs links in the tests' rules, so that a test can sign what the gateway never would.
const SECRET: &str = "pages-hush-2Vw-7Kd-4Rt-8Bn-1Qx-5";

/// The return URLs of the tests' deposits, which tell themselves apart.
const SUCCESS_URL: &str = "https://acme.example/ok";
const PENDING_URL: &str = "https://acme.example/wait";
const FAIL_URL: &str = "https://acme.example/no";

/// A shop that is preparing for the whole of a test, until an edit makes it quick.
const PREPARING: &str = "slow-eur";
/// A shop that is ready at once.
const QUICK: &str = "card-eur";

/// Rules in which a test knows what signs links, and in which browsers come through a proxy, each from an address of its
/// own, so that only the tests of limits meet them.
fn rules() -> Rules {
    rules_with(&format!("secret = \"{SECRET}\""))
}

/// The same with these keys of `[pages]`.
fn rules_with(keys: &str) -> Rules {
    Rules::default().with("pages", keys).with("clients", "trusted_proxies = [\"127.0.0.0/8\"]").edit(
        "shops/card-eur.toml",
        "50ms",
        "0s",
    )
}

/// A deposit and its entry link.
struct Deposit {
    id: String,
    /// The whole link.
    url: String,
    /// Path and query of it.
    entry: String,
}

impl Deposit {
    #[track_caller]
    fn of(reply: &Reply) -> Self {
        let stated = reply.json();
        let url = text(&stated, "redirect_url").to_owned();
        Self { id: text(&stated, "transaction_id").to_owned(), entry: target(&url), url }
    }

    /// Creates one of a quick shop; the amount's cents tell the sandbox what to do.
    async fn create(gateway: &Gateway, order_id: &str, amount: &str) -> Self {
        Self::of_shop(gateway, QUICK, order_id, amount).await
    }

    async fn of_shop(gateway: &Gateway, shop: &str, order_id: &str, amount: &str) -> Self {
        let body = with(support::deposit(order_id), "amount", Some(serde_json::from_str(amount).unwrap()));
        Self::of_body(gateway, &with(body, "method", Some(shop.into()))).await
    }

    async fn of_body(gateway: &Gateway, body: &Value) -> Self {
        Self::of(&gateway.client().send(&Request::deposit(&ACME, body)).await.expect(200))
    }

    /// When a link of this deposit ends.
    fn expires(&self) -> i64 {
        expires(&self.entry)
    }

    /// A link of another kind, as the gateway signs it.
    fn link(&self, kind: &str) -> String {
        signed(kind, &self.id, &self.expires().to_string())
    }

    /// The status record.
    async fn record(&self, gateway: &Gateway) -> Value {
        gateway.client().send(&Request::status(&ACME, &self.id)).await.expect(200).json()
    }

    async fn assert_status(&self, gateway: &Gateway, status: &str) {
        assert_eq!(self.record(gateway).await["status"], status);
    }
}

/// Path and query of a URL.
#[track_caller]
fn target(url: &str) -> String {
    let start = url.find("://").expect("an absolute URL") + 3;
    url[start..].find('/').map_or("/", |slash| &url[start + slash..]).to_owned()
}

/// When a link ends.
#[track_caller]
fn expires(link: &str) -> i64 {
    let (_, rest) = link.split_once("?expires=").expect("an end");
    rest.split_once('&').expect("a signature").0.parse().unwrap()
}

/// A link with a right signature of whatever it says.
fn signed(kind: &str, id: &str, expires: &str) -> String {
    let target = format!("/{kind}/{id}?expires={expires}");
    let signature = hmac_hex(SECRET, target.as_bytes());
    format!("{target}&signature={signature}")
}

/// Creates a withdrawal that stays PENDING.
async fn withdrawal(gateway: &Gateway, order_id: &str) -> String {
    let body = with(support::withdrawal(order_id), "amount", Some(json!(7.02)));
    let reply = gateway.client().send(&Request::withdrawal(&ACME, &body)).await.expect(200).json();
    text(&reply, "transaction_id").to_owned()
}

/// What a merchant has, as v1 tells it.
async fn balance(gateway: &Gateway, key: &Key) -> String {
    gateway.client().send(&Request::v1_get(key, "/api/v1/balance")).await.expect(200).text()
}

/// Everything of a merchant that a page could change: what it has, and every row of its history.
async fn books(gateway: &Gateway, key: &Key) -> (String, String) {
    let rows = gateway.client().send(&Request::v1_get(key, "/api/v1/transactions?per_page=200")).await.expect(200);
    (balance(gateway, key).await, rows.text())
}

/// Waits until a link has ended.
async fn ended(link: &str) {
    let end = u64::try_from(expires(link)).unwrap();
    eventually("the link ends", async || (unix_now() >= end).then_some(())).await;
}
