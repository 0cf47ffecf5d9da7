//! Watches the rules directory and the files that rules name, and says when something changed.
//!
//! Two legs: the system tells of changes ([`watches`], [`notice`]), and what it does not tell of is found by looking
//! ([`poll`]). Both lead to [`settle`], which decides when to read.

mod notice;
mod places;
mod poll;
mod settle;
mod watches;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use notify_debouncer_full::DebounceEventResult;

use notice::Noticed;
use places::Places;
use watches::{Lost, Watches};

/// Between two times that links are followed: it reads directories.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// What to watch, and what to do about it.
pub struct Watched {
    /// Directories, with all that is below them, and files. They need not exist yet. Asked again by
    /// [`Watcher::refresh`].
    pub paths: Box<dyn Fn() -> Vec<PathBuf> + Send>,
    /// Whether something is other than when it was last read, told without reading any file. Asked from time to time on
    /// a thread that may block, for changes that the system does not tell of.
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
    pub fn start(Watched { paths, stale, on_change }: Watched) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let started = Self(Arc::clone(&shared));
        let told = Arc::clone(&shared);
        let mut watches = Watches::new(move |result| told.take(result));
        let known = paths();
        let places = Arc::new(Places::of(&known));
        watches.follow(&places, &Lost::Nothing);
        shared.state().places = places;
        let mut reloader = Reloader { shared: Arc::clone(&shared), paths, known, watches, on_change };
        thread::Builder::new().name("rules-reload".into()).spawn(move || reloader.run())?;
        thread::Builder::new().name("rules-poll".into()).spawn(move || poll::run(&shared, &*stale))?;
        Ok(started)
    }

    /// Asks for the paths again, soon.
    pub fn refresh(&self) {
        self.0.state().follow = true;
        self.0.woken.notify_all();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.woken.notify_all();
    }
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    noticed: Noticed,
    places: Arc<Places>,
    /// Whether the paths are to be asked for again.
    follow: bool,
    reloading: bool,
    /// How many reloads there were.
    reloads: u64,
    stopped: bool,
}

impl State {
    /// Whether a reload is on its way or under way.
    const fn busy(&self) -> bool {
        self.reloading || self.noticed.settle.is_pending()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is whole when a panic could come.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until woken, or until a moment.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        match until {
            None => self.woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Takes what the system tells.
    fn take(&self, result: DebounceEventResult) {
        let mut state = self.state();
        let places = Arc::clone(&state.places);
        match result {
            Ok(events) => state.noticed.take(&events, &places),
            Err(errors) => {
                tracing::warn!(errors = errors.len(), first = ?errors.first(), "watching for changes had errors");
                state.noticed.everything(Instant::now());
            }
        }
        drop(state);
        self.woken.notify_all();
    }
}

/// The thread that watches what has to be watched, and calls for reloads.
struct Reloader {
    shared: Arc<Shared>,
    paths: Box<dyn Fn() -> Vec<PathBuf> + Send>,
    /// What they were when they were last asked for.
    known: Vec<PathBuf>,
    watches: Watches,
    on_change: Box<dyn Fn() + Send>,
}

/// What is to be done next.
enum Task {
    Follow {
        relinked: bool,
        lost: Lost,
    },
    /// With the files that are still being written.
    Reload(Vec<PathBuf>),
    Stop,
}

impl Reloader {
    fn run(&mut self) {
        let mut follow_from = Instant::now();
        loop {
            match self.next(follow_from) {
                Task::Follow { relinked, lost } => {
                    self.follow(relinked, &lost);
                    follow_from = Instant::now() + FOLLOW_PAUSE;
                }
                Task::Reload(unfinished) => self.reload(&unfinished),
                Task::Stop => return,
            }
        }
    }

    /// Waits for the next task. Links are followed at once, so that what happens in new places is seen, and not before
    /// `follow_from`, so that they never keep a reload from being done.
    fn next(&self, follow_from: Instant) -> Task {
        let mut state = self.shared.state();
        loop {
            if state.stopped {
                return Task::Stop;
            }
            let follow = (state.follow || state.noticed.relinked).then_some(follow_from);
            let reload = state.noticed.settle.reload_at();
            let now = Instant::now();
            if follow.is_some_and(|at| at <= now) {
                state.follow = false;
                let relinked = std::mem::take(&mut state.noticed.relinked);
                return Task::Follow { relinked, lost: std::mem::take(&mut state.noticed.lost) };
            }
            if reload.is_some_and(|at| at <= now) {
                state.reloading = true;
                return Task::Reload(state.noticed.settle.take());
            }
            state = self.shared.wait(state, follow.into_iter().chain(reload).min());
        }
    }

    fn follow(&mut self, relinked: bool, lost: &Lost) {
        let paths = (self.paths)();
        let others = paths != self.known;
        if !relinked && !others {
            return;
        }
        let places = Arc::new(Places::of(&paths));
        self.known = paths;
        // Before anything is watched there: the first event has to find it.
        self.shared.state().places = Arc::clone(&places);
        let anew = self.watches.follow(&places, lost);
        if anew || others {
            // What changed there until now was seen by nobody.
            self.shared.state().noticed.settle.changed(Instant::now());
        }
    }

    fn reload(&self, unfinished: &[PathBuf]) {
        for path in unfinished {
            tracing::warn!(path = %path.display(), "still being written, and read all the same");
        }
        if catch_unwind(AssertUnwindSafe(|| (self.on_change)())).is_err() {
            tracing::error!("a reload failed; the rules stay as they were");
        }
        let mut state = self.shared.state();
        state.reloading = false;
        state.reloads += 1;
    }
}
