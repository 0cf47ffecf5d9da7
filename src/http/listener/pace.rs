//! Bounds how slowly a client may take a reply (contract section 3).

use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::Deadline;

/// The fewest bytes a second that a client has to take of a reply.
const LEAST_RATE: u64 = 1024;

/// Judges how fast a client takes a reply, from when it stops taking.
pub(super) struct Pace {
    period: Duration,
    /// While the client keeps the reply waiting: since when the current period runs, and what had been taken by then.
    waiting: Option<(Instant, u64)>,
    timer: Option<Deadline>,
}

impl Pace {
    /// Creates a judge that averages over `period`.
    pub(super) const fn over(period: Duration) -> Self {
        Self { period, waiting: None, timer: None }
    }

    /// Notes that nothing waits any more.
    pub(super) const fn all_taken(&mut self) {
        self.waiting = None;
    }

    /// Ready when the client has taken less than [`LEAST_RATE`] over a whole period. `taken`: how many bytes it has taken
    /// so far, in all.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>, taken: u64) -> Poll<()> {
        loop {
            let (since, before) = *self.waiting.get_or_insert_with(|| (Instant::now(), taken));
            let until = since + self.period;
            ready!(self.timer.get_or_insert_with(|| Deadline::at(until)).poll(cx, until));
            let least = u128::from(LEAST_RATE) * self.period.as_millis() / 1000;
            if u128::from(taken.saturating_sub(before)) < least {
                return Poll::Ready(());
            }
            self.waiting = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reply_is_too_slow_below_the_least_rate_over_a_whole_period() {
        const PERIOD: Duration = Duration::from_secs(10);
        let mut pace = Pace::over(PERIOD);
        let began = Instant::now();
        let mut taken = 0;
        // As fast as it has to be, in two steps a period.
        for _ in 0..6 {
            assert!(poll_fn(|cx| Poll::Ready(pace.poll_too_slow(cx, taken))).await.is_pending());
            tokio::time::advance(PERIOD / 2).await;
            taken += LEAST_RATE * 5;
        }
        assert!(poll_fn(|cx| Poll::Ready(pace.poll_too_slow(cx, taken))).await.is_pending());
        assert_eq!(began.elapsed(), PERIOD * 3);
        // A byte less.
        let slower = taken + LEAST_RATE * 10 - 1;
        tokio::time::advance(PERIOD * 999 / 1000).await;
        assert!(poll_fn(|cx| Poll::Ready(pace.poll_too_slow(cx, slower))).await.is_pending());
        poll_fn(|cx| pace.poll_too_slow(cx, slower)).await;
        assert_eq!(began.elapsed(), PERIOD * 4);
        // What was taken to its end begins anew.
        pace.all_taken();
        assert!(poll_fn(|cx| Poll::Ready(pace.poll_too_slow(cx, slower))).await.is_pending());
    }
}
