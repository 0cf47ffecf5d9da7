//! The same small world for every piece: rules, a clock that stands, randomness that repeats itself.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use paybridge::auth::signatures::{V1Input, sign_v1};
use paybridge::auth::{Caller, Interface, KnownKey, SignedBody, V1Head};
use paybridge::clock::Random;
use paybridge::domain::UnixMillis;
use paybridge::rules::{ApiKey, LoadOptions, Merchant, RuleSet, load};
use paybridge::store::Comparer;

use crate::support::request::ACME;
use crate::support::{Rules, payin};

/// When everything happens.
pub const NOW: UnixMillis = UnixMillis(1_780_000_000_123);

/// Where callers are.
pub const CALLER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// How many networks the long allow-list has.
const NETWORKS: u32 = 10_000;

/// The path of the v1 create.
pub const PAYIN_PATH: &str = "/api/v1/payin";

/// Numbers that look random and are the same in every run.
#[derive(Default)]
pub struct Repeating(AtomicU64);

impl Random for Repeating {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Splitmix64.
    fn number(&self) -> u64 {
        let mut mixed = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The rules of the black-box tests; the main key has a rate limit that nothing here reaches.
pub fn rules() -> Arc<RuleSet> {
    let directory = tempfile::tempdir().unwrap();
    let limited = "rate_limit = { per_second = 1000000, burst = 1000000 }\n[[api_keys]]\nkey = \"acme-native\"";
    Rules::default().edit("merchants/acme.toml", "[[api_keys]]\nkey = \"acme-native\"", limited).write(
        directory.path(),
        8443,
        9090,
    );
    Arc::new(load(&directory.path().join("rules"), NOW, None, LoadOptions::default()).unwrap())
}

/// The merchant of the rules.
pub fn merchant(rules: &RuleSet) -> &Merchant {
    &rules.api_key(ACME.name).unwrap().merchant
}

/// Its main key.
pub fn api_key(rules: &RuleSet) -> &ApiKey {
    rules.api_key(ACME.name).unwrap().api_key()
}

/// A v1 deposit; every number is another order.
pub fn body(number: u32) -> Bytes {
    payin(&format!("order-{number:012}")).to_string().into()
}

/// A hash for comparisons.
pub fn comparer() -> Comparer {
    Comparer::new(&[7; 32])
}

/// The timestamp and the signature of a v1 request of now.
pub fn signed(rules: &RuleSet, method: &str, path: &str, query: Option<&str>, body: &[u8]) -> (String, String) {
    let timestamp = (NOW.0 / 1000).to_string();
    let input = V1Input { timestamp: &timestamp, method, path, query, api_key: ACME.name, body };
    let secret = api_key(rules).v1_secrets.as_ref().unwrap().signing();
    let signature = sign_v1(&merchant(rules).v1.dialect.signature, secret, &input);
    (timestamp, signature)
}

/// A caller who was proven, with its body.
pub fn caller(rules: &Arc<RuleSet>, body: Bytes) -> (Caller, SignedBody) {
    let (timestamp, signature) = signed(rules, "POST", PAYIN_PATH, None, &body);
    let (timestamp, signature) = (timestamp.as_str(), signature.as_bytes());
    let head = V1Head { timestamp, signature, method: "POST", path: PAYIN_PATH, query: None };
    let key = KnownKey::find(rules, Interface::V1, ACME.name).unwrap().admit(CALLER).unwrap();
    key.verify_v1(&head, body, NOW).unwrap()
}

/// A request's whole head, as clients send it.
pub fn head(rules: &RuleSet) -> Vec<u8> {
    let body = body(0);
    let (timestamp, signature) = signed(rules, "POST", PAYIN_PATH, None, &body);
    let mut head = format!("POST {PAYIN_PATH} HTTP/1.1\r\nHost: localhost:8443\r\nContent-Type: application/json\r\n");
    let length = body.len();
    let _ = write!(head, "X-Api-Key: {}\r\nX-Timestamp: {timestamp}\r\nX-Signature: {signature}\r\n", ACME.name);
    let _ = write!(head, "User-Agent: merchant/1.0\r\nAccept: */*\r\nContent-Length: {length}\r\n\r\n");
    head.into_bytes()
}

/// Networks of `10.0.0.0/8`, none of them next to another.
pub fn networks() -> impl Iterator<Item = ipnet::IpNet> {
    (0..NETWORKS).map(|number| format!("10.{}.{}.0/25", number / 256, number % 256).parse().unwrap())
}
