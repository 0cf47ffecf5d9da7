//! Requests, and how merchants sign them. Written from the interface's words, not from the crate's code.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// An API key with its secrets.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// What is sent.
    pub name: &'static str,
    /// Signs v1.
    pub v1: Option<&'static str>,
    /// Signs v2.
    pub v2: Option<&'static str>,
}

const fn key(name: &'static str, v1: Option<&'static str>, v2: Option<&'static str>) -> Key {
    Key { name, v1, v2 }
}

/// The key of most tests.
pub const ACME: Key = key("acme-live", Some("acme-v1-hush-7Wq"), Some("acme-v2-hush-9Xz"));
/// Cannot call v1.
pub const ACME_V2: Key = key("acme-native", None, Some("acme-native-hush-3Kd"));
/// Is not allowed from here.
pub const ACME_NOWHERE: Key = key("acme-far", Some("acme-far-v1-hush"), Some("acme-far-v2-hush"));
/// Two requests, then one a second.
pub const ACME_LIMITED: Key = key("acme-slow", Some("acme-slow-v1-hush"), Some("acme-slow-v2-hush"));
/// May use one shop.
pub const ACME_PLAIN_ONLY: Key = key("acme-plain", Some("acme-plain-v1-hush"), Some("acme-plain-v2-hush"));
/// Another merchant.
pub const BETA: Key = key("beta-live", Some("beta-v1-hush-1Lm"), Some("beta-v2-hush-2Np"));
/// A third one.
pub const GAMMA: Key = key("gamma-live", Some("gamma-v1-hush-4Qs"), Some("gamma-v2-hush-6Uv"));

/// Every key of the tests' rules.
pub const KEYS: &[Key] = &[ACME, ACME_V2, ACME_NOWHERE, ACME_LIMITED, ACME_PLAIN_ONLY, BETA, GAMMA];

/// Which interface a request is signed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// Over `{timestamp}.{method}.{path}.{body}`, lowercase hex.
    V1,
    /// Over the body.
    V2,
}

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Both ways.
pub const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// A request as a test wants it sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Without `Host` and `Content-Length`, which the client adds.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request with nothing but a body.
    pub fn new(method: &str, target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: body.into() }
    }

    /// A v1 create, signed.
    pub fn v1_post(key: &Key, target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target, body).json().signed(Signing::V1, key)
    }

    /// A v1 question, signed.
    pub fn v1_get(key: &Key, target: &str) -> Self {
        Self::new("GET", target, "").signed(Signing::V1, key)
    }

    /// A v2 create, signed.
    pub fn v2_post(key: &Key, target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target, body).json().signed(Signing::V2, key)
    }

    /// A v2 question, signed.
    pub fn v2_get(key: &Key, target: &str) -> Self {
        Self::new("GET", target, "").signed(Signing::V2, key)
    }

    /// v1's payin.
    pub fn payin(key: &Key, body: &impl ToString) -> Self {
        Self::v1_post(key, "/api/v1/payin", body.to_string())
    }

    /// v1's payout.
    pub fn payout(key: &Key, body: &impl ToString) -> Self {
        Self::v1_post(key, "/api/v1/payout", body.to_string())
    }

    /// v2's deposit.
    pub fn deposit(key: &Key, body: &impl ToString) -> Self {
        Self::v2_post(key, "/api/v2/deposits", body.to_string())
    }

    /// v2's withdrawal.
    pub fn withdrawal(key: &Key, body: &impl ToString) -> Self {
        Self::v2_post(key, "/api/v2/withdrawals", body.to_string())
    }

    /// v2's status.
    pub fn status(key: &Key, transaction_id: &str) -> Self {
        Self::v2_get(key, &format!("/api/v2/transactions/{transaction_id}"))
    }

    /// v1's status.
    pub fn v1_status(key: &Key, kind: &str, external_id: &str) -> Self {
        Self::v1_get(key, &format!("/api/v1/{kind}/status?external_id={external_id}"))
    }

    fn json(self) -> Self {
        self.header("Content-Type", "application/json")
    }

    /// Adds the headers of an authentic request.
    pub fn signed(self, signing: Signing, key: &Key) -> Self {
        self.signed_at(signing, key, unix_now())
    }

    /// The same at another time.
    pub fn signed_at(self, signing: Signing, key: &Key, timestamp: u64) -> Self {
        let signature = match signing {
            Signing::V1 => {
                let path = self.target.split('?').next().unwrap_or_default();
                let mut payload = format!("{timestamp}.{}.{path}.", self.method).into_bytes();
                payload.extend_from_slice(&self.body);
                hmac_hex(key.v1.unwrap_or("no v1 secret at all"), &payload)
            }
            Signing::V2 => hmac_hex(key.v2.unwrap_or("no v2 secret at all"), &self.body),
        };
        let signed = self.header("X-Api-Key", key.name).header("X-Signature", &signature);
        if signing == Signing::V1 { signed.header("X-Timestamp", &timestamp.to_string()) } else { signed }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces a header, or takes it away.
    #[must_use]
    pub fn replace(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// The value of a header.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The request's head in HTTP/1.1, with these framing headers.
    pub fn head(&self, framing: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        (head + framing + "\r\n").into_bytes()
    }

    /// The request in HTTP/1.1.
    pub fn bytes(&self) -> Vec<u8> {
        let framing = if self.body.is_empty() && self.method == "GET" {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", self.body.len())
        };
        let mut bytes = self.head(&framing);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Lowercase hexadecimal HMAC-SHA256.
pub fn hmac_hex(secret: &str, payload: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(payload);
    mac.finalize().into_bytes().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Seconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the test is a caller from outside, with a clock of its own")]
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
