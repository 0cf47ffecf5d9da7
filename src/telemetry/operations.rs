//! The metrics of operations that need an operator, and of what operators do.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{CreatedFailed, LabelCounters, OutcomeName, Reason};
use crate::domain::Direction;

/// Counts operations that were created FAILED, those that need attention, and resolutions.
pub struct OperationMetrics {
    created_failed: Family<CreatedFailed, Counter>,
    attention: Family<Reason, Gauge>,
    resolutions: LabelCounters<OutcomeName>,
}

impl Default for OperationMetrics {
    fn default() -> Self {
        Self {
            created_failed: Family::default(),
            attention: Family::default(),
            resolutions: LabelCounters::new(|outcome| OutcomeName { outcome }),
        }
    }
}

impl OperationMetrics {
    /// Registers the metrics under their names.
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Operations created FAILED, by direction and cause";
        registry.register("operations_created_failed", help, self.created_failed.clone());
        let help = "Operations that need an operator, by reason, up to 10000 of each";
        registry.register("operations_attention", help, self.attention.clone());
        let help = "Results set by hand, by what came of them";
        registry.register("resolutions", help, self.resolutions.family.clone());
    }

    /// Counts an operation that was created FAILED, by the engine's cause.
    pub fn created_failed(&self, direction: Direction, cause: &'static str) {
        self.created_failed.get_or_create_owned(&CreatedFailed { direction: direction.as_str(), cause }).inc();
    }

    /// Sets how many operations need attention for a reason.
    pub fn needs_attention(&self, reason: &'static str, count: u64) {
        self.attention.get_or_create(&Reason { reason }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a result that an operator set: `resolved`, `waits`, `confirmed` or `refused`.
    pub fn resolution(&self, outcome: &'static str) {
        self.resolutions.count(outcome);
    }
}
