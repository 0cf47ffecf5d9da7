//! The rule files as they were last read: what did not change is not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::files::{Listing, Note, Role, listing, text};
use super::problems::Findings;
use super::stamp::{ReadStamp, Stamp};
use crate::domain::UnixMillis;

/// How often reading starts again because files changed meanwhile.
const READINGS: usize = 4;

/// What tells a file's content apart: its SHA-256.
pub(super) type ContentHash = [u8; 32];

/// The hash of a content.
pub(super) fn content_hash(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}

/// A rule file's place and content.
#[derive(Debug, Clone)]
pub(super) struct RuleFile {
    /// Below the rules directory as the caller named it.
    pub path: Arc<Path>,
    /// The text; files that could not be read are not here.
    pub text: Arc<str>,
    /// Of the text.
    pub hash: ContentHash,
    stamp: ReadStamp,
}

impl RuleFile {
    fn read(path: &Arc<Path>, stamp: Stamp, now: UnixMillis) -> Result<Self, Note> {
        let text = text(path)?;
        let (hash, stamp) = (content_hash(text.as_bytes()), ReadStamp::new(Some(stamp), now));
        Ok(Self { path: Arc::clone(path), text: text.into(), hash, stamp })
    }

    fn is_still(&self, path: &Path, stamp: Stamp) -> bool {
        self.stamp.proves(Some(stamp)) && *self.path == *path
    }
}

/// All rule files that could be read.
pub(super) type RuleFiles = BTreeMap<Role, RuleFile>;

/// The rule files, and what they were told apart by when they were last read.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    files: RuleFiles,
    listing: Listing,
    noted: Vec<Note>,
}

impl Shelf {
    /// Reads a rules directory: what is new, and what has another stamp than before. Files that come, go or change while
    /// they are being read make it start again, so that what is returned was all there at one moment. `now` is when that
    /// begins.
    pub fn read(&mut self, directory: &Path, now: UnixMillis, findings: &mut Findings) -> &RuleFiles {
        for reading in 1.. {
            let mut noted = Vec::new();
            let names = self.directories(directory);
            let listed = listing(directory, &mut noted);
            let (unreadable, read) = self.take(&listed, now);
            let settled = read.iter().all(|(path, stamp)| Stamp::at(path) == Some(*stamp))
                && names.iter().all(|(path, stamp)| Stamp::at(path) == *stamp);
            (self.listing, self.noted) = (listed, noted);
            if settled || reading == READINGS {
                for Note { path, before, message } in self.noted.iter().chain(&unreadable) {
                    let file = findings.file(path, before.as_str());
                    findings.distrust(file);
                    findings.add(file, before.len()..before.len(), message);
                }
                break;
            }
        }
        &self.files
    }

    /// The directories that have files in them, with their stamps: these change with every name.
    fn directories(&self, directory: &Path) -> Vec<(PathBuf, Option<Stamp>)> {
        let known = ["", "dialects", "lists", "merchants", "pages", "shops"].map(|name| directory.join(name));
        let found = self.listing.values().filter_map(|(path, _)| path.parent()).map(Path::to_owned);
        let all: BTreeSet<PathBuf> = known.into_iter().chain(found).collect();
        let stamped = |path: PathBuf| {
            let stamp = Stamp::at(&path);
            (path, stamp)
        };
        all.into_iter().map(stamped).collect()
    }

    /// Takes over what is listed. Returns what is wrong with files that cannot be read, and what was read.
    fn take(&mut self, listing: &Listing, now: UnixMillis) -> (Vec<Note>, Vec<(Arc<Path>, Stamp)>) {
        let (mut unreadable, mut read) = (Vec::new(), Vec::new());
        let mut before = std::mem::take(&mut self.files);
        for (role, (path, stamp)) in listing {
            if let Some(known) = before.remove(role).filter(|known| known.is_still(path, *stamp)) {
                self.files.insert(role.clone(), known);
                continue;
            }
            read.push((Arc::clone(path), *stamp));
            match RuleFile::read(path, *stamp, now) {
                Ok(file) => drop(self.files.insert(role.clone(), file)),
                Err(note) => unreadable.push(note),
            }
        }
        (unreadable, read)
    }

    /// Whether the files are others than those that were last read. Only those that had just been changed then are read.
    pub fn is_stale(&mut self, directory: &Path, now: UnixMillis) -> bool {
        let mut noted = Vec::new();
        if listing(directory, &mut noted) != self.listing || noted != self.noted {
            return true;
        }
        // Their names are listed, with the same stamps: when one cannot be read now, that passes.
        self.files.values_mut().any(|RuleFile { path, text: read, stamp, .. }| {
            !stamp.still_holds(now, || text(path).map_or(true, |text| *text == **read))
        })
    }
}

/// A hash over all file names and contents, and over what is known of files elsewhere; 16 hexadecimal digits.
pub(super) fn version(directory: &Path, files: &RuleFiles, elsewhere: impl Iterator<Item = ContentHash>) -> Box<str> {
    let mut hash = Sha256::new();
    for file in files.values() {
        let name = file.path.strip_prefix(directory).unwrap_or(&file.path).as_os_str().as_encoded_bytes();
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update(file.hash);
    }
    for content in elsewhere {
        hash.update(content);
    }
    let digest = hash.finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}").into()
}
