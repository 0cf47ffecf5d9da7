//! Verifies servers' certificates.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

/// Returns the configuration of a client without a certificate of its own. It trusts a server whose certificate was issued
/// by one of `system` or `named`, or is itself one of `named`; names and dates are checked in both cases. Also returns how
/// many of `named` cannot be used.
///
/// # Errors
/// The crypto provider has no usable protocol version.
pub(crate) fn client_config(
    system: &[CertificateDer<'static>],
    named: &[CertificateDer<'static>],
) -> Result<(ClientConfig, usize), Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.iter().cloned());
    let (usable, unusable) = roots.add_parsable_certificates(named.iter().cloned());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if usable == 0 {
        return Ok((builder.with_root_certificates(roots).with_no_client_auth(), unusable));
    }
    let verifier = PinningVerifier::new(roots, named.into(), provider)?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    Ok((config, unusable))
}

/// Returns the configuration of a client that trusts the server with one certificate alone, regardless of its names and dates:
/// for a server whose certificate is at hand.
///
/// # Errors
/// The crypto provider has no usable protocol version.
pub(crate) fn pinned_client_config(certificate: CertificateDer<'static>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let verifier = Arc::new(SingleCertificate { certificate, algorithms });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts one certificate, from a server that has its key.
#[derive(Debug)]
struct SingleCertificate {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for SingleCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity != self.certificate {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Verifies certificates as usual, and accepts those that are named themselves. `openssl req -x509` marks the
/// certificate that it makes for a server as an authority's, which is refused as a server's without this.
#[derive(Debug)]
struct PinningVerifier {
    usual: Arc<WebPkiServerVerifier>,
    pins: Vec<CertificateDer<'static>>,
}

impl PinningVerifier {
    fn new(
        roots: RootCertStore,
        pins: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { usual, pins })
    }
}

impl ServerCertVerifier for PinningVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.pins.iter().any(|pin| pin == end_entity) {
            return self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        verify_dates(end_entity, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.usual.root_hint_subjects()
    }
}

fn verify_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate as `openssl req -x509 -addext subjectAltName=...` makes it, valid in 2026.
    fn self_signed(name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut made = CertificateParams::new([name.to_owned()]).unwrap();
        made.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (made.not_before, made.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
        CertifiedIssuer::self_signed(made, KeyPair::generate().unwrap()).unwrap()
    }

    #[track_caller]
    fn verified(
        verifier: &dyn ServerCertVerifier,
        certificate: &CertificateDer<'_>,
        name: &str,
        at: u64,
    ) -> Result<(), CertificateError> {
        let (name, now) = (ServerName::try_from(name).unwrap(), UnixTime::since_unix_epoch(Duration::from_secs(at)));
        match verifier.verify_server_cert(certificate, &[], &name, &[], now) {
            Ok(_) => Ok(()),
            Err(Error::InvalidCertificate(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_pin_is_the_very_same_certificate_at_its_name_and_time() {
        const NOW: u64 = 1_780_000_000;
        let (pinned, other) = (self_signed("v2.example"), self_signed("v2.example"));
        let mut roots = RootCertStore::empty();
        roots.add(pinned.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = PinningVerifier::new(roots, vec![pinned.der().clone()], provider).unwrap();
        assert_eq!(verified(&verifier, pinned.der(), "v2.example", NOW), Ok(()));
        let wrong_name = verified(&verifier, pinned.der(), "v3.example", NOW).unwrap_err();
        assert!(matches!(wrong_name, CertificateError::NotValidForNameContext { .. }), "{wrong_name:?}");
        assert_eq!(verified(&verifier, pinned.der(), "v2.example", 1_700_000_000), Err(CertificateError::NotValidYet));
        assert_eq!(verified(&verifier, pinned.der(), "v2.example", 1_800_000_000), Err(CertificateError::Expired));
        assert!(verified(&verifier, other.der(), "v2.example", NOW).is_err(), "the same names are another certificate");
        // As before: what it has issued is trusted, since it is marked as an authority.
        let issued = |issuer| {
            let key = KeyPair::generate().unwrap();
            CertificateParams::new(["shop.example".to_owned()]).unwrap().signed_by(&key, issuer).unwrap()
        };
        assert_eq!(verified(&verifier, issued(&pinned).der(), "shop.example", NOW), Ok(()));
        assert!(verified(&verifier, issued(&other).der(), "shop.example", NOW).is_err());
    }

    #[test]
    fn without_named_certificates_nothing_is_pinned() {
        let root = self_signed("v2.example");
        assert!(client_config(&[root.der().clone()], &[]).is_ok_and(|(_, unusable)| unusable == 0));
        assert!(client_config(&[], &[CertificateDer::from(vec![0])]).is_ok_and(|(_, unusable)| unusable == 1));
        assert!(client_config(&[], &[]).is_ok());
    }
}
