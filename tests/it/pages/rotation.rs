//! Two page secrets at a time: links of the old one live on while it is listed, and new ones are signed by the first.

use crate::pages::browser::{assert_state, location, open, page};
use crate::pages::{Deposit, PENDING_URL, rules_with};
use crate::support::request::hmac_hex;
use crate::support::{Gateway, Rules};

const OLD: &str = "old-hush-of-pages-3Xc-9Vb-1Nm-7Lk-2Jh";
const NEW: &str = "new-hush-of-pages-8Qw-4Er-6Ty-0Ui-5Op";

/// Rules whose page secrets are these files.
fn rules(files: &[&str]) -> Rules {
    let files: Vec<_> = files.iter().map(|name| format!("\"file:../secrets/{name}\"")).collect();
    rules_with(&format!("secret = [{}]", files.join(", ")))
}

#[track_caller]
fn assert_signed(link: &str, secret: &str) {
    let (signed, signature) = link.split_once("&signature=").unwrap();
    assert_eq!(signature, hmac_hex(secret, signed.as_bytes()), "{link}");
}

/// A deposit, with the return link of its page.
async fn issued(gateway: &Gateway, order_id: &str, secret: &str) -> (Deposit, String) {
    let deposit = Deposit::create(gateway, order_id, "10.02").await;
    let returning = page(&open(gateway, &deposit.entry).await, 200).return_link();
    assert_signed(&deposit.entry, secret);
    assert_signed(&returning, secret);
    (deposit, returning)
}

async fn assert_holds(gateway: &Gateway, (deposit, returning): &(Deposit, String)) {
    assert_state(&page(&open(gateway, &deposit.entry).await, 200), "stopped");
    assert_eq!(location(&open(gateway, returning).await), PENDING_URL);
}

// keeps D049
#[tokio::test]
async fn links_of_the_old_secret_live_while_it_is_listed() {
    let mut gateway = Gateway::prepare(&rules(&["old"]));
    for (name, secret) in [("old", OLD), ("new", NEW)] {
        crate::support::rules::write_file(&gateway.root.path().join("secrets").join(name), &format!("{secret}\n"));
    }
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let old = issued(&gateway, "old", OLD).await;

    gateway.reload_with(&rules(&["new", "old"]));
    assert_holds(&gateway, &old).await;
    let new = issued(&gateway, "new", NEW).await;
    assert_holds(&gateway, &new).await;
    let repeated = Deposit::create(&gateway, "old", "10.02").await;
    assert_eq!(repeated.url, old.0.url, "a repeat is told the link of its creation");
    // Whoever comes by an old link goes on by new ones.
    assert_signed(&page(&open(&gateway, &old.0.entry).await, 200).return_link(), NEW);

    gateway.reload_with(&rules(&["new"]));
    assert_holds(&gateway, &new).await;
    for link in [&old.0.entry, &old.1] {
        assert_state(&page(&open(&gateway, link).await, 403), "refused");
    }
    old.0.assert_status(&gateway, "PENDING").await;

    gateway.reload_with(&rules(&["old", "new"]));
    assert_holds(&gateway, &old).await;
    assert_holds(&gateway, &new).await;
    for secret in [OLD, NEW] {
        assert!(!gateway.log().contains(secret), "a secret is in the log");
    }
}
