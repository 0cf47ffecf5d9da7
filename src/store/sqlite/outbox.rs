//! The outbox in the tables `callbacks` and `callback_tries`: one row for each callback, queued in the commit of the
//! result (contract section 10).

pub(in crate::store::sqlite) mod forgetting;
pub(super) mod list;
mod rows;
pub(super) mod subject;

/// Statements whose plans are tested.
#[cfg(test)]
pub(super) mod plans {
    pub(in crate::store::sqlite) use super::list::{
        BEFORE_ITS_TIME, BEFORE_ITS_TIME_OF_MERCHANT, OF_ITS_TIME, OF_ITS_TIME_AND_MERCHANT, OF_ORDER, SIZE,
    };
    pub(in crate::store::sqlite) use super::rows::LATE;
    pub(in crate::store::sqlite) use crate::store::sqlite::tasks::{DUE, NEXT_QUEUE, OVERLONG};
}
