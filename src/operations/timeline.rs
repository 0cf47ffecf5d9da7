//! What is known of one operation: its place in the list, the way to its result, and what came of it.

use serde::Serialize;

use super::list::OperationDocument;
use super::{Overdue, RESOLUTION_LIFE, actions};
use crate::domain::{Preparation, State, Status, TransactionId, UnixMillis};
use crate::rules::RuleSet;
use crate::store::{
    CallbackRecord, CallbackSubject, CallbackTry, EndedJob, EntryProgress, JobEnd, JournalEntry, ListedOperation,
    NextAttempt, OperationDetail, ProviderJobState, ResolutionRecord, ResolutionState, Store, StoreError,
};
use crate::wire::time::rfc3339;

/// An operation with its timeline.
#[derive(Debug, Default, Serialize)]
pub struct OperationTimeline {
    /// The operation, as the list has it.
    #[serde(flatten)]
    pub operation: OperationDocument,
    /// The `method` of its status.
    pub method: Option<String>,
    /// The kind of its provider; `None`: a remote engine's.
    pub provider: Option<&'static str>,
    /// What is prepared for the customer.
    pub prepared: Option<&'static str>,
    /// Whether operators can resolve it.
    pub can_be_resolved: bool,
    /// Whether operators can have its provider called again.
    pub can_be_queried: bool,
    /// The resolution that waits for another operator.
    pub waiting: Option<WaitingResolution>,
    /// Whether a report contradicts its result, and was not acknowledged.
    pub is_contradicted: bool,
    /// The events, the first first.
    pub timeline: Vec<TimelineEvent>,
    /// How many attempts of its callback were made and how many are kept, if not all are.
    pub kept_attempts: Option<(u32, u32)>,
}

/// A resolution that waits for another operator.
#[derive(Debug, Serialize)]
pub struct WaitingResolution {
    /// Its number.
    pub resolution: String,
    /// The result.
    pub status: &'static str,
    /// Why.
    pub reason: Box<str>,
    /// The user that made it.
    pub made_by: Box<str>,
}

/// An event in the life of an operation.
#[derive(Debug, Default, Serialize)]
pub struct TimelineEvent {
    /// When it was, or will be.
    pub at: String,
    /// Its meaning, which decides its colour: `plain`, `good`, `warn` or `bad`.
    pub tone: &'static str,
    /// Its name.
    pub title: &'static str,
    /// More of it.
    pub detail: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The callback that it is an attempt of.
    pub callback_id: Option<String>,
}

/// Returns an operation with its timeline; `None`: there is no such operation.
///
/// # Errors
/// The store does not respond.
pub async fn timeline(
    store: &dyn Store,
    rules: &RuleSet,
    id: &str,
    overdue: &Overdue,
    now: UnixMillis,
) -> Result<Option<OperationTimeline>, StoreError> {
    if let Ok(id) = TransactionId::parse(id)
        && let Some(listed) = store.listed(id, overdue.lapsed).await?
        && let Some(detail) = store.operation_detail(id).await?
    {
        return of_operation(store, rules, listed, detail, overdue, now).await.map(Some);
    }
    match store.entry_of_transaction(id).await? {
        Some(entry) => of_entry(store, &entry, now).await.map(Some),
        None => Ok(None),
    }
}

async fn of_operation(
    store: &dyn Store,
    rules: &RuleSet,
    listed: ListedOperation,
    detail: OperationDetail,
    overdue: &Overdue,
    now: UnixMillis,
) -> Result<OperationTimeline, StoreError> {
    let operation = &listed.stored.operation;
    let (id, is_pending, is_v1) = (operation.id, operation.state == State::Pending, listed.stored.v1.is_some());
    let created = if is_v1 { "Created through v1" } else { "Created through v2" };
    let mut events = vec![
        event(operation.created_at, "plain", created)
            .with("The create was accepted, stored, and replied to.".to_owned()),
    ];
    let has_provider = actions::has_provider(rules, operation);
    for (at, replaced) in &detail.queries {
        events.extend(replaced.as_ref().map(|job| of_ended_job(job, *at)));
        events.push(event(*at, "plain", "An operator had the provider called again"));
    }
    events.extend(detail.job.iter().flat_map(|job| of_job(job, has_provider, now)));
    let finished_at = match &operation.state {
        State::Finished { at, .. } => Some(*at),
        State::Pending => None,
    };
    events.extend(detail.ended_job.iter().zip(finished_at).map(|(job, at)| of_ended_job(job, at)));
    let waits = |record: &ResolutionRecord| {
        let is_waiting = record.state == ResolutionState::Waits && is_pending;
        is_waiting && overdue.lapsed.is_none_or(|lapsed| record.made_at > lapsed)
    };
    let waiting = detail.resolutions.iter().find(|record| waits(record)).map(|record| WaitingResolution {
        resolution: record.id.to_string(),
        status: record.status.as_str(),
        reason: record.reason.clone(),
        made_by: record.made_by.clone(),
    });
    events.extend(detail.resolutions.iter().map(|record| of_resolution(record, waits(record), finished_at)));
    if let State::Finished { at, .. } = &operation.state {
        let status = operation.state.status();
        let (tone, title) = match status {
            Status::Success => ("good", "SUCCESS: the money moved"),
            Status::Failed | Status::Pending => ("bad", "FAILED: the money did not move"),
        };
        let words = detail.failure.as_ref().map(|(cause, reason)| {
            let words = [reason.code.as_deref(), reason.text.as_deref()].into_iter().flatten().collect::<Vec<_>>();
            let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
            format!("Cause: {}{words}.", cause.as_str())
        });
        events.push(TimelineEvent { detail: words, ..event(*at, tone, title) });
    }
    if let Some(contradiction) = &detail.contradiction {
        let reported = format!("The provider reported {}: refused, and kept here.", contradiction.status.as_str());
        let title = "A report contradicts the result";
        events.push(event(contradiction.reported_at, "bad", title).with(reported));
        events.extend(
            contradiction.acknowledged.as_ref().map(|(user, at)| {
                event(*at, "plain", "The contradiction was acknowledged").with(format!("By {user}."))
            }),
        );
    }
    let can_be_resolved = is_pending && !rules.gateway.engine.is_remote();
    let prepared = if is_pending { store.preparation(id).await?.as_ref().map(prepared) } else { None };
    let callback = store.callback_of(CallbackSubject::Operation(id)).await?;
    let kept_attempts = add_callback(&mut events, callback, now);
    Ok(OperationTimeline {
        method: Some(operation.shown_method().to_owned()),
        provider: Some(operation.provider.as_str()),
        prepared,
        can_be_resolved,
        can_be_queried: can_be_resolved && has_provider,
        waiting,
        is_contradicted: detail.contradiction.is_some_and(|contradiction| contradiction.acknowledged.is_none()),
        operation: OperationDocument::of(listed),
        timeline: events,
        kept_attempts,
    })
}

const fn prepared(preparation: &Preparation) -> &'static str {
    match preparation {
        Preparation::Page(_) => "a payment page",
        Preparation::Instructions(_) => "payment instructions",
        Preparation::Stopped => "nothing: the provider stopped or was given up, and the result is not known",
    }
}

fn event(at: UnixMillis, tone: &'static str, title: &'static str) -> TimelineEvent {
    TimelineEvent { at: rfc3339(at), tone, title, ..TimelineEvent::default() }
}

impl TimelineEvent {
    fn with(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }
}

/// Returns the last call without a result of a job that has not ended, and its state.
fn of_job(job: &ProviderJobState, has_provider: bool, now: UnixMillis) -> Vec<TimelineEvent> {
    let state = match job.end {
        None if !has_provider => {
            let title = "The rules do not give its shop this provider any more: nothing is called until they do";
            event(now, "warn", title)
        }
        None if job.is_claimed && job.due > now => event(now, "plain", "The provider is being called"),
        None => event(job.due, if job.attempts > 1 { "warn" } else { "plain" }, "The provider is called next"),
        Some(JobEnd::ReportAwaited) => event(job.due, "plain", "The provider has it, and is to report"),
        Some(JobEnd::CustomerAwaited) => event(job.due, "plain", "The customer is to pay"),
        Some(JobEnd::GivenUp) => event(job.due, "bad", "The provider was given up"),
    };
    let failed_at = job.failed_at.filter(|_| job.end.is_none());
    // The attempt that is under way has not failed.
    let attempts = job.attempts - u32::from(failed_at.is_some() && job.is_claimed);
    let attempts = format!("Attempts so far: {attempts}.{}", without_result(job.failure.as_deref()));
    match failed_at {
        Some(at) => vec![event(at, "warn", NO_RESULT).with(attempts), state],
        None => vec![state.with(attempts)],
    }
}

const NO_RESULT: &str = "The provider was called, without a result";

/// `removed_at`: when the operation had its result, or an operator had the provider called anew.
fn of_ended_job(job: &EndedJob, removed_at: UnixMillis) -> TimelineEvent {
    let (tone, title) = match (job.end, job.at) {
        (None, None) => ("warn", "The provider may have been called before: a process died"),
        (None, Some(at)) if at < removed_at => ("warn", NO_RESULT),
        (None, Some(_)) => ("plain", "The provider was called"),
        (Some(JobEnd::ReportAwaited), _) => ("plain", "The provider had it, and was to report"),
        (Some(JobEnd::CustomerAwaited), _) => ("plain", "The customer was to pay"),
        (Some(JobEnd::GivenUp), _) => ("bad", "The provider was given up"),
    };
    event(job.at.unwrap_or(removed_at), tone, title).with(format!(
        "Attempts: {}.{}",
        job.attempts,
        without_result(job.failure.as_deref())
    ))
}

fn without_result(failure: Option<&str>) -> String {
    failure.map(|failure| format!(" The last one without a result: {failure}.")).unwrap_or_default()
}

fn of_resolution(record: &ResolutionRecord, waits: bool, finished_at: Option<UnixMillis>) -> TimelineEvent {
    let is_void = finished_at.is_some_and(|at| at < record.made_at.plus(RESOLUTION_LIFE));
    let (tone, title) = match record.state {
        ResolutionState::TookEffect => ("plain", "An operator resolved it"),
        ResolutionState::Waits if waits => ("warn", "A resolution waits for another operator"),
        ResolutionState::Waits if is_void => ("plain", "A resolution is void: the result came first"),
        ResolutionState::Waits => ("plain", "A resolution lapsed"),
        ResolutionState::Replaced => ("plain", "A resolution was replaced"),
    };
    let confirmed = record.confirmed_by.as_ref().map(|user| format!(", confirmed by {user}")).unwrap_or_default();
    let detail = format!("{} by {}{confirmed}: {}", record.status.as_str(), record.made_by, record.reason);
    event(record.made_at, tone, title).with(detail)
}

async fn of_entry(store: &dyn Store, entry: &JournalEntry, now: UnixMillis) -> Result<OperationTimeline, StoreError> {
    let mut events = vec![event(entry.create.created_at, "plain", "Recorded in the journal and sent to the engine")];
    if let EntryProgress::InDoubt { since } = &entry.progress {
        let detail = "The outcome is unknown until the merchant repeats or queries it.".to_owned();
        events.push(event(*since, "warn", "No answer of the engine").with(detail));
    }
    let callback = store.callback_of(CallbackSubject::Entry(entry.id)).await?;
    let kept_attempts = add_callback(&mut events, callback, now);
    let operation = OperationDocument::of_entry(entry);
    Ok(OperationTimeline { operation, timeline: events, kept_attempts, ..OperationTimeline::default() })
}

/// Adds a callback and its attempts to a timeline. Returns how many attempts there were and how many are in it, if not all are.
fn add_callback(
    events: &mut Vec<TimelineEvent>,
    callback: Option<(CallbackRecord, Vec<CallbackTry>)>,
    now: UnixMillis,
) -> Option<(u32, u32)> {
    let kept = callback.and_then(|(callback, tries)| {
        let callback_id = Some(callback.id.to_string());
        for CallbackTry { at, duration, outcome } in &tries {
            let (tone, title) =
                if outcome.is_delivered() { ("good", "Callback delivered") } else { ("bad", "Callback not delivered") };
            events.push(TimelineEvent {
                // The path and query of its address are the merchant's: they may hold a token.
                detail: Some(format!("{}: {outcome}", callback.url.origin())),
                duration_ms: Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
                callback_id: callback_id.clone(),
                ..event(*at, tone, title)
            });
        }
        let next = match callback.next_attempt(now) {
            NextAttempt::None => None,
            NextAttempt::UnderWay => Some((now, "The callback is being sent")),
            NextAttempt::WaitsForReceiver => Some((now, "The callback waits for its receiver")),
            NextAttempt::At(due) => Some((due, "The callback is sent next")),
        };
        events.extend(next.map(|(at, title)| TimelineEvent { callback_id, ..event(at, "plain", title) }));
        let kept = u32::try_from(tries.len()).unwrap_or(u32::MAX);
        (kept < callback.tries).then_some((callback.tries, kept))
    });
    // Written times sort as times do.
    events.sort_by(|one, other| one.at.cmp(&other.at));
    kept
}
