//! Leaving out the first entries of a list.
//!
//! An index does not know how many entries it has before a place, so they are passed one by one, but inside SQLite, which
//! passes some ten million in a second where a merge of lanes passes one or two. Lanes are passed in runs of `n` entries:
//!
//! ```text
//!                      newest                                         oldest
//! lane 1    |----- run -----|----- run -----|----- run -----|-
//! lane 2    |-------- run ---------|-------- run ---------|---
//! lane 3    |------------------------- run ------------------
//!                                           ^ the cut: the last run that was passed ends here
//! ```
//!
//! The run that ends first is passed next. Then all of it is on the newer side of its end (the cut), and of what each
//! other lane has there less than a run was not counted: while a run of each lane is left to be passed, the cut is not
//! too far. At last the uncounted parts are counted, and the rest is done again in shorter runs. All in all that is one
//! pass over what is left out, and a fifth more.

use std::collections::BinaryHeap;

use rusqlite::{CachedStatement, OptionalExtension, params};

use super::{Lane, List};

/// Seeking a run's end costs as much as passing so many entries.
const SEEK: u64 = 32;

/// The longest run: some milliseconds, after each of which a walk looks whether it is still wanted.
const LONGEST_RUN: u64 = 64 * 1024;

/// With fewer entries of each lane to be left out than this, a merge is quicker.
const WORTH_A_WALK: u64 = 64;

impl List<'_> {
    /// Leaves out so many of the next entries; `false` when nothing is left after them, or the walk is not `wanted` any
    /// more.
    pub(super) fn skip(&mut self, skip: u64, wanted: &dyn Fn() -> bool) -> rusqlite::Result<bool> {
        let mut left = skip;
        while left >= self.lane_count() * WORTH_A_WALK && left > 0 {
            self.lanes.iter_mut().for_each(Lane::unread);
            match self.walk(left, wanted)? {
                Some(passed) => left -= passed,
                None => return Ok(false),
            }
        }
        let passed = self.next(usize::try_from(left).unwrap_or(usize::MAX))?;
        Ok(passed.len() as u64 == left)
    }

    fn lane_count(&self) -> u64 {
        self.lanes.len() as u64
    }

    /// Passes some of the next entries, at most so many, and tells how many; `None` when there are no more than that.
    fn walk(&mut self, most: u64, wanted: &dyn Fn() -> bool) -> rusqlite::Result<Option<u64>> {
        let lanes = self.lane_count();
        let Some(run) = run_length(most, lanes) else { return Ok(None) };
        let mut ends = BinaryHeap::with_capacity(self.lanes.len());
        let mut nth = self.connection.prepare_cached(self.index.nth)?;
        for (number, lane) in self.lanes.iter().enumerate() {
            ends.extend(lane.end_of_run(&mut nth, self.merchant, self.least, run)?.map(|end| (end, number)));
        }
        let (mut passed, mut cut) = (0, i64::MAX);
        while passed + lanes * run <= most {
            let Some((end, number)) = ends.pop().filter(|_| wanted()) else {
                // No lane has a whole run left: what they have was to be left out too.
                return Ok(None);
            };
            let lane = &mut self.lanes[number];
            (passed, cut, lane.below) = (passed + run, end, end);
            ends.extend(lane.end_of_run(&mut nth, self.merchant, self.least, run)?.map(|end| (end, number)));
        }
        let mut count = self.connection.prepare_cached(self.index.count)?;
        for lane in self.lanes.iter_mut().filter(|lane| lane.below > cut) {
            passed += lane.pass_to(&mut count, self.merchant, cut)?;
        }
        Ok(Some(passed))
    }
}

/// The length of runs that costs least: shorter ones need more seeks, longer ones are passed in vain at the end, once in
/// each lane. A run of each lane fits into what is left out. `None`: there is no lane.
fn run_length(most: u64, lanes: u64) -> Option<u64> {
    let best = most.saturating_mul(SEEK / 2).checked_div(lanes)?.isqrt();
    Some(best.clamp(1, LONGEST_RUN))
}

impl Lane {
    /// Takes back what was read and not used.
    fn unread(&mut self) {
        if let Some(newest) = self.ready.last() {
            self.below = newest + 1;
            self.ended = false;
        }
        self.ready.clear();
    }

    /// The last entry of the next run; `None` when fewer are left.
    fn end_of_run(
        &self,
        nth: &mut CachedStatement<'_>,
        merchant: &str,
        least: i64,
        run: u64,
    ) -> rusqlite::Result<Option<i64>> {
        let Self { direction, shop, currency, status, below, .. } = self;
        let left_out = (run - 1).cast_signed();
        nth.query_row(params![merchant, direction, shop, currency, status, below, least, left_out], |row| row.get(0))
            .optional()
    }

    /// Passes all entries down to the cut, and tells how many.
    fn pass_to(&mut self, count: &mut CachedStatement<'_>, merchant: &str, cut: i64) -> rusqlite::Result<u64> {
        let Self { direction, shop, currency, status, below, .. } = &*self;
        let passed: i64 =
            count.query_row(params![merchant, direction, shop, currency, status, below, cut], |row| row.get(0))?;
        self.below = cut;
        Ok(passed.unsigned_abs())
    }
}
