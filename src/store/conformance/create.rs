//! Creating and finding operations.

use super::*;
use crate::domain::{
    CallbackSender, CustomerAccountId, Direction, FailureCause, FingerprintInput, MemberFingerprints, Outcome, Status,
};
use crate::store::{JobEnd, OrderLookup, StoreError};

fn names(list: &[&str]) -> SchemaFields {
    SchemaFields::Names(list.iter().map(|name| Box::from(*name)).collect())
}

fn full_deposit() -> NewOperation {
    let url = |path: &str| BrowserUrl::new(&format!("https://acme.example/{path}?order=1#x")).unwrap();
    let mut draft = deposit("acme", &"é".repeat(255));
    draft.operation.method = Some(ShopCode::new("card-eur").unwrap());
    draft.operation.payment_method = Some("card".into());
    draft.operation.customer_account_id = Some(CustomerAccountId(i64::MIN));
    draft.operation.amount = Amount::from_hundredths(Amount::MAX_HUNDREDTHS).unwrap();
    draft.operation.kind = Kind::Deposit(Deposit {
        success_url: url("success"),
        pending_url: url("pending"),
        fail_url: url("fail"),
        redirect_url: RedirectUrl::new("https://localhost:8443/pay/1?expires=2&signature=cd".into()),
    });
    let mut v1_members = MemberFingerprints::default();
    v1_members.add(5, [0xa5; 4]);
    v1_members.add(9, [0; 4]);
    draft.fields =
        Fields { sent: r#"{"first_name":"Zoë","n":1.50}"#.into(), defaults: r#"{"bank":"x"}"#.into(), v1_members };
    draft.comparison =
        RequestFingerprint { fingerprint: Fingerprint([0xfe; 16]), kept: names(&["bank", "first_name", "n"]) };
    let callback_url = CallbackUrl::new_allowing_http("http://acme.example/v1").unwrap();
    draft.v1 = Some(CallbackSender::Relayed(Some(callback_url)));
    draft.provider_job = Some(NOW);
    draft
}

fn full_withdrawal() -> NewOperation {
    let mut draft = full_deposit();
    draft.operation.id = fresh_id(&draft.operation.merchant);
    draft.operation.kind = Kind::Withdrawal(Withdrawal {
        account_number: AccountNumber::new(CARD).unwrap(),
        account_channel: Some("instant é".into()),
    });
    draft
}

async fn assert_found(store: &dyn Store, expected: &Stored, fields: &Fields) {
    let operation = &expected.operation;
    let by_id = store.by_id(operation.id).await.unwrap();
    assert_eq!(by_id.as_ref(), Some(expected));
    let by_order = store.by_order(&operation.merchant, operation.direction(), &operation.order_id).await.unwrap();
    assert_eq!(by_order.operation().as_ref(), Some(expected));
    assert_statuses(store, expected).await;
    assert!(store.fields(operation.id).await.unwrap().as_ref() == Some(fields), "the fields come back");
}

pub(in crate::store) async fn every_member_comes_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for draft in [full_deposit(), full_withdrawal()] {
        let (expected, fields) = (stored(&draft), draft.fields.clone());
        created(&*store, draft).await;
        assert_found(&*store, &expected, &fields).await;
    }
}

pub(in crate::store) async fn optional_members_may_be_absent(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut without_callback = deposit("acme", "without callback");
    without_callback.v1 = Some(CallbackSender::Relayed(None));
    let mut empty_list = deposit("acme", "empty list");
    empty_list.comparison.kept = names(&[]);
    for draft in [deposit("acme", "d"), withdrawal("acme", "w"), without_callback, empty_list] {
        let (expected, fields) = (stored(&draft), draft.fields.clone());
        created(&*store, draft).await;
        assert_found(&*store, &expected, &fields).await;
    }
}

pub(in crate::store) async fn a_failed_deposit_is_created_failed(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut failed = deposit("acme", "failed");
    failed.operation.state = State::Finished { outcome: Outcome::Failed, at: NOW };
    failed.failure = Some(FailureCause::Provider);
    let mut paid = deposit("acme", "paid");
    let payer = Some(AccountNumber::new(PAYER).unwrap());
    paid.operation.state = State::Finished { outcome: Outcome::Success { payer }, at: NOW };
    for (draft, status) in [(failed, Status::Failed), (paid, Status::Success)] {
        let (expected, fields) = (stored(&draft), draft.fields.clone());
        created(&*store, draft).await;
        assert_found(&*store, &expected, &fields).await;
        assert_eq!(expected.operation.state.status(), status);
    }
}

pub(in crate::store) async fn an_order_exists_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let first = deposit("acme", "order");
    let (expected, fields) = (stored(&first), first.fields.clone());
    let mut second = full_deposit();
    second.operation.order_id = order("order");
    let loser = second.operation.id;
    created(&*store, first).await;
    let InsertOutcome::Existing(existing) = store.create(second).await.unwrap() else { panic!("the order exists") };
    assert_eq!(*existing, expected);
    assert_eq!(store.by_id(loser).await.unwrap(), None);
    assert_found(&*store, &expected, &fields).await;
    assert_eq!(store.provider_queues().await.unwrap(), [], "nothing of the loser is stored");
}

pub(in crate::store) async fn one_of_many_concurrent_creates_wins(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..5 {
        let text = format!("race {round}");
        let tasks: Vec<_> = (0..100_u8)
            .map(|number| {
                let (store, mut draft) = (Arc::clone(&store), deposit("acme", &text));
                draft.comparison.fingerprint = Fingerprint([number; 16]);
                tokio::spawn(async move { (stored(&draft), store.create(draft).await.unwrap()) })
            })
            .collect();
        let (mut winners, mut seen) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.await.unwrap() {
                (draft, InsertOutcome::Created(_)) => winners.push(draft),
                (_, InsertOutcome::Existing(existing)) => seen.push(*existing),
                (_, other) => panic!("all ids differ: {other:?}"),
            }
        }
        assert_eq!(winners.len(), 1);
        assert_eq!(seen.len(), 99);
        assert!(seen.iter().all(|existing| *existing == winners[0]), "every caller gets the winner");
    }
}

// keeps P239, P240
pub(in crate::store) async fn orders_are_scoped_by_merchant_and_direction(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let drafts =
        [deposit("acme", "same"), withdrawal("acme", "same"), deposit("bolt", "same"), deposit("acme", "Same")];
    let expected: Vec<_> = drafts.iter().map(stored).collect();
    for draft in drafts {
        created(&*store, draft).await;
    }
    for expected in expected {
        let operation = &expected.operation;
        let found = store.by_order(&operation.merchant, operation.direction(), &operation.order_id).await.unwrap();
        assert_eq!(found, OrderLookup::Operation(Box::new(expected)));
    }
}

pub(in crate::store) async fn a_taken_id_is_reported(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let first = deposit("acme", "first");
    let expected = stored(&first);
    let mut second = withdrawal("acme", "second");
    second.operation.id = first.operation.id;
    second.provider_job = Some(NOW);
    created(&*store, first).await;
    let creation = store.create(second).await.unwrap();
    assert!(matches!(creation, InsertOutcome::IdTaken), "{creation:?}");
    assert_eq!(store.by_id(expected.operation.id).await.unwrap(), Some(expected));
    assert_eq!(
        store.by_order(&merchant("acme"), Direction::Payout, &order("second")).await.unwrap(),
        OrderLookup::Free
    );
    assert_eq!(store.provider_queues().await.unwrap(), []);
}

pub(in crate::store) async fn kept_names_come_back_after_reopening(backend: &dyn TestBackend) {
    let lists = [names(&["a", "b"]), names(&["ab"]), SchemaFields::Everything, names(&[]), names(&["\"", "\0", "é"])];
    let store = backend.open().await;
    let mut ids = Vec::new();
    // Twice: once stored anew, once known.
    for (number, list) in lists.iter().chain(&lists).enumerate() {
        let mut draft = deposit("acme", &number.to_string());
        draft.comparison.kept = list.clone();
        ids.push((created(&*store, draft).await, list));
    }
    store.close().await.unwrap();
    let store = backend.open().await;
    for (id, list) in ids {
        assert_eq!(store.by_id(id).await.unwrap().unwrap().comparison.kept, *list);
    }
}

pub(in crate::store) async fn everything_survives_reopening(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let hash = |store: &dyn Store| store.fingerprint_key().fingerprint(&FingerprintInput::of("x"));
    let key = hash(&*store);
    let mut expected = Vec::new();
    for draft in [full_deposit(), full_withdrawal(), deposit("acme", "plain")] {
        expected.push((stored(&draft), draft.fields.clone()));
        created(&*store, draft).await;
    }
    drop(store);
    let store = backend.open().await;
    assert_eq!(hash(&*store), key, "the comparison key never changes");
    for (operation, fields) in &expected {
        assert_found(&*store, operation, fields).await;
    }
    let repeat = full_deposit();
    assert!(matches!(store.create(repeat).await.unwrap(), InsertOutcome::Existing(_)));
}

pub(in crate::store) async fn unknown_operations_are_absent(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = fresh_id(&merchant("acme"));
    assert_eq!(store.by_id(id).await.unwrap(), None);
    assert!(store.fields(id).await.unwrap().is_none());
    assert_eq!(store.by_order(&merchant("acme"), Direction::Payin, &order("none")).await.unwrap(), OrderLookup::Free);
    store.end_provider_job(id, JobEnd::ReportAwaited, NOW).await.unwrap();
    store.probe().await.unwrap();
}

pub(in crate::store) async fn a_closed_store_is_unavailable(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, deposit("acme", "before")).await;
    // What was accepted before is finished.
    let waiting: Vec<_> = (0..100)
        .map(|number| {
            let (store, draft) = (Arc::clone(&store), deposit("acme", &number.to_string()));
            tokio::spawn(async move { (draft.operation.id, store.create(draft).await) })
        })
        .collect();
    store.close().await.unwrap();
    store.close().await.unwrap();
    let unavailable = |error| matches!(error, StoreError::Unavailable(_));
    assert!(store.by_id(id).await.is_err_and(unavailable));
    assert!(store.create(deposit("acme", "after")).await.is_err_and(unavailable));
    assert!(store.probe().await.is_err_and(unavailable));
    let reopened = backend.open().await;
    assert!(reopened.by_id(id).await.unwrap().is_some());
    for task in waiting {
        let (id, creation) = task.await.unwrap();
        assert_eq!(reopened.by_id(id).await.unwrap().is_some(), creation.is_ok(), "acknowledged means stored");
    }
}
