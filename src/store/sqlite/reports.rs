//! What the log says about a failing disk: enough to see it, never a line for each request.

use std::time::{Duration, Instant};

use super::connection;

/// At most one line of a kind in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lets one line through in an interval.
#[derive(Debug, Default)]
pub(super) struct Limit(Option<Instant>);

impl Limit {
    pub(super) fn allows(&mut self) -> bool {
        let allows = self.0.is_none_or(|last| last.elapsed() >= INTERVAL);
        if allows {
            self.0 = Some(Instant::now());
        }
        allows
    }
}

/// The writer's lines about failures.
#[derive(Debug, Default)]
pub(super) struct Reports {
    moved: bool,
    failures: Limit,
    recoveries: Limit,
}

impl Reports {
    /// A commit or an attempt to open the file anew failed. Files that are gone stay gone: that is said once.
    pub(super) fn failed(&mut self, error: &rusqlite::Error, what: &str) {
        let tell = if connection::is_moved(error) {
            !std::mem::replace(&mut self.moved, true)
        } else {
            self.failures.allows()
        };
        if tell {
            tracing::error!(%error, "{what}");
        }
    }

    /// The file was opened anew.
    pub(super) fn recovered(&mut self) {
        if std::mem::take(&mut self.moved) || self.recoveries.allows() {
            tracing::info!("the store was opened anew after a failure");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_let_through_in_an_interval() {
        let mut limit = Limit::default();
        assert!(limit.allows());
        limit.0 = Some(Instant::now() + INTERVAL);
        assert!(!limit.allows());
        limit.0 = Instant::now().checked_sub(INTERVAL);
        assert!(limit.allows());
    }
}
