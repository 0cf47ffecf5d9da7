//! Log lines about an engine's outage: when it begins, from time to time while it lasts, and when it is over. The access
//! lines have each request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::outbound::{OutboundError, OutboundResponse};
use crate::telemetry::LogThrottle;

/// The shortest time between two lines about an outage.
const BETWEEN: Duration = Duration::from_secs(30);

/// How long every request has to succeed until an outage is over: it may affect one merchant only.
const OUTAGE_OVER_AFTER: Duration = Duration::from_secs(5);

/// The engine's outage, if there is one.
pub(super) struct OutageLog {
    throttle: LogThrottle,
    lasting: Mutex<Option<Outage>>,
}

impl Default for OutageLog {
    fn default() -> Self {
        Self { throttle: LogThrottle::new(BETWEEN), lasting: Mutex::default() }
    }
}

struct Outage {
    since: Instant,
    last: Instant,
    requests: u64,
    is_reported: bool,
}

/// A log line.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Lasts { requests: u64 },
    Over { requests: u64, seconds: u64 },
}

impl OutageLog {
    /// Notes the outcome of a request, and logs a change.
    pub(super) fn observe(&self, answer: &Result<OutboundResponse, OutboundError>) {
        let cause = cause(answer);
        match (self.note(cause.is_some()), cause.unwrap_or_default()) {
            (Some(Line::Lasts { requests }), cause) => {
                tracing::warn!(%cause, requests, "the engine gives no usable response");
            }
            (Some(Line::Over { requests, seconds }), _) => {
                tracing::info!(requests, seconds, "the engine responds again");
            }
            (None, _) => {}
        }
    }

    fn note(&self, trouble: bool) -> Option<Line> {
        let mut lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if trouble {
            let lasting = lasting.get_or_insert(Outage { since: now, last: now, requests: 0, is_reported: false });
            (lasting.last, lasting.requests) = (now, lasting.requests + 1);
            return self.throttle.due(()).map(|_| {
                lasting.is_reported = true;
                Line::Lasts { requests: lasting.requests }
            });
        }
        let over = lasting.take_if(|lasting| now.duration_since(lasting.last) >= OUTAGE_OVER_AFTER)?;
        let seconds = over.last.duration_since(over.since).as_secs();
        over.is_reported.then_some(Line::Over { requests: over.requests, seconds })
    }
}

/// Returns why an outcome counts as an outage; `None`: the engine works. 429 and 503 are passed on to the caller and are no
/// outage.
fn cause(answer: &Result<OutboundResponse, OutboundError>) -> Option<String> {
    match answer {
        Ok(answer) => match answer.status {
            200 | 400 | 404 | 409 | 429 | 503 => None,
            status @ (401 | 403) => Some(format!(
                "it answered HTTP {status}: compare v2_secret with the engine's, and its allow-list with this address"
            )),
            status => Some(format!("it answered HTTP {status}")),
        },
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_is_reported_when_it_begins_now_and_then_and_when_it_is_over() {
        let trouble = OutageLog::default();
        assert_eq!(trouble.note(false), None);
        assert_eq!(trouble.note(true), Some(Line::Lasts { requests: 1 }));
        assert_eq!(trouble.note(true), None);
        assert_eq!(trouble.note(false), None, "others are answered");
        tokio::time::advance(BETWEEN).await;
        assert_eq!(trouble.note(true), Some(Line::Lasts { requests: 3 }));
        tokio::time::advance(OUTAGE_OVER_AFTER).await;
        assert_eq!(trouble.note(false), Some(Line::Over { requests: 3, seconds: BETWEEN.as_secs() }));
        assert_eq!(trouble.note(false), None);
        assert_eq!(trouble.note(true), None, "a line was written a moment ago");
        tokio::time::advance(OUTAGE_OVER_AFTER).await;
        assert_eq!(trouble.note(false), None, "an outage that was not logged gets no line about its end");
        tokio::time::advance(BETWEEN).await;
        assert_eq!(trouble.note(true), Some(Line::Lasts { requests: 1 }));
    }
}
