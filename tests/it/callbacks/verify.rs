//! What a merchant's receiver checks of a callback, written from the contract's words and not from the crate's code.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

use crate::support::receiver::Received;
use crate::support::request::{KEYS, hmac_hex};
use crate::support::{CARD, Key};

/// How far the clocks of a callback and of its receiver may be apart, in seconds: they are one clock.
const SLACK: u64 = 30;

/// Asserts that this is a v2 callback of an order, signed with this secret.
#[track_caller]
pub fn assert_v2(received: &Received, secret: &str, order_id: &str) {
    assert_any(received);
    let body = json!({ "order_id": order_id }).to_string();
    assert_eq!(String::from_utf8_lossy(&received.body), body, "exactly the order's name");
    assert!(is_v2_signed(received, secret), "not signed with {secret}: {received:?}");
    assert_eq!(received.header("webhook-id"), received.id());
    let timestamp: u64 = received.header("webhook-timestamp").parse().unwrap();
    assert!(timestamp.abs_diff(received.unix) <= SLACK, "{timestamp} at {}", received.unix);
    let signed = [received.id().as_bytes(), b".", timestamp.to_string().as_bytes(), b".", &received.body].concat();
    let signature = format!("v1,{}", STANDARD.encode(sha256(secret.as_bytes(), &signed)));
    assert_eq!(received.header("webhook-signature"), signature, "signed with the first secret, once");
}

/// Whether `X-Signature` is of this secret.
#[track_caller]
pub fn is_v2_signed(received: &Received, secret: &str) -> bool {
    received.header("x-signature") == hmac_hex(secret, &received.body)
}

/// How a dialect signs and tells.
pub struct Dialect {
    /// What stands in `dialects/`, and its text; `None` for the built-in one.
    pub file: Option<(&'static str, &'static str)>,
    /// The dialect's words for SUCCESS and FAILED.
    pub words: [&'static str; 2],
    api_key: &'static str,
    timestamp: &'static str,
    signature: &'static str,
    /// Timestamps a second.
    ticks: u64,
    sign: fn(&str, &Received, &str, &str) -> String,
    body: fn(&Value) -> String,
}

/// The built-in dialect.
pub const V1: Dialect = Dialect {
    file: None,
    words: ["SUCCESS", "FAILED"],
    api_key: "x-api-key",
    timestamp: "x-timestamp",
    signature: "x-signature",
    ticks: 1,
    sign: |secret, received, timestamp, _| {
        let path = received.target.split('?').next().unwrap();
        let head = format!("{timestamp}.{}.{path}.", received.method);
        hmac_hex(secret, &[head.as_bytes(), &received.body].concat())
    },
    body: |reported| {
        let text = |name: &str| reported[name].to_string();
        format!(
            r#"{{"external_id":{},"transaction_id":{},"status":{},"amount":{},"currency":{},"shop_code":{}}}"#,
            text("external_id"),
            text("transaction_id"),
            text("status"),
            text("amount"),
            text("currency"),
            text("shop_code")
        )
    },
};

/// One that differs from it in every key.
pub const MERIDIAN: Dialect = Dialect {
    file: Some(("meridian", include_str!("../dialects/meridian.toml"))),
    words: ["done", "lost"],
    api_key: "x-merchant",
    timestamp: "x-sent-at",
    signature: "x-mac",
    ticks: 1000,
    sign: |secret, received, timestamp, key| {
        let (path, query) = received.target.split_once('?').unwrap_or((&received.target, ""));
        let head = format!("{{{key}}}|{timestamp}|{}\n{path}\n{query}\n", received.method);
        let mut mac = Hmac::<Sha512>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&[head.as_bytes(), &received.body, b"|v=1"].concat());
        STANDARD.encode(mac.finalize().into_bytes())
    },
    body: |reported| {
        format!(
            r#"{{"order": {}, "id": {}, "state": {}, "value": {}}}"#,
            reported["external_id"], reported["transaction_id"], reported["status"], reported["amount"]
        )
    },
};

impl Dialect {
    /// The signature of a request as its receiver reads it.
    pub fn signature(&self, received: &Received, timestamp: &str, key: &Key) -> String {
        (self.sign)(key.v1.unwrap(), received, timestamp, key.name)
    }
}

/// Asserts that this is a v1 callback in a dialect, signed with the v1 secret of a key, and that it tells just this.
#[track_caller]
pub fn assert_v1(received: &Received, dialect: &Dialect, key: &Key, reported: &Value) {
    assert_any(received);
    assert_eq!(String::from_utf8_lossy(&received.body), (dialect.body)(reported));
    assert_eq!(received.header(dialect.api_key), key.name);
    let timestamp = received.header(dialect.timestamp);
    let seconds = timestamp.parse::<u64>().unwrap() / dialect.ticks;
    assert!(seconds.abs_diff(received.unix) <= SLACK, "{timestamp} at {}", received.unix);
    let signature = dialect.signature(received, timestamp, key);
    assert_eq!(received.header(dialect.signature), signature, "{received:?}");
}

/// Asserts what must hold of every callback.
#[track_caller]
fn assert_any(received: &Received) {
    assert_eq!(received.method, "POST");
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("content-length"), received.body.len().to_string());
    assert!(received.header("host").starts_with("localhost"), "{received:?}");
    let id = received.id();
    let digits = id.strip_prefix("cb_").unwrap_or_else(|| panic!("no callback's id: {id}"));
    assert!(digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    for name in ["cookie", "authorization", "x-forwarded-for", "forwarded", "via", "x-callback-sample", "expect"] {
        assert!(received.all(name).is_empty(), "{name}: {received:?}");
    }
    let whole = format!("{:?}\n{}\n{}", received.headers, received.target, String::from_utf8_lossy(&received.body));
    for secret in KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten().chain([CARD]) {
        assert!(!whole.contains(secret), "{secret} is in {whole}");
    }
}

fn sha256(secret: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(payload);
    mac.finalize().into_bytes().to_vec()
}
