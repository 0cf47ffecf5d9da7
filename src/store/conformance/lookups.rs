//! What the console's pages read beside the lists: single rows, and counts with a bound.

use super::outbox::{acme, answered_with, at, claim, claimed, everything, failed, record, relayed_create, tries};
use super::*;
use crate::store::{
    Backlog, CallbackId, CallbackNext, CallbackQuery, CallbackState, CallbackSubject, CallbackTarget, Claim, EntryId,
    JobEnd, JournalEntry, PendingCreate, ProviderJobState, Relayed, Unanswered,
};

pub(in crate::store) async fn an_entry_is_found_by_the_engines_id(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut expected: Vec<JournalEntry> = Vec::new();
    for (number, name) in (1..).zip(["acme", "bolt", "cosy"]) {
        let entry = journaled(&*store, pending_create(name, "order")).await;
        expected.push(store.answer(entry, engine_answer(number)).await.unwrap().unwrap());
    }
    journaled(&*store, pending_create("acme", "open")).await;
    for (number, entry) in (1..).zip(expected) {
        let id = engine_answer(number).transaction_id;
        assert_eq!(store.entry_of_transaction(&id).await.unwrap(), Some(entry));
    }
    for id in ["", "0", "4", "01", "1\0", "acme"] {
        assert_eq!(store.entry_of_transaction(id).await.unwrap(), None, "{id:?}");
    }
}

pub(in crate::store) async fn unanswered_entries_are_counted(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let counted = async |most| {
        let Unanswered { open, in_doubt, .. } = store.unanswered(most).await.unwrap();
        [open, in_doubt].map(|Backlog { count, oldest }| (count, oldest.map(|oldest| oldest.0 - NOW.0)))
    };
    assert_eq!(counted(9).await, [(0, None), (0, None)]);
    let mut entries = Vec::new();
    for number in 0..6 {
        let create = PendingCreate { created_at: at(number), ..pending_create("acme", &number.to_string()) };
        entries.push(journaled(&*store, create).await);
    }
    assert_eq!(counted(9).await, [(6, Some(0)), (0, None)]);
    for entry in &entries[..2] {
        store.mark_unknown(entry.id, at(100)).await.unwrap();
    }
    assert_eq!(counted(9).await, [(4, Some(2)), (2, Some(0))]);
    assert_eq!(counted(1).await, [(1, Some(2)), (1, Some(0))], "the counts are bounded");
    assert_eq!(counted(0).await, [(0, Some(2)), (0, Some(0))]);
    for (number, entry) in (1..).zip(entries.drain(1..5)) {
        store.answer(entry, engine_answer(number)).await.unwrap().unwrap();
    }
    assert_eq!(counted(9).await, [(1, Some(5)), (1, Some(0))]);
}

pub(in crate::store) async fn the_state_of_a_job_is_read(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut draft = withdrawal("acme", "due");
    draft.provider_job = Some(at(10));
    let id = created(&*store, draft).await;
    let other = created(&*store, withdrawal("acme", "nothing to do")).await;
    let queued = ProviderJobState {
        end: None,
        queued_at: at(0),
        due: at(10),
        is_claimed: false,
        attempts: 0,
        failed_at: None,
        failure: None,
    };
    assert_eq!(job(&*store, id).await, Some(queued.clone()));
    assert_eq!(job(&*store, other).await, None);
    let shop = ShopCode::new("card-eur").unwrap();
    let jobs = store.claim_provider_jobs(Claim { shop, now: at(10), lease_until: at(50), limit: 9 }).await.unwrap();
    assert_eq!(jobs.len(), 1);
    let claimed = ProviderJobState { due: at(50), is_claimed: true, attempts: 1, ..queued };
    assert_eq!(job(&*store, id).await, Some(claimed.clone()));
    assert_eq!(store.unanswered(9).await.unwrap().jobs, Backlog::default());
    let mut jobs = jobs;
    for attempt in 0..2 {
        store.postpone_provider_job(&jobs[0], at(20), Some((at(12), NO_ANSWER))).await.unwrap();
        let shop = ShopCode::new("card-eur").unwrap();
        let again = Claim { shop, now: at(20), lease_until: at(50), limit: 9 };
        jobs = store.claim_provider_jobs(again).await.unwrap();
        assert_eq!(jobs[0].attempts, attempt + 1);
    }
    let waiting = Backlog { count: 1, oldest: Some(at(0)) };
    assert_eq!(store.unanswered(9).await.unwrap().jobs, waiting, "it is requested for the third time");
    // Nothing was requested: the time and the reason of before stay.
    store.postpone_provider_job(&jobs[0], at(70), None).await.unwrap();
    let failure = Some(NO_ANSWER.into());
    let postponed =
        ProviderJobState { due: at(70), is_claimed: false, attempts: 3, failed_at: Some(at(12)), failure, ..claimed };
    assert_eq!(job(&*store, id).await, Some(postponed));
    store.end_provider_job(id, JobEnd::ReportAwaited, NOW).await.unwrap();
    assert_eq!(job(&*store, id).await.map(|job| job.end), Some(Some(JobEnd::ReportAwaited)));
}

pub(in crate::store) async fn a_callback_is_found_by_its_subject(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, failed("order", 0)).await;
    let pending = created(&*store, deposit("acme", "pending")).await;
    let entry = journaled(&*store, relayed_create("remote", Some("https://acme.example/"))).await;
    assert_eq!(store.relayed(entry.id, at(1)).await.unwrap(), Relayed::Queued);
    let job = claimed(&*store, 0, 100).await.remove(0);
    store.callback_tried(job.lease(), answered_with(500, 3), CallbackNext::Failed).await.unwrap();
    let of = async |subject| store.callback_of(subject).await.unwrap();
    let expected = (record(&*store, job.id).await, tries(&*store, job.id).await);
    assert_eq!((expected.0.state, expected.1.len()), (CallbackState::Failed, 1));
    assert_eq!(of(CallbackSubject::Operation(id)).await, Some(expected));
    assert_eq!(of(CallbackSubject::Operation(pending)).await, None);
    let (remote, none) = of(CallbackSubject::Entry(entry.id)).await.unwrap();
    assert_eq!((remote.order_id, none.len()), (entry.create.order_id, 0));
    assert_eq!(of(CallbackSubject::Entry(EntryId(entry.id.0 ^ 1))).await, None);
    let stranger = CallbackId::new(job.id.subject(), job.id.nonce() ^ 1);
    assert_eq!(store.callback(stranger).await.unwrap(), None);
}

pub(in crate::store) async fn failed_callbacks_are_resent_once_by_many(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for number in 0..40 {
        let mut draft = failed(&number.to_string(), number);
        draft.operation.merchant = merchant(if number % 4 == 0 { "bolt" } else { "acme" });
        draft.operation.id = fresh_id(&draft.operation.merchant);
        created(&*store, draft).await;
    }
    let shares = ["acme", "bolt"].map(|name| (CallbackTarget::new(&merchant(name), acme().origin()), 100));
    for job in store.claim_callbacks(claim(&shares, 100, 200)).await.unwrap() {
        store.callback_tried(job.lease(), answered_with(410, 101), CallbackNext::Failed).await.unwrap();
    }
    let query = CallbackQuery { states: vec![CallbackState::Failed], merchant: Some(merchant("acme")), ..everything() };
    let count = async |query: &CallbackQuery| store.count_callbacks(query.clone()).await.unwrap();
    assert_eq!(count(&query).await, 30);
    assert_eq!(count(&CallbackQuery { limit: 7, ..query.clone() }).await, 7, "the count is bounded");
    assert_eq!(count(&CallbackQuery { until: Some(at(19)), ..query.clone() }).await, 15);
    assert_eq!(count(&CallbackQuery { order_id: Some(order("3")), ..query.clone() }).await, 1);
    assert_eq!(count(&CallbackQuery { states: vec![CallbackState::Pending], ..query.clone() }).await, 0);
    let task = |_| {
        let (store, query) = (Arc::clone(&store), query.clone());
        tokio::spawn(async move { store.resend_failed(query, at(300)).await.unwrap().0 })
    };
    let mut resent = 0;
    for task in (0..8).map(task).collect::<Vec<_>>() {
        resent += task.await.unwrap();
    }
    assert_eq!((resent, count(&query).await), (30, 0));
    assert_eq!(count(&CallbackQuery { merchant: None, ..query.clone() }).await, 10, "another merchant's stay failed");
    assert_eq!(claimed(&*store, 300, 400).await.len(), 30, "each is sent once");
    assert_eq!(store.resend_failed(query, at(350)).await.unwrap(), (0, None));
    assert!(claimed(&*store, 350, 450).await.is_empty());
    audited(&*store).await;
}

/// Reads an operation's provider job.
async fn job(store: &dyn Store, id: TransactionId) -> Option<ProviderJobState> {
    store.operation_detail(id).await.unwrap()?.job
}
