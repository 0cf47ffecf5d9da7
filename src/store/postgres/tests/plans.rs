//! Hot statements use indexes that begin with the bucket; those of the queues, which read all buckets, indexes of their own.

use super::*;
use crate::store::postgres::ledger::fold;
use crate::store::postgres::outbox::list;
use crate::store::postgres::{checks, history, journal, row, tasks, trail};

/// Inserts enough rows for realistic plans, of merchants in several buckets.
fn fill(place: &Place) {
    drop(place.open_node());
    place.0.sql(
        "INSERT INTO contexts SELECT 10 * n + direction, n, direction, 0, 1, 'merchant-' || n, 'key', 'shop-' || n, 'EUR' \
         FROM generate_series(0, 6) AS n, generate_series(0, 1) AS direction; \
         INSERT INTO operations (transaction_id, context, listed, created_at, finished_at, amount, bucket, status, order_id, fingerprint, sealed) \
         SELECT n, 10 * (n % 7) + n % 2, n % 7, n, nullif(n % 3, 0), 1050, n % 7, n % 3, n, '', '' FROM generate_series(1, 20000) AS n; \
         INSERT INTO homes SELECT transaction_id, bucket, 0, decode(md5(transaction_id::text), 'hex') FROM operations; \
         INSERT INTO tasks SELECT transaction_id, created_at, created_at, 0, bucket, 0, false, 'shop-' || bucket FROM operations; \
         ANALYZE contexts, operations, homes, tasks",
    );
}

/// Returns the generic plan of a statement, in a session with the settings of the store.
fn plan(place: &Place, statement: &str) -> String {
    let count = (1..20).take_while(|number| statement.contains(&format!("${number}"))).count();
    let is_array = |number| {
        let types = ["text", "smallint", "bigint", "bytea"];
        statement.contains(&format!("ANY(${number})"))
            || types.iter().any(|of| statement.contains(&format!("${number}::{of}[]")))
    };
    let ones: Vec<_> = (1..=count).map(|number| if is_array(number) { "'{1}'" } else { "'1'" }).collect();
    let ones = ones.join(", ");
    let arguments = if count == 0 { String::new() } else { format!("({ones})") };
    let explained = place.0.sql(&format!(
        "SET enable_seqscan = off; SET random_page_cost = 1.1; SET plan_cache_mode = force_generic_plan; \
         PREPARE probe AS {statement}; EXPLAIN (COSTS OFF) EXECUTE probe{arguments}; DEALLOCATE probe"
    ));
    assert!(!explained.contains("Seq Scan on operations"), "{statement}\n{explained}");
    assert!(!explained.contains("Seq Scan on tasks"), "{statement}\n{explained}");
    explained
}

#[test]
fn lookups_go_by_the_bucket_and_a_name_in_it() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    for (statement, condition) in [
        (row::BY_ID, "(bucket = $1) AND (transaction_id = $2)"),
        (row::HOME, "(bucket = $1) AND (order_key = $2)"),
        (row::ORDER_ROW, "(bucket = $1) AND (order_key = $2)"),
        (row::HOMES, "(bucket = given.bucket) AND (order_key = given.order_key)"),
        (row::V1_STATUS, "(bucket = $1) AND (order_key = $2)"),
        (row::V2_STATUS, "(bucket = $1) AND (transaction_id = $2)"),
        (checks::IS_COMPLETE, "(bucket = $1) AND (merchant = $2) AND (direction = $3)"),
    ] {
        let plan = plan(&place, statement);
        assert!(plan.contains(&format!("Index Cond: ({condition})")), "{statement}\n{plan}");
    }
}

#[test]
fn a_page_of_a_list_is_read_along_one_index_alone() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    for (statement, index, merchant, place_column) in [
        (history::PAGE, "v1_list", "listed = $11", "transaction_id"),
        (journal::entry_row::PAGE, "journal_by_v1", "merchant = $2", "created_at"),
    ] {
        let plan = plan(&place, statement);
        assert!(plan.contains(&format!("Index Only Scan Backward using {index}")), "{plan}");
        let range = format!("(bucket = $1) AND ({merchant}) AND ({place_column} >= $3) AND ({place_column} <= $4)");
        assert!(plan.contains(&range), "{plan}");
    }
}

#[test]
fn queues_go_by_what_is_due() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    let claim = plan(&place, tasks::CLAIM);
    assert!(claim.contains("Index Cond: ((kind = $6) AND (queue = share.queue) AND (due_at <= $3))"), "{claim}");
    assert!(claim.contains("LockRows") && !claim.contains("Sort Key: tasks.due_at"), "{claim}");
    let overlong = plan(&place, tasks::OVERLONG);
    let index = "Index Cond: ((kind = $1) AND (queue = given.queue) AND (due_at > given.latest))";
    assert!(overlong.contains(index) && !overlong.contains("Sort Key"), "{overlong}");
    let queues = plan(&place, tasks::QUEUES);
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
    assert!(plan.contains("Index Cond: (ROW(bucket, merchant, currency, account) > ROW(due_1.bucket,"), "{plan}");
    assert!(!plan.contains("Sort"), "{plan}");
}

#[test]
fn lookups_of_the_console_go_by_one_index() {
    let Some(place) = Place::new() else { return };
    fill(&place);
    place.0.sql(
        "INSERT INTO callbacks SELECT transaction_id, 1, created_at, 1, bucket, 2, 410, 'merchant-' || bucket, 'target' \
         FROM operations; \
         INSERT INTO journal SELECT transaction_id, created_at, NULL, 1, bucket, 0, CASE transaction_id % 100 WHEN 0 \
         THEN 0 WHEN 1 THEN 1 ELSE 2 END, 0, '', '', 'EUR', 'merchant-' || bucket, '', '', '', NULL, transaction_id, \
         NULL, NULL, '' FROM operations; ANALYZE callbacks, journal",
    );
    for (statement, condition) in [
        (journal::entry_row::OF_TRANSACTION, "(transaction_id = $1)"),
        (tasks::STATE, "((bucket = $1) AND (kind = $2) AND (key = $3))"),
        (list::OF_ORDERS, "((bucket = $6) AND (key = ANY ($7)))"),
        (list::OF_MERCHANT, "((bucket = $6) AND (merchant = $7) AND (state = wanted.state)"),
    ] {
        let plan = plan(&place, statement);
        assert!(plan.contains(&format!("Index Cond: {condition}")), "{statement}\n{plan}");
    }
    let unanswered = plan(&place, journal::entry_row::UNANSWERED);
    let indexes = ["using journal_open", "using journal_in_doubt", "using tasks_retried"]
        .map(|index| unanswered.matches(index).count());
    assert!(indexes == [2, 2, 2] && !unanswered.contains("Sort"), "{unanswered}");
}

#[test]
fn a_page_of_actions_is_read_along_one_index() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    place.0.sql(
        "INSERT INTO actions SELECT n, n, NULL, 'user-' || n % 7, '', '', '', 'action-' || n % 3, '', '{}', '' \
         FROM generate_series(1, 20000) AS n; ANALYZE actions",
    );
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
        let plan = plan(&place, statement);
        assert!(plan.contains(&format!("Index Scan Backward using {index}")), "{plan}");
        assert!(plan.contains(&format!("Index Cond: ({condition})")) && !plan.contains("Sort"), "{plan}");
    }
}
