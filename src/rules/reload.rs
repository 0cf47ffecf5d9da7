//! The rule set in force, and its reload: the only place where a rule set is replaced.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::files::ContentHash;
use super::{Loader, Problems, RuleSet, restart};
use crate::clock::Clock;

/// The rule set in force, which a reload replaces.
pub type CurrentRules = Arc<ArcSwap<RuleSet>>;

/// The rule set in force, which a reload replaces (contract section 2, "Live reload").
pub struct LiveRules {
    directory: PathBuf,
    clock: Arc<dyn Clock>,
    current: CurrentRules,
    /// The set at the start of the process, whose values stay for settings that only a restart changes.
    started: Arc<RuleSet>,
    /// The problems of the last reload; `None` when it succeeded.
    failure: ArcSwapOption<Problems>,
    /// The keys whose new values wait for a restart.
    needs_restart: ArcSwap<Vec<&'static str>>,
    /// Held during a reload, so that there is only one at a time.
    reading: Mutex<Reading>,
    /// The external files; see [`LiveRules::external_files`].
    external: ArcSwap<Vec<PathBuf>>,
}

/// The state of reloads.
struct Reading {
    loader: Loader,
    /// The hash of the external files when the set in force was loaded.
    external: ContentHash,
    /// The set before the one in force, kept until the next reload: dropping a large set takes milliseconds, which
    /// would otherwise delay the last request that uses it.
    retired: Option<Arc<RuleSet>>,
}

/// The outcome of a reload.
#[derive(Debug, Clone)]
pub enum ReloadOutcome {
    /// The new set is in force for new requests.
    Loaded {
        /// The previous version.
        previous: Box<str>,
        /// The new version.
        version: Box<str>,
        /// Whether external files (secrets, trusted certificates) changed: the version does not depend on secrets.
        external_files_changed: bool,
        /// The keys of `gateway.toml`, such as `server.listen`, that differ from those the process runs with. They need
        /// a restart; until then the running values stay in force.
        needs_restart: Vec<&'static str>,
    },
    /// The files have errors; the last valid set stays in force.
    Refused(Arc<Problems>),
}

impl LiveRules {
    /// Puts the first rule set, loaded by `loader`, in force.
    #[must_use]
    pub fn new(loader: Loader, first: RuleSet, clock: Arc<dyn Clock>) -> Self {
        let started = Arc::new(first);
        Self {
            directory: loader.directory().into(),
            clock,
            current: Arc::new(ArcSwap::new(Arc::clone(&started))),
            started,
            failure: ArcSwapOption::empty(),
            needs_restart: ArcSwap::default(),
            external: ArcSwap::from_pointee(loader.external_files()),
            reading: Mutex::new(Reading { external: loader.external_hash(), loader, retired: None }),
        }
    }

    /// Returns the rule set in force. A request calls this once and uses the result until its reply.
    #[must_use]
    pub fn current(&self) -> Arc<RuleSet> {
        self.current.load_full()
    }

    /// Returns the rules in force, for those that read them later.
    #[must_use]
    pub fn shared(&self) -> CurrentRules {
        Arc::clone(&self.current)
    }

    /// Returns the rules directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the problems of the last reload; `None` when it succeeded.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<Problems>> {
        self.failure.load_full()
    }

    /// Returns the keys of `gateway.toml` whose values in the last loaded files differ from those the process runs
    /// with.
    #[must_use]
    pub fn needs_restart(&self) -> Arc<Vec<&'static str>> {
        self.needs_restart.load_full()
    }

    /// Reports whether the files changed since they were last read, with or without errors. Compares names, sizes and
    /// times; only files that had just been changed when they were read are read again. Returns `false` while a reload
    /// runs.
    #[must_use]
    pub fn stale(&self) -> bool {
        self.reading.try_lock().is_ok_and(|mut reading| reading.loader.is_stale(self.clock.now()))
    }

    /// Returns the paths of the external files (secrets, trusted certificates) that the rules named when they were last
    /// read, with or without errors, existing or missing.
    #[must_use]
    pub fn external_files(&self) -> Arc<Vec<PathBuf>> {
        self.external.load_full()
    }

    /// Loads the files again, all or nothing. Reads files and may block. Concurrent calls wait for each other.
    pub fn reload(&self) -> ReloadOutcome {
        // A reload that panicked left the last valid set in force, so a poisoned lock is safe to use.
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading { loader, external, retired } = &mut *reading;
        let previous = self.current();
        let loaded = loader.load(self.clock.now(), Some(&previous));
        self.external.store(Arc::new(loader.external_files()));
        let (error, outcome) = match loaded {
            Ok(mut rules) => {
                let needs_restart = restart::changed_keys(&self.started.gateway, &rules.gateway);
                restart::keep_running(&mut rules.gateway, &self.started.gateway, previous.gateway.admin.is_open);
                self.needs_restart.store(Arc::new(needs_restart.clone()));
                let version = rules.version.clone();
                *retired = Some(self.current.swap(Arc::new(rules)));
                let previous = previous.version.clone();
                let before = std::mem::replace(external, loader.external_hash());
                let external_files_changed = before != *external;
                (None, ReloadOutcome::Loaded { previous, version, external_files_changed, needs_restart })
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
