//! Ids reserved for v1, and preparations of providers.

use super::*;
use crate::domain::{Detail, Direction, Instructions, Outcome, Preparation};
use crate::store::{OrderLookup, Reservations};

fn orders(texts: &[&str]) -> Vec<OrderId> {
    texts.iter().map(|text| order(text)).collect()
}

pub(in crate::store) async fn reserved_orders_are_refused(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let reserve = async |texts: &[&str]| store.reserve(&acme, Direction::Payin, &orders(texts), NOW).await.unwrap();
    assert_eq!(reserve(&["a", "b", "a"]).await, Reservations { new: 2, known: 1, operations: 0 });
    assert_eq!(reserve(&["b", "c"]).await, Reservations { new: 1, known: 1, operations: 0 });
    assert_eq!(reserve(&[]).await, Reservations::default());
    store.close().await.unwrap();
    let store = backend.open().await;
    for text in ["a", "b", "c"] {
        assert_eq!(store.by_order(&acme, Direction::Payin, &order(text)).await.unwrap(), OrderLookup::Reserved);
        let mut draft = deposit("acme", text);
        draft.provider_job = Some(NOW);
        let id = draft.operation.id;
        assert!(matches!(store.create(draft).await.unwrap(), InsertOutcome::Reserved));
        assert_eq!(store.by_id(id).await.unwrap(), None);
    }
    assert_eq!(store.provider_queues().await.unwrap(), [], "nothing of a refused create is stored");
    // The ids are free for another direction and another merchant.
    assert_eq!(store.by_order(&acme, Direction::Payout, &order("a")).await.unwrap(), OrderLookup::Free);
    created(&*store, withdrawal("acme", "a")).await;
    created(&*store, deposit("bolt", "a")).await;
    audited(&*store).await;
}

pub(in crate::store) async fn a_reservation_never_touches_an_operation(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let draft = deposit("acme", "there");
    let expected = stored(&draft);
    created(&*store, draft).await;
    let reservations = store.reserve(&acme, Direction::Payin, &orders(&["there", "new"]), NOW).await.unwrap();
    assert_eq!(reservations, Reservations { new: 1, known: 0, operations: 1 });
    let found = store.by_order(&acme, Direction::Payin, &order("there")).await.unwrap();
    assert_eq!(found, OrderLookup::Operation(Box::new(expected)));
    assert!(matches!(store.create(deposit("acme", "there")).await.unwrap(), InsertOutcome::Existing(_)));
    audited(&*store).await;
}

pub(in crate::store) async fn a_race_for_an_order_has_one_winner(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..20 {
        let text = format!("race {round}");
        let (creating, reserving) = (Arc::clone(&store), Arc::clone(&store));
        let (draft, ids) = (deposit("acme", &text), orders(&[&text]));
        let create = tokio::spawn(async move { creating.create(draft).await.unwrap() });
        let reserve =
            tokio::spawn(
                async move { reserving.reserve(&merchant("acme"), Direction::Payin, &ids, NOW).await.unwrap() },
            );
        let (creation, reservations) = (create.await.unwrap(), reserve.await.unwrap());
        match creation {
            InsertOutcome::Created(_) => assert_eq!(reservations.operations, 1),
            InsertOutcome::Reserved => assert_eq!(reservations.new, 1),
            other => panic!("{other:?}"),
        }
    }
    audited(&*store).await;
}

pub(in crate::store) async fn a_preparation_is_kept_until_the_result(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut draft = deposit("acme", "d");
    draft.operation.provider = ProviderKind::Http;
    draft.provider_job = Some(NOW);
    let id = created(&*store, draft).await;
    assert_eq!(store.preparation(id).await.unwrap(), None);
    let page = Preparation::Page(BrowserUrl::new("https://psp.example/pay?x=1#y").unwrap());
    let detail = |label: &str, value: &str| Detail { label: label.into(), value: value.into() };
    let details = vec![detail("IBAN", "DE89370400440532013000"), detail("Reference", "\"é\"")];
    let instructions = Instructions::new(Some("Pay\nnow".into()), details).unwrap();
    let bare = Instructions::new(None, vec![detail("a", "b")]).unwrap();
    let all = [page, Preparation::Instructions(instructions), Preparation::Instructions(bare), Preparation::Stopped];
    for preparation in all {
        assert!(store.prepare(id, preparation.clone()).await.unwrap());
        assert_eq!(store.preparation(id).await.unwrap(), Some(preparation), "the earlier preparation is replaced");
        assert_eq!(store.provider_queues().await.unwrap(), [], "its job has ended");
    }
    store.close().await.unwrap();
    let store = backend.open().await;
    assert_eq!(store.preparation(id).await.unwrap(), Some(Preparation::Stopped));
    audited(&*store).await;
    store.complete(id, Outcome::Success { payer: None }, NOW).await.unwrap();
    assert_eq!(store.preparation(id).await.unwrap(), None);
    assert!(!store.prepare(id, Preparation::Stopped).await.unwrap());
    assert_eq!(store.preparation(id).await.unwrap(), None);
    audited(&*store).await;
}

pub(in crate::store) async fn only_pending_deposits_are_prepared(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut draft = withdrawal("acme", "w");
    draft.operation.provider = ProviderKind::Http;
    draft.provider_job = Some(NOW);
    let id = created(&*store, draft).await;
    let unknown = fresh_id(&merchant("acme"));
    for id in [id, unknown] {
        assert!(!store.prepare(id, Preparation::Stopped).await.unwrap());
        assert_eq!(store.preparation(id).await.unwrap(), None);
    }
    assert_eq!(store.provider_queues().await.unwrap().len(), 1, "the withdrawal keeps its job");
}
