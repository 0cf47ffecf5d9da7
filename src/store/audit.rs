//! The store's invariants (contract section 12, `store check`): once, for every backend.
//!
//! A backend reads its rows on one snapshot, a slice after the other in the order of their keys, and what stands around
//! them; what they must be is said here.

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
use super::homes::Home;
use super::vault::Vault;
use crate::domain::{Bucket, Fingerprint, MerchantId};

/// A place in the order of keys: a bucket, and a number in it. A store without buckets has the bucket 0.
pub(super) type RowPlace = (i16, i64);

/// Before all places, and behind them.
pub(super) const FIRST: RowPlace = (i16::MIN, i64::MIN);
pub(super) const LAST: RowPlace = (i16::MAX, i64::MAX);

/// A row and its place; `None`: a column is of another type than it was made.
pub(super) type Found<T> = (RowPlace, Option<T>);

/// What an audit looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// How many operations were looked at.
    pub operations: u64,
    /// How many entries of the ledger were looked at.
    pub entries: u64,
    /// How many entries of the journal were looked at.
    pub journal: u64,
    /// How many callbacks were looked at.
    pub callbacks: u64,
    /// What is wrong, a line each; the first [`Audit::MAX_PROBLEMS`]. No account number and nothing of `fields` is in them.
    pub problems: Vec<String>,
    /// How many things are wrong.
    pub problem_count: u64,
}

impl Audit {
    /// The most problems that are told one by one.
    pub const MAX_PROBLEMS: usize = 100;

    /// Whether everything is as it must be.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// Takes note of a problem.
    pub(super) fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < Self::MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

/// How far an audit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    /// Operations, entries of the journal and callbacks looked at.
    pub done: u64,
    /// Operations, entries of the journal and callbacks in all.
    pub total: u64,
}

/// What an audit remembers.
pub(super) struct AuditFindings {
    pub(super) vault: Arc<Vault>,
    pub(super) found: Audit,
    /// Whether keys begin with a bucket. Such a store locks accounts by making their rows.
    has_buckets: bool,
    /// Of what was looked at, the order's key and the home that it must have: to be compared after each slice.
    pub(super) homes: Vec<(Fingerprint, Home)>,
    /// What the entries of each account sum to.
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

    /// Everything that was looked at slice by slice.
    pub(super) const fn done(&self) -> u64 {
        self.found.operations + self.found.journal + self.found.callbacks
    }

    /// Notes what is wrong with something.
    fn note<const N: usize>(&mut self, subject: impl Display, problems: [(bool, &str); N]) {
        for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
            self.found.problem(format!("{subject}: {problem}"));
        }
    }

    /// Whether a row stands in the bucket of its merchant, which its number names, too.
    fn is_in_bucket(&self, (bucket, number): RowPlace, merchant: &str) -> bool {
        let own = MerchantId::new(merchant).map(|merchant| i64::from(Bucket::of(&merchant).number()));
        !self.has_buckets || own.is_ok_and(|own| own == i64::from(bucket) && own == (number >> 12) & 1023)
    }

    /// Compares the homes that a slice must have, which are taken by that, with those that were found.
    pub(super) fn compare_homes(&mut self, found: impl IntoIterator<Item = Option<Home>>) {
        for ((_, home), found) in std::mem::take(&mut self.homes).into_iter().zip(found) {
            let (home, problems) = (
                match home {
                    Home::Operation(id) | Home::Imported(id) => format!("operation {id}"),
                    Home::Entry(id) => format!("journal entry {}", id.0),
                },
                [
                    (found.is_none(), "its order has no home: it could be made twice"),
                    (found.is_some_and(|found| found != home), "the home of its order is another"),
                ],
            );
            self.note(home, problems);
        }
    }

    /// Compares the parts of which the schema is made with those that this release makes.
    pub(super) fn structure(&mut self, made: impl IntoIterator<Item = (String, String)>, mut found: SchemaParts) {
        for (name, made) in made {
            match found.remove(&name) {
                None => self.found.problem(format!("the schema: {name} is missing")),
                Some(found) if found != made => {
                    self.found.problem(format!("the schema: {name} is not as this release makes it"));
                }
                Some(_) => {}
            }
        }
        for name in found.into_keys() {
            self.found.problem(format!("the schema: {name} is not of this release"));
        }
    }
}

/// What a store is made of, and how, by type and name.
pub(super) type SchemaParts = std::collections::BTreeMap<String, String>;

/// What an error says of a row; it names no value.
fn stated(error: StoreError) -> String {
    match error {
        StoreError::Unavailable(text) | StoreError::Corrupt(text) => text,
    }
}
