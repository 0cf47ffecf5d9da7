//! Pages of a merchant's v1 history, compared with a plain filter over all operations.

use super::*;
use crate::domain::{CallbackSender, Direction, FailureCause, HistoryQuery, Outcome, Page, Status};
use crate::store::ResultSource;

const SHOPS: [&str; 3] = ["card", "card-eur", "mobile"];
const CURRENCIES: [&str; 2] = ["EUR", "KES"];

/// All operations of a merchant, in one page.
fn everything(name: &str) -> HistoryQuery {
    HistoryQuery { limit: 1000, ..first_page(name) }
}

fn later(by: i64) -> UnixMillis {
    UnixMillis(NOW.0 + by)
}

/// Moves an operation to another time. `number` distinguishes operations of the same millisecond.
fn at(mut draft: NewOperation, time: UnixMillis, number: u64) -> NewOperation {
    let operation = &mut draft.operation;
    operation.id = TransactionId::compose(time, Bucket::of(&operation.merchant), number);
    operation.created_at = time;
    draft
}

fn created_through_v1(mut draft: NewOperation) -> NewOperation {
    draft.v1 = Some(CallbackSender::Relayed(None));
    draft
}

/// Makes a varied operation: two in three belong to "acme", two in three are created through v1, five share a
/// millisecond.
fn varied(number: u64) -> NewOperation {
    let chance = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let one_of = |count: usize, shift: u32| usize::try_from(chance >> shift).unwrap() % count;
    let merchant = ["acme", "acme", "acme-2"][one_of(3, 0)];
    let make = [deposit, withdrawal][one_of(2, 4)];
    let mut draft =
        at(make(merchant, &format!("order-{number}")), later(i64::try_from(number / 5).unwrap()), number * 11);
    draft.operation.shop = ShopCode::new(SHOPS[one_of(3, 8)]).unwrap();
    draft.operation.currency = Currency::new(CURRENCIES[one_of(2, 12)]).unwrap();
    if one_of(5, 16) == 0 {
        draft.operation.state = State::Finished { outcome: Outcome::Failed, at: draft.operation.created_at };
        draft.failure = Some(FailureCause::Provider);
    }
    if one_of(3, 20) == 0 { draft } else { created_through_v1(draft) }
}

/// Stores some hundred operations in arbitrary order, completes some of them, and returns those that histories contain.
async fn filled(store: &Arc<dyn Store>) -> Vec<Operation> {
    let mut tasks = Vec::new();
    for number in 0..400 {
        let (store, mut draft) = (Arc::clone(store), varied(number * 171 % 400));
        tasks.push(tokio::spawn(async move {
            let mut operation = draft.operation.clone();
            let through_v1 = draft.v1.is_some();
            draft.opening = None;
            created(&*store, draft).await;
            let outcome = match number % 4 {
                0 => Outcome::Success { payer: None },
                1 => Outcome::Failed,
                _ => return through_v1.then_some(operation),
            };
            if operation.state == State::Pending {
                store.complete(operation.id, outcome.clone(), ResultSource::PROVIDER, later(1000)).await.unwrap();
                operation.state = State::Finished { outcome, at: later(1000) };
            }
            through_v1.then_some(operation)
        }));
    }
    let mut operations = Vec::new();
    for task in tasks {
        operations.extend(task.await.unwrap());
    }
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.id));
    operations
}

/// The expected page of a query.
fn expected(operations: &[Operation], query: &HistoryQuery) -> Page<Operation> {
    let matches = |operation: &&Operation| {
        operation.merchant == query.merchant
            && query.direction.is_none_or(|direction| direction == operation.direction())
            && query.status.is_none_or(|status| status == operation.state.status())
            && query.shop.as_ref().is_none_or(|shop| *shop == operation.shop)
            && query.currency.is_none_or(|currency| currency == operation.currency)
            && query.created_from.is_none_or(|from| from <= operation.created_at)
            && query.created_to.is_none_or(|to| operation.created_at <= to)
    };
    let skip = usize::try_from(query.skip).unwrap_or(usize::MAX);
    let items: Vec<_> =
        operations.iter().filter(matches).skip(skip).take(usize::from(query.limit) + 1).cloned().collect();
    Page::of_one_more(items, query.limit)
}

async fn assert_found(store: &dyn Store, operations: &[Operation], query: HistoryQuery) -> Page<Operation> {
    let found = store.history(query.clone()).await.unwrap();
    assert_eq!(found, expected(operations, &query), "{query:?}");
    found
}

pub(in crate::store) async fn a_history_holds_the_merchants_own_v1_operations(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.history(everything("acme")).await.unwrap(), Page::empty());
    created(&*store, created_through_v1(deposit("acme-2", "another merchant's"))).await;
    created(&*store, deposit("acme", "native")).await;
    assert_eq!(store.history(everything("acme")).await.unwrap(), Page::empty());
    let own = created_through_v1(withdrawal("acme", "own"));
    let operation = own.operation.clone();
    created(&*store, own).await;
    let expected = Page { items: vec![operation], has_more: false };
    assert_eq!(store.history(everything("acme")).await.unwrap(), expected);
    store.close().await.unwrap();
    assert_eq!(backend.open().await.history(everything("acme")).await.unwrap(), expected);
}

pub(in crate::store) async fn filters_of_a_history_work_alone_and_combined(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let operations = filled(&store).await;
    let shops = [None, Some("card"), Some("card-eur"), Some("elsewhere")];
    let mut queries = vec![everything("acme"), everything("acme-2"), everything("unknown")];
    for direction in [None, Some(Direction::Payin), Some(Direction::Payout)] {
        for status in [None, Some(Status::Pending), Some(Status::Success), Some(Status::Failed)] {
            for shop in shops.map(|code| code.map(|code| ShopCode::new(code).unwrap())) {
                for currency in
                    [None, Some("KES"), Some("USD")].map(|code| code.map(|code| Currency::new(code).unwrap()))
                {
                    queries.push(HistoryQuery {
                        direction,
                        status,
                        shop: shop.clone(),
                        currency,
                        ..everything("acme")
                    });
                }
            }
        }
    }
    let mut found_any = 0;
    for query in queries {
        for (created_from, created_to) in [(None, None), (Some(20), None), (None, Some(50)), (Some(31), Some(33))] {
            let (created_from, created_to) = (created_from.map(later), created_to.map(later));
            let query = HistoryQuery { created_from, created_to, ..query.clone() };
            let found = assert_found(&*store, &operations, query.clone()).await;
            found_any += usize::from(!found.items.is_empty());
            for (skip, limit) in [(0, 3), (2, 3), (17, 50), (u64::MAX, 50)] {
                assert_found(&*store, &operations, HistoryQuery { skip, limit, ..query.clone() }).await;
            }
        }
    }
    assert!(found_any > 200, "the filters match something: {found_any}");
}

pub(in crate::store) async fn pages_of_a_history_cover_it(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let operations = filled(&store).await;
    let payins = HistoryQuery { direction: Some(Direction::Payin), ..everything("acme") };
    for (list, limit) in [(everything("acme"), 1), (everything("acme-2"), 7), (payins, 50)] {
        let whole = expected(&operations, &list).items;
        let mut tiled = Vec::new();
        loop {
            let query = HistoryQuery { skip: tiled.len() as u64, limit, ..list.clone() };
            let page = store.history(query).await.unwrap();
            tiled.extend(page.items);
            assert_eq!(page.has_more, tiled.len() < whole.len(), "after {} of {}", tiled.len(), whole.len());
            if !page.has_more {
                break;
            }
        }
        assert_eq!(tiled, whole);
        for beyond in [0, 1, 10_000_000] {
            let query = HistoryQuery { skip: whole.len() as u64 + beyond, limit, ..list.clone() };
            assert_eq!(store.history(query).await.unwrap(), Page::empty());
        }
    }
}

pub(in crate::store) async fn a_result_moves_an_operation_between_statuses(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        let draft = created_through_v1(at(deposit("acme", &format!("{number}")), later(number), 0));
        ids.insert(0, created(&*store, draft).await);
    }
    let of = async |status| {
        let query = HistoryQuery { status: Some(status), ..everything("acme") };
        let page = store.history(query).await.unwrap();
        assert!(page.items.iter().all(|operation| operation.state.status() == status));
        page.items.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!((of(Status::Pending).await, of(Status::Success).await), (ids.clone(), vec![]));
    store.complete(ids[1], Outcome::Success { payer: None }, ResultSource::PROVIDER, later(9)).await.unwrap();
    store.complete(ids[2], Outcome::Failed, ResultSource::PROVIDER, later(9)).await.unwrap();
    assert_eq!(of(Status::Pending).await, [ids[0]]);
    assert_eq!(of(Status::Success).await, [ids[1]]);
    assert_eq!(of(Status::Failed).await, [ids[2]]);
    let all = store.history(everything("acme")).await.unwrap().items;
    assert_eq!(all.iter().map(|operation| operation.id).collect::<Vec<_>>(), ids, "their order stays");
}

pub(in crate::store) async fn times_of_a_history_are_inclusive_to_the_millisecond(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for by in [-1, 0, 1] {
        for number in [0, 0xfff] {
            let draft = at(withdrawal("acme", &format!("{by} {number}")), later(by), number);
            created(&*store, created_through_v1(draft)).await;
        }
    }
    let within = async |created_from, created_to| {
        let query = HistoryQuery { created_from, created_to, ..everything("acme") };
        let page = store.history(query).await.unwrap();
        page.items.iter().map(|operation| operation.created_at.0 - NOW.0).collect::<Vec<_>>()
    };
    let edge = Some(NOW);
    assert_eq!(within(edge, None).await, [1, 1, 0, 0]);
    assert_eq!(within(None, edge).await, [0, 0, -1, -1]);
    assert_eq!(within(edge, edge).await, [0, 0]);
    assert_eq!(within(Some(later(1)), edge).await, [0; 0]);
    let (least, greatest) = (Some(UnixMillis(i64::MIN)), Some(UnixMillis(i64::MAX)));
    assert_eq!(within(least, greatest).await.len(), 6);
    assert_eq!(within(greatest, None).await, [0; 0]);
    assert_eq!(within(None, least).await, [0; 0]);
}

pub(in crate::store) async fn operations_of_one_millisecond_keep_their_order(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut drafts = Vec::new();
    for number in [5, 1, 9, 3, 0, 0xfff] {
        let mut draft = at(deposit("acme", &format!("{number}")), NOW, number);
        draft.operation.shop = ShopCode::new(SHOPS[usize::try_from(number % 3).unwrap()]).unwrap();
        drafts.push(created_through_v1(draft));
    }
    for draft in drafts {
        created(&*store, draft).await;
    }
    let mut orders = Vec::new();
    for skip in 0..6 {
        let page = store.history(HistoryQuery { skip, limit: 1, ..everything("acme") }).await.unwrap();
        orders.extend(page.items.iter().map(|operation| operation.order_id.as_str().to_owned()));
    }
    assert_eq!(orders, ["4095", "9", "5", "3", "1", "0"]);
}
