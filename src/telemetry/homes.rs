//! The metrics of orders' homes, of requests to the old v1 service, and of checks of its creates against v2.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{ClassName, LabelCounters, ModeAndHome, OutcomeName, PROVIDER_SECONDS};

/// Counts homes, forwarded requests and checks.
pub struct HomeMetrics {
    creates_by_home: Family<ModeAndHome, Counter>,
    pub(super) legacy_requests: LabelCounters<OutcomeName>,
    legacy_request_duration: Histogram,
    shadow_checks: LabelCounters<ClassName>,
}

impl Default for HomeMetrics {
    fn default() -> Self {
        Self {
            creates_by_home: Family::default(),
            legacy_requests: LabelCounters::new(|outcome| OutcomeName { outcome }),
            legacy_request_duration: Histogram::new(PROVIDER_SECONDS),
            shadow_checks: LabelCounters::new(|class| ClassName { class }),
        }
    }
}

impl HomeMetrics {
    /// Registers the metrics under their names.
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "v1 creates where there is an old v1 service, by the merchant's mode and the home of their order";
        registry.register("creates_by_home", help, self.creates_by_home.clone());
        let help = "Requests forwarded to the old v1 service, by outcome";
        registry.register("legacy_requests", help, self.legacy_requests.family.clone());
        let help = "Duration of requests forwarded to the old v1 service";
        let durations = self.legacy_request_duration.clone();
        registry.register_with_unit("legacy_request_duration", help, Unit::Seconds, durations);
        let help = "Creates checked against v2 after the old service's reply, by what both do";
        registry.register("shadow_checks", help, self.shadow_checks.family.clone());
    }

    /// Counts a v1 create by the merchant's mode and the home of its order: `here`, `legacy` or `lost`.
    pub fn create_by_home(&self, mode: &'static str, home: &'static str) {
        self.creates_by_home.get_or_create(&ModeAndHome { mode, home }).inc();
    }

    /// Records a request that was forwarded to the old v1 service, by outcome.
    pub fn legacy_request(&self, outcome: &'static str, duration: Duration) {
        self.legacy_requests.count(outcome);
        self.legacy_request_duration.observe(duration.as_secs_f64());
    }

    /// Counts a create of mode `shadow` by what the old service and v2 do with it: `both_accept`, `both_refuse`, `blocker`,
    /// `widening`, `not_compared`, `not_checked`.
    pub fn shadow_check(&self, class: &'static str) {
        self.shadow_checks.count(class);
    }
}
