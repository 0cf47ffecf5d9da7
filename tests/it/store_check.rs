//! `paybridge store check`: what it proves and says (contract section 12).

use regex::Regex;

use crate::support::gateway::on_postgres;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{CARD, Gateway, Request, Rules, eventually, text};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn check(gateway: &Gateway) -> Ran {
    let output = gateway.store_check();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Asserts a sound store; gives how many operations and ledger entries it holds.
#[track_caller]
fn assert_sound(gateway: &Gateway) -> (u64, u64) {
    let ran = check(gateway);
    // What takes over a second reports its progress on stderr.
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert!(!ran.err.contains("error"), "{}", ran.err);
    let line = Regex::new(r"^checked (\d+) operations? and (\d+) ledger entr(?:y|ies): no problems\n$").unwrap();
    let counts = line.captures(&ran.out).unwrap_or_else(|| panic!("{}", ran.out));
    (counts[1].parse().unwrap(), counts[2].parse().unwrap())
}

#[tokio::test]
async fn a_store_is_proved_beside_a_gateway_and_without() {
    let mut gateway = Gateway::start(&Rules::default());
    assert_eq!(assert_sound(&gateway), (0, 0));
    let client = gateway.client();
    for kind in CREATES {
        kind.create(&client, &ACME, &kind.body(&format!("{kind:?}"))).await;
    }
    let (operations, entries) = assert_sound(&gateway);
    assert_eq!(operations, 4);
    assert!(entries >= 4, "two withdrawals were held, each in two entries at least: {entries}");
    let paid = Create::Withdrawal.create(&client, &ACME, &Create::Withdrawal.body("paid")).await.json();
    eventually("a result", async || {
        let status = client.send(&Request::status(&ACME, text(&paid, "transaction_id"))).await.expect(200).json();
        (status["status"] == "SUCCESS").then_some(())
    })
    .await;
    gateway.kill();
    let (operations, _) = assert_sound(&gateway);
    assert_eq!(operations, 5);
    gateway.restart();
    assert_sound(&gateway);
}

#[tokio::test]
async fn what_does_not_add_up_is_reported() {
    let mut gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for id in ["one", "two"] {
        Create::Payout.create(&client, &ACME, &Create::Payout.body(id)).await;
    }
    gateway.kill();
    assert_sound(&gateway);
    gateway.tamper("UPDATE entries SET amount = amount + 1 WHERE amount > 0");
    let ran = check(&gateway);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let (first, problems) = ran.out.split_once('\n').unwrap();
    assert!(first.starts_with("checked 2 operations and ") && first.ends_with(" problems"), "{first}");
    assert!(problems.contains("acme") && problems.lines().count() >= 2, "{problems}");
    assert!(!problems.contains(CARD) && !problems.contains("\n\n"), "{problems}");
    assert_eq!(ran.err, "error: the store has problems\n");
    gateway.tamper("UPDATE entries SET amount = amount - 1 WHERE amount > 0");
    assert_sound(&gateway);
}

#[test]
fn no_store_is_made_to_be_checked() {
    let gateway = Gateway::prepare(&Rules::default());
    let ran = check(&gateway);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("error: ") && ran.err.contains("there is no store"), "{}", ran.err);
    assert!(!gateway.root.path().join("data").exists());
    // Where the store is a database, the keys were there before.
    assert_eq!(gateway.root.path().join("secrets").exists(), on_postgres());
}
