//! Checks journal entries.

use super::{AuditFindings, Found, RowPlace, message_of};
use crate::domain::Fingerprint;
use crate::store::JournalEntry;
use crate::store::create::Home;
use crate::store::rows::entry::EntryRow;

/// What is stored about an entry in other rows.
pub(in crate::store) struct AroundEntry {
    /// Whether another entry has the same `transaction_id`.
    pub(in crate::store) named_twice: bool,
}

impl AuditFindings {
    /// Checks a slice of entries.
    pub(in crate::store) fn journal(&mut self, rows: Vec<Found<(EntryRow, AroundEntry)>>) {
        for (place, row) in rows {
            self.found.journal += 1;
            match row {
                Some((row, around)) => self.entry(place, row, &around),
                None => self.found.problem(format!("journal entry {}: a column is invalid", place.1)),
            }
        }
    }

    /// Checks an entry. Decoding it checks its state and that its sealed columns open.
    fn entry(&mut self, place: RowPlace, row: EntryRow, around: &AroundEntry) {
        let stored_key = Fingerprint(row.order_key);
        let JournalEntry { id, intent, .. } = match row.decode(&self.vault) {
            Ok(entry) => entry,
            Err(error) => return self.found.problem(message_of(error)),
        };
        let key = self.vault.fingerprint_key().order_key(&intent.merchant, intent.direction, &intent.order_id);
        let problems = [
            (key != stored_key, "its order key is not the one of its order_id"),
            (!self.is_in_bucket(place, intent.merchant.as_str()), "its bucket is not the one of its merchant"),
            (around.named_twice, "another entry has the same transaction_id"),
        ];
        self.note_problems(format_args!("journal entry {}", id.0), problems);
        self.homes.push((key, Home::Entry(id)));
    }
}
