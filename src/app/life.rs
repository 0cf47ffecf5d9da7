//! The proof of life for the service manager's watchdog: which failures a restart repairs.
//!
//! A restart repairs what is stuck inside this process: the main runtime, a listener thread, the SQLite store's thread.
//! It repairs nothing outside: an unreachable database, a full disk, rejected rules. So any reply of the store counts
//! as life, even an error, and a store outside the process may also stay silent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::process_control::ProcessControl;
use crate::http::listener::Watchdog;

/// How long to wait for a store outside the process before the status reports that it is silent.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The parts of the process whose progress is checked.
pub(super) struct Life {
    pub listener: Watchdog,
    pub control: Arc<ProcessControl>,
    /// Whether the store runs on threads of this process.
    pub store_is_inside: bool,
}

impl Life {
    /// Completes once every part that a restart would repair has made progress. It runs on the main runtime, and so
    /// proves that one too.
    pub(super) async fn proof(&self) {
        let store = store_reply(self.store_is_inside, self.control.probe());
        let ((), store) = tokio::join!(self.listener.probe(), store);
        self.control.set_store_problem(store.err());
    }
}

/// Waits for the store's reply; for one outside the process, at most [`STORE_TIMEOUT`].
async fn store_reply(is_inside: bool, answer: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    if is_inside {
        return answer.await;
    }
    timeout(STORE_TIMEOUT, answer).await.unwrap_or_else(|_| Err("no answer".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_silent_store_in_this_process_is_stuck() {
        for is_inside in [true, false] {
            assert_eq!(store_reply(is_inside, ready(Ok(()))).await, Ok(()));
            let full = Err("the disk is full".to_owned());
            assert_eq!(store_reply(is_inside, ready(full.clone())).await, full, "an error is a reply");
        }
        assert_eq!(store_reply(false, pending()).await, Err("no answer".to_owned()), "a restart would not repair that");
        // Of the test's clock, which advances by itself.
        let inside = timeout(Duration::from_hours(1), store_reply(true, pending())).await;
        assert!(inside.is_err(), "its thread is stuck: {inside:?}");
    }
}
