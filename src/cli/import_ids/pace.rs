//! How fast ids are reserved, so that a gateway on the same store hardly notices.

use std::time::Duration;

/// A commit holds the store's only write lock; a create that comes meanwhile waits for about this long.
const GOAL: Duration = Duration::from_millis(40);

const SMALLEST: usize = 1000;
const LARGEST: usize = 4000;

/// Whoever waits for the lock asks again after a few milliseconds, at most about 15 in the first 30: a pause that is not
/// shorter lets it in.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How many batches are looked back at.
const REMEMBERED: usize = 16;

/// The size of the next batch, and the pause before it.
///
/// How long a batch took tells how long others held the lock as well. The quickest of the last few tells best what an id
/// costs: smaller batches would not make a busy gateway any quicker, only the import slower.
#[derive(Debug)]
pub struct Pace {
    /// Nanoseconds per id of the last batches.
    costs: [u64; REMEMBERED],
    next: usize,
    /// Before the next batch.
    pub pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { costs: [u64::MAX; REMEMBERED], next: 0, pause: Duration::ZERO }
    }
}

impl Pace {
    /// At most so many ids in the next commit.
    #[must_use]
    pub fn size(&self) -> usize {
        let size = GOAL.as_nanos() / u128::from(self.cost().max(1));
        usize::try_from(size).unwrap_or(LARGEST).clamp(SMALLEST, LARGEST)
    }

    /// A batch of so many ids took so long: as long as it must have held the lock belongs to others.
    pub fn took(&mut self, time: Duration, ids: usize) {
        let cost = time.as_nanos() / ids.max(1) as u128;
        self.costs[self.next] = u64::try_from(cost).unwrap_or(u64::MAX);
        self.next = (self.next + 1) % REMEMBERED;
        let held = Duration::from_nanos(self.cost().saturating_mul(ids as u64));
        self.pause = held.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    }

    fn cost(&self) -> u64 {
        self.costs.iter().copied().min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn batches_follow_what_an_id_costs() {
        let mut pace = Pace::default();
        assert_eq!((pace.size(), pace.pause), (SMALLEST, Duration::ZERO));
        pace.took(millis(20), 1000);
        assert_eq!((pace.size(), pace.pause), (2000, SHORTEST_PAUSE));
        pace.took(millis(2), 2000);
        assert_eq!((pace.size(), pace.pause), (LARGEST, SHORTEST_PAUSE));
        for _ in 0..REMEMBERED {
            pace.took(millis(60), 1000);
        }
        assert_eq!((pace.size(), pace.pause), (SMALLEST, millis(60)));
        for _ in 0..REMEMBERED {
            pace.took(millis(4000), 1000);
        }
        assert_eq!((pace.size(), pace.pause), (SMALLEST, LONGEST_PAUSE));
    }

    #[test]
    fn waiting_for_others_makes_no_batch_smaller() {
        let mut pace = Pace::default();
        pace.took(millis(20), 1000);
        for _ in 0..REMEMBERED - 1 {
            pace.took(millis(900), 2000);
            assert_eq!((pace.size(), pace.pause), (2000, millis(40)));
        }
    }
}
