//! What only the file shows of the audit trail: a failing disk, query plans.

use super::*;
use crate::store::trail::{ALL, OF_ACTION, OF_USER, OF_USER_AND_ACTION};
use crate::store::{ActionQuery, AuditTrail, BeginOutcome, NewAction};

fn action() -> NewAction {
    NewAction {
        at: NOW,
        user: "ada".into(),
        role: "operator".into(),
        address: "".into(),
        request_id: "r".into(),
        action: "rules.reload",
        target: "".into(),
        parameters: Vec::new(),
        rules_version: "v".into(),
        idempotency_key: None,
    }
}

#[tokio::test]
async fn an_action_that_is_not_on_disk_is_not_begun() {
    let place = Place::new();
    let (store, faults) = place.open_faulty();
    faults.failing_commits(true);
    let refused = store.begin_action(action()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    faults.failing_commits(false);
    recovered(&store).await;
    let all = ActionQuery { limit: 10, ..ActionQuery::default() };
    assert_eq!(store.actions(all.clone()).await.unwrap(), []);
    assert!(matches!(store.begin_action(action()).await.unwrap(), BeginOutcome::New(_)));
    assert_eq!(store.actions(all).await.unwrap().len(), 1);
}

/// A page is one search in an index, and nothing is sorted.
#[tokio::test]
async fn a_page_of_actions_is_read_along_one_index() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    for (sql, search) in [
        (ALL, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (OF_USER, "USING INDEX actions_by_user (user_name=? AND id>? AND id<?)"),
        (OF_ACTION, "USING INDEX actions_by_action (action=? AND id>? AND id<?)"),
        (OF_USER_AND_ACTION, "USING INDEX actions_by_both (user_name=? AND action=? AND id>? AND id<?)"),
    ] {
        assert_eq!(plan(&connection, sql), format!("SEARCH actions {search}\n"));
    }
}
