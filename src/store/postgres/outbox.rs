//! The outbox in the tables `callbacks` and `callback_tries` (contract section 10): one row for each callback, queued
//! in the commit of the result.

pub(super) mod forgetting;
pub(super) mod list;
mod rows;
pub(super) mod subject;

pub(super) use subject::bucket_in_key;
