//! Opens the store that the rules configure.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::secret_file::secret_file;
use super::vault::VaultError;
use super::{Store, postgres, sqlite};
use crate::clock::{Clock, Random};
use crate::rules::{Secret, StoreKeys, StoreRules, StoreUrl};
use crate::telemetry::Metrics;

/// An opened store.
#[derive(Debug)]
pub struct Opened<S> {
    /// The store.
    pub store: S,
    /// What it contained when it was opened.
    pub holds: Holds,
}

/// What a store contains. A store of the embedded engine contains operations, one of a gateway in front of a remote
/// engine contains journal entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Operations of the embedded engine.
    pub operations: bool,
    /// Entries of the journal of a remote engine.
    pub journal: bool,
}

impl Holds {
    /// Reports whether the store contains anything that was acknowledged. If so, secrets that belong to it must not be
    /// created anew (contract section 2).
    #[must_use]
    pub const fn any(self) -> bool {
        self.operations || self.journal
    }
}

/// Opens the store that the rules configure, and creates or migrates it as needed.
///
/// # Errors
/// One line for the operator: what failed, on which path, and what to do.
pub fn open_store(
    rules: &StoreRules,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<Arc<dyn Store>>, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => {
            let Opened { store, holds } = sqlite::open(path, &rules.keys, random, metrics)?;
            Ok(Opened { store: Arc::new(store), holds })
        }
        StoreUrl::Postgres(url) => {
            let Opened { store, holds } = postgres::open(url, &rules.keys, clock, random)?;
            Ok(Opened { store: Arc::new(store), holds })
        }
    }
}

/// Opens the store that the rules configure for a tool, while a gateway may be serving it. Creates and migrates
/// nothing, and leaves the gateway's leases and write-ahead log unchanged.
///
/// # Errors
/// As [`open_store`]; also when there is no store, or its schema is older.
pub fn open_beside(
    rules: &StoreRules,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Arc<dyn Store>, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(sqlite::open_beside(path, &rules.keys, random, metrics)?)),
        StoreUrl::Postgres(url) => Ok(Arc::new(postgres::open_beside(url, &rules.keys, random)?)),
    }
}

/// The result of rewrapping a store's data keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrapped {
    /// The count of data keys in the store.
    pub all: usize,
    /// How many data keys another key than the first of `store.keys` wrapped before, by that key's position in the
    /// list, from 1.
    pub before: BTreeMap<usize, usize>,
}

/// Wraps the data keys of the configured store with the first of `store.keys`, in one transaction. Gateways that are
/// serving the store are not affected: they have the unwrapped data keys in memory.
///
/// # Errors
/// As [`open_beside`]. Nothing is changed then, unless the connection to the database was lost during the commit.
pub fn rewrap_keys(rules: &StoreRules, random: Arc<dyn Random>) -> Result<Rewrapped, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => sqlite::rewrap_keys(path, &rules.keys, &random),
        StoreUrl::Postgres(url) => postgres::rewrap_keys(url, &rules.keys, random),
    }
}

/// Returns the keys of the rules, or the key of the configured key file, which is created for a new store (contract
/// section 2).
pub(super) fn wrapping_keys(
    path: &Path,
    keys: &StoreKeys,
    new: bool,
    random: &dyn Random,
) -> Result<Vec<Secret>, OpenError> {
    match &keys.create_at {
        _ if !keys.keys.is_empty() => Ok(keys.keys.clone()),
        Some(file) => Ok(vec![Secret::new(&secret_file(file, new, random)?)]),
        None => Err(OpenError::NoKey { path: path.into() }),
    }
}

/// Why a store or the file of a secret cannot be opened: one line with the path and what to do. Contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system reported an error.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A key file is missing, and a new key could not replace it.
    #[error("{path}: the key file is missing, and a new key could not open what exists: restore it from a backup")]
    KeyMissing {
        /// Where the file should be.
        path: PathBuf,
    },
    /// A key file is missing for a new store that several nodes share.
    #[error(
        "{path}: the key file is missing, and none is created for PostgreSQL: create one with openssl rand -base64 32 \
         and put the same file on every node"
    )]
    KeyNotMade {
        /// Where the file should be.
        path: PathBuf,
    },
    /// The rules name neither a key nor a file in which to create one.
    #[error("{path}: the store needs a key: set one in store.keys")]
    NoKey {
        /// The store.
        path: PathBuf,
    },
    /// A key file does not contain a key.
    #[error("{path}: does not hold 32 bytes in base64: restore the file, or remove it if the store is new")]
    KeyFile {
        /// The file.
        path: PathBuf,
    },
    /// None of `store.keys` opens the store.
    #[error("{path}: {source}: add the key that the store was created with to store.keys")]
    Keys {
        /// The store.
        path: PathBuf,
        /// Why not.
        source: VaultError,
    },
    /// The store was written by a newer release.
    #[error("{path}: has schema version {found}, but this release supports at most {known}: start the newer release")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The store was written by an older release, and must not be migrated here.
    #[error(
        "{path}: has schema version {found}, but this release needs {known}: start this release's gateway once to migrate it"
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that this release needs.
        known: i64,
    },
    /// Another process serves the store, or holds its lock.
    #[error("{path}: another process serves this store: stop it first; only one gateway can serve a SQLite store")]
    Served {
        /// The store.
        path: PathBuf,
    },
    /// A copy to this store is under way, or was interrupted.
    #[error("{path}: is an unfinished copy of another store: run paybridge store copy again to finish it")]
    Unfinished {
        /// The store.
        path: PathBuf,
    },
    /// The store was moved to another database.
    #[error("{path}: was moved to {to}: set store.url to it")]
    Moved {
        /// The store.
        path: PathBuf,
        /// The URL of that database, without a password.
        to: String,
    },
    /// The target of a copy contains a store already.
    #[error("{path}: holds a store already: name an empty database")]
    Occupied {
        /// The store.
        path: PathBuf,
    },
    /// The target of a copy contains an unfinished copy of another store.
    #[error("{path}: is an unfinished copy of another store than this one: name an empty database")]
    OtherCopy {
        /// The store.
        path: PathBuf,
    },
    /// There is no store.
    #[error("{path}: there is no store: check store.url, or start the gateway once to create it")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("{path}: is not a Paybridge store: set store.url to another file")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database contains tables of another program.
    #[error("{path}: is not empty and not a Paybridge store ({found}): name an empty database")]
    NotEmpty {
        /// The database.
        path: PathBuf,
        /// The error message of the database.
        found: String,
    },
    /// The file system does not support a write-ahead log.
    #[error("{path}: the file system does not support SQLite's write-ahead log: use a local disk")]
    NoWal {
        /// The store.
        path: PathBuf,
    },
    /// The database refused the connection, or did not answer.
    #[error("{store}: cannot open the store: {reason}")]
    Database {
        /// The store.
        store: String,
        /// The reason, without a password.
        reason: String,
    },
    /// SQLite reported an error.
    #[error("{path}: cannot open the store: {source}")]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.into(), action, source }
    }

    pub(super) fn sqlite(path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Sqlite { path: path.into(), source }
    }
}
