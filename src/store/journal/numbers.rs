//! Draws the numbers of entries. They have the form of a `transaction_id`, so that nodes need not agree on them and
//! each contains its bucket. A number that exists is rejected by the primary key, and another is drawn.
//!
//! The numbers that one process draws in a bucket ascend, even within a millisecond and when the clock is set back.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::Random;
use crate::domain::{BUCKETS, Bucket, TransactionId};
use crate::store::{EntryId, PendingCreate, StoreError};

/// The bits of a number below its time: those of the bucket, and below them those that are unique in the bucket.
const BITS_BELOW_TIME: u32 = 22;
const MASK_BELOW_BUCKET: i64 = (1 << 12) - 1;

#[expect(clippy::as_conversions, reason = "`usize::from` is no constant function")]
const PLACES: usize = BUCKETS as usize;

/// The numbers drawn by this process.
pub(in crate::store) static NUMBERS: Numbers = Numbers::new();

/// The last number drawn in each bucket; 0 before the first.
pub(in crate::store) struct Numbers([AtomicI64; PLACES]);

impl Numbers {
    const fn new() -> Self {
        Self([const { AtomicI64::new(0) }; PLACES])
    }

    /// Returns a number for an entry, greater than all that were drawn in its bucket before.
    pub(in crate::store) fn draw(&self, create: &PendingCreate, random: &dyn Random) -> EntryId {
        let bucket = Bucket::of(&create.merchant);
        let drawn = TransactionId::compose(create.created_at, bucket, random.number()).to_stored();
        let Some(last) = self.0.get(usize::from(bucket.number())) else { return EntryId(drawn) };
        let next = |last| if drawn >> BITS_BELOW_TIME > last >> BITS_BELOW_TIME { drawn } else { after(last) };
        match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))) {
            Ok(last) | Err(last) => EntryId(next(last)),
        }
    }
}

/// Returns the next number of the same bucket, in the next millisecond when this one has none left.
fn after(last: i64) -> i64 {
    if last & MASK_BELOW_BUCKET < MASK_BELOW_BUCKET {
        return last + 1;
    }
    // The greatest possible time wraps around to zero.
    last.wrapping_add(1 << BITS_BELOW_TIME) & !MASK_BELOW_BUCKET & i64::MAX
}

/// How often a number is drawn for an entry. A clash is rare, two in a row are rarer.
pub(in crate::store) const MAX_DRAWS: usize = 8;

/// The error when all drawn numbers exist.
pub(in crate::store) fn all_taken() -> StoreError {
    StoreError::Unavailable("no free number was found for a journal entry".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;
    use crate::domain::UnixMillis;
    use crate::store::conformance::pending_create;

    #[test]
    fn numbers_ascend_and_contain_their_bucket() {
        let (numbers, random) = (Numbers::new(), SystemRandomness::default());
        let mut create = pending_create("acme", "order");
        let now = create.created_at.0;
        let mut last = 0;
        for millis in (0..9).flat_map(|_| [now; 1000]).chain([now - 1000, i64::MIN, now + 60_000, now]) {
            create.created_at = UnixMillis(millis);
            let EntryId(number) = numbers.draw(&create, &random);
            assert!(number > last);
            let id = TransactionId::from_stored(number).unwrap();
            assert_eq!(id.bucket(), Bucket::of(&create.merchant));
            last = number;
        }
    }

    #[test]
    fn the_last_millisecond_wraps_around() {
        assert_eq!(after(i64::MAX - 1), i64::MAX);
        assert_eq!(after(i64::MAX), 1023 << 12);
    }
}
