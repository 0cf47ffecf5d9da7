//! Files of certificates that rules name.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use toml::Spanned;

use super::{Context, FileContext};
use crate::rules::elsewhere::ExternalContent;

impl Context<'_> {
    /// The certificates of all files of a list. The authority that the start is about to make may be missing, and is looked
    /// for again by the next reading; where secrets are not asked for, every such file may be.
    pub(super) fn trusted_certificates<'p>(
        &mut self,
        here: FileContext<'_>,
        key: &str,
        list: impl IntoIterator<Item = &'p Spanned<String>>,
        made: Option<&Path>,
    ) -> Arc<[CertificateDer<'static>]> {
        let mut all = Vec::new();
        for path in list {
            let resolved = here.relative(path.get_ref());
            if (!self.check_secrets || made == Some(&*resolved)) && !resolved.exists() {
                self.elsewhere.missing(&resolved, ExternalContent::Public);
                continue;
            }
            match self.elsewhere.certificates(&resolved) {
                Ok(certificates) => all.extend(certificates.iter().cloned()),
                Err(reason) => self.problem(here, path.span(), format!("`{key}`: {reason}")),
            }
        }
        all.into()
    }
}
