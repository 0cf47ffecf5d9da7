//! Hot statements go by indexes that begin with the bucket; those of the queues, which ask in all buckets, by their own.

use super::*;
use crate::store::postgres::{history, jobs, row, statuses};

/// The plan that serves whatever the parameters are, on tables that are too small for the planner to care.
fn plan(place: &Place, statement: &str) -> String {
    let count = (1..20).take_while(|number| statement.contains(&format!("${number}"))).count();
    let ones = vec!["'1'"; count].join(", ");
    let arguments = if count == 0 { String::new() } else { format!("({ones})") };
    let explained = place.0.sql(&format!(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; \
         PREPARE asked AS {statement}; EXPLAIN (COSTS OFF) EXECUTE asked{arguments}; DEALLOCATE asked"
    ));
    assert!(!explained.contains("Seq Scan on operations"), "{statement}\n{explained}");
    explained
}

#[test]
fn lookups_go_by_the_bucket_and_a_name_in_it() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    for (statement, condition) in [
        (row::BY_ID, "(bucket = $1) AND (transaction_id = $2)"),
        (row::BY_ORDER, "(bucket = $1) AND (order_key = $2)"),
        (statuses::V1, "(bucket = $1) AND (order_key = $2)"),
        (statuses::V2, "(bucket = $1) AND (transaction_id = $2)"),
        (statuses::MADE, "(bucket = $1) AND (order_key = $2)"),
    ] {
        let plan = plan(&place, statement);
        assert!(plan.contains(&format!("Index Cond: ({condition})")), "{statement}\n{plan}");
    }
}

#[test]
fn a_page_of_history_reads_its_lanes_from_the_index_alone() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    let plan = plan(&place, history::PAGE);
    let lanes = "(bucket = $1) AND (merchant = $2) AND (ROW(direction, shop, currency, status) > ";
    assert!(plan.contains(lanes), "a leap\n{plan}");
    assert!(plan.contains("Index Only Scan Backward using operations_"), "a slice\n{plan}");
    assert!(plan.contains("(direction = lane.direction) AND (shop = lane.shop)"), "of a lane\n{plan}");
}

#[test]
fn queues_go_by_what_is_due() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    let claim = plan(&place, jobs::CLAIM);
    assert!(claim.contains("Index Cond: ((shop = $1) AND (due_at <= $2))"), "{claim}");
    assert!(claim.contains("LockRows") && !claim.contains("Sort Key: provider_jobs.due_at"), "{claim}");
    let queues = plan(&place, jobs::QUEUES);
    assert!(queues.contains("Index Cond: (shop > queue_1.shop)"), "{queues}");
}
