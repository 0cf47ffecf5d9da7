//! Moving a store from SQLite to PostgreSQL: what is copied, and as what (contract section 12, `store copy`).
//!
//! ```text
//! begun     the source's lock is held, the target is marked as unfinished: no gateway serves either
//! filled    table by table in the order of the source's keys, some rows a commit, each with how many there are by then
//! compared  of each table how many rows there are, and the sum of each column
//! audited   as `store check` would
//! moved     the source is marked as moved, and only then the target's mark goes: never are there two that serve
//! ```
//!
//! Rows are copied as they are, and so are the data keys, so that what is sealed and hashed stays good. Only entries of the
//! journal change: their numbers have to name their buckets ([`Finisher`]).

mod tables;

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};

use super::vault::{Column as Sealed, Place, Vault};
use super::{EntryId, OpenError, StoreError};
use crate::domain::{Bucket, MerchantId, TransactionId, UnixMillis};
pub(super) use tables::TABLES;

/// Why a store was not copied, in one line. What was copied stays, and the target stays marked.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source or the target cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was named as the source is none.
    #[error("{path}: there is no Paybridge store: check --from")]
    NoSource {
        /// Where it should be.
        path: PathBuf,
    },
    /// The source cannot be read.
    #[error("the source cannot be read: {0}")]
    Source(#[from] rusqlite::Error),
    /// The source cannot be marked.
    #[error("the source cannot be marked as moved: {0}")]
    Mark(rusqlite::Error),
    /// The target cannot be read or written.
    #[error("the target: {0}")]
    Target(#[from] StoreError),
    /// A row of the source is none.
    #[error("the source holds what it should not, in {table}: paybridge store check tells more")]
    NotOurs {
        /// The table.
        table: &'static str,
    },
    /// Somebody wrote to the source.
    #[error("the source was changed meanwhile (by paybridge import-ids?): empty the database and copy again")]
    Changed,
    /// The target is not what was copied.
    #[error(
        "{table} of the target is not as in the source: did anything change either since the copy was begun? Empty the \
         database and copy again"
    )]
    Differs {
        /// The table.
        table: &'static str,
    },
}

impl CopyError {
    /// Why the source cannot be opened: it is not the one that the rules name.
    pub(super) fn of_source(error: OpenError) -> Self {
        match error {
            OpenError::Missing { path } | OpenError::Foreign { path } => Self::NoSource { path },
            error => Self::Open(error),
        }
    }
}

/// How a column is written in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Big,
    Integer,
    Small,
    Bool,
    Text,
    Bytes,
}

/// A table of the target, and the rows of the source that it gets.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// What the columns are in the source, each row once.
    select: &'static str,
    /// From what, and in which order, which never changes.
    from: &'static str,
    finish: fn(&mut Finisher<'_>, &mut [Value]) -> Result<(), Misfit>,
}

impl Table {
    /// The rows after so many.
    pub(super) fn rows(&self) -> String {
        format!("SELECT {} FROM {} LIMIT -1 OFFSET ?1", self.select, self.from)
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(super) fn count(&self, source: &Connection) -> rusqlite::Result<i64> {
        source.query_row(&format!("SELECT count(*) FROM (SELECT 1 FROM {})", self.from), [], |row| row.get(0))
    }
}

/// Why a row cannot be copied.
pub(super) enum Misfit {
    NotOurs,
    Source(rusqlite::Error),
}

impl From<rusqlite::Error> for Misfit {
    fn from(error: rusqlite::Error) -> Self {
        Self::Source(error)
    }
}

/// Turns rows of the source into rows of the target.
pub(super) struct Finisher<'a> {
    source: &'a Connection,
    vault: &'a Vault,
    buckets: HashMap<String, i64>,
}

impl<'a> Finisher<'a> {
    pub(super) fn new(source: &'a Connection, vault: &'a Vault) -> Self {
        Self { source, vault, buckets: HashMap::new() }
    }

    /// # Errors
    /// The row is none of this store, or the source cannot be read.
    pub(super) fn finish(&mut self, table: &Table, mut row: Vec<Value>) -> Result<Vec<Value>, CopyError> {
        (table.finish)(self, &mut row).map_err(|misfit| match misfit {
            Misfit::NotOurs => CopyError::NotOurs { table: table.name },
            Misfit::Source(error) => CopyError::Source(error),
        })?;
        Ok(row)
    }

    /// The bucket of a merchant.
    fn bucket(&mut self, merchant: &str) -> Result<i64, Misfit> {
        if let Some(bucket) = self.buckets.get(merchant) {
            return Ok(*bucket);
        }
        let bucket = i64::from(Bucket::of(&MerchantId::new(merchant).map_err(|_| Misfit::NotOurs)?).number());
        self.buckets.insert(merchant.to_owned(), bucket);
        Ok(bucket)
    }

    /// The number that an entry gets: made as new ones are, from its time and its bucket, and told apart by the end of the
    /// number that it had, so that it is the same whenever it is asked for.
    fn number(&self, entry: i64) -> Result<i64, Misfit> {
        let mut select = self.source.prepare_cached("SELECT created_at, merchant FROM journal WHERE entry = ?1")?;
        let found: Option<(i64, String)> =
            select.query_row([entry], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (created_at, merchant) = found.ok_or(Misfit::NotOurs)?;
        let bucket = Bucket::of(&MerchantId::new(&merchant).map_err(|_| Misfit::NotOurs)?);
        Ok(TransactionId::compose(UnixMillis(created_at), bucket, entry.cast_unsigned()).to_stored())
    }

    /// Seals an entry's account for the number that the entry gets.
    fn sealed_anew(&self, before: i64, number: i64, account: &[u8]) -> Result<Vec<u8>, Misfit> {
        let of = |number| Place::Entry(EntryId(number));
        let plain = self.vault.open(Sealed::JournalAccount, of(before), account).map_err(|_| Misfit::NotOurs)?;
        Ok(self.vault.seal(Sealed::JournalAccount, of(number), &plain))
    }
}
