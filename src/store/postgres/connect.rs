//! Connections to the database: a pool of them, each with the session that this store needs.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::hosts::{self, HostSelector};
use super::turns::PATIENCE;
use crate::rules::{PostgresTls, PostgresUrl};

/// How much longer the pool waits than all hosts may take, so that it is they who are said to be silent; and how long an idle
/// connection has to prove itself.
const WAIT: Duration = Duration::from_secs(1);

/// What every session is set to. An acknowledged operation is on disk, whatever the server's default is; where commits
/// wait for a standby too, they go on to. Nothing waits for ever, and the server gives up before [`LIMIT`](super::turns::LIMIT).
/// A node that freezes lets go of its rows before others give up on them; who waits for a row asks again
/// ([`fault`](super::fault)), and has no connection between. No statement is worth compiling: each is some steps into
/// indexes, and one that has to pass over a small table looks endless to a planner that was told not to.
const SESSION: &str = "\
    SET default_transaction_isolation = 'read committed'; \
    SET statement_timeout = '7s'; \
    SET lock_timeout = '1s'; \
    SET idle_in_transaction_session_timeout = '4s'; \
    SET enable_seqscan = off; \
    SET random_page_cost = 1.1; \
    SET jit = off; \
    SELECT set_config('synchronous_commit', 'on', false) \
      WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// A pool that connects when it is asked.
///
/// # Errors
/// `sslrootcert` cannot be read, in one line.
pub(super) fn pool(url: &PostgresUrl) -> Result<Pool, String> {
    let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls(url)? {
        None => Manager::from_connect(url.config().clone(), HostSelector::new(url.config(), NoTls), how),
        Some(config) => {
            let tls = MakeRustlsConnect::new(config);
            Manager::from_connect(url.config().clone(), HostSelector::new(url.config(), tls), how)
        }
    };
    let prepared = Hook::async_fn(|client, _| {
        Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(url.connections())
        // What one of the server's processes has in its caches is of use to the next one who asks it.
        .queue_mode(QueueMode::Lifo)
        .timeouts(Timeouts {
            wait: Some(PATIENCE),
            create: Some(hosts::patience(url.config()) + WAIT),
            recycle: Some(WAIT),
        })
        .runtime(Runtime::Tokio1)
        .post_create(prepared)
        .build()
        .map_err(|error| error.to_string())
}

fn tls(url: &PostgresUrl) -> Result<Option<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verified = match (url.tls(), url.roots()) {
        (PostgresTls::Off, _) => return Ok(None),
        (PostgresTls::IfOffered | PostgresTls::Required, None) => None,
        (_, Some(path)) => Some(roots_in(path)?),
        (PostgresTls::Verified, None) => Some(roots_of_the_system()),
    };
    Ok(Some(match verified {
        Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
    }))
}

fn roots_in(path: &std::path::Path) -> Result<RootCertStore, String> {
    let unreadable = |error: rustls::pki_types::pem::Error| format!("sslrootcert {}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let added = roots.add(certificate.map_err(unreadable)?);
        added.map_err(|error| format!("sslrootcert {}: {error}", path.display()))?;
    }
    if roots.is_empty() {
        return Err(format!("sslrootcert {}: holds no certificate", path.display()));
    }
    Ok(roots)
}

fn roots_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Whom `sslmode=prefer` and `require` trust: whoever answers. They keep listeners out, nobody else.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
