//! Looks at what is stored through the wire.

use serde_json::Value;

use super::bodies::with;
use super::client::Client;
use super::reply::Reply;
use super::request::{Key, Request};

/// A kind of create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// v1 deposit.
    Payin,
    /// v1 withdrawal.
    Payout,
    /// v2 deposit.
    Deposit,
    /// v2 withdrawal.
    Withdrawal,
}

/// All of them.
pub const CREATES: [Create; 4] = [Create::Payin, Create::Payout, Create::Deposit, Create::Withdrawal];

impl Create {
    /// A good body.
    pub fn body(self, id: &str) -> Value {
        match self {
            Self::Payin => super::payin(id),
            Self::Payout => super::payout(id),
            Self::Deposit => super::deposit(id),
            Self::Withdrawal => super::withdrawal(id),
        }
    }

    /// The path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Payin => "/api/v1/payin",
            Self::Payout => "/api/v1/payout",
            Self::Deposit => "/api/v2/deposits",
            Self::Withdrawal => "/api/v2/withdrawals",
        }
    }

    /// Whether it is of v1.
    pub const fn is_v1(self) -> bool {
        matches!(self, Self::Payin | Self::Payout)
    }

    /// The member that names the order.
    pub const fn id_member(self) -> &'static str {
        if self.is_v1() { "external_id" } else { "order_id" }
    }

    /// The request for the status of the order under `id`, whose create got this reply, through the version that created it.
    pub fn status(self, key: &Key, id: &str, reply: &Value) -> Request {
        match self {
            Self::Payin => Request::v1_status(key, "payin", id),
            Self::Payout => Request::v1_status(key, "payout", id),
            Self::Deposit | Self::Withdrawal => Request::status(key, super::text(reply, "transaction_id")),
        }
    }

    /// The request that creates with this body.
    pub fn request(self, key: &Key, body: impl Into<Vec<u8>>) -> Request {
        if self.is_v1() { Request::v1_post(key, self.path(), body) } else { Request::v2_post(key, self.path(), body) }
    }

    /// Asserts that nothing is stored under an id: v1 finds nothing, and a good create that differs from everything the
    /// tests refuse is taken under it.
    pub async fn assert_nothing_stored(self, client: &Client, key: &Key, id: &str) {
        if self.is_v1() {
            client.send(&self.status(key, id, &Value::Null)).await.expect(404);
        }
        self.create(client, key, &with(self.body(id), "amount", Some(self.other_amount()))).await;
    }

    /// An amount of the right type that no refused body has.
    fn other_amount(self) -> Value {
        if self.is_v1() { "991.17".into() } else { serde_json::json!(991.17) }
    }

    /// Creates and gives the checked reply.
    pub async fn create(self, client: &Client, key: &Key, body: &Value) -> Reply {
        let reply = client.send(&self.request(key, body.to_string())).await.expect(200);
        let stated = reply.json();
        let members: Vec<_> = stated.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[&str] = match self {
            Self::Payin => &["external_id", "redirect_url", "transaction_id"],
            Self::Payout => &["external_id", "transaction_id"],
            Self::Deposit => &["redirect_url", "transaction_id"],
            Self::Withdrawal => &["transaction_id"],
        };
        assert_eq!(members, expected, "{stated}");
        assert_transaction_id(super::text(&stated, "transaction_id"));
        if self.is_v1() {
            assert_eq!(stated["external_id"], body["external_id"]);
        }
        reply
    }

    /// Asserts a refusal with this status, and that nothing was stored under the id.
    pub async fn assert_refused(
        self,
        client: &Client,
        key: &Key,
        id: &str,
        body: impl Into<Vec<u8>>,
        status: u16,
    ) -> Reply {
        let reply = client.send(&self.request(key, body)).await.expect(status);
        self.assert_nothing_stored(client, key, id).await;
        reply
    }
}

/// Asserts 1 to 19 digits without a leading zero.
#[track_caller]
pub fn assert_transaction_id(id: &str) {
    let digits = (1..=19).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit());
    assert!(digits && !id.starts_with('0'), "transaction_id {id:?}");
}
