//! The time that a request has for all its calls of the engine together.

use std::time::Duration;

use tokio::time::Instant;

/// When everything that is called for one request has to be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestDeadline(Instant);

impl RequestDeadline {
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Returns how much time is left.
    pub(super) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Runs some work until then; `None` when it takes longer.
    pub(super) async fn bounds<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, work).await.ok()
    }
}
