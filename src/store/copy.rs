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

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::{OpenError, StoreError};
use crate::domain::{Bucket, MerchantId};

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
        if let OpenError::Missing { path } | OpenError::Foreign { path } = error {
            return Self::NoSource { path };
        }
        Self::Open(error)
    }
}

/// A table. Its columns have the names that they have in the target.
pub(super) struct CopiedTable {
    pub(super) name: &'static str,
    /// What the target's `bucket` is in the source, which has none.
    bucket: &'static str,
    /// By what its rows are read: an order that never changes.
    key: &'static str,
}

impl CopiedTable {
    const fn new(name: &'static str, bucket: &'static str, key: &'static str) -> Self {
        Self { name, bucket, key }
    }

    /// Returns what reads some columns of the rows after so many.
    pub(super) fn rows<'a>(&self, columns: impl Iterator<Item = &'a str>) -> String {
        let columns: Vec<_> = columns.map(|name| if name == "bucket" { self.bucket } else { name }).collect();
        format!("SELECT {} FROM {} ORDER BY {} LIMIT -1 OFFSET ?1", columns.join(", "), self.name, self.key)
    }

    /// Counts the rows.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(super) fn count(&self, source: &Connection) -> rusqlite::Result<i64> {
        source.query_row(&format!("SELECT count(*) FROM {}", self.name), [], |row| row.get(0))
    }
}

const OF_MERCHANT: &str = "bucket(merchant)";
const OF_OPERATION: &str = "(transaction_id >> 12) & 1023";
const OF_KEY: &str = "(abs(key) >> 12) & 1023";

/// The tables, in the order in which they are copied.
pub(super) const TABLES: &[CopiedTable] = &[
    CopiedTable::new("contexts", OF_MERCHANT, "id"),
    CopiedTable::new("operations", OF_OPERATION, "transaction_id"),
    CopiedTable::new("entries", OF_MERCHANT, "transaction_id, posting, currency, account"),
    CopiedTable::new("accounts", OF_MERCHANT, "merchant, currency, account"),
    CopiedTable::new("merchants", OF_MERCHANT, "merchant"),
    CopiedTable::new("daily_usage", OF_MERCHANT, "day, merchant, shop, direction, customer_account_id"),
    CopiedTable::new("homes", "(ref >> 12) & 1023", "order_key"),
    CopiedTable::new("tasks", OF_KEY, "kind, key"),
    CopiedTable::new("preparations", OF_OPERATION, "transaction_id"),
    CopiedTable::new("journal", OF_MERCHANT, "entry"),
    CopiedTable::new("callbacks", OF_KEY, "key"),
    CopiedTable::new("callback_tries", OF_KEY, "key, number"),
    CopiedTable::new("forgotten", "", "id"),
];

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
