//! Moves the write-ahead log into the file, on a thread with its own connection, so that commits do not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use super::connection::{Checkpoint, ConnectionRole, Log, StoreFile, checkpoint};
use super::failures;
use crate::telemetry::LogThrottle;

/// The checkpointer is woken after this many pages were written to the log (4 MiB). A page that many commits changed is
/// moved once in a pass, so fewer passes cost less; but a short log stays in the caches.
const WAKING_PAGES: i64 = 1000;

/// What is left of the log after a pass, because it was written meanwhile, goes into another pass if it is more than
/// this; otherwise the writer moves it. That also flushes what the passes moved, since SQLite flushes with the last
/// page only: one commit in a thousand pages of the log waits for that.
const FEW_PAGES: i64 = 64;

/// The most passes in a row. Each moves what was written during the previous one.
const PASSES: usize = 4;

/// The checkpointer checks the log at least this often.
const INTERVAL: Duration = Duration::from_secs(3);

/// The writer's handle of the checkpointing thread.
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    shared: Arc<Shared>,
    /// The pages written to the log since the checkpointer was woken.
    new_pages: i64,
    thread: Option<JoinHandle<()>>,
}

/// The state that the two threads share.
#[derive(Debug, Default)]
struct Shared {
    failed: AtomicBool,
    /// The length of the log after the last commit, in pages.
    pages: AtomicI64,
    /// How much of the log a pass has moved that left little; zero if there was none since the writer last read this.
    moved: AtomicI64,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(source: Arc<StoreFile>) -> std::io::Result<Self> {
        // One pending signal is as good as many.
        let (wake, signals) = sync_channel(1);
        let shared = Arc::<Shared>::default();
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&source, &signals, &its))?;
        Ok(Self { wake: Some(wake), shared, new_pages: 0, thread: Some(thread) })
    }

    /// Records the length of the log after a commit, in pages.
    pub(super) fn log_is(&mut self, pages: i64) {
        let before = self.shared.pages.swap(pages, Ordering::Relaxed);
        if pages < before {
            // A shorter log was restarted.
            self.new_pages += pages;
            self.shared.moved.store(0, Ordering::Relaxed);
        } else {
            self.new_pages += pages - before;
        }
        if let (true, Some(wake)) = (self.new_pages >= WAKING_PAGES, &self.wake)
            && wake.try_send(()).is_ok()
        {
            self.new_pages = 0;
        }
    }

    /// Reports, once, whether all but a few pages of a log of this length were moved just now.
    pub(super) fn is_nearly_done(&self, pages: i64) -> bool {
        let moved = &self.shared.moved;
        let moved = if moved.load(Ordering::Relaxed) == 0 { 0 } else { moved.swap(0, Ordering::Relaxed) };
        moved > 0 && (moved..=moved + 2 * FEW_PAGES).contains(&pages)
    }

    /// Reports whether a checkpoint failed since the last call: a failed fsync, which the writer has to treat like one
    /// of its own.
    pub(super) fn take_failure(&self) -> bool {
        let failed = &self.shared.failed;
        failed.load(Ordering::Relaxed) && failed.swap(false, Ordering::AcqRel)
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The length of the log, as SQLite's hook reports it after each commit of a connection. Querying it would cost as much
/// as some creates.
#[derive(Debug, Clone, Default)]
pub(super) struct LogLength(Arc<AtomicI64>);

impl LogLength {
    /// Installs the hook on a connection.
    pub(super) fn follow(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let length = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            length.store(i64::from(pages), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Returns the length after the last commit, in pages; `None` if nothing was written since the last call.
    pub(super) fn after_commit(&self) -> Option<i64> {
        Some(self.0.swap(0, Ordering::Relaxed)).filter(|pages| *pages > 0)
    }
}

fn run(source: &StoreFile, signals: &Receiver<()>, shared: &Shared) {
    let mut connection: Option<Connection> = None;
    let lines = LogThrottle::new(failures::LOG_INTERVAL);
    while !matches!(signals.recv_timeout(INTERVAL), Err(RecvTimeoutError::Disconnected)) {
        if let Err(error) = passes(&mut connection, source, shared) {
            // The writer logs that the files are gone.
            if !failures::is_moved(&error) && lines.due(()).is_some() {
                tracing::warn!(%error, "the store's log could not be moved into its file");
            }
            connection = None;
            if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                shared.failed.store(true, Ordering::Release);
            }
        }
    }
}

/// Moves the log, and what is written meanwhile, until little is left.
fn passes(connection: &mut Option<Connection>, source: &StoreFile, shared: &Shared) -> rusqlite::Result<()> {
    for _ in 0..PASSES {
        let log = pass(connection, source)?;
        // Less than the whole log as it was: a reader needs the rest.
        if log.moved <= 0 || log.moved < log.pages {
            return Ok(());
        }
        let left = shared.pages.load(Ordering::Relaxed) - log.moved;
        if left <= FEW_PAGES {
            shared.moved.store(log.moved, Ordering::Relaxed);
            return Ok(());
        }
    }
    Ok(())
}

fn pass(connection: &mut Option<Connection>, source: &StoreFile) -> rusqlite::Result<Log> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(source.connect(ConnectionRole::Checkpointer)?),
    };
    checkpoint(connection, Checkpoint::Passive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_moves_a_few_pages_once() {
        let checkpointer = Checkpointer { wake: None, shared: Arc::default(), new_pages: 0, thread: None };
        let passed = |moved| checkpointer.shared.moved.store(moved, Ordering::Relaxed);
        assert!(!checkpointer.is_nearly_done(1), "there was no pass");
        for (moved, pages, expected) in [
            (1000, 1000, true),
            (1000, 1000 + 2 * FEW_PAGES, true),
            (1000, 1001 + 2 * FEW_PAGES, false),
            // The log was restarted meanwhile.
            (1000, 999, false),
        ] {
            passed(moved);
            assert_eq!(checkpointer.is_nearly_done(pages), expected, "{moved} of {pages}");
            assert!(!checkpointer.is_nearly_done(pages), "it is reported once");
        }
    }
}
