//! The journal.

use super::{Findings, Found, Place, said};
use crate::store::rows::entry::{EntryRow, place_of};
use crate::store::{Digest, Entry, Progress};

/// What stands around an entry.
pub(in crate::store) struct AroundEntry {
    pub(in crate::store) order_key: Digest,
    pub(in crate::store) reserved: bool,
    /// Its order is an operation's, too.
    pub(in crate::store) operation: bool,
    /// Its `transaction_id` is another entry's, too.
    pub(in crate::store) named_twice: bool,
    /// Its place in the list; a store with buckets keeps none.
    pub(in crate::store) list_place: Option<i64>,
}

impl Findings {
    /// Looks at a slice of entries.
    pub(in crate::store) fn journal(&mut self, rows: Vec<Found<(EntryRow, AroundEntry)>>) {
        for (place, row) in rows {
            self.found.journal += 1;
            match row {
                Some((row, around)) => self.entry(place, row, &around),
                None => self.found.problem(format!("journal entry {}: a column is not ours", place.1)),
            }
        }
    }

    /// That its state has what it demands, and that what is sealed opens, is shown by decoding it.
    fn entry(&mut self, place: Place, row: EntryRow, around: &AroundEntry) {
        let Entry { id, intent, progress } = match row.decode(&self.vault) {
            Ok(entry) => entry,
            Err(error) => return self.found.problem(said(error)),
        };
        let key = self.vault.comparer().order_key(&intent.merchant, intent.direction, &intent.order_id);
        let listed = matches!(progress, Progress::Answered(_)).then(|| place_of(intent.created_at, id));
        let problems = [
            (key != around.order_key, "its order key is not the one of its order_id"),
            (!self.is_in_bucket(place, intent.merchant.as_str()), "its bucket is not the one of its merchant"),
            (!self.has_buckets && around.list_place != listed, "its place in the list is not the one of its time"),
            (around.named_twice, "its transaction_id is another entry's as well"),
            (around.reserved, "its order_id is reserved for v1 as well"),
            (around.operation, "its order_id names an operation of the embedded engine as well"),
        ];
        self.note(format_args!("journal entry {}", id.0), problems);
    }
}
