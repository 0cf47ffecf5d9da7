//! A node whose clock is wrong leaves the queues to the others.

use crate::store::Resolutions as _;
use std::time::Duration;

use super::*;
use crate::domain::{Outcome, ShopCode, Status};
use crate::store::conformance::operations::resolution;
use crate::store::conformance::{NOW, created, deposit, merchant, withdrawal};
use crate::store::{
    CallbackClaim, CallbackTarget, ConfirmOutcome, ExpireRequest, NewResolution, Outbox as _, ResolveOutcome,
};

async fn node_with_a_clock(place: &Place, ahead: i64) -> PostgresStore {
    let node = place.open_node();
    let set = node.thread.run(async move |node| {
        node.clock.set(ahead);
        Ok(())
    });
    set.await.unwrap();
    node
}

fn later(seconds: i64) -> UnixMillis {
    UnixMillis(NOW.0 + seconds * 1000)
}

fn jobs() -> Claim {
    Claim { shop: ShopCode::new("card-eur").unwrap(), now: later(1), lease_until: later(9), limit: 9 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_clock_is_wrong_claims_nothing() {
    let Some(place) = Place::new() else { return };
    let right = place.open_node();
    let mut queued = deposit("acme", "order");
    queued.provider_job = Some(NOW);
    created(&right, queued).await;
    for (ahead, stated) in [(86_400_000, "86400 s ahead of"), (-31_000, "31 s behind")] {
        let wrong = node_with_a_clock(&place, ahead).await;
        let claim = CallbackClaim { shares: Vec::new(), now: later(1), lease_until: later(9) };
        let targets = [CallbackTarget::new(&merchant("acme"), CallbackTarget::ENGINE)].into();
        let expiry = ExpireRequest { targets, queued_until: later(1), reason: "late", limit: 9 };
        let refusals = [
            wrong.claim_provider_jobs(jobs()).await.err(),
            wrong.claim_callbacks(claim).await.err(),
            wrong.expire_callbacks(expiry).await.err(),
            wrong.forget_callbacks(later(1), 9).await.err(),
        ];
        for refusal in refusals {
            let Some(StoreError::Unavailable(reason)) = refusal else { panic!("{refusal:?}") };
            assert!(reason.contains(stated), "{reason}");
        }
        // The requests of merchants are served.
        created(&wrong, deposit("acme", &format!("order-{ahead}"))).await;
    }
    assert_eq!(right.claim_provider_jobs(jobs()).await.unwrap().len(), 1);
    let near = node_with_a_clock(&place, 29_999).await;
    assert!(near.claim_provider_jobs(jobs()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_wrong_clock_queues_is_due_by_the_right_one() {
    let Some(place) = Place::new() else { return };
    let right = place.open_node();
    for (ahead, text) in [(3_600_000, "ahead"), (-3_600_000, "behind")] {
        let wrong = node_with_a_clock(&place, ahead).await;
        let there = UnixMillis(NOW.0 + ahead);
        for (batched, text) in [(true, format!("{text} batched")), (false, format!("{text} alone"))] {
            let mut queued = deposit("acme", &text);
            queued.operation.created_at = there;
            queued.provider_job = Some(there.plus(Duration::from_secs(1)));
            if batched {
                queued.opening = None;
            }
            let id = created(&wrong, queued).await;
            let due = right.operation_detail(id).await.unwrap().unwrap().job.unwrap().due;
            assert_eq!(due, later(1), "{text}");
            let shop = ShopCode::new("card-eur").unwrap();
            let claim = Claim { shop, now: later(1), lease_until: later(9), limit: 99 };
            let jobs = right.claim_provider_jobs(claim).await.unwrap();
            let job = jobs.iter().find(|job| job.operation.id == id).unwrap();
            wrong.postpone_provider_job(job, there.plus(Duration::from_secs(2)), None).await.unwrap();
            assert_eq!(right.operation_detail(id).await.unwrap().unwrap().job.unwrap().due, later(2), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolution_lapses_by_the_right_clock() {
    let Some(place) = Place::new() else { return };
    let right = place.open_node();
    let (just_before, just_after) = (Duration::from_mins(24 * 60 - 1), Duration::from_mins(24 * 60 + 1));
    let days_before = |now: UnixMillis| UnixMillis(now.0 - 86_400_000);
    for ahead in [3_600_000, -3_600_000] {
        let wrong = node_with_a_clock(&place, ahead).await;
        for (by, other, read) in [(&right, &wrong, ahead), (&wrong, &right, 0)] {
            let made = UnixMillis(NOW.0 + ahead - read);
            let waiting = async |order: &str| {
                let id = created(&right, withdrawal("acme", &format!("{order} {ahead} {read}"))).await;
                let new = NewResolution { at: made, ..resolution(id, Outcome::Failed, "ada", true) };
                assert_eq!(by.resolve(new.clone()).await.unwrap(), ResolveOutcome::Waits);
                new
            };
            let confirmed = async |new: NewResolution, after: Duration| {
                let now = UnixMillis(NOW.0 + read).plus(after);
                other.confirm(new.transaction_id, new.id, "bob".into(), Some(days_before(now)), now).await.unwrap()
            };
            let (waits, lapsed) = (waiting("waits").await, waiting("lapsed").await);
            let (waits, lapsed) = (confirmed(waits, just_before).await, confirmed(lapsed, just_after).await);
            assert_eq!(waits, ConfirmOutcome::Resolved(Status::Failed), "{ahead} {read}");
            assert_eq!(lapsed, ConfirmOutcome::NotWaiting, "{ahead} {read}");
        }
    }
}
