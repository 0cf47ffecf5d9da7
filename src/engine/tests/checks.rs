//! Payment checks: what they refuse is created FAILED, with HTTP 200.

use std::sync::Mutex;

use super::*;

const CHECKED: &str = r#"
[checks]
refused_addresses = ["203.0.113.0/24"]
refused_accounts = [666]
[checks.payin]
operations_per_day = 2
amount_per_day = "25.00"
"#;

fn checked() -> World {
    World::with(&[("shops/card.toml", &format!("{CARD}{CHECKED}"))])
}

/// Due at any time: no provider has anything to do.
async fn provider_gets_a_job(world: &World) -> bool {
    !world.store().provider_queues().await.unwrap().is_empty()
}

// keeps P090, P097, P132, P148
#[tokio::test]
async fn operations_of_refused_customers_are_created_failed_and_never_reach_a_provider() {
    for (refused, cause) in [
        (r#""fields":{"merchant_user_ip":"203.0.113.7"}"#, "refused_address"),
        (r#""fields":{"merchant_user_ip":"::ffff:203.0.113.7"}"#, "refused_address"),
        (r#""customer_account_id":666"#, "refused_account"),
    ] {
        let world = checked();
        let deposit = world.deposit(refused).await.unwrap();
        let withdrawal = world.withdraw(refused).await.unwrap();
        assert!(deposit.contains("redirect_url"));
        for reply in [&deposit, &withdrawal] {
            assert!(world.status(reply).await.contains("\"FAILED\""), "{refused}");
        }
        assert!(!provider_gets_a_job(&world).await);
        assert!(world.balances().await.is_empty(), "nothing is held");
        let counted = ["payin", "payout"].map(|d| format!("{{direction=\"{d}\",cause=\"{cause}\"}} 1"));
        assert_eq!(world.created_failed(), counted);
        // A repeat is answered before any check, and counts once.
        world.edit("shops/card.toml", CARD);
        assert_eq!(world.deposit(refused).await, Ok(deposit));
        assert_eq!(world.withdraw(refused).await, Ok(withdrawal));
        assert_eq!(world.created_failed(), counted);
    }
}

/// A reader of the log.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_operator_is_reported_why_without_the_customers_data() {
    let page = Page::default();
    let writer = page.clone();
    let subscriber =
        tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = checked();
    // Another test, on a thread that logs nowhere, may just have switched this line off for the whole process: until it
    // shows, it is switched on again.
    for order in 0..100 {
        let refused = format!(
            r#""order_id":"order-{order}","customer_account_id":666,
            "fields":{{"merchant_user_ip":"198.51.100.7","email":"ada@a.example"}}"#
        );
        let reply = world.withdraw(&refused).await.unwrap();
        let log = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let Some(line) = log.lines().find(|line| line.contains("created FAILED")) else {
            tracing::callsite::rebuild_interest_cache();
            continue;
        };
        let id = format!("transaction_id={}", id(&reply));
        let shop = r#"merchant="acme" shop="card""#;
        for word in ["INFO", &id, shop, r#"direction="payout" cause="refused_account""#] {
            assert!(line.contains(word), "{word}: {line}");
        }
        for secret in ["666", "198.51.100.7", "4111", "ada", "order-"] {
            assert!(!log.replace(&id, "").contains(secret), "{secret}: {log}");
        }
        return;
    }
    panic!("nothing was logged");
}

// keeps P090, P132
#[tokio::test]
async fn customers_that_no_list_names_go_to_the_provider() {
    let world = checked();
    let reply = world.withdraw(r#""customer_account_id":667,"fields":{"merchant_user_ip":"203.0.114.7"}"#).await;
    assert!(world.status(&reply.unwrap()).await.contains("\"PENDING\""));
    assert!(provider_gets_a_job(&world).await);
    assert!(world.created_failed().is_empty());
}

#[tokio::test]
async fn the_sandbox_fails_by_itself() {
    let world = World::new();
    for reply in [world.deposit("\"amount\":0.01").await.unwrap(), world.withdraw("\"amount\":5.01").await.unwrap()] {
        assert!(world.status(&reply).await.contains("\"FAILED\""));
    }
    assert!(!provider_gets_a_job(&world).await);
    let counted = ["payin", "payout"].map(|d| format!("{{direction=\"{d}\",cause=\"provider\"}} 1"));
    assert_eq!(world.created_failed(), counted);
}

// keeps P132
#[tokio::test]
async fn a_customers_day_is_limited() {
    let world = checked();
    let send = async |order: &str, amount: &str, customer: &str| {
        let members = format!(r#""order_id":"{order}","amount":{amount},"customer_account_id":{customer}"#);
        let reply = world.deposit(&members).await.unwrap();
        let status = world.status(&reply).await;
        (reply, !status.contains("\"FAILED\""))
    };
    let (first, passed) = send("1", "10", "7").await;
    assert!(passed);
    assert!(!send("2", "15.10", "7").await.1, "10 + 15.10 is over 25");
    let (_, passed) = send("3", "15", "7").await;
    assert!(passed, "what failed used nothing, and what reaches the limit is not over it");
    assert!(!send("4", "0.10", "7").await.1, "the third");
    assert!(send("5", "10", "8").await.1, "another customer");
    assert!(send("6", "999", "null").await.1, "no customer, no limit");
    let counted = [r#"{direction="payin",cause="daily_limit"} 2"#];
    assert_eq!(world.created_failed(), counted);
    // What fails later gives back what it used.
    let failed = Report::from(crate::domain::Outcome::Failed);
    assert_eq!(world.report(&first, failed).await, Reported::Taken);
    assert!(send("7", "10", "7").await.1);
    assert!(!send("8", "0.10", "7").await.1);
    // START is within a UTC day; the next one begins anew.
    world.clock.advance(Duration::from_hours(24));
    assert!(send("9", "25", "7").await.1);
    assert_eq!(send("1", "10", "7").await.0, first, "a repeat stays one, on any day");
}
