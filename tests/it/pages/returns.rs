//! The return link: taken from a page as a browser takes it, decided by the status at that moment, with a life of its own.

use crate::pages::browser::{assert_state, location, open, page, press, request, visit};
use crate::pages::{
    Deposit, FAIL_URL, PENDING_URL, PREPARING, SECRET, SUCCESS_URL, books, ended, eventually, expires, rules,
    rules_with,
};
use crate::support::request::{ACME, PROTOCOLS, hmac_hex, unix_now};
use crate::support::{Gateway, Rules};

/// The return link that a page offers, whole.
async fn offered(gateway: &Gateway, deposit: &Deposit) -> String {
    page(&open(gateway, &deposit.entry).await, 200).return_link()
}

/// Rules in which pages of the quick shop offer no return.
fn without_return() -> Rules {
    rules().edit("shops/card-eur.toml", "[payin]\n", "[payin]\nbrowser_return = false\n")
}

// keeps P098, P099, P100, P101, P102, P183
#[tokio::test]
async fn the_status_at_that_moment_decides_where_a_return_leads() {
    let gateway = Gateway::start(&rules());
    for (decision, destination) in [("pay", SUCCESS_URL), ("decline", FAIL_URL)] {
        let deposit = Deposit::create(&gateway, decision, "10.50").await;
        let hosted = deposit.link("sandbox");
        let link = page(&open(&gateway, &hosted).await, 200).return_link();
        let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        for protocol in PROTOCOLS {
            let reply = visit(&gateway, protocol, &request("GET", &link)).await;
            assert_eq!(location(&reply), PENDING_URL);
        }
        let after = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        assert_eq!(after, before, "coming back proves nothing");
        press(&gateway, &hosted, decision).await.expect(200);
        let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        for protocol in PROTOCOLS {
            let reply = visit(&gateway, protocol, &request("GET", &link)).await;
            assert_eq!(location(&reply), destination, "the link from before the result");
        }
        assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
    }
}

/// All pages of a deposit offer one and the same link, which ends so long after the creation.
// keeps P183
#[tokio::test]
async fn a_return_link_ends_counted_from_the_creation() {
    let gateway = Gateway::start(&rules());
    let week = 7 * 24 * 60 * 60;
    for (order_id, amount) in [("stopped", "10.02"), ("told", "10.03"), ("preparing", "10.04")] {
        let deposit = Deposit::create(&gateway, order_id, amount).await;
        let link = offered(&gateway, &deposit).await;
        assert_eq!(expires(&link) - week, deposit.expires() - 30 * 60, "both count from the creation");
        let (signed, signature) = link.split_once("&signature=").unwrap();
        assert!(signed.starts_with(&format!("/return/{}?expires=", deposit.id)), "{link}");
        assert_eq!(signature, hmac_hex(SECRET, signed.as_bytes()));
        assert_eq!(offered(&gateway, &deposit).await, link);
    }
}

/// A customer whose entry link has expired still comes back.
// keeps P187
#[tokio::test]
async fn a_return_link_outlives_the_entry_link() {
    let gateway = Gateway::start(&rules_with(&format!("secret = \"{SECRET}\"\nlink_lifetime = \"1s\"")));
    let mut number = 0;
    // A slow machine may come too late for one that lives so shortly.
    let (deposit, link) = eventually("a page in time", async || {
        number += 1;
        let deposit = Deposit::create(&gateway, &format!("outlived-{number}"), "10.02").await;
        let reply = open(&gateway, &deposit.entry).await;
        (reply.status == 200).then(|| (deposit, page(&reply, 200).return_link()))
    })
    .await;
    ended(&deposit.entry).await;
    eventually("it is refused", async || (open(&gateway, &deposit.entry).await.status == 403).then_some(())).await;
    assert_eq!(location(&open(&gateway, &link).await), PENDING_URL);
}

// keeps P187, P227
#[tokio::test]
async fn an_expired_return_link_is_refused_and_fails_nothing() {
    let lives = format!("secret = \"{SECRET}\"\nlink_lifetime = \"1s\"\nreturn_lifetime = \"1s\"");
    let gateway = Gateway::start(&rules_with(&lives));
    let deposit = Deposit::create(&gateway, "late", "10.02").await;
    let link = deposit.link("return");
    ended(&link).await;
    let refused =
        eventually("it is refused", async || Some(open(&gateway, &link).await).filter(|reply| reply.status == 403))
            .await;
    assert_state(&page(&refused, 403), "refused");
    assert!(unix_now() >= u64::try_from(expires(&link)).unwrap());
    deposit.assert_status(&gateway, "PENDING").await;
}

/// A shop that has no return to offer: its pages have no link and go nowhere by themselves, and links from before the
/// switch still hold.
// keeps P184
#[tokio::test]
async fn a_shop_may_offer_no_return() {
    let gateway = Gateway::start(&rules());
    let mut deposits = Vec::new();
    for (order_id, amount) in [("stopped", "10.02"), ("told", "10.03"), ("preparing", "10.04")] {
        deposits.push(Deposit::create(&gateway, order_id, amount).await);
    }
    let kept = Deposit::of_shop(&gateway, PREPARING, "another shop", "10.50").await;
    let hosted = Deposit::create(&gateway, "hosted", "10.50").await.link("sandbox");
    let issued = offered(&gateway, &deposits[0]).await;
    gateway.reload_with(&without_return());
    for deposit in &deposits {
        let document = page(&open(&gateway, &deposit.entry).await, 200);
        assert!(document.return_links().is_empty(), "{:?}", document.return_links());
    }
    offered(&gateway, &kept).await;
    assert_eq!(location(&open(&gateway, &issued).await), PENDING_URL);

    assert!(page(&open(&gateway, &hosted).await, 200).return_links().is_empty());
    let paid = press(&gateway, &hosted, "pay").await;
    let document = page(&paid, 200);
    assert_state(&document, "success");
    assert!(document.return_links().is_empty() && paid.all("refresh").is_empty(), "{paid:?}");

    gateway.reload_with(&rules());
    assert_eq!(offered(&gateway, &deposits[0]).await, issued);
}
