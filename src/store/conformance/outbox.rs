//! The outbox: queues, leases, tries, announcements and expiry.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::*;
use crate::domain::{CallbackSender, Direction, FailureCause, Outcome};
use crate::store::{
    CallbackClaim, CallbackId, CallbackJob, CallbackLease, CallbackNext, CallbackQuery, CallbackQueue, CallbackRecord,
    CallbackState, CallbackSubject, CallbackTarget, CallbackTry, EntryId, ExpireRequest, NotKept, PendingCreate,
    RelayTarget, Relayed, Resent, ResultChange, ResultSource, TryOutcome,
};

pub(super) fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

/// A query for all callbacks, newest first.
pub(super) fn everything() -> CallbackQuery {
    CallbackQuery {
        states: vec![CallbackState::Pending, CallbackState::Delivered, CallbackState::Failed],
        merchant: None,
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: 1000,
    }
}

/// All callbacks, sorted by subject.
pub(in crate::store) async fn reported(store: &dyn Store) -> Vec<CallbackRecord> {
    let mut reported = store.callbacks(everything()).await.unwrap();
    assert!(reported.len() < everything().limit);
    reported.sort_by_key(|record| record.id.subject().key());
    reported
}

fn url(text: &str) -> CallbackUrl {
    CallbackUrl::new_allowing_http(text).unwrap()
}

fn target(origin: &str) -> CallbackTarget {
    CallbackTarget::new(&merchant("acme"), origin)
}

/// The target of most callbacks in these tests.
pub(super) fn acme() -> CallbackTarget {
    target("https://acme.example:443")
}

/// A deposit that is created FAILED at a time, and so has a callback.
pub(super) fn failed(order_text: &str, offset: i64) -> NewOperation {
    let mut draft = deposit("acme", order_text);
    draft.operation.state = State::Finished { outcome: Outcome::Failed, at: at(offset) };
    draft.failure = Some(FailureCause::Provider);
    draft
}

fn failed_at(order_text: &str, offset: i64, callback_url: &str) -> NewOperation {
    let mut draft = failed(order_text, offset);
    draft.operation.callback_url = url(callback_url);
    draft
}

pub(super) fn claim(shares: &[(CallbackTarget, usize)], now: i64, lease_until: i64) -> CallbackClaim {
    CallbackClaim { shares: shares.to_vec(), now: at(now), lease_until: at(lease_until) }
}

/// Claims the due callbacks of [`acme`].
pub(super) async fn claimed(store: &dyn Store, now: i64, lease_until: i64) -> Vec<CallbackJob> {
    store.claim_callbacks(claim(&[(acme(), 100)], now, lease_until)).await.unwrap()
}

/// Claims the only due callback of [`acme`].
pub(super) async fn claimed_one(store: &dyn Store, now: i64, lease_until: i64) -> CallbackJob {
    let mut jobs = claimed(store, now, lease_until).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

pub(super) fn orders(jobs: &[CallbackJob]) -> Vec<(&str, u32)> {
    jobs.iter().map(|job| (order_of(job), job.attempts)).collect()
}

fn order_of(job: &CallbackJob) -> &str {
    match &job.change {
        ResultChange::Operation(stored) => stored.operation.order_id.as_str(),
        ResultChange::Entry(entry) => entry.create.order_id.as_str(),
    }
}

pub(super) async fn record(store: &dyn Store, id: CallbackId) -> CallbackRecord {
    store.callback(id).await.unwrap().unwrap().0
}

pub(super) async fn tries(store: &dyn Store, id: CallbackId) -> Vec<CallbackTry> {
    store.callback(id).await.unwrap().unwrap().1
}

pub(super) async fn queues(store: &dyn Store) -> Vec<(CallbackTarget, UnixMillis)> {
    let mut queues: Vec<_> = store
        .callback_queues(Vec::new())
        .await
        .unwrap()
        .into_iter()
        .map(|CallbackQueue { target, due, .. }| (target, due))
        .collect();
    queues.sort();
    queues
}

pub(super) fn answered_with(status: u16, offset: i64) -> CallbackTry {
    CallbackTry { at: at(offset), duration: Duration::from_micros(1234), outcome: TryOutcome::Status(status) }
}

pub(super) fn unanswered(offset: i64) -> CallbackTry {
    let outcome = TryOutcome::Error("https://acme.example:443: the connection was refused".into());
    CallbackTry { at: at(offset), duration: Duration::from_secs(10), outcome }
}

/// Reports whether the worker was notified since the last call.
pub(super) async fn was_notified(store: &dyn Store) -> bool {
    tokio::time::timeout(Duration::ZERO, store.callbacks_queued().notified()).await.is_ok()
}

pub(in crate::store) async fn a_result_queues_its_callback(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let pending = created(&*store, deposit("acme", "paid")).await;
    assert_eq!(queues(&*store).await, []);
    assert!(!was_notified(&*store).await);
    store.complete(pending, Outcome::Success { payer: None }, ResultSource::PROVIDER, at(5)).await.unwrap();
    assert!(was_notified(&*store).await && !was_notified(&*store).await);
    assert_eq!(queues(&*store).await, [(acme(), at(5))]);
    let at_once = failed_at("at once", 7, "https://ACME.example:8443/cb?secret=1");
    created(&*store, at_once).await;
    assert!(was_notified(&*store).await);
    assert_eq!(queues(&*store).await, [(acme(), at(5)), (target("https://acme.example:8443"), at(7))]);

    let mut jobs = claimed(&*store, 5, 100).await;
    let job = jobs.pop().unwrap();
    assert!(jobs.is_empty());
    assert_eq!(job.id.subject(), CallbackSubject::Operation(pending));
    assert_eq!((job.target, job.attempts, job.queued_at), (acme(), 0, at(5)));
    let ResultChange::Operation(stored) = job.change else { panic!("the callback is of an operation") };
    assert_eq!(*stored, store.by_id(pending).await.unwrap().unwrap());

    let found = record(&*store, job.id).await;
    let expected = CallbackRecord {
        id: job.id,
        merchant: merchant("acme"),
        direction: Direction::Payin,
        order_id: order("paid"),
        transaction_id: Some(pending.to_string().into()),
        url: url("https://acme.example/callback"),
        is_v1: false,
        state: CallbackState::Pending,
        target: acme(),
        is_claimed: true,
        queued_at: at(5),
        due: at(100),
        tries: 0,
        last: None,
    };
    assert_eq!(found, expected);
    let other_id = CallbackId::new(job.id.subject(), job.id.nonce() ^ 1);
    assert_eq!(store.callback(other_id).await.unwrap(), None, "an id matches only as a whole");
    audited(&*store).await;
}

pub(in crate::store) async fn callbacks_are_claimed_in_order_by_share_and_leased(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let (one, two) = (target("https://one.example:443"), target("https://two.example:443"));
    for (text, offset, address) in [
        ("1c", 30, "https://one.example/"),
        ("1a", 10, "https://one.example/x"),
        ("2a", 15, "https://two.example/"),
        ("1b", 20, "https://one.example/"),
        ("2b", 25, "https://two.example/"),
    ] {
        created(&*store, failed_at(text, offset, address)).await;
    }
    let claim_of = async |shares: &[(CallbackTarget, usize)], now, until| {
        store.claim_callbacks(claim(shares, now, until)).await.unwrap()
    };
    assert!(claim_of(&[(one.clone(), 5), (two.clone(), 5)], 9, 1000).await.is_empty(), "nothing is due");
    assert!(claim_of(&[], 100, 1000).await.is_empty());
    assert!(claim_of(&[(one.clone(), 0), (target("https://three.example:443"), 9)], 100, 1000).await.is_empty());
    let first = claim_of(&[(one.clone(), 2), (two.clone(), 1)], 30, 1000).await;
    assert_eq!(orders(&first), [("1a", 0), ("1b", 0), ("2a", 0)]);
    assert_eq!(first.iter().map(|job| job.target.clone()).collect::<Vec<_>>(), [one.clone(), one.clone(), two.clone()]);
    let second = claim_of(&[(one.clone(), 9), (two.clone(), 9)], 29, 2000).await;
    assert_eq!(orders(&second), [("2b", 0)], "leased callbacks and those not due are not claimed");
    assert_eq!(
        queues(&*store).await,
        [(one.clone(), at(30)), (two.clone(), at(1000))],
        "a leased callback is due when its lease ends"
    );
    let third = claim_of(&[(two, 9), (one, 9)], 1000, 3000).await;
    assert_eq!(
        orders(&third),
        [("2a", 1), ("1c", 0), ("1a", 1), ("1b", 1)],
        "callbacks with an expired lease are claimed again"
    );
    for before in first.iter().chain(&second) {
        let again = third.iter().find(|job| order_of(job) == order_of(before));
        assert!(again.is_none_or(|job| job.id == before.id), "the id is the same at every try");
    }
    audited(&*store).await;
}

pub(in crate::store) async fn a_callback_is_claimed_once_by_many(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut open = HashSet::new();
    for number in 0..60 {
        open.insert(CallbackSubject::Operation(created(&*store, failed(&number.to_string(), number)).await));
    }
    let claimers: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.claim_callbacks(claim(&[(acme(), 4)], 100, 1000)).await.unwrap() })
        })
        .collect();
    for claimer in claimers {
        for job in claimer.await.unwrap() {
            assert!(open.remove(&job.id.subject()), "no callback is claimed twice");
        }
    }
    assert!(open.is_empty(), "every callback is claimed");
}

pub(in crate::store) async fn callbacks_survive_reopening(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, failed("claimed", 0)).await;
    created(&*store, failed("waiting", 50)).await;
    let before = claimed_one(&*store, 0, 10_000).await;
    drop(store);
    let store = backend.open().await;
    // A backend that only one process serves may end the lease at once.
    let mut after = claimed(&*store, 10_000, 20_000).await;
    after.sort_by_key(|job| job.queued_at);
    assert_eq!(orders(&after), [("claimed", 1), ("waiting", 0)], "tasks of a process that died are claimed again");
    assert_eq!(after[0].id, before.id);
    audited(&*store).await;
}

pub(in crate::store) async fn tries_lead_to_delivery_or_failure(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for text in ["delivered", "given up"] {
        created(&*store, failed(text, 0)).await;
    }
    let jobs = claimed(&*store, 0, 100).await;
    let (delivered, given_up) = (jobs[0].id, jobs[1].id);
    store.callback_tried(jobs[0].lease(), unanswered(1), CallbackNext::RetryAt(at(50))).await.unwrap();
    let waiting = record(&*store, delivered).await;
    assert_eq!((waiting.state, waiting.is_claimed, waiting.due), (CallbackState::Pending, false, at(50)));
    assert_eq!((waiting.tries, waiting.last), (1, Some(unanswered(1).outcome)));
    assert_eq!(claimed(&*store, 49, 100).await.len(), 0);
    let again = claimed_one(&*store, 50, 100).await;
    assert_eq!((again.id, again.attempts, again.queued_at), (delivered, 1, at(0)));
    store.callback_tried(again.lease(), answered_with(204, 51), CallbackNext::Delivered).await.unwrap();
    let done = record(&*store, delivered).await;
    assert_eq!((done.state, done.is_claimed, done.tries), (CallbackState::Delivered, false, 2));
    assert_eq!(done.last, Some(TryOutcome::Status(204)));
    assert_eq!(tries(&*store, delivered).await, [unanswered(1), answered_with(204, 51)]);

    store.callback_tried(jobs[1].lease(), answered_with(410, 2), CallbackNext::Failed).await.unwrap();
    let failed = record(&*store, given_up).await;
    assert_eq!((failed.state, failed.is_claimed, failed.tries), (CallbackState::Failed, false, 1));
    assert_eq!(failed.last, Some(TryOutcome::Status(410)));
    assert!(claimed(&*store, 100_000, 200_000).await.is_empty());
    assert_eq!(queues(&*store).await, []);
    audited(&*store).await;
}

/// The cases of the table in `store/callbacks.rs`: a late try is stored, and counts only if it delivered the callback.
pub(in crate::store) async fn only_a_delivery_counts_when_late(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let refused = || (answered_with(410, 7), CallbackNext::Failed);
    let again = || (unanswered(7), CallbackNext::RetryAt(at(9000)));
    let taken = || (answered_with(200, 7), CallbackNext::Delivered);
    let delivered = CallbackState::Delivered;
    for (number, before, late, state, due) in [
        (0, None, refused(), CallbackState::Pending, Some(500)),
        (1, None, again(), CallbackState::Pending, Some(500)),
        (2, None, taken(), delivered, None),
        (3, Some((answered_with(201, 6), CallbackNext::Delivered)), refused(), delivered, None),
        (4, Some((answered_with(201, 6), CallbackNext::Delivered)), again(), delivered, None),
        (5, Some((answered_with(410, 6), CallbackNext::Failed)), again(), CallbackState::Failed, None),
        (6, Some((answered_with(410, 6), CallbackNext::Failed)), taken(), delivered, None),
    ] {
        created(&*store, failed(&number.to_string(), 0)).await;
        let lease = claimed_one(&*store, 10, 100).await.lease();
        let id = lease.id;
        let count = 1 + usize::from(before.is_some());
        match before {
            Some((tried, next)) => store.callback_tried(lease, tried, next).await.unwrap(),
            // Its lease ended, and it was resent.
            None => assert_eq!(store.resend_callback(id, at(500)).await.unwrap(), Resent::Queued),
        }
        let last = record(&*store, id).await.last;
        store.callback_tried(lease, late.0.clone(), late.1).await.unwrap();
        let found = record(&*store, id).await;
        assert_eq!((found.state, found.is_claimed), (state, false), "{number}");
        assert!(due.is_none_or(|due| found.due == at(due)), "{number}: {found:?}");
        let counts = late.1 == CallbackNext::Delivered;
        assert_eq!(found.last, if counts { Some(late.0.outcome.clone()) } else { last }, "{number}");
        let kept = tries(&*store, id).await;
        assert_eq!((kept.len(), found.tries as usize), (count, count), "{number}: every try is stored");
        assert_eq!(kept.last(), Some(&late.0), "{number}");
        if state == CallbackState::Pending {
            let resent = claimed_one(&*store, 500, 600).await.lease();
            store.callback_tried(resent, answered_with(200, 8), CallbackNext::Delivered).await.unwrap();
        }
        assert!(claimed(&*store, 100_000, 200_000).await.is_empty(), "{number}");
    }
    audited(&*store).await;
}

/// A late worker whose lease is over does not change the lease or the result of the next one.
pub(in crate::store) async fn a_late_worker_does_not_affect_the_next_claim(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, failed("raced", 0)).await;
    let first = claimed_one(&*store, 0, 100).await;
    let second = claimed_one(&*store, 100, 200).await;
    assert_eq!((first.id, second.attempts), (second.id, 1));
    store.callback_tried(first.lease(), unanswered(110), CallbackNext::RetryAt(at(150))).await.unwrap();
    store.callback_tried(first.lease(), unanswered(111), CallbackNext::Failed).await.unwrap();
    store.postpone_callback(first.lease(), at(150)).await.unwrap();
    assert_eq!(queues(&*store).await, [(acme(), at(200))], "the second lease is unchanged");
    assert_eq!(store.resend_callback(first.id, at(199)).await.unwrap(), Resent::UnderWay);
    store.callback_tried(second.lease(), answered_with(200, 120), CallbackNext::Delivered).await.unwrap();
    assert_eq!(record(&*store, first.id).await.state, CallbackState::Delivered);
    assert_eq!(record(&*store, first.id).await.tries, 3);
    assert_eq!(queues(&*store).await, [], "it has left its queue");
}

pub(in crate::store) async fn a_callback_can_be_postponed(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, failed("postponed", 0)).await;
    let lease = claimed_one(&*store, 0, 100).await.lease();
    let id = lease.id;
    store.postpone_callback(lease, at(77)).await.unwrap();
    assert_eq!(queues(&*store).await, [(acme(), at(77))]);
    store.postpone_callback(lease, at(99)).await.unwrap();
    assert_eq!(queues(&*store).await, [(acme(), at(77))], "a callback that is not claimed is not postponed");
    let again = claimed_one(&*store, 77, 200).await;
    assert_eq!((again.id, again.attempts), (id, 1), "it counts as an attempt");
    assert_eq!((record(&*store, id).await.tries, tries(&*store, id).await), (0, Vec::new()), "and not as a try");
    let other_id = CallbackLease { id: CallbackId::new(id.subject(), id.nonce() ^ 1), ..again.lease() };
    store.postpone_callback(other_id, at(90)).await.unwrap();
    assert_eq!(queues(&*store).await, [(acme(), at(200))], "only the whole id matches");
    store.callback_tried(again.lease(), answered_with(200, 80), CallbackNext::Delivered).await.unwrap();
    store.postpone_callback(again.lease(), at(90)).await.unwrap();
    assert_eq!(queues(&*store).await, [], "a task that has ended does not return");
}

pub(in crate::store) async fn the_latest_tries_are_kept(backend: &dyn TestBackend) {
    let store = backend.open().await;
    created(&*store, failed("tried", 0)).await;
    created(&*store, failed("other", 0)).await;
    let jobs = claimed(&*store, 0, 100).await;
    let id = jobs[0].id;
    store.callback_tried(jobs[1].lease(), unanswered(1), CallbackNext::RetryAt(at(1_000_000))).await.unwrap();
    let all = CallbackRecord::MAX_TRIES + 3;
    for number in 0..all {
        let tried = answered_with(503, i64::try_from(number).unwrap());
        store.callback_tried(jobs[0].lease(), tried, CallbackNext::RetryAt(at(1_000_000))).await.unwrap();
    }
    let kept = tries(&*store, id).await;
    assert_eq!((kept.len(), kept[0].at), (CallbackRecord::MAX_TRIES, at(3)));
    assert!(kept.is_sorted_by_key(|tried| tried.at));
    assert_eq!(record(&*store, id).await.tries as usize, all, "all tries are counted");
    assert_eq!(tries(&*store, jobs[1].id).await.len(), 1);
    audited(&*store).await;
}

/// Expires callbacks of the usual target that were queued until a time.
pub(in crate::store) fn expiry(queued_until: UnixMillis, limit: usize) -> ExpireRequest {
    ExpireRequest { targets: [acme()].into(), queued_until, reason: "too late", limit }
}

pub(in crate::store) async fn old_callbacks_are_given_up(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for (text, offset) in [("leased", 1), ("first", 2), ("second", 3), ("third", 4), ("young", 50)] {
        created(&*store, failed(text, offset)).await;
    }
    let leased = store.claim_callbacks(claim(&[(acme(), 1)], 10, 1000)).await.unwrap().remove(0).id;
    let of_others = ExpireRequest { targets: [engine()].into(), ..expiry(at(40), 9) };
    assert_eq!(store.expire_callbacks(of_others).await.unwrap(), 0);
    assert_eq!(store.expire_callbacks(expiry(at(40), 2)).await.unwrap(), 2);
    let gone: Vec<_> = reported(&*store).await.into_iter().filter(|it| it.state == CallbackState::Failed).collect();
    assert_eq!(gone.iter().map(|it| it.order_id.as_str()).collect::<Vec<_>>(), ["first", "second"], "oldest first");
    assert!(gone.iter().all(|it| it.tries == 0 && it.last == Some(TryOutcome::Error("too late".into()))));
    assert_eq!(store.expire_callbacks(expiry(at(40), 9)).await.unwrap(), 1);
    assert_eq!(store.expire_callbacks(expiry(at(40), 9)).await.unwrap(), 0);
    assert_eq!(orders(&claimed(&*store, 500, 2000).await), [("young", 0)]);
    let found = record(&*store, leased).await;
    assert_eq!((found.state, found.is_claimed), (CallbackState::Pending, true), "it is leased");
    assert_eq!(store.expire_callbacks(expiry(at(1000), 9)).await.unwrap(), 1, "its lease has ended");
    assert_eq!(record(&*store, leased).await.state, CallbackState::Failed);
    audited(&*store).await;
}

/// A create with the merchant's callback address.
pub(super) fn relayed_create(order_text: &str, address: Option<&str>) -> PendingCreate {
    let mut create = pending_create("acme", order_text);
    create.callback_url = address.map(url);
    create
}

pub(in crate::store) async fn old_finished_callbacks_are_deleted(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for (text, offset) in
        [("delivered", 1), ("given up", 2), ("later", 3), ("resent", 4), ("pending", 5), ("young", 50)]
    {
        created(&*store, failed(text, offset)).await;
    }
    let (mut ids, mut leases) = (HashMap::new(), HashMap::new());
    for job in claimed(&*store, 100, 1000).await {
        let next = match order_of(&job) {
            "pending" => continue,
            "given up" => CallbackNext::Failed,
            _ => CallbackNext::Delivered,
        };
        store.callback_tried(job.lease(), answered_with(200, 100), next).await.unwrap();
        ids.insert(order_of(&job).to_owned(), job.id);
        leases.insert(order_of(&job).to_owned(), job.lease());
    }
    assert_eq!(store.resend_callback(ids["resent"], at(60)).await.unwrap(), Resent::Queued);
    assert_eq!(store.forget_callbacks(at(0), 9).await.unwrap(), 0);
    assert_eq!(store.forget_callbacks(at(40), 1).await.unwrap(), 2, "the oldest of each state");
    assert!(store.callback(ids["delivered"]).await.unwrap().is_none());
    assert!(store.callback(ids["given up"]).await.unwrap().is_none());
    assert_eq!(store.resend_callback(ids["delivered"], at(60)).await.unwrap(), Resent::Unknown);
    assert_eq!(record(&*store, ids["later"]).await.state, CallbackState::Delivered);
    assert_eq!(store.forget_callbacks(at(40), 9).await.unwrap(), 1);
    assert_eq!(store.forget_callbacks(at(40), 9).await.unwrap(), 0);
    let mut left: Vec<_> = reported(&*store).await.into_iter().map(|it| it.order_id.as_str().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["pending", "resent", "young"]);
    // A late try of a deleted callback changes nothing.
    store.callback_tried(leases["delivered"], answered_with(200, 200), CallbackNext::Delivered).await.unwrap();
    audited(&*store).await;
}

pub(super) fn engine() -> CallbackTarget {
    target(CallbackTarget::ENGINE)
}

pub(in crate::store) async fn an_announced_callback_waits_for_the_engine(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let address = "http://shop.acme.example:8080/v1?x=1";
    let entry = journaled(&*store, relayed_create("announced", Some(address))).await;
    let entry = store.answer(entry, engine_answer(42)).await.unwrap().unwrap();
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    assert!(was_notified(&*store).await);
    assert_eq!(store.relayed(entry.id, at(2)).await.unwrap(), Relayed::Nothing, "it is queued already");
    assert_eq!(queues(&*store).await, [(engine(), at(1))]);
    let claimed_of = async |target, now| {
        let mut jobs = store.claim_callbacks(claim(&[(target, 9)], now, now + 100)).await.unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    };
    let job = claimed_of(engine(), 1).await;
    assert_eq!((job.id.subject(), &job.target), (CallbackSubject::Entry(entry.id), &engine()));
    let ResultChange::Entry(job_entry) = &job.change else { panic!("the callback is of an entry") };
    assert_eq!(**job_entry, entry);
    store.postpone_callback(job.lease(), at(50)).await.unwrap();
    let again = claimed_of(engine(), 50).await;
    assert_eq!((again.id, again.attempts), (job.id, 1));
    assert!(!was_notified(&*store).await);

    store.callback_ready(job.id, at(60)).await.unwrap();
    assert!(was_notified(&*store).await);
    let shop = target("http://shop.acme.example:8080");
    assert_eq!(queues(&*store).await, [(shop.clone(), at(60))]);
    let ready = claimed_of(shop.clone(), 60).await;
    assert_eq!((ready.id, ready.attempts, ready.queued_at), (job.id, 0, at(60)), "the age counts from now");
    store.callback_ready(job.id, at(70)).await.unwrap();
    let other_id = CallbackId::new(job.id.subject(), job.id.nonce() ^ 1);
    for not_it in [CallbackLease { id: other_id, ..ready.lease() }, again.lease()] {
        store.drop_callback(not_it).await.unwrap();
    }
    let expected = CallbackRecord {
        id: job.id,
        merchant: merchant("acme"),
        direction: Direction::Payin,
        order_id: order("announced"),
        transaction_id: Some("42".into()),
        url: url(address),
        is_v1: true,
        state: CallbackState::Pending,
        target: shop,
        is_claimed: true,
        queued_at: at(60),
        due: at(160),
        tries: 0,
        last: None,
    };
    assert_eq!(record(&*store, job.id).await, expected, "it is ready once");
    store.callback_tried(ready.lease(), answered_with(200, 61), CallbackNext::Delivered).await.unwrap();
    assert_eq!(store.relayed(entry.id, at(99)).await.unwrap(), Relayed::Nothing, "it was delivered");
    store.callback_ready(job.id, at(99)).await.unwrap();
    store.drop_callback(ready.lease()).await.unwrap();
    assert_eq!(record(&*store, job.id).await.state, CallbackState::Delivered);
    assert_eq!(queues(&*store).await, []);
    audited(&*store).await;
}

pub(in crate::store) async fn an_announcement_is_queued_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, relayed_create("raced", Some("https://acme.example/"))).await;
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.relayed(entry.id, at(number)).await.unwrap() })
        })
        .collect();
    let mut queued = 0;
    for task in tasks {
        queued += u32::from(task.await.unwrap() == Relayed::Queued);
    }
    assert_eq!((queued, reported(&*store).await.len()), (1, 1));
    // Entries without a callback address, and unknown entries, have no callback.
    let silent = journaled(&*store, relayed_create("silent", None)).await;
    assert_eq!(store.relayed(silent.id, at(1)).await.unwrap(), Relayed::Nothing);
    assert_eq!(store.relayed(EntryId(1_000_000), at(1)).await.unwrap(), Relayed::Nothing);
    assert_eq!(reported(&*store).await.len(), 1);
    audited(&*store).await;
}

/// A query that was sent before the engine announced again returned an older status, even within the same millisecond.
pub(in crate::store) async fn an_early_query_does_not_affect_the_next_one(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, relayed_create("queried", Some("https://acme.example/"))).await;
    let claimed_from_engine = async |now, lease_until| {
        let mut jobs = store.claim_callbacks(claim(&[(engine(), 1)], now, lease_until)).await.unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0).lease()
    };
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    let mut number = 0;
    let mut earlier = vec![claimed_from_engine(1, 50).await];
    let mut try_late = async |earlier: &[CallbackLease], lease_until| {
        for lease in earlier {
            number += 1;
            store.drop_callback(*lease).await.unwrap();
            store.postpone_callback(*lease, at(999)).await.unwrap();
            store.callback_tried(*lease, unanswered(number), CallbackNext::RetryAt(at(999))).await.unwrap();
            let found = record(&*store, lease.id).await;
            let expected = (CallbackState::Pending, true, at(lease_until));
            assert_eq!((found.state, found.is_claimed, found.due), expected, "{lease:?}");
        }
        number
    };
    for announced in [1, 1, 9] {
        assert_eq!(store.relayed(entry.id, at(announced)).await.unwrap(), Relayed::Queued);
        let next = claimed_from_engine(9, 50).await;
        try_late(&earlier, 50).await;
        earlier.push(next);
    }
    // The lease of the last claim ends, too.
    let latest = claimed_from_engine(50, 100).await;
    assert_eq!((latest.queued_at, latest.attempts), (at(9), 1));
    let last_try = try_late(&earlier, 100).await;
    // The latest try equals the one before it, at the same time, and still counts.
    store.callback_tried(latest, unanswered(last_try), CallbackNext::Failed).await.unwrap();
    let found = record(&*store, latest.id).await;
    assert_eq!((found.state, i64::from(found.tries)), (CallbackState::Failed, last_try + 1));
    // Resent in the millisecond in which it was queued.
    assert_eq!(store.resend_callback(latest.id, at(9)).await.unwrap(), Resent::Queued);
    let resent = claimed_from_engine(9, 200).await;
    assert_eq!((resent.queued_at, resent.attempts), (at(10), 0));
    store.callback_ready(latest.id, at(10)).await.unwrap();
    let ready = claimed_one(&*store, 10, 300).await;
    store.postpone_callback(resent, at(999)).await.unwrap();
    assert_eq!((ready.queued_at, record(&*store, ready.id).await.due), (at(11), at(300)));
    audited(&*store).await;
}

pub(in crate::store) async fn a_callback_without_a_result_is_dropped(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let entry = journaled(&*store, relayed_create("nothing", Some("https://acme.example/"))).await;
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    let id = reported(&*store).await[0].id;
    let claimed_from_engine = async |now| {
        let mut jobs = store.claim_callbacks(claim(&[(engine(), 1)], now, 100)).await.unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0).lease()
    };
    store.callback_tried(claimed_from_engine(1).await, unanswered(1), CallbackNext::RetryAt(at(5))).await.unwrap();
    let too_early = claimed_from_engine(5).await;
    // Announced during a query: the result of that query is too old, whether or not another query has begun.
    assert_eq!(store.relayed(entry.id, at(6)).await.unwrap(), Relayed::Queued);
    let try_too_early = async || {
        store.drop_callback(too_early).await.unwrap();
        store.postpone_callback(too_early, at(999)).await.unwrap();
        let tried = unanswered(10 + i64::from(record(&*store, id).await.tries));
        store.callback_tried(too_early, tried, CallbackNext::Failed).await.unwrap();
        let found = record(&*store, id).await;
        assert_eq!((found.state, found.queued_at), (CallbackState::Pending, at(6)));
        (found.due, found.is_claimed)
    };
    assert_eq!(try_too_early().await, (at(6), false));
    assert_eq!(store.relayed(entry.id, at(7)).await.unwrap(), Relayed::Nothing, "it is queued already");
    let anew = claimed_from_engine(6).await;
    assert_eq!(try_too_early().await, (at(100), true));
    // Given up, then announced again.
    store.callback_tried(anew, unanswered(7), CallbackNext::Failed).await.unwrap();
    assert_eq!(store.relayed(entry.id, at(8)).await.unwrap(), Relayed::Queued);
    let last = claimed_from_engine(8).await;
    store.drop_callback(last).await.unwrap();
    assert_eq!((store.callback(id).await.unwrap(), queues(&*store).await), (None, Vec::new()));
    store.callback_tried(last, unanswered(2), CallbackNext::Delivered).await.unwrap();
    assert_eq!(store.resend_callback(id, at(3)).await.unwrap(), Resent::Unknown);
    assert_eq!(store.relayed(entry.id, at(9)).await.unwrap(), Relayed::Queued, "a later announcement is queued");
    assert!(reported(&*store).await[0].id != id && tries(&*store, reported(&*store).await[0].id).await.is_empty());
    // Callbacks of operations are never dropped.
    created(&*store, failed("result", 0)).await;
    let job = claimed_one(&*store, 0, 100).await;
    store.drop_callback(job.lease()).await.unwrap();
    store.callback_ready(job.id, at(1)).await.unwrap();
    assert_eq!(record(&*store, job.id).await.due, at(100));
    audited(&*store).await;
}

/// An entry whose result was announced is neither cancelled nor replaced.
pub(in crate::store) async fn an_announced_entry_is_not_cancelled(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let create = relayed_create("announced", Some("https://acme.example/"));
    let first = journaled(&*store, create.clone()).await;
    assert!(store.cancel(first.id, None).await.unwrap());
    let second = journaled(&*store, create).await;
    assert_eq!(store.relayed(second.id, at(1)).await.unwrap(), Relayed::Queued);
    assert!(!store.cancel(second.id, None).await.unwrap());
    let before = reported(&*store).await.remove(0);
    let job = store.claim_callbacks(claim(&[(engine(), 1)], 1, 100)).await.unwrap().remove(0);
    assert_eq!(job.id, before.id);
    store.callback_tried(job.lease(), unanswered(1), CallbackNext::RetryAt(at(5))).await.unwrap();
    // The answer to the first request arrives late.
    assert_eq!(store.answer(first, engine_answer(1)).await.unwrap(), Err(NotKept::Late));
    let after = reported(&*store).await.remove(0);
    assert_eq!((after.id, after.due, after.tries), (before.id, at(5), 1));
    assert_eq!(tries(&*store, after.id).await, [unanswered(1)]);
    audited(&*store).await;
}

pub(in crate::store) async fn a_relay_address_names_its_order(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let key = |name, direction, text| store.fingerprint_key().order_key(&merchant(name), direction, &order(text));
    let mut relayed = withdrawal("acme", "relayed");
    relayed.api_key = "acme-second".into();
    relayed.v1 = Some(CallbackSender::Relayed(None));
    let mut direct = deposit("acme", "direct");
    direct.v1 = Some(CallbackSender::Directly);
    for draft in [relayed, direct, deposit("acme", "native")] {
        created(&*store, draft).await;
    }
    let entry = journaled(&*store, relayed_create("remote", Some("https://acme.example/"))).await;
    let relay_target = |direction, text, api_key: &str, entry| RelayTarget {
        merchant: merchant("acme"),
        direction,
        order_id: order(text),
        api_key: api_key.into(),
        entry,
    };
    let found =
        async |name, direction, text| store.relay_target(&merchant(name), key(name, direction, text)).await.unwrap();
    let expected = relay_target(Direction::Payout, "relayed", "acme-second", None);
    assert_eq!(found("acme", Direction::Payout, "relayed").await, Some(expected));
    let expected = relay_target(Direction::Payin, "remote", "acme-live", Some(entry.id));
    assert_eq!(found("acme", Direction::Payin, "remote").await, Some(expected));
    for (name, direction, text) in [
        ("acme", Direction::Payin, "relayed"),
        ("bolt", Direction::Payout, "relayed"),
        ("acme", Direction::Payin, "direct"),
        ("acme", Direction::Payin, "native"),
        ("acme", Direction::Payin, "unknown"),
    ] {
        assert_eq!(found(name, direction, text).await, None, "{name} {direction} {text}");
    }
}
