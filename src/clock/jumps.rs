//! Jumps of the wall clock, found by comparing it with the monotonic clock.
//!
//! A stored time is only as good as the wall clock that wrote it and the one that reads it. A clock that was ahead leaves
//! work that is due too late; one that is ahead makes work look older than it is. So:
//!
//! - Work that waits longer than any rule allows is due now, see [`ClockJumps::doubtful`].
//! - A long wait counts as over only as far as the monotonic clock agrees, and never right after a start or a jump, see
//!   [`ClockJumps::began_until`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Clock;
use crate::domain::UnixMillis;

/// A difference between the clocks of at least this many milliseconds, since they were last compared, is a jump: far more
/// than a clock that is being corrected gradually gains.
const JUMP: i64 = 2_000;

/// How often waits are compared with the longest one.
const BETWEEN_COMPARISONS: Duration = Duration::from_secs(5);

/// The waits whose stored ends are in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatedWaits {
    /// Those of work that was queued after this time: the clock was ahead when they were written.
    /// The number counts the jumps until then.
    QueuedAfter(UnixMillis, u64),
    /// Those that end later than the longest wait from now.
    Overlong,
}

/// Compares the wall clock with the monotonic clock, as often as it is read.
pub struct ClockJumps {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    wall: UnixMillis,
    monotonic: Instant,
    /// How many milliseconds the clock was set ahead since the start, all jumps together.
    ahead: i64,
    /// The start or the last jump.
    settled_since: Instant,
    /// How many jumps there were.
    jumps: u64,
    /// What [`DatedWaits::QueuedAfter`] is to cover, until [`ClockJumps::corrected`].
    queued_after: Option<UnixMillis>,
    compared_at: Option<Instant>,
}

impl ClockJumps {
    /// Begins to compare.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        let state = State {
            wall,
            monotonic,
            ahead: 0,
            settled_since: monotonic,
            jumps: 0,
            queued_after: Some(wall),
            compared_at: None,
        };
        Self { clock, state: Mutex::new(state) }
    }

    /// Reads both clocks, and notes a jump.
    fn read(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, monotonic) = (self.clock.now(), self.clock.monotonic());
        let passed = i64::try_from(monotonic.saturating_duration_since(state.monotonic).as_millis());
        let jump = wall.0.saturating_sub(state.wall.0).saturating_sub(passed.unwrap_or(i64::MAX));
        if jump.saturating_abs() >= JUMP {
            tracing::warn!(seconds = jump / 1000, "the wall clock was set");
            state.ahead = state.ahead.saturating_add(jump);
            state.settled_since = monotonic;
            state.jumps += 1;
            if jump < 0 {
                // All that was written before the clock was set back may be due too late.
                state.queued_after = Some(UnixMillis(i64::MIN));
            }
        }
        (state.wall, state.monotonic) = (wall, monotonic);
        state
    }

    /// Returns the latest time at which a wait of `span` that is over now began. `None`: nothing counts as over, for
    /// `grace` after the start and after each jump, but for no longer than `span`.
    ///
    /// The time by which the clock was set ahead does not count, until `span` has passed since then.
    #[must_use]
    pub fn began_until(&self, span: Duration, grace: Duration) -> Option<UnixMillis> {
        let state = self.read();
        let settled = state.monotonic.saturating_duration_since(state.settled_since);
        if settled < grace.min(span) {
            return None;
        }
        let uncounted = if settled < span { state.ahead.max(0) } else { 0 };
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Some(UnixMillis(state.wall.0.saturating_sub(uncounted).saturating_sub(millis)))
    }

    /// Returns which waits are to be corrected now: at the start those of work queued in the future; after the clock
    /// was set back all; else from time to time those that are too long.
    #[must_use]
    pub fn doubtful(&self) -> Option<DatedWaits> {
        let state = self.read();
        if let Some(after) = state.queued_after {
            return Some(DatedWaits::QueuedAfter(after, state.jumps));
        }
        let passed = state.compared_at.map(|at| state.monotonic.saturating_duration_since(at));
        passed.is_none_or(|passed| passed >= BETWEEN_COMPARISONS).then_some(DatedWaits::Overlong)
    }

    /// Notes that these waits were corrected.
    pub fn corrected(&self, waits: DatedWaits) {
        let mut state = self.read();
        match waits {
            DatedWaits::QueuedAfter(_, jumps) if state.jumps == jumps => state.queued_after = None,
            // The clock was set meanwhile.
            DatedWaits::QueuedAfter(..) => {}
            DatedWaits::Overlong => state.compared_at = Some(state.monotonic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const START: UnixMillis = UnixMillis(1_790_000_000_000);
    const HOUR: i64 = 3_600_000;
    const MINUTE: Duration = Duration::from_mins(1);
    const DAY: Duration = Duration::from_hours(24);

    fn started() -> (Arc<ManualClock>, ClockJumps) {
        let clock = Arc::new(ManualClock::at(START));
        let jumps = ClockJumps::new(Arc::clone(&clock) as _);
        (clock, jumps)
    }

    fn ago(now: UnixMillis, span: Duration) -> UnixMillis {
        UnixMillis(now.0 - i64::try_from(span.as_millis()).unwrap())
    }

    #[test]
    fn nothing_is_over_right_after_a_start() {
        let (clock, jumps) = started();
        assert_eq!(jumps.began_until(DAY, MINUTE), None);
        assert_eq!(jumps.began_until(DAY, Duration::ZERO), Some(ago(START, DAY)), "without a grace");
        clock.advance(Duration::from_secs(30));
        assert_eq!(jumps.began_until(DAY, MINUTE), None);
        let short = Duration::from_secs(30);
        assert_eq!(jumps.began_until(short, MINUTE), Some(START), "the grace is no longer than the wait");
        clock.advance(Duration::from_secs(30));
        assert_eq!(jumps.began_until(DAY, MINUTE), Some(ago(clock.now(), DAY)));
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_moment_ends_no_wait() {
        let (clock, jumps) = started();
        clock.advance(DAY);
        clock.set_ahead(96 * HOUR);
        for _ in 0..3 {
            assert_eq!(jumps.began_until(72 * MINUTE * 60, MINUTE), None);
            clock.advance(Duration::from_secs(1));
        }
        clock.set_ahead(-96 * HOUR);
        assert_eq!(jumps.began_until(DAY, MINUTE), None);
        clock.advance(MINUTE);
        assert_eq!(jumps.began_until(DAY, MINUTE), Some(ago(clock.now(), DAY)), "as before");
    }

    #[test]
    fn a_clock_that_stays_ahead_ends_waits_when_as_much_time_has_passed() {
        let (clock, jumps) = started();
        clock.advance(DAY);
        let before = clock.now();
        clock.set_ahead(96 * HOUR);
        assert_eq!(jumps.began_until(DAY, Duration::ZERO), Some(ago(before, DAY)));
        clock.advance(MINUTE);
        assert_eq!(jumps.began_until(DAY, MINUTE), Some(ago(before.plus(MINUTE), DAY)));
        clock.advance(DAY);
        assert_eq!(
            jumps.began_until(DAY, MINUTE),
            Some(ago(clock.now(), DAY)),
            "what was queued since counts by itself"
        );
    }

    #[test]
    fn gradual_corrections_are_no_jumps() {
        let (clock, jumps) = started();
        for _ in 0..1000 {
            clock.advance(Duration::from_secs(1));
            clock.set_ahead(10);
            assert!(jumps.began_until(MINUTE, Duration::ZERO) == Some(ago(clock.now(), MINUTE)));
        }
        assert!(matches!(jumps.doubtful(), Some(DatedWaits::QueuedAfter(START, _))), "of the start");
    }

    #[test]
    fn waits_are_doubted_at_the_start_after_a_step_back_and_now_and_then() {
        let (clock, jumps) = started();
        let next = || {
            let waits = jumps.doubtful()?;
            jumps.corrected(waits);
            match waits {
                DatedWaits::QueuedAfter(after, _) => Some(Some(after)),
                DatedWaits::Overlong => Some(None),
            }
        };
        let (everything, overlong) = (Some(Some(UnixMillis(i64::MIN))), Some(None));
        assert!(matches!(jumps.doubtful(), Some(DatedWaits::QueuedAfter(START, _))));
        assert_eq!(next(), Some(Some(START)), "until they are corrected");
        assert_eq!((next(), next()), (overlong, None));
        clock.advance(BETWEEN_COMPARISONS);
        assert_eq!((next(), next()), (overlong, None));
        clock.set_ahead(HOUR);
        assert_eq!(next(), None, "nothing is due too late then");
        clock.set_ahead(-HOUR);
        assert_eq!((next(), next()), (everything, None));
        clock.set_ahead(-2 * HOUR);
        let waits = jumps.doubtful().unwrap();
        clock.set_ahead(-3 * HOUR);
        jumps.corrected(waits);
        assert_eq!((next(), next()), (everything, None), "it was set back again meanwhile");
        clock.advance(BETWEEN_COMPARISONS);
        assert_eq!((next(), next()), (overlong, None));
    }
}
