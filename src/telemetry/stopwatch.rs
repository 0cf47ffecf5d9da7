//! How long something took, for metrics and log lines.

use std::time::Duration;

use tokio::time::Instant;

/// Measures a span on the clock that time-outs go by, too: a test that moves it moves both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins to measure.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Measures from a moment that is this long ago.
    #[must_use]
    pub fn started_before(span: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_sub(span).unwrap_or(now))
    }

    /// How long it has been since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Starts anew, and returns how long it had been. The clock is read once for both.
    pub fn restart(&mut self) -> Duration {
        let began = std::mem::replace(&mut self.0, Instant::now());
        self.0.duration_since(began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn spans_follow_one_another_without_a_gap() {
        let whole = Stopwatch::start();
        let mut part = whole;
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(part.restart(), Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(part.restart(), Duration::from_secs(3));
        assert_eq!((part.elapsed(), whole.elapsed()), (Duration::ZERO, Duration::from_secs(5)));
    }
}
