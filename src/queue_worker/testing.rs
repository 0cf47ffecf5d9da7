//! A worker that a test leads through its rounds.

use super::{QueueHandler, QueueWorker};

impl<H: QueueHandler> QueueWorker<H> {
    pub(crate) const fn handler(&mut self) -> &mut H {
        &mut self.handler
    }

    /// Starts the tasks of one round; returns whether there may be more now.
    pub(crate) async fn start_round(&mut self) -> bool {
        self.handler.round(&mut self.in_flight).await.unwrap().is_zero()
    }

    /// Runs one round and waits for its tasks; returns whether there may be more now.
    pub(crate) async fn run_round(&mut self) -> bool {
        let has_more = self.start_round().await;
        while let Some(finished) = self.in_flight.join_next_with_id().await {
            assert!(finished.is_ok(), "a task panicked");
            self.handler.finished(finished);
        }
        has_more
    }

    /// Abandons the tasks in flight, as the end of the process would.
    pub(crate) async fn abandon(&mut self) {
        self.in_flight.shutdown().await;
    }
}
