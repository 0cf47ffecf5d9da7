use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::auth::signatures::{V1Input, sign_v1};
use crate::domain::{Amount, Currency, Direction};
use crate::rules::{LoadOptions, load};

const NOW: UnixMillis = UnixMillis(1_790_000_000_123);
const ID: &str = "cb_0123456789abcdef00000000000000ff";

const ACME: &str = r#"
[[api_keys]]
key = "first"
v1_secret = "v1-first"
v2_secret = ["v2-first", "v2-old"]
[[api_keys]]
key = "second"
v1_secret = "v1-second"
v2_secret = "v2-second"
[[api_keys]]
key = "v2-only"
v2_secret = "v2-third"
"#;

/// Loads rules with this merchant file.
fn rules(acme: &str) -> RuleSet {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        ("gateway.toml", ""),
        ("merchants/acme.toml", acme),
        (
            "dialects/odd.toml",
            r#"
[signature]
api_key = "X-Key"
signature = "X-Sum"
timestamp = "X-Callback-Id"
timestamp_format = "unix-ms"
algorithm = "hmac-sha512"
encoding = "base64"
payload = "{timestamp}|{method}|{target}|{api_key}|{body_sha256}"
[routes]
payin = "POST /odd/in"
payout = "POST /odd/out"
payin_status = "GET /odd/in"
payout_status = "GET /odd/out"
balance = "GET /odd/b"
transactions = "GET /odd/t"
[replies]
callback = '{"order":{{ external_id }},"state":{{ status }}}'
[statuses]
SUCCESS = "paid"
"#,
        ),
    ];
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load(directory.path(), NOW, None, LoadOptions::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn with_message<T>(acme: &str, api_key: &str, url: &str, tell: impl FnOnce(&Message<'_>) -> T) -> T {
    let rules = rules(acme);
    let merchant = &rules.merchants[&MerchantId::new("acme").unwrap()];
    let url = CallbackUrl::new_allowing_http(url).unwrap();
    tell(&Message { id: ID, merchant, api_key, url: &url, now: NOW })
}

fn v2(api_key: &str, order_id: &str) -> Result<CallbackMessage, Unsendable> {
    let order_id = OrderId::new(order_id).unwrap();
    with_message(ACME, api_key, "https://a.example/cb", |message| in_v2(message, &order_id))
}

fn header<'a>(letter: &'a CallbackMessage, name: &str) -> &'a str {
    let mut values = letter.headers.iter().filter(|(own, _)| own == name).map(|(_, value)| value.to_str().unwrap());
    let value = values.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(values.next(), None, "{name} is sent once");
    value
}

fn shown(status: Status) -> OperationView {
    OperationView {
        transaction_id: "17".into(),
        external_id: OrderId::new("o-1").unwrap(),
        direction: Direction::Payout,
        status,
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        shop_code: "card-eur".into(),
        account_number: Some("411111******1111".to_owned()),
        created_at: NOW,
    }
}

#[test]
fn a_v2_callback_has_the_body_and_headers_of_the_contract() {
    let letter = v2("second", "o \"1\" é").unwrap();
    assert_eq!(&letter.body[..], "{\"order_id\":\"o \\\"1\\\" é\"}".as_bytes());
    assert_eq!((header(&letter, "x-callback-id"), header(&letter, "webhook-id")), (ID, ID));
    assert_eq!(header(&letter, "webhook-timestamp"), "1790000000");
    let secret = crate::rules::Secret::new(b"v2-second");
    assert_eq!(header(&letter, "x-signature"), sign_v2(&secret, &letter.body));
    let signature = header(&letter, "webhook-signature").strip_prefix("v1,").unwrap();
    let mut mac = secret.sha256();
    hmac::Mac::update(&mut mac, format!("{ID}.1790000000.").as_bytes());
    hmac::Mac::update(&mut mac, &letter.body);
    hmac::Mac::verify_slice(mac, &STANDARD.decode(signature).unwrap()).unwrap();
    assert!(letter.headers.iter().all(|(_, value)| value.is_sensitive()));
}

#[test]
fn the_first_secret_signs_and_a_key_that_is_gone_leaves_it_to_the_merchants_first() {
    let signed = |api_key| header(&v2(api_key, "o").unwrap(), "x-signature").to_owned();
    let by = |secret: &[u8]| sign_v2(&crate::rules::Secret::new(secret), b"{\"order_id\":\"o\"}");
    assert_eq!(signed("first"), by(b"v2-first"), "the first of its secrets");
    assert_eq!(signed("second"), by(b"v2-second"));
    assert_eq!(signed("deleted"), by(b"v2-first"));
    let api_key = |of| {
        let letter = with_message(ACME, of, "https://a.example/", |message| in_v1(message, &shown(Status::Failed)));
        header(&letter.unwrap(), "x-api-key").to_owned()
    };
    assert_eq!(
        (api_key("second"), api_key("v2-only"), api_key("deleted")),
        ("second".into(), "first".into(), "first".into())
    );
    let order_id = OrderId::new("o").unwrap();
    let nobody = with_message("name = \"Nobody\"\n", "first", "https://a.example/", |message| {
        (in_v2(message, &order_id).err(), in_v1(message, &shown(Status::Failed)).err())
    });
    assert_eq!(nobody, (Some(Unsendable::NoKey("v2_secret")), Some(Unsendable::NoKey("v1_secret"))));
}

#[test]
fn a_v1_callback_is_the_dialects_own() {
    let url = "https://a.example/v1/cb?shop=1#part";
    let letter = with_message(ACME, "second", url, |message| in_v1(message, &shown(Status::Failed))).unwrap();
    assert_eq!(
        &letter.body[..],
        br#"{"external_id":"o-1","transaction_id":"17","status":"FAILED","amount":"10.50","currency":"EUR","shop_code":"card-eur"}"#
    );
    assert_eq!((header(&letter, "x-api-key"), header(&letter, "x-timestamp")), ("second", "1790000000"));
    assert_eq!(header(&letter, "x-callback-id"), ID);
    let input = V1Input {
        timestamp: "1790000000",
        method: "POST",
        path: "/v1/cb",
        query: Some("shop=1"),
        api_key: "second",
        body: &letter.body,
    };
    let rules = rules(ACME);
    let recipe = &rules.dialects["v1"].signature;
    let secret = crate::rules::Secret::new(b"v1-second");
    assert_eq!(header(&letter, "x-signature"), sign_v1(recipe, &secret, &input));
    assert!(!letter.headers.iter().any(|(name, _)| name.as_str().starts_with("webhook-")));
}

#[test]
fn a_dialect_of_its_own_is_followed_to_the_letter() {
    let odd = format!("{ACME}[v1]\ndialect = \"odd\"\n");
    let letter = with_message(&odd, "first", "https://a.example", |message| in_v1(message, &shown(Status::Success)));
    let letter = letter.unwrap();
    assert_eq!(&letter.body[..], br#"{"order":"o-1","state":"paid"}"#);
    // Its timestamp header has the name of the gateway's id header: the dialect's is sent.
    assert_eq!((header(&letter, "x-key"), header(&letter, "x-callback-id")), ("first", "1790000000123"));
    assert_eq!(STANDARD.decode(header(&letter, "x-sum")).unwrap().len(), 64);
}

#[test]
fn what_may_not_be_reported_is_not() {
    let tell =
        |acme: &str, url, status| with_message(acme, "first", url, |message| in_v1(message, &shown(status)).err());
    assert_eq!(tell(ACME, "https://a.example/", Status::Pending), Some(Unsendable::NoResult));
    assert_eq!(tell(ACME, "http://a.example/", Status::Success), Some(Unsendable::PlainHttp));
    let allowed = format!("{ACME}[v1]\nallow_http_callbacks = true\n");
    assert_eq!(tell(&allowed, "http://a.example/", Status::Success), None);
}
