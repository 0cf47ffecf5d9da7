//! The exponential backoff that all retries share.

use std::time::Duration;

use crate::domain::UnixMillis;

/// The shortest [`grace`].
const SHORTEST_GRACE: Duration = Duration::from_mins(1);

/// Returns the wait before the next attempt, after `attempts` earlier waits: `first`, doubled each time, at most `max`.
/// `random` chooses between half of that and all of it: operations that failed together are not retried together. It is at
/// least `retry_after`, but never more than `max`.
#[must_use]
pub fn wait(first: Duration, max: Duration, attempts: u32, retry_after: Option<Duration>, random: u64) -> Duration {
    let doubled = 1_u32.checked_shl(attempts).map_or(max, |factor| first.saturating_mul(factor)).min(max);
    let half = doubled / 2;
    let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
    let jittered = (half + Duration::from_micros(random % span)).min(doubled);
    jittered.max(retry_after.unwrap_or_default().min(max))
}

/// Returns when work that waits from `now` is due. The last attempt is exactly at `last`, however long the waits have
/// become; work that is attempted after that just waits.
#[must_use]
pub fn due(now: UnixMillis, wait: Duration, last: UnixMillis) -> UnixMillis {
    let due = now.plus(wait);
    if now < last { due.min(last) } else { due }
}

/// Returns for how long after a start, or a jump of the clock, nothing is given up: long enough that all that waits is
/// attempted once more meanwhile, and that a wrong clock may be noticed and corrected.
#[must_use]
pub fn grace(max_retry: Duration) -> Duration {
    max_retry.max(SHORTEST_GRACE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_mins(5);

    #[test]
    fn waits_double_up_to_the_maximum() {
        for (attempts, whole) in [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (31, 300), (32, 300), (u32::MAX, 300)] {
            let whole = Duration::from_secs(whole);
            assert_eq!(wait(FIRST, MAX, attempts, None, 0), whole / 2, "{attempts}");
            let spans = u64::try_from(whole.as_micros()).unwrap() / 2;
            assert_eq!(wait(FIRST, MAX, attempts, None, spans), whole, "{attempts}");
        }
    }

    #[test]
    fn retry_after_is_respected_up_to_the_longest_wait() {
        let with_retry_after = |seconds| wait(FIRST, MAX, 0, Some(Duration::from_secs(seconds)), 0);
        assert_eq!(with_retry_after(0), FIRST / 2);
        assert_eq!(with_retry_after(30), Duration::from_secs(30));
        assert_eq!(with_retry_after(86_400), MAX);
    }

    proptest! {
        #[test]
        fn every_wait_is_within_its_bounds(attempts: u32, random: u64, first in 1_u64..10_000, more in 0_u64..1_000_000) {
            let (first, max) = (Duration::from_millis(first), Duration::from_millis(first + more));
            let wait = wait(first, max, attempts, None, random);
            prop_assert!(wait >= first / 2 && wait <= max);
        }
    }
}
