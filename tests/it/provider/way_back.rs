//! The way back: what a provider is told of where its page sends the customer.

use serde_json::Value;

use super::scripted::{Play, Scripted};
use super::{payin, payout, rules};
use crate::support::request::hmac_hex;
use crate::support::{Gateway, text};

const PAGE_SECRET: &str = "page-hush-8Rk";
const PENDING: &str = r#"{"status":"PENDING"}"#;

/// Not now.
fn busy() -> Play {
    Play::Bytes(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec())
}

/// Asserts that the way back is the deposit's own, in force for so many seconds from its creation.
fn assert_way_back(gateway: &Gateway, asked: &Value, lifetime: i64) {
    let created: jiff::Timestamp = text(asked, "created_at").parse().unwrap();
    let (id, expires) = (text(asked, "transaction_id"), created.as_second() + lifetime);
    let target = format!("/return/{id}?expires={expires}");
    let signature = hmac_hex(PAGE_SECRET, target.as_bytes());
    let port = gateway.public.port();
    assert_eq!(text(asked, "return_url"), format!("https://localhost:{port}{target}&signature={signature}"));
}

#[tokio::test]
async fn the_provider_of_a_deposit_learns_the_way_back() {
    let provider = Scripted::start(|_, before| if before == 0 { busy() } else { Play::Say(PENDING) }).await;
    let pages = format!("secret = [\"{PAGE_SECRET}\", \"an-older-one\"]\nreturn_lifetime = \"1h\"\n");
    let gateway = Gateway::start(&rules(&provider.url(), "").with("pages", &pages));
    let id = payin(&gateway, "d-1", "10").await;
    provider.was_asked(&id, 2).await;
    let asked = provider.asked(&id);
    assert_way_back(&gateway, &asked[0].json(), 3600);
    assert_eq!(asked[0].body, asked[1].body, "a repeat is a repeat");
    let withdrawal = payout(&gateway, "p-1", "10").await;
    provider.was_asked(&withdrawal, 1).await;
    assert!(provider.asked(&withdrawal)[0].json().get("return_url").is_none(), "nobody comes back from a withdrawal");
    for secret in ["/return/", "signature=", PAGE_SECRET] {
        assert!(!gateway.log().contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn whether_a_shop_wants_its_customers_back_counts_when_the_provider_is_asked() {
    let provider = Scripted::start(|_, _| busy()).await;
    let start = |keys| rules(&provider.url(), keys).with("pages", &format!("secret = \"{PAGE_SECRET}\"\n"));
    let gateway = Gateway::start(&start("[payin]\nbrowser_return = false"));
    let id = payin(&gateway, "d-1", "10").await;
    provider.was_asked(&id, 1).await;
    assert!(provider.asked(&id)[0].json().get("return_url").is_none());
    gateway.reload_with(&start("[payin]\nbrowser_return = true"));
    // One may have been under way when the rules changed.
    provider.was_asked(&id, provider.asked(&id).len() + 2).await;
    assert_way_back(&gateway, &provider.asked(&id).last().unwrap().json(), 7 * 24 * 3600);
}
