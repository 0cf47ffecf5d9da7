//! Loads a rules directory into a rule set, all or nothing.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::RuleSet;
use super::compile::{FileSettings, Task, compile};
use super::external_files::{ExternalFiles, read_hash};
use super::file_meta::FileMeta;
use super::files::{self, ContentHash, FileListing, FileRole, RuleFile, RuleFiles};
use super::problems::{Diagnostics, Problems};
use crate::domain::UnixMillis;

/// The problem of a file that a reload finds empty and that was not before.
const EMPTIED: &str = "the file is empty and was not before: if all defaults are intended, put a comment in it";

/// How rules are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Whether secrets are read from the environment and from files. Otherwise each of these secrets is replaced by a
    /// placeholder; use this only to check rules on a machine that must not have the secrets.
    pub check_secrets: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { check_secrets: true }
    }
}

/// Loads a rules directory once (contract section 2). Reads files and may block.
///
/// Rate limiters keep their state from `previous` for keys whose quota did not change. Files that held text in
/// `previous` must not be empty now.
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

/// Compiles the files of a single load, without a previous rule set. Adds the settings of each file to `settings`.
pub(super) fn compile_once(
    directory: &Path,
    files: &RuleFiles,
    now: UnixMillis,
    options: LoadOptions,
    settings: Option<&mut FileSettings>,
    diagnostics: &mut Diagnostics,
) -> Option<RuleSet> {
    let task = Task { directory, files, now, previous: None, check_secrets: options.check_secrets };
    compile(&task, &mut ExternalFiles::default(), settings, diagnostics)
}

/// Returns the rule set with its warnings, or all problems when one of them is an error.
pub(super) fn finish(directory: &Path, rules: Option<RuleSet>, diagnostics: Diagnostics) -> Result<RuleSet, Problems> {
    let warnings = diagnostics.into_problems()?;
    rules.map(|rules| RuleSet { warnings, ..rules }).ok_or_else(|| unexplained(directory))
}

fn unexplained(directory: &Path) -> Problems {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_unreadable(directory, "the rules could not be compiled");
    diagnostics.into_problems().expect_err("a problem was just added")
}

/// Returns the paths of the non-empty files that may be empty.
fn filled(files: &RuleFiles) -> HashSet<Arc<Path>> {
    let filled = files.iter().filter(|(role, file)| may_be_empty(role) && !is_empty(file));
    filled.map(|(_, file)| Arc::clone(&file.path)).collect()
}

/// Reports every file that held text in the rules in force and is empty now. While the process runs that is far more
/// often half a save than intended, since editors and scripts truncate a file and write it a moment later. At start an
/// empty file is accepted. Files that are useless when empty (a merchant without a key, a list without values) are
/// always rejected, elsewhere.
fn refuse_emptied(previous: Option<&RuleSet>, files: &RuleFiles, diagnostics: &mut Diagnostics) {
    let Some(previous) = previous else { return };
    for (role, file) in files {
        if may_be_empty(role) && is_empty(file) && previous.filled.contains(&file.path) {
            let id = diagnostics.file(&file.path, Arc::clone(&file.text));
            diagnostics.add(id, 0..0, EMPTIED);
        }
    }
}

/// Reports whether an empty file of this role means all defaults.
const fn may_be_empty(role: &FileRole) -> bool {
    matches!(role, FileRole::Gateway | FileRole::Dialect(_) | FileRole::PageTexts(_))
}

fn is_empty(file: &RuleFile) -> bool {
    file.text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// The files of the rules at one moment, as their names and metadata show them.
#[derive(Debug, PartialEq, Eq)]
pub struct FilesSeen {
    listing: FileListing,
    external: Vec<Option<FileMeta>>,
    is_any_missing: bool,
}

impl FilesSeen {
    /// Reports whether a rule file that was loaded is missing.
    #[must_use]
    pub const fn is_any_missing(&self) -> bool {
        self.is_any_missing
    }
}

/// Loads a rules directory repeatedly, and detects whether its files changed since the last load.
pub struct Loader {
    directory: PathBuf,
    options: LoadOptions,
    /// The rule files and external files as the last load found them.
    listed: FileListing,
    external: ExternalFiles,
    /// The files changed so shortly before that load that their stamps would not show another change.
    unproven: Vec<(PathBuf, FileMeta, ContentHash)>,
}

impl Loader {
    /// Creates a loader that has read nothing yet.
    #[must_use]
    pub fn new(directory: &Path, options: LoadOptions) -> Self {
        let (listed, external) = (FileListing::default(), ExternalFiles::default());
        Self { directory: directory.into(), options, listed, external, unproven: Vec::new() }
    }

    /// The rules directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Loads the current files. `previous` is the set in force: see [`load`].
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn load(&mut self, now: UnixMillis, previous: Option<&RuleSet>) -> Result<RuleSet, Problems> {
        let (mut diagnostics, mut external) = (Diagnostics::default(), ExternalFiles::default());
        let (files, listed) = files::read(&self.directory, &mut diagnostics);
        refuse_emptied(previous, &files, &mut diagnostics);
        let (directory, check_secrets) = (self.directory.as_path(), self.options.check_secrets);
        let task = Task { directory, files: &files, now, previous, check_secrets };
        // Noted first: files that make the compiler panic are not read again until a rule file changes.
        (self.listed, self.external, self.unproven) = (listed, ExternalFiles::default(), Vec::new());
        let rules = compile(&task, &mut external, None, &mut diagnostics);
        let rules = finish(&self.directory, rules, diagnostics);
        // The listener's files are read after the rules, whether these or the previous ones are in force then.
        if let Some(in_force) = rules.as_ref().ok().or(previous) {
            in_force.gateway.tls.files().for_each(|path| external.read_later(path.clone()));
        }
        self.external = external;
        self.unproven = self.unproven(&files, now);
        rules.map(|rules| RuleSet { filled: filled(&files), ..rules })
    }

    fn unproven(&self, files: &RuleFiles, now: UnixMillis) -> Vec<(PathBuf, FileMeta, ContentHash)> {
        let files = files.iter().filter_map(|(role, file)| Some((&*file.path, self.listed.stamp(role)?, file.hash)));
        let fresh = files.chain(self.external.read_files()).filter(|(_, stamp, _)| stamp.may_hide_a_change(now));
        fresh.map(|(path, stamp, hash)| (path.to_owned(), stamp, hash)).collect()
    }

    /// Returns the files as they are now, if they changed since they were last read, with or without errors. Compares
    /// names, sizes and times; only files that had just been changed when they were read are read again.
    pub fn changes(&mut self, now: UnixMillis) -> Option<FilesSeen> {
        let (listing, external) = (FileListing::of(&self.directory), self.external.current_stamps());
        let is_unchanged = listing == self.listed
            && self.external.stamps().eq(external.iter().copied())
            && self.unproven.iter().all(|(path, _, hash)| read_hash(path) == Some(*hash));
        if is_unchanged {
            self.unproven.retain(|(_, stamp, _)| stamp.may_hide_a_change(now));
            return None;
        }
        let is_any_missing = listing.lacks_any_of(&self.listed);
        Some(FilesSeen { listing, external, is_any_missing })
    }

    /// Returns the directories in which the system reports changes of the files: those of rule files and of external
    /// files, and the one that the rules directory itself is in.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        // A relative path may have no parent.
        let directory = std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let mut directories = self.listed.directories(&self.directory);
        directories.extend(directory.parent().map(Path::to_owned));
        directories.extend(self.external_files().iter().filter_map(|path| path.parent().map(Path::to_owned)));
        directories
    }

    /// Records that this process itself created a file that the rules name and that was missing when they were loaded,
    /// which therefore is no change. Reads the file and may block.
    pub fn made(&mut self, path: &Path) {
        self.external.made(path);
    }

    /// Returns a hash over the contents of the external files, secrets included, when they were last read: only for
    /// comparison in memory.
    pub(super) fn external_hash(&self) -> ContentHash {
        self.external.hash()
    }

    /// Returns the paths of the external files (secrets, trusted certificates) that the last load read or looked for.
    #[must_use]
    pub fn external_files(&self) -> Vec<PathBuf> {
        self.external.paths()
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("directory", &self.directory).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_had_just_been_changed_is_read_again_until_its_stamp_proves_something() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("gateway.toml"), "").unwrap();
        let (soon, late) = (UnixMillis(0), UnixMillis(4_000_000_000_000));
        let mut loader = Loader::new(directory.path(), LoadOptions::default());
        loader.load(soon, None).unwrap();
        let [(_, _, hash)] = &mut loader.unproven[..] else { panic!("one file was just written") };
        let before = std::mem::take(hash);
        assert!(loader.changes(late).is_some(), "it was read, and holds something else");
        loader.unproven[0].2 = before;
        assert!(loader.changes(soon).is_none() && loader.unproven.len() == 1, "it may change once more");
        assert!(loader.changes(late).is_none() && loader.unproven.is_empty(), "it was read when its stamp was settled");
        loader.load(late, None).unwrap();
        assert!(loader.unproven.is_empty());
    }
}
