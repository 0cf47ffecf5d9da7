//! Watches the rules directory and the files that rules name, and reports changes.
//!
//! The system reports changes in the directories of these files; polling finds changes that it does not report. In both
//! cases the files are read once their writers have finished ([`Pending`]).

use std::collections::HashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::time::Instant;

use super::watched::WatchedPlaces;
use crate::telemetry::Stopwatch;

/// How long files must be unchanged before they are read: saving in an editor makes several changes.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// The same after a file vanished: a save may unlink a file and create it again.
const ABSENCE: Duration = Duration::from_millis(400);

/// The longest time from the first change to reading, unless a file is still being written.
const MAX_SETTLE_TIME: Duration = Duration::from_millis(500);

/// The longest wait for files that are still being written.
const LONGEST_WRITE: Duration = Duration::from_secs(10);

/// The shortest time between two scans of links, which read directories.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// The pause between two polls, as a multiple of the duration of a poll.
const POLL_COST: u32 = 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The most written paths, and the most vanished paths, that are tracked for one change.
const MOST_FOLLOWED: usize = 10_000;

/// Whether this system reports the closing of a written file.
const CLOSES_ARE_REPORTED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The paths to watch, and the functions to call.
pub struct Watched {
    /// Returns rules directories and files, which need not exist yet. Called again after [`Watcher::refresh`].
    pub paths: Box<dyn Fn() -> Vec<PathBuf> + Send>,
    /// Reports whether anything changed since it was last read, without reading every file. Called from time to time,
    /// for changes that the system does not report.
    pub stale: Box<dyn Fn() -> bool + Send>,
    /// Called after changes, on a thread that may block; changes during a call lead to one more call.
    pub on_change: Box<dyn Fn() + Send>,
}

/// A running watch, which ends when this is dropped.
pub struct Watcher(Arc<Shared>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher(..)")
    }
}

impl Watcher {
    /// Starts watching. Without a watching service of the system, changes are found only by polling; that is logged
    /// once.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(watched: Watched) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let known = (watched.paths)();
        let mut worker = Worker { shared: Arc::clone(&shared), watched, known, system: None, failed: HashSet::new() };
        worker.watch();
        thread::Builder::new().name("rules-watch".into()).spawn(move || worker.run())?;
        Ok(Self(shared))
    }

    /// Requests that the paths are read again soon.
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

/// The state shared by the worker and the thread of the watching service.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No change of the state can be interrupted halfway by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes an event or error of the watching service.
    fn receive(&self, result: notify::Result<Event>) {
        let mut state = self.state();
        match result {
            Ok(event) if !event.need_rescan() => state.event(&event, Instant::now()),
            lost => {
                if let Err(error) = lost {
                    tracing::warn!(%error, "the watching service reported an error");
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
    places: Arc<WatchedPlaces>,
    pending: Option<Pending>,
    /// Whether to read the paths again.
    refresh: bool,
    /// Whether links may have other targets now, or another directory may have a watched name.
    relinked: bool,
    /// Whether to poll now.
    poll: bool,
    stopped: bool,
}

impl State {
    const fn is_awaited(&self) -> bool {
        self.pending.is_some() || self.relinked || self.poll
    }

    /// Records a change.
    fn changed(&mut self, at: Instant) -> &mut Pending {
        let pending = self.pending.get_or_insert_with(|| Pending::new(at));
        pending.last = pending.last.max(at);
        pending
    }

    /// Records that events were lost: any file may have changed, and any may have been closed.
    fn events_lost(&mut self, at: Instant) {
        self.poll = true;
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
            // Reads are ignored, since every reload reads; so is `Both`, since each name of a rename has its own event.
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Name(RenameMode::Both)) => {}
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                let may_lead = places.may_lead(path);
                if may_lead || places.reads(path) || places.notices(path) {
                    self.changed(at).gone.remove(path);
                    self.relinked |= may_lead || places.names(path);
                }
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => self.vanished(path, at),
            EventKind::Any | EventKind::Other | EventKind::Modify(_) => {
                if places.reads(path) || places.may_lead(path) {
                    self.changed(at);
                }
            }
        }
    }

    /// Records that a path and everything below it vanished.
    fn vanished(&mut self, path: &Path, at: Instant) {
        let places = Arc::clone(&self.places);
        let is_watched = places.0.contains_key(path);
        if places.reads(path) || is_watched {
            self.changed(at).vanished(path, at);
        } else if places.notices(path) {
            // The rules warned of the file.
            self.changed(at);
        }
        self.relinked |= is_watched || places.names(path);
    }
}

/// Changes that were not read yet. Decides when to read from the times of events alone, without a clock.
#[derive(Debug)]
struct Pending {
    first: Instant,
    last: Instant,
    /// The latest time to read unless a file is still being written.
    bound: Instant,
    /// Files that are being written.
    open: HashSet<PathBuf>,
    /// Paths that vanished and have not come back.
    gone: HashSet<PathBuf>,
}

impl Pending {
    fn new(at: Instant) -> Self {
        Self { first: at, last: at, bound: at + MAX_SETTLE_TIME, open: HashSet::new(), gone: HashSet::new() }
    }

    /// Returns when to read if nothing else happens.
    fn read_at(&self) -> Instant {
        let latest = self.first + LONGEST_WRITE;
        if !self.open.is_empty() {
            return latest;
        }
        let quiet = if self.gone.is_empty() { SETTLE_TIME } else { ABSENCE };
        (self.last + quiet).min(self.bound).min(latest)
    }

    /// Records that a file is being written. Where closes are reported, reading waits for the close.
    fn written(&mut self, path: &Path) {
        self.gone.remove(path);
        if CLOSES_ARE_REPORTED && self.open.len() < MOST_FOLLOWED {
            self.open.insert(path.to_owned());
        }
    }

    /// Removes the written files for which `ended` returns true. When the last of them ended after the bound, changes
    /// right after it still get time to settle.
    fn end(&mut self, at: Instant, ended: impl Fn(&Path) -> bool) {
        let waited = !self.open.is_empty();
        self.open.retain(|path| !ended(path));
        if waited && self.open.is_empty() && at > self.bound {
            self.bound = at + SETTLE_TIME;
        }
    }

    fn vanished(&mut self, path: &Path, at: Instant) {
        self.end(at, |open| open.starts_with(path));
        if self.gone.len() < MOST_FOLLOWED {
            self.gone.insert(path.to_owned());
        }
    }
}

/// The thread that watches, polls and reloads.
struct Worker {
    shared: Arc<Shared>,
    watched: Watched,
    /// The paths when they were last read.
    known: Vec<PathBuf>,
    system: Option<RecommendedWatcher>,
    /// Directories that cannot be watched and for which that was logged; the empty path means that none can.
    failed: HashSet<PathBuf>,
}

/// The next task of the worker.
enum Task {
    /// Read the paths and follow their links; `true`: even when the paths did not change.
    Follow(bool),
    /// Reload, although these files are still being written.
    Reload(Vec<PathBuf>),
    Poll,
    Stop,
}

impl Worker {
    fn run(&mut self) {
        let mut follow_from = Instant::now();
        let mut pause = SHORTEST_PAUSE;
        let mut poll_at = Instant::now() + pause;
        loop {
            match self.next(follow_from, poll_at) {
                Task::Follow(relinked) => {
                    self.follow(relinked);
                    follow_from = Instant::now() + FOLLOW_PAUSE;
                }
                Task::Reload(unfinished) => {
                    self.reload(&unfinished);
                    poll_at = Instant::now() + pause;
                }
                Task::Poll => {
                    let watch = Stopwatch::start();
                    self.poll();
                    pause = watch.elapsed().saturating_mul(POLL_COST).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                    poll_at = Instant::now() + pause;
                }
                Task::Stop => return,
            }
        }
    }

    /// Waits for the next task. Links are followed as soon as they change, so that changes in new places are noticed,
    /// but not before `follow_from`, so that following them never starves reloads. While a reload is pending there is
    /// no poll.
    fn next(&self, follow_from: Instant, poll_at: Instant) -> Task {
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
                None if state.poll => now,
                None => poll_at,
            };
            if at <= now {
                state.poll = false;
                return state
                    .pending
                    .take()
                    .map_or(Task::Poll, |pending| Task::Reload(pending.open.into_iter().collect()));
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
            // Nothing reported earlier changes in new places.
            self.shared.state().changed(Instant::now());
        }
    }

    /// Watches exactly the directories that the paths lead to.
    fn watch(&mut self) {
        let places = Arc::new(WatchedPlaces::of(&self.known));
        self.watch_places(&places);
        // A directory created after its parent was read and before it was watched is not in the result.
        if WatchedPlaces::of(&self.known) != *places {
            self.shared.state().relinked = true;
        }
    }

    fn watch_places(&mut self, places: &Arc<WatchedPlaces>) {
        // Set before watching begins, so that the first event finds it.
        self.shared.state().places = Arc::clone(places);
        let receiver = Arc::clone(&self.shared);
        self.system = None;
        match RecommendedWatcher::new(move |result| receiver.receive(result), Config::default()) {
            Ok(mut system) => {
                for directory in places.0.keys() {
                    match system.watch(directory, RecursiveMode::NonRecursive) {
                        Ok(()) => drop(self.failed.remove(directory)),
                        // The directory vanished meanwhile, and may have been created again unwatched.
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
            tracing::warn!(%path, %error, "the directory cannot be watched: its files are polled instead");
        }
    }

    fn poll(&self) {
        if (self.watched.stale)() {
            tracing::debug!("polling found changes that the system did not report");
            self.shared.state().changed(Instant::now());
        }
    }

    fn reload(&self, unfinished: &[PathBuf]) {
        for path in unfinished {
            tracing::warn!(path = %path.display(), "the file is read although it is still being written");
        }
        if catch_unwind(AssertUnwindSafe(|| (self.watched.on_change)())).is_err() {
            tracing::error!("the reload panicked; the rules in force stay");
        }
    }
}

fn is_not_found(error: &notify::Error) -> bool {
    if let notify::ErrorKind::Io(error) = &error.kind {
        return error.kind() == io::ErrorKind::NotFound;
    }
    matches!(error.kind, notify::ErrorKind::PathNotFound)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind};
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
            let places = Arc::new(WatchedPlaces::of(&[at.join("rules"), at.join("tls.crt")]));
            Self { directory, start: Instant::now(), state: State { places, ..State::default() } }
        }

        /// Processes events of files below the directory, with their times in milliseconds.
        fn after(mut self, events: &[(u64, EventKind, &str)]) -> Self {
            for (ms, kind, name) in events {
                let event = Event::new(*kind).add_path(self.directory.path().join(name));
                self.state.event(&event, self.start + Duration::from_millis(*ms));
            }
            self
        }

        /// Returns the time of the reload, in milliseconds.
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
    fn vanished_files_may_come_back() {
        reload_after(&[(0, REMOVED, FILE)], 400);
        reload_after(&[(0, REMOVED, FILE), (300, CREATED, FILE)], 400);
        reload_after(&[(0, REMOVED, FILE), (10, WRITTEN, FILE), (20, CLOSED, FILE)], 120);
        reload_after(&[(0, REMOVED, FILE), (310, REMOVED, "tls.crt")], 500);
        reload_after(&[(0, RENAMED_AWAY, FILE), (150, CREATED, FILE), (151, WRITTEN, FILE), (152, CLOSED, FILE)], 252);
    }

    #[test]
    fn files_that_are_not_read_do_not_count() {
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
    fn files_that_no_rule_names_cause_no_listing() {
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let scene = Scene::new();
        for name in ["rules/gateway.log", "rules/access.json", "rules/merchants/.n.toml"] {
            fs::write(scene.directory.path().join(name), "").unwrap();
        }
        symlink("ann@host.4913:1", scene.directory.path().join("rules/merchants/.#m.toml")).unwrap();
        // The last three are gone again when their events arrive.
        let beside = ["rules/gateway.log", "rules/access.json", "rules/merchants/.n.toml", "rules/merchants/.#m.toml"];
        let gone = ["rules/gateway.log.1", "rules/merchants/4913", "rules/merchants/m.toml.tmp"];
        let kinds = [CREATED, WRITTEN, CHANGED, CLOSED, renamed, RENAMED_AWAY, REMOVED];
        let events: Vec<_> =
            [&beside[..], &gone].concat().into_iter().flat_map(|name| kinds.map(|kind| (0, kind, name))).collect();
        let scene = scene.after(&events);
        assert_eq!((scene.reload_at(), scene.state.relinked), (None, false));
        for name in ["rules/gateway.toml", "rules/merchants/n.toml", "rules/other.toml", "rules/merchants/n.yaml"] {
            reload_after(&[(0, CREATED, name)], 100);
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
    fn lost_events_cause_a_poll() {
        let shared = Shared::default();
        let mut scene = Scene::new().after(&[(0, WRITTEN, FILE)]);
        std::mem::swap(&mut *shared.state(), &mut scene.state);
        shared.receive(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        let state = shared.state();
        assert!(state.poll && state.pending.as_ref().unwrap().open.is_empty());
    }

    #[test]
    fn tracked_paths_are_bounded() {
        let mut pending = Pending::new(Instant::now());
        for number in 0..=MOST_FOLLOWED {
            pending.written(&PathBuf::from(number.to_string()));
            pending.vanished(&PathBuf::from(format!("g{number}")), pending.first);
        }
        assert_eq!((pending.open.len(), pending.gone.len()), (MOST_FOLLOWED, MOST_FOLLOWED));
    }

    #[test]
    fn links_are_followed_out_of_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(directory.path()).unwrap();
        for made in ["rules/merchants", "rules/.git", "rules/..1/shops", "shared/1", "certs"] {
            fs::create_dir_all(at.join(made)).unwrap();
        }
        symlink("1", at.join("shared/now")).unwrap();
        symlink("..1", at.join("rules/..data")).unwrap();
        symlink("..data/shops", at.join("rules/shops")).unwrap();
        symlink(at.join("shared/now/m.toml"), at.join("rules/merchants/m.toml")).unwrap();
        symlink("../certs/./loop", at.join("certs/loop")).unwrap();
        symlink("rules", at.join("link")).unwrap();
        let paths = ["link", "certs/../certs/tls.crt", "certs/loop", "missing/deep/x.key"].map(|name| at.join(name));
        let places = WatchedPlaces::of(&paths);
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
            ("rules/access.json", false),
            ("rules/..data", true),
            ("rules/shops", true),
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
