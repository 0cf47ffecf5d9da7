//! Waits until the files that rules are loaded from have changed.
//!
//! The system's notifications of their directories, and a poll for what these do not report (hard links, targets of
//! links, network filesystems, exhausted limits), are only occasions to look: the names and the metadata of the files
//! decide whether anything changed ([`Loader::changes`](super::Loader::changes)).

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::LiveRules;

/// How long files must be unchanged before they are read: saving in an editor makes several changes.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// The same while a file is missing: a save may remove a file and write it anew.
const ABSENCE_TIME: Duration = Duration::from_millis(300);

/// The time from the first change after which files are read although they still change.
const MAX_SETTLE_TIME: Duration = Duration::from_millis(500);

/// The time between two looks without a notification.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Waits for changes of the files of a [`LiveRules`].
#[derive(Debug)]
pub struct FileWatch {
    pub(super) poll_interval: Duration,
    /// Holds one notification, however many arrive before it is taken.
    woken: Arc<Notify>,
    /// Watches the directories of the files that were last read when [`FileWatch::changed`] was called.
    system: Option<RecommendedWatcher>,
    /// Whether directories could not be watched, which is logged once.
    has_failed: bool,
}

impl Default for FileWatch {
    fn default() -> Self {
        Self { poll_interval: POLL_INTERVAL, woken: Arc::default(), system: None, has_failed: false }
    }
}

impl FileWatch {
    /// Waits until the files differ from those that were last read, with or without errors, and have settled. The caller
    /// reloads then, and calls this again.
    pub async fn changed(&mut self, rules: &Arc<LiveRules>) {
        // Before the first look, so that a later change is noticed.
        self.watch(rules).await;
        let (mut since, mut last) = (None, None);
        loop {
            let Some(files) = blocking(rules, LiveRules::changes).await.flatten() else {
                (since, last) = (None, None);
                self.wait().await;
                continue;
            };
            if last.as_ref() == Some(&files) || since.get_or_insert_with(Instant::now).elapsed() >= MAX_SETTLE_TIME {
                return;
            }
            sleep(if files.is_any_missing() { ABSENCE_TIME } else { SETTLE_TIME }).await;
            last = Some(files);
        }
    }

    /// Waits for an occasion to look. Files that are no rules may change all the time beside them, and cause no more looks
    /// than one each [`SETTLE_TIME`].
    async fn wait(&self) {
        sleep(SETTLE_TIME).await;
        let _ = timeout(self.poll_interval.saturating_sub(SETTLE_TIME), self.woken.notified()).await;
    }

    /// Watches the directories anew: a directory may have been replaced by another under its name.
    async fn watch(&mut self, rules: &Arc<LiveRules>) {
        self.system = None;
        let woken = Arc::clone(&self.woken);
        let watching = blocking(rules, move |rules| watch_directories(&rules.directories(), woken)).await;
        let Some((system, error)) = watching else { return };
        self.system = system;
        if let Some(error) = error.as_ref().filter(|_| !self.has_failed) {
            tracing::warn!(%error, "the directories of the rules cannot all be watched: their files are polled");
        }
        self.has_failed = error.is_some();
    }
}

/// Calls a function that reads files, on a thread that may block; `None`: it panicked.
async fn blocking<T: Send + 'static>(
    rules: &Arc<LiveRules>,
    call: impl FnOnce(&LiveRules) -> T + Send + 'static,
) -> Option<T> {
    let rules = Arc::clone(rules);
    spawn_blocking(move || call(&rules)).await.ok()
}

/// Watches directories, those that exist. Returns the first error with what could be watched in spite of it.
fn watch_directories(
    directories: &BTreeSet<PathBuf>,
    woken: Arc<Notify>,
) -> (Option<RecommendedWatcher>, Option<notify::Error>) {
    let wake = move |event: notify::Result<Event>| {
        // Every load and every look reads.
        if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
            woken.notify_one();
        }
    };
    let mut system = match RecommendedWatcher::new(wake, Config::default()) {
        Ok(system) => system,
        Err(error) => return (None, Some(error)),
    };
    let mut failed = None;
    for directory in directories {
        if let Err(error) = system.watch(directory, RecursiveMode::NonRecursive)
            && !is_not_found(&error)
        {
            failed.get_or_insert(error);
        }
    }
    (Some(system), failed)
}

fn is_not_found(error: &notify::Error) -> bool {
    let is_absent = matches!(&error.kind, notify::ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound);
    is_absent || matches!(error.kind, notify::ErrorKind::PathNotFound)
}
