//! The operators' console in a real browser, before callbacks of every state, a merchant that is checked in shadow, and
//! rules that `console.mjs` breaks.

use serde_json::{Value, json};

use super::Browser;
use crate::support::bodies::with;
use crate::support::gateway::free_port;
use crate::support::receiver::{Play, Receiver, trusting};
use crate::support::request::{ACME, BETA};
use crate::support::{Gateway, Request, Rules, payin, payout, withdrawal};

const ADA: &str = "ada-token-of-a-test-0001";
const BOB: &str = "bob-token-of-a-test-0002";

/// Stands for the old service, too. What comes to a path says what is done with it.
fn receiver() -> Receiver {
    Receiver::start(|received, before| match received.target.as_str() {
        path if path.contains("gone") => Play::Say(410),
        path if path.contains("retried") && before == 0 => Play::Say(503),
        _ => Play::Say(200),
    })
}

fn rules(receiver: &Receiver) -> Rules {
    let (old, ca) = (receiver.url(""), receiver.ca());
    let users = format!(
        "users = [{{ name = \"ada\", role = \"operator\", token = \"{ADA}\" }}, \
         {{ name = \"bob\", role = \"viewer\", token = \"{BOB}\" }}]"
    );
    Rules::default()
        .with("admin", &users)
        .with("callbacks", &format!("{}\nfirst_retry = \"1s\"\nmax_retry = \"1h\"", trusting(&[&ca])))
        .with("legacy", &format!("url = \"{old}\"\ntrust = [\"{}\"]", ca.display()))
        .edit("merchants/acme.toml", "Acme Ltd", "Nordwind Books")
        .edit("merchants/beta.toml", "name = \"Beta\"", "name = \"Fjord Travel\"")
        .edit("merchants/beta.toml", "[v1]\n", "[v1]\nmode = \"shadow\"\n")
        .edit("merchants/gamma.toml", "name = \"Gamma\"", "name = \"Gamma Games\"")
        .edit("merchants/gamma.toml", "[v1]\n", "[v1]\nmode = \"staged\"\npercent = 25\n")
}

/// A create whose callback goes to a path.
fn to(body: Value, url: &str) -> Value {
    with(body, "callback_url", Some(url.into()))
}

#[tokio::test]
async fn the_console_serves_operators_and_viewers() {
    let Some(browser) = Browser::installed() else { return };
    let receiver = receiver();
    let gateway = Gateway::start(&rules(&receiver));
    let client = gateway.client();
    let send = async |request: Request, status| drop(client.send_unchecked(&request).await.expect(status));
    let dead = format!("https://localhost:{}/callbacks", free_port());
    for number in 0..6 {
        send(Request::payout(&ACME, &to(payout(&format!("NW-2026-00480{number}")), &dead)), 200).await;
    }
    for (order, path) in [("NW-2026-004711", "ok"), ("NW-2026-004712", "retried"), ("NW-2026-004713", "gone")] {
        send(Request::payout(&ACME, &to(payout(order), &receiver.url(&format!("/{path}/callbacks")))), 200).await;
    }
    let failed = with(payout("NW-2026-004714"), "amount", Some("1199.01".into()));
    send(Request::payout(&ACME, &to(failed, &receiver.url("/gone/callbacks"))), 200).await;
    send(Request::payin(&ACME, &payin("NW-2026-004715")), 200).await;
    send(Request::payin(&ACME, &with(payin("NW-2026-004718"), "amount", Some("9999999999999.99".into()))), 200).await;
    let long = "W".repeat(255);
    send(Request::payout(&ACME, &to(payout(&long), &receiver.url("/ok/callbacks"))), 200).await;
    send(Request::payin(&ACME, &with(payin("NW-2026-004716"), "amount", Some("10,50".into()))), 400).await;
    for (order, level) in [("FT-90210", 3), ("FT-90211", 9)] {
        send(Request::payin(&BETA, &with(payin(order), "paymentData.level", Some(level.into()))), 200).await;
    }
    send(Request::withdrawal(&BETA, &to(withdrawal("FT-90212"), &receiver.url("/gone/callbacks"))), 200).await;

    let plan = json!({
        "origin": format!("http://{}", gateway.admin),
        "tokens": { "ada": ADA, "bob": BOB },
        "rules": gateway.rules_dir(),
        "sample": receiver.url("/samples"),
        "long": long,
        "accepted": payin("NW-2026-004720").to_string(),
        "refused": with(payin("NW-2026-004721"), "paymentData.level", Some(9.into())).to_string(),
    });
    browser.run("console.mjs", &[&gateway], &plan);
    let actions = gateway.actions();
    let of = |action: &str, user: &str| {
        actions.iter().filter(|row| row.starts_with(&format!("{user} {action} "))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("callbacks.resend", "ada").len(), 2, "one of each walk: {actions:?}");
    assert_eq!(of("callbacks.resend_failed", "ada").len(), 1, "{actions:?}");
    assert!(!actions.iter().any(|row| row.starts_with("bob ") || row.ends_with(" unfinished")), "{actions:?}");
}
