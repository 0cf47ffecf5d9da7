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
//! Rows are copied as they are, and so are the data keys, so that what is sealed and hashed stays good.

mod tables;

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::{OpenError, StoreError};
use crate::domain::{Bucket, MerchantId};
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

/// Makes `bucket(merchant)` known to the source, which has no buckets.
///
/// # Errors
/// SQLite has no memory.
pub(super) fn make_buckets_known(source: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    source.create_scalar_function("bucket", 1, flags, |context| {
        let merchant = MerchantId::new(context.get_raw(0).as_str()?);
        let merchant = merchant.map_err(|invalid| rusqlite::Error::UserFunctionError(Box::new(invalid)))?;
        Ok(i64::from(Bucket::of(&merchant).number()))
    })
}
