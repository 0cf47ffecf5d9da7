//! Watches the rules directory and the certificate files, and says when something changed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, Debouncer, RecommendedCache, new_debouncer};

/// How long files must be left alone before they are read: an editor's save is several changes.
const SETTLE: Duration = Duration::from_millis(150);

/// How often settled changes are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Something to watch: a directory with all that is below it, or a file.
pub struct Watched {
    /// What to watch. It need not exist yet: its directory is watched, and that one's.
    pub path: PathBuf,
    /// Called after each change, on a thread that may block; changes during a call lead to one more call.
    pub on_change: Box<dyn Fn() + Send>,
}

/// Watches until it is dropped.
pub struct Watcher {
    /// Owns the thread that collects changes; dropping it ends the workers too.
    _debouncer: Arc<Mutex<Debouncer<RecommendedWatcher, RecommendedCache>>>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher(..)")
    }
}

/// A watched path, and the queue of one to its worker: what is not yet begun covers what comes after it.
struct Target {
    path: PathBuf,
    wake: SyncSender<()>,
}

impl Watcher {
    /// Starts watching. Each of `watched` has a worker of its own.
    ///
    /// # Errors
    /// The system's watching service or a thread cannot be had.
    pub fn start(watched: Vec<Watched>) -> io::Result<Self> {
        let mut targets = Vec::new();
        for Watched { path, on_change } in watched {
            let (wake, woken) = sync_channel::<()>(1);
            // The paths of events are absolute where those watched are.
            targets.push(Target { path: std::path::absolute(path)?, wake });
            thread::Builder::new().name("rules-reload".into()).spawn(move || {
                while woken.recv().is_ok() {
                    on_change();
                }
            })?;
        }
        let paths: Vec<PathBuf> = targets.iter().map(|target| target.path.clone()).collect();
        let (again, wanted) = sync_channel::<()>(1);
        let handler = move |result: DebounceEventResult| notice(&targets, &again, result);
        let debouncer = new_debouncer(SETTLE, Some(TICK), handler).map_err(io::Error::other)?;
        let debouncer = Arc::new(Mutex::new(debouncer));
        watch_all(&debouncer, &paths);
        let held = Arc::downgrade(&debouncer);
        thread::Builder::new().name("rules-rewatch".into()).spawn(move || {
            // Directories that appear, or are exchanged as a whole, have to be watched anew.
            while wanted.recv().is_ok() {
                let Some(debouncer) = held.upgrade() else { return };
                watch_all(&debouncer, &paths);
            }
        })?;
        Ok(Self { _debouncer: debouncer })
    }
}

/// Watches each path with all that is below it, and the directory it is in for the path itself being exchanged.
fn watch_all(debouncer: &Mutex<Debouncer<RecommendedWatcher, RecommendedCache>>, paths: &[PathBuf]) {
    let mut debouncer = debouncer.lock().unwrap_or_else(PoisonError::into_inner);
    for path in paths {
        let above = path.ancestors().skip(1).find(|above| above.is_dir());
        let directories = above.into_iter().map(|above| (above, RecursiveMode::NonRecursive));
        let itself = path.is_dir().then_some((path.as_path(), RecursiveMode::Recursive));
        for (path, mode) in directories.chain(itself) {
            // A watch on what a path led to before may be stale; one that never was cannot be taken back.
            if mode == RecursiveMode::Recursive {
                let _ = debouncer.unwatch(path);
            }
            if let Err(error) = debouncer.watch(path, mode) {
                tracing::warn!(path = %path.display(), %error, "cannot be watched for changes");
            }
        }
    }
}

fn notice(targets: &[Target], again: &SyncSender<()>, result: DebounceEventResult) {
    let events = match result {
        Ok(events) => events,
        Err(errors) => {
            // Events may be lost: everything counts as changed.
            tracing::warn!(errors = errors.len(), "watching for changes had errors");
            for target in targets {
                let _ = target.wake.try_send(());
            }
            return;
        }
    };
    for target in targets {
        if events.iter().any(|event| concerns(event, &target.path)) {
            // A full queue already holds a call that will see this change.
            let _ = target.wake.try_send(());
        }
    }
    let exchanged = |event: &DebouncedEvent, target: &Target| {
        !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(|path| target.path.starts_with(path))
    };
    if targets.iter().any(|target| events.iter().any(|event| exchanged(event, target))) {
        let _ = again.try_send(());
    }
}

/// Whether an event changed a watched path, something below it, or a directory on the way to it. Reading is no change:
/// every reload reads.
fn concerns(event: &DebouncedEvent, target: &Path) -> bool {
    let change = match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    };
    change
        && (event.need_rescan() || event.paths.iter().any(|path| path.starts_with(target) || target.starts_with(path)))
}
