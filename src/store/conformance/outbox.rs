//! What merchants must be told: queues, leases, tries, and what is done by hand.

use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::domain::{Direction, Outcome};
use crate::store::{
    CallbackClaim, CallbackId, CallbackJob, CallbackNext, CallbackQuery, CallbackQueue, CallbackRecord, CallbackState,
    CallbackSubject, CallbackTarget, CallbackTry, News, TryOutcome,
};

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

/// Everything, from the newest on.
fn everything() -> CallbackQuery {
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

/// All callbacks, by what they are about.
pub(in crate::store) async fn told(store: &dyn Store) -> Vec<CallbackRecord> {
    let mut told = store.callbacks(everything()).await.unwrap();
    assert!(told.len() < everything().limit);
    told.sort_by_key(|record| record.id.subject().key());
    told
}

fn url(text: &str) -> CallbackUrl {
    CallbackUrl::new_allowing_http(text).unwrap()
}

fn target(origin: &str) -> CallbackTarget {
    CallbackTarget::Origin(origin.into())
}

/// The target of most callbacks here.
fn acme() -> CallbackTarget {
    target("https://acme.example:443")
}

/// A deposit that is created FAILED at a time, and so has to be told of.
fn failed(order_text: &str, offset: i64) -> Draft {
    let mut draft = deposit("acme", order_text);
    draft.operation.state = State::Finished { outcome: Outcome::Failed, at: at(offset) };
    draft
}

fn failed_at(order_text: &str, offset: i64, callback_url: &str) -> Draft {
    let mut draft = failed(order_text, offset);
    draft.operation.callback_url = url(callback_url);
    draft
}

fn claim(shares: &[(CallbackTarget, usize)], now: i64, lease_until: i64) -> CallbackClaim {
    CallbackClaim { shares: shares.to_vec(), now: at(now), lease_until: at(lease_until) }
}

/// Claims what is due of [`acme`].
async fn claimed(store: &dyn Store, now: i64, lease_until: i64) -> Vec<CallbackJob> {
    store.claim_callbacks(claim(&[(acme(), 100)], now, lease_until)).await.unwrap()
}

/// Claims the only callback that is due of [`acme`].
async fn claimed_one(store: &dyn Store, now: i64, lease_until: i64) -> CallbackJob {
    let mut jobs = claimed(store, now, lease_until).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

fn orders(jobs: &[CallbackJob]) -> Vec<(&str, u32)> {
    jobs.iter().map(|job| (order_of(job), job.attempts)).collect()
}

fn order_of(job: &CallbackJob) -> &str {
    match &job.news {
        News::Operation(stored) => stored.operation.order_id.as_str(),
        News::Entry(entry) => entry.intent.order_id.as_str(),
    }
}

async fn record(store: &dyn Store, id: CallbackId) -> CallbackRecord {
    store.callback(id).await.unwrap().unwrap().0
}

async fn tries(store: &dyn Store, id: CallbackId) -> Vec<CallbackTry> {
    store.callback(id).await.unwrap().unwrap().1
}

async fn queues(store: &dyn Store) -> Vec<(CallbackTarget, UnixMillis)> {
    let mut queues: Vec<_> =
        store.callback_queues().await.unwrap().into_iter().map(|CallbackQueue { target, due }| (target, due)).collect();
    queues.sort();
    queues
}

fn answered_with(status: u16, offset: i64) -> CallbackTry {
    CallbackTry { at: at(offset), duration: Duration::from_micros(1234), outcome: TryOutcome::Status(status) }
}

fn unanswered(offset: i64) -> CallbackTry {
    let outcome = TryOutcome::Error("https://acme.example:443: the connection was refused".into());
    CallbackTry { at: at(offset), duration: Duration::from_secs(10), outcome }
}

/// Whether the worker was told since this was asked last.
async fn was_told(store: &dyn Store) -> bool {
    tokio::time::timeout(Duration::ZERO, store.callbacks_queued().notified()).await.is_ok()
}

pub(in crate::store) async fn a_result_queues_its_callback(backend: &dyn Backend) {
    let store = backend.open().await;
    let pending = created(&*store, deposit("acme", "paid")).await;
    assert_eq!(queues(&*store).await, []);
    assert!(!was_told(&*store).await);
    store.settle(pending, Outcome::Success { payer: None }, at(5)).await.unwrap();
    assert!(was_told(&*store).await && !was_told(&*store).await);
    assert_eq!(queues(&*store).await, [(acme(), at(5))]);
    let at_once = failed_at("at once", 7, "https://ACME.example:8443/cb?secret=1");
    created(&*store, at_once).await;
    assert!(was_told(&*store).await);
    assert_eq!(queues(&*store).await, [(acme(), at(5)), (target("https://acme.example:8443"), at(7))]);

    let mut jobs = claimed(&*store, 5, 100).await;
    let job = jobs.pop().unwrap();
    assert!(jobs.is_empty());
    assert_eq!(job.id.subject(), CallbackSubject::Operation(pending));
    assert_eq!((job.target, job.attempts, job.queued_at), (acme(), 0, at(5)));
    let News::Operation(stored) = job.news else { panic!("it is of an operation") };
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
        is_under_way: true,
        queued_at: at(5),
        due: at(100),
        tries: 0,
        last: None,
    };
    assert_eq!(found, expected);
    let stranger = CallbackId::new(job.id.subject(), job.id.nonce() ^ 1);
    assert_eq!(store.callback(stranger).await.unwrap(), None, "a name is known whole");
    audited(&*store).await;
}

pub(in crate::store) async fn callbacks_are_claimed_in_order_by_share_and_leased(backend: &dyn Backend) {
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
    assert_eq!(orders(&second), [("2b", 0)], "leased ones are hidden, and what is not due waits");
    assert_eq!(queues(&*store).await, [(one.clone(), at(30)), (two.clone(), at(1000))], "leases count with their end");
    let third = claim_of(&[(two, 9), (one, 9)], 1000, 3000).await;
    assert_eq!(orders(&third), [("2a", 1), ("1c", 0), ("1a", 1), ("1b", 1)], "an ended lease is taken up again");
    for before in first.iter().chain(&second) {
        let again = third.iter().find(|job| order_of(job) == order_of(before));
        assert!(again.is_none_or(|job| job.id == before.id), "its name is the same at every try");
    }
    audited(&*store).await;
}

pub(in crate::store) async fn a_callback_is_claimed_once_by_many(backend: &dyn Backend) {
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

pub(in crate::store) async fn callbacks_survive_reopening(backend: &dyn Backend) {
    let store = backend.open().await;
    created(&*store, failed("claimed", 0)).await;
    created(&*store, failed("waiting", 50)).await;
    let before = claimed_one(&*store, 0, 10_000).await;
    drop(store);
    let store = backend.open().await;
    // A backend that only one process serves may end the lease at once.
    let after = claimed(&*store, 10_000, 20_000).await;
    assert_eq!(orders(&after), [("claimed", 1), ("waiting", 0)], "the work of a process that died is taken up again");
    assert_eq!(after[0].id, before.id);
    audited(&*store).await;
}

pub(in crate::store) async fn tries_lead_to_delivery_or_failure(backend: &dyn Backend) {
    let store = backend.open().await;
    for text in ["delivered", "given up"] {
        created(&*store, failed(text, 0)).await;
    }
    let jobs = claimed(&*store, 0, 100).await;
    let (delivered, given_up) = (jobs[0].id, jobs[1].id);
    store.callback_tried(delivered, unanswered(1), CallbackNext::RetryAt(at(50))).await.unwrap();
    let waiting = record(&*store, delivered).await;
    assert_eq!((waiting.state, waiting.is_under_way, waiting.due), (CallbackState::Pending, false, at(50)));
    assert_eq!((waiting.tries, waiting.last), (1, Some(unanswered(1).outcome)));
    assert_eq!(claimed(&*store, 49, 100).await.len(), 0);
    let again = claimed_one(&*store, 50, 100).await;
    assert_eq!((again.id, again.attempts, again.queued_at), (delivered, 1, at(0)));
    store.callback_tried(delivered, answered_with(204, 51), CallbackNext::Delivered).await.unwrap();
    let done = record(&*store, delivered).await;
    assert_eq!((done.state, done.is_under_way, done.tries), (CallbackState::Delivered, false, 2));
    assert_eq!(done.last, Some(TryOutcome::Status(204)));
    assert_eq!(tries(&*store, delivered).await, [unanswered(1), answered_with(204, 51)]);

    store.callback_tried(given_up, answered_with(410, 2), CallbackNext::Failed).await.unwrap();
    let failed = record(&*store, given_up).await;
    assert_eq!((failed.state, failed.is_under_way, failed.tries), (CallbackState::Failed, false, 1));
    assert_eq!(failed.last, Some(TryOutcome::Status(410)));
    assert!(claimed(&*store, 100_000, 200_000).await.is_empty());
    assert_eq!(queues(&*store).await, []);
    audited(&*store).await;
}
