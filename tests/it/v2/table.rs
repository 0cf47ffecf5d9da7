//! One gateway for a whole table of requests, and what every accepted and every refused row must show.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::{Create, assert_transaction_id};
use crate::support::{Client, Connection, Gateway, Reply, Request, Rules, text};

/// A gateway, one connection to it that is kept, and order ids that were not used yet.
pub struct Table {
    pub gateway: Gateway,
    client: Client,
    connection: Option<Connection>,
    orders: usize,
}

impl Table {
    /// With the rules of most tests.
    pub fn new() -> Self {
        Self::with(&Rules::default())
    }

    /// With these rules.
    pub fn with(rules: &Rules) -> Self {
        let gateway = Gateway::start(rules);
        let client = gateway.client();
        Self { gateway, client, connection: None, orders: 0 }
    }

    /// An order id that no row had.
    pub fn order(&mut self) -> String {
        self.orders += 1;
        format!("row-{}", self.orders)
    }

    /// Sends a request over the kept connection and checks the reply.
    pub async fn send(&mut self, request: &Request) -> Reply {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await,
        };
        let reply = connection.send(request).await;
        if !reply.all("connection").contains(&"close") {
            self.connection = Some(connection);
        }
        reply
    }

    /// Creates with these bytes, which must be taken, and gives the status record; `amount` as it must be shown where
    /// the sent spelling is not the shown one.
    pub async fn take(&mut self, kind: Create, body: &str, amount: Option<&str>) -> Value {
        let reply = self.send(&kind.request(&ACME, body)).await;
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
        let created = reply.json();
        let members: &[&str] = match kind {
            Create::Deposit => &["redirect_url", "transaction_id"],
            _ => &["transaction_id"],
        };
        assert!(created.as_object().unwrap().keys().eq(members), "{created}");
        let transaction_id = text(&created, "transaction_id");
        assert_transaction_id(transaction_id);
        let record = self.send(&Request::status(&ACME, transaction_id)).await.expect(200);
        let sent = serde_json::from_str(body).expect("a taken body is JSON");
        check_record(kind, &sent, transaction_id, amount, &record);
        record.json()
    }

    /// Sets a member to this JSON text in a good body, which must be taken; gives the record.
    pub async fn take_member(&mut self, kind: Create, member: &str, raw: &str) -> Value {
        let id = self.order();
        self.take(kind, &raw_member(kind.body(&id), member, raw), None).await
    }

    /// Sends bytes that must be refused with this status, and asserts that nothing was stored under the order id.
    pub async fn refuse(&mut self, kind: Create, id: &str, body: impl Into<Vec<u8>>, status: u16) -> Reply {
        let body = body.into();
        let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
        let reply = self.send(&kind.request(&ACME, body)).await;
        assert_eq!(reply.status, status, "{shown}: {}", reply.text());
        self.assert_nothing_stored(kind, id).await;
        reply
    }

    /// A corrected create under the same id is taken, though it differs from everything that the rows refuse.
    pub async fn assert_nothing_stored(&mut self, kind: Create, id: &str) {
        let corrected = with(kind.body(id), "amount", Some(json!(991.17))).to_string();
        let reply = self.send(&kind.request(&ACME, corrected)).await;
        assert_eq!(reply.status, 200, "something was stored under {id}: {}", reply.text());
    }

    /// Sets a member to this JSON text in a good body: 400, which names the member and not the value, and nothing is
    /// stored.
    pub async fn refuse_member(&mut self, kind: Create, member: &str, raw: &str) {
        let id = self.order();
        let base = kind.body(&id);
        self.refuse_in(kind, &id, base, member, raw).await;
    }

    /// The same in a body of its own.
    pub async fn refuse_in(&mut self, kind: Create, id: &str, base: Value, member: &str, raw: &str) {
        let reply = self.refuse(kind, id, raw_member(base, member, raw), 400).await;
        assert_names(&reply, member, raw);
    }
}

/// Asserts that an error names a member in v2 words and does not show its value.
#[track_caller]
pub fn assert_names(reply: &Reply, member: &str, raw: &str) {
    let message = reply.message();
    assert!(message.starts_with(&format!("{member}:")), "{member} {} is not named: {message}", head(raw));
    for name in ["external_id", "shop_code", "paymentData", "card_number", "merchant_user_id"] {
        assert!(member.contains(name) || !message.contains(name), "v1 words: {message}");
    }
    if let Ok(Value::String(value)) = serde_json::from_str(raw)
        && value.len() > 8
    {
        assert!(!message.contains(value.trim()), "{value} is echoed: {message}");
    }
    assert!(message.len() < 400, "a long message: {message}");
}

/// The start of a text, for messages of tests.
pub fn head(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A body whose member has exactly this JSON text.
#[track_caller]
pub fn raw_member(body: Value, member: &str, raw: &str) -> String {
    const PLACE: &str = "@here it goes@";
    with(body, member, Some(PLACE.into())).to_string().replace(&format!("\"{PLACE}\""), raw)
}

/// What every status record must be for what was sent.
#[track_caller]
fn check_record(kind: Create, sent: &Value, transaction_id: &str, amount: Option<&str>, reply: &Reply) {
    let record: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&reply.body).unwrap();
    let shown: BTreeMap<&str, &str> = record.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
    let string = |text: &str| Value::from(text).to_string();
    let status = shown["status"];
    assert!(["\"PENDING\"", "\"SUCCESS\"", "\"FAILED\""].contains(&status), "{status}");
    let amount = amount.map_or_else(|| sent["amount"].to_string(), str::to_owned);
    let mut expected = BTreeMap::from([
        ("order_id", string(text(sent, "order_id"))),
        ("transaction_id", string(transaction_id)),
        ("status", status.to_owned()),
        ("amount", amount),
        ("currency", string(&text(sent, "currency").to_ascii_uppercase())),
        ("method", string(sent["method"].as_str().unwrap_or("card"))),
    ]);
    if kind == Create::Withdrawal {
        expected.insert("account_number", string(&masked(text(sent, "account_number"))));
    }
    let decoded = |texts: BTreeMap<&str, &str>| -> BTreeMap<String, String> {
        texts.into_iter().map(|(name, raw)| (name.to_owned(), decoded(raw))).collect()
    };
    let expected = expected.iter().map(|(name, raw)| (*name, raw.as_str())).collect();
    assert_eq!(decoded(shown), decoded(expected), "{}", reply.text());
}

/// A string by what it says, a number by its spelling.
fn decoded(raw: &str) -> String {
    match serde_json::from_str(raw) {
        Ok(Value::String(text)) => format!("text {text}"),
        _ => raw.to_owned(),
    }
}

/// Masks what is shaped like a card number, as the interface words it.
fn masked(account: &str) -> String {
    let digits = account.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !(12..=19).contains(&account.len()) {
        return account.to_owned();
    }
    let (first, last) = (&account[..6], &account[account.len() - 4..]);
    format!("{first}{}{last}", "*".repeat(account.len() - 10))
}
