//! From a rules directory to a rule set, all or nothing.

use std::path::{Path, PathBuf};

use super::compile::memo::Memo;
use super::compile::{Task, compile};
use super::elsewhere::Elsewhere;
use super::problems::{Findings, Problems};
use super::shelf::{ContentHash, RuleFiles, Shelf};
use super::{RuleSet, emptied};
use crate::domain::UnixMillis;

/// How rules are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Whether secrets are fetched from the environment and from files. Without it such secrets stand for nothing that
    /// anybody knows: good for checking rules on a machine that must not have the secrets, and for nothing else.
    pub check_secrets: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { check_secrets: true }
    }
}

/// Loads a rules directory once (contract section 2). Reads files and may block.
///
/// Rate limiters keep what was used of them in `previous`, for keys whose quota stayed as it was. Files that held text in
/// `previous` may not be empty now.
///
/// # Errors
/// Everything that is wrong with the files.
pub fn load(
    directory: &Path,
    now: UnixMillis,
    previous: Option<&RuleSet>,
    options: LoadOptions,
) -> Result<RuleSet, Problems> {
    Loader::new(directory, options).load(now, previous)
}

/// Compiles files that are compiled no second time.
pub(super) fn compile_once(
    directory: &Path,
    files: &RuleFiles,
    now: UnixMillis,
    options: LoadOptions,
    findings: &mut Findings,
) -> Option<RuleSet> {
    let task = Task { directory, files, now, previous: None, check_secrets: options.check_secrets };
    compile(&task, Memo::default(), &mut Elsewhere::default(), findings).0
}

/// A set that nothing refuses, with what was found beside that.
pub(super) fn whole(directory: &Path, rules: Option<RuleSet>, findings: Findings) -> Result<RuleSet, Problems> {
    let warnings = findings.into_problems()?;
    rules.map(|rules| RuleSet { warnings, ..rules }).ok_or_else(|| unexplained(directory))
}

fn unexplained(directory: &Path) -> Problems {
    let mut findings = Findings::default();
    findings.add_unreadable(directory, "the rules could not be compiled");
    findings.into_problems().expect_err("a problem was just added")
}

/// Loads a rules directory again and again: only what changed is read and compiled.
pub struct Loader {
    directory: PathBuf,
    options: LoadOptions,
    shelf: Shelf,
    elsewhere: Elsewhere,
    memo: Memo,
}

impl Loader {
    /// Knows the directory, and has read nothing of it.
    #[must_use]
    pub fn new(directory: &Path, options: LoadOptions) -> Self {
        Self {
            directory: directory.into(),
            options,
            shelf: Shelf::default(),
            elsewhere: Elsewhere::default(),
            memo: Memo::default(),
        }
    }

    /// The rules directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Loads the rules as they are now. `previous` is the set in force: see [`load`].
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn load(&mut self, now: UnixMillis, previous: Option<&RuleSet>) -> Result<RuleSet, Problems> {
        let mut findings = Findings::default();
        self.elsewhere.begin(now);
        let files = self.shelf.read(&self.directory, now, &mut findings);
        emptied::refuse(previous, files, &mut findings);
        let filled = emptied::filled(files);
        let (directory, check_secrets) = (self.directory.as_path(), self.options.check_secrets);
        let task = Task { directory, files, now, previous, check_secrets };
        let before = std::mem::take(&mut self.memo);
        let (rules, memo) = compile(&task, before, &mut self.elsewhere, &mut findings);
        self.memo = memo;
        let rules = whole(&self.directory, rules, findings)?;
        Ok(RuleSet { filled, ..rules })
    }

    /// Whether what was read last, good or wrong, is not what is there at `now`: told from names, sizes and times.
    pub fn is_stale(&mut self, now: UnixMillis) -> bool {
        self.shelf.is_stale(&self.directory, now) || self.elsewhere.is_stale(now)
    }

    /// Takes note of a file that the rules name, that was missing when they were loaded, and that the process itself has
    /// made since: that is no change of the rules. Reads it, and may block.
    pub fn made(&mut self, path: &Path, now: UnixMillis) {
        self.elsewhere.made(path, now);
    }

    /// What the files elsewhere held when they were last read, secrets too: for comparison in memory alone.
    pub(super) fn hash_elsewhere(&self) -> ContentHash {
        self.elsewhere.hash()
    }

    /// The files outside the directory that were looked for when it was last read: secrets, trusted certificates.
    #[must_use]
    pub fn files_elsewhere(&self) -> Vec<PathBuf> {
        self.elsewhere.paths()
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("directory", &self.directory).finish_non_exhaustive()
    }
}
