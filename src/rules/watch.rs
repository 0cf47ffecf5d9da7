//! Watches the rules directory and the certificate files, and says when something changed.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, Debouncer, RecommendedCache, new_debouncer};

/// How long files must be left alone before they are read: an editor's save is several changes.
const SETTLE: Duration = Duration::from_millis(150);

/// How often settled changes are looked for.
const TICK: Duration = Duration::from_millis(50);

/// The most links that are followed from one path.
const MOST_LINKS: usize = 40;

/// The most links inside a watched directory whose targets are watched too.
const MOST_LINKED: usize = 1000;

/// How deep links are looked for in a watched directory: `lists/<merchant>/<name>.txt`.
const LINK_DEPTH: usize = 3;

/// What to watch, and what to do about it.
pub struct Watched {
    /// Directories, with all that is below them, and files. They need not exist yet. Asked again by
    /// [`Watcher::refresh`].
    pub paths: Box<dyn Fn() -> Vec<PathBuf> + Send>,
    /// Called after each change, on a thread that may block; changes during a call lead to one more call.
    pub on_change: Box<dyn Fn() + Send>,
}

/// Watches until it is dropped.
pub struct Watcher {
    again: SyncSender<()>,
    /// Owns the thread that collects changes; dropping it ends the others too.
    _debouncer: Arc<Mutex<Watches>>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher(..)")
    }
}

impl Watcher {
    /// Starts watching.
    ///
    /// # Errors
    /// The system's watching service or a thread cannot be had.
    pub fn start(Watched { paths, on_change }: Watched) -> io::Result<Self> {
        let (wake, woken) = sync_channel::<()>(1);
        thread::Builder::new().name("rules-reload".into()).spawn(move || {
            while woken.recv().is_ok() {
                on_change();
            }
        })?;
        let (again, wanted) = sync_channel::<()>(1);
        let places = Arc::new(ArcSwap::from_pointee(Places::of(&paths())?));
        let exchanged = Arc::new(AtomicBool::new(false));
        let notice = Notice {
            places: Arc::clone(&places),
            wake: wake.clone(),
            again: again.clone(),
            exchanged: Arc::clone(&exchanged),
        };
        let debouncer = new_debouncer(SETTLE, Some(TICK), move |result: DebounceEventResult| notice.take(result))
            .map_err(io::Error::other)?;
        let mut watches = Watches { debouncer, single: HashSet::new(), whole: HashSet::new() };
        watches.follow(&places.load(), false);
        let watches = Arc::new(Mutex::new(watches));
        let held = Arc::downgrade(&watches);
        thread::Builder::new().name("rules-rewatch".into()).spawn(move || {
            while wanted.recv().is_ok() {
                let Some(watches) = held.upgrade() else { return };
                let anew = exchanged.swap(false, Ordering::AcqRel);
                match Places::of(&paths()) {
                    Ok(found) => places.store(Arc::new(found)),
                    Err(error) => tracing::warn!(%error, "the watched files cannot be found"),
                }
                watches.lock().unwrap_or_else(PoisonError::into_inner).follow(&places.load(), anew);
                if anew {
                    // What changed before the new watches were in place was seen by nobody.
                    let _ = wake.try_send(());
                }
            }
        })?;
        Ok(Self { again, _debouncer: watches })
    }

    /// Asks for the paths again, soon.
    pub fn refresh(&self) {
        let _ = self.again.try_send(());
    }
}

/// Where the watched paths lead, link by link. All paths are free of links but for their last part, as events name them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    /// Directories that are watched with all that is below them.
    whole: Vec<PathBuf>,
    /// Files, links on the way to something watched, and what does not exist.
    single: Vec<PathBuf>,
}

impl Places {
    fn of(paths: &[PathBuf]) -> io::Result<Self> {
        let mut places = Self::default();
        for path in paths {
            let mut way = way(&std::path::absolute(path)?);
            if let Some(end) = way.pop_if(|end| end.is_dir()) {
                places.whole.push(end);
            }
            places.single.append(&mut way);
        }
        let mut links = Vec::new();
        for directory in &places.whole {
            find_links(directory, LINK_DEPTH, &mut links);
        }
        let within = |place: &PathBuf| places.whole.iter().any(|directory| place.starts_with(directory));
        let outside: Vec<PathBuf> = links.iter().flat_map(|link| way(link)).filter(|place| !within(place)).collect();
        places.single.extend(outside);
        places.single.sort();
        places.single.dedup();
        Ok(places)
    }

    /// Whether an event changed something watched, or what leads to it. Reading is no change: every reload reads.
    fn concern(&self, event: &DebouncedEvent) -> bool {
        let change = match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        };
        // Other names in a file's directory count because of links that are exchanged there, other contents do not.
        let beside = |path: &Path, place: &Path| renames(event.kind) && path.parent() == place.parent();
        let hit = |path: &PathBuf| {
            self.whole.iter().any(|place| path.starts_with(place) || place.starts_with(path))
                || self.single.iter().any(|place| place.starts_with(path) || beside(path, place))
        };
        change && (event.need_rescan() || event.paths.iter().any(hit))
    }

    /// Whether an event put something else in the place of something watched, so that it has to be watched anew.
    fn exchanged(&self, event: &DebouncedEvent) -> bool {
        let hit = |path: &PathBuf| self.whole.iter().chain(&self.single).any(|place| place.starts_with(path));
        renames(event.kind) && event.paths.iter().any(hit)
    }
}

/// Whether an event is about names, not contents.
const fn renames(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_) | ModifyKind::Any)
    )
}

/// Every link on the way of an absolute path, and where it ends, whether that exists or not.
fn way(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut at = PathBuf::new();
    let mut ahead: Vec<PathBuf> = parts(path);
    while let Some(part) = ahead.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                match fs::read_link(&next) {
                    Ok(target) if links.len() < MOST_LINKS => {
                        links.push(next);
                        ahead.extend(parts(&target));
                    }
                    _ => at = next,
                }
            }
            Some(root) => at.push(root),
            None => {}
        }
    }
    links.push(at);
    links
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

fn find_links(directory: &Path, depth: usize, links: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() && links.len() < MOST_LINKED {
            links.push(entry.path());
        } else if kind.is_dir() && depth > 1 {
            find_links(&entry.path(), depth - 1, links);
        }
    }
}

/// The system's watches.
struct Watches {
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    /// Directories of which only their own entries are watched.
    single: HashSet<PathBuf>,
    /// Directories with all that is below them.
    whole: HashSet<PathBuf>,
}

impl Watches {
    /// Watches each place, and the directory it is in for the place itself being exchanged. `anew`: what is watched as
    /// a whole may have been exchanged by something of the same name.
    fn follow(&mut self, places: &Places, anew: bool) {
        let whole: HashSet<PathBuf> = places.whole.iter().cloned().collect();
        let above = |place: &PathBuf| place.ancestors().skip(1).find(|above| above.is_dir()).map(Path::to_owned);
        let covered = |path: &PathBuf| whole.iter().any(|directory| path.starts_with(directory));
        let single: HashSet<PathBuf> =
            places.whole.iter().chain(&places.single).filter_map(above).filter(|path| !covered(path)).collect();
        for path in self.single.difference(&single) {
            // It may be gone.
            let _ = self.debouncer.unwatch(path);
        }
        for path in self.whole.iter().filter(|path| anew || !whole.contains(*path)) {
            let _ = self.debouncer.unwatch(path);
        }
        for path in &single {
            watch(&mut self.debouncer, path, RecursiveMode::NonRecursive);
        }
        for path in whole.iter().filter(|path| anew || !self.whole.contains(*path)) {
            watch(&mut self.debouncer, path, RecursiveMode::Recursive);
        }
        (self.single, self.whole) = (single, whole);
    }
}

fn watch(debouncer: &mut Debouncer<RecommendedWatcher, RecommendedCache>, path: &Path, mode: RecursiveMode) {
    if let Err(error) = debouncer.watch(path, mode) {
        tracing::warn!(path = %path.display(), %error, "cannot be watched for changes");
    }
}

/// What is done with events. A full queue already holds a call that will see the change.
struct Notice {
    places: Arc<ArcSwap<Places>>,
    wake: SyncSender<()>,
    again: SyncSender<()>,
    exchanged: Arc<AtomicBool>,
}

impl Notice {
    fn take(&self, result: DebounceEventResult) {
        let events = match result {
            Ok(events) => events,
            Err(errors) => {
                // Events may be lost: everything counts as changed.
                tracing::warn!(errors = errors.len(), "watching for changes had errors");
                let _ = self.wake.try_send(());
                return;
            }
        };
        let places = self.places.load();
        if events.iter().any(|event| places.exchanged(event)) {
            self.exchanged.store(true, Ordering::Release);
        }
        if events.iter().any(|event| places.concern(event)) {
            let _ = self.wake.try_send(());
            // Links may lead elsewhere now.
            let _ = self.again.try_send(());
        }
    }
}
