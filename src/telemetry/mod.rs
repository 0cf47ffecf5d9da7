//! What operators see: logs and metrics.

pub mod metrics;

pub use metrics::{Metrics, Stage};
