//! Time limits and query plans of lists.

use rusqlite::StatementStatus;

use super::*;
use crate::domain::HistoryQuery;
use crate::store::StoreError;
use crate::store::conformance::first_page;
use crate::store::list::{ALONG_FAILED, ALONG_MERCHANT, ALONG_PENDING_V1, ALONG_PENDING_V2};
use crate::store::list_indexes::NUMBERS_WITH_PENDING;
use crate::store::pages::V1_PAGE;
use crate::store::sqlite::lists::{ListTurns, MAX_LIST_TIME};

/// Inserts operations of a merchant created through v1, without sealed columns.
fn fill(place: &Place, listed: i64, count: u32) {
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let context = "INSERT INTO contexts (id, direction, provider, origin, merchant, api_key, shop, currency) \
        VALUES (1, 0, 0, 1, 'acme', '', 'card', 'EUR') ON CONFLICT DO NOTHING";
    connection.execute(context, []).unwrap();
    let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
        INSERT INTO operations (transaction_id, context, listed, status, has_job, created_at, amount, order_id, \
        fingerprint, sealed) SELECT n, 1, ?2, 0, 0, 0, 1, '', zeroblob(16), x'00' FROM n";
    connection.execute(sql, (count, listed)).unwrap();
}

#[tokio::test]
async fn a_list_that_takes_too_long_is_refused() {
    let place = Place::new();
    let mut store = place.open_made().unwrap();
    fill(&place, merchant_number(store.fingerprint_key(), &merchant("acme")), 20_000);
    let rare = HistoryQuery { skip: 1_000_000, ..first_page("acme") };
    assert_eq!(store.history(rare.clone()).await.unwrap(), Page::empty());
    store.histories = ListTurns::new(std::time::Duration::ZERO);
    let error = store.history(rare.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLong), "{error}");
    store.histories = ListTurns::new(MAX_LIST_TIME);
    assert_eq!(store.history(rare).await.unwrap(), Page::empty(), "no connection stays as it was");
}

#[tokio::test]
async fn many_lists_wait_for_each_other() {
    let place = Place::new();
    let store = Arc::new(place.open_made().unwrap());
    let read = |number: u64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.history(HistoryQuery { skip: number, ..first_page("acme") }).await })
    };
    for task in (0..60).map(read).collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap().unwrap(), Page::empty());
    }
}

/// A page is a search in the indexes, and nothing is sorted, regardless of SQLite's statistics.
#[tokio::test]
async fn a_page_is_read_along_its_indexes() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let range = "(listed=? AND transaction_id>? AND transaction_id<?)";
    for rows in [0, 500, 5000] {
        if rows > 0 {
            connection.execute("DELETE FROM operations", []).unwrap();
            fill(&place, 7, rows);
            connection.execute_batch("ANALYZE").unwrap();
        }
        for (statement, indexes) in [
            (V1_PAGE, &["operations_by_merchant", "pending_v1"][..]),
            (ALONG_MERCHANT, &["operations_by_merchant"]),
            (ALONG_PENDING_V1, &["pending_v1"]),
        ] {
            let plan = plan(&connection, statement);
            assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN o"), "{rows}: {plan}");
            for index in indexes {
                assert!(plan.contains(&format!("COVERING INDEX {index} {range}\n")), "{rows}: {plan}");
            }
        }
        for (statement, index) in [(ALONG_FAILED, "operations_failed"), (ALONG_PENDING_V2, "pending_v2")] {
            let plan = plan(&connection, statement);
            let search = format!("COVERING INDEX {index} (transaction_id>? AND transaction_id<?)\n");
            assert!(plan.contains(&search) && !plan.contains("TEMP B-TREE"), "{rows}: {plan}");
        }
    }
}

/// The numbers of merchants with PENDING operations are found by leaps, not by passing over the operations.
#[tokio::test]
async fn numbers_with_pending_operations_are_leapt_to() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let sql = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) \
        INSERT INTO operations (transaction_id, context, listed, status, has_job, created_at, amount, order_id, \
        fingerprint, sealed) SELECT n, 1, n / 50 - 1, 0, 0, 0, 1, '', zeroblob(16), x'00' FROM n";
    connection.execute(sql, []).unwrap();
    let mut statement = connection.prepare(NUMBERS_WITH_PENDING.sqlite).unwrap();
    let numbers: Vec<i64> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(numbers, (0..199).collect::<Vec<_>>(), "those of v2 are not among them");
    let steps = statement.get_status(StatementStatus::VmStep);
    assert!(steps < 199 * 100, "{steps} steps for 199 merchants with 50 operations each");
}
