//! Actions with their rows in the audit trail, for pages and for the API.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;

use super::context::AdminContext;
use super::refused::Refused;
use super::rules::RulesInfo;
use super::source::{AdminSource, SampleRequest};
use crate::callback::Sampled;
use crate::callback::resend::Resending;
use crate::domain::{Status, TransactionId};
use crate::operations::{self, confirm_result, resolve_result};
use crate::store::{
    ActionId, ActionRecord, BeginOutcome, CallbackCursor, CallbackId, NewAction, NewResolution, Resent, ResolutionId,
    StoreError,
};

/// How long a request waits for its action, which continues without it: less than its page may take.
const MAX_ACTION_WAIT: Duration = Duration::from_secs(11);

/// How many callbacks are queued again in one commit.
pub(super) const SLICE: usize = 500;

/// An action with its row.
pub(super) struct Audited<T> {
    /// The id of the row, which has the outcome when the action has ended; `None`: it takes long to write the row.
    pub id: Option<ActionId>,
    /// What came of it; `None`: the same form was sent before, or the action takes longer than a request waits.
    pub done: Option<T>,
}

/// What became of a requested action, or why its row cannot be written, so that nothing was done.
type Acted<T> = Result<Audited<T>, StoreError>;

/// What became of an action on an operation.
type Operated<T> = Acted<Result<T, Refused>>;

/// What an action acts on: its kind, its target and its parameters, as its row has them.
type Requested<'a> = (&'static str, &'a str, Vec<(&'static str, Box<str>)>);

/// Writes the row of an action, does the work, and completes the row. The work ends also when its caller hangs up. Forms have a
/// key; the requests of programs have none.
async fn run<T, W>(
    context: &AdminContext<'_>,
    (kind, target, parameters): Requested<'_>,
    work: impl FnOnce(Arc<dyn AdminSource>) -> W + Send + 'static,
    outcome: impl FnOnce(&T) -> String + Send + 'static,
) -> Acted<T>
where
    T: Send + 'static,
    W: Future<Output = T> + Send,
{
    let AdminContext { source, request, .. } = *context;
    let scope = (&*request.user.name, kind, target);
    let action = NewAction {
        at: source.now(),
        user: request.user.name.clone(),
        role: request.user.role.as_str().into(),
        address: request.address.to_string().into(),
        request_id: request.request_id.into(),
        action: kind,
        target: target.into(),
        parameters,
        rules_version: source.rules().version.into(),
        idempotency_key: request.form.idempotency_key().map(|key| key.scoped(scope, request.form.values())),
    };
    let source = Arc::clone(source);
    let begun = Arc::new(OnceLock::new());
    let id_of_row = Arc::clone(&begun);
    let task = tokio::spawn(async move {
        let id = match source.store().begin_action(action).await? {
            BeginOutcome::New(id) => *id_of_row.get_or_init(|| id),
            BeginOutcome::Repeated(row) => return Ok(Audited { id: Some(row.id), done: None }),
        };
        let done = work(Arc::clone(&source)).await;
        let outcome = outcome(&done);
        if let Err(error) = source.store().end_action(id, source.now(), &outcome).await {
            tracing::warn!(%error, outcome, "the audit trail shows a finished action as unfinished");
        }
        Ok(Audited { id: Some(id), done: Some(done) })
    });
    match timeout(MAX_ACTION_WAIT, task).await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => Err(StoreError::Unavailable(format!("the action was interrupted: {panic}"))),
        Err(_elapsed) => Ok(Audited { id: begun.get().copied(), done: None }),
    }
}

/// Loads the rules from disk.
pub(super) async fn reload(context: &AdminContext<'_>) -> Acted<RulesInfo> {
    let outcome = |info: &RulesInfo| match info.error {
        None => format!("rules {} were loaded", info.version),
        Some(_) if info.problem_count == 0 => "failed: the certificate was refused".to_owned(),
        Some(_) => format!("failed: the files were refused; problems: {}", info.problem_count),
    };
    let requested = (ActionRecord::RELOAD, "rules", Vec::new());
    run(context, requested, |source| async move { source.reload().await }, outcome).await
}

/// Queues a callback again.
pub(super) async fn resend(context: &AdminContext<'_>, id: CallbackId) -> Acted<Result<Resent, StoreError>> {
    let outcome = |resent: &Result<Resent, StoreError>| match resent {
        Ok(Resent::Queued) => "queued".to_owned(),
        Ok(Resent::UnderWay) => "failed: it was being sent at that moment".to_owned(),
        Ok(Resent::Unknown) => "failed: there was no such callback".to_owned(),
        Err(error) => format!("failed: {error}"),
    };
    let target = id.to_string();
    let work = move |source: Arc<dyn AdminSource>| async move {
        let now = source.now();
        source.store().resend_callback(id, now).await
    };
    run(context, (ActionRecord::RESEND_CALLBACK, &target, Vec::new()), work, outcome).await
}

/// How many callbacks were queued again, and the place at which it ended, or why it ended early.
type Requeued = (usize, Result<Option<CallbackCursor>, StoreError>);

/// Queues callbacks again: all of them, or for the API a slice.
pub(super) async fn resend_matching(
    context: &AdminContext<'_>,
    mut resending: Resending,
    is_slice: bool,
) -> Acted<Requeued> {
    let outcome = move |(count, ended): &Requeued| match ended {
        Ok(_) => format!("{count} queued"),
        Err(error) if is_slice => format!("failed: {error}"),
        Err(error) => format!("failed: {error}; {count} queued before"),
    };
    let (kind, target, parameters) = resending.action();
    let work = move |source: Arc<dyn AdminSource>| async move {
        let (now, mut all) = (source.now(), 0);
        if let (Resending::Failed(query), false) = (&mut resending, is_slice) {
            // What fails again meanwhile is not sent a third time.
            query.until = Some(query.until.map_or(now, |until| until.min(now)));
        }
        loop {
            match resending.next_slice(source.store(), now).await {
                Ok((count, end)) => {
                    all += count;
                    if is_slice || end.is_none() {
                        return (all, Ok(end));
                    }
                }
                Err(error) => return (all, Err(error)),
            }
        }
    };
    run(context, (kind, &target, parameters), work, outcome).await
}

/// Has the provider of an operation called again.
pub(super) async fn ask(context: &AdminContext<'_>, id: TransactionId) -> Operated<&'static str> {
    let work = move |source: Arc<dyn AdminSource>| async move {
        Ok(operations::ask(source.store(), &source.rule_set(), id, source.now()).await??)
    };
    let requested = (ActionRecord::ASK, &*id.to_string(), Vec::new());
    run(context, requested, work, |done| stated(done, |what| (*what).to_owned())).await
}

/// Sets the result of an operation; returns whether it waits for another operator.
pub(super) async fn resolve(context: &AdminContext<'_>, new: NewResolution) -> Operated<bool> {
    let (status, id) = (new.outcome.status().as_str(), new.transaction_id.to_string());
    let parameters =
        vec![("status", status.into()), ("reason", new.reason.clone()), ("resolution", new.id.to_string().into())];
    let work = move |source: Arc<dyn AdminSource>| async move {
        let done = resolve_result(source.store().resolve(new).await?);
        source.count_resolution(match done {
            Ok(true) => "waits",
            Ok(false) => "resolved",
            Err(_) => "refused",
        });
        Ok(done?)
    };
    let outcome = move |done: &Result<bool, Refused>| {
        stated(done, |waits| {
            if *waits {
                format!("{status} waits for the confirmation of another operator")
            } else {
                format!("the operation is {status}")
            }
        })
    };
    run(context, (ActionRecord::RESOLVE, &id, parameters), work, outcome).await
}

/// Confirms a resolution; returns the operation's result.
pub(super) async fn confirm(
    context: &AdminContext<'_>,
    id: TransactionId,
    resolution: ResolutionId,
) -> Operated<Status> {
    let user = context.request.user.name.clone();
    let work = move |source: Arc<dyn AdminSource>| async move {
        let (now, lapsed) = (source.now(), source.overdue().lapsed);
        let done = confirm_result(source.store().confirm(id, resolution, user, lapsed, now).await?);
        source.count_resolution(if done.is_ok() { "confirmed" } else { "refused" });
        Ok(done?)
    };
    let parameters = vec![("resolution", resolution.to_string().into())];
    let requested = (ActionRecord::CONFIRM, &*id.to_string(), parameters);
    run(context, requested, work, |done| stated(done, |status| format!("the operation is {}", status.as_str()))).await
}

/// Acknowledges the report that contradicts an operation's result.
pub(super) async fn acknowledge(context: &AdminContext<'_>, id: TransactionId) -> Operated<()> {
    let user = context.request.user.name.clone();
    let work = move |source: Arc<dyn AdminSource>| async move {
        Ok(operations::acknowledge(source.store(), id, user, source.now()).await??)
    };
    let requested = (ActionRecord::ACKNOWLEDGE, &*id.to_string(), Vec::new());
    run(context, requested, work, |done| stated(done, |()| "acknowledged".to_owned())).await
}

/// Returns the outcome of an action as its row has it.
fn stated<T>(done: &Result<T, Refused>, text: impl FnOnce(&T) -> String) -> String {
    match done {
        Ok(done) => text(done),
        // The commit may have been made, though its confirmation was lost.
        Err(Refused::Unavailable(reason)) => format!("failed, or its outcome is not known: {reason}"),
        Err(refused) => format!("not done: {}", refused.reason()),
    }
}

/// Sends a sample to a merchant's receiver.
pub(super) async fn sample(context: &AdminContext<'_>, sample: SampleRequest) -> Acted<Result<Sampled, String>> {
    let outcome = |sampled: &Result<Sampled, String>| match sampled {
        Ok(Sampled { id, tried, .. }) if tried.outcome.is_delivered() => format!("delivered: {}, {id}", tried.outcome),
        Ok(Sampled { id, tried, .. }) => format!("failed: {}, {id}", tried.outcome),
        Err(reason) => format!("failed: {reason}"),
    };
    // Of an address, only where it leads: its path and query may hold a secret of the merchant's.
    let through = sample.through.map(|through| ("kind", through.as_str().into()));
    let receiver = sample.url.as_ref().map(|url| ("receiver", url.origin().into()));
    let parameters = through.into_iter().chain(receiver).collect();
    let merchant = sample.merchant.clone();
    let requested = (ActionRecord::SAMPLE, merchant.as_str(), parameters);
    run(context, requested, |source| async move { source.sample(sample).await }, outcome).await
}
