//! What clients of a dialect know: how to sign, where to send, how to read the answers. Written from the dialects' files
//! in words of its own, not with the crate's code.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};

use crate::support::request::{Key, Request, unix_now};
use crate::support::text;

/// A dialect, as its clients know it.
pub struct Wire {
    /// Its name.
    pub name: &'static str,
    /// Its file; the built-in one has none.
    pub file: Option<&'static str>,
    /// The headers of the API key, the signature and the timestamp.
    pub headers: [&'static str; 3],
    /// How a time is written.
    pub timestamp: fn(Timestamp) -> String,
    /// How far a timestamp may be from now, in seconds.
    pub window: i64,
    /// What is signed.
    pub payload: fn(&Signed<'_>) -> String,
    /// How it is signed.
    pub mac: fn(&[u8], &[u8]) -> String,
    /// Paths: payin, payout, their statuses, balance, transactions.
    pub paths: [&'static str; 6],
    /// Words for PENDING, SUCCESS and FAILED.
    pub words: [&'static str; 3],
    /// Whether PHP's empty array is an object.
    pub empty_list_is_object: bool,
    /// Reads the reply to a create.
    pub created: fn(&Value) -> Created,
    /// Reads a status.
    pub seen: fn(&Value) -> Seen,
    /// Reads an error: its code and its sentence.
    pub error: fn(&Value) -> (u16, String),
    /// Reads balances: currency, available, held.
    pub balances: fn(&Value) -> Vec<[String; 3]>,
    /// Reads a page of a history.
    pub page: fn(&Value) -> Page,
}

/// What a signature may cover.
pub struct Signed<'a> {
    pub api_key: &'a str,
    pub timestamp: &'a str,
    pub method: &'a str,
    pub target: &'a str,
    pub body: &'a str,
}

impl Signed<'_> {
    fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A reply to a create, read.
#[derive(Debug, PartialEq, Eq)]
pub struct Created {
    pub transaction_id: String,
    pub external_id: String,
    pub redirect_url: Option<String>,
}

/// A status, read.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub transaction_id: String,
    pub external_id: String,
    pub status: String,
    pub amount: String,
    pub currency: String,
    pub shop_code: String,
    pub account_number: Option<String>,
}

/// A page of a history, read: each line with its type and the time of its creation.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub lines: Vec<(Seen, String, String)>,
    pub number: u64,
    pub size: u64,
    pub has_more: bool,
}

impl Wire {
    pub const fn payin(&self) -> &'static str {
        self.paths[0]
    }

    pub const fn payout(&self) -> &'static str {
        self.paths[1]
    }

    /// The target of a payin's status.
    pub fn payin_status(&self, query: &str) -> String {
        format!("{}?{query}", self.paths[2])
    }

    /// The target of a payout's status.
    pub fn payout_status(&self, query: &str) -> String {
        format!("{}?{query}", self.paths[3])
    }

    /// A create, signed now.
    pub fn post(&self, key: &Key, path: &str, body: &impl ToString) -> Request {
        self.signed_at(key, "POST", path, &body.to_string(), &(self.timestamp)(now(0)))
    }

    /// A question, signed now.
    pub fn get(&self, key: &Key, target: &str) -> Request {
        self.signed_at(key, "GET", target, "", &(self.timestamp)(now(0)))
    }

    /// A request signed with this text for a timestamp.
    pub fn signed_at(&self, key: &Key, method: &str, target: &str, body: &str, timestamp: &str) -> Request {
        let payload = (self.payload)(&Signed { api_key: key.name, timestamp, method, target, body });
        let signature = (self.mac)(key.v1.unwrap().as_bytes(), payload.as_bytes());
        let [api_key_header, signature_header, timestamp_header] = self.headers;
        let request = Request::new(method, target, body)
            .header(api_key_header, key.name)
            .header(signature_header, &signature)
            .header(timestamp_header, timestamp);
        if method == "GET" { request } else { request.header("Content-Type", "application/json") }
    }

    /// Whether a signature tells two targets of a question apart.
    pub fn tells_apart(&self, one: &str, other: &str) -> bool {
        let payload =
            |target| (self.payload)(&Signed { api_key: "k", timestamp: "0", method: "GET", target, body: "" });
        payload(one) != payload(other)
    }
}

/// The time in so many seconds.
pub fn now(in_seconds: i64) -> Timestamp {
    Timestamp::from_second(i64::try_from(unix_now()).unwrap() + in_seconds).unwrap()
}

/// The default dialect.
pub const V1: Wire = Wire {
    name: "v1",
    file: None,
    headers: ["X-Api-Key", "X-Signature", "X-Timestamp"],
    timestamp: unix,
    window: 300,
    payload: |s| format!("{}.{}.{}.{}", s.timestamp, s.method, s.path(), s.body),
    mac: |secret, payload| hex(&sha256(secret, payload)),
    paths: [
        "/api/v1/payin",
        "/api/v1/payout",
        "/api/v1/payin/status",
        "/api/v1/payout/status",
        "/api/v1/balance",
        "/api/v1/transactions",
    ],
    words: ["PENDING", "SUCCESS", "FAILED"],
    empty_list_is_object: false,
    created: |reply| {
        assert_keys(reply, &["external_id", "transaction_id"], &["redirect_url"]);
        Created {
            transaction_id: text(reply, "transaction_id").to_owned(),
            external_id: text(reply, "external_id").to_owned(),
            redirect_url: optional(reply, "redirect_url"),
        }
    },
    seen: |reply| {
        let always = ["amount", "currency", "external_id", "shop_code", "status", "transaction_id"];
        assert_keys(reply, &always, &["account_number"]);
        let [amount, currency, external_id, shop_code, status, transaction_id] =
            always.map(|name| text(reply, name).to_owned());
        let account_number = optional(reply, "account_number");
        Seen { transaction_id, external_id, status, amount, currency, shop_code, account_number }
    },
    error: |reply| {
        assert_keys(reply, &["error"], &[]);
        assert_keys(&reply["error"], &["code", "message"], &[]);
        let code = u16::try_from(reply["error"]["code"].as_u64().unwrap()).unwrap();
        (code, text(&reply["error"], "message").to_owned())
    },
    balances: |reply| {
        assert_keys(reply, &["balances"], &[]);
        let read = |balance: &Value| {
            assert_keys(balance, &["available", "currency", "held"], &[]);
            ["currency", "available", "held"].map(|name| text(balance, name).to_owned())
        };
        reply["balances"].as_array().unwrap().iter().map(read).collect()
    },
    page: |reply| {
        assert_keys(reply, &["has_more", "page", "per_page", "transactions"], &[]);
        let line = |line: &Value| {
            let mut status = line.clone();
            let mut take = |name| status.as_object_mut().unwrap().remove(name).unwrap().as_str().unwrap().to_owned();
            let (kind, created_at) = (take("type"), take("created_at"));
            ((V1.seen)(&status), kind, created_at)
        };
        Page {
            lines: reply["transactions"].as_array().unwrap().iter().map(line).collect(),
            number: reply["page"].as_u64().unwrap(),
            size: reply["per_page"].as_u64().unwrap(),
            has_more: reply["has_more"].as_bool().unwrap(),
        }
    },
};

/// Differs from the default one in every key.
pub const MERIDIAN: Wire = Wire {
    name: "meridian",
    file: Some(include_str!("meridian.toml")),
    headers: ["X-Merchant", "X-Mac", "X-Sent-At"],
    timestamp: unix_millis,
    window: 120,
    payload: |s| {
        let (path, query) = (s.path(), s.query());
        format!("{{{}}}|{}|{}\n{path}\n{query}\n{}|v=1", s.api_key, s.timestamp, s.method, s.body)
    },
    mac: |secret, payload| BASE64_STANDARD.encode(sha512(secret, payload)),
    paths: [
        "/gate/deposits",
        "/gate/withdrawals.php",
        "/gate/deposits",
        "/gate/withdrawals/find/",
        "/gate/money",
        "/gate/history",
    ],
    words: ["waiting", "done", "lost"],
    empty_list_is_object: true,
    created: |reply| {
        assert_keys(reply, &["ok", "result"], &[]);
        let made = &reply["result"];
        assert_keys(made, &["id", "order"], &["go_to"]);
        Created {
            transaction_id: text(made, "id").to_owned(),
            external_id: text(made, "order").to_owned(),
            redirect_url: optional(made, "go_to"),
        }
    },
    seen: |reply| {
        assert_keys(reply, &["ok", "result"], &[]);
        let seen = &reply["result"];
        assert_keys(seen, &["id", "money", "order", "shop", "state"], &["account"]);
        Seen {
            transaction_id: text(seen, "id").to_owned(),
            external_id: text(seen, "order").to_owned(),
            status: text(seen, "state").to_owned(),
            amount: text(&seen["money"], "value").to_owned(),
            currency: text(&seen["money"], "unit").to_owned(),
            shop_code: text(seen, "shop").to_owned(),
            account_number: optional(seen, "account"),
        }
    },
    error: |reply| {
        assert_keys(reply, &["fault", "ok"], &[]);
        assert_eq!(reply["ok"], json!(false));
        assert_keys(&reply["fault"], &["number", "text"], &[]);
        let code = text(&reply["fault"], "number").strip_prefix('E').expect("an E").parse().unwrap();
        (code, text(&reply["fault"], "text").to_owned())
    },
    balances: |reply| {
        assert_keys(reply, &["ok", "result"], &[]);
        let read = |(currency, sums): (&String, &Value)| {
            let [available, held] = [0, 1].map(|at| sums[at].as_str().unwrap().to_owned());
            [currency.clone(), available, held]
        };
        reply["result"].as_object().unwrap().iter().map(read).collect()
    },
    page: |reply| {
        assert_keys(reply, &["more", "ok", "page", "result"], &[]);
        let line = |line: &Value| {
            let mut status = line.clone();
            let mut take = |name| status.as_object_mut().unwrap().remove(name).unwrap().as_str().unwrap().to_owned();
            let (kind, created_at) = (take("kind"), take("at"));
            ((MERIDIAN.seen)(&json!({ "ok": true, "result": status })), kind, created_at)
        };
        Page {
            lines: reply["result"].as_array().unwrap().iter().map(line).collect(),
            number: reply["page"][0].as_u64().unwrap(),
            size: reply["page"][1].as_u64().unwrap(),
            has_more: reply["more"].as_bool().unwrap(),
        }
    },
};

/// The default routes, headers and shapes, with a signature of its own.
pub const STRAND: Wire = Wire {
    name: "strand",
    file: Some(include_str!("strand.toml")),
    timestamp: |at| at.to_string(),
    window: 600,
    payload: |s| format!("{} {} {} {}", s.method, s.target, s.timestamp, hex(&Sha256::digest(s.body))),
    mac: |secret, payload| hex(&sha512(secret, payload)),
    ..V1
};

pub fn unix(at: Timestamp) -> String {
    at.as_second().to_string()
}

pub fn unix_millis(at: Timestamp) -> String {
    (at.as_millisecond() + 123).to_string()
}

pub fn sha256(secret: &[u8], payload: &[u8]) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(secret).unwrap().chain_update(payload).finalize().into_bytes().to_vec()
}

pub fn sha512(secret: &[u8], payload: &[u8]) -> Vec<u8> {
    Hmac::<Sha512>::new_from_slice(secret).unwrap().chain_update(payload).finalize().into_bytes().to_vec()
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[track_caller]
pub fn assert_keys(object: &Value, always: &[&str], sometimes: &[&str]) {
    let keys: Vec<_> = object.as_object().unwrap_or_else(|| panic!("no object: {object}")).keys().collect();
    assert!(always.iter().all(|name| object.get(name).is_some()), "{always:?} in {object}");
    assert!(keys.iter().all(|key| always.contains(&key.as_str()) || sometimes.contains(&key.as_str())), "{object}");
}

fn optional(object: &Value, name: &str) -> Option<String> {
    object.get(name).map(|_| text(object, name).to_owned())
}
