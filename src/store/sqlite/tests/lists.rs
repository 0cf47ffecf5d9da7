//! Time limits and query plans of lists.

use super::*;
use crate::domain::HistoryQuery;
use crate::store::StoreError;
use crate::store::conformance::first_page;
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

/// A page is a search in one index, and nothing is sorted, regardless of SQLite's statistics.
#[tokio::test]
async fn a_page_is_read_along_one_index() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let search = "SEARCH operations USING COVERING INDEX operations_by_merchant (listed=? AND transaction_id>? AND transaction_id<?)\n";
    for rows in [0, 500, 5000] {
        if rows > 0 {
            connection.execute("DELETE FROM operations", []).unwrap();
            fill(&place, 7, rows);
            connection.execute_batch("ANALYZE").unwrap();
        }
        let plan = plan(&connection, V1_PAGE);
        assert!(plan.contains(search) && !plan.contains("TEMP B-TREE") && !plan.contains("SCAN o"), "{rows}: {plan}");
    }
}
