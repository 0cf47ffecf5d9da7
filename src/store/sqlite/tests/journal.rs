//! What only the file shows of a journal: sealing, tampering, query plans, and whether a store reports one.

use super::*;
use crate::domain::Status;
use crate::store::conformance::{
    DOUBTED_AT, engine_answer, journaled, journaled_in_each_state, pending_create, status_update,
};
use crate::store::journal::entries::{BY_ID, OF_TRANSACTION, OPEN_AFTER, PAGE, UNANSWERED};
use crate::store::{Journal, JournalEntry, StoreError};

/// One entry in each state, named by its `order_id`; the account of the answered one was received. Also one operation.
async fn fill(store: &SqliteStore) -> JournalEntry {
    created(store, deposit("acme", "operation")).await;
    journaled_in_each_state(store, "open").await
}

#[tokio::test]
async fn nothing_sealed_of_the_journal_is_found_in_any_file() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..50 {
        let mut payout = pending_create("acme", &format!("w{number}"));
        payout.direction = Direction::Payout;
        payout.body =
            format!(r#"{{"account_number":"{CARD}","fields":{{"holder":"Ada Lovelace"}}}}"#).into_bytes().into();
        let entry = journaled(&store, payout).await;
        match number % 3 {
            0 => store.mark_unknown(entry.id, DOUBTED_AT).await.unwrap(),
            1 => {
                let entry = store.answer(entry, engine_answer(number)).await.unwrap().unwrap();
                let account = Some(AccountNumber::new(PAYER).unwrap());
                store.update_status(entry.id, status_update(Status::Success, account)).await.unwrap();
            }
            _ => {}
        }
    }
    let assert_sealed = || {
        let bytes = place.bytes();
        for secret in [CARD, PAYER, "Ada Lovelace", "holder"] {
            assert!(!contains(&bytes, secret), "{secret} is readable");
        }
        assert!(contains(&bytes, "w49"), "the search finds what is there");
    };
    assert!(place.path().with_extension("db-wal").exists());
    assert_sealed();
    drop(store);
    assert_sealed();
}

#[tokio::test]
async fn a_tampered_entry_is_corrupt_and_does_not_stop_the_others() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let open = fill(&store).await;
    let later = journaled(&store, pending_create("acme", "later")).await;
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection.execute("UPDATE journal SET body = x'01' WHERE entry = ?1", [open.id.0]).unwrap();
    let error = store.entry(&open.create.merchant, Direction::Payin, &open.create.order_id).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(text) if text.ends_with("the column body is invalid")), "{error}");
    assert_eq!(store.open_entries(None, 1).await.unwrap(), [later]);
}

#[tokio::test]
async fn a_store_reports_whether_it_holds_a_journal() {
    let place = Place::new();
    let opened = || open(&place.path(), &named(&[1]), Arc::new(SystemRandomness::default()), Arc::default()).unwrap();
    let Opened { store, holds } = opened();
    assert!(!holds.any());
    let entry = journaled(&store, pending_create("acme", "1")).await;
    drop(store);
    let Opened { store, holds } = opened();
    assert_eq!(holds, Holds { operations: false, journal: true });
    assert!(holds.any(), "what it was answered with must stay readable");
    store.cancel(entry.id, None).await.unwrap();
    drop(store);
    assert!(!opened().holds.any());
}

#[tokio::test]
async fn repeated_information_costs_no_commit() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let entry = journaled(&store, pending_create("acme", "1")).await;
    let entry = store.answer(entry, engine_answer(1)).await.unwrap().unwrap();
    let account = || Some(AccountNumber::new(PAYER).unwrap());
    store.update_status(entry.id, status_update(Status::Pending, account())).await.unwrap();
    let log = || fs::read(place.path().with_extension("db-wal")).unwrap();
    let before = log();
    for stated in [account(), None, account()] {
        store.update_status(entry.id, status_update(Status::Pending, stated)).await.unwrap();
    }
    assert!(log() == before, "nothing was written");
    store.update_status(entry.id, status_update(Status::Success, account())).await.unwrap();
    assert!(log() != before);
    let before = log();
    store.update_status(entry.id, status_update(Status::Success, account())).await.unwrap();
    assert!(log() == before, "nothing was written");
}

/// Every read of the journal is a search in one index, and nothing is sorted, regardless of SQLite's statistics.
#[tokio::test]
async fn plans_of_the_journal_search_one_index() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..300 {
        let entry = journaled(&store, pending_create("acme", &number.to_string())).await;
        if number % 10 > 0 {
            store.answer(entry, engine_answer(number)).await.unwrap().unwrap();
        }
    }
    drop(store);
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let plans = [
        (
            PAGE,
            "CO-ROUTINE page\n\
             SEARCH journal USING COVERING INDEX journal_by_v1 (merchant=? AND created_at>? AND created_at<?)\n\
             SCAN page\nSEARCH journal USING INTEGER PRIMARY KEY (rowid=?)\n",
        ),
        (BY_ID, "SEARCH journal USING INTEGER PRIMARY KEY (rowid=?)\n"),
        (OPEN_AFTER, "SEARCH journal USING INDEX journal_open (entry>?)\n"),
        (OF_TRANSACTION, "SEARCH journal USING INDEX journal_by_transaction (transaction_id=?)\n"),
    ];
    for analyzed in [false, true] {
        if analyzed {
            connection.execute_batch("ANALYZE").unwrap();
        }
        for (sql, expected) in plans {
            assert_eq!(plan(&connection, sql), expected, "{sql:?}");
        }
        let unanswered = plan(&connection, UNANSWERED);
        let indexes =
            ["journal_open", "journal_in_doubt", "tasks_retried"].map(|index| unanswered.matches(index).count());
        assert!(indexes == [2, 2, 2] && !unanswered.contains("TEMP B-TREE"), "{unanswered}");
    }
}
