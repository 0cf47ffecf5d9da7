//! The rule set in force, and its reload: the only place where a rule set is replaced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwap;

use super::files::ContentHash;
use super::{FilesSeen, Loader, Problems, RuleSet, restart};
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
    /// Held during a reload, so that there is only one at a time.
    reading: Mutex<Reading>,
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

    /// Returns the files as they are now, if they changed since they were last read, with or without errors; see
    /// [`Loader::changes`]. Returns `None` while a reload runs.
    #[must_use]
    pub fn changes(&self) -> Option<FilesSeen> {
        let mut reading = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        reading.loader.changes(self.clock.now())
    }

    /// Returns the directories in which the system reports changes of the files. Waits for a reload.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        self.reading().loader.directories()
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        // A reload that panicked left the last valid set in force, so a poisoned lock is safe to use.
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the files again, all or nothing. Reads files and may block. Concurrent calls wait for each other.
    pub fn reload(&self) -> ReloadOutcome {
        let mut reading = self.reading();
        let Reading { loader, external, retired } = &mut *reading;
        let previous = self.current();
        let mut rules = match loader.load(self.clock.now(), Some(&previous)) {
            Ok(rules) => rules,
            Err(problems) => return ReloadOutcome::Refused(Arc::new(problems)),
        };
        let needs_restart = restart::changed_keys(&self.started.gateway, &rules.gateway);
        restart::keep_running(&mut rules.gateway, &self.started.gateway, previous.gateway.admin.is_open);
        let version = rules.version.clone();
        *retired = Some(self.current.swap(Arc::new(rules)));
        let before = std::mem::replace(external, loader.external_hash());
        let external_files_changed = before != *external;
        let previous = previous.version.clone();
        ReloadOutcome::Loaded { previous, version, external_files_changed, needs_restart }
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
