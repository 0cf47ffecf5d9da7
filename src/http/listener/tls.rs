//! Server-side TLS: versions 1.2 and 1.3 with aws-lc-rs, HTTP/2 and HTTP/1.1 by ALPN, session tickets.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CipherSuite, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};

use crate::domain::{UnixMillis, wide};
use crate::rules::TlsRules;
use crate::trust;

/// The ALPN protocol name of HTTP/2.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// The largest certificate or key file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Why the TLS files cannot be used: one line that names the file.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// The server's TLS configuration, with the identity and the expiry of its certificate.
#[derive(Debug)]
pub struct ServerTls {
    /// The configuration for new connections.
    pub config: ServerConfig,
    /// The configuration of the admin listener: the same certificate, HTTP/1.1 alone, and no client certificates, which
    /// are the merchants'.
    pub admin: ServerConfig,
    /// A hash over the chain, the key and the client CA.
    pub digest: [u8; 32],
    /// The end of the certificate's validity; `None` if it cannot be parsed.
    pub not_after: Option<UnixMillis>,
}

/// Loads the certificate, the key and the client CA that `rules` name (contract section 2, `[tls]`). With a
/// `client_ca`, the handshake fails for a client without a certificate signed by that CA.
///
/// # Errors
/// A file cannot be read or holds nothing usable, or the key does not belong to the certificate.
pub fn server_tls(rules: &TlsRules) -> Result<ServerTls, TlsError> {
    let provider = Arc::new(provider());
    let chain = certificates(&rules.certificate)?;
    let key = private_key(&rules.key)?;
    let not_after = chain.first().and_then(not_after);
    let mut hash = Sha256::new();
    for part in chain.iter().map(AsRef::as_ref).chain([key.secret_der()]) {
        hash.update(wide(part.len()).to_be_bytes());
        hash.update(part);
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other errors have one message")]
    let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError(format!(
            "the key in {} does not belong to the certificate in {}",
            rules.key.display(),
            rules.certificate.display()
        )),
        rustls::Error::InvalidCertificate(_) => unusable(&rules.certificate, &error),
        _ => unusable(&rules.key, &error),
    })?;
    let verifier: Arc<dyn ClientCertVerifier> = match &rules.client_ca {
        Some(path) => {
            let authorities = certificates(path)?;
            for authority in &authorities {
                hash.update(authority);
            }
            client_verifier(path, authorities, &provider)?
        }
        None => Arc::new(NoClientAuth),
    };
    let certified: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(certified));
    let configured = |verifier| {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| TlsError(format!("TLS cannot be set up: {error}")))?;
        Ok(builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::clone(&certified)))
    };
    let mut admin = configured(Arc::new(NoClientAuth))?;
    admin.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
    let mut config = configured(verifier)?;
    config.ignore_client_order = true;
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
    // Stateless tickets need no memory for each session. Their key lives as long as this configuration.
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()
        .map_err(|error| TlsError(format!("session tickets cannot be set up: {error}")))?;
    // One ticket a connection is enough: a client that opens several connections at a time gets one with each of them.
    config.send_tls13_tickets = 1;
    Ok(ServerTls { config, admin, digest: hash.finalize().into(), not_after })
}

/// Returns the crypto provider, with 128-bit AES suites before all others. Their hash is SHA-256, for which processors
/// have instructions: a handshake derives some thirty keys, and with SHA-384, which most clients prefer, that is much
/// of its cost. A client that offers only other suites gets one of them.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| {
        !matches!(
            suite.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        )
    });
    provider
}

fn not_after(certificate: &CertificateDer<'_>) -> Option<UnixMillis> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    parsed.validity().not_after.timestamp().checked_mul(1000).map(UnixMillis)
}

fn client_verifier(
    path: &Path,
    authorities: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(path, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = read(path)
        .and_then(|text| trust::certificates(&text))
        .map_err(|error| unreadable(path, "certificate", error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, "certificate", pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path).map_err(|error| unreadable(path, "private key", error))?;
    trust::private_key(&text).map_err(|error| TlsError(format!("{} {error}", path.display())))
}

/// Reads a file within bounds: an endless file, or a pipe without a writer, must not block a reload.
fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    // Checked before opening too: opening a pipe waits for its writer.
    let regular = |meta: &fs::Metadata| {
        if meta.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
    };
    let bytes = || -> io::Result<Vec<u8>> {
        regular(&fs::metadata(path)?)?;
        let file = fs::File::open(path)?;
        regular(&file.metadata()?)?;
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if wide(bytes.len()) > LARGEST_FILE {
            return Err(io::Error::other(format!("it is larger than {LARGEST_FILE} bytes")));
        }
        Ok(bytes)
    };
    bytes().map_err(pem::Error::Io)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds have one message")]
fn unreadable(path: &Path, what: &str, error: pem::Error) -> TlsError {
    let path = path.display();
    TlsError(match error {
        pem::Error::Io(error) => format!("cannot read {path}: {error}"),
        pem::Error::NoItemsFound => format!("{path} holds no PEM {what}"),
        // The parser's message may quote the file, which can hold a private key.
        _ => format!("{path} is not well-formed PEM"),
    })
}

fn unusable(path: &Path, error: &dyn fmt::Display) -> TlsError {
    TlsError(format!("{} cannot be used: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn rules(directory: &Path) -> TlsRules {
        TlsRules {
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
            generate: false,
            client_ca: None,
        }
    }

    #[test]
    fn the_cheapest_suites_come_first_and_none_is_left_out() {
        let (ours, all) = (provider().cipher_suites, rustls::crypto::aws_lc_rs::default_provider().cipher_suites);
        assert_eq!(ours[0].suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(ours.len(), all.len());
        assert!(all.iter().all(|suite| ours.contains(suite)));
    }

    #[test]
    fn errors_are_one_line_that_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let rules = rules(directory.path());
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let other_key = other.signing_key.serialize_pem();

        let broken = "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n";
        let not_a_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (certificate, key, culprit) in [
            (None, Some(key.as_str()), "cannot read"),
            (Some(certificate.as_str()), None, "cannot read"),
            (Some(""), Some(&key), "server.pem holds no PEM certificate"),
            (Some(&key), Some(&key), "server.pem holds no PEM certificate"),
            (Some(&certificate), Some(&certificate), "server.key holds no PEM private key"),
            (Some(broken), Some(&key), "server.pem is not well-formed PEM"),
            (Some(not_a_certificate), Some(&key), "server.pem"),
            (Some(&certificate), Some(&other_key), "server.key does not belong to the certificate in"),
        ] {
            for (path, content) in [(&rules.certificate, certificate), (&rules.key, key)] {
                match content {
                    Some(content) => fs::write(path, content).unwrap(),
                    None => drop(fs::remove_file(path)),
                }
            }
            let error = server_tls(&rules).map(drop).unwrap_err().to_string();
            assert!(error.contains(culprit), "{culprit}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        fs::write(&rules.certificate, &certificate).unwrap();
        fs::write(&rules.key, &key).unwrap();
        assert!(server_tls(&rules).is_ok());

        let missing_ca = TlsRules { client_ca: Some(directory.path().join("clients.pem")), ..rules };
        assert!(server_tls(&missing_ca).map(drop).unwrap_err().to_string().contains("clients.pem"));

        fs::write(&missing_ca.certificate, vec![b'a'; 1 << 20 | 1]).unwrap();
        assert!(server_tls(&missing_ca).map(drop).unwrap_err().to_string().contains("it is larger than 1048576 bytes"));
        fs::remove_file(&missing_ca.certificate).unwrap();
        fs::create_dir(&missing_ca.certificate).unwrap();
        assert!(server_tls(&missing_ca).map(drop).unwrap_err().to_string().contains("it is not a regular file"));
    }
}
