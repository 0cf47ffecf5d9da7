use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
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

fn with_context<T>(acme: &str, api_key: &str, url: &str, compose: impl FnOnce(&MessageContext<'_>) -> T) -> T {
    let rules = rules(acme);
    let merchant = &rules.merchants[&MerchantId::new("acme").unwrap()];
    let url = CallbackUrl::new_allowing_http(url).unwrap();
    compose(&MessageContext { id: ID, merchant, api_key, url: &url, now: NOW })
}

fn v2(api_key: &str, order_id: &str) -> Result<CallbackMessage, Unsendable> {
    let order_id = OrderId::new(order_id).unwrap();
    with_context(ACME, api_key, "https://a.example/cb", |context| compose_v2(context, &order_id))
}

fn header<'a>(message: &'a CallbackMessage, name: &str) -> &'a str {
    let mut values =
        message.headers.iter().filter(|(own_name, _)| own_name == name).map(|(_, value)| value.to_str().unwrap());
    let value = values.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(values.next(), None, "{name} is sent once");
    value
}

fn view(status: Status) -> OperationView {
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
    let message = v2("second", "o \"1\" é").unwrap();
    assert_eq!(&message.body[..], "{\"order_id\":\"o \\\"1\\\" é\"}".as_bytes());
    assert_eq!((header(&message, "x-callback-id"), header(&message, "webhook-id")), (ID, ID));
    assert_eq!(header(&message, "webhook-timestamp"), "1790000000");
    let secret = crate::domain::Secret::new(b"v2-second");
    assert_eq!(header(&message, "x-signature"), sign_v2(&secret, &message.body));
    let signature = header(&message, "webhook-signature").strip_prefix("v1,").unwrap();
    let mut mac = secret.sha256();
    hmac::Mac::update(&mut mac, format!("{ID}.1790000000.").as_bytes());
    hmac::Mac::update(&mut mac, &message.body);
    hmac::Mac::verify_slice(mac, &STANDARD.decode(signature).unwrap()).unwrap();
    assert!(message.headers.iter().all(|(_, value)| value.is_sensitive()));
}

/// What `docs/callbacks.md` shows of a v1 callback, and the text that is signed.
#[test]
fn the_page_of_callbacks_shows_a_v1_callback_as_it_is_sent() {
    let demo = r#"
[[api_keys]]
key = "demo-v1"
v1_secret = "demo-v1-secret-for-demonstration-only"
v2_secret = "other"
"#;
    let view = OperationView {
        transaction_id: "2490117700451123456".into(),
        external_id: OrderId::new("payout-1").unwrap(),
        amount: Amount::from_hundredths(2500).unwrap(),
        ..view(Status::Success)
    };
    let message = with_context(demo, "demo-v1", "https://shop.example/callbacks?shop=7", |context| {
        compose_v1(&MessageContext { now: UnixMillis(1_795_282_921_999), ..*context }, &view).unwrap()
    });
    let body = std::str::from_utf8(&message.body).unwrap();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/callbacks.md")).unwrap();
    let headers = [("X-Api-Key", "x-api-key"), ("X-Timestamp", "x-timestamp"), ("X-Signature", "x-signature")];
    let headers = headers.map(|(shown, name)| format!("\n{shown}: {}", header(&message, name)));
    let signed = format!("printf %s '{}.POST./callbacks.{body}' |\n", header(&message, "x-timestamp"));
    for shown in headers.iter().chain([&format!("\n\n{body}\n"), &signed]) {
        assert!(page.contains(shown.as_str()), "docs/callbacks.md does not show {shown}");
    }
}

#[test]
fn a_custom_dialect_is_followed_exactly() {
    let odd = format!("{ACME}[v1]\ndialect = \"odd\"\n");
    let message =
        with_context(&odd, "first", "https://a.example", |context| compose_v1(context, &view(Status::Success)));
    let message = message.unwrap();
    assert_eq!(&message.body[..], br#"{"order":"o-1","state":"paid"}"#);
    // Its timestamp header has the name of the gateway's id header: the dialect's is sent.
    assert_eq!((header(&message, "x-key"), header(&message, "x-callback-id")), ("first", "1790000000123"));
    assert_eq!(STANDARD.decode(header(&message, "x-sum")).unwrap().len(), 64);
}

#[test]
fn callbacks_that_may_not_be_sent_are_refused() {
    let compose =
        |acme: &str, url, status| with_context(acme, "first", url, |context| compose_v1(context, &view(status)).err());
    assert_eq!(compose(ACME, "https://a.example/", Status::Pending), Some(Unsendable::NoResult));
    assert_eq!(compose(ACME, "http://a.example/", Status::Success), Some(Unsendable::PlainHttp));
    let allowed = format!("{ACME}[v1]\nallow_http_callbacks = true\n");
    assert_eq!(compose(&allowed, "http://a.example/", Status::Success), None);
}
