//! The metrics of the store: of its commits, and of SQLite's write-ahead log.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{BATCH_SIZES, COMMIT_SECONDS};

/// Counts and measures commits, and has the size of the log.
pub struct StoreMetrics {
    pub(super) commits: Counter,
    batch: Histogram,
    duration: Histogram,
    failures: Counter,
    log: Gauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            batch: Histogram::new(BATCH_SIZES),
            duration: Histogram::new(COMMIT_SECONDS),
            failures: Counter::default(),
            log: Gauge::default(),
        }
    }
}

impl StoreMetrics {
    /// Registers the metrics under their names.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("commits", "Commits of the store", self.commits.clone());
        registry.register("commit_batch_size", "Commands that shared a commit", self.batch.clone());
        let help = "Duration of commits, until they were on disk";
        registry.register_with_unit("commit_duration", help, Unit::Seconds, self.duration.clone());
        registry.register("commit_failures", "Commits that failed", self.failures.clone());
        let help = "Size of the SQLite store's write-ahead log; 0 with PostgreSQL";
        registry.register_with_unit("store_log", help, Unit::Bytes, self.log.clone());
    }

    /// Records a commit with `batch` commands.
    pub fn commit(&self, batch: usize, duration: Duration) {
        self.commits.inc();
        self.batch.observe(f64::from(u32::try_from(batch).unwrap_or(u32::MAX)));
        self.duration.observe(duration.as_secs_f64());
    }

    /// Counts a failed commit.
    pub fn commit_failed(&self) {
        self.failures.inc();
    }

    /// Sets the size of the log.
    pub fn log_bytes(&self, bytes: u64) {
        self.log.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}
