//! Files outside the rules directory that rules name: secrets, and certificates that are trusted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::read_bounded;
use super::shelf::{ContentHash, content_hash};
use super::stamp::{ReadStamp, Stamp};
use crate::domain::UnixMillis;

/// The largest file, in bytes. What needs less says so when it reads.
pub(super) const LARGEST_ELSEWHERE: u64 = 4 << 20;

/// A file as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    stamp: ReadStamp,
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

/// A file that something was made from, and what it held.
#[derive(Debug, Clone)]
pub(super) struct Used {
    path: PathBuf,
    hash: ContentHash,
    content: Content,
}

/// What was found elsewhere in the last reading, and in the one under way.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    before: BTreeMap<PathBuf, Found>,
    now: BTreeMap<PathBuf, Found>,
    /// What was read since [`Self::uses`] was last asked.
    used: Vec<Used>,
    started: UnixMillis,
}

impl Elsewhere {
    /// A reading begins.
    pub fn begin(&mut self, now: UnixMillis) {
        self.before = std::mem::take(&mut self.now);
        self.used.clear();
        self.started = now;
    }

    /// Reads a file of at most `most` bytes.
    ///
    /// # Errors
    /// It cannot be read, or is larger.
    pub fn read(&mut self, path: &Path, content: Content, most: u64) -> io::Result<Vec<u8>> {
        let stamp = Stamp::at(path);
        let bytes = read_bounded(path, most);
        let hash = bytes.as_ref().ok().map(|bytes| content_hash(bytes));
        self.note(path, content, stamp, hash);
        self.use_again(path);
        bytes
    }

    /// Takes note of a file that is not there and need not be, so that it is noticed when it comes.
    pub fn missing(&mut self, path: &Path, content: Content) {
        self.note(path, content, None, None);
    }

    /// Says that what was read of a file in this reading is used once more.
    pub fn use_again(&mut self, path: &Path) {
        let Some(Found { hash: Some(hash), content, .. }) = self.now.get(path).copied() else { return };
        self.used.push(Used { path: path.to_owned(), hash, content });
    }

    fn note(&mut self, path: &Path, content: Content, stamp: Option<Stamp>, hash: Option<ContentHash>) {
        let stamp = ReadStamp::new(stamp, self.started);
        self.now.insert(path.to_owned(), Found { stamp, hash, content });
    }

    /// Takes note of what this process itself has put where a file was missing: that is no change.
    pub fn made(&mut self, path: &Path, now: UnixMillis) {
        if let Some(found) = self.now.get_mut(path) {
            found.stamp = ReadStamp::new(Stamp::at(path), now);
            found.hash = content(path);
        }
    }

    /// What was read since this was last asked.
    pub fn uses(&mut self) -> Vec<Used> {
        std::mem::take(&mut self.used)
    }

    /// Whether files still hold what something was made from. Those whose stamps say so are not read.
    pub fn unchanged(&mut self, used: &[Used]) -> bool {
        used.iter().all(|used| self.current(&used.path, used.content) == Some(used.hash))
    }

    fn current(&mut self, path: &Path, holds: Content) -> Option<ContentHash> {
        if let Some(found) = self.now.get(path) {
            return found.hash;
        }
        let stamp = Stamp::at(path);
        let hash = match self.before.get(path) {
            Some(before) if before.stamp.proves(stamp) => before.hash,
            _ => content(path),
        };
        self.note(path, holds, stamp, hash);
        hash
    }

    /// What the files hold that are no secret, in the order of their paths.
    pub fn public(&self) -> impl Iterator<Item = ContentHash> {
        self.now.values().filter(|found| found.content == Content::Public).filter_map(|found| found.hash)
    }

    /// Where the files of the last reading are, or should be.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.now.keys().cloned().collect()
    }

    /// What all files hold together. It may be told from secrets: it is for comparison in memory, and for nothing else.
    pub fn hash(&self) -> ContentHash {
        let mut hash = Sha256::new();
        for (path, found) in &self.now {
            hash.update((path.as_os_str().len() as u64).to_be_bytes());
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(found.hash.unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// Whether a file is another than the one that was last read. Only those that had just been changed then are read.
    pub fn is_stale(&mut self, now: UnixMillis) -> bool {
        self.now.iter_mut().any(|(path, Found { stamp, hash, .. })| {
            !stamp.is_still(Stamp::at(path)) || !stamp.still_holds(now, || content(path) == *hash)
        })
    }
}

fn content(path: &Path) -> Option<ContentHash> {
    read_bounded(path, LARGEST_ELSEWHERE).ok().map(|bytes| content_hash(&bytes))
}
