//! What only the file shows of an outbox: one commit with the result, leases across processes, rows that cannot be read,
//! query plans.

use super::*;
use crate::domain::{FailureCause, State};
use crate::store::callbacks::LATE;
use crate::store::conformance::{audited, expiry, merchant, reported};
use crate::store::outbox::list::{
    AT_ITS_TIME, AT_ITS_TIME_OF_MERCHANT, BEFORE_ITS_TIME, BEFORE_ITS_TIME_OF_MERCHANT, OF_ORDER, SIZE,
};
use crate::store::outbox::pending::WAITING_BEHIND;
use crate::store::sqlite::tasks::{DUE, NEXT_QUEUE};
use crate::store::tasks::OVERLONG;
use crate::store::{
    CallbackClaim, CallbackId, CallbackJob, CallbackNext, CallbackQuery, CallbackState, CallbackSubject,
    CallbackTarget, CallbackTry, Outbox, Resent, ResultSource, StoreAccess, TryOutcome,
};

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

fn failed(order_text: &str, offset: i64) -> NewOperation {
    let mut draft = deposit("acme", order_text);
    draft.operation.state = State::Finished { outcome: Outcome::Failed, at: at(offset) };
    draft.failure = Some(FailureCause::Provider);
    draft
}

async fn claimed(store: &SqliteStore, now: i64, lease_until: i64) -> Vec<CallbackJob> {
    let shares = vec![(CallbackTarget::new(&merchant("acme"), "https://acme.example:443"), 100)];
    store.claim_callbacks(CallbackClaim { shares, now: at(now), lease_until: at(lease_until) }).await.unwrap()
}

fn delivered() -> CallbackTry {
    CallbackTry { at: NOW, duration: std::time::Duration::from_millis(3), outcome: TryOutcome::Status(200) }
}

#[tokio::test]
async fn a_callback_is_of_its_results_commit() {
    let place = Place::new();
    let (store, faults) = place.open_faulty();
    let pending = created(&store, deposit("acme", "pending")).await;
    faults.failing_commits(true);
    let draft = failed("refused", 0);
    let refused = draft.operation.id;
    assert!(matches!(store.create(draft).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(
        store.complete(pending, Outcome::Failed, ResultSource::PROVIDER, NOW).await,
        Err(StoreError::Unavailable(_))
    ));
    assert!(reported(&store).await.is_empty());
    let notified = tokio::time::timeout(std::time::Duration::ZERO, store.callbacks_queued().notified());
    assert!(notified.await.is_err(), "the worker is notified of commits only");
    faults.failing_commits(false);
    recovered(&store).await;
    assert_eq!(store.by_id(refused).await.unwrap(), None);
    assert_eq!(store.by_id(pending).await.unwrap().unwrap().operation.state, State::Pending);
    assert!(reported(&store).await.is_empty());
    assert_eq!(
        store.complete(pending, Outcome::Failed, ResultSource::PROVIDER, NOW).await.unwrap(),
        CompletionOutcome::Completed
    );
    // A failing disk loses no attempt either: its lease ends, and it is repeated.
    let job = claimed(&store, 0, 100).await.remove(0);
    faults.failing_commits(true);
    let tried = store.callback_tried(job.lease(), delivered(), CallbackNext::Delivered).await;
    assert!(matches!(tried, Err(StoreError::Unavailable(_))));
    faults.failing_commits(false);
    recovered(&store).await;
    assert_eq!(claimed(&store, 100, 200).await[0].id, job.id);
    audited(&store).await;
}

#[tokio::test]
async fn only_a_serving_process_ends_leases() {
    let place = Place::new();
    let keys = StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() };
    let store = place.open_made().unwrap();
    created(&store, failed("leased", 0)).await;
    created(&store, failed("postponed", 0)).await;
    let jobs = claimed(&store, 0, 100).await;
    store.postpone_callback(jobs[1].lease(), at(70)).await.unwrap();

    let tool =
        open_beside(&place.path(), &keys, StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
            .unwrap();
    assert!(claimed(&tool, 50, 200).await.is_empty(), "the gateway is at it");
    assert_eq!(tool.resend_callback(jobs[0].id, at(50)).await.unwrap(), Resent::UnderWay);
    assert_eq!(tool.resend_callback(jobs[1].id, at(50)).await.unwrap(), Resent::Queued);
    tool.close().await.unwrap();
    assert_eq!(
        store.callback_queues(Vec::new()).await.unwrap()[0].due,
        at(50),
        "the gateway finds what was resent beside it"
    );
    store.postpone_callback(claimed(&store, 50, 100).await[0].lease(), at(70)).await.unwrap();
    store.close().await.unwrap();

    let store = place.open_made().unwrap();
    let found = reported(&store).await;
    let found: Vec<_> = found.iter().map(|it| (it.order_id.as_str(), it.is_claimed, it.due)).collect();
    assert_eq!(found, [("leased", false, at(0)), ("postponed", false, at(70))], "others keep their time");
}

/// A callback that cannot be decoded does not affect the others.
#[tokio::test]
async fn what_cannot_be_read_does_not_stop_the_queue() {
    for sql in [
        "UPDATE operations SET context = 7 WHERE transaction_id = ?1",
        "UPDATE operations SET fingerprint = x'00' WHERE transaction_id = ?1",
        "UPDATE operations SET status = 0, finished_at = NULL WHERE transaction_id = ?1",
        "DELETE FROM operations WHERE transaction_id = ?1",
        "UPDATE callbacks SET key = -77 WHERE key = ?1",
        "UPDATE callbacks SET key = 0 WHERE key = ?1",
    ] {
        let place = Place::new();
        let store = place.open_made().unwrap();
        let bad = created(&store, failed("bad", 0)).await;
        created(&store, failed("good", 1)).await;
        let connection = rusqlite::Connection::open(place.path()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
        assert_eq!(connection.execute(sql, [bad.to_stored()]).unwrap(), 1, "{sql}");
        let jobs = claimed(&store, 10, 100).await;
        assert_eq!(jobs.len(), 1, "{sql}");
        store.callback_tried(jobs[0].lease(), delivered(), CallbackNext::Delivered).await.unwrap();
        assert_eq!(store.callback_queues(Vec::new()).await.unwrap()[0].due, at(60_010), "{sql}: in a minute");
        assert_eq!(store.expire_callbacks(expiry(at(60_010), 9)).await.unwrap(), 1, "{sql}");
        let listed = CallbackQuery {
            states: vec![CallbackState::Delivered, CallbackState::Failed],
            merchant: None,
            order_id: None,
            since: None,
            until: None,
            after: None,
            limit: 1,
        };
        let listed = store.callbacks(CallbackQuery { since: Some(at(0)), ..listed }).await.unwrap();
        assert_eq!(listed[0].order_id.as_str(), "good", "{sql}");
    }
}

#[tokio::test]
async fn unreadable_rows_make_no_slice_short() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..9 {
        created(&store, failed(&number.to_string(), number)).await;
    }
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection.execute("UPDATE callbacks SET merchant = 'No Merchant' WHERE queued_at % 3 > 0", []).unwrap();
    let mut query = CallbackQuery {
        states: vec![CallbackState::Pending],
        merchant: None,
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: 2,
    };
    let found = store.callbacks(query.clone()).await.unwrap();
    assert_eq!(found.len(), 2);
    query.after = Some(found[1].place());
    assert_eq!(store.callbacks(query).await.unwrap().len(), 1);
    let unread = connection
        .query_row("SELECT key, nonce FROM callbacks WHERE queued_at % 3 > 0 LIMIT 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .unwrap();
    let id = CallbackId::new(CallbackSubject::from_key(unread.0).unwrap(), unread.1.cast_unsigned());
    let error = store.callback(id).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(text) if text.ends_with("the column merchant is invalid")), "{error}");
}

/// Every read of the outbox is a search in one index, and nothing is sorted, regardless of SQLite's statistics.
#[tokio::test]
async fn plans_of_the_outbox_search_one_index() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..300 {
        created(&store, failed(&number.to_string(), number)).await;
    }
    for job in claimed(&store, 200, 1000).await {
        store.callback_tried(job.lease(), delivered(), CallbackNext::Delivered).await.unwrap();
    }
    drop(store);
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let plans = [
        (NEXT_QUEUE, "SEARCH tasks USING INDEX tasks_by_due (kind=? AND queue>?)\n"),
        (OVERLONG, "SEARCH tasks USING COVERING INDEX tasks_by_due (kind=? AND queue=? AND due_at>?)\n"),
        (WAITING_BEHIND, "SEARCH tasks USING INDEX tasks_by_due (kind=? AND queue=? AND (due_at,key)>(?,?))\n"),
        (DUE, "SEARCH tasks USING INDEX tasks_by_due (kind=? AND queue=? AND due_at<?)\n"),
        (
            LATE,
            "SEARCH c USING INDEX callbacks_by_merchant (merchant=? AND state=? AND queued_at>? AND queued_at<?)\n\
             SEARCH t USING PRIMARY KEY (kind=? AND key=?) LEFT-JOIN\n",
        ),
        (AT_ITS_TIME, "SEARCH callbacks USING COVERING INDEX callbacks_by_time (state=? AND queued_at=? AND key<?)\n"),
        (
            BEFORE_ITS_TIME,
            "SEARCH callbacks USING COVERING INDEX callbacks_by_time (state=? AND queued_at>? AND queued_at<?)\n",
        ),
        (
            AT_ITS_TIME_OF_MERCHANT,
            "SEARCH callbacks USING COVERING INDEX callbacks_by_merchant (merchant=? AND state=? AND queued_at=? AND key<?)\n",
        ),
        (
            BEFORE_ITS_TIME_OF_MERCHANT,
            "SEARCH callbacks USING COVERING INDEX callbacks_by_merchant (merchant=? AND state=? AND queued_at>? AND queued_at<?)\n",
        ),
        (
            SIZE,
            "SCAN CONSTANT ROW\nSCALAR SUBQUERY 2\nCO-ROUTINE pending\n\
             SEARCH tasks USING COVERING INDEX tasks_by_due (kind=?)\nSCAN pending\nSCALAR SUBQUERY 4\nCO-ROUTINE failed\n\
             SEARCH callbacks USING COVERING INDEX callbacks_by_time (state=?)\nSCAN failed\nSCALAR SUBQUERY 5\n\
             SEARCH callbacks USING COVERING INDEX callbacks_by_time (state=?)\n",
        ),
        (
            OF_ORDER,
            "SEARCH callbacks USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\n\
             SEARCH homes USING PRIMARY KEY (order_key=?)\n",
        ),
    ];
    for analyzed in [false, true] {
        if analyzed {
            connection.execute_batch("ANALYZE").unwrap();
        }
        for (sql, expected) in plans {
            assert_eq!(plan(&connection, sql), expected, "{sql:?}");
        }
    }
}
