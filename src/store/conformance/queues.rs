//! The queues of the outbox: one for each merchant and origin, listed in parts of which no merchant takes all.

use super::outbox::{at, claim, everything, expiry, failed};
use super::*;
use crate::domain::MerchantId;
use crate::store::{
    CallbackNext, CallbackQuery, CallbackQueue, CallbackState, CallbackTarget, CallbackTry, TryOutcome,
};

fn target(name: &str, origin: &str) -> CallbackTarget {
    CallbackTarget::new(&merchant(name), origin)
}

/// A deposit of a merchant that is created FAILED at a time, with a callback to this origin.
fn failed_of(name: &str, order_text: &str, offset: i64, origin: &str) -> NewOperation {
    let mut draft = failed(order_text, offset);
    draft.operation.id = fresh_id(&merchant(name));
    draft.operation.merchant = merchant(name);
    draft.operation.callback_url = CallbackUrl::new_allowing_http(&format!("{origin}/cb")).unwrap();
    draft.opening = None;
    draft
}

async fn listed(store: &dyn Store, after: &[CallbackTarget]) -> Vec<CallbackQueue> {
    let mut queues = store.callback_queues(after.to_vec()).await.unwrap();
    queues.sort_by(|one, other| one.target.cmp(&other.target));
    queues
}

pub(in crate::store) async fn merchants_have_queues_of_their_own(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let platform = "https://platform.example:443";
    let [acme, beta] = ["acme", "beta"].map(|name| target(name, platform));
    for (name, order_text, offset) in [("acme", "a1", 1), ("acme", "a2", 2), ("beta", "b1", 3)] {
        created(&*store, failed_of(name, order_text, offset, "https://platform.example")).await;
    }
    let queue =
        |target: &CallbackTarget, offset, tried| CallbackQueue { target: target.clone(), due: at(offset), tried };
    assert_eq!(listed(&*store, &[]).await, [queue(&acme, 1, false), queue(&beta, 3, false)]);
    let jobs = store.claim_callbacks(claim(&[(beta.clone(), 9)], 10, 100)).await.unwrap();
    assert_eq!(jobs.iter().map(|job| &job.target).collect::<Vec<_>>(), [&beta]);
    assert_eq!(listed(&*store, &[]).await, [queue(&acme, 1, false), queue(&beta, 100, true)]);

    // A callback that was given up or resent returns to the queue of its merchant.
    let tried = CallbackTry { at: at(11), duration: std::time::Duration::ZERO, outcome: TryOutcome::Status(500) };
    store.callback_tried(jobs[0].lease(), tried, CallbackNext::Failed).await.unwrap();
    let of_others = expiry(at(50), 9).targets;
    let of_beta = crate::store::ExpireRequest { targets: [beta.clone()].into(), ..expiry(at(50), 9) };
    assert!(!of_others.contains(&acme));
    assert_eq!(store.expire_callbacks(of_beta).await.unwrap(), 0, "those of another merchant are no target's");
    let of_acme = crate::store::ExpireRequest { targets: [acme.clone()].into(), ..expiry(at(1), 9) };
    assert_eq!(store.expire_callbacks(of_acme).await.unwrap(), 1);
    assert_eq!(listed(&*store, &[]).await, [queue(&acme, 2, false)]);
    let failed = CallbackQuery { states: vec![CallbackState::Failed], ..everything() };
    assert_eq!(store.resend_failed(failed, at(60)).await.unwrap().0, 2);
    assert_eq!(listed(&*store, &[]).await, [queue(&acme, 2, false), queue(&beta, 60, false)]);
    audited(&*store).await;
}

/// Of a merchant with more queues than are listed at once, every read lists the next ones; the others' are in each.
pub(in crate::store) async fn no_merchants_queues_hide_those_of_others(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let many = CallbackQueue::MAX_OF_MERCHANT + 3;
    // Names that sort before, beside and behind each other's queues.
    let merchants = ["a", "a-b", "a.b", "aa", "A"];
    let creates = (0..many).map(|number| ("a", format!("https://shop-{number:04}.example")));
    let creates = creates.chain(merchants[1..].iter().map(|name| (*name, "https://shop.example".to_owned())));
    for (number, (name, origin)) in creates.enumerate() {
        created(&*store, failed_of(name, &number.to_string(), 1, &origin)).await;
    }
    let of = |queues: &[CallbackQueue], merchant: &MerchantId| {
        let own = queues.iter().filter(|queue| queue.target.merchant() == merchant.as_str());
        own.map(|queue| queue.target.clone()).collect::<Vec<_>>()
    };
    let [large, others @ ..] = merchants.map(merchant);
    let mut after = Vec::new();
    let mut seen = Vec::new();
    for count in [CallbackQueue::MAX_OF_MERCHANT, 3] {
        let queues = listed(&*store, &after).await;
        let own = of(&queues, &large);
        assert_eq!((own.len(), queues.len()), (count, count + others.len()));
        assert!(others.iter().all(|other| of(&queues, other).len() == 1));
        after = own.last().cloned().into_iter().collect();
        seen.extend(own);
    }
    assert!(seen.is_sorted() && seen.len() == many);
    assert_eq!(listed(&*store, &after).await.len(), others.len(), "nothing comes after the last one");
    assert_eq!(listed(&*store, &[target("zeta", "https://x:443")]).await.len(), 1024 + others.len());
}
