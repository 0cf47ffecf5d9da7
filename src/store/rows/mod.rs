//! Conversion between domain values and columns, including encryption, for every backend. Reading and writing the rows
//! is up to the backends.

pub(in crate::store) mod callback;
pub(in crate::store) mod context;
pub(in crate::store) mod entry;
pub(in crate::store) mod ledger;
pub(in crate::store) mod operation;
pub(in crate::store) mod preparation;

use super::StoreError;
use super::vault::DecryptError;
use crate::domain::InvalidValue;

pub(in crate::store) use context::{direction_number, direction_of};
pub(in crate::store) use operation::{bare_state, finished_at, status_number, status_of};

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
