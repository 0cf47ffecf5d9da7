//! Checks operations, with their entries and related rows.

use super::ledger::PostedEntries;
use super::{AuditFindings, Found, message_of};
use crate::domain::{CallbackSender, Kind, Operation, State, Status, TransactionId, wide};
use crate::store::Stored;
use crate::store::homes::Home;
use crate::store::rows::ledger::LedgerRow;
use crate::store::rows::operation::StoredRow;
use crate::store::rows::preparation;

/// What is stored about an operation in other rows.
pub(in crate::store) struct Around {
    /// Whether it has a callback.
    pub(super) notified: bool,
    /// Whether it has a provider job.
    pub(super) job: bool,
    pub(super) preparation: Option<Vec<u8>>,
    /// Whether it counts for a day of its customer.
    pub(super) counted: bool,
    /// Whether it was finished so early that its callback may have been forgotten.
    pub(super) forgotten: bool,
    /// Whether it was created with a provider job.
    pub(super) created_with_job: bool,
}

impl AuditFindings {
    /// Checks a slice of operations and the entries up to its last one, both in the order of their positions.
    pub(super) fn operations(&mut self, rows: Vec<Found<(StoredRow, Around)>>, entries: Vec<(i64, LedgerRow)>) {
        for (_, entry) in &entries {
            self.add_to_sums(entry);
        }
        let mut posted = PostedEntries::all(entries).into_iter().peekable();
        for (number, row) in rows {
            self.found.operations += 1;
            while let Some(posted) = posted.next_if(|posted| posted.number < number) {
                self.check_without_operation(&posted);
            }
            let own = posted.next_if(|posted| posted.number == number);
            match row {
                Some((row, around)) => self.operation(row, &around, own),
                None => self.found.problem(format!("operation {number}: a column is invalid")),
            }
        }
        posted.for_each(|posted| self.check_without_operation(&posted));
    }

    fn operation(&mut self, row: StoredRow, around: &Around, posted: Option<PostedEntries>) {
        let (finished, customer) = (row.finished_at.is_some(), row.customer_account_id.is_some());
        let stored = match row.decode(&self.vault) {
            Ok(stored) => stored,
            Err(error) => return self.found.problem(message_of(error)),
        };
        self.check_entries_of(&stored.operation, posted);
        self.preparation(stored.operation.id, around);
        let Stored { operation, v1, .. } = stored;
        let Operation { id, merchant, order_id, .. } = &operation;
        let pending = operation.state == State::Pending;
        let key = self.vault.fingerprint_key().order_key(merchant, operation.direction(), order_id);
        let needs_callback = !pending && CallbackSender::called_address(v1.as_ref(), &operation.callback_url).is_some();
        let deposit = matches!(operation.kind, Kind::Deposit(_));
        let failed = operation.state.status() == Status::Failed;
        let problems = [
            (finished == pending, "its time of completion does not match its status"),
            (needs_callback && !around.notified && !around.forgotten, "its result has no callback"),
            (!needs_callback && around.notified, "it has a callback, but no result or no callback address"),
            (around.job && !pending, "it is finished and has a provider job"),
            (around.created_with_job && pending && !around.job, "it is PENDING and has lost its provider job"),
            (around.counted && failed, "it failed, but counts for its customer's day"),
            (around.counted && !customer, "it counts for a customer's day, but has no customer"),
            (around.preparation.is_some() && !(pending && deposit), "only a pending deposit has a preparation"),
        ];
        self.note_problems(format_args!("operation {id}"), problems);
        self.homes.push((key, Home::Operation(*id)));
    }

    fn preparation(&mut self, id: TransactionId, around: &Around) {
        let opened = around.preparation.as_deref().map(|sealed| preparation::open(&self.vault, id, sealed));
        if let Some(Err(error)) = opened {
            self.found.problem(message_of(error));
        }
    }

    /// Adds the problem that rows of a table lack their operation: for some of them, and the count of all.
    pub(super) fn orphans(&mut self, table: &str, ids: impl IntoIterator<Item = i64>, count: u64) {
        let notified = ids.into_iter().map(|id| format!("operation {id}: is in {table} but does not exist"));
        self.problems(notified.collect(), count);
    }

    /// Adds the problems that a statement found: some of them, and the count of all.
    pub(super) fn problems(&mut self, notified: Vec<String>, count: u64) {
        let unreported = count.saturating_sub(wide(notified.len()));
        for problem in notified {
            self.found.problem(problem);
        }
        self.found.problem_count += unreported;
    }
}
