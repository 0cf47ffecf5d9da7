//! Processes one claimed callback: sends it, or checks the result with a remote engine, and schedules the next attempt.

use std::time::Duration;

use super::message::{self, Unsendable};
use super::send::{SentCallback, send};
use super::targets::ProbeResult;
use crate::backoff;
use crate::clock::ClockJumps;
use crate::deps::Deps;
use crate::domain::UnixMillis;
use crate::error::ApiError;
use crate::outbound::on_behalf_of;
use crate::remote::{EngineCallback, Remote, is_final};
use crate::rules::{CallbackRules, RuleSet};
use crate::store::{
    CallbackJob, CallbackLease, CallbackNext, CallbackTarget, CallbackTry, JournalEntry, ResultChange, StoreError,
    TryOutcome,
};
use crate::telemetry::LogThrottle;

/// The dependencies of callback jobs.
pub(super) struct WorkerContext {
    pub deps: Deps,
    /// Set if the engine is remote: queries the status of operations whose results it announced.
    pub remote: Option<Remote>,
    pub jumps: ClockJumps,
    /// Throttles log lines, for each target and kind of failure.
    pub throttle: LogThrottle<(CallbackTarget, &'static str)>,
}

impl WorkerContext {
    /// Does a job and records the outcome. If the store fails, the job is done again after its lease.
    pub(super) async fn run(&self, rules: &RuleSet, job: CallbackJob) -> (ProbeResult, Result<(), StoreError>) {
        match &job.change {
            ResultChange::Entry(entry) if !is_final(entry) => {
                self.query_engine(rules, &job, JournalEntry::clone(entry)).await
            }
            // The result is known by now: the callback moves to the merchant's own queue.
            ResultChange::Entry(_) if job.target.is_engine() => {
                (ProbeResult::Nothing, self.deps.store.callback_ready(job.id, self.deps.clock.now()).await)
            }
            ResultChange::Entry(_) | ResultChange::Operation(_) => self.deliver(rules, &job).await,
        }
    }

    /// Queries a remote engine for the result that it announced.
    async fn query_engine(
        &self,
        rules: &RuleSet,
        job: &CallbackJob,
        entry: JournalEntry,
    ) -> (ProbeResult, Result<(), StoreError>) {
        let update = match &self.remote {
            Some(remote) => remote.announced(rules, entry).await.map_err(|failure| query_failure(&failure)),
            None => Err((ProbeResult::Nothing, "the engine is embedded now".to_owned())),
        };
        let now = self.deps.clock.now();
        match update {
            Ok(EngineCallback::Known) => (ProbeResult::Lives, self.deps.store.callback_ready(job.id, now).await),
            Ok(EngineCallback::Gone) => (ProbeResult::Lives, self.deps.store.drop_callback(job.lease()).await),
            Ok(EngineCallback::Pending) => (ProbeResult::Lives, self.query_again(rules, job, None).await),
            Err((probe, cause)) => {
                if self.throttle.due((job.target.clone(), "engine")).is_some() {
                    tracing::warn!(%cause, "the engine does not return an announced result; it is queried again");
                }
                (probe, self.query_again(rules, job, Some(cause)).await)
            }
        }
    }

    /// Schedules another query, until the callback is given up. Then, if the engine stated no result, the callback is
    /// dropped; if the engine gave no usable reply, the callback is marked failed. The cause is recorded like a
    /// delivery attempt.
    async fn query_again(&self, rules: &RuleSet, job: &CallbackJob, cause: Option<String>) -> Result<(), StoreError> {
        let now = self.deps.clock.now();
        let times = self.times(&rules.gateway.callbacks, now);
        let due = next_time(&rules.gateway.callbacks, job.lease(), None, times, self.deps.random.number());
        let Some(cause) = cause else {
            return match due {
                Some(due) => self.deps.store.postpone_callback(job.lease(), due).await,
                None => self.deps.store.drop_callback(job.lease()).await,
            };
        };
        self.deps.metrics.callback_try("engine");
        let tried = CallbackTry { at: now, duration: Duration::ZERO, outcome: TryOutcome::Error(cause.into()) };
        let next = due.map_or(CallbackNext::Failed, CallbackNext::RetryAt);
        self.deps.store.callback_tried(job.lease(), tried, next).await
    }

    /// Sends a callback.
    async fn deliver(&self, rules: &RuleSet, job: &CallbackJob) -> (ProbeResult, Result<(), StoreError>) {
        let callbacks = &rules.gateway.callbacks;
        let id = job.id.to_string();
        let sent = match message::compose(rules, &id, &job.change, self.deps.clock.now()) {
            Ok(message) => {
                let sending = send(&self.deps.outbound, callbacks, message, &*self.deps.clock);
                on_behalf_of(job.target.merchant(), sending).await
            }
            Err(unsendable) => self.not_sent(&unsendable),
        };
        let now = self.deps.clock.now();
        let next = next(callbacks, job.lease(), &sent, self.times(callbacks, now), self.deps.random.number());
        self.count(job, &sent, next);
        (sent.probe, self.deps.store.callback_tried(job.lease(), sent.tried, next).await)
    }

    fn times(&self, rules: &CallbackRules, now: UnixMillis) -> Times {
        Times { now, given_up_until: self.jumps.began_until(rules.give_up_after, backoff::grace(rules.max_retry)) }
    }

    fn not_sent(&self, unsendable: &Unsendable) -> SentCallback {
        let outcome = TryOutcome::Error(unsendable.to_string().into());
        let tried = CallbackTry { at: self.deps.clock.now(), duration: Duration::ZERO, outcome };
        SentCallback { tried, retry_after: None, probe: ProbeResult::Nothing, label: "unsendable" }
    }

    /// Counts an attempt and logs it, throttled for each target and kind of failure.
    fn count(&self, job: &CallbackJob, sent: &SentCallback, next: CallbackNext) {
        self.deps.metrics.callback_try(sent.label);
        if sent.probe != ProbeResult::Nothing {
            self.deps.metrics.callback_sent(sent.tried.duration);
        }
        let (receiver, attempts) = (job.target.origin(), job.attempts.saturating_add(1));
        let merchant = match &job.change {
            ResultChange::Operation(stored) => stored.operation.merchant.as_str(),
            ResultChange::Entry(entry) => entry.create.merchant.as_str(),
        };
        let outcome = sent.tried.outcome.to_string();
        match next {
            CallbackNext::Delivered => {
                tracing::debug!(callback = %job.id, merchant, receiver, attempts, outcome, "a callback was delivered");
            }
            CallbackNext::RetryAt(_) => {
                if self.throttle.due((job.target.clone(), sent.label)).is_some() {
                    tracing::info!(callback = %job.id, merchant, receiver, attempts, outcome,
                        "a callback was not accepted; it will be sent again, like others to this target");
                } else {
                    tracing::debug!(callback = %job.id, merchant, receiver, attempts, outcome,
                        "a callback was not accepted");
                }
            }
            CallbackNext::Failed => {
                self.deps.metrics.callbacks_given_up(1);
                if self.throttle.due((job.target.clone(), "given up")).is_some() {
                    tracing::warn!(callback = %job.id, merchant, receiver, attempts, outcome,
                        "a callback failed, and others to this target may have: see `paybridge callbacks list`");
                }
            }
        }
    }
}

/// Returns what a failed query reveals about the engine, and the cause as text for operators. Causes contain no values.
fn query_failure(failure: &ApiError) -> (ProbeResult, String) {
    match failure {
        ApiError::EngineUnreachable { cause } => {
            (ProbeResult::Silent, format!("not sent: the engine cannot be reached: {cause}"))
        }
        ApiError::EngineTimeout => (ProbeResult::Silent, "not sent: the engine did not answer in time".to_owned()),
        ApiError::BadEngineReply { cause } => {
            (ProbeResult::Lives, format!("not sent: the engine's answer is unusable: {cause}"))
        }
        ApiError::EngineBusy { .. } => (ProbeResult::Lives, "not sent: the engine is busy".to_owned()),
        ApiError::Internal { cause } => (ProbeResult::Nothing, format!("not sent: {cause}")),
        ApiError::Refused(_)
        | ApiError::Invalid(_)
        | ApiError::Untranslatable { .. }
        | ApiError::Conflict(_)
        | ApiError::NotFound
        | ApiError::NotOffered(_)
        | ApiError::Unavailable { .. }
        | ApiError::EngineReply(_)
        | ApiError::Legacy(_)
        | ApiError::LegacyPath(_) => (ProbeResult::Nothing, "not sent: the engine could not be queried".to_owned()),
    }
}

/// When an attempt ended.
#[derive(Debug, Clone, Copy)]
struct Times {
    now: UnixMillis,
    /// What was queued until then is given up.
    given_up_until: Option<UnixMillis>,
}

/// Returns what follows from an attempt.
fn next(rules: &CallbackRules, lease: CallbackLease, sent: &SentCallback, times: Times, random: u64) -> CallbackNext {
    match sent.tried.outcome {
        TryOutcome::Status(200..=299) => CallbackNext::Delivered,
        TryOutcome::Status(410) => CallbackNext::Failed,
        TryOutcome::Status(_) | TryOutcome::Error(_) => {
            next_time(rules, lease, sent.retry_after, times, random).map_or(CallbackNext::Failed, CallbackNext::RetryAt)
        }
    }
}

/// Returns when a job is done again; `None`: never.
fn next_time(
    rules: &CallbackRules,
    lease: CallbackLease,
    retry_after: Option<Duration>,
    times: Times,
    random: u64,
) -> Option<UnixMillis> {
    if times.given_up_until.is_some_and(|until| lease.queued_at <= until) {
        return None;
    }
    let wait = backoff::wait(rules.first_retry, rules.max_retry, lease.attempts, retry_after, random);
    Some(backoff::due(times.now, wait, lease.queued_at.plus(rules.give_up_after)))
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
