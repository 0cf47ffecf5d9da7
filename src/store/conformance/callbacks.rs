//! Lists of callbacks, and resending.

use std::time::Duration;

use fastrand::Rng;

use super::outbox::{
    acme, answered_with, at, claim, claimed, claimed_one, engine, everything, failed, orders, queues, record,
    relayed_create, tries, unanswered, was_notified,
};
use super::*;
use crate::domain::{Direction, FailureCause, Outcome};
use crate::store::{
    CallbackCursor, CallbackId, CallbackNext, CallbackQuery, CallbackRecord, CallbackState, CallbackTarget,
    CallbackTry, OutboxSize, PendingQuery, Relayed, Resent, ResultChange, StoreError, TryOutcome,
};

const STATES: [CallbackState; 3] = [CallbackState::Pending, CallbackState::Delivered, CallbackState::Failed];

pub(in crate::store) async fn callbacks_are_resent_from_every_state(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for text in ["pending", "leased", "delivered", "failed"] {
        created(&*store, failed(text, 0)).await;
    }
    let jobs = claimed(&*store, 0, 100).await;
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    store.callback_tried(jobs[0].lease(), unanswered(1), CallbackNext::RetryAt(at(90_000))).await.unwrap();
    store.callback_tried(jobs[2].lease(), answered_with(200, 2), CallbackNext::Delivered).await.unwrap();
    store.callback_tried(jobs[3].lease(), answered_with(410, 3), CallbackNext::Failed).await.unwrap();
    while was_notified(&*store).await {}
    assert_eq!(store.resend_callback(ids[1], at(99)).await.unwrap(), Resent::UnderWay);
    assert!(!was_notified(&*store).await);
    let leased = record(&*store, ids[1]).await;
    assert_eq!((leased.is_claimed, leased.due, leased.queued_at), (true, at(100), at(0)), "nothing was changed");
    for id in [ids[0], ids[2], ids[3]] {
        let before = record(&*store, id).await;
        assert_eq!(store.resend_callback(id, at(50)).await.unwrap(), Resent::Queued);
        assert!(was_notified(&*store).await);
        let state = CallbackState::Pending;
        let expected = CallbackRecord { state, due: at(50), queued_at: at(50), last: None, ..before };
        assert_eq!(record(&*store, id).await, expected, "its tries are kept, its last outcome is cleared");
    }
    let again = claimed(&*store, 50, 200).await;
    assert_eq!(orders(&again), [("pending", 0), ("delivered", 0), ("failed", 0)], "with a fresh count");
    assert_eq!(again.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[0], ids[2], ids[3]]);
    assert_eq!(store.resend_callback(ids[1], at(100)).await.unwrap(), Resent::Queued, "its lease has ended");
    assert_eq!(orders(&claimed(&*store, 100, 300).await), [("leased", 0)]);
    let stranger = CallbackId::new(ids[0].subject(), ids[0].nonce() ^ 1);
    assert_eq!(store.resend_callback(stranger, at(100)).await.unwrap(), Resent::Unknown);
    store.callback_tried(again[2].lease(), answered_with(200, 51), CallbackNext::Delivered).await.unwrap();
    assert_eq!(tries(&*store, ids[3]).await, [answered_with(410, 3), answered_with(200, 51)]);
    audited(&*store).await;
}

const MERCHANTS: [&str; 3] = ["acme", "bolt", "cosy"];

/// Creates callbacks of three merchants in every state, for operations and entries. Times repeat.
async fn fill(store: &dyn Store, chance: &mut Rng) -> Vec<CallbackRecord> {
    for number in 0..90_u64 {
        let (name, text) = (chance.choice(MERCHANTS).unwrap(), (number / 2).to_string());
        let offset = i64::try_from(chance.u64(..12)).unwrap();
        if chance.u64(..4) == 0 {
            let mut create = relayed_create(&format!("e{text}"), Some("https://acme.example/"));
            create.merchant = merchant(name);
            let id = recorded_or_existing(store, create).await;
            store.relayed(id, at(offset)).await.unwrap();
        } else {
            let kind = if number % 2 == 0 { deposit } else { withdrawal };
            let mut draft = kind(name, &text);
            draft.operation.state = State::Finished { outcome: Outcome::Failed, at: at(offset) };
            draft.failure = Some(FailureCause::Provider);
            created(store, draft).await;
        }
    }
    let targets = [acme(), engine()];
    let of = |name: &str| targets.clone().map(|target| (CallbackTarget::new(&merchant(name), target.origin()), 1000));
    for job in store.claim_callbacks(claim(&MERCHANTS.map(of).concat(), 100, 200)).await.unwrap() {
        let ends = [
            CallbackNext::Delivered,
            CallbackNext::Failed,
            CallbackNext::RetryAt(at(300)),
            CallbackNext::RetryAt(at(400)),
        ];
        let next = chance.choice(ends).unwrap();
        store.callback_tried(job.lease(), answered_with(500, 100), next).await.unwrap();
    }
    let mut all = Vec::new();
    for found in reported(store).await {
        all.push(record(store, found.id).await);
    }
    all.sort_by_key(|record| std::cmp::Reverse(record.place()));
    all
}

async fn recorded_or_existing(store: &dyn Store, create: crate::store::PendingCreate) -> crate::store::EntryId {
    match store.record_create(create).await.unwrap() {
        crate::store::JournalOutcome::Written(id) => id,
        crate::store::JournalOutcome::Existing(entry) => entry.id,
        crate::store::JournalOutcome::Reserved
        | crate::store::JournalOutcome::Lost
        | crate::store::JournalOutcome::Native => panic!("nothing is reserved"),
    }
}

fn a_query(chance: &mut Rng, all: &[CallbackRecord]) -> CallbackQuery {
    let mut one_in = |number| chance.u64(..number) == 0;
    let (with_merchant, with_order, with_since, with_until, with_after) =
        (one_in(2), one_in(4), one_in(3), one_in(3), one_in(3));
    let sample = chance.choice(all).unwrap();
    let offset = |chance: &mut Rng| at(i64::try_from(chance.u64(..14)).unwrap() - 1);
    CallbackQuery {
        states: STATES.into_iter().filter(|_| chance.u64(..3) > 0).collect(),
        merchant: with_merchant.then(|| sample.merchant.clone()),
        order_id: with_order.then(|| sample.order_id.clone()),
        since: with_since.then(|| offset(chance)),
        until: with_until.then(|| offset(chance)),
        after: with_after.then(|| chance.choice(all).unwrap().place()),
        limit: chance.choice([0, 1, 2, 7, 1000]).unwrap(),
    }
}

/// The expected result of a query among all callbacks, which are in the list's order.
fn expected(query: &CallbackQuery, all: &[CallbackRecord]) -> Vec<CallbackRecord> {
    let matches = |record: &&CallbackRecord| {
        query.states.contains(&record.state)
            && query.merchant.as_ref().is_none_or(|merchant| record.merchant == *merchant)
            && query.order_id.as_ref().is_none_or(|it| query.merchant.is_some() && record.order_id == *it)
            && query.since.is_none_or(|since| record.queued_at >= since)
            && query.until.is_none_or(|until| record.queued_at <= until)
            && query.after.is_none_or(|after| record.place() < after)
    };
    all.iter().filter(matches).take(query.limit).cloned().collect()
}

pub(in crate::store) async fn lists_of_callbacks_are_exact(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut chance = Rng::with_seed(7);
    let all = fill(&*store, &mut chance).await;
    assert!(STATES.iter().all(|state| all.iter().filter(|record| record.state == *state).count() > 5));
    assert!(all.iter().any(|record| record.is_v1) && all.iter().any(|record| !record.is_v1));
    for _ in 0..600 {
        let query = a_query(&mut chance, &all);
        assert_eq!(store.callbacks(query.clone()).await.unwrap(), expected(&query, &all), "{query:?}");
    }
    // Consecutive slices cover the list.
    for limit in [1, 7] {
        let (mut after, mut found) = (None::<CallbackCursor>, Vec::new());
        loop {
            let slice = store.callbacks(CallbackQuery { after, limit, ..everything() }).await.unwrap();
            let Some(last) = slice.last() else { break };
            after = Some(last.place());
            found.extend(slice);
        }
        assert!(found == all);
    }
    let both = CallbackQuery { merchant: Some(all[0].merchant.clone()), ..everything() };
    let directions = [Direction::Payin, Direction::Payout];
    let named = directions.map(|direction| all.iter().find(|record| record.direction == direction).unwrap());
    for record in named {
        let query = CallbackQuery {
            merchant: Some(record.merchant.clone()),
            order_id: Some(record.order_id.clone()),
            ..both.clone()
        };
        assert!(store.callbacks(query).await.unwrap().contains(record));
    }
    audited(&*store).await;
}

pub(in crate::store) async fn failed_callbacks_are_resent_by_query(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut chance = Rng::with_seed(11);
    let all = fill(&*store, &mut chance).await;
    for _ in 0..40 {
        let query = a_query(&mut chance, &all);
        let before = reported(&*store).await;
        let mut listed = before.clone();
        listed.sort_by_key(|record| std::cmp::Reverse(record.place()));
        let states = vec![CallbackState::Failed];
        let resent = expected(&CallbackQuery { states, ..query.clone() }, &listed);
        while was_notified(&*store).await {}
        let (count, last) = store.resend_failed(query.clone(), at(1000)).await.unwrap();
        let next = resent.last().filter(|_| resent.len() == query.limit).map(CallbackRecord::place);
        assert_eq!((count, last), (resent.len(), next), "{query:?}");
        assert_eq!(was_notified(&*store).await, count > 0);
        for (before, after) in before.into_iter().zip(reported(&*store).await) {
            let mut expected = before.clone();
            if resent.contains(&before) {
                expected = CallbackRecord {
                    state: CallbackState::Pending,
                    queued_at: at(1000),
                    due: at(1000),
                    last: None,
                    ..before
                };
            }
            assert_eq!(after, expected);
        }
    }
    // In slices, until none is left.
    let (mut after, mut slices) = (None, 0);
    loop {
        let (_, last) = store.resend_failed(CallbackQuery { after, limit: 2, ..everything() }, at(2000)).await.unwrap();
        let Some(last) = last else { break };
        (after, slices) = (Some(last), slices + 1);
        assert!(slices < 100);
    }
    assert!(reported(&*store).await.iter().all(|record| record.state != CallbackState::Failed));
    audited(&*store).await;
}

pub(in crate::store) async fn pending_callbacks_of_receivers_are_made_due(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let texts = ["first", "later", "leased", "lease over", "delivered", "failed"];
    for text in texts {
        created(&*store, failed(text, 0)).await;
    }
    let jobs = claimed(&*store, 0, 40).await;
    for (place, due) in [(0, 900), (1, 90_000), (2, 10)] {
        store.callback_tried(jobs[place].lease(), unanswered(1), CallbackNext::RetryAt(at(due))).await.unwrap();
    }
    store.callback_tried(jobs[4].lease(), answered_with(200, 2), CallbackNext::Delivered).await.unwrap();
    store.callback_tried(jobs[5].lease(), answered_with(410, 3), CallbackNext::Failed).await.unwrap();
    let leased = claimed(&*store, 10, 500).await;
    assert_eq!(leased[0].id, jobs[2].id);
    created(&*store, failed("due", 20)).await;
    let mut bolt = deposit("bolt", "of bolt");
    bolt.operation.state = State::Finished { outcome: Outcome::Failed, at: at(0) };
    bolt.failure = Some(FailureCause::Provider);
    created(&*store, bolt).await;
    let of_bolt = CallbackTarget::new(&merchant("bolt"), acme().origin());
    let job = store.claim_callbacks(claim(&[(of_bolt.clone(), 1)], 0, 40)).await.unwrap().remove(0);
    store.callback_tried(job.lease(), unanswered(1), CallbackNext::RetryAt(at(700))).await.unwrap();
    while was_notified(&*store).await {}

    let before = reported(&*store).await;
    let query = |targets: &[&CallbackTarget], after, limit| {
        let targets = targets.iter().copied().cloned().collect();
        PendingQuery { targets, after, limit }
    };
    for (targets, count) in
        [(&[&acme()][..], 4), (&[&of_bolt], 1), (&[&acme(), &of_bolt], 5), (&[&engine()], 0), (&[], 0)]
    {
        assert_eq!(store.count_pending(query(targets, None, 9), at(50)).await.unwrap(), count, "{targets:?}");
    }
    assert_eq!(store.count_pending(query(&[&acme()], None, 3), at(50)).await.unwrap(), 3);
    assert_eq!(store.resend_pending(query(&[&engine()], None, 9), at(50)).await.unwrap(), (0, None));
    assert_eq!(reported(&*store).await, before);
    assert!(!was_notified(&*store).await);

    // The earliest first: two that are due already, then those that wait.
    let (mut after, mut counts) = (None, Vec::new());
    loop {
        let (count, end) = store.resend_pending(query(&[&of_bolt, &acme()], after, 2), at(50)).await.unwrap();
        counts.push((count, was_notified(&*store).await));
        after = end;
        if end.is_none() {
            break;
        }
    }
    assert_eq!(counts, [(2, false), (2, true), (1, true)]);
    for (before, after) in before.into_iter().zip(reported(&*store).await) {
        let is_changed = [jobs[0].id, jobs[1].id, job.id].contains(&before.id);
        let due = if is_changed { at(50) } else { before.due };
        assert_eq!(after, CallbackRecord { due, ..before }, "nothing else is changed");
    }
    let again = claimed(&*store, 50, 200).await;
    assert!(again.iter().all(|job| job.id != leased[0].id), "it is being sent");
    let mut attempts = orders(&again);
    attempts.sort_unstable();
    assert_eq!(attempts, [("due", 0), ("first", 1), ("later", 1), ("lease over", 1)], "they keep their attempts");
    let result = store.result_of_callback(job.id).await.unwrap();
    assert!(matches!(result, Some(ResultChange::Operation(stored)) if stored.operation.order_id.as_str() == "of bolt"));
    let stranger = CallbackId::new(job.id.subject(), job.id.nonce() ^ 1);
    assert!(store.result_of_callback(stranger).await.unwrap().is_none());
    audited(&*store).await;
}

pub(in crate::store) async fn the_outbox_reports_its_size(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.outbox_size().await.unwrap(), OutboxSize::default());
    for (text, offset) in [("a", 5), ("b", 3), ("c", 9)] {
        created(&*store, failed(text, offset)).await;
    }
    let size = |pending, failed, oldest: Option<i64>| OutboxSize { pending, failed, oldest: oldest.map(at) };
    assert_eq!(store.outbox_size().await.unwrap(), size(3, 0, Some(3)));
    let jobs = claimed(&*store, 9, 100).await;
    assert_eq!(store.outbox_size().await.unwrap(), size(3, 0, Some(3)), "leased callbacks are pending");
    store.callback_tried(jobs[0].lease(), answered_with(410, 10), CallbackNext::Failed).await.unwrap();
    store.callback_tried(jobs[1].lease(), answered_with(200, 10), CallbackNext::Delivered).await.unwrap();
    assert_eq!(store.outbox_size().await.unwrap(), size(1, 1, Some(9)));
    store.resend_callback(jobs[0].id, at(20)).await.unwrap();
    assert_eq!(store.outbox_size().await.unwrap(), size(2, 0, Some(9)));
    let entry = journaled(&*store, relayed_create("remote", Some("https://acme.example/"))).await;
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    assert_eq!(store.outbox_size().await.unwrap(), size(3, 0, Some(1)), "those that wait for the engine too");
}

pub(in crate::store) async fn a_closed_outbox_is_unavailable(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, failed("order", 0)).await;
    let lease = claimed_one(&*store, 0, 100).await.lease();
    let id = lease.id;
    let entry = journaled(&*store, relayed_create("remote", Some("https://acme.example/"))).await;
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    let of_entry = reported(&*store).await.remove(0).id;
    store.close().await.unwrap();
    let tried = CallbackTry { at: NOW, duration: Duration::ZERO, outcome: TryOutcome::Status(200) };
    let closed = [
        store.callback_queues(Vec::new()).await.err(),
        store.claim_callbacks(claim(&[(acme(), 1)], 0, 1)).await.err(),
        store.callback_tried(lease, tried, CallbackNext::Delivered).await.err(),
        store.postpone_callback(lease, NOW).await.err(),
        store.callback_ready(of_entry, NOW).await.err(),
        store.drop_callback(lease).await.err(),
        store.expire_callbacks(expiry(NOW, 1)).await.err(),
        store.relay_target(&merchant("acme"), Fingerprint([0; 16])).await.err(),
        store.relayed(entry.id, NOW).await.err(),
        store.callback(id).await.err(),
        store.callback_of(id.subject()).await.err(),
        store.count_callbacks(everything()).await.err(),
        store.callbacks(everything()).await.err(),
        store.resend_callback(id, NOW).await.err(),
        store.resend_failed(everything(), NOW).await.err(),
        store.result_of_callback(id).await.err(),
        store.count_pending(PendingQuery { targets: vec![acme()], after: None, limit: 1 }, NOW).await.err(),
        store.resend_pending(PendingQuery { targets: vec![acme()], after: None, limit: 1 }, NOW).await.err(),
        store.outbox_size().await.err(),
    ];
    for error in closed {
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
    }
    let store = backend.open().await;
    assert_eq!(queues(&*store).await.len(), 2);
}
