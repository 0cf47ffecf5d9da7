//! The clock of this machine beside the database's, which all nodes share. Whoever claims by a clock that is wrong takes what
//! others have in hand, hides it for as long as the clock is ahead, or gives up what was only just queued: such a node
//! leaves the queues to the others.

use std::cell::Cell;

use crate::store::StoreError;

/// A clock that is so many milliseconds off is wrong. Well-kept ones differ by some; with less, what others have in hand may
/// be taken up twice, which is idempotent, and nothing is hidden or given up early.
const MOST: i64 = 30_000;

/// An answer that takes longer tells no time.
pub(super) const LONGEST: i64 = 2_000;

/// How far this machine's clock is ahead of the database's, as last measured, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Offset(Cell<i64>);

impl Offset {
    /// # Errors
    /// The clock is wrong.
    pub(super) fn require_right(&self) -> Result<(), StoreError> {
        let ahead = self.0.get();
        if ahead.abs() <= MOST {
            return Ok(());
        }
        let (seconds, which) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
        Err(StoreError::Unavailable(format!(
            "the clock of this machine is {seconds} s {which} the database's: queues are left to other gateways"
        )))
    }

    /// Notes a measurement.
    pub(super) fn set(&self, ahead: i64) {
        self.0.set(ahead);
    }
}
