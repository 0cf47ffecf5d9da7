//! Balances: opened once, held by withdrawals, moved by results.

use super::*;
use crate::domain::Outcome;

fn with_balance(balance: &str) -> World {
    World::with(&[("merchants/acme.toml", &format!("{ACME}[balance]\n{balance}\n"))])
}

async fn finish(world: &World, reply: &str, outcome: Outcome) {
    assert_eq!(world.report(reply, Report::from(outcome)).await, Reported::Taken);
}

// keeps P014, D051, D052, D053, D054
#[tokio::test]
async fn deposits_credit_and_withdrawals_hold_then_take_or_release() {
    let world = World::new();
    let success = || Outcome::Success { payer: None };
    let paid_in = world.deposit("\"amount\":100").await.unwrap();
    assert!(world.balances().await.is_empty());
    finish(&world, &paid_in, success()).await;
    assert_eq!(world.balances().await, ["EUR 10000 0"]);
    let lost = world.deposit("\"order_id\":\"lost\"").await.unwrap();
    finish(&world, &lost, Outcome::Failed).await;
    assert_eq!(world.balances().await, ["EUR 10000 0"]);
    let taken = world.withdraw("\"amount\":30").await.unwrap();
    assert_eq!(world.balances().await, ["EUR 7000 3000"]);
    let released = world.withdraw("\"order_id\":\"r\",\"amount\":20").await.unwrap();
    assert_eq!(world.balances().await, ["EUR 5000 5000"]);
    finish(&world, &taken, success()).await;
    assert_eq!(world.balances().await, ["EUR 5000 2000"]);
    finish(&world, &released, Outcome::Failed).await;
    assert_eq!(world.balances().await, ["EUR 7000 0"]);
}

// keeps D056
#[tokio::test]
async fn an_uncovered_withdrawal_is_created_failed_where_that_is_enforced() {
    let world = with_balance("enforce = true\nopening = { EUR = \"25.00\" }");
    let over = world.withdraw("\"amount\":25.02").await.unwrap();
    assert!(world.status(&over).await.contains("\"FAILED\""));
    assert_eq!(world.balances().await, ["EUR 2500 0"], "it moved nothing, and the opening balance was posted");
    assert_eq!(world.created_failed(), [r#"{direction="payout",cause="balance"} 1"#]);
    let all = world.withdraw("\"order_id\":\"all\",\"amount\":25").await.unwrap();
    assert!(world.status(&all).await.contains("\"PENDING\""), "covered to the last cent");
    assert_eq!(world.balances().await, ["EUR 0 2500"]);
    let none = world.withdraw("\"order_id\":\"none\",\"amount\":0.02").await.unwrap();
    assert!(world.status(&none).await.contains("\"FAILED\""));
    // The balance is used up; repeats do not check it.
    assert_eq!(world.withdraw("\"order_id\":\"all\",\"amount\":25").await, Ok(all));
    assert_eq!(world.withdraw("\"amount\":25.02").await, Ok(over));
    assert_eq!(world.balances().await, ["EUR 0 2500"]);
    // Deposits need no cover.
    assert!(world.status(&world.deposit("").await.unwrap()).await.contains("\"PENDING\""));
}

#[tokio::test]
async fn a_balance_that_is_not_enforced_may_go_below_zero() {
    let world = with_balance("opening = { EUR = \"5.00\" }");
    let reply = world.withdraw("").await.unwrap();
    assert!(world.status(&reply).await.contains("\"PENDING\""));
    assert_eq!(world.balances().await, ["EUR -500 1000"]);
    assert!(world.created_failed().is_empty());
}

// keeps D057
#[tokio::test]
async fn opening_balances_are_posted_once_with_the_first_operation() {
    let world = with_balance("opening = { EUR = \"25.00\", USD = \"1.50\" }");
    assert!(world.deposit("\"currency\":\"USD\"").await.is_err());
    assert!(world.balances().await.is_empty(), "a refused create books nothing");
    world.deposit("\"amount\":1.01").await.unwrap();
    assert_eq!(world.balances().await, ["EUR 2500 0", "USD 150 0"], "an operation that failed is seen too");
    world.replace("merchants/acme.toml", "25.00", "99.00");
    world.deposit("\"order_id\":\"again\"").await.unwrap();
    // A process that remembers nothing offers them anew; the store knows better.
    let forgetful = world.restarted();
    forgetful.deposit("\"order_id\":\"third\"").await.unwrap();
    assert_eq!(forgetful.balances().await, ["EUR 2500 0", "USD 150 0"]);
}

/// Returns the merchant's balances from the engine's query, as [`World::balances`] writes them.
async fn balances_of(world: &World) -> Vec<String> {
    let balances = world.engine.balances(world.caller().merchant()).await.unwrap();
    balances.iter().map(|(currency, has)| format!("{currency} {} {}", has.available, has.held)).collect()
}

// keeps D057
#[tokio::test]
async fn opening_balances_are_posted_once_with_the_first_question() {
    let world = with_balance("enforce = true");
    assert!(balances_of(&world).await.is_empty());
    // A question that had nothing to open leaves the merchant unseen.
    world.replace("merchants/acme.toml", "enforce = true", "enforce = true\nopening = { EUR = \"25.00\" }");
    assert!(world.balances().await.is_empty());
    assert_eq!(balances_of(&world).await, ["EUR 2500 0"]);
    world.replace("merchants/acme.toml", "25.00", "99.00");
    assert_eq!(balances_of(&world).await, ["EUR 2500 0"]);
    let forgetful = world.restarted();
    assert_eq!(balances_of(&forgetful).await, ["EUR 2500 0"]);
    let all = forgetful.withdraw("\"amount\":25").await.unwrap();
    assert!(forgetful.status(&all).await.contains("\"PENDING\""), "it is covered to the last cent");
    assert_eq!(balances_of(&forgetful).await, ["EUR 0 2500"]);
}

// keeps D057
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_balances_are_posted_once_by_concurrent_first_operations() {
    let world = Arc::new(with_balance("enforce = true\nopening = { EUR = \"100.00\" }"));
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let reply = world.withdraw(&format!("\"order_id\":\"{n}\"")).await.unwrap();
                world.status(&reply).await.contains("\"PENDING\"")
            })
        })
        .collect();
    let mut covered = 0;
    for task in tasks {
        covered += usize::from(task.await.unwrap());
    }
    assert_eq!(covered, 10, "ten withdrawals of ten are covered by a hundred");
    assert_eq!(world.balances().await, ["EUR 0 10000"]);
}
