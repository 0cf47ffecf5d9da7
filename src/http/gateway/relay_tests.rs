//! Admission of a v2 engine's callbacks: the same order as for merchants, with the order's address in a key's place.

use http::{HeaderName, Method};

use super::fixture::{Answered, BODY_LIMIT, Call, Fixture, NOW, V2_SECRET};
use super::*;
use crate::domain::{
    Amount, CallbackUrl, Currency, Encoding, Fingerprint, FingerprintKey, MemberFingerprints, MerchantId, OrderId,
    Quota, Secret, Segment,
};
use crate::rules::RuleSet;
use crate::store::PendingCreate;

const CALLBACK: &str = r#"{"order_id":"o-1","event":"later versions may add members"}"#;

/// A gateway whose store knows a payin `o-1` of a remote engine.
struct Relay {
    fixture: Fixture,
}

impl Relay {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut RuleSet)) -> Self {
        let fixture = Fixture::with(change);
        let created = PendingCreate {
            merchant: MerchantId::new("acme").unwrap(),
            direction: Direction::Payin,
            order_id: OrderId::new("o-1").unwrap(),
            api_key: "acme-live".into(),
            amount: Amount::from_hundredths(1050).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            shop: None,
            fingerprint: Fingerprint([1; 16]),
            v1_members: MemberFingerprints::default(),
            callback_url: Some(CallbackUrl::new("https://acme.example/callbacks").unwrap()),
            body: (*b"{}").into(),
            created_at: NOW,
        };
        fixture.store.record_create(created).await.unwrap();
        Self { fixture }
    }

    /// The relay address of an order, as it was given to the engine.
    fn target(&self, direction: Direction, order_id: &str) -> String {
        target(self.fixture.store.fingerprint_key(), direction, order_id)
    }

    fn callback(&self, body: &'static str) -> Call {
        let target = self.target(Direction::Payin, "o-1");
        Call::v2(Method::POST, &target, body).but(|call| call.headers.retain(|(name, _)| *name != "x-api-key"))
    }

    async fn send(&self, call: Call) -> Answered {
        self.fixture.send(call).await
    }

    /// How many callbacks of the engine are queued.
    async fn queued(&self) -> u64 {
        self.fixture.store.outbox_size().await.unwrap().pending
    }
}

fn target(key: &FingerprintKey, direction: Direction, order_id: &str) -> String {
    let merchant = MerchantId::new("acme").unwrap();
    let order = key.order_key(&merchant, direction, &OrderId::new(order_id).unwrap());
    CallbackUrl::of_relay("", &merchant, direction, order).as_str().to_owned()
}

/// A fault, the status and a word of the message that report it, and how to make it.
type Fault = (&'static str, u16, &'static str, fn(&mut Call));

const FAULTS: &[Fault] = &[
    ("method", 405, "POST only", |call| call.method = Method::PUT),
    ("content type", 415, "Content-Type", |call| call.set("content-type", "text/json")),
    ("content encoding", 415, "Content-Encoding", |call| call.set("content-encoding", "gzip")),
    ("announced length", 413, "too large", |call| call.body.announced = Some(BODY_LIMIT as u64 + 1)),
    ("repeated header", 400, "more than once", |call| call.add("x-signature", "00")),
    ("token", 404, "not found", |call| call.target = call.target.replace(".payin.", ".payout.")),
    ("body time", 408, "body", |call| call.body.stalls = true),
    ("signature", 401, "authentication", |call| call.set("x-signature", &"0".repeat(64))),
    ("query", 400, "query", |call| call.target.push_str("?order_id=o-1")),
];

#[tokio::test(start_paused = true)]
async fn the_first_fault_of_a_callback_wins_and_nothing_is_stored() {
    let relay = Relay::new().await;
    for (at, (name, status, word, _)) in FAULTS.iter().enumerate() {
        let mut call = relay.callback(CALLBACK);
        // The query would change the token's segment if it came first.
        for (_, _, _, apply) in FAULTS[at..].iter().rev().filter(|fault| fault.0 != "query") {
            apply(&mut call);
        }
        if FAULTS[at..].iter().any(|fault| fault.0 == "query") {
            call.target.push_str("?order_id=o-1");
        }
        let answered = relay.send(call).await;
        assert_eq!(answered.status, *status, "{name}: {answered:?}");
        assert!(answered.message().contains(word), "{name}: {answered:?}");
    }
    assert_eq!(relay.queued().await, 0);
    let line = relay.fixture.lines.all().pop().unwrap();
    assert!(line.contains("relay") && !line.contains("payin."), "{line}");
}

#[tokio::test]
async fn guessed_addresses_are_throttled_and_the_engine_never() {
    let relay = Relay::with(|rules| {
        let one = std::num::NonZeroU32::new(1).unwrap();
        rules.gateway.limits.unauthenticated_per_ip = Quota { per_second: one, burst: one };
    })
    .await;
    let guess = relay.callback(CALLBACK).but(|call| call.target = relay.target(Direction::Payin, "o-2"));
    assert_eq!(relay.send(guess.clone()).await.status, 404);
    assert_eq!(relay.send(guess).await.status, 429);
    assert_eq!(relay.send(relay.callback(CALLBACK).but(|call| call.set("x-signature", "00"))).await.status, 429);
    assert_eq!(relay.send(relay.callback(CALLBACK)).await.status, 200);
}

#[tokio::test]
async fn a_store_that_is_away_is_reported_so_that_the_engine_sends_again() {
    let relay = Relay::new().await;
    relay.fixture.store.close().await.unwrap();
    let answered = relay.send(relay.callback(CALLBACK)).await;
    assert_eq!(answered.status, 503);
    assert!(answered.header("retry-after").is_some());
}

#[tokio::test]
async fn the_recipe_of_the_engine_is_followed() {
    let relay = Relay::with(|rules| {
        let recipe = &mut rules.gateway.callback_signature;
        recipe.header = HeaderName::from_static("x-engine-signature");
        recipe.payload = vec![
            Segment::Timestamp,
            Segment::Literal("|".into()),
            Segment::ApiKey,
            Segment::Method,
            Segment::Path,
            Segment::Body,
        ];
        recipe.encoding = Encoding::Base64;
    })
    .await;
    let path = relay.target(Direction::Payin, "o-1");
    let signed = format!("soon|acme-livePOST{path}{CALLBACK}");
    let mut mac = Secret::new(V2_SECRET).sha256();
    hmac::Mac::update(&mut mac, signed.as_bytes());
    let signature =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hmac::Mac::finalize(mac).into_bytes());
    let good = relay.callback(CALLBACK).but(|call| {
        call.headers.retain(|(name, _)| *name != "x-signature");
        call.set("x-engine-signature", &signature);
        call.set("x-timestamp", "soon");
    });
    assert_eq!(relay.send(good.clone()).await.status, 200);
    for (name, value) in [("x-timestamp", "later"), ("x-engine-signature", "AAAA")] {
        assert_eq!(relay.send(good.clone().but(|call| call.set(name, value))).await.status, 401, "{name}");
    }
    let without = |name: &'static str| good.clone().but(|call| call.headers.retain(|(own, _)| *own != name));
    for name in ["x-timestamp", "x-engine-signature"] {
        assert_eq!(relay.send(without(name)).await.status, 401, "{name}");
    }
    assert_eq!(relay.send(good.but(|call| call.add("x-timestamp", "soon"))).await.status, 400);
}
