//! Development certificates: a local CA and a server certificate signed by it (contract sections 1 and 2, `[tls]`).
//!
//! The CA is created once and reused, so that clients that trust `ca.pem` also trust later certificates. An existing
//! file is replaced only on request, and a new certificate is verified as a client would verify it before it is
//! written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};

use crate::domain::UnixMillis;
use crate::rules::{ServerRules, TlsRules};

/// The names in the certificate of a development server.
pub const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const CA_YEARS: i16 = 10;

/// Browsers reject server certificates with a longer validity.
const SERVER_DAYS: i32 = 398;

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Why no certificates were created.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// One file of a pair exists; a new other one would not match it.
    #[error("{} exists, but {} is missing: restore it, or remove {} to create both", .present.display(), .missing.display(), .present.display())]
    Half {
        /// The file that exists.
        present: PathBuf,
        /// The file that is missing.
        missing: PathBuf,
    },
    /// A file exists already, and replacing it was not requested.
    #[error("{} exists already (--force replaces the server certificate and its key)", .0.display())]
    Exists(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The existing CA cannot sign.
    #[error("{} cannot be used as a CA: {reason}", .path.display())]
    Ca {
        /// The CA's certificate or key.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The name cannot be in a certificate.
    #[error("{0:?} is neither a host name nor an IP address")]
    Name(String),
    /// The certificate library failed.
    #[error("the certificate could not be created: {0}")]
    Make(#[from] rcgen::Error),
}

/// The paths of a CA and a server certificate with their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The CA's certificate, which clients trust.
    pub ca: PathBuf,
    /// The CA's key.
    pub ca_key: PathBuf,
    /// The server's certificate chain.
    pub certificate: PathBuf,
    /// The server's key.
    pub key: PathBuf,
}

impl Files {
    /// Returns the paths `ca.pem`, `ca.key`, `server.pem` and `server.key` in a directory.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        let file = |name| directory.join(name);
        Self { ca: file("ca.pem"), ca_key: file("ca.key"), certificate: file("server.pem"), key: file("server.key") }
    }

    /// Returns the pair that the rules name, with the CA beside the certificate.
    #[must_use]
    pub fn of_rules(tls: &TlsRules) -> Self {
        let beside = |name| tls.certificate.with_file_name(name);
        Self {
            ca: beside("ca.pem"),
            ca_key: beside("ca.key"),
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
        }
    }
}

/// What [`make`] created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedCertificates {
    /// The paths.
    pub files: Files,
    /// Whether the CA is new too.
    pub new_ca: bool,
}

/// Returns the names by which clients reach a server: [`DEFAULT_NAMES`], the host of `public_url`, and the address it
/// listens on.
#[must_use]
pub fn names_of(server: &ServerRules) -> Vec<String> {
    let mut names: Vec<String> = DEFAULT_NAMES.map(str::to_owned).into();
    let public_host = server.public_url.parse::<http::Uri>().ok().and_then(|url| url.host().map(unbracketed));
    let listen = server.listen.ip();
    let listen = (!listen.is_unspecified()).then(|| listen.to_string());
    for name in public_host.into_iter().chain(listen) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Creates the pair that the rules name if they request it (`generate`) and both files are missing; otherwise returns
/// `None`.
///
/// # Errors
/// Only one of the two files is missing, or they cannot be created.
pub fn ensure(tls: &TlsRules, names: &[String], now: UnixMillis) -> Result<Option<GeneratedCertificates>, CertError> {
    if !tls.generate || both_exist(&tls.certificate, &tls.key)? {
        return Ok(None);
    }
    make(&Files::of_rules(tls), names, now, false).map(Some)
}

/// Creates a server certificate and its key, signed by the existing CA or by a new one.
///
/// # Errors
/// A file of the pair exists and `replace` is false, the existing CA cannot sign, or a file cannot be written.
pub fn make(
    files: &Files,
    names: &[String],
    now: UnixMillis,
    replace: bool,
) -> Result<GeneratedCertificates, CertError> {
    if !replace && let Some(existing) = [&files.certificate, &files.key].into_iter().find(|path| path.exists()) {
        return Err(CertError::Exists(existing.clone()));
    }
    let names = names.iter().map(|name| checked_name(name)).collect::<Result<Vec<_>, _>>()?;
    let today = Timestamp::from_millisecond(now.0).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date();
    let new_ca = !both_exist(&files.ca, &files.ca_key)?;
    let ca = if new_ca { Ca::new(today)? } else { Ca::read(files)? };
    let key = KeyPair::generate()?;
    let certificate = server_params(&names, today)?.signed_by(&key, &ca.issuer)?;
    verify(&ca, certificate.der(), &names, now)
        .map_err(|reason| CertError::Ca { path: files.ca.clone(), reason: reason.to_string() })?;
    if new_ca {
        write(&files.ca_key, &ca.issuer.key().serialize_pem(), PRIVATE)?;
        write(&files.ca, &ca.pem, PUBLIC)?;
    }
    write(&files.key, &key.serialize_pem(), PRIVATE)?;
    write(&files.certificate, &certificate.pem(), PUBLIC)?;
    Ok(GeneratedCertificates { files: files.clone(), new_ca })
}

/// A CA certificate with its key.
struct Ca {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new(today: Date) -> Result<Self, CertError> {
        let mut params = CertificateParams::default();
        // The date in the name distinguishes this CA from an earlier one with another key, for trust stores that
        // compare names.
        params.distinguished_name.push(DnType::CommonName, format!("Paybridge local CA {today}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params, today, today.saturating_add(CA_YEARS.years()));
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate: certificate.der().clone(), pem: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    fn read(files: &Files) -> Result<Self, CertError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |reason: String| CertError::Ca { path, reason }
        };
        let pem = read(&files.ca)?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| unusable(&files.ca)("it holds no PEM certificate".to_owned()))?;
        let key = KeyPair::from_pem(&read(&files.ca_key)?)
            .map_err(|_| unusable(&files.ca_key)("it holds no PEM private key that can sign".to_owned()))?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|error| unusable(&files.ca)(error.to_string()))?;
        Ok(Self { certificate, pem, issuer })
    }
}

fn server_params(names: &[String], today: Date) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, names.first().map_or("paybridge", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, today, today.saturating_add(SERVER_DAYS.days()));
    Ok(params)
}

/// Sets the validity from the day before `today`, for clients whose clocks are slow.
fn set_validity(params: &mut CertificateParams, today: Date, end: Date) {
    let point = |date: Date| {
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
    };
    params.not_before = point(today.saturating_sub(1.day()));
    params.not_after = point(end);
}

/// Verifies the new certificate as a client that trusts the CA would. Finds a CA that has expired, or whose key does
/// not match.
fn verify(
    ca: &Ca,
    certificate: &CertificateDer<'_>,
    names: &[String],
    now: UnixMillis,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.certificate.clone())?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(now.0).unwrap_or(0)));
    for name in names {
        let name = ServerName::try_from(name.replacen('*', "any", 1))?;
        check_time(&ca.certificate, &verifier, &name, now)?;
        verifier.verify_server_cert(certificate, &[], &name, &[], now)?;
    }
    Ok(())
}

/// Checks the CA's validity. A verifier ignores the dates of a root at the end of a chain; presented as a server's
/// certificate, the root has its dates checked before it is rejected for being a CA.
fn check_time(
    ca: &CertificateDer<'_>,
    verifier: &WebPkiServerVerifier,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    match verifier.verify_server_cert(ca, &[], name, &[], now) {
        Err(
            error @ rustls::Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ),
        ) => Err(error),
        _ => Ok(()),
    }
}

/// Returns a host name, a wildcard for one label, or an IP address, which may be in brackets; checks it.
fn checked_name(name: &str) -> Result<String, CertError> {
    let plain = unbracketed(name);
    let host = plain.strip_prefix("*.").unwrap_or(&plain);
    let known = if host.len() < plain.len() { host.parse::<IpAddr>().is_err() } else { true };
    if known && ServerName::try_from(host).is_ok() { Ok(plain) } else { Err(CertError::Name(name.to_owned())) }
}

fn unbracketed(host: &str) -> String {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host).to_owned()
}

/// Reports whether both files exist; one alone is an error.
fn both_exist(first: &Path, second: &Path) -> Result<bool, CertError> {
    let half = |present: &Path, missing: &Path| {
        Err(CertError::Half { present: present.to_owned(), missing: missing.to_owned() })
    };
    match (first.exists(), second.exists()) {
        (true, true) => Ok(true),
        (false, false) => Ok(false),
        (true, false) => half(first, second),
        (false, true) => half(second, first),
    }
}

fn read(path: &Path) -> Result<String, CertError> {
    fs::read_to_string(path).map_err(|cause| CertError::File { path: path.to_owned(), cause })
}

/// Writes a file atomically, with its mode from the first byte on.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let unfinished = path.with_file_name(name);
    let put = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    put().map_err(|cause| CertError::File { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustls::pki_types::PrivateKeyDer;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_772_409_600_000);

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    fn defaults() -> Vec<String> {
        names(&DEFAULT_NAMES)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Verifies the files as a client would at time `at`, and that the key matches the certificate.
    fn trusted(files: &Files, name: &str, at: UnixMillis) -> bool {
        let chain = || vec![CertificateDer::from_pem_file(&files.certificate).unwrap()];
        let provider = Arc::new(aws_lc_rs::default_provider());
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain(), key)
            .unwrap();
        verify(&Ca::read(files).unwrap(), &chain()[0], &names(&[name]), at).is_ok()
    }

    #[test]
    fn a_new_certificate_is_valid_for_its_names_and_time() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::in_directory(&directory.path().join("deep/certs"));
        let made = make(&files, &names(&["localhost", "[::1]", "*.pay.example", "127.0.0.1"]), NOW, false).unwrap();
        assert!(made.new_ca);
        for name in ["localhost", "::1", "127.0.0.1", "api.pay.example"] {
            assert!(trusted(&files, name, NOW), "{name}");
        }
        assert!(!trusted(&files, "pay.example", NOW));
        let days = |days: u64| NOW.plus(Duration::from_hours(days * 24));
        assert!(trusted(&files, "localhost", days(397)));
        assert!(!trusted(&files, "localhost", days(399)));
        for (path, expected) in
            [(&files.ca_key, 0o600), (&files.key, 0o600), (&files.ca, 0o644), (&files.certificate, 0o644)]
        {
            assert_eq!(mode(path) & !0o022, expected & !0o022, "{}", path.display());
        }
        let entries = fs::read_dir(files.ca.parent().unwrap()).unwrap().count();
        assert_eq!(entries, 4, "no temporary file is left");
    }

    #[test]
    fn the_ca_is_reused_and_files_are_replaced_only_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::in_directory(directory.path());
        make(&files, &defaults(), NOW, false).unwrap();
        let (ca, pair) = (read(&files.ca).unwrap(), read(&files.certificate).unwrap());
        assert!(matches!(make(&files, &defaults(), NOW, false), Err(CertError::Exists(_))));
        let made = make(&files, &names(&["other.example"]), NOW, true).unwrap();
        assert!(!made.new_ca);
        assert_eq!(read(&files.ca).unwrap(), ca);
        assert_ne!(read(&files.certificate).unwrap(), pair);
        assert!(trusted(&files, "other.example", NOW) && !trusted(&files, "localhost", NOW));
    }

    #[test]
    fn a_ca_that_cannot_sign_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::in_directory(directory.path());
        make(&files, &defaults(), NOW, false).unwrap();
        let foreign = KeyPair::generate().unwrap().serialize_pem();
        let late = NOW.plus(Duration::from_hours(11 * 366 * 24));
        let expired = make(&files, &defaults(), late, true).unwrap_err();
        assert!(matches!(&expired, CertError::Ca { path, .. } if *path == files.ca), "{expired}");
        for (text, culprit) in [(foreign.as_str(), &files.ca), ("no key", &files.ca_key)] {
            fs::write(&files.ca_key, text).unwrap();
            let error = make(&files, &defaults(), NOW, true).unwrap_err();
            assert!(matches!(&error, CertError::Ca { path, .. } if path == culprit), "{error}");
        }
        fs::remove_file(&files.ca_key).unwrap();
        assert!(matches!(make(&files, &defaults(), NOW, true), Err(CertError::Half { .. })));
    }

    #[test]
    fn certificates_are_created_only_if_the_rules_ask() {
        let directory = tempfile::tempdir().unwrap();
        let mut tls = TlsRules {
            certificate: directory.path().join("tls.crt"),
            key: directory.path().join("tls.key"),
            generate: false,
            client_ca: None,
        };
        assert_eq!(ensure(&tls, &defaults(), NOW).unwrap(), None);
        tls.generate = true;
        let made = ensure(&tls, &defaults(), NOW).unwrap().unwrap();
        assert_eq!(made.files.ca, directory.path().join("ca.pem"));
        assert!(trusted(&made.files, "localhost", NOW));
        assert_eq!(ensure(&tls, &defaults(), NOW).unwrap(), None, "both exist");
        fs::remove_file(&tls.key).unwrap();
        let error = ensure(&tls, &defaults(), NOW).unwrap_err();
        assert!(error.to_string().contains("tls.crt exists, but") && error.to_string().contains("tls.key is missing"));
    }

    #[test]
    fn names_come_from_the_rules_and_are_checked() {
        let server = ServerRules {
            listen: "192.0.2.7:8443".parse().unwrap(),
            public_url: "https://pay.example:8443".into(),
            is_public: true,
            shutdown_grace: Duration::ZERO,
            drain_delay: Duration::ZERO,
        };
        assert_eq!(names_of(&server), ["localhost", "127.0.0.1", "::1", "pay.example", "192.0.2.7"]);
        let anywhere =
            ServerRules { listen: "[::]:8443".parse().unwrap(), public_url: "https://[::1]".into(), ..server };
        assert_eq!(names_of(&anywhere), defaults());
        for bad in ["", "a b", "https://x", "*", "*.", "a.*.example", "*.127.0.0.1", "-x-.", "localhost:8443"] {
            assert!(matches!(checked_name(bad), Err(CertError::Name(_))), "{bad:?}");
        }
    }
}
