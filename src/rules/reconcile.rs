//! How the statement of a shop's provider is read (contract section 14, "Reconcile").

use crate::domain::Status;

/// `[reconcile]` of a shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRules {
    /// What the key column holds.
    pub key: StatementKey,
    /// The names of the columns.
    pub columns: StatementColumns,
    /// The words of the status column, each with what it means. Empty without that column.
    pub statuses: Vec<(Box<str>, Status)>,
    /// The character between two fields.
    pub delimiter: u8,
    /// The character before the hundredths of an amount.
    pub decimal: char,
    /// The encoding of the file.
    pub encoding: StatementEncoding,
    /// Which lines are skipped.
    pub skip: Option<SkippedLines>,
}

impl StatementRules {
    /// Returns what a word of the status column means.
    #[must_use]
    pub fn status(&self, word: &str) -> Option<Status> {
        self.statuses.iter().find(|(known, _)| **known == *word).map(|(_, status)| *status)
    }

    /// Reports whether operations of a status are in the statement: those that succeeded, and those whose status has a
    /// word.
    #[must_use]
    pub fn lists(&self, status: Status) -> bool {
        status == Status::Success || self.statuses.iter().any(|(_, named)| *named == status)
    }
}

/// What the key column of a statement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKey {
    /// The service's id of an operation.
    TransactionId,
    /// The merchant's id of an operation.
    OrderId,
}

/// The names of a statement's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementColumns {
    /// Of the key.
    pub key: Box<str>,
    /// Of the amount.
    pub amount: Box<str>,
    /// Of the currency. Without it, all amounts are in the shop's currency.
    pub currency: Option<Box<str>>,
    /// Of the status. Without it, all lines are of operations that succeeded.
    pub status: Option<Box<str>>,
    /// Of the merchant's id.
    pub merchant: Option<Box<str>>,
    /// Of the direction.
    pub direction: Option<Box<str>>,
}

/// The encoding of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementEncoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// ISO 8859-1.
    Latin1,
}

/// The lines of a statement that are of no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLines {
    /// The name of a column.
    pub column: Box<str>,
    /// The values of that column in these lines.
    pub values: Vec<Box<str>>,
}
