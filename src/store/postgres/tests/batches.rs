//! Every caller of a batch gets one answer, regardless of the batch's end and of the others.

use std::ops::Range;

use tokio::task::JoinHandle;

use super::crowds::plain;
use super::*;
use crate::store::conformance::deposit;

fn order(number: usize) -> NewOperation {
    plain(&number.to_string())
}

/// Creates together, more than one batch has.
fn started(store: &Arc<PostgresStore>, numbers: Range<usize>) -> Vec<JoinHandle<Result<InsertOutcome, StoreError>>> {
    let create = |number| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.create(order(number)).await })
    };
    numbers.map(create).collect()
}

/// Asserts that all were created.
async fn all_created(creates: Vec<JoinHandle<Result<InsertOutcome, StoreError>>>) {
    for create in creates {
        let outcome = create.await.unwrap();
        assert!(matches!(outcome, Ok(InsertOutcome::Created(_))), "{outcome:?}");
    }
}

fn stored(place: &Place) -> usize {
    place.0.sql("SELECT count(*) FROM operations").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_the_database_rejects_fails_its_create_alone() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    place.0.sql("ALTER TABLE operations ADD CONSTRAINT refused CHECK (order_id NOT IN ('7', '200'))");
    let mut creates = started(&store, 0..300);
    for refused in [200, 7] {
        let outcome = creates.remove(refused).await.unwrap();
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{outcome:?}");
    }
    all_created(creates).await;
    assert_eq!(stored(&place), 298);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeats_in_a_batch_are_answered_with_what_is_stored() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    all_created(started(&store, 0..100)).await;
    let repeats = started(&store, 0..200);
    for (number, repeat) in repeats.into_iter().enumerate() {
        match repeat.await.unwrap().unwrap() {
            InsertOutcome::Existing(found) if number < 100 => {
                assert_eq!(found.operation.order_id.as_str(), number.to_string());
            }
            outcome => assert!(number >= 100 && matches!(outcome, InsertOutcome::Created(_)), "{number}: {outcome:?}"),
        }
    }
    assert_eq!(stored(&place), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_callers_sent_before_they_went_away_is_stored() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let gone: Vec<_> = (0..200).map(|number| store.create(order(number))).collect();
    let others = started(&store, 200..300);
    drop(gone);
    all_created(others).await;
    store.close().await.unwrap();
    assert_eq!(stored(&place), 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_has_ended_keeps_no_answer_from_others() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let leaving = Arc::clone(&store);
    let ended = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let creates: Vec<_> =
            runtime.block_on(async { (0..100).map(|number| leaving.create(order(number))).collect() });
        drop(runtime);
        assert_eq!(creates.len(), 100);
    });
    let others = started(&store, 100..200);
    ended.join().unwrap();
    all_created(others).await;
    store.close().await.unwrap();
    assert_eq!(stored(&place), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_answers_every_caller() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let creates = started(&store, 0..300);
    // Some of them were accepted before.
    let first = store.create(order(300));
    store.close().await.unwrap();
    let mut acknowledged = usize::from(matches!(first.await, Ok(InsertOutcome::Created(_))));
    assert_eq!(acknowledged, 1, "what was accepted is completed");
    for create in creates {
        match create.await.unwrap() {
            Ok(InsertOutcome::Created(_)) => acknowledged += 1,
            refused => assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}"),
        }
    }
    assert_eq!(stored(&place), acknowledged);
    assert!(store.create(order(301)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_dropped_answers_every_caller() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    let outcomes: Vec<_> =
        (0..200).map(|number| store.thread.enqueue(|queues| &queues.claims, claim(number))).collect();
    drop(store);
    for outcome in outcomes {
        let outcome = outcome.await;
        assert!(matches!(outcome, Ok(_) | Err(StoreError::Unavailable(_))), "{outcome:?}");
    }
}

fn claim(number: u8) -> queue::NewClaim {
    let home = crate::store::homes::Home::Claimed(deposit("acme", "any").operation.id);
    queue::NewClaim { order: crate::domain::Fingerprint([number; 16]), home }
}
