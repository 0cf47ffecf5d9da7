//! Conversion between domain values and columns, including encryption, for every backend. Reading and writing the rows
//! is up to the backends.

pub(in crate::store) mod callback;
pub(in crate::store) mod context;
pub(in crate::store) mod details;
pub(in crate::store) mod entry;
pub(in crate::store) mod ledger;
pub(in crate::store) mod operation;

use super::StoreError;
use super::vault::DecryptError;
use crate::domain::{Direction, InvalidValue, Outcome, ProviderKind, State, Status, UnixMillis};

/// An open transaction of a database.
pub(in crate::store) trait Transaction {
    type Error: From<CorruptRow>;
}

/// The name of a column that contains an invalid value.
pub(in crate::store) struct CorruptRow(pub(in crate::store) &'static str);

impl CorruptRow {
    /// Returns the error for a column of an operation.
    pub(in crate::store) fn of_operation(self, id: i64) -> StoreError {
        let Self(column) = self;
        StoreError::Corrupt(format!("operation {id}: the column {column} is invalid"))
    }
}

impl From<(DecryptError, &'static str)> for CorruptRow {
    fn from((DecryptError, column): (DecryptError, &'static str)) -> Self {
        Self(column)
    }
}

pub(in crate::store) trait OrCorrupt<T> {
    fn or_corrupt(self, column: &'static str) -> Result<T, CorruptRow>;
}

impl<T> OrCorrupt<T> for Result<T, InvalidValue> {
    fn or_corrupt(self, column: &'static str) -> Result<T, CorruptRow> {
        self.map_err(|_| CorruptRow(column))
    }
}

pub(in crate::store) const fn finished_at(state: &State) -> Option<i64> {
    match state {
        State::Pending => None,
        State::Finished { at, .. } => Some(at.0),
    }
}

/// Returns the state of a status and a time. Leaves out the payer, which is sealed.
pub(in crate::store) const fn bare_state(status: Status, finished_at: Option<i64>) -> State {
    let outcome = match status {
        Status::Pending => return State::Pending,
        Status::Success => Outcome::Success { payer: None },
        Status::Failed => Outcome::Failed,
    };
    let at = match finished_at {
        Some(at) => UnixMillis(at),
        None => UnixMillis(0),
    };
    State::Finished { outcome, at }
}

pub(in crate::store) const fn direction_number(direction: Direction) -> i64 {
    match direction {
        Direction::Payin => 0,
        Direction::Payout => 1,
    }
}

pub(in crate::store) const fn direction_of(number: i64) -> Option<Direction> {
    match number {
        0 => Some(Direction::Payin),
        1 => Some(Direction::Payout),
        _ => None,
    }
}

pub(in crate::store) const fn status_number(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Success => 1,
        Status::Failed => 2,
    }
}

pub(in crate::store) const fn status_of(number: i64) -> Option<Status> {
    match number {
        0 => Some(Status::Pending),
        1 => Some(Status::Success),
        2 => Some(Status::Failed),
        _ => None,
    }
}

pub(in crate::store) const fn provider_number(provider: ProviderKind) -> i64 {
    match provider {
        ProviderKind::Sandbox => 0,
        ProviderKind::Http => 1,
    }
}

pub(in crate::store) const fn provider_of(number: i64) -> Option<ProviderKind> {
    match number {
        0 => Some(ProviderKind::Sandbox),
        1 => Some(ProviderKind::Http),
        _ => None,
    }
}
