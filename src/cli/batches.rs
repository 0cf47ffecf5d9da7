//! Work that changes the store in batches: retried while the store is busy, and ended by a signal between two of them.

use std::io::{self, Write};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::progress::Progress;
use super::signals::stopped;
use crate::store::StoreError;

/// How many ids one commit has.
pub(super) const BATCH: usize = 1000;
/// The pause between two commits, in which a gateway on the same file can commit.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a batch is retried while the store is busy or unavailable, and the pause before each retry.
const RETRIES: u32 = 60;
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why work in batches ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Interruption {
    #[error("interrupted")]
    Signal,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the ids cannot be read to the end: {0}")]
    Source(#[from] io::Error),
}

/// Runs batches, and shows their progress.
pub(super) struct BatchWork<'a> {
    stop: watch::Receiver<bool>,
    progress: Progress,
    err: &'a mut dyn Write,
}

impl<'a> BatchWork<'a> {
    /// Begins. `stop` becomes true when the work is to end.
    pub(super) fn start(stop: watch::Receiver<bool>, progress: Progress, err: &'a mut dyn Write) -> Self {
        Self { stop, progress, err }
    }

    /// Shows how much is done.
    pub(super) fn show(&mut self, done: u64) {
        self.progress.at(done, self.err);
    }

    /// Writes a line above the progress.
    pub(super) fn print_line(&mut self, line: &str) {
        self.progress.print_line(line, self.err);
    }

    /// Calls the store; retries for a while if it is busy.
    pub(super) async fn retry<T>(&mut self, call: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, Interruption> {
        let mut retries = 0;
        loop {
            match call().await {
                Err(error @ StoreError::Unavailable(_)) if retries < RETRIES => {
                    if retries == 0 {
                        self.print_line(&format!("{error}; retrying"));
                    }
                    retries += 1;
                    self.sleep_or_end(RETRY_AFTER).await?;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Lets others commit between two batches.
    pub(super) async fn pause(&mut self) -> Result<(), Interruption> {
        self.sleep_or_end(PAUSE).await
    }

    async fn sleep_or_end(&mut self, span: Duration) -> Result<(), Interruption> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Interruption::Signal),
            () = sleep(span) => Ok(()),
        }
    }
}
