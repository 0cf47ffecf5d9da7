//! The rules that serve now: the only place where a rule set is exchanged.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::files::ContentHash;
use super::{Loader, Problems, RuleSet, restart};
use crate::clock::Clock;

/// The rule set in force, and how to exchange it (contract section 2, "Live reload").
pub struct LiveRules {
    directory: PathBuf,
    clock: Arc<dyn Clock>,
    current: ArcSwap<RuleSet>,
    /// The set that the process was started with: what only a restart changes stays as it says.
    started: Arc<RuleSet>,
    /// Why the last reload failed; nothing since a good set was loaded.
    failure: ArcSwapOption<Problems>,
    /// What the set in force says that only a restart changes.
    needs_restart: ArcSwap<Vec<&'static str>>,
    /// Held during a reload: there is one at a time.
    reading: Mutex<Reading>,
    /// Outside the directory; see [`LiveRules::files_elsewhere`].
    elsewhere: ArcSwap<Vec<PathBuf>>,
}

/// What reads the rules.
struct Reading {
    loader: Loader,
    /// What the files elsewhere held when the set in force was read.
    elsewhere: ContentHash,
    /// The set before the one in force, kept to the next reload: to take a large one apart costs milliseconds, which
    /// would otherwise be those of the last request that it serves.
    retired: Option<Arc<RuleSet>>,
}

/// What a reload came to.
#[derive(Debug, Clone)]
pub enum ReloadOutcome {
    /// New requests are served by the new set.
    Loaded {
        /// The version before.
        previous: Box<str>,
        /// The version now.
        version: Box<str>,
        /// Whether secrets or certificates that are kept in files elsewhere are others than before: of secrets the
        /// version says nothing.
        elsewhere_changed: bool,
        /// The keys of `gateway.toml` (`server.listen`) that differ from those the process runs with: they need a restart,
        /// and until then the running ones stay in force.
        needs_restart: Vec<&'static str>,
    },
    /// The files are wrong; the last good set keeps serving.
    Refused(Arc<Problems>),
}

impl LiveRules {
    /// Serves a first rule set that `loader` has loaded.
    #[must_use]
    pub fn new(loader: Loader, first: RuleSet, clock: Arc<dyn Clock>) -> Self {
        let started = Arc::new(first);
        Self {
            directory: loader.directory().into(),
            clock,
            current: ArcSwap::new(Arc::clone(&started)),
            started,
            failure: ArcSwapOption::empty(),
            needs_restart: ArcSwap::default(),
            elsewhere: ArcSwap::from_pointee(loader.files_elsewhere()),
            reading: Mutex::new(Reading { elsewhere: loader.hash_elsewhere(), loader, retired: None }),
        }
    }

    /// The rule set in force. A request calls this once and keeps the answer to its reply.
    #[must_use]
    pub fn current(&self) -> Arc<RuleSet> {
        self.current.load_full()
    }

    /// The rules directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Why the last reload failed; `None` since a good set was loaded.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<Problems>> {
        self.failure.load_full()
    }

    /// The keys of `gateway.toml` that the rules in force have another value for than the process runs with; empty since it
    /// was started, or since the file says again what runs.
    #[must_use]
    pub fn needs_restart(&self) -> Arc<Vec<&'static str>> {
        self.needs_restart.load_full()
    }

    /// Whether the files are others than those that were last read, good or wrong: told from their names, sizes and
    /// times; only those that had just been changed then are read. `false` while a reload runs.
    #[must_use]
    pub fn stale(&self) -> bool {
        self.reading.try_lock().is_ok_and(|mut reading| reading.loader.is_stale(self.clock.now()))
    }

    /// The files outside the directory that the rules named when they were last read, good or wrong, whether or not they
    /// exist: secrets and trusted certificates.
    #[must_use]
    pub fn files_elsewhere(&self) -> Arc<Vec<PathBuf>> {
        self.elsewhere.load_full()
    }

    /// Reads the files anew, all or nothing. Reads files and may block: call it where that is allowed. Calls at the same
    /// time wait for each other.
    pub fn reload(&self) -> ReloadOutcome {
        // A reload that panicked left the last good set in force, so that its lock is as good as any.
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading { loader, elsewhere, retired } = &mut *reading;
        let previous = self.current();
        let loaded = loader.load(self.clock.now(), Some(&previous));
        self.elsewhere.store(Arc::new(loader.files_elsewhere()));
        let (error, outcome) = match loaded {
            Ok(mut rules) => {
                let needs_restart = restart::changed_keys(&self.started.gateway, &rules.gateway);
                restart::keep_running(&mut rules.gateway, &self.started.gateway);
                self.needs_restart.store(Arc::new(needs_restart.clone()));
                let version = rules.version.clone();
                *retired = Some(self.current.swap(Arc::new(rules)));
                let previous = previous.version.clone();
                let before = std::mem::replace(elsewhere, loader.hash_elsewhere());
                let elsewhere_changed = before != *elsewhere;
                (None, ReloadOutcome::Loaded { previous, version, elsewhere_changed, needs_restart })
            }
            Err(problems) => {
                let problems = Arc::new(problems);
                (Some(Arc::clone(&problems)), ReloadOutcome::Refused(problems))
            }
        };
        self.failure.store(error);
        outcome
    }
}

impl std::fmt::Debug for LiveRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveRules")
            .field("directory", &self.directory)
            .field("version", &self.current().version)
            .finish_non_exhaustive()
    }
}
