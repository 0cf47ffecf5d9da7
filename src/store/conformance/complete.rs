//! Completing operations.

use super::*;
use crate::domain::{Outcome, Status};
use crate::store::{CompletionOutcome, ResultSource};

fn success() -> Outcome {
    Outcome::Success { payer: None }
}

fn later(by: i64) -> UnixMillis {
    UnixMillis(NOW.0 + by)
}

// keeps D048
pub(in crate::store) async fn a_result_is_stored_once_and_for_ever(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, withdrawal("acme", "paid")).await;
    let other = created(&*store, withdrawal("acme", "refused")).await;
    assert_eq!(
        store.complete(id, success(), ResultSource::PROVIDER, later(1)).await.unwrap(),
        CompletionOutcome::Completed
    );
    assert_eq!(
        store.complete(other, Outcome::Failed, ResultSource::PROVIDER, later(2)).await.unwrap(),
        CompletionOutcome::Completed
    );
    for reopened in [false, true] {
        let store = if reopened { backend.open().await } else { Arc::clone(&store) };
        assert_eq!(
            store.complete(id, success(), ResultSource::PROVIDER, later(3)).await.unwrap(),
            CompletionOutcome::AlreadyCompleted
        );
        let contradicted = store.complete(id, Outcome::Failed, ResultSource::PROVIDER, later(4)).await.unwrap();
        assert_eq!(contradicted, CompletionOutcome::Contradicts(Status::Success));
        let contradicted = store.complete(other, success(), ResultSource::PROVIDER, later(5)).await.unwrap();
        assert_eq!(contradicted, CompletionOutcome::Contradicts(Status::Failed));
        let state = |at, outcome| State::Finished { at, outcome };
        let found = |stored: Option<Stored>| stored.unwrap().operation.state;
        assert_eq!(found(store.by_id(id).await.unwrap()), state(later(1), success()));
        assert_eq!(found(store.by_id(other).await.unwrap()), state(later(2), Outcome::Failed));
        store.close().await.unwrap();
    }
}

pub(in crate::store) async fn an_unknown_operation_is_not_completed(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = fresh_id(&merchant("acme"));
    assert_eq!(store.complete(id, success(), ResultSource::PROVIDER, NOW).await.unwrap(), CompletionOutcome::Unknown);
    assert_eq!(store.by_id(id).await.unwrap(), None);
}

pub(in crate::store) async fn a_payer_comes_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = deposit("acme", "deposit");
    let mut expected = stored(&draft);
    let id = created(&*store, draft).await;
    let outcome = Outcome::Success { payer: Some(AccountNumber::new(PAYER).unwrap()) };
    assert_eq!(
        store.complete(id, outcome.clone(), ResultSource::PROVIDER, later(1)).await.unwrap(),
        CompletionOutcome::Completed
    );
    expected.operation.state = State::Finished { outcome, at: later(1) };
    assert_eq!(store.by_id(id).await.unwrap().as_ref(), Some(&expected));
    let other_payer = Outcome::Success { payer: Some(AccountNumber::new(CARD).unwrap()) };
    assert_eq!(
        store.complete(id, other_payer, ResultSource::PROVIDER, later(2)).await.unwrap(),
        CompletionOutcome::AlreadyCompleted
    );
    assert_eq!(store.by_id(id).await.unwrap().as_ref(), Some(&expected), "the first result is kept");
}

pub(in crate::store) async fn one_of_many_concurrent_results_is_stored(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, withdrawal("acme", "raced")).await;
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let store = Arc::clone(&store);
            let outcome = if number % 2 == 0 { success() } else { Outcome::Failed };
            tokio::spawn(async move {
                (outcome.clone(), store.complete(id, outcome, ResultSource::PROVIDER, later(number)).await.unwrap())
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    let completed_first: Vec<_> =
        results.iter().filter(|(_, completed)| *completed == CompletionOutcome::Completed).collect();
    assert_eq!(completed_first.len(), 1);
    let state = store.by_id(id).await.unwrap().unwrap().operation.state;
    let State::Finished { outcome, .. } = &state else { panic!("a result was stored") };
    assert_eq!(*outcome, completed_first[0].0);
    for (reported, completed) in &results {
        match completed {
            CompletionOutcome::Completed | CompletionOutcome::AlreadyCompleted => assert_eq!(reported, outcome),
            CompletionOutcome::Contradicts(status) => assert!(reported != outcome && *status == state.status()),
            CompletionOutcome::Unknown => panic!("the operation exists"),
        }
    }
}
