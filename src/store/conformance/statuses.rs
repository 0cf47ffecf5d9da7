//! Status lookups: they agree with the operation, and return it only to its merchant.

use super::*;
use crate::domain::{CallbackSender, Direction, OperationView, Outcome, Status, StatusRecord};
use crate::store::{CompletionOutcome, ResultSource, StoreError};

/// Looks up the status of a stored operation through both API versions, as its merchant and as another one.
pub(super) async fn assert_statuses(store: &dyn Store, stored: &Stored) {
    let operation = &stored.operation;
    let statuses = async |merchant: &MerchantId, direction| {
        let v1 = store.v1_status(merchant, direction, &operation.order_id).await.unwrap();
        (v1, store.v2_status(merchant, operation.id).await.unwrap())
    };
    let (v1, v2) = statuses(&operation.merchant, operation.direction()).await;
    assert_eq!(
        v1,
        stored.v1.as_ref().map(|_| OperationView::from(operation)),
        "v1 returns operations created through v1"
    );
    let created_through_v2 = stored.v1.is_none();
    assert_eq!(
        v2,
        created_through_v2.then(|| StatusRecord::from(operation)),
        "v2 returns operations created through v2"
    );
    assert_eq!(statuses(&merchant("unknown"), operation.direction()).await, (None, None));
}

/// Drafts of both directions and both API versions, with and without a shop in the request.
fn drafts() -> Vec<NewOperation> {
    let mut drafts = Vec::new();
    for (is_v1, names_shop, payment_method) in
        [(false, false, None), (true, true, Some("card")), (true, false, Some("m \"1\" é")), (false, true, None)]
    {
        for make in [deposit, withdrawal] {
            let mut draft = make("acme", &format!("{is_v1} {names_shop} \"\\\u{1F600}"));
            draft.v1 = is_v1.then_some(CallbackSender::Relayed(None));
            draft.operation.method = names_shop.then(|| draft.operation.shop.clone());
            draft.operation.payment_method = payment_method.map(Into::into);
            draft.operation.created_at = UnixMillis(NOW.0 - 7);
            drafts.push(draft);
        }
    }
    drafts
}

fn success(payer: Option<&str>) -> Outcome {
    Outcome::Success { payer: payer.map(|payer| AccountNumber::new(payer).unwrap()) }
}

pub(in crate::store) async fn a_status_matches_its_operation(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut ids = Vec::new();
    for (number, outcome) in
        [None, Some(Outcome::Failed), Some(success(None)), Some(success(Some(PAYER))), Some(success(Some("+25471")))]
            .into_iter()
            .enumerate()
    {
        for (place, mut draft) in drafts().into_iter().enumerate() {
            let operation = &mut draft.operation;
            operation.order_id = order(&format!("{} {number} {place}", operation.order_id.as_str()));
            operation.amount = Amount::from_hundredths([1, 90, 100, 1001, Amount::MAX_HUNDREDTHS][number]).unwrap();
            let id = created(&*store, draft).await;
            ids.push(id);
            assert_statuses(&*store, &store.by_id(id).await.unwrap().unwrap()).await;
            if let Some(outcome) = outcome.clone() {
                store.complete(id, outcome, ResultSource::PROVIDER, NOW).await.unwrap();
                assert_statuses(&*store, &store.by_id(id).await.unwrap().unwrap()).await;
            }
        }
    }
    store.close().await.unwrap();
    let reopened = backend.open().await;
    for id in ids {
        assert_statuses(&*reopened, &reopened.by_id(id).await.unwrap().unwrap()).await;
    }
}

pub(in crate::store) async fn an_unknown_status_is_none(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let native = created(&*store, deposit("acme", "native")).await;
    let mut draft = deposit("acme", "there");
    draft.v1 = Some(CallbackSender::Directly);
    let id = created(&*store, draft).await;
    store.reserve(&acme, Direction::Payin, &[order("reserved")], NOW).await.unwrap();
    journaled(&*store, pending_create("acme", "written down")).await;
    for (direction, text) in [
        (Direction::Payin, "reserved"),
        (Direction::Payin, "written down"),
        (Direction::Payin, "unknown"),
        (Direction::Payin, "There"),
        (Direction::Payout, "there"),
    ] {
        assert_eq!(store.v1_status(&acme, direction, &order(text)).await.unwrap(), None, "{direction} {text}");
    }
    for unknown in [id, fresh_id(&acme)] {
        assert_eq!(store.v2_status(&acme, unknown).await.unwrap(), None);
    }
    assert!(store.v2_status(&acme, native).await.unwrap().is_some());
    store.close().await.unwrap();
    let unavailable = |error| matches!(error, StoreError::Unavailable(_));
    assert!(store.v1_status(&acme, Direction::Payin, &order("there")).await.is_err_and(unavailable));
    assert!(store.v2_status(&acme, native).await.is_err_and(unavailable));
}

pub(in crate::store) async fn an_operation_can_be_completed_before_its_create_returns(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for mut draft in drafts() {
        draft.operation.order_id = order(&format!("{} late", draft.operation.order_id.as_str()));
        let id = draft.operation.id;
        let creating = store.create(draft);
        // Both calls are in progress at once, so the completion may return before the create.
        let completing = store.complete(id, Outcome::Failed, ResultSource::PROVIDER, NOW);
        let completed = completing.await.unwrap();
        assert!(matches!(creating.await.unwrap(), InsertOutcome::Created(_)));
        if completed == CompletionOutcome::Unknown {
            // The completion ran before the create.
            assert_eq!(
                store.complete(id, Outcome::Failed, ResultSource::PROVIDER, NOW).await.unwrap(),
                CompletionOutcome::Completed
            );
        }
        let stored = store.by_id(id).await.unwrap().unwrap();
        assert_eq!(stored.operation.state.status(), Status::Failed);
        assert_statuses(&*store, &stored).await;
    }
}
