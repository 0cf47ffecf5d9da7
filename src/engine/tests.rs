//! Creates, repeats and reports over the real store and real rule files. Each file is a part of contract section 7.

mod checks;
mod money;
mod next_action;
mod order;
mod repeat;
mod reports;
mod reserved;
mod through_v1;
mod v1_words;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;

use super::{Engine, NextAction, Report, Reported};
use crate::auth::callers::{Interface, KnownKey};
use crate::auth::signatures::PageSecret;
use crate::auth::{Caller, SignedBody, signatures};
use crate::clock::{Clock as _, ManualClock};
use crate::deps::Deps;
use crate::domain::{
    Answer, CreateReply, Direction, MerchantId, OrderId, ProviderKind, Secret, ShopCode, Status, TransactionId,
    UnixMillis,
};
use crate::error::ApiError;
use crate::provider::Providers;
use crate::rules::{LoadOptions, RuleSet, load};
use crate::service::V2Service;
use crate::store::{
    CallbackClaim, CallbackId, CallbackNext, CallbackTarget, CallbackTry, Reservations, Store, TryOutcome,
};
use crate::v1::V1Frontend;
use crate::v2::{ForwardedHeaders, ServiceCall};

pub(crate) const START: UnixMillis = UnixMillis(1_780_000_000_000);

/// The merchant that most tests are about.
const ACME: &str = r#"
name = "Acme"
default_shop = "card"
[[api_keys]]
key = "k"
v1_secret = "v1"
v2_secret = "s"
allowed_ips = ["127.0.0.1"]
[v1]
callback_url = "https://a.example/v1"
return_url = "https://a.example/r"
[shops.card]
payin = true
payout = true
[shops.spare]
payin = true
payout = true
"#;

const CARD: &str = r#"
currency = "EUR"
payment_method = "card"
[payin]
schema = "card.json"
[payout]
account = "card"
[provider]
kind = "sandbox"
"#;

const CARD_SCHEMA: &str = r#"{"type":"object","properties":{"bank_code":{"type":"string","x-allowed-list":"banks"},"level":{"type":"number"}}}"#;

/// An engine over rule files and a store of its own. The merchants are `acme` (key `k`) and `other` (key `o`); the shops
/// `card`, with a schema for deposits, and `spare`, without one.
pub(crate) struct World {
    directory: tempfile::TempDir,
    pub engine: Arc<Engine>,
    pub clock: Arc<ManualClock>,
    /// Its rules are those from the start.
    pub deps: Deps,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// A world with some rule files changed from the start.
    pub(crate) fn with(changed: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let other = ACME.replace("\"k\"", "\"o\"");
        for (path, text) in [
            ("rules/gateway.toml", "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n"),
            ("rules/merchants/acme.toml", ACME),
            ("rules/merchants/other.toml", &other),
            ("rules/shops/card.toml", CARD),
            ("rules/shops/card.json", CARD_SCHEMA),
            ("rules/shops/spare.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n"),
            ("rules/lists/banks.txt", "b1\nb2\n"),
        ] {
            put(directory.path(), path, text);
        }
        for (path, text) in changed {
            put(directory.path(), &format!("rules/{path}"), text);
        }
        let clock = Arc::new(ManualClock::at(START));
        let deps = Deps::open(rules(directory.path()), clock.clone());
        Self { directory, engine: engine(&deps), clock, deps }
    }

    /// The same store under another engine.
    fn restarted(self) -> Self {
        Self { engine: engine(&self.deps), ..self }
    }

    /// Changes a rule file; callers made afterwards see it.
    pub(crate) fn edit(&self, path: &str, text: &str) {
        put(self.directory.path(), &format!("rules/{path}"), text);
    }

    /// Changes some text of a rule file, which must be there.
    pub(crate) fn replace(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.directory.path().join("rules").join(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from:?}");
        self.edit(path, &text.replacen(from, to, 1));
    }

    /// Where the rule files are.
    pub(crate) fn rules_directory(&self) -> std::path::PathBuf {
        self.directory.path().join("rules")
    }

    /// The rule files as they are now.
    pub(crate) fn rules(&self) -> Arc<RuleSet> {
        Arc::new(rules(self.directory.path()))
    }

    fn caller(&self) -> Caller {
        self.caller_with("k")
    }

    fn caller_with(&self, key: &str) -> Caller {
        let rules = self.rules();
        let key = KnownKey::find(&rules, Interface::V2, key).unwrap();
        let signature = signatures::sign_v2(&Secret::new(b"s"), b"");
        let admitted = key.admit("127.0.0.1".parse().unwrap()).unwrap();
        admitted.verify_v2(Bytes::new(), signature.as_bytes()).unwrap().0
    }

    async fn create(&self, direction: Direction, body: &str) -> Result<String, String> {
        self.create_with("k", direction, body).await
    }

    async fn create_with(&self, key: &str, direction: Direction, body: &str) -> Result<String, String> {
        let caller = self.caller_with(key);
        let service = self.service();
        let create = async || {
            let body = signed(&caller, body);
            reported(service.create(call(&caller), direction, &body, HeaderValue::from_static("")).await)
        };
        let outcome = create().await;
        assert_eq!(outcome, create().await, "{body}");
        outcome
    }

    /// Sends a v1 create; the reply is in the default dialect.
    pub(crate) async fn v1(&self, direction: Direction, body: &str) -> Result<String, String> {
        self.v1_with("k", direction, body).await
    }

    async fn v1_with(&self, key: &str, direction: Direction, body: &str) -> Result<String, String> {
        let caller = self.caller_with(key);
        let frontend = self.frontend();
        let create = async || reported(frontend.create(call(&caller), direction, &signed(&caller, body)).await);
        let outcome = create().await;
        assert_eq!(outcome, create().await, "{body}");
        outcome
    }

    /// The engine as the v2 service that native callers reach.
    fn service(&self) -> V2Service {
        V2Service::Embedded(Arc::clone(&self.engine))
    }

    /// The v1 front before it.
    fn frontend(&self) -> V1Frontend {
        V1Frontend::new(self.service(), self.store().fingerprint_key().clone(), Arc::clone(&self.deps.metrics))
    }

    pub(crate) async fn deposit(&self, members: &str) -> Result<String, String> {
        self.create(Direction::Payin, &deposit(members)).await
    }

    pub(crate) async fn withdraw(&self, members: &str) -> Result<String, String> {
        self.create(Direction::Payout, &withdrawal(members)).await
    }

    /// A callback that was given up after an answer of 410: of a deposit with this name, created FAILED now.
    pub(crate) async fn failed_callback(&self, order_id: &str) -> CallbackId {
        self.deposit(&format!(r#""order_id":"{order_id}","amount":10.01"#)).await.unwrap();
        let now = self.clock.now();
        let target = CallbackTarget::new(&acme(), "https://a.example:443");
        let claim = CallbackClaim { shares: vec![(target, 1)], now, lease_until: now.plus(Duration::from_mins(1)) };
        let jobs = self.store().claim_callbacks(claim).await.unwrap();
        let outcome = TryOutcome::Status(410);
        let tried = CallbackTry { at: now, duration: Duration::from_millis(7), outcome };
        self.store().callback_tried(jobs[0].lease(), tried, CallbackNext::Failed).await.unwrap();
        jobs[0].id
    }

    /// The status record of the operation that a create's reply names.
    pub(crate) async fn status(&self, reply: &str) -> String {
        let caller = self.caller();
        let (id, signature) = (id(reply).to_string(), HeaderValue::from_static(""));
        let record = self.service().status(call(&caller), &id, signature).await.unwrap();
        String::from_utf8(record.body.to_vec()).unwrap()
    }

    async fn report(&self, reply: &str, report: Report) -> Reported {
        self.engine.report(ProviderKind::Sandbox, &ShopCode::new("card").unwrap(), id(reply), report).await.unwrap()
    }

    async fn reserve(&self, direction: Direction, order_ids: &[&str]) -> Reservations {
        let order_ids: Vec<_> = order_ids.iter().map(|text| OrderId::new(text).unwrap()).collect();
        self.store().reserve(&acme(), direction, &order_ids, UnixMillis(0)).await.unwrap()
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }

    /// The merchant's balances as `EUR available held`, in hundredths.
    pub(crate) async fn balances(&self) -> Vec<String> {
        let balances = self.store().balances(&acme()).await.unwrap();
        balances.iter().map(|(currency, has)| format!("{currency} {} {}", has.available, has.held)).collect()
    }

    /// How many operations were created FAILED, by the metrics.
    fn created_failed(&self) -> Vec<String> {
        const NAME: &str = "paybridge_operations_created_failed_total";
        let page = self.deps.metrics.render();
        let mut lines: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(NAME)).map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn engine(deps: &Deps) -> Arc<Engine> {
    Arc::new(Engine::new(deps.clone(), Arc::<Providers>::default(), PageSecret::new(Secret::new(b"pages"))))
}

fn acme() -> MerchantId {
    MerchantId::new("acme").unwrap()
}

fn signed(caller: &Caller, body: &str) -> SignedBody {
    SignedBody::sign(caller, Bytes::from(body.to_owned())).unwrap()
}

fn reported(answer: Result<Answer, ApiError>) -> Result<String, String> {
    match answer {
        Ok(reply) => Ok(String::from_utf8(reply.body.to_vec()).unwrap()),
        Err(ApiError::Invalid(error) | ApiError::Untranslatable { error, .. }) => Err(format!("400 {error}")),
        Err(ApiError::Conflict(conflict)) => Err(format!("409 {}", conflict.error)),
        Err(other) => Err(format!("{other:?}")),
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

/// The transaction id of a create's reply.
pub(crate) fn id(reply: &str) -> TransactionId {
    let reply: serde_json::Value = serde_json::from_str(reply).unwrap();
    TransactionId::parse(reply["transaction_id"].as_str().unwrap()).unwrap()
}

/// A deposit body, `members` in place of or beside the usual ones.
fn deposit(members: &str) -> String {
    body(
        r#"{"order_id":"o","amount":10,"currency":"EUR","callback_url":"https://a.example/cb",
            "success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":"https://a.example/f"}"#,
        members,
    )
}

/// A withdrawal body, `members` in place of or beside the usual ones.
fn withdrawal(members: &str) -> String {
    body(
        r#"{"order_id":"o","amount":10,"currency":"EUR","callback_url":"https://a.example/cb",
            "account_number":"4111111111111111"}"#,
        members,
    )
}

/// Members are put together as text, so that their spelling reaches the engine.
fn body(usual: &str, members: &str) -> String {
    let extra: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&format!("{{{members}}}")).unwrap();
    let mut usual: serde_json::Map<String, serde_json::Value> = serde_json::from_str(usual).unwrap();
    usual.retain(|name, _| !extra.contains_key(name));
    let usual = serde_json::to_string(&usual).unwrap();
    if members.is_empty() { usual } else { format!("{{{},{members}}}", &usual[1..usual.len() - 1]) }
}

/// A call for a caller.
fn call(caller: &Caller) -> ServiceCall<'_> {
    static NONE: ForwardedHeaders = ForwardedHeaders { request_id: None, traceparent: None };
    ServiceCall { caller, forwarded: &NONE }
}

/// The 409 that names the members in which a request differs.
fn differs_in(members: &str) -> Result<String, String> {
    Err(format!("409 order_id: exists already and was created from other data; differs in: {members}"))
}

#[test]
fn debug_of_a_created_operation_hides_the_link() {
    let created = CreateReply {
        transaction_id: "5".into(),
        order_id: OrderId::new("o").unwrap(),
        redirect_url: Some(crate::domain::RedirectUrl::new("https://a.example/?signature=secret".into())),
    };
    assert!(!format!("{created:?}").contains("secret"));
}
