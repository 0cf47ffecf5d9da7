//! The checks of `paybridge check` beyond those of a reload: the certificate files that rules name, their dates, and
//! the files that a gateway on PostgreSQL needs at start.
//!
//! All problems found here are warnings: the rules can be loaded with any content of these files.

mod database;

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use toml::Spanned;

use super::compile::{FileContext, RawGateway, RawShop, RawTls};
use super::files::{self, FileRole, RuleFile, RuleFiles, read_bounded};
use super::load::compile_once;
use super::problems::{Diagnostics, FileId, Problem, Span};
use super::raw::{self, FromToml, Key, List, OrVariable};
use super::validity::staleness;
use super::{LoadOptions, RuleSet, TlsRules};
use crate::domain::{UnixMillis, host_of};
use crate::names::did_you_mean;
use crate::trust;

/// The largest file with certificates or a key, in bytes.
const LARGEST_PEM: u64 = 4 << 20;

/// The result of checking a rules directory.
#[derive(Debug)]
pub struct Inspection {
    /// The rules, unless they are rejected.
    pub rules: Option<RuleSet>,
    /// All problems, sorted.
    pub problems: Vec<Problem>,
    /// What operators should know about valid rules, each with its place.
    pub notes: Vec<String>,
}

/// Loads a rules directory and checks the certificates that it names. `serves` checks that a certificate and a key
/// which can both be read can be served together, and returns the reason when they cannot. Reads files and may block.
#[must_use]
pub fn inspect(
    directory: &Path,
    now: UnixMillis,
    options: LoadOptions,
    serves: &dyn Fn(&TlsRules) -> Result<(), String>,
) -> Inspection {
    let mut diagnostics = Diagnostics::default();
    let (files, _) = files::read(directory, &mut diagnostics);
    let rules = compile_once(directory, &files, now, options, None, &mut diagnostics);
    let known = diagnostics.files();
    let mut inspector = Inspector { diagnostics: &mut diagnostics, notes: Vec::new(), known, now, options };
    inspector.run(&files, rules.as_ref(), serves);
    let notes = inspector.notes;
    match diagnostics.into_problems() {
        Ok(problems) => Inspection { rules, problems, notes },
        Err(refused) => Inspection { rules: None, problems: refused.to_vec(), notes },
    }
}

struct Inspector<'a> {
    diagnostics: &'a mut Diagnostics,
    notes: Vec<String>,
    /// The compiled files, by path.
    known: HashMap<PathBuf, FileId>,
    now: UnixMillis,
    options: LoadOptions,
}

/// A rule file parsed a second time, for the positions of its keys.
struct Reread<'f, T> {
    context: FileContext<'f>,
    raw: T,
}

impl Inspector<'_> {
    fn run(&mut self, files: &RuleFiles, rules: Option<&RuleSet>, serves: &dyn Fn(&TlsRules) -> Result<(), String>) {
        for (role, file) in files {
            match role {
                FileRole::Gateway => {
                    if let Some(gateway) = self.reread::<RawGateway>(file) {
                        self.gateway(&gateway, serves);
                        if let Some(rules) = rules {
                            self.database(&gateway, rules);
                        }
                    }
                }
                FileRole::Shop(_) if file.text.contains("trust") => {
                    if let Some(Reread { context, raw }) = self.reread::<RawShop>(file)
                        && let Some(provider) = raw.provider.get()
                    {
                        self.trusted(context, "provider.trust", &provider.trust);
                    }
                }
                FileRole::Dialect(_)
                | FileRole::Schema(_)
                | FileRole::List { .. }
                | FileRole::Shop(_)
                | FileRole::Merchant(_)
                | FileRole::PageTexts(_) => {}
            }
        }
    }

    /// Parses a rule file again. Its problems are dropped: compiling it reported them.
    fn reread<'f, T: FromToml>(&mut self, file: &'f RuleFile) -> Option<Reread<'f, T>> {
        let mut reported = Diagnostics::default();
        let id = reported.file(&file.path, Arc::clone(&file.text));
        let document = raw::parse::<T>(&file.text, id, &mut reported)?;
        let raw = raw::read(&document, id, &mut reported)?;
        let context = FileContext { file: *self.known.get(&*file.path)?, path: &file.path };
        Some(Reread { context, raw })
    }

    fn gateway(&mut self, gateway: &Reread<'_, RawGateway>, serves: &dyn Fn(&TlsRules) -> Result<(), String>) {
        let Reread { context, raw } = gateway;
        let header = raw.tls.place().unwrap_or_default();
        let tls = &*raw.tls;
        // Where the keys are wrong there are no files to check.
        if !raw.tls.is_wrong && !tls.certificate.is_wrong && !tls.key.is_wrong {
            let pair = Pair::of(*context, tls, &header);
            if let Some(chain) = self.pair(*context, &pair, serves) {
                self.dates(*context, &pair.certificate_at, "tls.certificate", &pair.rules.certificate, &chain);
                self.name(*context, &pair, raw, &chain);
            }
        }
        if let Some(path) = tls.client_ca.given() {
            self.authorities(*context, "tls.client_ca", path);
        }
        self.trusted(*context, "engine.trust", &raw.engine.trust);
        if let Some(legacy) = raw.legacy.get() {
            self.trusted(*context, "legacy.trust", &legacy.trust);
        }
        self.trusted(*context, "callbacks.trust", &raw.callbacks.trust);
    }

    /// Returns the certificate chain, and reports when the files cannot be read or do not fit each other.
    fn pair(
        &mut self,
        context: FileContext<'_>,
        pair: &Pair,
        serves: &dyn Fn(&TlsRules) -> Result<(), String>,
    ) -> Option<Vec<CertificateDer<'static>>> {
        let rules = &pair.rules;
        if rules.generate && is_missing(&rules.certificate) && is_missing(&rules.key) {
            return None;
        }
        let chain = self.read_pem(context, "tls.certificate", &pair.certificate_at, &rules.certificate, |bytes| {
            match trust::certificates(bytes) {
                Ok(none) if none.is_empty() => Err("holds no PEM certificate".to_owned()),
                Ok(chain) => Ok(chain),
                // The parser's message may quote the file.
                Err(_) => Err("is not well-formed PEM: it may be cut short".to_owned()),
            }
        });
        let key = |bytes: &[u8]| trust::private_key(bytes).map_err(|error| error.to_string());
        let key = self.read_pem(context, "tls.key", &pair.key_at, &rules.key, key);
        if chain.is_some()
            && key.is_some()
            && let Err(reason) = serves(&TlsRules { client_ca: None, ..rules.clone() })
        {
            self.diagnostics.warn(context.file, pair.key_at.clone(), format!("`tls.key`: {reason}"), None);
        }
        chain
    }

    /// Returns the content of a PEM file, or reports why it cannot be read. A missing file is no problem when secrets
    /// are not checked.
    fn read_pem<T>(
        &mut self,
        context: FileContext<'_>,
        key: &str,
        at: &Span,
        path: &Path,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Option<T> {
        let shown = path.display();
        let missing = is_missing(path);
        if missing && !self.options.check_secrets {
            return None;
        }
        let reason = match read_bounded(path, LARGEST_PEM).map(|bytes| read(&bytes)) {
            Ok(Ok(read)) => return Some(read),
            Err(error) => format!("{shown} cannot be read: {error}"),
            Ok(Err(reason)) => format!("{shown} {reason}"),
        };
        let advice = missing.then(|| {
            "`paybridge certs` makes a pair for development, and so does `serve` with `generate = true` when both files \
             are missing"
                .to_owned()
        });
        self.diagnostics.warn(context.file, at.clone(), format!("`{key}`: {reason}"), advice);
        None
    }

    /// Reports the certificates of a file that are expired, not yet valid, or about to expire.
    fn dates(
        &mut self,
        context: FileContext<'_>,
        at: &Span,
        key: &str,
        path: &Path,
        certificates: &[CertificateDer<'_>],
    ) {
        for (index, certificate) in certificates.iter().enumerate() {
            if let Some(staleness) = staleness(certificate, self.now) {
                let which = if certificates.len() > 1 {
                    format!("certificate {} of {}", index + 1, certificates.len())
                } else {
                    "the certificate".to_owned()
                };
                let message = format!("`{key}`: {which} in {} {staleness}", path.display());
                self.diagnostics.warn(context.file, at.clone(), message, None);
            }
        }
    }

    /// Notes the certificates that servers present themselves: they are trusted as they are, and replaced with them.
    fn pins(
        &mut self,
        context: FileContext<'_>,
        at: &Span,
        key: &str,
        path: &Path,
        certificates: &[CertificateDer<'_>],
    ) {
        for certificate in certificates.iter().filter(|certificate| is_of_server(certificate)) {
            let (line, column) = self.diagnostics.position(context.file, at.start);
            self.notes.push(format!(
                "{}:{line}:{column}: `{key}`: {} holds a server's own certificate, for {}: it is trusted as a pin, so \
                 that a new one of that server must be named here first",
                context.path.display(),
                path.display(),
                names(certificate).join(", ")
            ));
        }
    }

    /// Reports when the certificate is not for the host of `public_url`.
    fn name(&mut self, context: FileContext<'_>, pair: &Pair, raw: &RawGateway, chain: &[CertificateDer<'_>]) {
        let url = &raw.server.public_url;
        let text = match &**url {
            _ if url.is_wrong => return,
            OrVariable::Written(url) => url.0.clone(),
            OrVariable::Variable(_) if !self.options.check_secrets => return,
            OrVariable::Variable(name) => env::var(name).unwrap_or_default().into(),
        };
        let host = host_of(&text);
        let at = url.place().unwrap_or_else(|| pair.certificate_at.clone());
        let (Ok(name), Some(leaf)) = (ServerName::try_from(host), chain.first()) else { return };
        let Ok(parsed) = ParsedCertificate::try_from(leaf) else { return };
        if verify_server_name(&parsed, &name).is_err() {
            let names = names(leaf);
            let nearest = did_you_mean(host, names.iter().map(String::as_str));
            let known = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            let message = format!(
                "`server.public_url`: the certificate in {} is not for `{host}`; it is for {known}",
                pair.rules.certificate.display()
            );
            self.diagnostics.warn(context.file, at, message, nearest);
        }
    }

    fn trusted(&mut self, context: FileContext<'_>, key: &str, list: &List<String>) {
        for path in &list.0 {
            self.authorities(context, key, path);
        }
    }

    /// Checks the dates of a file of authorities. Compiling reports a file that cannot be read.
    fn authorities(&mut self, context: FileContext<'_>, key: &str, named: &Spanned<String>) {
        let path = context.relative(named.get_ref());
        let Ok(bytes) = read_bounded(&path, LARGEST_PEM) else { return };
        let certificates = trust::certificates(&bytes).unwrap_or_default();
        if key != "tls.client_ca" {
            self.pins(context, &named.span(), key, &path, &certificates);
        }
        self.dates(context, &named.span(), key, &path, &certificates);
    }
}

/// The certificate and the key that `[tls]` names, and the positions of both keys.
struct Pair {
    rules: TlsRules,
    certificate_at: Span,
    key_at: Span,
}

impl Pair {
    /// Absent keys have the position of the table's header.
    fn of(context: FileContext<'_>, raw: &RawTls, header: &Span) -> Self {
        let at = |key: &Key<String>| key.place().unwrap_or(header.clone());
        let rules = raw.rules(context);
        Self { rules, certificate_at: at(&raw.certificate), key_at: at(&raw.key) }
    }
}

fn is_missing(path: &Path) -> bool {
    !path.exists()
}

/// Reports whether a certificate is made for a server: it has names, and is self-signed or no authority's.
fn is_of_server(certificate: &CertificateDer<'_>) -> bool {
    let is_pin = x509_parser::parse_x509_certificate(certificate)
        .is_ok_and(|(_, parsed)| parsed.subject() == parsed.issuer() || !parsed.is_ca());
    is_pin && !names(certificate).is_empty()
}

/// Returns the names that a certificate is for, at most 20.
#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds of names do not identify a server")]
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    use x509_parser::extensions::GeneralName;
    const MAX_NAMES: usize = 20;
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return Vec::new() };
    let Ok(Some(alternatives)) = parsed.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    };
    alternatives.value.general_names.iter().filter_map(name).take(MAX_NAMES).collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string())).ok()
}
