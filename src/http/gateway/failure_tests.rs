//! Replies to v1 callers while the store is unavailable: in their dialect, and inviting the same request again.

use super::fixture::{Call, Fixture, PAYIN};
use super::tests::hangs_up_on_the_way_to_the_store;
use http::Method;

/// A create that only the merchant's rules refuse: whether they apply depends on the store.
const UNTRANSLATABLE: &str = r#"{"external_id":"o-1","amount":"10.50","currency":"EUR","surprise":1}"#;

fn calls() -> [Call; 3] {
    [
        Call::payin(),
        Call::v1(Method::POST, "/api/v1/payin", UNTRANSLATABLE),
        Call::v1(Method::GET, "/api/v1/payin/status?external_id=o-1", ""),
    ]
}

#[tokio::test]
async fn a_store_that_is_away_is_503_and_the_same_may_be_sent_again() {
    let fixture = Fixture::without_store().await;
    for call in calls() {
        let answered = fixture.send(call).await;
        assert_eq!((answered.status, answered.header("retry-after")), (503, Some("1")));
        let message = answered.message();
        assert!(message.ends_with("; the same request, with the same external_id, may be sent again"), "{message}");
        assert!(!message.contains("disk"), "{message}");
        assert!(answered.headers.contains_key("deprecation"), "{answered:?}");
    }
    assert_eq!(fixture.created(), 0);
    let (fixture, mut statuses) = (Fixture::new(), Vec::new());
    for call in calls().into_iter().rev() {
        statuses.push(fixture.send(call).await.status);
    }
    assert_eq!(statuses, [404, 400, 200], "with its store");
}

#[tokio::test]
async fn the_dialects_error_shape_applies_too() {
    let fixture = Fixture::without_store().await;
    let call = Call::v1(Method::POST, "/api/v1/payin", PAYIN).but(|call| call.set("x-api-key", "shaped-live"));
    let answered = fixture.send(call).await;
    assert_eq!((answered.status, answered.header("retry-after")), (503, Some("1")));
    assert!(answered.body.starts_with("{\"oops\":\"") && answered.body.contains("external_id"), "{answered:?}");
}

#[tokio::test]
async fn a_v1_caller_who_hangs_up_abandons_nothing() {
    hangs_up_on_the_way_to_the_store(Call::payin()).await;
}
