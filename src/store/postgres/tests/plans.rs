//! Statements of requests and workers go by indexes, and the most frequent ones by the right index.

use super::*;
use crate::store::conformance::recorded;
use crate::store::export::{BY_IDS, BY_ORDERS};
use crate::store::journal::entries;
use crate::store::list::{ALONG_FAILED, ALONG_MERCHANT, ALONG_PENDING_V2};
use crate::store::list_indexes::PENDING_V1;
use crate::store::outbox::pending::WAITING_BEHIND;
use crate::store::pages::V1_PAGE;
use crate::store::postgres::ledger::fold;
use crate::store::postgres::node::LIST;
use crate::store::postgres::tasks;
use crate::store::{lookups, trail};

/// Inserts enough rows for realistic plans.
pub(super) fn fill(place: &Place) {
    drop(place.open_node());
    place.0.sql(
        "INSERT INTO contexts SELECT 10 * n + direction, direction, 0, 1, 'merchant-' || n, 'key', 'shop-' || n, 'EUR' \
         FROM generate_series(0, 6) AS n, generate_series(0, 1) AS direction; \
         INSERT INTO operations (transaction_id, context, listed, created_at, finished_at, amount, status, order_id, \
         fingerprint, sealed, cause, has_job) SELECT n, 10 * (n % 7) + n % 2, CASE n % 5 WHEN 0 THEN -1 - n % 7 ELSE n % 7 END, \
         n, nullif(n % 3, 0), 1050, n % 3, n, '', '', CASE n % 3 WHEN 2 THEN 0 END, n % 2 \
         FROM generate_series(1, 20000) AS n; \
         INSERT INTO homes SELECT transaction_id, 0, decode(md5(transaction_id::text), 'hex') FROM operations; \
         INSERT INTO tasks SELECT transaction_id, created_at, created_at, 0, 0, 0, 'shop-' || transaction_id % 7 \
         FROM operations; \
         INSERT INTO callbacks SELECT transaction_id, 1, created_at, 1, 2, 410, 'merchant-' || transaction_id % 7, 'target' \
         FROM operations; \
         INSERT INTO callback_tries SELECT transaction_id, 1, 1, 1, 410, NULL FROM operations; \
         INSERT INTO entries SELECT transaction_id, 1, 1, 1, 2, 'EUR', 'merchant-' || transaction_id % 7 FROM operations; \
         INSERT INTO journal SELECT transaction_id, created_at, CASE transaction_id % 100 WHEN 1 THEN 1 END, 1, 0, \
         CASE transaction_id % 100 WHEN 0 THEN 0 WHEN 1 THEN 1 ELSE 2 END, 0, '', '', 'EUR', \
         'merchant-' || transaction_id % 7, '', '', '', NULL, \
         CASE WHEN transaction_id % 100 > 1 THEN transaction_id::text END, NULL, NULL, '' FROM operations; \
         INSERT INTO actions SELECT n, n, NULL, 'user-' || n % 7, '', '', '', 'action-' || n % 3, '', '{}', '' \
         FROM generate_series(1, 20000) AS n; \
         INSERT INTO daily_usage SELECT 1, 1, n, n % 9, 0, 'merchant', 'shop' FROM generate_series(1, 20000) AS n; \
         INSERT INTO check_counts SELECT 1, 1, 1, 0, 1, 'merchant', 'rules', decode(md5(n::text), 'hex'), 's', 'm', 'r', 'f', \
         'k', '[]' FROM generate_series(1, 2000) AS n; ANALYZE",
    );
}

/// Returns the generic plan of a statement, in a session with the settings of the store.
pub(super) fn plan(place: &Place, statement: &str) -> String {
    plan_with(place, "", statement)
}

/// Returns the generic plan of a statement, after statements that set more.
fn plan_with(place: &Place, settings: &str, statement: &str) -> String {
    let count = (1..100).take_while(|number| statement.contains(&format!("${number}"))).count();
    let is_array = |number| {
        let types = ["text", "smallint", "bigint", "bytea", "new_operation"];
        types.iter().any(|of| statement.contains(&format!("${number}::{of}[]")))
    };
    let arguments: Vec<_> = (1..=count).map(|number| if is_array(number) { "NULL" } else { "'1'" }).collect();
    let arguments = if count == 0 { String::new() } else { format!("({})", arguments.join(", ")) };
    place.0.sql(&format!(
        "SET enable_seqscan = off; SET random_page_cost = 1.1; SET plan_cache_mode = force_generic_plan; {settings}; \
         PREPARE probe AS {statement}; EXPLAIN (COSTS OFF) EXECUTE probe{arguments}; DEALLOCATE probe"
    ))
}

/// Returns the tables that a plan reads as a whole.
fn scanned(plan: &str) -> Vec<&str> {
    let scans = plan.lines().filter_map(|line| line.split_once("Seq Scan on "));
    // The probe and the mark of forgotten callbacks are one row; contexts are few.
    scans.map(|(_, table)| table.trim()).filter(|table| !["probe", "forgotten", "contexts"].contains(table)).collect()
}

#[test]
fn a_page_of_a_list_is_read_along_its_indexes_alone() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    let between = |column, of, first, last| {
        let row = format!("ROW({column}, transaction_id)");
        format!("({row} >= ROW({of}, {first})) AND ({row} <= ROW({of}, {last}))")
    };
    for (statement, indexes, range) in [
        (V1_PAGE, &["operations_by_merchant", "pending_v1"][..], between("listed", "$10", "$2", "$3")),
        (ALONG_MERCHANT, &["operations_by_merchant"], between("listed", "$9", "$1", "$2")),
        (ALONG_PENDING_V2, &["pending_v2"], between("status", "0", "$1", "$2")),
        (ALONG_FAILED, &["operations_failed"], between("status", "2", "$1", "$2")),
        (entries::PAGE, &["journal_by_v1"], "(merchant = $1) AND (created_at >= $2) AND (created_at <= $3)".to_owned()),
    ] {
        let plan = plan_with(&place, &LIST.replace("LOCAL ", ""), statement.postgres);
        for index in indexes {
            assert!(plan.contains(&format!("Index Only Scan Backward using {index}")), "{index}: {plan}");
        }
        assert_eq!(plan.matches(&format!("Index Cond: ({range})")).count(), indexes.len(), "{plan}");
        assert!(!plan.contains("->  Sort"), "{plan}");
    }
    let pending = plan_with(&place, &LIST.replace("LOCAL ", ""), PENDING_V1.postgres);
    for (part, count) in [
        ("Index Only Scan using pending_v1", 2),
        ("Index Cond: (listed > leaps.number)", 1),
        ("Index Only Scan Backward using pending_v1", 2),
        ("Index Cond: ((ROW(listed, transaction_id) >= ROW(", 2),
        // Few of each and a page of all are sorted, not what is read of each.
        ("Sort Key", 2),
    ] {
        assert_eq!(pending.matches(part).count(), count, "{part}: {pending}");
    }
}

#[test]
fn queues_go_by_what_is_due() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    let claim = plan(&place, tasks::CLAIM);
    assert!(claim.contains("Index Cond: ((kind = $6) AND (queue = share.queue) AND (due_at <= $3))"), "{claim}");
    assert!(claim.contains("LockRows") && !claim.contains("Sort Key: tasks.due_at"), "{claim}");
    let waiting = plan(&place, WAITING_BEHIND.postgres);
    let range = "Index Cond: ((kind = $1) AND (queue = $2) AND (ROW(due_at, key) > ROW($3, $4)))";
    assert!(waiting.contains(range) && !waiting.contains("Sort"), "{waiting}");
    // Newer releases of PostgreSQL print a lateral column, older ones its parameter.
    let queues = plan(&place, tasks::QUEUES).replace("groups.name", "$4").replace("given.queue", "$5");
    for condition in [
        "(queue > (groups_1.name || '!'::text))",
        "(queue >= $4) AND (queue > COALESCE($5, ''::text)) AND (queue < ($4 || '!'::text))",
        "(queue > next_queue_1.queue) AND (queue < ($4 || '!'::text))",
    ] {
        assert!(queues.contains(&format!("Index Cond: ((kind = $1) AND {condition})")), "{queues}");
    }
    assert!(!queues.contains("Sort"), "{queues}");
}

#[test]
fn accounts_to_be_folded_are_found_by_leaps() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    let plan = plan(&place, fold::DUE);
    assert!(plan.contains("Index Cond: (ROW(merchant, currency, account) > ROW(due_1.merchant,"), "{plan}");
    assert!(!plan.contains("Sort"), "{plan}");
}

#[test]
fn a_page_of_actions_is_read_along_one_index() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    for (statement, index, condition) in [
        (trail::ALL, "actions_pkey", "(id >= $1) AND (id <= $2)"),
        (
            trail::OF_USER,
            "actions_by_user",
            "(ROW(user_name, id) >= ROW($4, $1)) AND (ROW(user_name, id) <= ROW($4, $2))",
        ),
        (
            trail::OF_ACTION,
            "actions_by_action",
            "(ROW(action, id) >= ROW($4, $1)) AND (ROW(action, id) <= ROW($4, $2))",
        ),
        (
            trail::OF_USER_AND_ACTION,
            "actions_by_both",
            "(ROW(user_name, action, id) >= ROW($4, $5, $1)) AND (ROW(user_name, action, id) <= ROW($4, $5, $2))",
        ),
    ] {
        let plan = plan(&place, statement.postgres);
        assert!(plan.contains(&format!("Index Scan Backward using {index}")), "{plan}");
        assert!(plan.contains(&format!("Index Cond: ({condition})")) && !plan.contains("Sort"), "{plan}");
    }
}

#[test]
fn lookups_go_by_a_key() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    let unanswered = plan(&place, entries::UNANSWERED.postgres);
    let indexes = ["using journal_open", "using journal_in_doubt", "using tasks_retried"]
        .map(|index| unanswered.matches(index).count());
    assert!(indexes == [2, 2, 2] && !unanswered.contains("Sort"), "{unanswered}");
    let order = plan(&place, lookups::ORDER_ROW.postgres);
    assert!(order.contains("Index Cond: (order_key = $1)"), "{order}");
    for (text, key) in [(BY_ORDERS, "order_key"), (BY_IDS, "transaction_id")] {
        let plan = plan(&place, text.postgres);
        assert!(plan.contains(&format!("Index Cond: ({key} = ANY (ARRAY[$1")) && scanned(&plan).is_empty(), "{plan}");
    }
}

/// Checks that no statement of a request or a worker reads a table as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn no_shared_statement_scans_a_table() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    run_every_case().await;
    let statements = recorded('$');
    assert!(statements.len() > 80, "{} statements", statements.len());
    for text in statements {
        let plan = plan(&place, text);
        assert!(scanned(&plan).is_empty(), "{text}\n{plan}");
    }
}
