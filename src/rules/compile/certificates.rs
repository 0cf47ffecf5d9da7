//! Files of certificates that rules name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use toml::Spanned;

use super::{Context, Here};
use crate::rules::elsewhere::{Content, Elsewhere, LARGEST_ELSEWHERE};

/// The files of certificates that shops' providers, the engine and callback targets are trusted by, each read once for one rule set.
#[derive(Default)]
pub(super) struct Trusted(BTreeMap<PathBuf, Result<Arc<[CertificateDer<'static>]>, String>>);

impl Trusted {
    fn read(&mut self, path: PathBuf, elsewhere: &mut Elsewhere) -> Result<Arc<[CertificateDer<'static>]>, String> {
        if let Some(known) = self.0.get(&path) {
            return known.clone();
        }
        let read = read(&path, elsewhere);
        self.0.entry(path).or_insert(read).clone()
    }
}

fn read(path: &Path, elsewhere: &mut Elsewhere) -> Result<Arc<[CertificateDer<'static>]>, String> {
    let bytes = elsewhere.read(path, Content::Public, LARGEST_ELSEWHERE);
    let bytes = bytes.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let usable = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(format!("{} holds no PEM certificate", path.display())),
        Ok(certificates) if certificates.iter().all(usable) => Ok(certificates.into()),
        _ => Err(format!("{} holds a certificate that cannot be read", path.display())),
    }
}

impl Context<'_> {
    /// The certificates of all files of a list. The authority that the start is about to make may be missing, and is looked
    /// for again by the next reading; where secrets are not asked for, every such file may be.
    pub(super) fn trusted_certificates<'p>(
        &mut self,
        here: Here<'_>,
        key: &str,
        list: impl IntoIterator<Item = &'p Spanned<String>>,
        made: Option<&Path>,
    ) -> Arc<[CertificateDer<'static>]> {
        let mut all = Vec::new();
        for path in list {
            let resolved = here.relative(path.get_ref());
            if (!self.check_secrets || made == Some(&*resolved)) && !resolved.exists() {
                self.elsewhere.missing(&resolved, Content::Public);
                continue;
            }
            match self.trusted.read(resolved, self.elsewhere) {
                Ok(certificates) => all.extend(certificates.iter().cloned()),
                Err(reason) => self.problem(here, path.span(), format!("`{key}`: {reason}")),
            }
        }
        all.into()
    }
}
