//! The columns of exports. Their names and their order are documented, and programs rely on them: a new column is added at
//! the end.

use crate::callback::listing::through;
use crate::cli::rows::Cell;
use crate::domain::{Decimals, State, UnixMillis};
use crate::store::{ActionRecord, CallbackRecord, ExportedEntry, ExportedOperation, TryOutcome};
use crate::wire::time::rfc3339;

/// A column: its name, and its value in a row.
pub(super) type ExportColumn<R> = (&'static str, for<'r> fn(&'r R) -> Cell<'r>);

pub(super) const OPERATIONS: &[ExportColumn<ExportedOperation>] = &[
    ("transaction_id", |(row, _)| Cell::own(row.operation.id.to_string())),
    ("merchant", |(row, _)| Cell::foreign(row.operation.merchant.as_str())),
    ("order_id", |(row, _)| Cell::foreign(row.operation.order_id.as_str())),
    ("direction", |(row, _)| Cell::own(row.operation.direction().as_str())),
    ("through", |(row, _)| Cell::own(if row.v1.is_some() { "v1" } else { "v2" })),
    ("shop", |(row, _)| Cell::foreign(row.operation.shop.as_str())),
    ("status", |(row, _)| Cell::own(row.operation.state.status().as_str())),
    ("amount", |(row, _)| Cell::own(row.operation.amount.to_string())),
    ("currency", |(row, _)| Cell::own(row.operation.currency.as_str())),
    ("created_at", |(row, _)| time(row.operation.created_at)),
    ("finished_at", |(row, _)| match row.operation.state {
        State::Finished { at, .. } => time(at),
        State::Pending => Cell::Empty,
    }),
    ("account_number", |(row, _)| Cell::of(row.operation.shown_account(), Cell::own)),
    ("customer_account_id", |(row, _)| Cell::of(row.operation.customer_account_id, |id| Cell::Number(id.0))),
    ("cause", |(_, failure)| Cell::of(failure.as_ref(), |(cause, _)| Cell::own(cause.as_str()))),
    ("cause_code", |(_, failure)| {
        Cell::of(failure.as_ref().and_then(|(_, words)| words.code.as_deref()), Cell::foreign)
    }),
    ("cause_text", |(_, failure)| {
        Cell::of(failure.as_ref().and_then(|(_, words)| words.text.as_deref()), Cell::foreign)
    }),
];

pub(super) const ENTRIES: &[ExportColumn<ExportedEntry>] = &[
    ("posted_at", |row| time(row.posted_at)),
    ("merchant", |row| Cell::foreign(row.merchant.as_str())),
    ("transaction_id", |row| Cell::of(row.operation.as_ref(), |(id, ..)| Cell::own(id.to_string()))),
    ("order_id", |row| Cell::of(row.operation.as_ref(), |(_, order_id, _)| Cell::foreign(order_id.as_str()))),
    ("shop", |row| Cell::of(row.operation.as_ref(), |(.., shop)| Cell::foreign(shop.as_str()))),
    ("posting", |row| Cell::own(row.posting.as_str())),
    ("account", |row| Cell::own(row.account.as_str())),
    ("amount", |row| Cell::own(Decimals(row.amount).to_string())),
    ("currency", |row| Cell::own(row.currency.as_str().to_owned())),
];

pub(super) const CALLBACKS: &[ExportColumn<(CallbackRecord, Box<str>)>] = &[
    ("id", |(row, _)| Cell::own(row.id.to_string())),
    ("state", |(row, _)| Cell::own(row.state.as_str())),
    ("merchant", |(row, _)| Cell::foreign(row.merchant.as_str())),
    ("direction", |(row, _)| Cell::own(row.direction.as_str())),
    ("order_id", |(row, _)| Cell::foreign(row.order_id.as_str())),
    ("transaction_id", |(row, _)| Cell::of(row.transaction_id.as_deref(), Cell::foreign)),
    ("shop", |(_, shop)| Cell::foreign(&**shop)),
    ("through", |(row, _)| Cell::own(through(row))),
    ("target", |(row, _)| Cell::foreign(row.target.origin())),
    ("queued_at", |(row, _)| time(row.queued_at)),
    ("tries", |(row, _)| Cell::Number(row.tries.into())),
    ("last_status", |(row, _)| match row.last {
        Some(TryOutcome::Status(status)) => Cell::Number(status.into()),
        Some(TryOutcome::Error(_)) | None => Cell::Empty,
    }),
    ("last_error", |(row, _)| match &row.last {
        Some(TryOutcome::Error(error)) => Cell::foreign(&**error),
        Some(TryOutcome::Status(_)) | None => Cell::Empty,
    }),
];

pub(super) const AUDIT: &[ExportColumn<ActionRecord>] = &[
    ("began_at", |row| time(row.at)),
    ("ended_at", |row| Cell::of(row.end.as_ref(), |end| time(end.at))),
    ("user", |row| Cell::foreign(&*row.user)),
    ("role", |row| Cell::own(&*row.role)),
    ("address", |row| Cell::own(&*row.address)),
    ("request_id", |row| Cell::foreign(&*row.request_id)),
    ("action", |row| Cell::own(&*row.action)),
    ("target", |row| Cell::foreign(&*row.target)),
    ("parameters", |row| Cell::Json(&row.parameters)),
    ("rules_version", |row| Cell::own(&*row.rules_version)),
    ("outcome", |row| Cell::of(row.end.as_ref(), |end| Cell::foreign(&*end.outcome))),
];

fn time(at: UnixMillis) -> Cell<'static> {
    Cell::own(rfc3339(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<R>(columns: &[ExportColumn<R>]) -> String {
        columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
    }

    /// Programs read these columns: one may be added at an end, and nothing else changed.
    #[test]
    fn columns_are_documented() {
        let document = include_str!("../../../docs/operations.md");
        for names in [names(OPERATIONS), names(ENTRIES), names(CALLBACKS), names(AUDIT)] {
            let row = names.split(',').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(",");
            let row = row.as_str();
            let words = document.split_whitespace().collect::<Vec<_>>().join(" ").replace("`, `", "`,`");
            assert!(words.contains(row), "docs/operations.md does not have: {row}");
        }
    }
}
