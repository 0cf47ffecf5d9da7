//! Defines how a store is copied from SQLite to PostgreSQL (contract section 12, `store copy`): the stages, the tables
//! and the errors.
//!
//! ```text
//! begun     the source's lock is held, the target is marked as unfinished: no gateway can serve either
//! filled    tables are copied in the order of the source's keys, some rows a commit, each commit with the count so far
//! compared  the count of rows and the sums of the columns are compared for each table
//! audited   the target is checked as by `store check`
//! moved     the source is marked as moved, and only then the target's mark is removed: both never serve at once
//! ```
//!
//! Rows and data keys are copied unchanged, so that sealed values and hashes stay valid.

use std::path::PathBuf;

use rusqlite::Connection;

use super::{OpenError, StoreError};

/// Why a store was not copied, in one line. The rows copied so far remain, and the target stays marked as unfinished.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source or the target cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file named as the source is not a store.
    #[error("{path}: there is no Paybridge store: check --from")]
    NoSource {
        /// Where it should be.
        path: PathBuf,
    },
    /// The source cannot be read.
    #[error("the source cannot be read: {0}")]
    Source(#[from] rusqlite::Error),
    /// The source cannot be marked as moved.
    #[error("the source cannot be marked as moved: {0}")]
    Mark(rusqlite::Error),
    /// The target cannot be read or written.
    #[error("the target: {0}")]
    Target(#[from] StoreError),
    /// A table of the source has an invalid row.
    #[error("{table} of the source holds invalid data: paybridge store check shows details")]
    NotOurs {
        /// The table.
        table: &'static str,
    },
    /// The source was written to during the copy.
    #[error("the source was changed meanwhile (by paybridge import-ids?): empty the database and copy again")]
    Changed,
    /// A table of the target differs from the source.
    #[error(
        "{table} of the target differs from the source: one of them was changed since the copy began. Empty the \
         database and copy again"
    )]
    Differs {
        /// The table.
        table: &'static str,
    },
}

impl CopyError {
    /// Wraps the error of opening the source, for which `store.url` is no remedy: `--from` names it.
    pub(super) fn of_source(error: OpenError) -> Self {
        if let OpenError::Missing { path } | OpenError::Foreign { path } = error {
            return Self::NoSource { path };
        }
        Self::Open(error)
    }
}

/// A table to copy. Its columns have the names of the target's columns.
pub(super) struct CopiedTable {
    pub(super) name: &'static str,
    /// The columns that define the order of reading, which never changes.
    key: &'static str,
}

impl CopiedTable {
    const fn new(name: &'static str, key: &'static str) -> Self {
        Self { name, key }
    }

    /// Returns the statement that selects some columns of the rows from an offset on.
    pub(super) fn rows<'a>(&self, columns: impl Iterator<Item = &'a str>) -> String {
        let columns: Vec<_> = columns.collect();
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

/// The tables, in the order of copying.
pub(super) const TABLES: &[CopiedTable] = &[
    CopiedTable::new("backup_mark", "id"),
    CopiedTable::new("contexts", "id"),
    CopiedTable::new("operations", "transaction_id"),
    CopiedTable::new("entries", "transaction_id, posting, currency, account"),
    CopiedTable::new("accounts", "merchant, currency, account"),
    CopiedTable::new("merchants", "merchant"),
    CopiedTable::new("daily_usage", "day, merchant, shop, direction, customer_account_id"),
    CopiedTable::new("homes", "order_key"),
    CopiedTable::new("tasks", "kind, key"),
    CopiedTable::new("preparations", "transaction_id"),
    CopiedTable::new("journal", "entry"),
    CopiedTable::new("callbacks", "key"),
    CopiedTable::new("callback_tries", "key, number"),
    CopiedTable::new("forgotten", "id"),
    CopiedTable::new("check_counts", "merchant, rules, id"),
    CopiedTable::new("complete_ids", "merchant, direction"),
    CopiedTable::new("actions", "id"),
    CopiedTable::new("provider_queries", "transaction_id, queried_at"),
    CopiedTable::new("resolutions", "id"),
    CopiedTable::new("contradictions", "transaction_id"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TABLES;

    #[test]
    fn every_table_is_copied_but_for_those_of_the_file() {
        let script = include_str!("sqlite/0001.sql");
        let made = script.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next());
        let of_the_file = ["data_keys", "moved", "paybridge_formats", "probe", "probe_room"];
        let copied: BTreeSet<_> = TABLES.iter().map(|table| table.name).chain(of_the_file).collect();
        assert_eq!(made.collect::<BTreeSet<_>>(), copied);
    }
}
