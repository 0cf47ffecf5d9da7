//! What a supervisor restarts the process for, and what it does not.
//!
//! A restart mends what is stuck in here: the main runtime, a thread of the listener, the SQLite store's own thread. It
//! mends nothing that is away or says no: a database that cannot be reached, a full disk, rules that are refused. So a
//! store's answer counts as life whatever it says, and of a store outside the process silence counts too.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::operations::Operations;
use crate::http::listener::Watchdog;

/// How long a store outside the process is waited for, to say so in the status.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// The parts of the process that have to move.
pub(super) struct Life {
    pub listener: Watchdog,
    pub operations: Arc<Operations>,
    /// The store's threads are this process's.
    pub store_is_inside: bool,
}

impl Life {
    /// Comes back, with what there is to say, once everything has moved that a restart would mend. It runs on the main
    /// runtime, which proves that one.
    pub(super) async fn proof(&self) -> String {
        let store = received_of(self.store_is_inside, self.operations.probe());
        let ((), store) = tokio::join!(self.listener.felt(), store);
        let status = self.operations.status();
        match store {
            Ok(()) => status,
            Err(error) => format!("{status}; the store: {error}"),
        }
    }
}

/// What a store says; of one outside, that it says nothing.
async fn received_of(is_inside: bool, answer: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    if is_inside {
        return answer.await;
    }
    timeout(STORE_PATIENCE, answer).await.unwrap_or_else(|_| Err("no answer".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_of_a_store_inside_is_no_life_and_all_else_is() {
        for is_inside in [true, false] {
            assert_eq!(received_of(is_inside, ready(Ok(()))).await, Ok(()));
            let full = Err("the disk is full".to_owned());
            assert_eq!(received_of(is_inside, ready(full.clone())).await, full, "it answers");
        }
        assert_eq!(received_of(false, pending()).await, Err("no answer".to_owned()), "a restart would not mend that");
        // Of the test's clock, which leaps.
        let inside = timeout(Duration::from_hours(1), received_of(true, pending())).await;
        assert!(inside.is_err(), "its thread is stuck: {inside:?}");
    }
}
