//! No statement of a request or a worker reads a table as a whole, or sorts.

use super::*;
use crate::store::conformance::recorded;
use crate::store::list_indexes::PENDING_V1;

/// Returns the steps of a plan that read a table or an index as a whole, or sort its rows. Partial indexes hold only what is
/// looked for, and subqueries are bounded.
fn wrong_steps(plan: &str) -> Vec<&str> {
    let is_subquery = |name: &str| {
        ["CO-ROUTINE", "MATERIALIZE"].iter().any(|way| plan.lines().any(|step| step == format!("{way} {name}")))
    };
    let is_wrong = |step: &&str| {
        let Some(scanned) = step.strip_prefix("SCAN ") else { return step.contains("TEMP B-TREE") };
        let partial =
            ["journal_open", "journal_in_doubt", "tasks_retried"].iter().any(|index| scanned.ends_with(index));
        // Contexts are few: see `store::list`.
        !["CONSTANT ROW", "contexts"].contains(&scanned) && !partial && !is_subquery(scanned)
    };
    plan.lines().filter(is_wrong).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_scans_a_table() {
    run_every_case().await;
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let statements = recorded('?');
    assert!(statements.len() > 80, "{} statements", statements.len());
    for text in statements {
        let plan = plan_of(&connection, text);
        // Those of several merchants are sorted: a page, and a few of each.
        let sorts = if text == PENDING_V1.sqlite { 2 } else { 0 };
        assert_eq!(wrong_steps(&plan), vec!["USE TEMP B-TREE FOR ORDER BY"; sorts], "{text}\n{plan}");
    }
}
