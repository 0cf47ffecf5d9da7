//! Logs and metrics for operators.

pub mod access;
mod cards;
mod history;
mod homes;
mod labels;
pub mod logs;
pub mod metrics;
mod operations;
pub mod prometheus_text;
mod refused;
mod stopwatch;
mod store;
mod throttle;

pub use access::{AccessLine, AccessLog, LogFormat};
pub use cards::without_cards;
pub use history::{History, HistoryPoint, HistorySnapshot, POINT_INTERVAL, RefusalCount};
pub use homes::HomeMetrics;
pub use labels::Stage;
pub use logs::Logs;
pub use metrics::{Metrics, RulesState};
pub use operations::OperationMetrics;
pub use refused::{RefusedQuery, RefusedRequest, RefusedRequests};
pub use stopwatch::Stopwatch;
pub use store::StoreMetrics;
pub use throttle::LogThrottle;
