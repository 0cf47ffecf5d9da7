//! The JSON shapes of both API versions, read into domain types and written from them.

pub mod claimed;
pub mod members;
pub mod time;
pub mod v1;
pub mod v1_lists;
pub mod v2;
