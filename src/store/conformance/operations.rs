//! Cases of operations after their creation: the list, attention, asking again, and results by hand.

use super::*;
use crate::domain::{
    CallbackSender, CustomerAccountId, Direction, FailureCause, Outcome, ProviderReason, Status, UnixDay, WaitsFor,
};
use crate::store::{
    ActionRecord, AskOutcome, AttentionReason, CallbackSubject, Claim, CompletionOutcome, ConfirmOutcome, DailyLimit,
    EndedJob, FoundHome, JobEnd, LateRule, NewResolution, OperationQuery, ResolutionId, ResolutionState,
    ResolveOutcome, ResultSource,
};

const SUCCESS: Outcome = Outcome::Success { payer: None };

fn at(seconds: i64) -> UnixMillis {
    UnixMillis(NOW.0 + seconds * 1000)
}

fn shop() -> ShopCode {
    ShopCode::new("card-eur").unwrap()
}

/// A query without filters.
fn any() -> OperationQuery {
    OperationQuery { limit: 200, ..OperationQuery::default() }
}

async fn ids(store: &dyn Store, query: OperationQuery) -> Vec<TransactionId> {
    let found = store.operations(query, None).await.unwrap();
    found.into_iter().map(|listed| listed.stored.operation.id).collect()
}

async fn waits_for(store: &dyn Store, id: TransactionId) -> Option<WaitsFor> {
    store.listed(id, None).await.unwrap().unwrap().waits_for
}

/// A withdrawal of an HTTP provider, whose job is due at once.
fn payout(merchant_name: &str, order: &str) -> NewOperation {
    let mut draft = withdrawal(merchant_name, order);
    draft.operation.provider = ProviderKind::Http;
    draft.provider_job = Some(NOW);
    draft
}

pub(in crate::store) fn resolution(
    id: TransactionId,
    outcome: Outcome,
    user: &str,
    needs_confirmation: bool,
) -> NewResolution {
    NewResolution {
        id: ResolutionId(fresh_id(&merchant("acme"))),
        transaction_id: id,
        outcome,
        reason: "by the statement".into(),
        user: user.into(),
        at: NOW,
        needs_confirmation,
    }
}

pub(in crate::store) async fn operations_are_listed_by_each_filter(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut first = deposit("acme", "one");
    first.v1 = Some(CallbackSender::Directly);
    let first = created(&*store, first).await;
    let second = created(&*store, payout("acme", "two")).await;
    let mut other_shop = deposit("bolt", "three");
    other_shop.operation.shop = ShopCode::new("other").unwrap();
    let third = created(&*store, other_shop).await;
    let mut refused = deposit("bolt", "four");
    refused.operation.state = State::Finished { outcome: Outcome::Failed, at: NOW };
    refused.failure = Some(FailureCause::RefusedAddress);
    let fourth = created(&*store, refused).await;
    let fifth = created(&*store, payout("acme", "five")).await;
    let mut through_v1 = payout("acme", "six");
    through_v1.v1 = Some(CallbackSender::Directly);
    let sixth = created(&*store, through_v1).await;
    let seventh = created(&*store, deposit("acme", "seven")).await;
    let mut of_another = deposit("bolt", "eight");
    of_another.v1 = Some(CallbackSender::Directly);
    let eighth = created(&*store, of_another).await;
    store.complete(second, SUCCESS, ResultSource::PROVIDER, at(1)).await.unwrap();
    store.end_provider_job(fifth, JobEnd::GivenUp, at(1)).await.unwrap();
    for id in [first, third] {
        assert_eq!(
            store.ask_again(id, at(1)).await.unwrap(),
            AskOutcome::Due,
            "it was made without a job, and has one now"
        );
    }

    let mut all = [first, second, third, fourth, fifth, sixth, seventh, eighth];
    all.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    let among = |wanted: &[TransactionId]| all.iter().copied().filter(|id| wanted.contains(id)).collect::<Vec<_>>();
    let acme = || Some(merchant("acme"));
    let through = |is_v1| OperationQuery { is_v1: Some(is_v1), ..any() };
    for (query, expected) in [
        (any(), &all[..]),
        (OperationQuery { merchant: acme(), ..any() }, &[first, second, fifth, sixth, seventh]),
        (OperationQuery { merchant: Some(merchant("unknown")), ..any() }, &[]),
        (OperationQuery { shop: ShopCode::new("other").ok(), ..any() }, &[third]),
        (OperationQuery { direction: Some(Direction::Payout), ..any() }, &[second, fifth, sixth]),
        (OperationQuery { status: Some(Status::Pending), ..any() }, &[first, third, fifth, sixth, seventh, eighth]),
        (OperationQuery { status: Some(Status::Pending), ..through(true) }, &[first, sixth, eighth]),
        (OperationQuery { status: Some(Status::Pending), ..through(false) }, &[third, fifth, seventh]),
        (OperationQuery { status: Some(Status::Success), ..any() }, &[second]),
        (OperationQuery { merchant: Some(merchant("bolt")), ..any() }, &[third, fourth, eighth]),
        (OperationQuery { status: Some(Status::Failed), ..any() }, &[fourth]),
        (through(true), &[first, sixth, eighth]),
        (through(false), &[second, third, fourth, fifth, seventh]),
        (OperationQuery { merchant: acme(), ..through(true) }, &[first, sixth]),
        (OperationQuery { merchant: acme(), ..through(false) }, &[second, fifth, seventh]),
        (OperationQuery { merchant: acme(), status: Some(Status::Pending), ..any() }, &[first, fifth, sixth, seventh]),
        (OperationQuery { merchant: acme(), status: Some(Status::Success), ..any() }, &[second]),
        (OperationQuery { merchant: acme(), status: Some(Status::Failed), ..any() }, &[]),
        (OperationQuery { created_from: Some(NOW), ..any() }, &all),
        (OperationQuery { created_from: Some(at(3600)), ..any() }, &[]),
        (OperationQuery { created_to: Some(NOW), ..any() }, &[]),
        (OperationQuery { created_to: Some(at(3600)), ..any() }, &all),
    ] {
        assert_eq!(ids(&*store, query.clone()).await, among(expected), "{query:?}");
        let mut paged = Vec::new();
        let mut page = OperationQuery { limit: 1, ..query.clone() };
        while let Some(id) = ids(&*store, page.clone()).await.pop() {
            paged.push(id);
            page.after = Some(id);
        }
        assert_eq!(paged, among(expected), "in pages of one: {query:?}");
        for listed in store.operations(any(), None).await.unwrap() {
            let id = listed.stored.operation.id;
            assert_eq!(query.matches(&listed), expected.contains(&id), "{query:?} {id}");
        }
    }
    for (id, outcome) in [(first, SUCCESS), (third, SUCCESS), (seventh, Outcome::Failed), (eighth, Outcome::Failed)] {
        store.complete(id, outcome, ResultSource::PROVIDER, at(2)).await.unwrap();
    }
    for (query, expected) in [
        (any(), &all[..]),
        (OperationQuery { status: Some(Status::Pending), ..any() }, &[fifth, sixth]),
        (OperationQuery { status: Some(Status::Success), ..any() }, &[first, second, third]),
        (OperationQuery { status: Some(Status::Failed), ..any() }, &[fourth, seventh, eighth]),
        (OperationQuery { merchant: acme(), ..any() }, &[first, second, fifth, sixth, seventh]),
        (OperationQuery { merchant: acme(), status: Some(Status::Success), ..any() }, &[first, second]),
        (OperationQuery { merchant: acme(), status: Some(Status::Pending), ..any() }, &[fifth, sixth]),
        (OperationQuery { merchant: acme(), status: Some(Status::Failed), ..any() }, &[seventh]),
    ] {
        assert_eq!(ids(&*store, query.clone()).await, among(expected), "after their end: {query:?}");
    }
}

pub(in crate::store) async fn causes_come_back(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let cause = async |id| store.listed(id, None).await.unwrap().unwrap().failure;
    let plain = |cause| Some((cause, ProviderReason::default()));
    for wanted in FailureCause::ALL {
        let mut draft = deposit("acme", wanted.as_str());
        draft.operation.state = State::Finished { outcome: Outcome::Failed, at: NOW };
        draft.failure = Some(wanted);
        assert_eq!(cause(created(&*store, draft).await).await, plain(wanted));
    }
    let reason = ProviderReason { code: Some("51".into()), text: Some("no funds".into()) };
    let id = created(&*store, payout("acme", "words")).await;
    let source = ResultSource::Provider(reason.clone());
    store.complete(id, Outcome::Failed, source, at(1)).await.unwrap();
    assert_eq!(cause(id).await, Some((FailureCause::Provider, reason)));
    let paid = created(&*store, payout("acme", "paid")).await;
    let source = ResultSource::Provider(ProviderReason { code: Some("00".into()), text: None });
    store.complete(paid, SUCCESS, source, at(1)).await.unwrap();
    assert_eq!(cause(paid).await, None, "a success has no cause");
    for (order, expected) in [("limited", None), ("over", plain(FailureCause::DailyLimit))] {
        let mut draft = payout("acme", order);
        draft.operation.customer_account_id = Some(CustomerAccountId(7));
        draft.daily_limit = Some(DailyLimit { day: UnixDay(100), operations: Some(1), amount: None });
        let id = draft.operation.id;
        store.create(draft).await.unwrap();
        assert_eq!(cause(id).await, expected, "{order}");
    }
    let poor = NewOperation { enforce_balance: true, ..payout("poor", "uncovered") };
    let id = poor.operation.id;
    store.create(poor).await.unwrap();
    assert_eq!(cause(id).await, plain(FailureCause::Balance));
}

/// Claims the due jobs of the shop.
async fn claim(store: &dyn Store, now: UnixMillis) -> Vec<crate::store::ProviderJob> {
    let claim = Claim { shop: shop(), now, lease_until: UnixMillis(now.0 + 20_000), limit: 9 };
    store.claim_provider_jobs(claim).await.unwrap()
}

pub(in crate::store) async fn a_pending_operation_says_what_it_waits_for(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, payout("acme", "payout")).await;
    assert_eq!(waits_for(&*store, id).await, Some(WaitsFor::ProviderAnswer));
    assert_eq!(claim(&*store, at(1)).await.len(), 1);
    for (end, expected) in [
        (JobEnd::ReportAwaited, WaitsFor::ProviderReport),
        (JobEnd::GivenUp, WaitsFor::Operator),
        (JobEnd::CustomerAwaited, WaitsFor::Customer),
    ] {
        store.end_provider_job(id, end, at(2)).await.unwrap();
        assert_eq!(waits_for(&*store, id).await, Some(expected));
    }
    store.end_provider_job(id, JobEnd::ReportAwaited, at(3)).await.unwrap();
    assert_eq!(waits_for(&*store, id).await, Some(WaitsFor::Customer), "what the customer has stays");
    assert!(claim(&*store, at(100)).await.is_empty(), "an ended job is not claimed");
    assert_eq!(store.provider_queues().await.unwrap(), []);
    let sandbox = created(&*store, deposit("acme", "sandbox")).await;
    assert_eq!(waits_for(&*store, sandbox).await, Some(WaitsFor::Customer));
    let waits = store.resolve(resolution(id, SUCCESS, "ada", true)).await.unwrap();
    assert_eq!((waits, waits_for(&*store, id).await), (ResolveOutcome::Waits, Some(WaitsFor::Confirmation)));
    let listed = store.listed(id, Some(NOW)).await.unwrap().unwrap();
    assert_eq!(listed.waits_for, Some(WaitsFor::Customer), "it lapsed");
    store.complete(id, SUCCESS, ResultSource::PROVIDER, at(9)).await.unwrap();
    assert_eq!(waits_for(&*store, id).await, None);
    let detail = store.operation_detail(id).await.unwrap().unwrap();
    let ended = EndedJob { end: Some(JobEnd::CustomerAwaited), attempts: 1, at: Some(at(2)), failure: None };
    assert_eq!((detail.job, detail.ended_job), (None, Some(ended)), "the job's last state is kept");
    assert!(audited(&*store).await.problems.is_empty());
}

pub(in crate::store) async fn what_a_provider_did_not_answer_is_kept(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let orders =
        ["given up", "retried", "being called", "postponed"].map(|order| created(&*store, payout("acme", order)));
    let ids = futures_util::future::join_all(orders).await;
    let jobs = claim(&*store, at(1)).await;
    let [given_up, retried, called, postponed] =
        [0, 1, 2, 3].map(|n| jobs.iter().find(|job| job.operation.id == ids[n]).unwrap());
    store.postpone_provider_job(retried, at(9), Some((at(3), "it answered HTTP 500"))).await.unwrap();
    store.postpone_provider_job(postponed, at(9), None).await.unwrap();
    assert!(store.give_up_provider_job(given_up, NO_ANSWER, at(2)).await.unwrap());
    let ended =
        |end, at, failure: Option<&str>| Some(EndedJob { end, attempts: 1, at, failure: failure.map(Box::from) });
    for (job, expected) in [
        (given_up, ended(Some(JobEnd::GivenUp), Some(at(2)), Some(NO_ANSWER))),
        (retried, ended(None, Some(at(3)), Some("it answered HTTP 500"))),
        (called, ended(None, Some(at(5)), None)),
        (postponed, ended(None, None, None)),
    ] {
        let id = job.operation.id;
        let failure = store.operation_detail(id).await.unwrap().unwrap().job.unwrap().failure;
        assert_eq!(failure, expected.as_ref().and_then(|job| job.failure.clone()));
        store.resolve(NewResolution { at: at(5), ..resolution(id, Outcome::Failed, "ada", false) }).await.unwrap();
        assert_eq!(store.operation_detail(id).await.unwrap().unwrap().ended_job, expected);
    }
    assert!(audited(&*store).await.problems.is_empty());
}

pub(in crate::store) async fn a_provider_is_called_again(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(store.ask_again(fresh_id(&merchant("acme")), NOW).await.unwrap(), AskOutcome::Unknown);
    let id = created(&*store, payout("acme", "order")).await;
    let jobs = claim(&*store, at(1)).await;
    assert_eq!(jobs[0].attempts, 0);
    store.postpone_provider_job(&jobs[0], at(500), Some((at(1), NO_ANSWER))).await.unwrap();
    assert_eq!(store.ask_again(id, at(2)).await.unwrap(), AskOutcome::Due);
    assert_eq!(store.ask_again(id, at(11)).await.unwrap(), AskOutcome::TooSoon);
    assert_eq!(store.ask_again(id, NOW).await.unwrap(), AskOutcome::TooSoon, "a clock stepped back");
    let jobs = claim(&*store, at(2)).await;
    assert_eq!((jobs[0].attempts, jobs[0].queued_at), (1, NOW), "a job that waits keeps its attempts");
    assert_eq!(store.ask_again(id, at(13)).await.unwrap(), AskOutcome::UnderWay);
    assert!(claim(&*store, at(13)).await.is_empty());
    store.end_provider_job(id, JobEnd::GivenUp, at(14)).await.unwrap();
    let given_up =
        EndedJob { end: Some(JobEnd::GivenUp), attempts: 2, at: Some(at(14)), failure: Some(NO_ANSWER.into()) };
    let failure = async || store.operation_detail(id).await.unwrap().unwrap().job.unwrap().failure;
    assert_eq!(failure().await.as_deref(), Some(NO_ANSWER), "it stays while the job is the same");
    assert_eq!(store.ask_again(id, at(30)).await.unwrap(), AskOutcome::Due);
    assert_eq!(failure().await, None, "a new job has had no attempt");
    assert_eq!(store.ask_again(id, at(30)).await.unwrap(), AskOutcome::Due, "its confirmation was lost");
    let jobs = claim(&*store, at(30)).await;
    assert_eq!((jobs[0].attempts, jobs[0].queued_at), (0, at(30)), "one given up gets as many as a new one");
    store.complete(id, Outcome::Failed, ResultSource::PROVIDER, at(31)).await.unwrap();
    let detail = store.operation_detail(id).await.unwrap().unwrap();
    assert_eq!(detail.queries, [(at(30), Some(given_up)), (at(13), None), (at(2), None)], "what was before stays");
    assert_eq!(detail.ended_job, Some(EndedJob { end: None, attempts: 1, at: Some(at(31)), failure: None }));
    assert_eq!(store.ask_again(id, at(60)).await.unwrap(), AskOutcome::Finished(Status::Failed));
    assert!(claim(&*store, at(90)).await.is_empty());
}

pub(in crate::store) async fn a_resolution_ends_an_operation_once(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let unknown = resolution(fresh_id(&merchant("acme")), SUCCESS, "ada", false);
    assert_eq!(store.resolve(unknown).await.unwrap(), ResolveOutcome::Unknown);
    for (order, outcome, status) in [("paid", SUCCESS, Status::Success), ("failed", Outcome::Failed, Status::Failed)] {
        let id = created(&*store, payout("acme", order)).await;
        let new = resolution(id, outcome, "ada", false);
        assert_eq!(store.resolve(new.clone()).await.unwrap(), ResolveOutcome::Resolved);
        assert_eq!(store.resolve(new).await.unwrap(), ResolveOutcome::Resolved, "its confirmation was lost");
        let again = resolution(id, SUCCESS, "bob", false);
        assert_eq!(store.resolve(again).await.unwrap(), ResolveOutcome::Finished(status));
        let listed = store.listed(id, None).await.unwrap().unwrap();
        assert_eq!(listed.stored.operation.state.status(), status);
        let cause = (status == Status::Failed).then_some(FailureCause::Operator);
        assert_eq!(listed.failure.map(|(cause, _)| cause), cause);
        assert!(store.callback_of(CallbackSubject::Operation(id)).await.unwrap().is_some());
        let detail = store.operation_detail(id).await.unwrap().unwrap();
        let [record] = &detail.resolutions[..] else { panic!("{detail:?}") };
        assert_eq!((&*record.made_by, record.state), ("ada", ResolutionState::TookEffect));
    }
    assert!(audited(&*store).await.problems.is_empty());
}

pub(in crate::store) async fn another_operator_confirms(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, payout("acme", "order")).await;
    let confirm =
        async |number, user: &str, lapsed| store.confirm(id, number, user.into(), lapsed, at(5)).await.unwrap();
    let first = resolution(id, SUCCESS, "ada", true);
    assert_eq!(confirm(first.id, "bob", None).await, ConfirmOutcome::NotWaiting, "there is none");
    assert_eq!(store.resolve(first.clone()).await.unwrap(), ResolveOutcome::Waits);
    let second = resolution(id, Outcome::Failed, "bob", true);
    assert_eq!(store.resolve(second.clone()).await.unwrap(), ResolveOutcome::Waits);
    assert_eq!(confirm(first.id, "cleo", None).await, ConfirmOutcome::NotWaiting, "another took its place");
    assert_eq!(confirm(second.id, "bob", None).await, ConfirmOutcome::SameOperator);
    assert_eq!(confirm(second.id, "ada", Some(NOW)).await, ConfirmOutcome::NotWaiting, "it lapsed");
    assert_eq!(store.listed(id, None).await.unwrap().unwrap().stored.operation.state, State::Pending);
    assert_eq!(confirm(second.id, "ada", None).await, ConfirmOutcome::Resolved(Status::Failed));
    assert_eq!(confirm(second.id, "ada", None).await, ConfirmOutcome::Resolved(Status::Failed), "a lost confirmation");
    assert_eq!(confirm(second.id, "cleo", None).await, ConfirmOutcome::Finished(Status::Failed));
    let void = created(&*store, payout("acme", "void")).await;
    let waiting = resolution(void, Outcome::Failed, "ada", true);
    assert_eq!(store.resolve(waiting.clone()).await.unwrap(), ResolveOutcome::Waits);
    store.complete(void, SUCCESS, ResultSource::PROVIDER, at(9)).await.unwrap();
    let outcome = store.confirm(void, waiting.id, "bob".into(), None, at(10)).await.unwrap();
    assert_eq!(outcome, ConfirmOutcome::Finished(Status::Success), "a report came first");
    let unknown = fresh_id(&merchant("acme"));
    let outcome = store.confirm(unknown, waiting.id, "bob".into(), None, at(10)).await.unwrap();
    assert_eq!(outcome, ConfirmOutcome::Unknown);
    assert!(audited(&*store).await.problems.is_empty());
}

pub(in crate::store) async fn a_process_ends_at_each_step_of_a_resolution(backend: &dyn TestBackend) {
    let reopened = async |store: Arc<dyn Store>| {
        store.close().await.unwrap();
        drop(store);
        backend.open().await
    };
    let store = backend.open().await;
    let id = created(&*store, payout("acme", "order")).await;
    let resolving = begun(&*store, action("ada", ActionRecord::RESOLVE, 0)).await;
    let store = reopened(store).await;
    assert_eq!(waits_for(&*store, id).await, Some(WaitsFor::ProviderAnswer), "a row of the trail changes nothing");
    let first = resolution(id, SUCCESS, "ada", true);
    assert_eq!(store.resolve(first.clone()).await.unwrap(), ResolveOutcome::Waits);
    let store = reopened(store).await;
    assert_eq!(waits_for(&*store, id).await, Some(WaitsFor::Confirmation));
    let lapsed = store.confirm(id, first.id, "bob".into(), Some(NOW), at(5)).await.unwrap();
    assert_eq!(lapsed, ConfirmOutcome::NotWaiting);
    let store = reopened(store).await;
    let listed = store.listed(id, Some(NOW)).await.unwrap().unwrap();
    assert_eq!(listed.waits_for, Some(WaitsFor::ProviderAnswer), "nothing came of a confirmation that was too late");
    let second = resolution(id, Outcome::Failed, "bob", true);
    assert_eq!(store.resolve(second.clone()).await.unwrap(), ResolveOutcome::Waits);
    let confirming = begun(&*store, action("ada", ActionRecord::CONFIRM, 6)).await;
    let store = reopened(store).await;
    assert_eq!(waits_for(&*store, id).await, Some(WaitsFor::Confirmation));
    for attempt in ["the first", "the same again, whose confirmation was lost"] {
        let outcome = store.confirm(id, second.id, "ada".into(), None, at(7)).await.unwrap();
        assert_eq!(outcome, ConfirmOutcome::Resolved(Status::Failed), "{attempt}");
    }
    let later = store.confirm(id, second.id, "ada".into(), None, at(8)).await.unwrap();
    assert_eq!(later, ConfirmOutcome::Finished(Status::Failed), "none waits any more");
    let store = reopened(store).await;
    assert_eq!(store.listed(id, None).await.unwrap().unwrap().stored.operation.state.status(), Status::Failed);
    let unfinished: Vec<_> = all(&*store).await.into_iter().filter(|row| row.end.is_none()).map(|row| row.id).collect();
    assert_eq!(unfinished, [confirming, resolving], "the trail shows what was cut off");
    assert_eq!(reported(&*store).await.len(), 1);
    assert!(audited(&*store).await.problems.is_empty());
}

pub(in crate::store) async fn a_report_and_a_resolution_race(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for round in 0..12 {
        let id = created(&*store, payout("acme", &format!("order-{round}"))).await;
        let resolving = store.resolve(resolution(id, Outcome::Failed, "ada", false));
        let reporting = store.complete(id, SUCCESS, ResultSource::PROVIDER, at(1));
        let (resolved, reported) = tokio::join!(resolving, reporting);
        let status = store.listed(id, None).await.unwrap().unwrap().stored.operation.state.status();
        let expected = match status {
            Status::Failed => (ResolveOutcome::Resolved, CompletionOutcome::Contradicts(Status::Failed)),
            Status::Success => (ResolveOutcome::Finished(Status::Success), CompletionOutcome::Completed),
            Status::Pending => panic!("one of them wins"),
        };
        assert_eq!((resolved.unwrap(), reported.unwrap()), expected);
    }
    assert!(audited(&*store).await.problems.is_empty(), "one callback each, and the entries sum to zero");
}

pub(in crate::store) async fn attention_finds_what_hangs(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let given_up = created(&*store, payout("acme", "given up")).await;
    let late = created(&*store, payout("acme", "late")).await;
    let called = created(&*store, payout("acme", "called")).await;
    let other_shop = {
        let mut draft = payout("acme", "other shop");
        draft.operation.shop = ShopCode::new("other").unwrap();
        created(&*store, draft).await
    };
    let customer = created(&*store, deposit("acme", "sandbox deposit")).await;
    let [customer_v1, customer_of_bolt] = ["acme", "bolt"].map(|name| {
        let mut draft = deposit(name, "sandbox deposit of v1");
        draft.v1 = Some(CallbackSender::Directly);
        draft
    });
    let (customer_v1, customer_of_bolt) =
        (created(&*store, customer_v1).await, created(&*store, customer_of_bolt).await);
    let contradicted = created(&*store, payout("bolt", "contradicted")).await;
    store.end_provider_job(given_up, JobEnd::GivenUp, at(1)).await.unwrap();
    store.end_provider_job(late, JobEnd::ReportAwaited, at(1)).await.unwrap();
    store.complete(contradicted, SUCCESS, ResultSource::PROVIDER, at(1)).await.unwrap();
    store.keep_contradiction(contradicted, Status::Failed, at(2)).await.unwrap();
    store.keep_contradiction(contradicted, Status::Failed, at(3)).await.unwrap();
    let found = async |late: LateRule, query: OperationQuery| {
        let found = store.needing_attention(query, late, None).await.unwrap();
        let mut found: Vec<_> = found.into_iter().map(|listed| listed.stored.operation.id).collect();
        assert!(found.is_sorted_by(|one, other| one > other), "the newest first");
        found.sort_unstable();
        found
    };
    let counted = async |late: LateRule| {
        let counts = store.attention(late).await.unwrap().counts;
        AttentionReason::ALL.map(|reason| counts[&reason])
    };
    let sorted = |mut ids: Vec<TransactionId>| {
        ids.sort_unstable();
        ids
    };
    let none = LateRule::default();
    assert_eq!(found(none.clone(), any()).await, sorted(vec![given_up, contradicted]));
    assert_eq!(counted(none).await, [1, 0, 1]);
    let mut rule = LateRule::default();
    for direction in [Direction::Payin, Direction::Payout] {
        rule.created_until.insert((shop(), direction), at(3600));
    }
    let expected = sorted(vec![given_up, late, called, contradicted]);
    assert_eq!(found(rule.clone(), any()).await, expected);
    assert_eq!(counted(rule.clone()).await, [1, 3, 1], "one given up is late, too");
    let early: LateRule = LateRule {
        created_until: rule.created_until.keys().map(|key| (key.clone(), at(-1))).collect(),
        ..LateRule::default()
    };
    assert_eq!(counted(early).await, [1, 0, 1]);
    rule.customers_too.push(shop());
    let expected = sorted(vec![given_up, late, called, customer, customer_v1, customer_of_bolt, contradicted]);
    assert_eq!(found(rule.clone(), any()).await, expected);
    assert_eq!(counted(rule.clone()).await, [1, 6, 1]);
    assert!(!expected.contains(&other_shop));
    let bolt = OperationQuery { merchant: Some(merchant("bolt")), ..any() };
    assert_eq!(found(rule.clone(), bolt).await, sorted(vec![customer_of_bolt, contradicted]));
    let two = OperationQuery { limit: 2, ..any() };
    assert_eq!(found(rule, two).await, expected[expected.len() - 2..]);
    assert!(store.acknowledge(contradicted, "ada".into(), at(4)).await.unwrap());
    assert!(store.acknowledge(contradicted, "ada".into(), at(4)).await.unwrap(), "a lost confirmation");
    assert!(!store.acknowledge(contradicted, "bob".into(), at(5)).await.unwrap());
    store.keep_contradiction(contradicted, Status::Failed, at(6)).await.unwrap();
    assert_eq!(counted(LateRule::default()).await, [1, 0, 0], "what was acknowledged stays so");
    let detail = store.operation_detail(contradicted).await.unwrap().unwrap().contradiction.unwrap();
    assert_eq!((detail.status, detail.reported_at), (Status::Failed, at(2)));
    assert_eq!(detail.acknowledged, Some(("ada".into(), at(4))));
}

pub(in crate::store) async fn homes_of_an_order_are_found(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = created(&*store, deposit("acme", "order")).await;
    store.reserve(&merchant("bolt"), Direction::Payout, &[order("order")], at(60)).await.unwrap();
    let orders: Vec<_> = ["acme", "bolt", "cosy"]
        .into_iter()
        .flat_map(|name| [Direction::Payin, Direction::Payout].map(|direction| (merchant(name), direction)))
        .collect();
    store.lose(&[(merchant("cosy"), Direction::Payin, order("order"))], at(70)).await.unwrap();
    let found = store.found_homes(&orders, &order("order")).await.unwrap();
    let (reserved, lost) = (FoundHome::Other("reserved", at(60)), FoundHome::Other("lost", at(70)));
    assert_eq!(found, [(0, FoundHome::Operation(id)), (3, reserved), (4, lost)]);
}
