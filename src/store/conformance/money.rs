//! The ledger, the daily limits, and the callbacks of results.

use super::*;
use crate::domain::{Balance, CallbackSender, CustomerAccountId, FailureCause, Outcome, Status, UnixDay};
use crate::store::{CallbackSubject, CompletionOutcome, DailyLimit, ResultSource};

const DAY: UnixDay = UnixDay(20_717);

fn later(by: i64) -> UnixMillis {
    UnixMillis(NOW.0 + by)
}

fn success() -> Outcome {
    Outcome::Success { payer: None }
}

fn hundredths(number: u64) -> Amount {
    Amount::from_hundredths(number).unwrap()
}

fn eur() -> Currency {
    Currency::new("EUR").unwrap()
}

fn with_amount(mut draft: NewOperation, amount: u64) -> NewOperation {
    draft.operation.amount = hundredths(amount);
    draft
}

fn enforced(mut draft: NewOperation) -> NewOperation {
    draft.enforce_balance = true;
    draft
}

fn balances_of(balances: &[(&str, u64)]) -> Arc<[(Currency, Amount)]> {
    balances.iter().map(|(code, amount)| (Currency::new(code).unwrap(), hundredths(*amount))).collect()
}

fn opening(mut draft: NewOperation, balances: &[(&str, u64)]) -> NewOperation {
    draft.opening = Some(balances_of(balances));
    draft
}

fn limited(mut draft: NewOperation, operations: Option<u32>, amount: Option<u64>) -> NewOperation {
    draft.operation.customer_account_id = Some(CustomerAccountId(0));
    draft.daily_limit = Some(DailyLimit { day: DAY, operations, amount: amount.map(hundredths) });
    draft
}

fn finished(mut draft: NewOperation, outcome: Outcome) -> NewOperation {
    draft.failure = (outcome == Outcome::Failed).then_some(FailureCause::Provider);
    draft.operation.state = State::Finished { outcome, at: NOW };
    draft
}

async fn assert_balance(store: &dyn Store, merchant_name: &str, available: i64, held: i64) {
    let balances = store.balances(&merchant(merchant_name)).await.unwrap();
    assert_eq!(balances, [(eur(), Balance { available, held })], "{merchant_name}");
}

async fn credit(store: &dyn Store, merchant_name: &str, amount: u64) {
    let id = fresh_id(&merchant(merchant_name));
    let mut draft = with_amount(deposit(merchant_name, &format!("credit {id}")), amount);
    draft.operation.id = id;
    let id = created(store, draft).await;
    assert_eq!(store.complete(id, success(), ResultSource::PROVIDER, NOW).await.unwrap(), CompletionOutcome::Completed);
}

async fn create_outcome(store: &dyn Store, draft: NewOperation) -> CreateOutcome {
    match store.create(draft).await.unwrap() {
        InsertOutcome::Created(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

async fn count_outcomes(store: &Arc<dyn Store>, drafts: Vec<NewOperation>, wanted: CreateOutcome) -> usize {
    let create = |draft| {
        let store = Arc::clone(store);
        tokio::spawn(async move { create_outcome(&*store, draft).await })
    };
    let mut count = 0;
    for task in drafts.into_iter().map(create).collect::<Vec<_>>() {
        count += usize::from(task.await.unwrap() == wanted);
    }
    count
}

pub(in crate::store) async fn results_move_money(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), []);
    let paid = created(&*store, with_amount(deposit("acme", "paid"), 1000)).await;
    let unpaid = created(&*store, with_amount(deposit("acme", "unpaid"), 9999)).await;
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), [], "a pending deposit posts nothing");
    store.complete(paid, success(), ResultSource::PROVIDER, later(1)).await.unwrap();
    store.complete(unpaid, Outcome::Failed, ResultSource::PROVIDER, later(1)).await.unwrap();
    assert_balance(&*store, "acme", 1000, 0).await;
    let taken = created(&*store, with_amount(withdrawal("acme", "taken"), 300)).await;
    let released = created(&*store, with_amount(withdrawal("acme", "released"), 200)).await;
    let held = created(&*store, with_amount(withdrawal("acme", "held"), 100)).await;
    assert_balance(&*store, "acme", 400, 600).await;
    store.complete(taken, success(), ResultSource::PROVIDER, later(2)).await.unwrap();
    store.complete(released, Outcome::Failed, ResultSource::PROVIDER, later(2)).await.unwrap();
    assert_balance(&*store, "acme", 600, 100).await;
    audited(&*store).await;
    store.close().await.unwrap();
    let store = backend.open().await;
    assert_balance(&*store, "acme", 600, 100).await;
    store.complete(held, success(), ResultSource::PROVIDER, later(3)).await.unwrap();
    assert_balance(&*store, "acme", 600, 0).await;
    // Without enforcement the balance may become negative.
    created(&*store, with_amount(withdrawal("acme", "more"), 1000)).await;
    assert_balance(&*store, "acme", -400, 1000).await;
    let audit = audited(&*store).await;
    assert_eq!((audit.operations, audit.entries), (6, 2 + 4 + 4 + 4 + 2));
}

pub(in crate::store) async fn operations_finished_at_creation_post_at_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, finished(with_amount(deposit("acme", "d"), 500), success())).await;
    assert_balance(&*store, "acme", 500, 0).await;
    created(&*store, finished(with_amount(withdrawal("acme", "w"), 200), success())).await;
    assert_balance(&*store, "acme", 300, 0).await;
    created(&*store, finished(with_amount(deposit("acme", "df"), 70), Outcome::Failed)).await;
    created(&*store, finished(with_amount(withdrawal("acme", "wf"), 70), Outcome::Failed)).await;
    assert_balance(&*store, "acme", 300, 0).await;
    assert_eq!(audited(&*store).await.entries, 2 + 4);
}

pub(in crate::store) async fn repeated_results_post_nothing(backend: &dyn TestBackend) {
    let store = backend.open().await;
    credit(&*store, "acme", 1000).await;
    let taken = created(&*store, with_amount(withdrawal("acme", "taken"), 300)).await;
    let released = created(&*store, with_amount(withdrawal("acme", "released"), 200)).await;
    for (id, outcome, other) in [(taken, success(), Outcome::Failed), (released, Outcome::Failed, success())] {
        assert_eq!(
            store.complete(id, outcome.clone(), ResultSource::PROVIDER, later(1)).await.unwrap(),
            CompletionOutcome::Completed
        );
        assert_eq!(
            store.complete(id, outcome, ResultSource::PROVIDER, later(2)).await.unwrap(),
            CompletionOutcome::AlreadyCompleted
        );
        assert!(matches!(
            store.complete(id, other, ResultSource::PROVIDER, later(3)).await.unwrap(),
            CompletionOutcome::Contradicts(_)
        ));
    }
    assert_balance(&*store, "acme", 700, 0).await;
    let audit = audited(&*store).await;
    assert_eq!(audit.entries, 2 + 4 + 4);
    let reported = reported(&*store).await;
    let count_of =
        |id| reported.iter().filter(|callback| callback.id.subject() == CallbackSubject::Operation(id)).count();
    assert_eq!((count_of(taken), count_of(released)), (1, 1));
}

pub(in crate::store) async fn an_existing_order_posts_nothing(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, with_amount(withdrawal("acme", "one"), 100)).await;
    let repeat = limited(opening(with_amount(withdrawal("acme", "one"), 100), &[("USD", 5)]), Some(1), None);
    assert!(matches!(store.create(repeat).await.unwrap(), InsertOutcome::Existing(_)));
    let mut taken = limited(with_amount(withdrawal("bolt", "two"), 100), Some(1), None);
    taken.operation.id = store
        .by_order(&merchant("acme"), crate::domain::Direction::Payout, &order("one"))
        .await
        .unwrap()
        .operation()
        .unwrap()
        .operation
        .id;
    assert!(matches!(store.create(taken).await.unwrap(), InsertOutcome::IdTaken));
    assert_balance(&*store, "acme", -100, 100).await;
    assert_eq!(store.balances(&merchant("bolt")).await.unwrap(), []);
    for name in ["acme", "bolt"] {
        let next = limited(with_amount(withdrawal(name, "next"), 100), Some(1), None);
        assert_eq!(create_outcome(&*store, next).await, CreateOutcome::AsDrafted, "nothing was counted for {name}");
    }
    audited(&*store).await;
}

pub(in crate::store) async fn exactly_what_is_covered_is_withdrawn(backend: &dyn TestBackend) {
    let store = backend.open().await;
    credit(&*store, "acme", 1049).await;
    let draft = |number| enforced(with_amount(withdrawal("acme", &format!("w{number}")), 100));
    let covered = count_outcomes(&store, (0..100).map(draft).collect(), CreateOutcome::AsDrafted).await;
    assert_eq!(covered, 10);
    assert_balance(&*store, "acme", 49, 1000).await;
    assert_eq!(
        create_outcome(&*store, enforced(with_amount(withdrawal("acme", "exact"), 49))).await,
        CreateOutcome::AsDrafted
    );
    let draft = enforced(with_amount(withdrawal("acme", "one more"), 1));
    let (id, at) = (draft.operation.id, draft.operation.created_at);
    assert_eq!(create_outcome(&*store, draft).await, CreateOutcome::NotCovered);
    let state = store.by_id(id).await.unwrap().unwrap().operation.state;
    assert_eq!(state, State::Finished { outcome: Outcome::Failed, at });
    assert_eq!(
        store.complete(id, Outcome::Failed, ResultSource::PROVIDER, later(1)).await.unwrap(),
        CompletionOutcome::AlreadyCompleted
    );
    let contradicted = store.complete(id, success(), ResultSource::PROVIDER, later(1)).await.unwrap();
    assert_eq!(contradicted, CompletionOutcome::Contradicts(Status::Failed));
    assert_balance(&*store, "acme", 0, 1049).await;
    // Balances in another currency or of another merchant do not count; deposits need no balance.
    let mut dollars = enforced(with_amount(withdrawal("acme", "dollars"), 1));
    dollars.operation.currency = Currency::new("USD").unwrap();
    assert_eq!(create_outcome(&*store, dollars).await, CreateOutcome::NotCovered);
    assert_eq!(
        create_outcome(&*store, enforced(with_amount(withdrawal("bolt", "other"), 1))).await,
        CreateOutcome::NotCovered
    );
    assert_eq!(
        create_outcome(&*store, enforced(with_amount(deposit("bolt", "deposit"), 1))).await,
        CreateOutcome::AsDrafted
    );
    audited(&*store).await;
}

pub(in crate::store) async fn an_uncovered_withdrawal_changes_no_balance(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut draft = limited(enforced(with_amount(withdrawal("acme", "w"), 100)), Some(1), None);
    draft.provider_job = Some(NOW);
    let id = draft.operation.id;
    assert_eq!(create_outcome(&*store, draft).await, CreateOutcome::NotCovered);
    assert_eq!(store.provider_queues().await.unwrap(), []);
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), []);
    let reported = reported(&*store).await;
    let reported: Vec<_> = reported.iter().map(|callback| (callback.id.subject(), callback.due)).collect();
    assert_eq!(reported, [(CallbackSubject::Operation(id), NOW)]);
    let next = limited(with_amount(withdrawal("acme", "next"), 100), Some(1), None);
    assert_eq!(create_outcome(&*store, next).await, CreateOutcome::AsDrafted, "it did not count");
    audited(&*store).await;
}

pub(in crate::store) async fn a_ledger_is_opened_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |number| opening(with_amount(deposit("acme", &format!("d{number}")), 1), &[("EUR", 1000), ("USD", 50)]);
    count_outcomes(&store, (0..50).map(draft).collect(), CreateOutcome::AsDrafted).await;
    let expected = [
        (eur(), Balance { available: 1000, held: 0 }),
        (Currency::new("USD").unwrap(), Balance { available: 50, held: 0 }),
    ];
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), expected);
    store.close().await.unwrap();
    let store = backend.open().await;
    created(&*store, opening(with_amount(deposit("acme", "later"), 1), &[("EUR", 7), ("GBP", 7)])).await;
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), expected);
    // The opening already covers the first withdrawal, up to the opened amount.
    let first = |name, amount| enforced(opening(with_amount(withdrawal(name, "w"), amount), &[("EUR", 100)]));
    assert_eq!(create_outcome(&*store, first("bolt", 100)).await, CreateOutcome::AsDrafted);
    assert_balance(&*store, "bolt", 0, 100).await;
    assert_eq!(create_outcome(&*store, first("cosy", 101)).await, CreateOutcome::NotCovered);
    assert_balance(&*store, "cosy", 100, 0).await;
    audited(&*store).await;
}

pub(in crate::store) async fn a_later_operation_opens_nothing(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, with_amount(withdrawal("acme", "before"), 30)).await;
    created(&*store, opening(with_amount(deposit("acme", "after"), 1), &[("EUR", 1000), ("USD", 50)])).await;
    assert_balance(&*store, "acme", -30, 30).await;
    // The first operation counts even without ledger entries.
    created(&*store, finished(with_amount(withdrawal("bolt", "before"), 30), Outcome::Failed)).await;
    created(&*store, opening(finished(with_amount(deposit("bolt", "after"), 1), Outcome::Failed), &[("EUR", 1000)]))
        .await;
    assert_eq!(store.balances(&merchant("bolt")).await.unwrap(), []);
    audited(&*store).await;
}

pub(in crate::store) async fn a_ledger_is_opened_without_an_operation(backend: &dyn TestBackend) {
    let store = backend.open().await;
    store.open_ledger(&merchant("acme"), balances_of(&[("USD", 50), ("EUR", 1000)]), NOW).await.unwrap();
    let expected = [
        (eur(), Balance { available: 1000, held: 0 }),
        (Currency::new("USD").unwrap(), Balance { available: 50, held: 0 }),
    ];
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), expected);
    let audit = audited(&*store).await;
    assert_eq!((audit.operations, audit.entries), (0, 4));
    // The ledger is not opened again by a balance request, an operation or another process.
    store.open_ledger(&merchant("acme"), balances_of(&[("EUR", 7), ("GBP", 7)]), later(1)).await.unwrap();
    store.close().await.unwrap();
    let store = backend.open().await;
    store.open_ledger(&merchant("acme"), balances_of(&[("EUR", 7)]), later(2)).await.unwrap();
    created(&*store, opening(with_amount(deposit("acme", "d"), 1), &[("EUR", 7)])).await;
    assert_eq!(store.balances(&merchant("acme")).await.unwrap(), expected);
    // The opening covers withdrawals up to its amount.
    let draft = |text, amount| enforced(opening(with_amount(withdrawal("acme", text), amount), &[("EUR", 7)]));
    assert_eq!(create_outcome(&*store, draft("over", 1001)).await, CreateOutcome::NotCovered);
    assert_eq!(create_outcome(&*store, draft("all", 1000)).await, CreateOutcome::AsDrafted);
    // A merchant with operations is known: nothing is opened.
    created(&*store, with_amount(withdrawal("bolt", "before"), 30)).await;
    store.open_ledger(&merchant("bolt"), balances_of(&[("EUR", 1000)]), NOW).await.unwrap();
    assert_balance(&*store, "bolt", -30, 30).await;
    audited(&*store).await;
}

pub(in crate::store) async fn a_ledger_is_opened_by_a_balance_request_or_an_operation(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let names: Vec<String> = (0..8).map(|number| format!("m{number}")).collect();
    let tasks: Vec<_> = (0..64)
        .map(|number: usize| {
            let (store, name) = (Arc::clone(&store), names[number % names.len()].clone());
            tokio::spawn(async move {
                if (number / 8).is_multiple_of(2) {
                    store.open_ledger(&merchant(&name), balances_of(&[("EUR", 1000)]), NOW).await.unwrap();
                    let balance = store.balances(&merchant(&name)).await.unwrap()[0].1;
                    assert_eq!(balance.available + balance.held, 1000, "it was opened before the balance is read");
                } else {
                    let draft = with_amount(withdrawal(&name, &format!("w{number}")), 100);
                    create_outcome(&*store, enforced(opening(draft, &[("EUR", 1000)]))).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for name in &names {
        assert_balance(&*store, name, 600, 400).await;
    }
    audited(&*store).await;
}

pub(in crate::store) async fn daily_limits_hold_under_concurrency(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |number| limited(with_amount(deposit("acme", &format!("n{number}")), 1), Some(7), None);
    assert_eq!(count_outcomes(&store, (0..60).map(draft).collect(), CreateOutcome::AsDrafted).await, 7);
    let draft = |number| limited(with_amount(withdrawal("acme", &format!("a{number}")), 30), None, Some(100));
    assert_eq!(count_outcomes(&store, (0..60).map(draft).collect(), CreateOutcome::AsDrafted).await, 3);
    assert_eq!(
        create_outcome(&*store, limited(with_amount(withdrawal("acme", "exact"), 10), None, Some(100))).await,
        CreateOutcome::AsDrafted,
        "up to the limit"
    );
    let over = limited(with_amount(withdrawal("acme", "over"), 1), None, Some(100));
    let (id, at) = (over.operation.id, over.operation.created_at);
    assert_eq!(create_outcome(&*store, over).await, CreateOutcome::OverDailyLimit);
    let state = store.by_id(id).await.unwrap().unwrap().operation.state;
    assert_eq!(state, State::Finished { outcome: Outcome::Failed, at });
    assert_balance(&*store, "acme", -100, 100).await;
    audited(&*store).await;
}

pub(in crate::store) async fn daily_limits_are_scoped_by_customer_shop_direction_and_day(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |name: &str, text: &str| limited(deposit(name, text), Some(1), None);
    assert_eq!(create_outcome(&*store, draft("acme", "first")).await, CreateOutcome::AsDrafted);
    let mut others: Vec<_> = ["shop", "customer", "day"].map(|text| draft("acme", text)).into();
    others[0].operation.shop = ShopCode::new("other").unwrap();
    others[1].operation.customer_account_id = Some(CustomerAccountId(-1));
    others[2].daily_limit = Some(DailyLimit { day: UnixDay(DAY.0 + 1), operations: Some(1), amount: None });
    others.push(limited(withdrawal("acme", "direction"), Some(1), None));
    others.push(draft("bolt", "merchant"));
    for other in others {
        let text = other.operation.order_id.clone();
        assert_eq!(create_outcome(&*store, other).await, CreateOutcome::AsDrafted, "another {}", text.as_str());
    }
    assert_eq!(create_outcome(&*store, draft("acme", "second")).await, CreateOutcome::OverDailyLimit);
    let mut anonymous = draft("acme", "anonymous");
    anonymous.operation.customer_account_id = None;
    assert_eq!(create_outcome(&*store, anonymous).await, CreateOutcome::AsDrafted, "without a customer nothing counts");
    let failed = limited(finished(deposit("cosy", "failed"), Outcome::Failed), Some(1), None);
    assert_eq!(create_outcome(&*store, failed).await, CreateOutcome::AsDrafted);
    assert_eq!(
        create_outcome(&*store, draft("cosy", "after")).await,
        CreateOutcome::AsDrafted,
        "an operation created FAILED does not count"
    );
}

pub(in crate::store) async fn a_failure_gives_the_daily_usage_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |text: &str| limited(with_amount(withdrawal("acme", text), 60), Some(2), Some(120));
    let first = draft("first");
    let first_id = first.operation.id;
    let second = draft("second");
    let second_id = second.operation.id;
    assert_eq!(create_outcome(&*store, first).await, CreateOutcome::AsDrafted);
    assert_eq!(create_outcome(&*store, second).await, CreateOutcome::AsDrafted);
    assert_eq!(create_outcome(&*store, draft("over")).await, CreateOutcome::OverDailyLimit);
    for outcome in [Outcome::Failed, Outcome::Failed, success()] {
        store.complete(first_id, outcome, ResultSource::PROVIDER, later(1)).await.unwrap();
    }
    store.complete(second_id, success(), ResultSource::PROVIDER, later(1)).await.unwrap();
    store.close().await.unwrap();
    let store = backend.open().await;
    assert_eq!(create_outcome(&*store, draft("third")).await, CreateOutcome::AsDrafted, "given back");
    assert_eq!(
        create_outcome(&*store, draft("fourth")).await,
        CreateOutcome::OverDailyLimit,
        "given back once; a success still counts"
    );
    audited(&*store).await;
}

pub(in crate::store) async fn usage_is_counted_by_day(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |day: i32, text: String| {
        let mut draft = limited(deposit("acme", &text), Some(1), None);
        draft.daily_limit = Some(DailyLimit { day: UnixDay(day), operations: Some(1), amount: None });
        draft
    };
    let mut first = None;
    for day in 0..40 {
        let new = draft(day, format!("{day}"));
        first.get_or_insert(new.operation.id);
        assert_eq!(create_outcome(&*store, new).await, CreateOutcome::AsDrafted);
        assert_eq!(create_outcome(&*store, draft(day, format!("{day} again"))).await, CreateOutcome::OverDailyLimit);
    }
    assert_eq!(
        store.complete(first.unwrap(), Outcome::Failed, ResultSource::PROVIDER, later(1)).await.unwrap(),
        CompletionOutcome::Completed
    );
    assert_eq!(create_outcome(&*store, draft(39, "39 still".into())).await, CreateOutcome::OverDailyLimit);
}

pub(in crate::store) async fn every_result_with_an_address_has_one_callback(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let relayed_to = |address: Option<&str>| {
        let callback_url = address.map(|url| CallbackUrl::new_allowing_http(url).unwrap());
        Some(CallbackSender::Relayed(callback_url))
    };
    let mut relayed = deposit("acme", "relayed");
    relayed.v1 = relayed_to(Some("http://acme.example/v1"));
    let mut silent = deposit("acme", "silent");
    silent.v1 = relayed_to(None);
    let mut silent_at_once = finished(withdrawal("acme", "silent at once"), Outcome::Failed);
    silent_at_once.v1 = relayed_to(None);
    let native = created(&*store, deposit("acme", "native")).await;
    let (relayed, silent) = (created(&*store, relayed).await, created(&*store, silent).await);
    created(&*store, silent_at_once).await;
    created(&*store, deposit("acme", "pending")).await;
    let at_once = created(&*store, finished(deposit("acme", "at once"), Outcome::Failed)).await;
    for id in [native, relayed, silent] {
        store.complete(id, success(), ResultSource::PROVIDER, later(5)).await.unwrap();
        store.complete(id, success(), ResultSource::PROVIDER, later(6)).await.unwrap();
        store.complete(id, Outcome::Failed, ResultSource::PROVIDER, later(7)).await.unwrap();
    }
    let reported = reported(&*store).await;
    let mut expected = [(native, later(5)), (relayed, later(5)), (at_once, NOW)];
    expected.sort_by_key(|(id, _)| id.to_stored());
    let expected = expected.map(|(id, due)| (CallbackSubject::Operation(id), due));
    assert_eq!(reported.iter().map(|callback| (callback.id.subject(), callback.due)).collect::<Vec<_>>(), expected);
    let names: std::collections::HashSet<_> = reported.iter().map(|callback| callback.id.nonce()).collect();
    assert_eq!(names.len(), 3, "every callback has its own random number");
    audited(&*store).await;
}

pub(in crate::store) async fn a_hold_out_of_range_is_not_posted(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let draft = |number: i32| with_amount(withdrawal("acme", &number.to_string()), Amount::MAX_HUNDREDTHS);
    let most = i64::MAX / i64::try_from(Amount::MAX_HUNDREDTHS).unwrap();
    let share = |share: i64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in (share..most).step_by(64) {
                created(&*store, draft(number.try_into().unwrap())).await;
            }
        })
    };
    for task in (0..64).map(share).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(
        create_outcome(&*store, draft(-1)).await,
        CreateOutcome::NotCovered,
        "even if the balance is not enforced"
    );
    let held = most * i64::try_from(Amount::MAX_HUNDREDTHS).unwrap();
    assert_balance(&*store, "acme", -held, held).await;
    created(&*store, with_amount(withdrawal("acme", "small"), 1)).await;
    assert_balance(&*store, "acme", -held - 1, held + 1).await;
    audited(&*store).await;
}
