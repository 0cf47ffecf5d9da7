//! JSON on the wire: a strict reader, the shapes of both dialects and of what operators read, and their writers.

pub mod callbacks;
pub mod canonical;
pub mod members;
pub mod time;
pub mod v1;
pub mod v1_lists;
pub mod v2;

pub use crate::json;
