//! What the log tells of an engine that does not answer: that it began, now and then that it lasts, and that it is over.
//! A line for each request would tell no more, and the access lines have them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::outbound::{Answer, OutboundError};

/// How often trouble that lasts is told of.
const BETWEEN: Duration = Duration::from_secs(30);

/// The engine's trouble, if it has any.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<Lasting>>);

struct Lasting {
    since: Instant,
    told: Instant,
    requests: u64,
}

/// What is worth a line.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Begins,
    Lasts { requests: u64 },
    Over { requests: u64, seconds: u64 },
}

impl Trouble {
    /// Notes what came of asking, and tells the operator what is new.
    pub(super) fn heard(&self, answer: &Result<Answer, OutboundError>) {
        let cause = cause(answer);
        match (self.note(cause.is_some()), cause.unwrap_or_default()) {
            (Some(Line::Begins), cause) => tracing::warn!(%cause, "the engine gives no usable answer"),
            (Some(Line::Lasts { requests }), cause) => {
                tracing::warn!(%cause, requests, "the engine still gives no usable answer");
            }
            (Some(Line::Over { requests, seconds }), _) => {
                tracing::info!(requests, seconds, "the engine answers again");
            }
            (None, _) => {}
        }
    }

    fn note(&self, trouble: bool) -> Option<Line> {
        let mut lasting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match (&mut *lasting, trouble) {
            (None, false) => None,
            (None, true) => {
                *lasting = Some(Lasting { since: now, told: now, requests: 1 });
                Some(Line::Begins)
            }
            (Some(Lasting { since, requests, .. }), false) => {
                let over = Line::Over { requests: *requests, seconds: now.duration_since(*since).as_secs() };
                *lasting = None;
                Some(over)
            }
            (Some(Lasting { told, requests, .. }), true) => {
                *requests += 1;
                let due = now.duration_since(*told) >= BETWEEN;
                due.then(|| {
                    *told = now;
                    Line::Lasts { requests: *requests }
                })
            }
        }
    }
}

/// Why an answer, or its absence, is the operator's business; `None`: the engine did its work. 429 and 503 are its own
/// words for a moment's trouble, and its callers are told.
fn cause(answer: &Result<Answer, OutboundError>) -> Option<String> {
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
    async fn trouble_is_told_when_it_begins_now_and_then_and_when_it_is_over() {
        let trouble = Trouble::default();
        assert_eq!(trouble.note(false), None);
        assert_eq!(trouble.note(true), Some(Line::Begins));
        assert_eq!(trouble.note(true), None);
        tokio::time::advance(BETWEEN).await;
        assert_eq!(trouble.note(true), Some(Line::Lasts { requests: 3 }));
        assert_eq!(trouble.note(true), None);
        assert_eq!(trouble.note(false), Some(Line::Over { requests: 4, seconds: BETWEEN.as_secs() }));
        assert_eq!(trouble.note(false), None);
        assert_eq!(trouble.note(true), Some(Line::Begins));
    }
}
