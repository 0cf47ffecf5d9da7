//! Lists: how long they may take, and by which plan they are read.

use super::*;
use crate::domain::HistoryQuery;
use crate::store::StoreError;
use crate::store::conformance::first_page;
use crate::store::sqlite::lists::{LONGEST, Lists};

/// Operations that v1 requests made, so many; without anything that is sealed.
fn fill(place: &Place, count: u32) {
    let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
        INSERT INTO operations (transaction_id, merchant, direction, shop, currency, status, from_v1, relayed, \
        provider, created_at, amount, digest, order_id, api_key, callback_url, fields) \
        SELECT n, 'acme', 0, 'card', 'EUR', 0, 1, 0, 0, 0, 1, zeroblob(16), '', '', '', x'00' FROM n";
    rusqlite::Connection::open(place.path()).unwrap().execute(sql, [count]).unwrap();
}

#[tokio::test]
async fn a_list_that_takes_too_long_is_refused() {
    let place = Place::new();
    let mut store = place.open_made().unwrap();
    fill(&place, 20_000);
    let rare = HistoryQuery { skip: 1_000_000, ..first_page("acme") };
    assert_eq!(store.history(rare.clone()).await.unwrap(), Page::empty());
    store.histories = Lists::new(std::time::Duration::ZERO);
    let error = store.history(rare.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    store.histories = Lists::new(LONGEST);
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

/// A page is a search in one index, and nothing is sorted; whatever SQLite knows of the table.
#[tokio::test]
async fn a_page_is_read_along_one_index() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let search =
        "SEARCH operations USING INDEX operations_by_v1 (merchant=? AND transaction_id>? AND transaction_id<?)\n";
    for rows in [0, 500, 5000] {
        if rows > 0 {
            connection.execute("DELETE FROM operations", []).unwrap();
            fill(&place, rows);
            connection.execute_batch("ANALYZE").unwrap();
        }
        assert_eq!(plan(&connection, StoredRow::V1_PAGE), search, "{rows}");
    }
}
