//! What operators see: logs and metrics.

pub mod access;
pub mod classic;
pub mod logs;
pub mod metrics;
mod slots;

pub use access::{AccessLine, AccessLog, LogFormat};
pub use logs::Logs;
pub use metrics::{Metrics, Stage};
