//! External files: files outside the rules directory that rules name, which hold secrets or trusted certificates.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use super::file_meta::FileMeta;
use super::files::{ContentHash, content_hash, read_bounded};
use crate::domain::wide;
use crate::trust;

/// The largest external file, in bytes. Callers with a lower limit pass it to `read`.
pub(super) const LARGEST_ELSEWHERE: u64 = 4 << 20;

/// The state of a file when it was last read.
#[derive(Debug)]
struct Found {
    /// Its stamp before it was read; `None`: it was missing.
    stamp: Option<FileMeta>,
    /// The hash of its content; `None`: it could not be read.
    hash: Option<ContentHash>,
    content: ExternalContent,
}

/// The kind of content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExternalContent {
    /// A secret, of which nothing may be shown.
    Secret,
    /// Certificates, which are part of the rules' version.
    Public,
}

/// The external files that one load read, or looked for.
#[derive(Debug, Default)]
pub(super) struct ExternalFiles {
    found: BTreeMap<PathBuf, Found>,
    /// The results of reading certificate files, each read once.
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

    /// Reads a PEM file of trusted certificates.
    ///
    /// # Errors
    /// The file cannot be read, holds no certificate, or holds one that cannot be used.
    pub(super) fn certificates(&mut self, path: &Path) -> Result<Certificates, String> {
        if let Some(known) = self.certificates.get(path) {
            return known.clone();
        }
        let read = self.read(path, ExternalContent::Public, LARGEST_ELSEWHERE);
        let shown = path.display();
        let read = read.map_err(|error| format!("{shown} cannot be read: {error}")).and_then(|bytes| {
            let usable =
                |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
            match trust::certificates(&bytes) {
                Ok(none) if none.is_empty() => Err(format!("{shown} holds no PEM certificate")),
                Ok(all) if all.iter().all(usable) => Ok(all.into()),
                _ => Err(format!("{shown} holds a certificate that cannot be read")),
            }
        });
        self.certificates.entry(path.to_owned()).or_insert(read).clone()
    }

    /// Records a file that is missing and may be, so that its appearance is noticed.
    pub(super) fn missing(&mut self, path: &Path, content: ExternalContent) {
        self.found.insert(path.to_owned(), Found { stamp: None, hash: None, content });
    }

    /// Records a file that another part reads later, so that its changes are noticed.
    pub(super) fn read_later(&mut self, path: PathBuf) {
        let found = |path: &PathBuf| Found { stamp: FileMeta::at(path), hash: None, content: ExternalContent::Secret };
        self.found.entry(path).or_insert_with_key(found);
    }

    /// Records that this process itself created a missing file, which therefore is no change.
    pub(super) fn made(&mut self, path: &Path) {
        if let Some(found) = self.found.get_mut(path) {
            found.stamp = FileMeta::at(path);
            found.hash = read_hash(path);
        }
    }

    /// Returns the hashes of the public files, in the order of their paths.
    pub(super) fn public(&self) -> impl Iterator<Item = ContentHash> {
        self.found.values().filter(|found| found.content == ExternalContent::Public).filter_map(|found| found.hash)
    }

    /// Returns the paths of all files, existing or missing.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.found.keys().cloned().collect()
    }

    /// Returns the files that were read, with their stamps and hashes.
    pub(super) fn read_files(&self) -> impl Iterator<Item = (&Path, FileMeta, ContentHash)> {
        self.found.iter().filter_map(|(path, found)| Some((path.as_path(), found.stamp?, found.hash?)))
    }

    /// Returns a hash over the contents of all files that were read. It depends on secrets, so it must stay in memory and
    /// only be compared.
    pub(super) fn hash(&self) -> ContentHash {
        let mut hash = Sha256::new();
        for (path, content) in self.found.iter().filter_map(|(path, found)| Some((path.as_os_str(), found.hash?))) {
            hash.update(wide(path.len()).to_be_bytes());
            hash.update(path.as_encoded_bytes());
            hash.update(content);
        }
        hash.finalize().into()
    }

    /// Returns the stamps that the files had when they were read.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<FileMeta>> {
        self.found.values().map(|found| found.stamp)
    }

    /// Returns the stamps that the files have now, in the same order.
    pub(super) fn current_stamps(&self) -> Vec<Option<FileMeta>> {
        self.found.keys().map(|path| FileMeta::at(path)).collect()
    }
}

/// Returns the hash of a file's content; `None` when it cannot be read.
pub(super) fn read_hash(path: &Path) -> Option<ContentHash> {
    read_bounded(path, LARGEST_ELSEWHERE).ok().map(|bytes| content_hash(&bytes))
}
