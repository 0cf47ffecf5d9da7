//! What the log says about a failing disk: enough to see it, never a line for each request.

use std::time::Duration;

use super::connection;
use crate::telemetry::LogThrottle;

/// At most one line of a kind in this time.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The writer's lines about failures.
#[derive(Debug)]
pub(super) struct Reports {
    moved: bool,
    failures: LogThrottle,
    recoveries: LogThrottle,
}

impl Default for Reports {
    fn default() -> Self {
        Self { moved: false, failures: LogThrottle::new(INTERVAL), recoveries: LogThrottle::new(INTERVAL) }
    }
}

impl Reports {
    /// A commit or an attempt to open the file anew failed. Files that are gone stay gone: that is said once.
    pub(super) fn failed(&mut self, error: &rusqlite::Error, what: &str) {
        let tell = if connection::is_moved(error) {
            !std::mem::replace(&mut self.moved, true)
        } else {
            self.failures.due(()).is_some()
        };
        if tell {
            tracing::error!(%error, "{what}");
        }
    }

    /// The file was opened anew.
    pub(super) fn recovered(&mut self) {
        if std::mem::take(&mut self.moved) || self.recoveries.due(()).is_some() {
            tracing::info!("the store was opened anew after a failure");
        }
    }
}
