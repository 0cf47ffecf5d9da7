//! JSON on the wire: a strict reader, the shapes of both dialects, and their writers.

pub mod canonical;
pub mod json;
pub mod members;
pub mod time;
pub mod v1;
pub mod v1_lists;
pub mod v2;
