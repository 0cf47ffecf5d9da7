//! The journal of a gateway in front of a remote engine.

use std::collections::HashSet;

use super::*;
use crate::domain::{Direction, HistoryQuery, MemberFingerprints, Status};
use crate::store::{
    EngineAnswer, EntryId, EntryProgress, JournalEntry, JournalOutcome, NotKept, OrderHome, OrderLookup, PendingCreate,
    RemoteOperation, Reservations, StatusUpdate, StoreError,
};

const BODY: &str = r#"{"order_id":"o","amount":10.50,"account_number":"4929420573595709"}"#;

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

/// A payin without optional members.
pub(in crate::store) fn pending_create(merchant_name: &str, order_text: &str) -> PendingCreate {
    PendingCreate {
        merchant: merchant(merchant_name),
        direction: Direction::Payin,
        order_id: order(order_text),
        api_key: "acme-live".into(),
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        shop: None,
        fingerprint: Fingerprint([7; 16]),
        v1_members: MemberFingerprints::default(),
        callback_url: None,
        body: BODY.as_bytes().into(),
        created_at: NOW,
    }
}

/// A payout with all optional members.
fn full_pending_create(merchant_name: &str, order_text: &str) -> PendingCreate {
    let callback_url = CallbackUrl::new_allowing_http("http://acme.example/v1?x=1").unwrap();
    PendingCreate {
        direction: Direction::Payout,
        amount: Amount::from_hundredths(Amount::MAX_HUNDREDTHS).unwrap(),
        shop: Some("no such shop \u{e9}".into()),
        fingerprint: Fingerprint([0xfe; 16]),
        v1_members: MemberFingerprints::default(),
        callback_url: Some(callback_url),
        created_at: at(1),
        ..pending_create(merchant_name, order_text)
    }
}

pub(in crate::store) const DOUBTED_AT: UnixMillis = UnixMillis(NOW.0 + 7);

/// A status update that sets no unknown shop.
pub(in crate::store) fn status_update(status: Status, account: Option<AccountNumber>) -> StatusUpdate {
    StatusUpdate { status, account, shop: Box::default() }
}

pub(in crate::store) fn engine_answer(number: u64) -> EngineAnswer {
    EngineAnswer { transaction_id: number.to_string().into(), redirect_url: None }
}

fn with_link(number: u64) -> EngineAnswer {
    let link = RedirectUrl::new(format!("https://v2.example/pay/{number}?signature=ab"));
    EngineAnswer { redirect_url: Some(link), ..engine_answer(number) }
}

/// The expected form of an entry after its answer.
fn answered(entry: &JournalEntry, answer: EngineAnswer) -> JournalEntry {
    let passed = RemoteOperation { answer, status: Status::Pending, account: None };
    JournalEntry { id: entry.id, create: entry.create.clone(), progress: EntryProgress::Answered(passed) }
}

/// Records a create, which must be new.
pub(in crate::store) async fn journaled(store: &dyn Store, create: PendingCreate) -> JournalEntry {
    let outcome = store.record_create(create.clone()).await.unwrap();
    let JournalOutcome::Written(id) = outcome else { panic!("it is new: {outcome:?}") };
    JournalEntry { id, create, progress: EntryProgress::Open }
}

/// Records an entry in each state, and returns the open one, which has this `order_id`; the others are named by their states.
/// The account of the answered one was received.
pub(in crate::store) async fn journaled_in_each_state(store: &dyn Store, open: &str) -> JournalEntry {
    let open = journaled(store, pending_create("acme", open)).await;
    let doubted = journaled(store, pending_create("acme", "doubted")).await;
    store.mark_unknown(doubted.id, DOUBTED_AT).await.unwrap();
    let answered = journaled(store, pending_create("acme", "answered")).await;
    let answered = store.answer(answered, engine_answer(1)).await.unwrap().unwrap();
    let account = Some(AccountNumber::new(PAYER).unwrap());
    store.update_status(answered.id, status_update(Status::Pending, account)).await.unwrap();
    open
}

/// Records a create, which must be new, and its answer.
async fn recorded_with_answer(store: &dyn Store, create: PendingCreate, answer: EngineAnswer) -> JournalEntry {
    let entry = journaled(store, create).await;
    let expected = answered(&entry, answer.clone());
    let stored = store.answer(entry, answer).await.unwrap().unwrap();
    assert_eq!(stored, expected);
    stored
}

async fn found(store: &dyn Store, create: &PendingCreate) -> Option<JournalEntry> {
    let entry = store.entry(&create.merchant, create.direction, &create.order_id).await.unwrap();
    let home = store.order_home(&create.merchant, create.direction, &create.order_id).await.unwrap();
    assert_eq!(home == Some(OrderHome::Entry), entry.is_some());
    entry
}

async fn open_ids(store: &dyn Store) -> Vec<EntryId> {
    store.open_entries(None, 1000).await.unwrap().iter().map(|entry| entry.id).collect()
}

async fn listed(store: &dyn Store, query: HistoryQuery) -> (Vec<EntryId>, bool) {
    let page = store.passed(query).await.unwrap();
    (page.items.iter().map(|entry| entry.id).collect(), page.has_more)
}

pub(in crate::store) async fn every_member_of_an_entry_comes_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut expected = Vec::new();
    for (round, make) in [(0, pending_create as fn(&str, &str) -> PendingCreate), (10, full_pending_create)] {
        expected.push(journaled(&*store, make("acme", "open")).await);
        let mut doubted = journaled(&*store, make("acme", "doubted")).await;
        store.mark_unknown(doubted.id, DOUBTED_AT).await.unwrap();
        doubted.progress = EntryProgress::InDoubt { since: DOUBTED_AT };
        expected.push(doubted);
        expected.push(recorded_with_answer(&*store, make("acme", "answered"), engine_answer(round + 1)).await);
        expected.push(recorded_with_answer(&*store, make("acme", "with a link"), with_link(u64::MAX - round)).await);
        let mut last =
            recorded_with_answer(&*store, make("acme", &"\u{e9}".repeat(255)), engine_answer(round + 2)).await;
        let account = Some(AccountNumber::new("411111******1111").unwrap());
        store.update_status(last.id, status_update(Status::Success, account.clone())).await.unwrap();
        let last_received = RemoteOperation { answer: engine_answer(round + 2), status: Status::Success, account };
        last.progress = EntryProgress::Answered(last_received);
        expected.push(last);
    }
    let mut empty = pending_create("acme", "an empty body");
    empty.body = Box::default();
    expected.push(journaled(&*store, empty).await);
    for reopened in [false, true] {
        let store = if reopened {
            store.close().await.unwrap();
            backend.open().await
        } else {
            Arc::clone(&store)
        };
        for entry in &expected {
            assert_eq!(found(&*store, &entry.create).await.as_ref(), Some(entry));
        }
        let open: Vec<_> = expected.iter().filter(|entry| entry.progress == EntryProgress::Open).cloned().collect();
        assert_eq!(store.open_entries(None, 1000).await.unwrap(), open);
        assert_eq!(store.passed(first_page("acme")).await.unwrap().items.len(), 6);
        assert_eq!(audited(&*store).await.journal, expected.len() as u64);
        store.close().await.unwrap();
    }
}

pub(in crate::store) async fn an_order_has_one_entry(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut entry = journaled(&*store, pending_create("acme", "order")).await;
    let mut other = full_pending_create("acme", "order");
    other.direction = Direction::Payin;
    let assert_existing = async |expected: &JournalEntry| {
        let outcome = store.record_create(other.clone()).await.unwrap();
        assert_eq!(outcome, JournalOutcome::Existing(Box::new(expected.clone())));
        assert_eq!(found(&*store, &other).await.as_ref(), Some(expected));
    };
    assert_existing(&entry).await;
    store.mark_unknown(entry.id, DOUBTED_AT).await.unwrap();
    entry.progress = EntryProgress::InDoubt { since: DOUBTED_AT };
    assert_existing(&entry).await;
    let answered = store.answer(entry, engine_answer(1)).await.unwrap().unwrap();
    assert_existing(&answered).await;
    assert_eq!(audited(&*store).await.journal, 1);
}

pub(in crate::store) async fn one_of_many_concurrent_entries_is_written(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..5 {
        let text = format!("race {round}");
        let tasks: Vec<_> = (0..100_u8)
            .map(|number| {
                let (store, mut create) = (Arc::clone(&store), pending_create("acme", &text));
                create.fingerprint = Fingerprint([number; 16]);
                tokio::spawn(async move { (create.clone(), store.record_create(create).await.unwrap()) })
            })
            .collect();
        let (mut winners, mut seen) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.await.unwrap() {
                (create, JournalOutcome::Written(id)) => {
                    winners.push(JournalEntry { id, create, progress: EntryProgress::Open });
                }
                (_, JournalOutcome::Existing(entry)) => seen.push(*entry),
                (_, JournalOutcome::Reserved | JournalOutcome::Lost | JournalOutcome::Native) => {
                    panic!("nothing is reserved")
                }
            }
        }
        assert_eq!((winners.len(), seen.len()), (1, 99));
        assert!(seen.iter().all(|entry| *entry == winners[0]), "every caller gets the winner");
    }
    assert_eq!(open_ids(&*store).await.len(), 5);
}

pub(in crate::store) async fn entries_are_scoped_by_merchant_and_direction(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut entries = Vec::new();
    for (number, new) in [
        pending_create("acme", "same"),
        full_pending_create("acme", "same"),
        pending_create("bolt", "same"),
        pending_create("acme", "Same"),
    ]
    .into_iter()
    .enumerate()
    {
        entries.push(recorded_with_answer(&*store, new, engine_answer(number as u64)).await);
    }
    for entry in &entries {
        assert_eq!(found(&*store, &entry.create).await.as_ref(), Some(entry));
    }
    assert_eq!(found(&*store, &pending_create("bolt", "Same")).await, None);
    assert_eq!(found(&*store, &full_pending_create("bolt", "same")).await, None);
    let ids = |places: &[usize]| places.iter().map(|place| entries[*place].id).collect::<Vec<_>>();
    assert_eq!(listed(&*store, first_page("acme")).await, (ids(&[1, 3, 0]), false));
    assert_eq!(listed(&*store, first_page("bolt")).await, (ids(&[2]), false));
    assert_eq!(listed(&*store, first_page("cosy")).await, (Vec::new(), false));
}

pub(in crate::store) async fn reserved_orders_get_no_entry(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let there = journaled(&*store, pending_create("acme", "there")).await;
    let reservations = store.reserve(&acme, Direction::Payin, &[order("there"), order("new")], NOW).await.unwrap();
    assert_eq!(reservations, Reservations { new: 1, known: 0, operations: 1 });
    let lost = ["there", "lost"].map(|text| (acme.clone(), Direction::Payin, order(text)));
    assert_eq!(store.lose(&lost, NOW).await.unwrap(), Reservations { new: 1, known: 0, operations: 1 });
    for (text, outcome) in [("new", JournalOutcome::Reserved), ("lost", JournalOutcome::Lost)] {
        assert_eq!(store.record_create(pending_create("acme", text)).await.unwrap(), outcome);
        assert_eq!(found(&*store, &pending_create("acme", text)).await, None);
    }
    created(&*store, deposit("acme", "operation")).await;
    for (name, order_id, direction, home) in [
        ("acme", "new", Direction::Payin, Some(OrderHome::Legacy)),
        ("acme", "lost", Direction::Payin, Some(OrderHome::Lost)),
        ("acme", "new", Direction::Payout, None),
        ("bolt", "new", Direction::Payin, None),
        ("acme", "there", Direction::Payin, Some(OrderHome::Entry)),
        ("acme", "operation", Direction::Payin, Some(OrderHome::Operation)),
    ] {
        assert_eq!(
            store.order_home(&merchant(name), direction, &order(order_id)).await.unwrap(),
            home,
            "{name} {order_id}"
        );
    }
    assert_eq!(open_ids(&*store).await, [there.id]);
    journaled(&*store, full_pending_create("acme", "new")).await;
    journaled(&*store, pending_create("bolt", "new")).await;
    audited(&*store).await;
}

pub(in crate::store) async fn the_first_answer_is_kept(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, pending_create("acme", "order")).await;
    let first = store.answer(entry.clone(), with_link(1)).await.unwrap().unwrap();
    assert_eq!(first, answered(&entry, with_link(1)));
    store.update_status(entry.id, status_update(Status::Failed, None)).await.unwrap();
    let stored = store.answer(entry, engine_answer(2)).await.unwrap().unwrap();
    let received = RemoteOperation { answer: with_link(1), status: Status::Failed, account: None };
    assert_eq!(stored, JournalEntry { progress: EntryProgress::Answered(received), ..first });

    let doubted = journaled(&*store, pending_create("acme", "in doubt")).await;
    store.mark_unknown(doubted.id, DOUBTED_AT).await.unwrap();
    assert_eq!(
        store.answer(doubted.clone(), engine_answer(3)).await.unwrap().unwrap(),
        answered(&doubted, engine_answer(3))
    );

    let raced = journaled(&*store, pending_create("acme", "raced")).await;
    let racers: Vec<_> = (10..60)
        .map(|number| {
            let (store, entry) = (Arc::clone(&store), raced.clone());
            tokio::spawn(async move { store.answer(entry, engine_answer(number)).await.unwrap().unwrap() })
        })
        .collect();
    let mut confirmed = HashSet::new();
    for racer in racers {
        let EntryProgress::Answered(passed) = racer.await.unwrap().progress else { panic!("it was answered") };
        confirmed.insert(passed.answer.transaction_id);
    }
    assert_eq!(confirmed.len(), 1, "every caller gets the same answer");
    assert_eq!(audited(&*store).await.journal, 3);
}

pub(in crate::store) async fn an_answer_restores_a_cancelled_entry(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let late = journaled(&*store, full_pending_create("acme", "withdrawn")).await;
    store.cancel(late.id, None).await.unwrap();
    assert_eq!(found(&*store, &late.create).await, None);
    let stored = store.answer(late.clone(), with_link(1)).await.unwrap().unwrap();
    let expected = answered(&JournalEntry { id: stored.id, ..late.clone() }, with_link(1));
    assert_eq!(stored, expected);
    assert_eq!(found(&*store, &late.create).await, Some(expected));
    assert_eq!(listed(&*store, first_page("acme")).await, (vec![stored.id], false));
    audited(&*store).await;
}

pub(in crate::store) async fn a_late_answer_does_not_replace_another_entry(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    for (number, doubted) in [(1, false), (3, true)] {
        let text = format!("doubted {doubted}");
        let late = journaled(&*store, pending_create("acme", &text)).await;
        store.cancel(late.id, None).await.unwrap();
        let mut corrected = pending_create("acme", &text);
        corrected.amount = Amount::from_hundredths(7).unwrap();
        let mut newer = journaled(&*store, corrected).await;
        if doubted {
            store.mark_unknown(newer.id, DOUBTED_AT).await.unwrap();
            newer.progress = EntryProgress::InDoubt { since: DOUBTED_AT };
        }
        assert_eq!(store.answer(late.clone(), engine_answer(number)).await.unwrap(), Err(NotKept::Late));
        assert_eq!(found(&*store, &late.create).await.as_ref(), Some(&newer));
        let stored = store.answer(newer, engine_answer(number + 1)).await.unwrap().unwrap();
        assert_eq!(
            store.answer(late, engine_answer(number)).await.unwrap().unwrap(),
            stored,
            "the first answer is kept"
        );
        assert_eq!(found(&*store, &stored.create).await, Some(stored));
    }
    let late = journaled(&*store, pending_create("acme", "reserved")).await;
    store.cancel(late.id, None).await.unwrap();
    assert_eq!(store.reserve(&acme, Direction::Payin, &[order("reserved")], NOW).await.unwrap().new, 1);
    assert_eq!(store.answer(late.clone(), engine_answer(5)).await.unwrap(), Err(NotKept::Late));
    assert_eq!(found(&*store, &late.create).await, None);
    assert_eq!(store.by_order(&acme, Direction::Payin, &order("reserved")).await.unwrap(), OrderLookup::Reserved);
    assert_eq!(open_ids(&*store).await, []);
    assert_eq!(audited(&*store).await.journal, 2);
}

pub(in crate::store) async fn an_answer_is_never_lost_in_a_race(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..30 {
        let text = format!("race {round}");
        let late = journaled(&*store, pending_create("acme", &text)).await;
        let answering = Arc::clone(&store);
        let entry = late.clone();
        let answer = tokio::spawn(async move { answering.answer(entry, engine_answer(round)).await.unwrap() });
        let (withdrawing, again) = (Arc::clone(&store), pending_create("acme", &text));
        let rival = tokio::spawn(async move {
            withdrawing.cancel(late.id, None).await.unwrap();
            withdrawing.record_create(again).await.unwrap()
        });
        let (kept, rival) = (answer.await.unwrap(), rival.await.unwrap());
        let current = found(&*store, &pending_create("acme", &text)).await.unwrap();
        match (kept, rival) {
            (Ok(stored), JournalOutcome::Existing(_)) => {
                let EntryProgress::Answered(passed) = &stored.progress else { panic!("{stored:?}") };
                assert_eq!(passed.answer, engine_answer(round));
                assert_eq!(current, stored);
            }
            (Err(NotKept::Late), JournalOutcome::Written(id)) => {
                assert_eq!((current.id, current.progress), (id, EntryProgress::Open));
            }
            both => panic!("{both:?}"),
        }
    }
    assert_eq!(audited(&*store).await.journal, 30);
}

pub(in crate::store) async fn transitions_from_other_states_change_nothing(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let open = journaled(&*store, pending_create("acme", "open")).await;
    let mut doubted = journaled(&*store, pending_create("acme", "doubted")).await;
    store.mark_unknown(doubted.id, DOUBTED_AT).await.unwrap();
    doubted.progress = EntryProgress::InDoubt { since: DOUBTED_AT };
    let answered = recorded_with_answer(&*store, pending_create("acme", "answered"), engine_answer(1)).await;
    let unknown = EntryId(i64::MAX);

    let account = || Some(AccountNumber::new(PAYER).unwrap());
    for id in [open.id, doubted.id, unknown] {
        store.update_status(id, status_update(Status::Success, account())).await.unwrap();
    }
    for id in [doubted.id, answered.id, unknown] {
        store.mark_unknown(id, DOUBTED_AT).await.unwrap();
    }
    for id in [answered.id, unknown] {
        store.cancel(id, None).await.unwrap();
    }
    for entry in [&open, &doubted, &answered] {
        assert_eq!(found(&*store, &entry.create).await.as_ref(), Some(entry));
    }
    assert_eq!(open_ids(&*store).await, [open.id], "an entry in doubt is not open");
    assert!(!store.cancel(doubted.id, None).await.unwrap(), "since has changed");
    assert!(store.cancel(doubted.id, Some(DOUBTED_AT)).await.unwrap());
    assert_eq!(found(&*store, &doubted.create).await, None);
    let again = journaled(&*store, doubted.create).await;
    assert_eq!(open_ids(&*store).await, [open.id, again.id]);
    assert_eq!(audited(&*store).await.journal, 3);
}

pub(in crate::store) async fn a_transaction_id_belongs_to_one_order(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let first = recorded_with_answer(&*store, pending_create("acme", "first"), engine_answer(1)).await;
    for other in
        [pending_create("acme", "second"), pending_create("bolt", "first"), full_pending_create("acme", "first")]
    {
        let entry = journaled(&*store, other).await;
        assert_eq!(store.answer(entry.clone(), engine_answer(1)).await.unwrap(), Err(NotKept::OtherOrder));
        assert_eq!(found(&*store, &entry.create).await, Some(entry), "it has no answer yet");
    }
    let cancelled = journaled(&*store, pending_create("acme", "withdrawn")).await;
    store.cancel(cancelled.id, None).await.unwrap();
    assert_eq!(store.answer(cancelled.clone(), engine_answer(1)).await.unwrap(), Err(NotKept::OtherOrder));
    assert_eq!(found(&*store, &cancelled.create).await, None);
    assert_eq!(found(&*store, &first.create).await, Some(first));
    audited(&*store).await;
}

pub(in crate::store) async fn an_entry_in_doubt_keeps_the_latest_time(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, pending_create("acme", "order")).await;
    for (time, latest) in [(5, 5), (3, 5), (9, 9)] {
        store.mark_unknown(entry.id, at(time)).await.unwrap();
        let progress = found(&*store, &entry.create).await.unwrap().progress;
        assert_eq!(progress, EntryProgress::InDoubt { since: at(latest) });
    }
    store.answer(entry.clone(), engine_answer(1)).await.unwrap().unwrap();
    assert_eq!(found(&*store, &entry.create).await, Some(answered(&entry, engine_answer(1))));
    audited(&*store).await;
}

pub(in crate::store) async fn an_entry_sent_again_is_not_cancelled(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, pending_create("acme", "order")).await;
    store.sent_again(entry.id, at(3)).await.unwrap();
    assert!(!store.cancel(entry.id, None).await.unwrap());
    assert_eq!(found(&*store, &entry.create).await, Some(entry.clone()), "it is still open");
    store.mark_unknown(entry.id, at(5)).await.unwrap();
    assert!(!store.cancel(entry.id, Some(at(3))).await.unwrap());
    store.sent_again(entry.id, at(9)).await.unwrap();
    assert!(store.cancel(entry.id, Some(at(5))).await.unwrap(), "sent_again changes open entries only");
    assert_eq!(found(&*store, &entry.create).await, None);
    audited(&*store).await;
}

pub(in crate::store) async fn an_unknown_shop_is_set_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let stated = |shop: &str| StatusUpdate { status: Status::Success, account: None, shop: shop.into() };
    for (new, expected) in
        [(pending_create("acme", "none"), "first"), (full_pending_create("acme", "own"), "no such shop \u{e9}")]
    {
        let entry = recorded_with_answer(&*store, new, engine_answer(expected.len() as u64)).await;
        for shop in ["first", "second"] {
            store.update_status(entry.id, stated(shop)).await.unwrap();
            let known = found(&*store, &entry.create).await.unwrap().create.shop;
            assert_eq!(known.as_deref(), Some(expected));
        }
    }
    assert_eq!(store.passed(first_page("acme")).await.unwrap().items.len(), 2);
    audited(&*store).await;
}

pub(in crate::store) async fn updates_are_stored_until_the_result(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut entry = recorded_with_answer(&*store, pending_create("acme", "order"), engine_answer(1)).await;
    let account = |text| Some(AccountNumber::new(text).unwrap());
    let steps = [
        // The update, and the stored status and account after it.
        ((Status::Pending, None), (Status::Pending, None)),
        ((Status::Pending, account("411111******1111")), (Status::Pending, account("411111******1111"))),
        ((Status::Pending, None), (Status::Pending, account("411111******1111"))),
        ((Status::Pending, account("DE89")), (Status::Pending, account("DE89"))),
        ((Status::Success, None), (Status::Success, account("DE89"))),
        ((Status::Failed, None), (Status::Success, account("DE89"))),
        ((Status::Pending, account("other")), (Status::Success, account("DE89"))),
        ((Status::Success, account("other")), (Status::Success, account("DE89"))),
    ];
    for ((status, account), (known, known_account)) in steps {
        store.update_status(entry.id, status_update(status, account)).await.unwrap();
        let known = RemoteOperation { answer: engine_answer(1), status: known, account: known_account };
        entry.progress = EntryProgress::Answered(known);
        assert_eq!(found(&*store, &entry.create).await.as_ref(), Some(&entry));
    }
    audited(&*store).await;
}

pub(in crate::store) async fn the_first_result_received_is_kept_in_a_race(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..5 {
        let entry =
            recorded_with_answer(&*store, pending_create("acme", &format!("race {round}")), engine_answer(round)).await;
        let received: Vec<_> = (0..40)
            .map(|number| {
                let (store, entry) = (Arc::clone(&store), entry.clone());
                let status = if number % 2 == 0 { Status::Success } else { Status::Failed };
                tokio::spawn(async move {
                    store.update_status(entry.id, status_update(status, None)).await.unwrap();
                    found(&*store, &entry.create).await.unwrap()
                })
            })
            .collect();
        let mut seen = Vec::new();
        for received in received {
            seen.push(received.await.unwrap());
        }
        let EntryProgress::Answered(passed) = &seen[0].progress else { panic!("it was answered") };
        assert_ne!(passed.status, Status::Pending);
        assert!(seen.iter().all(|entry| *entry == seen[0]), "a result never changes");
    }
}

pub(in crate::store) async fn open_entries_come_oldest_first(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.open_entries(None, 10).await.unwrap(), []);
    let mut open = Vec::new();
    for number in 0..7 {
        let entry = journaled(&*store, pending_create("acme", &number.to_string())).await;
        match number {
            1 => store.mark_unknown(entry.id, DOUBTED_AT).await.unwrap(),
            3 => drop(store.answer(entry, engine_answer(3)).await.unwrap().unwrap()),
            5 => assert!(store.cancel(entry.id, None).await.unwrap()),
            _ => open.push(entry),
        }
    }
    assert!(open.is_sorted_by_key(|entry| entry.id), "numbers ascend with time");
    assert_eq!(store.open_entries(None, 2).await.unwrap(), open[..2]);
    assert_eq!(store.open_entries(Some(open[1].id), 2).await.unwrap(), open[2..]);
    assert_eq!(store.open_entries(Some(open[3].id), 2).await.unwrap(), []);
    assert_eq!(store.open_entries(None, 0).await.unwrap(), []);
}

pub(in crate::store) async fn pages_of_answered_entries_are_exact(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let statuses = [Status::Pending, Status::Success, Status::Failed];
    let mut all = Vec::new();
    for number in 0..60_usize {
        let text = number.to_string();
        let mut new =
            if number.is_multiple_of(2) { pending_create("acme", &text) } else { full_pending_create("acme", &text) };
        // Times repeat, and some are earlier than the previous one.
        new.created_at = at(i64::try_from(number / 4).unwrap() - if number == 40 { 5 } else { 0 });
        new.currency = Currency::new(["EUR", "USD", "SEK"][number / 2 % 3]).unwrap();
        new.shop = [None, Some("card-eur".into()), Some("bank-eur".into())][number / 6 % 3].clone();
        let mut entry = recorded_with_answer(&*store, new, engine_answer(number as u64)).await;
        let status = statuses[number / 5 % 3];
        store.update_status(entry.id, status_update(status, None)).await.unwrap();
        let known = RemoteOperation { answer: engine_answer(number as u64), status, account: None };
        entry.progress = EntryProgress::Answered(known);
        all.push((entry, status));
    }
    // Not in the list: open entries, entries in doubt, and entries of other merchants.
    journaled(&*store, pending_create("acme", "open")).await;
    let doubted = journaled(&*store, pending_create("acme", "doubted")).await;
    store.mark_unknown(doubted.id, DOUBTED_AT).await.unwrap();
    recorded_with_answer(&*store, pending_create("bolt", "theirs"), engine_answer(99)).await;

    all.sort_by_key(|(entry, _)| std::cmp::Reverse((entry.create.created_at, entry.id)));
    for wanted in queries() {
        let kept = |(entry, status): &&(JournalEntry, Status)| {
            let create = &entry.create;
            wanted.direction.is_none_or(|direction| create.direction == direction)
                && wanted.status.is_none_or(|wanted| *status == wanted)
                && wanted.shop.as_ref().is_none_or(|shop| create.shop.as_deref() == Some(shop.as_str()))
                && wanted.currency.is_none_or(|currency| create.currency == currency)
                && wanted.created_from.is_none_or(|from| create.created_at >= from)
                && wanted.created_to.is_none_or(|to| create.created_at <= to)
        };
        let matching: Vec<_> = all.iter().filter(kept).map(|(entry, _)| entry.clone()).collect();
        for (skip, limit) in [(0, 200), (0, 7), (7, 7), (3, 1), (58, 2), (60, 5), (1000, 200), (0, 0)] {
            let page = store.passed(HistoryQuery { skip, limit, ..wanted.clone() }).await.unwrap();
            let start = usize::try_from(skip).unwrap().min(matching.len());
            let end = (start + usize::from(limit)).min(matching.len());
            assert_eq!(page.items, matching[start..end], "{wanted:?} {skip} {limit}");
            assert_eq!(page.has_more, end < matching.len(), "{wanted:?} {skip} {limit}");
        }
    }
}

/// Each filter alone, and some combinations.
fn queries() -> Vec<HistoryQuery> {
    let all = first_page("acme");
    let shop = |code| Some(ShopCode::new(code).unwrap());
    let mut queries = vec![all.clone()];
    queries.extend([Direction::Payin, Direction::Payout].map(|it| HistoryQuery { direction: Some(it), ..all.clone() }));
    let statuses = [Status::Pending, Status::Success, Status::Failed];
    queries.extend(statuses.map(|it| HistoryQuery { status: Some(it), ..all.clone() }));
    queries.extend(["card-eur", "none"].map(|it| HistoryQuery { shop: shop(it), ..all.clone() }));
    queries.extend(["USD", "GBP"].map(|it| HistoryQuery { currency: Some(Currency::new(it).unwrap()), ..all.clone() }));
    for (from, to) in [(Some(3), None), (None, Some(9)), (Some(3), Some(9)), (Some(5), Some(5)), (Some(9), Some(3))] {
        let (created_from, created_to) = (from.map(at), to.map(at));
        queries.push(HistoryQuery { created_from, created_to, ..all.clone() });
        queries.push(HistoryQuery { created_from, created_to, status: Some(Status::Pending), ..all.clone() });
    }
    queries.push(HistoryQuery {
        direction: Some(Direction::Payin),
        status: Some(Status::Success),
        shop: shop("card-eur"),
        currency: Some(Currency::new("EUR").unwrap()),
        ..all
    });
    queries
}

pub(in crate::store) async fn a_closed_journal_is_unavailable(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, pending_create("acme", "order")).await;
    let answered = recorded_with_answer(&*store, pending_create("acme", "answered"), engine_answer(1)).await;
    store.close().await.unwrap();
    let closed = [
        store.record_create(pending_create("acme", "new")).await.err(),
        store.entry(&entry.create.merchant, Direction::Payin, &entry.create.order_id).await.err(),
        store.order_home(&entry.create.merchant, Direction::Payin, &entry.create.order_id).await.err(),
        store.answer(entry.clone(), engine_answer(2)).await.err(),
        store.mark_unknown(entry.id, DOUBTED_AT).await.err(),
        store.cancel(entry.id, None).await.err(),
        store.open_entries(None, 1).await.err(),
        store.entry_of_transaction("1").await.err(),
        store.unanswered(1).await.err(),
        store.update_status(answered.id, status_update(Status::Success, None)).await.err(),
        store.passed(first_page("acme")).await.err(),
    ];
    for error in closed {
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
    }
    let store = backend.open().await;
    assert_eq!(open_ids(&*store).await, [entry.id]);
    assert_eq!(found(&*store, &answered.create).await, Some(answered));
}
