//! Moving the log into the file, off the way of commits: a thread with its own connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::connection::{Checkpoint, Log, Role, Source, checkpoint, is_moved};
use super::reports::Limit;

/// The checkpointer is woken when so many pages were written to the log (16 MiB). A page that many commits changed is
/// moved once in a pass, so that few passes cost less than many.
const WAKING_PAGES: i64 = 4000;

/// It looks after the log this often in any case.
const INTERVAL: Duration = Duration::from_secs(3);

/// The writer's hold on the checkpointing thread.
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    failed: Arc<AtomicBool>,
    /// How long the log was, and how much of it was written since the checkpointer was woken, in pages.
    log_pages: i64,
    new_pages: i64,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(source: Arc<Source>) -> std::io::Result<Self> {
        // One waiting signal is as good as many.
        let (wake, signals) = sync_channel(1);
        let failed = Arc::new(AtomicBool::new(false));
        let failure = Arc::clone(&failed);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&source, &signals, &failure))?;
        Ok(Self { wake: Some(wake), failed, log_pages: 0, new_pages: 0, thread: Some(thread) })
    }

    /// Tells how long the log is after a commit, in pages.
    pub(super) fn log_is(&mut self, pages: i64) {
        // A shorter log was begun anew.
        self.new_pages += if pages < self.log_pages { pages } else { pages - self.log_pages };
        self.log_pages = pages;
        if let (true, Some(wake)) = (self.new_pages >= WAKING_PAGES, &self.wake)
            && wake.try_send(()).is_ok()
        {
            self.new_pages = 0;
        }
    }

    /// Whether the disk failed under a checkpoint since this was asked last: a failed fsync, which the writer has to
    /// treat like one of its own.
    pub(super) fn take_failure(&self) -> bool {
        self.failed.load(Ordering::Relaxed) && self.failed.swap(false, Ordering::AcqRel)
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(source: &Source, signals: &Receiver<()>, failed: &AtomicBool) {
    let mut connection: Option<Connection> = None;
    let mut lines = Limit::default();
    while !matches!(signals.recv_timeout(INTERVAL), Err(RecvTimeoutError::Disconnected)) {
        if let Err(error) = pass(&mut connection, source) {
            // That the files are gone is for the writer to tell.
            if !is_moved(&error) && lines.allows() {
                tracing::warn!(%error, "the store's log could not be moved into its file");
            }
            connection = None;
            if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                failed.store(true, Ordering::Release);
            }
        }
    }
}

fn pass(connection: &mut Option<Connection>, source: &Source) -> rusqlite::Result<Log> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(source.connect(Role::Checkpointer)?),
    };
    checkpoint(connection, Checkpoint::Passive)
}
