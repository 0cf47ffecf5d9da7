//! One caller, order or merchant does not block others.

use tokio::task::JoinSet;

use super::*;
use crate::clock::testing::until;
use crate::domain::LedgerAccount;
use crate::store::conformance::{audited, created, deposit, first_page, merchant, withdrawal};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::ledger;
use crate::store::postgres::transaction::PgTransaction;
use crate::store::{OperationList as _, OperationQuery};

/// Holds the locks of some work until it is released.
pub(super) async fn held(
    store: &Arc<PostgresStore>,
    let_go: Arc<Notify>,
    lock: impl AsyncFn(&PgTransaction<'_>) -> Result<(), PgError> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let (locked, is_locked) = tokio::sync::oneshot::channel();
    let store = Arc::clone(store);
    let holding = store.thread.run(async move |node: std::rc::Rc<node::PgNode>| {
        let locked = std::cell::Cell::new(Some(locked));
        node.transact(async |transaction| {
            lock(transaction).await?;
            if let Some(locked) = locked.take() {
                locked.send(()).unwrap();
            }
            let_go.notified().await;
            Ok(())
        })
        .await
    });
    let holding = tokio::spawn(async move { holding.await.unwrap() });
    is_locked.await.unwrap();
    holding
}

pub(super) fn plain(order: &str) -> NewOperation {
    NewOperation { opening: None, ..deposit("acme", order) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_order_does_not_block_others() {
    let Some(place) = Place::new() else { return };
    let (store, let_go) = (Arc::new(place.open_node()), Arc::new(Notify::new()));
    let first = created(&*store, plain("order")).await;
    let change =
        async |tx: &PgTransaction<'_>| tx.executor.batch_execute("UPDATE operations SET amount = amount").await;
    let holding = held(&store, Arc::clone(&let_go), change).await;
    // Together: one batch has the repeats and the other creates.
    let creates: Vec<_> = (0..40)
        .map(|number| {
            let draft = plain(&if number % 10 == 0 { "order".to_owned() } else { number.to_string() });
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.create(draft).await.unwrap() })
        })
        .collect();
    let mut repeats = 0;
    for create in creates {
        match create.await.unwrap() {
            InsertOutcome::Existing(stored) => {
                assert_eq!(stored.operation.id, first);
                repeats += 1;
            }
            new => assert!(matches!(new, InsertOutcome::Created(_)), "{new:?}"),
        }
    }
    assert_eq!(repeats, 4);
    let_go.notify_one();
    holding.await.unwrap();
    audited(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merchant_with_waiting_decisions_does_not_block_others() {
    let Some(place) = Place::new() else { return };
    let (store, let_go) = (Arc::new(place.open_node()), Arc::new(Notify::new()));
    created(&*store, deposit("acme", "first")).await;
    created(&*store, deposit("bolt", "first")).await;
    let lock = async |tx: &PgTransaction<'_>| {
        let euro = Currency::new("EUR").unwrap();
        ledger::lock(tx, &merchant("acme"), euro, LedgerAccount::Available).await
    };
    let holding = held(&store, Arc::clone(&let_go), lock).await;
    let waiting: Vec<_> = (0..40)
        .map(|number| {
            let mut draft = withdrawal("acme", &format!("w{number}"));
            draft.enforce_balance = true;
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.create(draft).await })
        })
        .collect();
    // As many creates as have a permit wait for the lock.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while place.0.sql("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted") != "t" {
        assert!(tokio::time::Instant::now() < deadline, "no connection waits for a lock");
    }
    created(&*store, deposit("bolt", "second")).await;
    let mut covered = withdrawal("bolt", "third");
    covered.enforce_balance = true;
    let decided = store.create(covered).await.unwrap();
    assert!(matches!(decided, InsertOutcome::Created(crate::store::CreateOutcome::NotCovered)), "{decided:?}");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "they still wait");
    let_go.notify_one();
    holding.await.unwrap();
    for waiting in waiting {
        let decided = waiting.await.unwrap();
        assert!(matches!(decided, Ok(InsertOutcome::Created(crate::store::CreateOutcome::NotCovered))), "{decided:?}");
    }
    audited(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_list_is_refused_and_blocks_nothing() {
    let Some(place) = Place::new() else { return };
    let (store, let_go) = (Arc::new(place.open_node()), Arc::new(Notify::new()));
    let lock = async |tx: &PgTransaction<'_>| {
        tx.executor.batch_execute("LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await
    };
    let holding = held(&store, Arc::clone(&let_go), lock).await;
    let mut lists = JoinSet::new();
    for number in 0..10 {
        let store = Arc::clone(&store);
        lists.spawn(async move {
            if number % 2 == 0 {
                store.history(first_page("acme")).await.map(drop)
            } else {
                store.operations(OperationQuery { limit: 1, ..OperationQuery::default() }, None).await.map(drop)
            }
        });
    }
    let waiting = || {
        let sql =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        place.0.sql(sql).parse::<u32>().unwrap()
    };
    until("lists wait for the table", || waiting() > 1).await;
    assert!(store.balances(&merchant("acme")).await.unwrap().is_empty());
    assert!(waiting() <= 4, "two merchants' lists and two of operators are read at once");
    let error = lists.join_next().await.unwrap().unwrap().unwrap_err();
    let is_refused = matches!(&error, StoreError::Unavailable(reason) if reason == "too many lists are read");
    assert!(matches!(error, StoreError::TooLong) || is_refused, "{error}");
    assert!(store.balances(&merchant("acme")).await.unwrap().is_empty());
    let_go.notify_one();
    // Those that were read last find the table free.
    lists.join_all().await;
    holding.await.unwrap();
    assert_eq!(store.history(first_page("acme")).await.unwrap(), Page::empty());
}
