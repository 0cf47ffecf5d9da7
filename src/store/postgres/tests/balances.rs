//! Balances that are kept in two parts.

use super::*;
use crate::store::conformance::{NOW, audited, created, deposit, withdrawal};

async fn until_folded(place: &Place) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while place.0.sql("SELECT count(*) FROM balance_changes") != "0" {
        assert!(tokio::time::Instant::now() < deadline, "never folded");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_folded_and_balances_stay() {
    let Some(place) = Place::new() else { return };
    // Two nodes fold side by side.
    let (store, _other) = (place.open_node(), place.open_node());
    for number in 0..30 {
        let deposited = created(&store, deposit("acme", &format!("d{number}"))).await;
        store.settle(deposited, Outcome::Success { payer: None }, NOW).await.unwrap();
        created(&store, withdrawal("acme", &format!("w{number}"))).await;
    }
    let merchant = MerchantId::new("acme").unwrap();
    let expected = [(Currency::new("EUR").unwrap(), Balance { available: 0, held: 30 * 1050 })];
    assert_eq!(store.balances(&merchant).await.unwrap(), expected);
    until_folded(&place).await;
    assert_eq!(store.balances(&merchant).await.unwrap(), expected);
    assert_eq!(place.0.sql("SELECT sum(balance) FROM accounts"), "0");
    audited(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balance_that_is_asked_for_covers_while_changes_are_folded() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    for number in 0..50 {
        let deposited = created(&*store, deposit("acme", &format!("d{number}"))).await;
        store.settle(deposited, Outcome::Success { payer: None }, NOW).await.unwrap();
    }
    let creates: Vec<_> = (0..100)
        .map(|number| {
            let (store, mut draft) = (Arc::clone(&store), withdrawal("acme", &format!("w{number}")));
            draft.enforce_balance = true;
            tokio::spawn(async move { store.create(draft).await.unwrap() })
        })
        .collect();
    let mut covered = 0;
    for create in creates {
        let Creation::Created(verdict) = create.await.unwrap() else { panic!("it is new") };
        covered += u32::from(verdict == crate::store::Verdict::AsDrafted);
    }
    assert_eq!(covered, 50, "as many as were paid in");
    audited(&*store).await;
}
