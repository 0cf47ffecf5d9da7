//! Deep pages of histories: how many at once, and beside what.

use super::*;
use crate::domain::HistoryQuery;
use crate::store::StoreError;
use crate::store::conformance::first_page;

fn page(skip: u64) -> HistoryQuery {
    HistoryQuery { skip, ..first_page("acme") }
}

#[tokio::test]
async fn too_many_deep_pages_are_refused_and_others_are_not() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let all = u32::try_from(store.deep.places.available_permits()).unwrap();
    let taken = store.deep.places.try_acquire_many(all).unwrap();
    let error = store.history(page(1_000_000)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert_eq!(store.history(page(100)).await.unwrap(), Page::empty());
    drop(taken);
    assert_eq!(store.history(page(1_000_000)).await.unwrap(), Page::empty());
}

#[tokio::test]
async fn many_deep_pages_wait_for_each_other() {
    let place = Place::new();
    let store = Arc::new(place.open_made().unwrap());
    let read = |number: u64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.history(page(1_000_000 + number)).await })
    };
    for task in (0..60).map(read).collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap().unwrap(), Page::empty());
    }
}
