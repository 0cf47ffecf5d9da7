//! The queue of provider jobs.

use std::collections::HashSet;

use super::*;
use crate::domain::{BrowserUrl, Outcome, Preparation};
use crate::store::{AskOutcome, Claim, JobEnd, Misdated, MisdatedWaits, ProviderJob, ResultSource, TaskKind};

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

fn due(order_text: &str, offset: i64) -> NewOperation {
    let mut draft = withdrawal("acme", order_text);
    draft.provider_job = Some(at(offset));
    draft
}

fn claim(now: UnixMillis, lease_until: UnixMillis, limit: usize) -> Claim {
    Claim { shop: ShopCode::new("card-eur").unwrap(), now, lease_until, limit }
}

async fn next(store: &dyn Store) -> Option<UnixMillis> {
    store.provider_queues().await.unwrap().iter().map(|queue| queue.due).min()
}

fn summary(jobs: &[ProviderJob]) -> Vec<(TransactionId, u32)> {
    jobs.iter().map(|job| (job.operation.id, job.attempts)).collect()
}

pub(in crate::store) async fn jobs_are_claimed_in_order_and_leased(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(next(&*store).await, None);
    let late_draft = due("late", 30);
    let expected = late_draft.operation.clone();
    let late = created(&*store, late_draft).await;
    let early = created(&*store, due("early", 10)).await;
    let middle = created(&*store, due("middle", 20)).await;
    created(&*store, withdrawal("acme", "nothing to do")).await;
    assert_eq!(next(&*store).await, Some(at(10)));

    assert!(store.claim_provider_jobs(claim(at(9), at(100), 10)).await.unwrap().is_empty(), "nothing is due");
    assert!(store.claim_provider_jobs(claim(at(50), at(100), 0)).await.unwrap().is_empty());
    let first = store.claim_provider_jobs(claim(at(20), at(100), 10)).await.unwrap();
    assert_eq!(summary(&first), [(early, 0), (middle, 0)], "a job is due at its time");
    assert_eq!(next(&*store).await, Some(at(30)));
    let second = store.claim_provider_jobs(claim(at(50), at(200), 10)).await.unwrap();
    assert_eq!(summary(&second), [(late, 0)], "leased jobs are hidden");
    assert_eq!(second[0].operation, expected);
    assert_eq!(next(&*store).await, Some(at(100)), "leased jobs are listed with the end of their lease");

    assert!(store.claim_provider_jobs(claim(at(99), at(300), 10)).await.unwrap().is_empty());
    let again = store.claim_provider_jobs(claim(at(100), at(300), 1)).await.unwrap();
    assert_eq!(summary(&again), [(early, 1)], "an expired lease is claimed again, within the limit");
    let again = store.claim_provider_jobs(claim(at(250), at(300), 10)).await.unwrap();
    assert_eq!(summary(&again), [(middle, 1), (late, 1)]);
}

pub(in crate::store) async fn jobs_of_one_batch_keep_their_own_times(backend: &dyn TestBackend) {
    let store = backend.open().await;
    // Batches with jobs due at one time, at several, and none; of deposits only, and with withdrawals.
    for (round, offsets) in (0..).zip([[Some(5), Some(5), Some(5)], [None, Some(7), Some(9)], [None; 3]]) {
        for (make, among) in [(deposit as fn(&str, &str) -> NewOperation, "deposit"), (withdrawal, "withdrawal")] {
            let drafts = (0..).zip(offsets).map(|(number, offset): (u64, Option<i64>)| {
                let make = if number == 0 { make } else { deposit };
                let mut draft = make("acme", &format!("{among}-{round}-{number}"));
                // With an opening, each would be stored in a batch of its own.
                draft.opening = None;
                draft.provider_job = offset.map(at);
                draft
            });
            let drafts: Vec<_> = drafts.collect();
            let mut expected: Vec<_> =
                drafts.iter().filter_map(|draft| draft.provider_job.map(|due| (due, draft.operation.id))).collect();
            expected.sort();
            let all = drafts.into_iter().map(|draft| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { created(&*store, draft).await })
            });
            for one in all.collect::<Vec<_>>() {
                one.await.unwrap();
            }
            let mut claimed = Vec::new();
            for now in 0..10 {
                let jobs = store.claim_provider_jobs(claim(at(now), at(100_000), 10)).await.unwrap();
                claimed.extend(jobs.iter().map(|job| (at(now), job.operation.id)));
                for job in &jobs {
                    store.end_provider_job(job.operation.id, JobEnd::ReportAwaited, NOW).await.unwrap();
                }
            }
            claimed.sort();
            assert_eq!(claimed, expected, "{among} {round}");
        }
    }
    audited(&*store).await;
}

pub(in crate::store) async fn a_result_ends_its_job(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for (text, outcome) in [("paid", Outcome::Success { payer: None }), ("refused", Outcome::Failed)] {
        let id = created(&*store, due(text, 0)).await;
        store.complete(id, outcome, ResultSource::PROVIDER, at(1)).await.unwrap();
        assert_eq!(next(&*store).await, None);
    }
    // The same for a claimed job.
    let id = created(&*store, due("claimed", 0)).await;
    assert_eq!(store.claim_provider_jobs(claim(at(0), at(10), 10)).await.unwrap().len(), 1);
    store.complete(id, Outcome::Failed, ResultSource::PROVIDER, at(1)).await.unwrap();
    assert!(store.claim_provider_jobs(claim(at(1000), at(2000), 10)).await.unwrap().is_empty());
}

pub(in crate::store) async fn a_job_can_be_ended(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, due("ended", 0)).await;
    let other = created(&*store, due("other", 5)).await;
    store.end_provider_job(id, JobEnd::ReportAwaited, NOW).await.unwrap();
    store.end_provider_job(id, JobEnd::ReportAwaited, NOW).await.unwrap();
    assert_eq!(summary(&store.claim_provider_jobs(claim(at(10), at(20), 10)).await.unwrap()), [(other, 0)]);
    assert_eq!(store.by_id(id).await.unwrap().unwrap().operation.state, State::Pending);
}

pub(in crate::store) async fn a_claimed_job_is_given_up_unless_it_has_ended(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let deposit_of = |text: &str, offset| {
        let mut draft = deposit("acme", text);
        draft.operation.provider = ProviderKind::Http;
        draft.provider_job = Some(at(offset));
        draft
    };
    let given_up = created(&*store, deposit_of("given up", 0)).await;
    let reported = created(&*store, due("reported", 1)).await;
    let renewed = created(&*store, due("renewed", 2)).await;
    let prepared = created(&*store, deposit_of("prepared", 3)).await;
    let jobs = store.claim_provider_jobs(claim(at(10), at(20), 10)).await.unwrap();
    let end_of = async |id| store.operation_detail(id).await.unwrap().unwrap().job.unwrap().end;

    // Since the claim.
    store.end_provider_job(reported, JobEnd::ReportAwaited, at(11)).await.unwrap();
    store.end_provider_job(renewed, JobEnd::ReportAwaited, at(11)).await.unwrap();
    assert_eq!(store.ask_again(renewed, at(12)).await.unwrap(), AskOutcome::Due);
    let page = Preparation::Page(BrowserUrl::new("https://psp.example/pay").unwrap());
    assert!(store.prepare(prepared, page.clone(), JobEnd::CustomerAwaited, at(11)).await.unwrap());

    for (job, expected) in jobs.iter().zip([true, false, false, false]) {
        assert_eq!(store.give_up_provider_job(job, NO_ANSWER, at(13)).await.unwrap(), expected, "{job:?}");
        assert!(!store.give_up_provider_job(job, NO_ANSWER, at(14)).await.unwrap(), "once");
    }
    let expected = [
        (given_up, Some(JobEnd::GivenUp), Some(Preparation::Stopped)),
        (reported, Some(JobEnd::ReportAwaited), None),
        (renewed, None, None),
        (prepared, Some(JobEnd::CustomerAwaited), Some(page)),
    ];
    for (id, end, preparation) in expected {
        assert_eq!((end_of(id).await, store.preparation(id).await.unwrap()), (end, preparation));
    }
    store.complete(given_up, Outcome::Failed, ResultSource::PROVIDER, at(15)).await.unwrap();
    assert!(!store.give_up_provider_job(&jobs[0], NO_ANSWER, at(16)).await.unwrap());
    audited(&*store).await;
}

pub(in crate::store) async fn jobs_survive_reopening(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let claimed = created(&*store, due("claimed", 0)).await;
    let waiting = created(&*store, due("waiting", 50)).await;
    assert_eq!(store.claim_provider_jobs(claim(at(0), at(10), 10)).await.unwrap().len(), 1);
    drop(store);
    let store = backend.open().await;
    // A backend that only one process serves may end the lease at once.
    let next = next(&*store).await;
    assert!(next.is_some_and(|next| next <= at(10)), "{next:?}");
    let jobs = store.claim_provider_jobs(claim(at(60), at(100), 10)).await.unwrap();
    assert_eq!(summary(&jobs), [(claimed, 1), (waiting, 0)], "tasks of a process that died are claimed again");
}

pub(in crate::store) async fn a_job_is_claimed_once_by_many(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut open = HashSet::new();
    for number in 0..60 {
        open.insert(created(&*store, due(&number.to_string(), number)).await);
    }
    let claimers: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.claim_provider_jobs(claim(at(100), at(1000), 4)).await.unwrap() })
        })
        .collect();
    for claimer in claimers {
        for job in claimer.await.unwrap() {
            assert!(open.remove(&job.operation.id), "no job is claimed twice");
        }
    }
    assert!(open.is_empty(), "every job is claimed");
}

pub(in crate::store) async fn queues_of_shops_are_separate(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let in_shop = |code: &str, text: &str, offset| {
        let mut draft = due(text, offset);
        draft.operation.shop = ShopCode::new(code).unwrap();
        draft
    };
    let mut expected = Vec::new();
    for (code, offsets) in [("a", [30, 10]), ("card-eur", [20, 40]), ("card-eur-2", [5, 6])] {
        for offset in offsets {
            created(&*store, in_shop(code, &format!("{code} {offset}"), offset)).await;
        }
        expected.push((ShopCode::new(code).unwrap(), at(*offsets.iter().min().unwrap())));
    }
    let queues = async || {
        let queues = store.provider_queues().await.unwrap().into_iter().map(|queue| (queue.shop, queue.due));
        let mut queues: Vec<_> = queues.collect();
        queues.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        queues
    };
    assert_eq!(queues().await, expected);
    let claimed = store.claim_provider_jobs(claim(at(100), at(500), 10)).await.unwrap();
    assert_eq!(claimed.len(), 2);
    assert!(claimed.iter().all(|job| job.operation.shop.as_str() == "card-eur"), "only jobs of this shop");
    expected[1].1 = at(500);
    assert_eq!(queues().await, expected);
    for job in claimed {
        store.end_provider_job(job.operation.id, JobEnd::ReportAwaited, NOW).await.unwrap();
    }
    expected.remove(1);
    assert_eq!(queues().await, expected);
}

pub(in crate::store) async fn a_job_can_be_postponed(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, due("postponed", 0)).await;
    let first = store.claim_provider_jobs(claim(at(0), at(10), 10)).await.unwrap();
    assert_eq!(summary(&first), [(id, 0)]);
    for _ in 0..2 {
        store.postpone_provider_job(&first[0], at(77), Some((at(1), NO_ANSWER))).await.unwrap();
    }
    assert_eq!(next(&*store).await, Some(at(77)));
    assert!(store.claim_provider_jobs(claim(at(76), at(200), 10)).await.unwrap().is_empty());
    let second = store.claim_provider_jobs(claim(at(77), at(200), 10)).await.unwrap();
    assert_eq!(summary(&second), [(id, 1)]);
    store.postpone_provider_job(&first[0], at(90), Some((at(78), "late"))).await.unwrap();
    assert!(!store.give_up_provider_job(&first[0], "late", at(79)).await.unwrap());
    assert_eq!(next(&*store).await, Some(at(200)), "a claim that was replaced changes nothing");
    let failure = store.operation_detail(id).await.unwrap().unwrap().job.unwrap().failure;
    assert_eq!(failure.as_deref(), Some(NO_ANSWER));
    store.complete(id, Outcome::Failed, ResultSource::PROVIDER, at(80)).await.unwrap();
    store.postpone_provider_job(&second[0], at(90), Some((at(81), NO_ANSWER))).await.unwrap();
    assert_eq!(next(&*store).await, None, "a task that has ended does not return");
}

pub(in crate::store) async fn postponed_jobs_keep_their_time_over_a_restart(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, due("postponed", 0)).await;
    let jobs = store.claim_provider_jobs(claim(at(0), at(10), 10)).await.unwrap();
    store.postpone_provider_job(&jobs[0], at(1000), None).await.unwrap();
    drop(store);
    let store = backend.open().await;
    assert_eq!(next(&*store).await, Some(at(1000)));
    assert_eq!(summary(&store.claim_provider_jobs(claim(at(1000), at(2000), 10)).await.unwrap()), [(id, 1)]);
}

pub(in crate::store) async fn misdated_tasks_are_made_due(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let now = at(1000);
    let correct = async |kind, waits, limit| {
        let misdated = Misdated { kind, now, waits, limit };
        store.make_due(misdated).await.unwrap()
    };
    let overlong = |queue: &str, latest| MisdatedWaits::Overlong(vec![("a".into(), latest), (queue.into(), latest)]);
    // Queued at the time of `NOW`: one is leased for too long, others wait until then, or a little.
    for (text, offset) in [("leased", 0), ("soon", 1010), ("late", 9000), ("later", 9001)] {
        created(&*store, due(text, offset)).await;
    }
    assert_eq!(store.claim_provider_jobs(claim(at(0), at(9000), 10)).await.unwrap().len(), 1);
    let claimable = async || {
        let jobs = store.claim_provider_jobs(claim(now, at(1_000_000), 10)).await.unwrap();
        let mut texts: Vec<_> = jobs.iter().map(|job| job.operation.order_id.as_str().to_owned()).collect();
        texts.sort_unstable();
        texts
    };
    assert_eq!(correct(TaskKind::ProviderJob, overlong("card-eur", at(9001)), 10).await, 0, "that long is allowed");
    assert_eq!(correct(TaskKind::ProviderJob, overlong("other", at(1500)), 10).await, 0, "another queue");
    assert_eq!(correct(TaskKind::Callback, overlong("card-eur", at(1500)), 10).await, 0, "another kind");
    assert_eq!(claimable().await, Vec::<String>::new());
    assert_eq!(correct(TaskKind::ProviderJob, overlong("card-eur", at(1500)), 2).await, 2, "no more than the limit");
    assert_eq!(correct(TaskKind::ProviderJob, overlong("card-eur", at(1500)), 2).await, 1);
    assert_eq!(claimable().await, ["late", "later", "leased"]);
    assert_eq!(correct(TaskKind::ProviderJob, MisdatedWaits::QueuedAfter(NOW), 10).await, 0, "queued before");
    let before = UnixMillis(NOW.0 - 1);
    assert_eq!(correct(TaskKind::ProviderJob, MisdatedWaits::QueuedAfter(before), 10).await, 1, "leases are kept");
    assert_eq!(claimable().await, ["soon"]);
    audited(&*store).await;
}

pub(in crate::store) async fn the_kind_of_provider_comes_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut draft = due("http", 1);
    draft.operation.provider = ProviderKind::Http;
    draft.provider_job = Some(at(1));
    created(&*store, draft).await;
    created(&*store, due("sandbox", 2)).await;
    let claimed = store.claim_provider_jobs(claim(at(2), at(10), 10)).await.unwrap();
    assert_eq!(
        claimed.iter().map(|job| job.operation.provider).collect::<Vec<_>>(),
        [ProviderKind::Http, ProviderKind::Sandbox]
    );
}

pub(in crate::store) async fn an_audit_runs_during_creates(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for number in 0..1200 {
        created(&*store, due(&format!("before {number}"), 0)).await;
    }
    let writing = Arc::clone(&store);
    let writer = tokio::spawn(async move {
        for number in 0..200 {
            let id = created(&*writing, due(&format!("beside {number}"), 0)).await;
            writing.complete(id, Outcome::Failed, ResultSource::PROVIDER, at(1)).await.unwrap();
        }
    });
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    while !writer.is_finished() {
        let steps = Arc::clone(&steps);
        let audit = store.audit(Arc::new(move |step| steps.lock().unwrap().push(step))).await.unwrap();
        assert!(audit.is_clean() && audit.operations >= 1200, "{audit:?}");
    }
    writer.await.unwrap();
    assert_eq!(audited(&*store).await.operations, 1400);
    let steps = steps.lock().unwrap();
    assert!(steps.iter().any(|step| step.done > 0), "progress is reported during the audit");
    assert!(steps.iter().all(|step| step.done <= step.total));
}
