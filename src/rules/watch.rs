//! Watches the rules directory and the files that rules name, and says when something changed.
//!
//! Two legs: the system tells of changes in the directories of these files, and what it does not tell of is found by looking
//! from time to time. Either way files are read once they are left alone ([`Pending`]).

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::time::Instant;

use super::files;
use crate::telemetry::Stopwatch;

/// How long files must be left alone before they are read: an editor's save is several changes.
const QUIET: Duration = Duration::from_millis(100);

/// The same after something vanished: a save may unlink a file and then make it anew.
const ABSENCE: Duration = Duration::from_millis(400);

/// From the first change to the reading at the latest, whatever goes on, unless a file is half written.
const BOUND: Duration = Duration::from_millis(500);

/// How long files that somebody still writes are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two times that links are followed: it reads directories.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// Between two looks, as a multiple of what a look takes.
const LOOK_COST: u32 = 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The most paths of a kind that are kept of one change.
const MOST_FOLLOWED: usize = 10_000;

/// The most links that are followed from one path.
const MOST_LINKS: usize = 40;

/// How many of a directory's entries are looked at for links.
const MOST_ENTRIES: usize = 100_000;

/// How deep a rules directory is: `lists/<merchant>/<name>.txt`.
const DEPTH: usize = 3;

/// Whether this system tells when a file that was written is closed.
const CLOSES_ARE_TOLD: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// What to watch, and what to do about it.
pub struct Watched {
    /// Rules directories, and files. They need not exist yet. Asked again by [`Watcher::refresh`].
    pub paths: Box<dyn Fn() -> Vec<PathBuf> + Send>,
    /// Whether something is other than when it was last read, told without reading every file. Asked from time to time, for
    /// changes that the system does not tell of.
    pub stale: Box<dyn Fn() -> bool + Send>,
    /// Called after each change, on a thread that may block; changes during a call lead to one more call.
    pub on_change: Box<dyn Fn() + Send>,
}

/// Watches until it is dropped.
pub struct Watcher(Arc<Shared>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher(..)")
    }
}

impl Watcher {
    /// Starts watching. Where the system has no watching service, changes are looked for; that is logged once.
    ///
    /// # Errors
    /// A thread cannot be had.
    pub fn start(watched: Watched) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let known = (watched.paths)();
        let mut worker = Worker { shared: Arc::clone(&shared), watched, known, system: None, failed: HashSet::new() };
        worker.watch();
        thread::Builder::new().name("rules-watch".into()).spawn(move || worker.run())?;
        Ok(Self(shared))
    }

    /// Asks for the paths again, soon.
    pub fn refresh(&self) {
        self.0.state().refresh = true;
        self.0.woken.notify_all();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.woken.notify_all();
    }
}

/// What the worker shares with the system's own thread.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is whole when a panic could come.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the system tells.
    fn take(&self, result: notify::Result<Event>) {
        let mut state = self.state();
        match result {
            Ok(event) if !event.need_rescan() => state.event(&event, Instant::now()),
            lost => {
                if let Err(error) = lost {
                    tracing::warn!(%error, "watching for changes had an error");
                }
                state.events_lost(Instant::now());
            }
        }
        if state.is_awaited() {
            self.woken.notify_all();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    places: Arc<Places>,
    pending: Option<Pending>,
    /// Whether the paths are to be asked for again.
    refresh: bool,
    /// Whether links may lead elsewhere now, or another directory may have a watched name.
    relinked: bool,
    /// Whether to look now for changes that the system did not tell of.
    look: bool,
    stopped: bool,
}

impl State {
    const fn is_awaited(&self) -> bool {
        self.pending.is_some() || self.relinked || self.look
    }

    /// Something changed.
    fn changed(&mut self, at: Instant) -> &mut Pending {
        let pending = self.pending.get_or_insert_with(|| Pending::new(at));
        pending.last = pending.last.max(at);
        pending
    }

    /// Any file may have changed, and any may have been closed.
    fn events_lost(&mut self, at: Instant) {
        self.look = true;
        if let Some(pending) = &mut self.pending {
            pending.end(at, |_| true);
        }
    }

    fn event(&mut self, event: &Event, at: Instant) {
        let Some(path) = event.paths.first() else { return };
        let places = Arc::clone(&self.places);
        match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) if places.reads(path) => {
                self.changed(at).end(at, |open| open == path);
            }
            EventKind::Modify(ModifyKind::Data(_)) if places.reads(path) => self.changed(at).written(path),
            // Reading is no change, since every reload reads; both names of a rename were told one by one.
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Name(RenameMode::Both)) => {}
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                let is_file = is_file(path);
                if places.reads(path) || (places.in_rules(path) && !is_file) {
                    self.changed(at).gone.remove(path);
                    self.relinked |= !is_file || places.names(path);
                }
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
                self.vanished(path, at, event.kind);
            }
            EventKind::Any | EventKind::Other | EventKind::Modify(_) => {
                if places.reads(path) || (places.in_rules(path) && !is_file(path)) {
                    self.changed(at);
                }
            }
        }
    }

    /// What had a name, and all that was below it, has it no more.
    fn vanished(&mut self, path: &Path, at: Instant, kind: EventKind) {
        let places = Arc::clone(&self.places);
        let is_watched = places.0.contains_key(path);
        if places.reads(path) || is_watched {
            self.changed(at).vanished(path, at);
        } else if places.in_rules(path) && kind != EventKind::Remove(RemoveKind::File) {
            // It may have been a directory of rule files.
            self.changed(at);
        }
        self.relinked |= is_watched || places.names(path);
    }
}

/// Changes that nobody has read yet: moments in, a moment out.
#[derive(Debug)]
struct Pending {
    first: Instant,
    last: Instant,
    /// When to read unless a file is half written.
    bound: Instant,
    /// What is being written.
    open: HashSet<PathBuf>,
    /// What vanished and is not back.
    gone: HashSet<PathBuf>,
}

impl Pending {
    fn new(at: Instant) -> Self {
        Self { first: at, last: at, bound: at + BOUND, open: HashSet::new(), gone: HashSet::new() }
    }

    /// Returns when to read, as things are.
    fn read_at(&self) -> Instant {
        let latest = self.first + PATIENCE;
        if !self.open.is_empty() {
            return latest;
        }
        let quiet = if self.gone.is_empty() { QUIET } else { ABSENCE };
        (self.last + quiet).min(self.bound).min(latest)
    }

    /// A file is being written; where closes are told, its writer will be seen to close it.
    fn written(&mut self, path: &Path) {
        self.gone.remove(path);
        if CLOSES_ARE_TOLD && self.open.len() < MOST_FOLLOWED {
            self.open.insert(path.to_owned());
        }
    }

    /// What is written no more, as far as `ended` says so. What comes right after a writer that was waited for beyond the
    /// bound has time to settle.
    fn end(&mut self, at: Instant, ended: impl Fn(&Path) -> bool) {
        let waited = !self.open.is_empty();
        self.open.retain(|path| !ended(path));
        if waited && self.open.is_empty() && at > self.bound {
            self.bound = at + QUIET;
        }
    }

    fn vanished(&mut self, path: &Path, at: Instant) {
        self.end(at, |open| open.starts_with(path));
        if self.gone.len() < MOST_FOLLOWED {
            self.gone.insert(path.to_owned());
        }
    }
}

/// The thread that watches, looks, and calls for reloads.
struct Worker {
    shared: Arc<Shared>,
    watched: Watched,
    /// What the paths were when they were last asked for.
    known: Vec<PathBuf>,
    system: Option<RecommendedWatcher>,
    /// Directories that cannot be watched, which was said; an empty one stands for all.
    failed: HashSet<PathBuf>,
}

/// What is to be done next.
enum Task {
    /// Whether in any case.
    Follow(bool),
    /// With the files that are still being written.
    Reload(Vec<PathBuf>),
    Look,
    Stop,
}

impl Worker {
    fn run(&mut self) {
        let mut follow_from = Instant::now();
        let mut pause = SHORTEST_PAUSE;
        let mut look_at = Instant::now() + pause;
        loop {
            match self.next(follow_from, look_at) {
                Task::Follow(relinked) => {
                    self.follow(relinked);
                    follow_from = Instant::now() + FOLLOW_PAUSE;
                }
                Task::Reload(unfinished) => {
                    self.reload(&unfinished);
                    look_at = Instant::now() + pause;
                }
                Task::Look => {
                    let watch = Stopwatch::start();
                    self.look();
                    pause = watch.elapsed().saturating_mul(LOOK_COST).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                    look_at = Instant::now() + pause;
                }
                Task::Stop => return,
            }
        }
    }

    /// Waits for the next task. Links are followed at once, so that what happens in new places is seen, and not before
    /// `follow_from`, so that they never keep a reload from being done. While a reload is on its way looking is vain.
    fn next(&self, follow_from: Instant, look_at: Instant) -> Task {
        let mut state = self.shared.state();
        loop {
            if state.stopped {
                return Task::Stop;
            }
            let now = Instant::now();
            let follow_at = if state.refresh || state.relinked { Some(follow_from) } else { None };
            if follow_at.is_some_and(|at| at <= now) {
                state.refresh = false;
                return Task::Follow(std::mem::take(&mut state.relinked));
            }
            let at = match &state.pending {
                Some(pending) => pending.read_at(),
                None if state.look => now,
                None => look_at,
            };
            if at <= now {
                state.look = false;
                return state
                    .pending
                    .take()
                    .map_or(Task::Look, |pending| Task::Reload(pending.open.into_iter().collect()));
            }
            let until = follow_at.map_or(at, |follow_at| follow_at.min(at));
            let left = until.saturating_duration_since(now);
            state = self.shared.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn follow(&mut self, relinked: bool) {
        let paths = (self.watched.paths)();
        if relinked || paths != self.known {
            self.known = paths;
            self.watch();
            // What changed there until now was seen by nobody.
            self.shared.state().changed(Instant::now());
        }
    }

    /// Watches the directories that the paths lead to, and nothing else any more.
    fn watch(&mut self) {
        let places = Arc::new(Places::of(&self.known));
        self.watch_places(&places);
        // A directory made after its parent was read and before it was watched is in neither.
        if Places::of(&self.known) != *places {
            self.shared.state().relinked = true;
        }
    }

    fn watch_places(&mut self, places: &Arc<Places>) {
        // Before anything is watched there: the first event has to find it.
        self.shared.state().places = Arc::clone(places);
        let reported = Arc::clone(&self.shared);
        self.system = None;
        match RecommendedWatcher::new(move |result| reported.take(result), Config::default()) {
            Ok(mut system) => {
                for directory in places.0.keys() {
                    match system.watch(directory, RecursiveMode::NonRecursive) {
                        Ok(()) => drop(self.failed.remove(directory)),
                        // It went away since it was looked for, and may be there again, unwatched.
                        Err(error) if is_not_found(&error) => self.shared.state().relinked = true,
                        Err(error) => self.failed(directory, &error),
                    }
                }
                self.system = Some(system);
            }
            Err(error) => self.failed(Path::new(""), &error),
        }
    }

    fn failed(&mut self, directory: &Path, error: &notify::Error) {
        if self.failed.insert(directory.to_owned()) {
            let path = directory.display();
            tracing::warn!(%path, %error, "cannot be watched: files are looked at from time to time instead");
        }
    }

    fn look(&self) {
        if (self.watched.stale)() {
            tracing::debug!("files changed that the system told nothing of");
            self.shared.state().changed(Instant::now());
        }
    }

    fn reload(&self, unfinished: &[PathBuf]) {
        for path in unfinished {
            tracing::warn!(path = %path.display(), "still being written, and read all the same");
        }
        if catch_unwind(AssertUnwindSafe(|| (self.watched.on_change)())).is_err() {
            tracing::error!("a reload failed; the rules stay as they were");
        }
    }
}

/// The directories that are watched, free of links as events name them, and which names in each count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places(HashMap<PathBuf, Names>);

/// Which names in a directory count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    /// Those of rule files, and of directories and links that may hold some.
    rules: bool,
    /// Of files that are watched for themselves, and of what leads to something watched.
    named: HashSet<OsString>,
}

impl Places {
    /// Follows all links from `paths` and inside of rules directories. Reads directories.
    fn of(paths: &[PathBuf]) -> Self {
        let mut follower = Follower::default();
        // Without a current directory a relative path leads nowhere.
        for path in paths.iter().filter_map(|path| std::path::absolute(path).ok()) {
            let end = follower.end(&path);
            if end.is_dir() {
                follower.rules(&end, DEPTH);
            }
        }
        follower.places
    }

    fn at(&self, path: &Path) -> Option<&Names> {
        self.0.get(path.parent()?)
    }

    /// Whether a path is in a directory of rule files.
    fn in_rules(&self, path: &Path) -> bool {
        self.at(path).is_some_and(|names| names.rules)
    }

    /// Whether a path is watched for itself, or leads to something watched.
    fn names(&self, path: &Path) -> bool {
        self.at(path).zip(path.file_name()).is_some_and(|(names, name)| names.named.contains(name))
    }

    /// Whether a path's content is read, or that of what it leads to.
    fn reads(&self, path: &Path) -> bool {
        let is_rule = || path.file_name().and_then(|name| name.to_str()).is_some_and(files::is_rule_name);
        self.names(path) || (self.in_rules(path) && is_rule())
    }
}

/// Follows links, and those of each directory only once.
#[derive(Debug, Default)]
struct Follower {
    places: Places,
    /// Where directories end.
    ends: HashMap<PathBuf, PathBuf>,
}

impl Follower {
    /// Returns where an absolute path ends, whether that exists or not; it and every link on the way are watched.
    fn end(&mut self, path: &Path) -> PathBuf {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
        let known = self.ends.get(directory).cloned();
        let at = known.unwrap_or_else(|| self.walk(PathBuf::new(), directory));
        self.ends.insert(directory.to_owned(), at.clone());
        let end = self.walk(at, Path::new(name));
        self.add(&end);
        end
    }

    /// Follows a path on from where it is known to be free of links.
    fn walk(&mut self, mut at: PathBuf, path: &Path) -> PathBuf {
        let mut ahead = parts(path);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => drop(at.pop()),
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    match fs::read_link(&next) {
                        Ok(target) if links < MOST_LINKS => {
                            links += 1;
                            self.add(&next);
                            ahead.extend(parts(&target));
                        }
                        _ => at = next,
                    }
                }
                Some(root) => at.push(root),
                None => {}
            }
        }
        at
    }

    /// Watches a place by its name in its directory. Where that is not there (yet), what leads to it is watched.
    fn add(&mut self, place: &Path) {
        for place in place.ancestors() {
            let (Some(directory), Some(name)) = (place.parent(), place.file_name()) else { return };
            if directory.is_dir() {
                self.places.0.entry(directory.to_owned()).or_default().named.insert(name.to_owned());
                return;
            }
        }
    }

    /// Watches a directory of rule files, and those inside of it; dot-names are reached by links alone.
    fn rules(&mut self, directory: &Path, depth: usize) {
        self.places.0.entry(directory.to_owned()).or_default().rules = true;
        for entry in fs::read_dir(directory).into_iter().flatten().take(MOST_ENTRIES).flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let end = if kind.is_symlink() {
                self.end(&entry.path())
            } else if kind.is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
                entry.path()
            } else {
                continue;
            };
            if depth > 1 && end.is_dir() {
                self.rules(&end, depth - 1);
            }
        }
    }
}

fn is_not_found(error: &notify::Error) -> bool {
    if let notify::ErrorKind::Io(error) = &error.kind {
        return error.kind() == io::ErrorKind::NotFound;
    }
    matches!(error.kind, notify::ErrorKind::PathNotFound)
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Whether a regular file stands under a name.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use notify::event::{CreateKind, DataChange, Flag, MetadataKind};
    use tempfile::TempDir;

    use super::*;

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
    const RENAMED_AWAY: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const CHANGED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));

    const FILE: &str = "rules/merchants/m.toml";

    /// A rules directory with one file, a link beside it, and a watched file outside.
    struct Scene {
        directory: TempDir,
        start: Instant,
        state: State,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let at = directory.path();
            fs::create_dir_all(at.join("rules/merchants")).unwrap();
            fs::write(at.join("rules/merchants/m.toml"), "").unwrap();
            fs::write(at.join("rules/merchants/m.toml~"), "").unwrap();
            symlink("merchants", at.join("rules/dialects")).unwrap();
            let places = Arc::new(Places::of(&[at.join("rules"), at.join("tls.crt")]));
            Self { directory, start: Instant::now(), state: State { places, ..State::default() } }
        }

        /// Takes events of files below the directory, with their milliseconds.
        fn after(mut self, events: &[(u64, EventKind, &str)]) -> Self {
            for (ms, kind, name) in events {
                let event = Event::new(*kind).add_path(self.directory.path().join(name));
                self.state.event(&event, self.start + Duration::from_millis(*ms));
            }
            self
        }

        /// When to reload, in milliseconds.
        fn reload_at(&self) -> Option<u128> {
            self.state.pending.as_ref().map(|pending| pending.read_at().duration_since(self.start).as_millis())
        }
    }

    #[track_caller]
    fn reload_after(events: &[(u64, EventKind, &str)], expected: impl Into<Option<u128>>) {
        assert_eq!(Scene::new().after(events).reload_at(), expected.into(), "{events:?}");
    }

    #[test]
    fn quiet_ends_a_save_and_a_bound_ends_a_storm() {
        reload_after(&[], None);
        reload_after(&[(0, CREATED, FILE)], 100);
        reload_after(&[(0, CREATED, FILE), (90, CHANGED, FILE)], 190);
        let storm: Vec<_> = (0..490).step_by(50).map(|ms| (ms, CHANGED, FILE)).collect();
        reload_after(&storm, 500);
    }

    #[test]
    fn writers_are_followed_from_the_first_write_to_the_close() {
        reload_after(&[(0, WRITTEN, FILE)], 10_000);
        reload_after(&[(0, WRITTEN, FILE), (5, CLOSED, FILE)], 105);
        reload_after(&[(0, WRITTEN, FILE), (5, REMOVED, FILE)], 405);
        reload_after(&[(0, WRITTEN, FILE), (5, RENAMED_AWAY, "rules/merchants")], 405);
        reload_after(&[(0, WRITTEN, FILE), (1, WRITTEN, "tls.crt"), (5, CLOSED, FILE)], 10_000);
    }

    #[test]
    fn a_writer_is_waited_for_beyond_the_bound_and_not_for_ever() {
        let slow = [(0, WRITTEN, FILE), (3000, CLOSED, FILE)];
        reload_after(&slow, 3100);
        reload_after(&[&slow[..], &[(3050, CHANGED, FILE)]].concat(), 3100);
        let busy: Vec<_> = (0..460).step_by(50).flat_map(|ms| [(ms, WRITTEN, FILE), (ms + 1, CLOSED, FILE)]).collect();
        reload_after(&busy, 500);
        reload_after(&[(0, WRITTEN, FILE), (9950, CLOSED, FILE), (9990, CHANGED, FILE)], 10_000);
    }

    #[test]
    fn what_vanished_may_come_back() {
        reload_after(&[(0, REMOVED, FILE)], 400);
        reload_after(&[(0, REMOVED, FILE), (300, CREATED, FILE)], 400);
        reload_after(&[(0, REMOVED, FILE), (10, WRITTEN, FILE), (20, CLOSED, FILE)], 120);
        reload_after(&[(0, REMOVED, FILE), (310, REMOVED, "tls.crt")], 500);
    }

    #[test]
    fn what_is_not_read_does_not_count() {
        for name in ["rules/merchants/m.toml~", "rules/.m.toml.swp", "other", "tls.crt.new"] {
            for kind in [WRITTEN, CLOSED, REMOVED] {
                reload_after(&[(0, kind, name)], None);
            }
        }
        for kind in [CREATED, CHANGED, EventKind::Access(AccessKind::Open(AccessMode::Any))] {
            reload_after(&[(0, kind, "rules/merchants/m.toml~")], None);
        }
        for (kind, name) in [(CHANGED, FILE), (CHANGED, "rules/merchants"), (CREATED, "rules/dialects")] {
            reload_after(&[(0, kind, name)], 100);
        }
    }

    #[test]
    fn links_are_followed_again_when_they_may_lead_elsewhere() {
        for (kind, name, expected) in [
            (WRITTEN, FILE, false),
            (CREATED, FILE, false),
            (REMOVED, FILE, false),
            (REMOVED, "rules/dialects", true),
            (RENAMED_AWAY, "rules/merchants", true),
            (CREATED, "rules/merchants", true),
            (CREATED, "tls.crt", true),
            (EventKind::Remove(RemoveKind::Folder), "rules", true),
        ] {
            let scene = Scene::new().after(&[(0, kind, name)]);
            assert_eq!(scene.state.relinked, expected, "{kind:?} {name}");
        }
    }

    #[test]
    fn events_that_were_lost_may_have_been_any() {
        let shared = Shared::default();
        let mut scene = Scene::new().after(&[(0, WRITTEN, FILE)]);
        std::mem::swap(&mut *shared.state(), &mut scene.state);
        shared.take(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        let state = shared.state();
        assert!(state.look && state.pending.as_ref().unwrap().open.is_empty());
    }

    #[test]
    fn what_is_followed_is_bounded() {
        let mut pending = Pending::new(Instant::now());
        for number in 0..=MOST_FOLLOWED {
            pending.written(&PathBuf::from(number.to_string()));
            pending.vanished(&PathBuf::from(format!("g{number}")), pending.first);
        }
        assert_eq!((pending.open.len(), pending.gone.len()), (MOST_FOLLOWED, MOST_FOLLOWED));
    }

    #[test]
    fn links_lead_out_of_a_directory_and_on() {
        let directory = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(directory.path()).unwrap();
        for made in ["rules/merchants", "rules/.git", "rules/..1/shops", "shared/1", "certs"] {
            fs::create_dir_all(at.join(made)).unwrap();
        }
        symlink("1", at.join("shared/now")).unwrap();
        symlink("..1", at.join("rules/..data")).unwrap();
        symlink(at.join("shared/now/m.toml"), at.join("rules/merchants/m.toml")).unwrap();
        symlink("../certs/./loop", at.join("certs/loop")).unwrap();
        symlink("rules", at.join("link")).unwrap();
        let paths = ["link", "certs/../certs/tls.crt", "certs/loop", "missing/deep/x.key"].map(|name| at.join(name));
        let places = Places::of(&paths);
        let mut watched: Vec<_> = places.0.keys().map(|path| path.strip_prefix(&at).unwrap().to_owned()).collect();
        watched.sort();
        let rules = ["rules", "rules/..1", "rules/..1/shops", "rules/merchants"];
        let expected = [&["", "certs"][..], &rules, &["shared", "shared/1"]].concat();
        assert_eq!(watched, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        for (name, reads) in [
            ("link", true),
            ("rules", true),
            ("missing", true),
            ("shared/now", true),
            ("shared/1/m.toml", true),
            ("shared/1/n.toml", false),
            ("rules/gateway.toml", true),
            ("rules/..1/shops/a.json", true),
            ("rules/merchants/.m.toml.swp", false),
            ("rules/merchants/m.toml~", false),
            ("rules/.git/a.toml", false),
            ("certs/tls.crt", true),
            ("certs/a.toml", false),
        ] {
            assert_eq!(places.reads(&at.join(name)), reads, "{name}");
        }
    }
}
