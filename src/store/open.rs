//! Opening the store that the rules name.

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

/// A store that was opened.
#[derive(Debug)]
pub struct Opened<S> {
    /// The store.
    pub store: S,
    /// What it held at that moment.
    pub holds: Holds,
}

/// What a store holds. Stores of the embedded engine hold operations, those of a gateway before a remote one a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Operations of the embedded engine.
    pub operations: bool,
    /// Entries of the journal of a remote engine.
    pub journal: bool,
}

impl Holds {
    /// Whether it holds anything that was answered for: secrets that belong to it must not be made anew then (contract
    /// section 2).
    #[must_use]
    pub const fn any(self) -> bool {
        self.operations || self.journal
    }
}

/// Opens the store that the rules name, making and migrating it as needed.
///
/// # Errors
/// One clear line for the operator: what was tried, on which path, and what to do.
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

/// Opens the store that the rules name for a tool, beside a gateway that may be serving it: nothing is made or migrated, and
/// what the gateway leased or keeps in its log stays as it is.
///
/// # Errors
/// As [`open_store`]; also that there is no store, or one of an older version.
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

/// What came of wrapping a store's data keys anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrapped {
    /// How many data keys the store has.
    pub all: usize,
    /// How many of them another key than the first of `store.keys` wrapped until now, by its position there, from 1.
    pub before: BTreeMap<usize, usize>,
}

/// Wraps the data keys of the store that the rules name with the first of `store.keys`, in one transaction, beside gateways
/// that may be serving it: those have the data keys already.
///
/// # Errors
/// As [`open_beside`]. Nothing is changed then, unless the word of a commit was lost with a database's connection.
pub fn rewrap_keys(rules: &StoreRules, random: Arc<dyn Random>) -> Result<Rewrapped, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => sqlite::rewrap_keys(path, &rules.keys, &random),
        StoreUrl::Postgres(url) => postgres::rewrap_keys(url, &rules.keys, random),
    }
}

/// The keys of the rules, or the key file that the rules say to make when the store is new (contract section 2).
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

/// Why a store or a secret's file cannot be opened: one line, with the path and what to do; it holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file of a key is gone that must not be replaced by another.
    #[error("{path}: the key file is missing, and a new key could not open what exists: restore it from a backup")]
    KeyMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file of a key is missing on a new store that several nodes serve.
    #[error(
        "{path}: the key file is missing, and for PostgreSQL none is made: put the same on every node, made once by openssl \
         rand -base64 32"
    )]
    KeyNotMade {
        /// Where it should be.
        path: PathBuf,
    },
    /// The rules name no key and no place to make one.
    #[error("{path}: the store needs a key: name one in store.keys")]
    NoKey {
        /// The store.
        path: PathBuf,
    },
    /// The file of a key holds something else.
    #[error("{path}: does not hold 32 bytes in base64: restore the file, or remove it if the store is new")]
    KeyFile {
        /// The file.
        path: PathBuf,
    },
    /// `store.keys` do not fit the store.
    #[error("{path}: {source}: name the key that the store was made with in store.keys")]
    Keys {
        /// The store.
        path: PathBuf,
        /// What does not fit.
        source: VaultError,
    },
    /// A newer release has written the store.
    #[error("{path}: has schema version {found}, this paybridge knows {known} at most: start the newer release")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// An older release has written the store, and who opens it migrates nothing.
    #[error(
        "{path}: has schema version {found}, this paybridge needs {known}: start this release's gateway once to migrate it"
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version needed.
        known: i64,
    },
    /// Another process serves the store.
    #[error("{path}: another process serves this store: stop it first, one gateway serves a SQLite store")]
    Served {
        /// The store.
        path: PathBuf,
    },
    /// It is being copied, or that came to no end.
    #[error("{path}: is an unfinished copy of another store: run paybridge store copy again to finish it")]
    Unfinished {
        /// The store.
        path: PathBuf,
    },
    /// It was copied to a database, which serves in its place.
    #[error("{path}: was moved to {to}: name that in store.url")]
    Moved {
        /// The store.
        path: PathBuf,
        /// Where it is now, without a password.
        to: String,
    },
    /// A copy needs an empty database.
    #[error("{path}: holds a store already: name an empty database")]
    Occupied {
        /// The store.
        path: PathBuf,
    },
    /// Somebody began to copy another store to it.
    #[error("{path}: is an unfinished copy of another store than this one: name an empty database")]
    OtherCopy {
        /// The store.
        path: PathBuf,
    },
    /// There is nothing to open.
    #[error("{path}: there is no store: check store.url, or start the gateway once to make it")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A database of something else.
    #[error("{path}: is not a Paybridge store: name another file in store.url")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A database with tables of something else.
    #[error("{path}: is not empty, and no Paybridge store ({found}): name an empty database")]
    NotEmpty {
        /// The database.
        path: PathBuf,
        /// What is there, in the database's own words.
        found: String,
    },
    /// The file system cannot carry a write-ahead log.
    #[error("{path}: the file system does not support SQLite's write-ahead log: use a local disk")]
    NoWal {
        /// The store.
        path: PathBuf,
    },
    /// The database refused, or does not answer.
    #[error("{store}: cannot open the store: {reason}")]
    Database {
        /// The store.
        store: String,
        /// Why, in words that hold no password.
        reason: String,
    },
    /// SQLite refused.
    #[error("{path}: cannot open the store: {source}")]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// SQLite's own words.
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
