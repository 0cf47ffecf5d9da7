//! Files outside the rules directory that rules name: secrets, and certificates that are trusted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::{ContentHash, content_hash, read_bounded};
use super::stamp::Stamp;

/// The largest file, in bytes. What needs less says so when it reads.
pub(super) const LARGEST_ELSEWHERE: u64 = 4 << 20;

/// A file as it was found.
#[derive(Debug)]
struct Found {
    /// From before it was read; `None`: it was not there.
    stamp: Option<Stamp>,
    /// `None`: it could not be read.
    hash: Option<ContentHash>,
    content: Content,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nobody may learn anything of it.
    Secret,
    /// Certificates: part of the version of the rules.
    Public,
}

/// The files elsewhere that one load asked for.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(BTreeMap<PathBuf, Found>);

impl Elsewhere {
    /// Reads a file of at most `most` bytes.
    ///
    /// # Errors
    /// It cannot be read, or is larger.
    pub fn read(&mut self, path: &Path, content: Content, most: u64) -> io::Result<Vec<u8>> {
        let stamp = Stamp::at(path);
        let bytes = read_bounded(path, most);
        let hash = bytes.as_ref().ok().map(|bytes| content_hash(bytes));
        self.0.insert(path.to_owned(), Found { stamp, hash, content });
        bytes
    }

    /// Takes note of a file that is not there and need not be, so that it is noticed when it comes.
    pub fn missing(&mut self, path: &Path, content: Content) {
        self.0.insert(path.to_owned(), Found { stamp: None, hash: None, content });
    }

    /// Takes note of what this process itself has put where a file was missing: that is no change.
    pub fn made(&mut self, path: &Path) {
        if let Some(found) = self.0.get_mut(path) {
            found.stamp = Stamp::at(path);
            found.hash = read_hash(path);
        }
    }

    /// Returns the hashes of what is no secret, in the order of the paths.
    pub fn public(&self) -> impl Iterator<Item = ContentHash> {
        self.0.values().filter(|found| found.content == Content::Public).filter_map(|found| found.hash)
    }

    /// Returns where the files are, or should be.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.keys().cloned().collect()
    }

    /// Returns the files that were read, with their stamps and hashes.
    pub fn read_files(&self) -> impl Iterator<Item = (&Path, Stamp, ContentHash)> {
        self.0.iter().filter_map(|(path, found)| Some((path.as_path(), found.stamp?, found.hash?)))
    }

    /// Returns a hash of what all files hold. It may be told from secrets: it is for comparison in memory, and for nothing
    /// else.
    pub fn hash(&self) -> ContentHash {
        let mut hash = Sha256::new();
        for (path, found) in &self.0 {
            hash.update((path.as_os_str().len() as u64).to_be_bytes());
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(found.hash.unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// Whether every file has the stamp that it was read with.
    pub fn stamps_hold(&self) -> bool {
        self.0.iter().all(|(path, found)| found.stamp == Stamp::at(path))
    }
}

/// Returns the hash of what a file holds; `None`: it cannot be read.
pub(super) fn read_hash(path: &Path) -> Option<ContentHash> {
    read_bounded(path, LARGEST_ELSEWHERE).ok().map(|bytes| content_hash(&bytes))
}
