//! Files of certificates that rules name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use toml::Spanned;

use super::{Context, Here};
use crate::rules::files::read_bounded;
use crate::rules::problems::Span;
use crate::rules::raw::{Field, List};

/// The largest file of certificates, in bytes.
const LARGEST_PEM: u64 = 4 << 20;

/// The files whose certificates shops' providers and the engine are trusted by, each read once for one rule set.
#[derive(Default)]
pub(super) struct Trusted(BTreeMap<PathBuf, Result<Read, String>>);

/// The content of a file.
#[derive(Clone)]
struct Read {
    certificates: Arc<[CertificateDer<'static>]>,
    digest: [u8; 32],
}

impl Trusted {
    /// What tells each file's content apart, in the order of their paths.
    pub(super) fn digests(&self) -> impl Iterator<Item = [u8; 32]> {
        self.0.values().filter_map(|read| read.as_ref().ok()).map(|read| read.digest)
    }

    /// Where the files are.
    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        self.0.into_keys().collect()
    }

    fn read(&mut self, path: PathBuf) -> Result<Arc<[CertificateDer<'static>]>, String> {
        let read = self.0.entry(path).or_insert_with_key(|path| read(path));
        read.as_ref().map(|read| Arc::clone(&read.certificates)).map_err(String::clone)
    }
}

fn read(path: &Path) -> Result<Read, String> {
    let bytes =
        read_bounded(path, LARGEST_PEM).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let usable = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(format!("{} holds no PEM certificate", path.display())),
        Ok(certificates) if certificates.iter().all(usable) => {
            Ok(Read { certificates: certificates.into(), digest: Sha256::digest(&bytes).into() })
        }
        _ => Err(format!("{} holds a certificate that cannot be read", path.display())),
    }
}

impl Context<'_> {
    /// A file of certificates must be there and hold one, but for the authority that the start is about to make. Where
    /// secrets are not asked for, neither are certificates.
    pub(super) fn certificates(&mut self, here: Here<'_>, key: &str, span: Span, path: &Path, made: Option<&Path>) {
        if !self.check_secrets || (made == Some(path) && !path.exists()) {
            return;
        }
        let reason = match read_bounded(path, LARGEST_PEM) {
            Err(error) => format!("{} cannot be read: {error}", path.display()),
            Ok(bytes) if CertificateDer::pem_slice_iter(&bytes).next().is_none_or(|first| first.is_err()) => {
                format!("{} holds no PEM certificate", path.display())
            }
            Ok(_) => return,
        };
        self.problem(here, span, format!("`{key}`: {reason}"));
    }

    /// The certificates of all files of a list. Where secrets are not asked for, neither are these.
    pub(super) fn trusted_certificates(
        &mut self,
        here: Here<'_>,
        key: &str,
        list: &Field<List<String>>,
    ) -> Arc<[CertificateDer<'static>]> {
        let named: &[Spanned<String>] = match list.get() {
            Some(list) if self.check_secrets => &list.0,
            _ => &[],
        };
        let mut all = Vec::new();
        for path in named {
            match self.trusted.read(here.relative(path.get_ref())) {
                Ok(certificates) => all.extend(certificates.iter().cloned()),
                Err(reason) => self.problem(here, path.span(), format!("`{key}`: {reason}")),
            }
        }
        all.into()
    }
}
