//! One delivery attempt: sends a callback and classifies the outcome.

use std::time::Duration;

use super::message::CallbackMessage;
use super::targets::ProbeResult;
use crate::clock::Clock;
use crate::outbound::{EgressPolicy, Outbound, OutboundError, OutboundRequest, ResponseBody};
use crate::rules::CallbackRules;
use crate::store::{CallbackTry, TryOutcome};
use crate::telemetry::Stopwatch;

/// The most bytes of a response's body that are read and discarded, so that the connection can be reused.
const RESPONSE_READ: usize = 64 * 1024;

/// A response that takes this long counts as slow.
const SLOW: Duration = Duration::from_secs(2);

/// The longest error text that is stored, in characters.
const LONGEST_ERROR: usize = 300;

/// A finished attempt.
pub(super) struct SentCallback {
    /// The attempt as it is stored.
    pub tried: CallbackTry,
    /// The wait that the receiver requests (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// What the attempt revealed about the target.
    pub probe: ProbeResult,
    /// The outcome's label in the metrics.
    pub label: &'static str,
}

/// Sends a callback as the rules in force require. Redirects are not followed.
pub(super) async fn send(
    outbound: &Outbound,
    rules: &CallbackRules,
    message: CallbackMessage,
    clock: &dyn Clock,
) -> SentCallback {
    let (at, watch) = (clock.now(), Stopwatch::start());
    let request = OutboundRequest {
        url: message.url.as_str(),
        trust: &rules.trust,
        headers: &message.headers,
        spelled: &message.spelled,
        body: Some(message.body.clone()),
        timeout: rules.timeout,
        egress: if rules.allow_private_addresses { EgressPolicy::Anywhere } else { EgressPolicy::PublicOnly },
        response_body: ResponseBody::Drained(RESPONSE_READ),
    };
    let response = outbound.send(request, at).await;
    let tried = |outcome| CallbackTry { at, duration: watch.elapsed(), outcome };
    match response {
        Ok(response) => {
            let label = match response.status {
                200..=299 => "delivered",
                410 => "gone",
                300..=399 => "redirect",
                400..=499 => "refused",
                _ => "failed",
            };
            let tried = tried(TryOutcome::Status(response.status));
            let probe = if tried.duration < SLOW { ProbeResult::Lives } else { ProbeResult::Slow };
            SentCallback { tried, retry_after: response.retry_after, probe, label }
        }
        Err(error) => {
            let (probe, label) = match &error {
                OutboundError::Unusable(_) => (ProbeResult::Nothing, "unusable"),
                OutboundError::Forbidden(_) => (ProbeResult::Nothing, "forbidden"),
                OutboundError::Crowded => (ProbeResult::Nothing, "crowded"),
                OutboundError::NotConnected(_) => (ProbeResult::Silent, "not_connected"),
                OutboundError::Unreachable(_) | OutboundError::TooLong | OutboundError::Malformed => {
                    (ProbeResult::Silent, "cut")
                }
                OutboundError::Timeout => (ProbeResult::Silent, "timeout"),
            };
            let text: String = error.to_string().chars().take(LONGEST_ERROR).collect();
            SentCallback { tried: tried(TryOutcome::Error(text.into())), retry_after: None, probe, label }
        }
    }
}
