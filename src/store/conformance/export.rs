//! Exports: every row that was there at the start, once.

use super::*;
use crate::domain::{CallbackSender, Direction, LedgerAccount, Outcome, Posting};
use crate::store::{
    ActionRecord, BeginOutcome, ExportKeys, ExportPage, ExportQuery, ExportTable, ExportedEntry, NewAction,
    ResultSource, StoreError,
};

/// More than a page.
const COUNT: u64 = 1150;

fn later(by: i64) -> UnixMillis {
    UnixMillis(NOW.0 + by)
}

fn between(from: i64, to: i64) -> ExportQuery {
    ExportQuery { from: later(from), to: later(to), merchant: None, shop: None }
}

/// Moves an operation to another time.
fn at(mut draft: NewOperation, time: UnixMillis, number: u64) -> NewOperation {
    draft.operation.id = TransactionId::compose(time, Bucket::of(&draft.operation.merchant), number);
    draft.operation.created_at = time;
    draft
}

/// The operation with a number, created in that millisecond: of two merchants and two shops.
fn numbered(number: u64) -> NewOperation {
    let name = if number.is_multiple_of(3) { "beta" } else { "acme" };
    let time = later(i64::try_from(number).unwrap());
    let mut draft = at(deposit(name, &format!("order-{number}")), time, number);
    if number.is_multiple_of(100) {
        draft.operation.shop = ShopCode::new("rare").unwrap();
    }
    draft
}

/// Reads all pages; `meanwhile` runs after each.
async fn walked<R>(
    store: &dyn Store,
    table: ExportTable,
    query: &ExportQuery,
    read: impl AsyncFn(ExportKeys) -> Result<ExportPage<R>, StoreError>,
    meanwhile: impl AsyncFn(usize),
) -> Vec<R> {
    let mut keys = store.export_keys(table, query.clone()).await.unwrap();
    let (mut rows, mut pages) = (Vec::new(), 0);
    while let Some(left) = keys {
        let page = read(left).await.unwrap();
        rows.extend(page.rows);
        keys = page.rest;
        meanwhile(pages).await;
        pages += 1;
    }
    rows
}

async fn operations(store: &dyn Store, query: &ExportQuery) -> Vec<Stored> {
    let read = async |keys| store.export_operations(query.clone(), keys).await;
    let rows = walked(store, ExportTable::Operations, query, read, async |_| ()).await;
    rows.into_iter().map(|(stored, _)| stored).collect()
}

async fn entries(store: &dyn Store, query: &ExportQuery) -> Vec<ExportedEntry> {
    let read = async |keys| store.export_entries(query.clone(), keys).await;
    walked(store, ExportTable::Entries, query, read, async |_| ()).await
}

pub(in crate::store) async fn an_export_reads_every_operation_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.export_keys(ExportTable::Operations, between(0, 9)).await.unwrap(), None);
    // As many at once as a loaded machine decides in time.
    let numbers: Vec<u64> = (0..COUNT).collect();
    for numbers in numbers.chunks(64) {
        let creates = numbers.iter().map(|number| store.create(numbered(*number)));
        for outcome in futures_util::future::join_all(creates).await {
            assert!(matches!(outcome.unwrap(), InsertOutcome::Created(CreateOutcome::AsDrafted)));
        }
    }
    // New operations and results meanwhile do not disturb it.
    let all = between(0, 1_000_000);
    let read = async |keys| store.export_operations(all.clone(), keys).await;
    let exported = walked(&*store, ExportTable::Operations, &all, read, async |page| {
        let number = u64::try_from(page).unwrap();
        created(&*store, numbered(COUNT + number)).await;
        store
            .complete(numbered(number * 600).operation.id, Outcome::Failed, ResultSource::PROVIDER, later(90_000))
            .await
            .unwrap();
    });
    let exported: Vec<_> = exported.await.into_iter().map(|(row, _)| row.operation.id).collect();
    let expected: Vec<_> = (0..COUNT).map(|number| numbered(number).operation.id).collect();
    assert_eq!(exported, expected);

    let numbers = |rows: Vec<Stored>| -> Vec<i64> {
        rows.iter().map(|row| NOW.until(row.operation.created_at).as_millis().try_into().unwrap()).collect()
    };
    assert_eq!(numbers(operations(&*store, &between(7, 10)).await), [7, 8, 9], "its end is excluded");
    assert_eq!(numbers(operations(&*store, &between(-9, 1)).await), [0]);
    assert!(operations(&*store, &between(-9, 0)).await.is_empty());
    let merchant_alone = ExportQuery { merchant: Some(merchant("beta")), ..between(0, 7) };
    assert_eq!(numbers(operations(&*store, &merchant_alone).await), [0, 3, 6]);
    let rare = ExportQuery { shop: Some(ShopCode::new("rare").unwrap()), ..between(1, 1150) };
    let hundreds: Vec<i64> = (1..12).map(|hundred| hundred * 100).collect();
    assert_eq!(numbers(operations(&*store, &rare).await), hundreds);
    let both = ExportQuery { merchant: Some(merchant("beta")), ..rare };
    assert_eq!(numbers(operations(&*store, &both).await), [300, 600, 900]);
    let one = operations(&*store, &between(8, 9)).await.remove(0).operation;
    assert_eq!((one.id, one.order_id.as_str()), (numbered(8).operation.id, "order-8"));

    let unknown = fresh_id(&merchant("acme"));
    let found = store.operations_by_ids(vec![unknown, one.id]).await.unwrap();
    assert_eq!(found, [None, Some(one.clone())]);
    let names = [("acme", Direction::Payin), ("acme", Direction::Payout), ("beta", Direction::Payin)];
    let names = names.map(|(name, direction)| (merchant(name), direction, order("order-8")));
    let found = store.operations_by_orders(names.into()).await.unwrap();
    assert_eq!(found, [Some(one), None, None]);
    // More than one statement reads, in any order, some of them twice.
    let wanted: Vec<_> = (0..70).rev().chain([8, 8]).map(|number| numbered(number).operation).collect();
    let found = store.operations_by_ids(wanted.iter().map(|operation| operation.id).collect()).await.unwrap();
    let ids = |found: Vec<Option<Operation>>| found.into_iter().map(|it| it.unwrap().id).collect::<Vec<_>>();
    assert_eq!(ids(found), wanted.iter().map(|operation| operation.id).collect::<Vec<_>>());
    let names = wanted.iter().map(|it| (it.merchant.clone(), it.direction(), it.order_id.clone())).collect();
    let found = store.operations_by_orders(names).await.unwrap();
    assert_eq!(ids(found), wanted.iter().map(|operation| operation.id).collect::<Vec<_>>());
    assert!(store.operations_by_ids(Vec::new()).await.unwrap().is_empty());
    for (shop, merchants) in [("rare", &["acme", "beta"][..]), ("none", &[])] {
        let found = store.merchants_of_shop(ShopCode::new(shop).unwrap()).await.unwrap();
        assert_eq!(found, merchants.iter().copied().map(merchant).collect::<Vec<_>>(), "{shop}");
    }
}

pub(in crate::store) async fn entries_are_exported_by_their_posting(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let euros: Arc<[_]> =
        ["EUR", "USD"].map(|code| (Currency::new(code).unwrap(), Amount::from_hundredths(10_000).unwrap())).into();
    store.open_ledger(&merchant("acme"), Arc::clone(&euros), later(0)).await.unwrap();
    let id = created(&*store, at(withdrawal("acme", "w"), later(10), 1)).await;
    created(&*store, NewOperation { opening: Some(euros), ..at(deposit("beta", "d"), later(20), 2) }).await;
    store.complete(id, Outcome::Success { payer: None }, ResultSource::PROVIDER, later(5000)).await.unwrap();

    let all = entries(&*store, &between(0, 5001)).await;
    assert_eq!(all.len(), 12, "{all:?}");
    assert_eq!(all.iter().map(|entry| entry.amount).sum::<i64>(), 0);
    assert_eq!(all.iter().filter(|entry| entry.operation.is_none()).count(), 8, "two openings in two currencies");
    let paid = |account, amount| ExportedEntry {
        operation: Some((id, order("w"), ShopCode::new("card-eur").unwrap())),
        merchant: merchant("acme"),
        posting: Posting::Taken,
        account,
        currency: Currency::new("EUR").unwrap(),
        amount,
        posted_at: later(5000),
    };
    let expected = [paid(LedgerAccount::Outside, 1050), paid(LedgerAccount::Held, -1050)];
    assert_eq!(entries(&*store, &between(21, 6000)).await, expected, "by the time of the posting");
    assert!(entries(&*store, &between(21, 5000)).await.is_empty());
    let of_shop = ExportQuery { shop: Some(ShopCode::new("card-eur").unwrap()), ..between(0, 6000) };
    assert_eq!(entries(&*store, &of_shop).await.len(), 4, "an opening is of no shop");
    let of_beta = ExportQuery { merchant: Some(merchant("beta")), ..between(0, 6000) };
    assert_eq!(entries(&*store, &of_beta).await.len(), 4);
}

pub(in crate::store) async fn callbacks_and_actions_are_exported(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for (number, name) in [(1, "acme"), (2, "beta"), (3, "acme")] {
        let mut draft = at(deposit(name, &format!("o{number}")), later(number), number.unsigned_abs());
        draft.v1 = (number == 3).then_some(CallbackSender::Directly);
        let id = created(&*store, draft).await;
        store.complete(id, Outcome::Failed, ResultSource::PROVIDER, later(100 * number)).await.unwrap();
    }
    let callbacks = async |query: ExportQuery| {
        let read = async |keys| store.export_callbacks(query.clone(), keys).await;
        let rows = walked(&*store, ExportTable::Callbacks, &query, read, async |_| ()).await;
        rows.into_iter().map(|(row, shop)| format!("{} {shop}", row.order_id.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(callbacks(between(100, 301)).await, ["o1 card-eur", "o2 card-eur", "o3 card-eur"]);
    assert_eq!(callbacks(between(101, 300)).await, ["o2 card-eur"]);
    assert_eq!(
        callbacks(ExportQuery { merchant: Some(merchant("acme")), ..between(0, 900) }).await,
        ["o1 card-eur", "o3 card-eur"]
    );
    let of_no_shop = ExportQuery { shop: Some(ShopCode::new("other").unwrap()), ..between(0, 900) };
    assert!(callbacks(of_no_shop).await.is_empty());

    let action = |target: &str, of: Option<&str>, offset| NewAction {
        at: later(offset),
        user: "ada".into(),
        role: "operator".into(),
        address: "192.0.2.7".into(),
        request_id: "5f0e2a".into(),
        action: ActionRecord::EXPORT,
        target: target.into(),
        parameters: of.map(|merchant| ("merchant", merchant.into())).into_iter().collect(),
        rules_version: "0123456789abcdef".into(),
        idempotency_key: None,
    };
    for (target, of, offset) in [("acme", None, 1), ("operations", Some("acme"), 2), ("acme-2", Some("beta"), 3)] {
        let begun = store.begin_action(action(target, of, offset)).await.unwrap();
        assert!(matches!(begun, BeginOutcome::New(_)));
    }
    let actions = async |query: ExportQuery| {
        let read = async |keys| store.export_actions(query.clone(), keys).await;
        let rows = walked(&*store, ExportTable::Audit, &query, read, async |_| ()).await;
        rows.into_iter().map(|row| row.target.into_string()).collect::<Vec<_>>()
    };
    assert_eq!(actions(between(0, 9)).await, ["acme", "operations", "acme-2"]);
    assert_eq!(actions(between(2, 3)).await, ["operations"]);
    let of_acme = ExportQuery { merchant: Some(merchant("acme")), ..between(0, 9) };
    assert_eq!(actions(of_acme).await, ["acme", "operations"]);
}
