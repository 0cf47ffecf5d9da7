//! An opened store, and why one cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use super::vault::VaultError;

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

/// What a command opens a store for, beside gateways that may be serving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreAccess {
    /// To read it.
    Read,
    /// To change it as gateways do, which a backup that was not adopted refuses.
    Change,
    /// To adopt it: no gateway may be serving a SQLite store. What this release needs is added, since none serves a backup.
    Adopt,
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
    /// A newer release has finished its upgrade of the store.
    #[error(
        "{path}: has format {format} and can be served by releases from format {readable_from} on, but this release has format \
         {own}: start a newer release"
    )]
    LockedOut {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The oldest format whose releases can serve it.
        readable_from: u32,
        /// The format of this release.
        own: u32,
    },
    /// The store was last served by a release older than the one before this one.
    #[error(
        "{path}: has format {format}, but this release has format {own} and upgrades only stores of the format before: start \
         the releases in between first"
    )]
    TooOld {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The format of this release.
        own: u32,
    },
    /// The store has to be upgraded first, which a tool does not do.
    #[error(
        "{path}: has format {format}, but this release needs {own}: start this release's gateway once to upgrade the store"
    )]
    NotUpgraded {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The format of this release.
        own: u32,
    },
    /// The upgrade to the store's format is not finished.
    #[error(
        "{path}: its upgrade to format {format} is not finished: run paybridge store finish-upgrade of a release of format \
         {format} first"
    )]
    UpgradeUnfinished {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A newer release has added to the store, so that a copy made by this one would be incomplete.
    #[error("{path}: has format {format}, but this release copies stores of format {own} only: use the newer release")]
    NotCopied {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The format of this release.
        own: u32,
    },
    /// An unreleased build made the store: see [`format`](super::format).
    #[error(
        "{path}: was made by an unreleased build of Paybridge, with another schema or other fingerprints: use the build that \
         made it, or start with a new store"
    )]
    OtherBuild {
        /// The store.
        path: PathBuf,
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
    /// The store is a backup that was not adopted.
    #[error(
        "{path}: is a backup, which knows orders until {known_until}: repeats of later ones would be made anew. Run \
         paybridge store adopt first, with --ids FILE (the ids that merchants have used since), or with --accept-loss"
    )]
    Backup {
        /// The store.
        path: PathBuf,
        /// The time until which it knows orders, in RFC 3339.
        known_until: String,
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
