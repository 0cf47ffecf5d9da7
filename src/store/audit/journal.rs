//! Checks journal entries.

use super::{AuditFindings, Found, message_of};
use crate::domain::Fingerprint;
use crate::store::JournalEntry;
use crate::store::homes::Home;
use crate::store::rows::entry::EntryRow;

impl AuditFindings {
    /// Checks a slice of entries.
    pub(super) fn journal(&mut self, rows: Vec<Found<EntryRow>>) {
        for (number, row) in rows {
            self.found.journal += 1;
            match row {
                Some(row) => self.entry(row),
                None => self.found.problem(format!("journal entry {number}: a column is invalid")),
            }
        }
    }

    /// Checks an entry. Decoding it checks its state and that its sealed columns open.
    fn entry(&mut self, row: EntryRow) {
        let stored_key = Fingerprint(row.order_key);
        let JournalEntry { id, create, .. } = match row.decode(&self.vault) {
            Ok(entry) => entry,
            Err(error) => return self.found.problem(message_of(error)),
        };
        let key = self.vault.fingerprint_key().order_key(&create.merchant, create.direction, &create.order_id);
        let problems = [(key != stored_key, "its order key is not the one of its order_id")];
        self.note_problems(format_args!("journal entry {}", id.0), problems);
        self.homes.push((key, Home::Entry(id)));
    }
}
