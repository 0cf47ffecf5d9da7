//! The invariants of the store (contract section 12, `store check`), for every backend.
//!
//! A backend reads the rows and their related rows on one snapshot, in slices, in the order of their keys. This module
//! checks them.

mod callbacks;
mod journal;
mod ledger;
mod operations;
pub(super) mod usage;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

pub(super) use callbacks::{AuditedTask, Callback, Tries};
pub(super) use journal::AroundEntry;
pub(super) use ledger::AuditedAccount;
pub(super) use operations::Around;

use super::StoreError;
use super::create::Home;
use super::vault::Vault;
use crate::domain::{Bucket, Fingerprint, MerchantId};

/// A position in the order of keys: a bucket, and a number in it. In a store without buckets the bucket is 0.
pub(super) type RowPlace = (i16, i64);

/// The positions before and behind all rows.
pub(super) const FIRST: RowPlace = (i16::MIN, i64::MIN);
pub(super) const LAST: RowPlace = (i16::MAX, i64::MAX);

/// A row and its position; `None`: a column has the wrong type.
pub(super) type Found<T> = (RowPlace, Option<T>);

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
    /// Whether keys begin with a bucket. Such a store inserts the rows of accounts in order to lock them.
    has_buckets: bool,
    /// The order keys of the rows in the current slice, and the home that each must have. Compared after each slice.
    pub(super) homes: Vec<(Fingerprint, Home)>,
    /// The sum of the entries of each account.
    sums: HashMap<AuditedAccount, i128>,
    /// The merchants whose ledger was opened.
    opened: HashSet<Box<str>>,
}

impl AuditFindings {
    pub(super) fn new(vault: Arc<Vault>, has_buckets: bool) -> Self {
        Self {
            vault,
            found: Audit::default(),
            has_buckets,
            homes: Vec::new(),
            sums: HashMap::new(),
            opened: HashSet::new(),
        }
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

    /// Reports whether a row is in the bucket of its merchant, and has a number of that bucket.
    fn is_in_bucket(&self, (bucket, number): RowPlace, merchant: &str) -> bool {
        let own = MerchantId::new(merchant).map(|merchant| i64::from(Bucket::of(&merchant).number()));
        !self.has_buckets || own.is_ok_and(|own| own == i64::from(bucket) && own == (number >> 12) & 1023)
    }

    /// Compares the homes expected by the current slice with those that were read.
    pub(super) fn compare_homes(&mut self, found: impl IntoIterator<Item = Option<Home>>) {
        for ((_, home), found) in std::mem::take(&mut self.homes).into_iter().zip(found) {
            let (home, problems) = (
                match home {
                    Home::Operation(id) | Home::Claimed(id) | Home::Imported(id) | Home::Native(id) => {
                        format!("operation {id}")
                    }
                    Home::Entry(id) => format!("journal entry {}", id.0),
                },
                [
                    (found.is_none(), "its order has no home: it could be created twice"),
                    (found.is_some_and(|found| found != home), "its order has another home"),
                ],
            );
            self.note_problems(home, problems);
        }
    }

    /// Compares the parts of the schema with those of this release.
    pub(super) fn structure(&mut self, made: impl IntoIterator<Item = (String, String)>, mut found: SchemaParts) {
        for (name, made) in made {
            match found.remove(&name) {
                None => self.found.problem(format!("the schema: {name} is missing")),
                Some(found) if found != made => {
                    self.found.problem(format!("the schema: {name} differs from this release"));
                }
                Some(_) => {}
            }
        }
        for name in found.into_keys() {
            self.found.problem(format!("the schema: {name} is unknown to this release"));
        }
    }
}

/// The definitions of the parts of a schema, by type and name.
pub(super) type SchemaParts = std::collections::BTreeMap<String, String>;

/// Returns the text of an error about a row; it contains no value.
fn message_of(error: StoreError) -> String {
    match error {
        StoreError::Unavailable(text) | StoreError::Corrupt(text) => text,
    }
}
