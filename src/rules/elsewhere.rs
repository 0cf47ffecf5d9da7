//! Files outside the rules directory that rules name: secrets, and certificates that are trusted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest, Sha256};

use super::files::{ContentHash, content_hash, read_bounded};
use super::stamp::FileMeta;
use crate::domain::wide;

/// The largest file, in bytes. What needs less says so when it reads.
pub(super) const LARGEST_ELSEWHERE: u64 = 4 << 20;

/// A file as it was found.
#[derive(Debug)]
struct Found {
    /// From before it was read; `None`: it was not there.
    stamp: Option<FileMeta>,
    /// `None`: it could not be read.
    hash: Option<ContentHash>,
    content: ExternalContent,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExternalContent {
    /// Nobody may learn anything of it.
    Secret,
    /// Certificates: part of the version of the rules.
    Public,
}

/// The files elsewhere that one load asked for.
#[derive(Debug, Default)]
pub(super) struct ExternalFiles {
    found: BTreeMap<PathBuf, Found>,
    /// Of files that were read for them, each once.
    certificates: BTreeMap<PathBuf, Result<Certificates, String>>,
}

/// The certificates of a file.
pub(super) type Certificates = Arc<[CertificateDer<'static>]>;

impl ExternalFiles {
    /// Reads a file of at most `most` bytes.
    ///
    /// # Errors
    /// It cannot be read, or is larger.
    pub(super) fn read(&mut self, path: &Path, content: ExternalContent, most: u64) -> io::Result<Vec<u8>> {
        let stamp = FileMeta::at(path);
        let bytes = read_bounded(path, most);
        let hash = bytes.as_ref().ok().map(|bytes| content_hash(bytes));
        self.found.insert(path.to_owned(), Found { stamp, hash, content });
        bytes
    }

    /// Reads a PEM file of certificates that something is to be trusted by.
    ///
    /// # Errors
    /// It cannot be read or holds none, or one that cannot be used.
    pub(super) fn certificates(&mut self, path: &Path) -> Result<Certificates, String> {
        if let Some(known) = self.certificates.get(path) {
            return known.clone();
        }
        let read = self.read(path, ExternalContent::Public, LARGEST_ELSEWHERE);
        let shown = path.display();
        let read = read.map_err(|error| format!("{shown} cannot be read: {error}")).and_then(|bytes| {
            let usable =
                |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
            match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
                Ok(none) if none.is_empty() => Err(format!("{shown} holds no PEM certificate")),
                Ok(all) if all.iter().all(usable) => Ok(all.into()),
                _ => Err(format!("{shown} holds a certificate that cannot be read")),
            }
        });
        self.certificates.entry(path.to_owned()).or_insert(read).clone()
    }

    /// Takes note of a file that is not there and need not be, so that it is noticed when it comes.
    pub(super) fn missing(&mut self, path: &Path, content: ExternalContent) {
        self.found.insert(path.to_owned(), Found { stamp: None, hash: None, content });
    }

    /// Takes note of what this process itself has put where a file was missing: that is no change.
    pub(super) fn made(&mut self, path: &Path) {
        if let Some(found) = self.found.get_mut(path) {
            found.stamp = FileMeta::at(path);
            found.hash = read_hash(path);
        }
    }

    /// Returns the hashes of what is no secret, in the order of the paths.
    pub(super) fn public(&self) -> impl Iterator<Item = ContentHash> {
        self.found.values().filter(|found| found.content == ExternalContent::Public).filter_map(|found| found.hash)
    }

    /// Returns where the files are, or should be.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.found.keys().cloned().collect()
    }

    /// Returns the files that were read, with their stamps and hashes.
    pub(super) fn read_files(&self) -> impl Iterator<Item = (&Path, FileMeta, ContentHash)> {
        self.found.iter().filter_map(|(path, found)| Some((path.as_path(), found.stamp?, found.hash?)))
    }

    /// Returns a hash of what all files hold. It may be told from secrets: it is for comparison in memory, and for nothing
    /// else.
    pub(super) fn hash(&self) -> ContentHash {
        let mut hash = Sha256::new();
        for (path, found) in &self.found {
            hash.update(wide(path.as_os_str().len()).to_be_bytes());
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(found.hash.unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// Whether every file has the stamp that it was read with.
    pub(super) fn stamps_hold(&self) -> bool {
        self.found.iter().all(|(path, found)| found.stamp == FileMeta::at(path))
    }
}

/// Returns the hash of what a file holds; `None`: it cannot be read.
pub(super) fn read_hash(path: &Path) -> Option<ContentHash> {
    read_bounded(path, LARGEST_ELSEWHERE).ok().map(|bytes| content_hash(&bytes))
}
