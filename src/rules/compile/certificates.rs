//! Loads the certificate files that rules name.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use toml::Spanned;

use super::{Context, FileContext};
use crate::rules::external_files::ExternalContent;

impl Context<'_> {
    /// Returns the certificates of all files of a list. The CA file `generated_ca`, which the process generates at start, may
    /// be missing; it is read again by the next load. Without `check_secrets`, every file may be missing.
    pub(super) fn trusted_certificates<'p>(
        &mut self,
        context: FileContext<'_>,
        key: &str,
        list: impl IntoIterator<Item = &'p Spanned<String>>,
        generated_ca: Option<&Path>,
    ) -> Arc<[CertificateDer<'static>]> {
        let mut all = Vec::new();
        for path in list {
            let resolved = context.relative(path.get_ref());
            if (!self.check_secrets || generated_ca == Some(&*resolved)) && !resolved.exists() {
                self.external.missing(&resolved, ExternalContent::Public);
                continue;
            }
            match self.external.certificates(&resolved) {
                Ok(certificates) => all.extend(certificates.iter().cloned()),
                Err(reason) => self.problem(context, path.span(), format!("`{key}`: {reason}")),
            }
        }
        all.into()
    }
}
