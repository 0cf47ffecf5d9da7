//! Ids reserved for v1, and preparations of providers.

use super::*;
use crate::domain::{Detail, Direction, Instructions, Outcome, Preparation};
use crate::store::{HomeClaim, JobEnd, OrderHome, OrderLookup, Reservations, ResultSource};

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

/// Claims an order.
async fn claimed(store: &dyn Store, text: &str, claim: HomeClaim) -> OrderHome {
    store.claim(&merchant("acme"), Direction::Payin, &order(text), claim, NOW).await.unwrap()
}

pub(in crate::store) async fn a_claimed_order_has_one_home(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let home = async |text: &str| store.order_home(&acme, Direction::Payin, &order(text)).await.unwrap();
    assert_eq!(home("claimed").await, None);
    assert_eq!(claimed(&*store, "claimed", HomeClaim::Legacy).await, OrderHome::Legacy);
    assert_eq!(claimed(&*store, "native", HomeClaim::Native).await, OrderHome::Native);
    created(&*store, deposit("acme", "here")).await;
    store.reserve(&acme, Direction::Payin, &orders(&["imported"]), NOW).await.unwrap();
    let lost = ["lost", "here", "lost", "claimed"].map(|text| (acme.clone(), Direction::Payin, order(text)));
    assert_eq!(store.lose(&lost, NOW).await.unwrap(), Reservations { new: 1, known: 2, operations: 1 });
    store.close().await.unwrap();
    let store = backend.open().await;
    for (text, expected) in [
        ("claimed", OrderHome::Legacy),
        ("native", OrderHome::Native),
        ("here", OrderHome::Operation),
        ("imported", OrderHome::Legacy),
        ("lost", OrderHome::Lost),
    ] {
        for claim in [HomeClaim::Legacy, HomeClaim::Native] {
            assert_eq!(claimed(&*store, text, claim).await, expected, "{text}");
        }
        let home = store.order_home(&acme, Direction::Payin, &order(text)).await.unwrap();
        assert_eq!(home, Some(expected), "{text}");
        let created = store.create(deposit("acme", text)).await.unwrap();
        let is_here = expected == OrderHome::Operation;
        assert_eq!(matches!(created, InsertOutcome::Existing(_)), is_here, "{text}");
        assert_eq!(matches!(created, InsertOutcome::Reserved), !is_here, "{text}");
        let status = store.v1_status(&acme, Direction::Payin, &order(text)).await.unwrap();
        assert!(status.is_none(), "{text}: none was created through v1");
    }
    // An import reports a claimed or lost order as known, and leaves the others as they are.
    let ids = orders(&["claimed", "native", "here", "imported", "lost"]);
    let reservations = store.reserve(&acme, Direction::Payin, &ids, NOW).await.unwrap();
    assert_eq!(reservations, Reservations { new: 0, known: 3, operations: 2 });
    // Of another direction and another merchant, the order has no home.
    assert_eq!(store.order_home(&acme, Direction::Payout, &order("claimed")).await.unwrap(), None);
    assert_eq!(store.order_home(&merchant("bolt"), Direction::Payin, &order("claimed")).await.unwrap(), None);
    audited(&*store).await;
}

pub(in crate::store) async fn claims_and_creates_race_for_one_home(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut racing = Vec::new();
    for number in 0..40 {
        let text = format!("race {}", number / 4);
        let store = Arc::clone(&store);
        racing.push(tokio::spawn(async move {
            if number % 2 == 0 {
                let home = claimed(&*store, &text, HomeClaim::Legacy).await;
                (text, home == OrderHome::Legacy)
            } else {
                let outcome = store.create(deposit("acme", &text)).await.unwrap();
                (text, matches!(outcome, InsertOutcome::Reserved))
            }
        }));
    }
    let mut homes = std::collections::HashMap::new();
    for race in racing {
        let (text, at_legacy) = race.await.unwrap();
        assert_eq!(*homes.entry(text.clone()).or_insert(at_legacy), at_legacy, "{text}");
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
        assert!(store.prepare(id, preparation.clone(), JobEnd::CustomerAwaited, NOW).await.unwrap());
        assert_eq!(store.preparation(id).await.unwrap(), Some(preparation), "the earlier preparation is replaced");
        assert_eq!(store.provider_queues().await.unwrap(), [], "its job has ended");
    }
    store.close().await.unwrap();
    let store = backend.open().await;
    assert_eq!(store.preparation(id).await.unwrap(), Some(Preparation::Stopped));
    audited(&*store).await;
    store.complete(id, Outcome::Success { payer: None }, ResultSource::PROVIDER, NOW).await.unwrap();
    assert_eq!(store.preparation(id).await.unwrap(), None);
    assert!(!store.prepare(id, Preparation::Stopped, JobEnd::CustomerAwaited, NOW).await.unwrap());
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
        assert!(!store.prepare(id, Preparation::Stopped, JobEnd::CustomerAwaited, NOW).await.unwrap());
        assert_eq!(store.preparation(id).await.unwrap(), None);
    }
    assert_eq!(store.provider_queues().await.unwrap().len(), 1, "the withdrawal keeps its job");
}
