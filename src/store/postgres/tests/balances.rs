//! Balances that consist of a row and its changes.

use super::crowds::held;
use super::*;
use crate::clock::testing::until;
use crate::domain::LedgerAccount;
use crate::store::ResultSource;
use crate::store::conformance::{NOW, audited, created, deposit, merchant, withdrawal};
use crate::store::postgres::ledger::{self, fold};
use crate::store::postgres::transaction::PgTransaction;

async fn until_folded(place: &Place) {
    until("all is folded", || place.0.sql("SELECT count(*) FROM balance_changes") == "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_folded_and_balances_stay() {
    let Some(place) = Place::new() else { return };
    // Two nodes fold side by side.
    let (store, _other) = (place.open_node(), place.open_node());
    for number in 0..30 {
        let deposited = created(&store, deposit("acme", &format!("d{number}"))).await;
        store.complete(deposited, Outcome::Success { payer: None }, ResultSource::PROVIDER, NOW).await.unwrap();
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
async fn an_enforced_balance_is_right_while_changes_are_folded() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    for number in 0..50 {
        let deposited = created(&*store, deposit("acme", &format!("d{number}"))).await;
        store.complete(deposited, Outcome::Success { payer: None }, ResultSource::PROVIDER, NOW).await.unwrap();
    }
    let creates: Vec<_> = (0..70)
        .map(|number| {
            let (store, mut draft) = (Arc::clone(&store), withdrawal("acme", &format!("w{number}")));
            draft.enforce_balance = true;
            tokio::spawn(async move { store.create(draft).await.unwrap() })
        })
        .collect();
    let mut covered = 0;
    for create in creates {
        let InsertOutcome::Created(outcome) = create.await.unwrap() else { panic!("it is new") };
        covered += u32::from(outcome == crate::store::CreateOutcome::AsDrafted);
    }
    assert_eq!(covered, 50, "as many as were paid in");
    audited(&*store).await;
}

fn eur() -> Currency {
    Currency::new("EUR").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_does_not_block_folding_of_other_accounts() {
    let Some(place) = Place::new() else { return };
    let (store, let_go) = (Arc::new(place.open_node()), Arc::new(Notify::new()));
    let pay = async |order: &str| {
        for name in ["acme", "bolt"] {
            let deposited = created(&*store, deposit(name, order)).await;
            store.complete(deposited, Outcome::Success { payer: None }, ResultSource::PROVIDER, NOW).await.unwrap();
        }
    };
    pay("first").await;
    until_folded(&place).await;
    let lock =
        async |tx: &PgTransaction<'_>| ledger::lock(tx, &merchant("acme"), eur(), LedgerAccount::Available).await;
    let holding = held(&store, Arc::clone(&let_go), lock).await;
    pay("second").await;
    let left = "SELECT string_agg(merchant || account, ' ' ORDER BY merchant, account) FROM balance_changes";
    // Well before the wait for the lock would time out.
    let others_folded = until("the others are folded", || place.0.sql(left) == "acme2");
    let in_time = tokio::time::timeout(std::time::Duration::from_secs(7), others_folded).await;
    assert!(in_time.is_ok(), "{}", place.0.sql(left));
    let_go.notify_one();
    holding.await.unwrap();
    until_folded(&place).await;
    audited(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_folds_many_changes() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let deposited = created(&*store, deposit("acme", "order")).await;
    store.complete(deposited, Outcome::Success { payer: None }, ResultSource::PROVIDER, NOW).await.unwrap();
    until_folded(&place).await;
    let counts = store.thread.run(async |node| {
        node.transact(async |tx| {
            let changes = "INSERT INTO balance_changes SELECT n, sign, 2 + sign, account, merchant, currency \
                FROM accounts, generate_series(1, 200) AS n, (VALUES (1), (-1)) AS signs (sign) WHERE account = 2";
            let (merchant, account) = (merchant("acme"), LedgerAccount::Available);
            ledger::lock(tx, &merchant, eur(), account).await?;
            tx.executor.batch_execute(changes).await?;
            let before = ledger::balance(tx, &merchant, eur(), account).await?;
            fold::own(tx.executor, &merchant, eur(), account).await?;
            Ok([before, ledger::balance(tx, &merchant, eur(), account).await?])
        })
        .await
    });
    assert_eq!(counts.await.unwrap(), [(1050, 400), (1050, 0)]);
    audited(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sum_that_no_balance_can_hold_keeps_no_other_from_being_folded() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    for name in ["acme", "bolt"] {
        created(&store, withdrawal(name, "order")).await;
    }
    until_folded(&place).await;
    place.0.sql(
        "INSERT INTO balance_changes SELECT 7, CASE merchant WHEN 'acme' THEN 9223372036854775807 ELSE 1 END, 0, account, \
         merchant, currency FROM accounts WHERE account = 3",
    );
    let left = "SELECT string_agg(merchant, ' ') FROM balance_changes";
    until("bolt's is folded", || place.0.sql(left) == "acme").await;
    assert_eq!(place.0.sql("SELECT balance FROM accounts WHERE merchant = 'bolt' AND account = 3"), "1051");
}
