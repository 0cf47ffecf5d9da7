//! Limits how often a repeated log line is written.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many kinds are remembered. Beyond that all are forgotten, which costs some extra lines.
const REMEMBERED: usize = 4096;

/// Allows one line of each kind per interval.
#[derive(Debug)]
pub struct LogThrottle<K = ()> {
    interval: Duration,
    written: Mutex<HashMap<K, Written>>,
}

#[derive(Debug)]
struct Written {
    at: Instant,
    suppressed: u64,
}

/// The default interval is ten seconds.
impl<K: Eq + Hash> Default for LogThrottle<K> {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl<K: Eq + Hash> LogThrottle<K> {
    /// Creates a throttle that allows the first line of a kind, and the next one after `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, written: Mutex::default() }
    }

    /// Returns `Some` if a line of this kind is due, with the number of lines suppressed since the last one.
    pub fn due(&self, kind: K) -> Option<u64> {
        let mut kinds = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(written) = kinds.get_mut(&kind) {
            if now.duration_since(written.at) < self.interval {
                written.suppressed += 1;
                return None;
            }
            written.at = now;
            return Some(std::mem::take(&mut written.suppressed));
        }
        if kinds.len() >= REMEMBERED {
            kinds.clear();
        }
        kinds.insert(kind, Written { at: now, suppressed: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_line_of_each_kind_is_due_once_in_an_interval() {
        let throttle = LogThrottle::new(INTERVAL);
        assert_eq!([throttle.due("a"), throttle.due("a"), throttle.due("b")], [Some(0), None, Some(0)]);
        tokio::time::advance(INTERVAL / 2).await;
        assert_eq!([throttle.due("a"), throttle.due("b")], [None, None]);
        tokio::time::advance(INTERVAL / 2).await;
        assert_eq!([throttle.due("a"), throttle.due("a"), throttle.due("b")], [Some(2), None, Some(1)]);
    }

    #[test]
    fn remembered_kinds_are_bounded() {
        let throttle = LogThrottle::new(INTERVAL);
        assert!((0..=REMEMBERED).all(|kind| throttle.due(kind).is_some()));
        assert_eq!(throttle.written.lock().unwrap().len(), 1);
    }
}
