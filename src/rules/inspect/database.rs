//! Checks the files that a gateway on PostgreSQL needs at start. Nodes that share a database never generate keys.

use std::io;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::{Inspector, LARGEST_PEM, Reread};
use crate::rules::RuleSet;
use crate::rules::compile::{FileContext, RawGateway};
use crate::rules::files::read_bounded;
use crate::rules::problems::Span;
use crate::rules::secret::store_key;
use crate::store_settings::StoreUrl;
use crate::trust;

/// The largest key file, in bytes.
const LARGEST_KEY: u64 = 64 << 10;

impl Inspector<'_> {
    /// Checks the files that a gateway on PostgreSQL needs at start, if secrets are read.
    pub(super) fn database(&mut self, gateway: &Reread<'_, RawGateway>, rules: &RuleSet) {
        let Reread { context, raw } = gateway;
        let StoreUrl::Postgres(url) = &rules.gateway.store.url else { return };
        let Some(at) = raw.store.url.place().filter(|_| self.options.check_secrets) else { return };
        if let Some(path) = url.roots() {
            self.check_roots(*context, &at, path);
        }
        if let (true, Some(path)) = (rules.gateway.store.keys.keys.is_empty(), &rules.gateway.store.keys.create_at) {
            self.check_shared_key(*context, &at, "store.keys", path);
        }
        if rules.gateway.pages.secret.is_none() {
            self.check_shared_key(*context, &at, "pages.secret", &rules.gateway.pages.default_secret);
        }
    }

    fn check_roots(&mut self, context: FileContext<'_>, at: &Span, path: &Path) {
        let shown = path.display();
        let read = read_bounded(path, LARGEST_PEM).map(|bytes| trust::certificates(&bytes));
        let reason = match read {
            Ok(Ok(certificates)) if certificates.is_empty() => format!("{shown} holds no PEM certificate"),
            Ok(Ok(certificates)) if certificates.iter().all(is_usable) => {
                self.pins(context, at, "sslrootcert", path, &certificates);
                return self.dates(context, at, "sslrootcert", path, &certificates);
            }
            Ok(_) => format!("{shown} holds a certificate that cannot be read"),
            Err(error) => format!("{shown} cannot be read: {error}"),
        };
        self.diagnostics.warn(context.file, at.clone(), format!("`store.url`: sslrootcert: {reason}"), None);
    }

    fn check_shared_key(&mut self, context: FileContext<'_>, at: &Span, key: &str, path: &Path) {
        let shown = path.display();
        let reason = match read_bounded(path, LARGEST_KEY) {
            Ok(text) if store_key(&text).is_some() => return,
            Ok(_) => format!("{shown} does not hold 32 bytes in base64"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("{shown} does not exist, and with PostgreSQL it is not generated")
            }
            Err(error) => format!("{shown} cannot be read: {error}"),
        };
        let advice = "`openssl rand -base64 32` generates one: it must be the same on every node".to_owned();
        self.diagnostics.warn(context.file, at.clone(), format!("`{key}`: {reason}"), Some(advice));
    }
}

fn is_usable(certificate: &CertificateDer<'static>) -> bool {
    RootCertStore::empty().add(certificate.clone()).is_ok()
}
