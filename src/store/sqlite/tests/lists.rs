//! Time limits and query plans of lists.

use rusqlite::StatementStatus;

use super::*;
use crate::domain::HistoryQuery;
use crate::store::StoreError;
use crate::store::conformance::first_page;
use crate::store::list::{ALONG_FAILED, ALONG_MERCHANT, ALONG_PENDING_V2};
use crate::store::list_indexes::PENDING_V1;
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
        for (statement, indexes) in
            [(V1_PAGE, &["operations_by_merchant", "pending_v1"][..]), (ALONG_MERCHANT, &["operations_by_merchant"])]
        {
            let plan = plan(&connection, statement);
            assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN o"), "{rows}: {plan}");
            for index in indexes {
                assert!(plan.contains(&format!("COVERING INDEX {index} {range}\n")), "{rows}: {plan}");
            }
        }
        let plan_of_pending = plan(&connection, PENDING_V1);
        let search = format!("COVERING INDEX pending_v1 {range}\n");
        assert_eq!(plan_of_pending.matches(&search).count(), 2, "{rows}: {plan_of_pending}");
        let scans = ["SCAN operations", "SCAN found"].map(|step| plan_of_pending.contains(step));
        assert_eq!(scans, [false; 2], "{rows}: {plan_of_pending}");
        for (statement, index) in [(ALONG_FAILED, "operations_failed"), (ALONG_PENDING_V2, "pending_v2")] {
            let plan = plan(&connection, statement);
            let search = format!("COVERING INDEX {index} (transaction_id>? AND transaction_id<?)\n");
            assert!(plan.contains(&search) && !plan.contains("TEMP B-TREE"), "{rows}: {plan}");
        }
    }
}

/// A page of the PENDING operations of v1 is found by leaps from merchant to merchant, and by a few operations of each.
#[tokio::test]
async fn a_page_of_many_merchants_reads_a_few_operations_of_each() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let context = "INSERT INTO contexts (id, direction, provider, origin, merchant, api_key, shop, currency) \
        VALUES (1, 0, 0, 1, 'acme', '', 'card', 'EUR')";
    connection.execute(context, []).unwrap();
    // Merchant 7 has the newest ones, which the others' begin to be among after the first 60.
    let sql = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 99999) \
        INSERT INTO operations (transaction_id, context, listed, status, has_job, created_at, amount, order_id, \
        fingerprint, sealed) SELECT n, 1, CASE WHEN n >= 99940 THEN 7 ELSE n % 200 - 1 END, 0, 0, 0, 1, '', zeroblob(16), x'00' FROM n";
    connection.execute(sql, []).unwrap();
    let mut statement = connection.prepare(PENDING_V1.sqlite).unwrap();
    let mut page = |first: i64, last: i64, limit: i64, number: Option<i64>| {
        let nothing = None::<i64>;
        let parameters = rusqlite::params![first, last, nothing, nothing, nothing, nothing, nothing, limit, number];
        let ids: Vec<i64> = statement.query_map(parameters, |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        (ids, statement.reset_status(StatementStatus::VmStep))
    };
    let of_v1 = |id: &i64| *id >= 99_940 || id % 200 != 0;
    let (ids, steps) = page(0, 99_999, 100, None);
    assert_eq!(ids, (0..=99_999).rev().filter(of_v1).take(100).collect::<Vec<_>>(), "those of v2 are not among them");
    assert!(steps < 199 * 400, "{steps} steps for 199 merchants with 500 operations each");
    let within = |from: i64, to: i64| (from..=to).rev().filter(of_v1).collect::<Vec<_>>();
    assert_eq!(page(99_900, 99_950, 100, None).0, within(99_900, 99_950), "all that there are");
    assert_eq!(page(99_000, 99_999, 61, Some(7)).0, (99_940..=99_999).rev().chain([99_808]).collect::<Vec<_>>());
    assert_eq!(page(0, 99_999, 100, Some(1_000)).0, [0_i64; 0]);
}
