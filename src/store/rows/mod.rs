//! Conversion between domain values and columns, including encryption, for every backend. The columns of a table are listed
//! beside the conversion.

pub(in crate::store) mod callback;
pub(in crate::store) mod context;
pub(in crate::store) mod details;
pub(in crate::store) mod entry;
pub(in crate::store) mod ledger;
pub(in crate::store) mod operation;
pub(in crate::store) mod preparation;
pub(in crate::store) mod task;

pub(in crate::store) use super::sql::{CorruptRow, OrCorrupt};
pub(in crate::store) use context::{direction_number, direction_of};
pub(in crate::store) use operation::{bare_state, finished_at, status_number, status_of};
