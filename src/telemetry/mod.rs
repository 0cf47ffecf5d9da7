//! Logs and metrics for operators.

pub mod access;
mod cards;
pub mod classic;
mod homes;
mod labels;
pub mod logs;
pub mod metrics;
mod slots;
mod stopwatch;
mod throttle;

pub use access::{AccessLine, AccessLog, LogFormat};
pub use cards::without_cards;
pub use homes::HomeMetrics;
pub use labels::Stage;
pub use logs::Logs;
pub use metrics::{Metrics, RulesState};
pub use stopwatch::Stopwatch;
pub use throttle::LogThrottle;
