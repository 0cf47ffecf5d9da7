//! How often and how many at once histories may request statuses of the engine.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::outbound::RequestPlaces;
use crate::store::EntryId;

/// How many statuses are requested at once.
const AT_ONCE: usize = 16;
/// How long a status is recent enough for a history.
const FRESH: Duration = Duration::from_secs(2);
/// The most entries that are remembered as requested; beyond, a status is requested again.
const REMEMBERED: usize = 16 * 1024;

/// Bounds what histories request of the engine, for all of them together: one history may need the status of many rows.
pub(super) struct StatusRefresher {
    pub(super) at_once: RequestPlaces,
    requested: Mutex<HashMap<EntryId, Instant>>,
}

impl Default for StatusRefresher {
    fn default() -> Self {
        Self { at_once: RequestPlaces::new(AT_ONCE), requested: Mutex::default() }
    }
}

impl StatusRefresher {
    /// Reports whether an entry's status was not requested a moment ago; if so, it counts as requested now.
    pub(super) fn is_due(&self, id: EntryId) -> bool {
        let now = Instant::now();
        let mut requested = self.requested.lock().unwrap_or_else(PoisonError::into_inner);
        if requested.len() >= REMEMBERED {
            requested.retain(|_, at| now.duration_since(*at) < FRESH);
        }
        let due = requested.get(&id).is_none_or(|at| now.duration_since(*at) >= FRESH);
        if due && requested.len() < REMEMBERED {
            requested.insert(id, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_entry_is_requested_now_and_then() {
        let refresher = StatusRefresher::default();
        assert!(refresher.is_due(EntryId(1)));
        assert!(!refresher.is_due(EntryId(1)));
        assert!(refresher.is_due(EntryId(2)));
        tokio::time::advance(FRESH).await;
        assert!(refresher.is_due(EntryId(1)));
        for id in 0..REMEMBERED + 8 {
            assert!(refresher.is_due(EntryId(10 + i64::try_from(id).unwrap())));
        }
        assert!(refresher.requested.lock().unwrap().len() <= REMEMBERED);
    }
}
