//! The queue of provider jobs.

use std::collections::HashSet;

use super::*;
use crate::domain::Outcome;
use crate::store::{Claim, NewJob, ProviderJob, ProviderKind};

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

fn due(order_text: &str, offset: i64) -> Draft {
    let mut draft = withdrawal("acme", order_text);
    draft.provider_job = Some(NewJob { provider: ProviderKind::Sandbox, due: at(offset) });
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

pub(in crate::store) async fn jobs_are_claimed_in_order_and_leased(backend: &dyn Backend) {
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
    assert_eq!(next(&*store).await, Some(at(100)), "leased jobs count");

    assert!(store.claim_provider_jobs(claim(at(99), at(300), 10)).await.unwrap().is_empty());
    let again = store.claim_provider_jobs(claim(at(100), at(300), 1)).await.unwrap();
    assert_eq!(summary(&again), [(early, 1)], "an expired lease is taken up again, within the limit");
    let again = store.claim_provider_jobs(claim(at(250), at(300), 10)).await.unwrap();
    assert_eq!(summary(&again), [(middle, 1), (late, 1)]);
}

pub(in crate::store) async fn a_result_ends_its_job(backend: &dyn Backend) {
    let store = backend.open().await;
    for (text, outcome) in [("paid", Outcome::Success { payer: None }), ("refused", Outcome::Failed)] {
        let id = created(&*store, due(text, 0)).await;
        store.settle(id, outcome, at(1)).await.unwrap();
        assert_eq!(next(&*store).await, None);
    }
    // A claimed one as well.
    let id = created(&*store, due("claimed", 0)).await;
    assert_eq!(store.claim_provider_jobs(claim(at(0), at(10), 10)).await.unwrap().len(), 1);
    store.settle(id, Outcome::Failed, at(1)).await.unwrap();
    assert!(store.claim_provider_jobs(claim(at(1000), at(2000), 10)).await.unwrap().is_empty());
}

pub(in crate::store) async fn a_job_can_be_ended(backend: &dyn Backend) {
    let store = backend.open().await;
    let id = created(&*store, due("ended", 0)).await;
    let other = created(&*store, due("other", 5)).await;
    store.end_provider_job(id).await.unwrap();
    store.end_provider_job(id).await.unwrap();
    assert_eq!(summary(&store.claim_provider_jobs(claim(at(10), at(20), 10)).await.unwrap()), [(other, 0)]);
    assert_eq!(store.by_id(id).await.unwrap().unwrap().operation.state, State::Pending);
}

pub(in crate::store) async fn jobs_survive_reopening(backend: &dyn Backend) {
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
    assert_eq!(summary(&jobs), [(claimed, 1), (waiting, 0)], "the work of a process that died is taken up again");
}

pub(in crate::store) async fn a_job_is_claimed_once_by_many(backend: &dyn Backend) {
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
