//! The order of guards inside create, over the real store and real rule files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::{Created, Engine, PageSecret, Refused};
use crate::auth::callers::{Interface, KnownKey};
use crate::auth::{Caller, signatures};
use crate::clock::{ManualClock, SystemRandomness};
use crate::domain::{Direction, UnixMillis};
use crate::failure::Failure;
use crate::provider::Providers;
use crate::rules::{LoadOptions, RuleSet, Secret, load};
use crate::store::{Digest, V1Part, open_store};
use crate::telemetry::Metrics;
use crate::v2;

const START: UnixMillis = UnixMillis(1_780_000_000_000);

struct World {
    directory: tempfile::TempDir,
    engine: Arc<Engine>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| put(directory.path(), path, text);
        write("rules/gateway.toml", "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n");
        write(
            "rules/merchants/acme.toml",
            "name = \"Acme\"\ndefault_shop = \"card\"\n[[api_keys]]\nkey = \"k\"\nv2_secret = \"s\"\n\
             allowed_ips = [\"127.0.0.1\"]\n[shops.card]\npayin = true\npayout = true\n",
        );
        write(
            "rules/shops/card.toml",
            "currency = \"EUR\"\n[payin]\nschema = \"card.json\"\n[payout]\naccount = \"card\"\n[provider]\nkind = \"sandbox\"\n",
        );
        write(
            "rules/shops/card.json",
            r#"{"type":"object","properties":{"bank_code":{"type":"string"},"level":{"type":"number"}}}"#,
        );
        let rules = rules(directory.path());
        let (random, metrics) = (Arc::new(SystemRandomness::default()), Arc::new(Metrics::default()));
        let store = open_store(&rules.gateway.store, random.clone(), Arc::clone(&metrics)).unwrap().store;
        let clock = Arc::new(ManualClock::at(START));
        let page_secret = PageSecret(Secret::new(b"pages"));
        let providers = Arc::new(Providers::default());
        let engine = Arc::new(Engine::new(store, clock, random, providers, page_secret, metrics));
        Self { directory, engine }
    }

    /// Changes a rule file; callers made afterwards see it.
    fn edit(&self, path: &str, text: &str) {
        put(self.directory.path(), path, text);
    }

    fn caller(&self) -> Caller {
        let rules = Arc::new(rules(self.directory.path()));
        let key = KnownKey::find(&rules, Interface::V2, "k").unwrap();
        let signature = signatures::sign_v2(&Secret::new(b"s"), b"");
        let admitted = key.admit("127.0.0.1".parse().unwrap()).unwrap();
        admitted.verify_v2(Bytes::new(), signature.as_bytes()).unwrap().0
    }

    async fn create(&self, direction: Direction, body: &str) -> Result<String, String> {
        let caller = self.caller();
        let body = Bytes::from(body.to_owned());
        let signature = signatures::sign_v2(&Secret::new(b"s"), &body);
        let signed = crate::auth::callers::verify_forwarded(&caller, body, &signature).unwrap();
        match v2::create(&self.engine, &caller, direction, &signed).await {
            Ok(reply) => Ok(String::from_utf8(reply.to_vec()).unwrap()),
            Err(Failure::Invalid(complaint)) => Err(format!("400 {complaint}")),
            Err(Failure::Conflict(complaint)) => Err(format!("409 {complaint}")),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    async fn deposit(&self, members: &str) -> Result<String, String> {
        self.create(Direction::Payin, &deposit(members)).await
    }
}

fn put(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn rules(directory: &Path) -> RuleSet {
    load(&directory.join("rules"), START, None, LoadOptions::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A deposit body, `members` in place of or beside the usual ones.
fn deposit(members: &str) -> String {
    let mut body: serde_json::Map<String, serde_json::Value> = serde_json::from_str(
        r#"{"order_id":"o","amount":10,"currency":"EUR","callback_url":"https://a.example/cb",
            "success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":"https://a.example/f"}"#,
    )
    .unwrap();
    let extra: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&format!("{{{members}}}")).unwrap();
    body.extend(extra);
    serde_json::to_string(&body).unwrap()
}

#[tokio::test]
async fn guards_stand_in_the_order_of_the_contract() {
    /// What is sent: the same as the first request, other data, or a body of the wrong shape.
    const SAME: &str = "";
    const OTHER: &str = "\"amount\":11";
    const SHAPE: &str = "\"amount\":\"10\"";
    const OFF: &str =
        "currency = \"EUR\"\nactive = false\n[payin]\nschema = \"card.json\"\n[provider]\nkind = \"sandbox\"\n";

    let on = fs::read_to_string(World::new().directory.path().join("rules/shops/card.toml")).unwrap();
    for (exists, shop_is_on, sent, expected) in [
        (false, true, SAME, "200"),
        (false, true, SHAPE, "400 amount"),
        (false, false, SAME, "400 method"),
        (false, false, SHAPE, "400 amount"),
        (true, true, SAME, "200"),
        (true, true, OTHER, "409 order_id"),
        (true, true, SHAPE, "400 amount"),
        (true, false, SAME, "200"),
        (true, false, OTHER, "409 order_id"),
        (true, false, SHAPE, "400 amount"),
    ] {
        let world = World::new();
        let first = if exists { Some(world.deposit(SAME).await.unwrap()) } else { None };
        world.edit("rules/shops/card.toml", if shop_is_on { &on } else { OFF });
        let answer = world.deposit(sent).await;
        let case = format!("exists {exists}, shop on {shop_is_on}, sent {sent:?}: {answer:?}");
        match (&answer, expected) {
            (Ok(reply), "200") => assert!(first.is_none_or(|first| first == *reply), "{case}"),
            (Err(error), expected) => assert!(error.starts_with(expected), "{case}"),
            (Ok(_), _) => panic!("{case}"),
        }
        if !exists && expected != "200" {
            world.edit("rules/shops/card.toml", &on);
            assert!(world.deposit(OTHER).await.is_ok(), "a refused create reserves nothing: {case}");
        }
    }
}

#[tokio::test]
async fn a_repeat_is_what_says_the_same() {
    let world = World::new();
    let fields = r#""fields":{"bank_code":"b1","level":1.50,"dropped":1}"#;
    let first = world.deposit(fields).await.unwrap();
    for same in [
        r#""fields":{"level":1.5,"bank_code":"b1"}"#,
        r#""fields":{"bank_code":"\u00621","level":15e-1,"dropped":2,"merchant_user_ip":null}"#,
        r#""fields":{"bank_code":"b1","level":1.5},"amount":10.00,"currency":"eur","customer_account_id":null"#,
    ] {
        assert_eq!(world.deposit(same).await.as_ref(), Ok(&first), "{same}");
    }
    for (other, members) in [
        (r#""fields":{"bank_code":"b2","level":1.5}"#, "fields.bank_code"),
        (r#""fields":{"bank_code":"b1"}"#, "fields.level"),
        (r#""fields":{"bank_code":"b1","level":1.5,"merchant_user_ip":"::1"}"#, "fields.merchant_user_ip"),
        (r#""fields":{"bank_code":"b1","level":1.5},"method":"card""#, "method"),
        (r#""fields":{"bank_code":"b1","level":1.5},"amount":11,"fail_url":"https://a.example/F""#, "amount, fail_url"),
        (r#""fields":{"bank_code":"b1","level":1.5},"customer_account_id":0"#, "customer_account_id"),
    ] {
        let expected = format!("409 order_id: exists already and was created from other data; differs in: {members}");
        assert_eq!(world.deposit(other).await, Err(expected), "{other}");
    }
}

#[tokio::test]
async fn a_schema_change_between_create_and_repeat_changes_nothing() {
    let world = World::new();
    let fields = r#""fields":{"bank_code":"b1","dropped":1}"#;
    let first = world.deposit(fields).await.unwrap();
    // A stricter schema that also keeps what the old one dropped.
    world.edit(
        "rules/shops/card.json",
        r#"{"type":"object","required":["iban"],"properties":{"iban":{"type":"string"},"dropped":{"type":"number"}}}"#,
    );
    assert_eq!(world.deposit(fields).await.as_ref(), Ok(&first));
    let other_dropped = world.deposit(r#""fields":{"bank_code":"b1","dropped":2}"#).await;
    assert_eq!(other_dropped.as_ref(), Ok(&first), "the schema at creation dropped it");
    assert!(world.deposit(r#""fields":{"bank_code":"b2"}"#).await.unwrap_err().starts_with("409"));
}

#[tokio::test]
async fn concurrent_creates_make_one_operation() {
    let world = Arc::new(World::new());
    let body = |n: usize| if n.is_multiple_of(4) { deposit("\"amount\":11") } else { deposit("") };
    let tasks = (0..64).map(|n| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { (n, world.create(Direction::Payin, &body(n)).await) })
    });
    let mut replies = BTreeSet::new();
    let mut winners = BTreeSet::new();
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            (n, Ok(reply)) => {
                replies.insert(reply);
                winners.insert(n % 4 == 0);
            }
            (_, Err(error)) => assert!(error.starts_with("409"), "{error}"),
        }
    }
    assert_eq!((replies.len(), winners.len()), (1, 1), "{replies:?}");
}

#[tokio::test]
async fn directions_have_separate_order_ids() {
    let world = World::new();
    let withdrawal = r#"{"order_id":"o","amount":10,"currency":"EUR","callback_url":"https://a.example/cb",
        "account_number":"4111111111111111"}"#;
    let first = world.create(Direction::Payout, withdrawal).await.unwrap();
    assert!(!first.contains("redirect_url"));
    assert!(world.deposit("").await.unwrap().contains("redirect_url"));
    assert_eq!(world.create(Direction::Payout, withdrawal).await, Ok(first));
    let other = withdrawal.replace("4111111111111111", "4111111111111112");
    let refused = world.create(Direction::Payout, &other).await.unwrap_err();
    assert_eq!(refused, "409 order_id: exists already and was created from other data; differs in: account_number");
    let short = withdrawal.replace("4111111111111111", "41111111111").replace("\"o\"", "\"o2\"");
    let refused = world.create(Direction::Payout, &short).await.unwrap_err();
    assert_eq!(refused, "400 account_number: must be 12 to 19 digits");
}

#[tokio::test]
async fn a_v1_request_never_repeats_what_was_not_made_through_v1() {
    let world = World::new();
    world.deposit("").await.unwrap();
    let caller = world.caller();
    let body = Bytes::from(deposit(""));
    let signature = signatures::sign_v2(&Secret::new(b"s"), &body);
    let signed = crate::auth::callers::verify_forwarded(&caller, body, &signature).unwrap();
    let v1 = || Some(V1Part { digest: Digest([1; 16]), callback_url: None });
    let over_v2 = v2::create_operation(&world.engine, &caller, Direction::Payin, &signed, v1()).await;
    assert!(matches!(over_v2, Err(Refused::Differs(_))), "its status would be unknown to v1: {over_v2:?}");

    let other = Bytes::from(deposit("\"order_id\":\"o2\""));
    let signature = signatures::sign_v2(&Secret::new(b"s"), &other);
    let signed = crate::auth::callers::verify_forwarded(&caller, other.clone(), &signature).unwrap();
    let made = v2::create_operation(&world.engine, &caller, Direction::Payin, &signed, v1()).await.unwrap();
    let again = v2::create_operation(&world.engine, &caller, Direction::Payin, &signed, None).await.unwrap();
    assert_eq!(made, again, "what was translated from v1 is a v2 operation");
}

#[test]
fn debug_of_a_created_operation_hides_the_link() {
    let created = Created {
        id: crate::domain::TransactionId::from_stored(5).unwrap(),
        order_id: crate::domain::OrderId::new("o").unwrap(),
        redirect_url: Some(crate::domain::RedirectUrl::new("https://a.example/?signature=secret".into())),
    };
    assert!(!format!("{created:?}").contains("secret"));
}
