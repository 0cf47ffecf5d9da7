//! The invariants of the store (contract section 12, `store check`), for every backend.
//!
//! The rows and their related rows are read from one snapshot, in slices, in the order of their keys.

mod callbacks;
mod journal;
mod ledger;
mod operations;
mod slices;
mod usage;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

#[cfg(test)]
pub(super) use slices::statements;
pub(super) use slices::{AuditRun, AuditSlice, audited};

use super::StoreError;
use super::homes::Home;
use super::rows::CorruptRow;
use super::vault::Vault;
use crate::domain::Fingerprint;

/// A row and its number; `None`: a column has an invalid value.
type Found<T> = (i64, Option<T>);

/// The result of an audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// The count of checked operations.
    pub operations: u64,
    /// The count of checked ledger entries.
    pub entries: u64,
    /// The count of checked journal entries.
    pub journal: u64,
    /// The count of checked callbacks.
    pub callbacks: u64,
    /// The problems, a line each: at most [`Audit::MAX_PROBLEMS`]. They contain no account numbers and nothing of
    /// `fields`.
    pub problems: Vec<String>,
    /// The count of all problems.
    pub problem_count: u64,
}

impl Audit {
    /// The most problems that are listed.
    pub const MAX_PROBLEMS: usize = 100;

    /// Reports whether there are no problems.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// Adds a problem.
    pub(super) fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < Self::MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

/// An account: merchant, currency, number.
type AuditedAccount = (Box<str>, Box<str>, i64);

/// The progress of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    /// Operations, journal entries and callbacks checked so far.
    pub done: u64,
    /// Operations, journal entries and callbacks in total.
    pub total: u64,
}

/// The state of a running audit.
pub(super) struct AuditFindings {
    pub(super) vault: Arc<Vault>,
    pub(super) found: Audit,
    /// The order keys of the rows in the current slice, and the home that each must have. Compared after each slice.
    homes: Vec<(Fingerprint, Home)>,
    /// The sum of the entries of each account.
    sums: HashMap<AuditedAccount, i128>,
    /// The merchants whose ledger was opened.
    opened: HashSet<Box<str>>,
}

impl AuditFindings {
    pub(super) fn new(vault: Arc<Vault>) -> Self {
        Self { vault, found: Audit::default(), homes: Vec::new(), sums: HashMap::new(), opened: HashSet::new() }
    }

    /// Returns the count of rows checked slice by slice.
    pub(super) const fn done(&self) -> u64 {
        self.found.operations + self.found.journal + self.found.callbacks
    }

    /// Adds those of the problems whose condition holds.
    fn note_problems<const N: usize>(&mut self, subject: impl Display, problems: [(bool, &str); N]) {
        for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
            self.found.problem(format!("{subject}: {problem}"));
        }
    }

    /// Compares the homes expected by the current slice with those that were read.
    fn compare_homes(&mut self, found: impl IntoIterator<Item = Option<Result<Home, CorruptRow>>>) {
        for ((_, home), found) in std::mem::take(&mut self.homes).into_iter().zip(found) {
            let (home, problems) = (
                match home {
                    Home::Operation(id)
                    | Home::Claimed(id)
                    | Home::Imported(id)
                    | Home::Native(id)
                    | Home::Lost(id) => {
                        format!("operation {id}")
                    }
                    Home::Entry(id) => format!("journal entry {}", id.0),
                },
                [
                    (found.is_none(), "its order has no home: it could be created twice"),
                    (found.is_some_and(|found| found != Ok(home)), "its order has another home"),
                ],
            );
            self.note_problems(home, problems);
        }
    }

    /// Compares the parts of the schema with those of this release. `newer`: a newer release may have added to them.
    pub(super) fn structure(
        &mut self,
        made: impl IntoIterator<Item = (String, String)>,
        mut found: SchemaParts,
        newer: bool,
    ) {
        for (name, made) in made {
            match found.remove(&name) {
                None => self.found.problem(format!("the schema: {name} is missing")),
                Some(found) if found != made && !(newer && is_extended(&made, &found)) => {
                    self.found.problem(format!("the schema: {name} differs from this release"));
                }
                Some(_) => {}
            }
        }
        for name in found.into_keys().filter(|_| !newer) {
            self.found.problem(format!("the schema: {name} is unknown to this release"));
        }
    }
}

/// Reports whether a definition is another one with more columns in one place: SQLite puts a comma before one, and
/// PostgreSQL's columns end with a semicolon.
fn is_extended(made: &str, found: &str) -> bool {
    let same = |pair: &(u8, u8)| pair.0 == pair.1;
    let before = made.bytes().zip(found.bytes()).take_while(same).count();
    let after = made.bytes().rev().zip(found.bytes().rev()).take_while(same).count();
    let mut places = made.len().saturating_sub(after)..=before;
    made.len() < found.len()
        && places.any(|place| {
            let (kept, rest) = (made.get(..place), found.get(place..));
            kept.is_some_and(|kept| kept.ends_with(';')) || rest.is_some_and(|rest| rest.starts_with(','))
        })
}

/// The definitions of the parts of a schema, by type and name.
pub(super) type SchemaParts = std::collections::BTreeMap<String, String>;

/// Returns the text of an error about a row; it contains no value.
fn message_of(error: StoreError) -> String {
    match error {
        StoreError::Unavailable(text) | StoreError::Corrupt(text) => text,
        StoreError::TooLong => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_extended;

    #[test]
    fn an_addition_is_recognized() {
        let made = "CREATETABLEa(bINTEGER,cTEXT,CHECK(b>0))STRICT";
        assert!(is_extended(made, "CREATETABLEa(bINTEGER,cTEXT,dTEXT,CHECK(b>0))STRICT"));
        assert!(is_extended(made, "CREATETABLEa(bINTEGER,cTEXT,CTEXT,CHECK(b>0))STRICT"));
        assert!(is_extended("CREATETABLEa(b)STRICT", "CREATETABLEa(b,cTEXT)STRICT"));
        assert!(is_extended("b integer;c text;", "b integer;c text;d text;"));
        assert!(!is_extended("b integer;c text;", "b integer;c text not null;"));
        for other in
            [made, "CREATETABLEa(bINTEGER,CHECK(b>0))STRICT", "CREATETABLEa(bINTEGER,cBLOB,dTEXT,CHECK(b>0))STRICT"]
        {
            assert!(!is_extended(made, other), "{other}");
        }
    }
}
