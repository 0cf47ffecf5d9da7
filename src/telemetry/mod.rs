//! Logs and metrics for operators.

pub mod access;
mod cards;
pub mod classic;
pub mod logs;
pub mod metrics;
mod slots;
mod stopwatch;
mod throttle;

pub use access::{AccessLine, AccessLog, LogFormat};
pub use cards::without_cards;
pub use logs::Logs;
pub use metrics::{Metrics, RulesState, Stage};
pub use stopwatch::Stopwatch;
pub use throttle::LogThrottle;
