//! The merchant's URLs reach the browser byte for byte.

use serde_json::json;

use crate::pages::browser::{location, open, press, request, visit};
use crate::pages::{Deposit, rules, target};
use crate::support::bodies::with;
use crate::support::request::PROTOCOLS;
use crate::support::{self, Gateway};

/// Legal, and what a careless reader would repair, decode or cut.
fn odd() -> Vec<String> {
    let longest = format!("https://acme.example/{}", "x".repeat(2048 - 21));
    assert_eq!(longest.len(), 2048);
    let mut urls: Vec<_> = [
        "https://acme.example",
        "https://acme.example/",
        "https://acme.example?order=1",
        "https://acme.example/done?order=A-17&state=b%26c",
        "https://acme.example/a%2Fb%2e%2E/c?d=%C3%A9%20+",
        "https://acme.example/../a/./b//c/",
        "https://acme.example/@me;v=1,2/(x)!$'*:=~?q=/?#top",
        "https://acme.example/ok#a=b&c",
        "https://ACME.Example:443/Ok?X=y",
        "http://acme.example:8080/ok",
        "HTTPS://acme.example/ok",
        "https://[2001:DB8::1]:8443/ok?a=1",
        "https://xn--mnchen-3ya.example/%f0%9f%92%b6",
        "https://acme.example/?u=https://other.example/%3Cscript%3E&&=&;",
    ]
    .map(str::to_owned)
    .into();
    urls.push(longest);
    urls
}

// keeps P185, P191
#[tokio::test]
async fn a_merchants_url_reaches_the_browser_byte_for_byte() {
    let gateway = Gateway::start(&rules());
    for (number, url) in odd().iter().enumerate() {
        let named = |name, body| with(body, name, Some(json!(url)));
        let body = named("success_url", support::deposit(&format!("pending-{number}")));
        let pending = Deposit::of_body(&gateway, &named("pending_url", body)).await;
        assert_eq!(location(&open(&gateway, &pending.link("return")).await), url);
        let hosted = pending.link("sandbox");
        press(&gateway, &hosted, "pay").await.expect(200);
        let body = named("fail_url", with(support::deposit(&format!("failed-{number}")), "amount", Some(json!(10.01))));
        let failed = Deposit::of_body(&gateway, &body).await;
        for deposit in [&pending, &failed] {
            for kind in ["pay", "return", "sandbox"] {
                let protocol = PROTOCOLS[number % 2];
                let reply = visit(&gateway, protocol, &request("GET", &deposit.link(kind))).await;
                assert_eq!(location(&reply), url, "{kind}");
            }
        }
    }
}

/// A v1 payin has one URL for all three.
#[tokio::test]
async fn a_v1_return_url_reaches_the_browser_byte_for_byte() {
    let gateway = Gateway::start(&rules());
    for (number, url) in odd().iter().enumerate() {
        let body = with(support::payin(&format!("v1-{number}")), "paymentData.return_user_url", Some(json!(url)));
        let body = with(body, "amount", Some("10.01".into()));
        let reply = gateway.client().send(&support::Request::payin(&support::request::ACME, &body)).await.expect(200);
        let entry = target(support::text(&reply.json(), "redirect_url"));
        assert_eq!(location(&open(&gateway, &entry).await), url);
    }
}
