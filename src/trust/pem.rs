//! Reads certificates and private keys in PEM.

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a text holds no usable private key. No part of the text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// It has no private key.
    #[error("holds no PEM private key")]
    Missing,
    /// The key is encrypted, and a server that starts by itself has no passphrase.
    #[error(
        "holds an encrypted private key, which the gateway cannot decrypt: `openssl pkey -in FILE -out NEW` writes it \
         without a passphrase"
    )]
    Encrypted,
    /// It is cut short, or no PEM.
    #[error("is not well-formed PEM: it may be cut short")]
    Malformed,
}

/// Returns the certificates of a text, in its order. A byte order mark would hide the first one from the parser.
///
/// # Errors
/// The text is not well-formed. The error may quote it.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_slice_iter(without_mark(text)).collect()
}

/// Returns the first private key of a text.
///
/// # Errors
/// [`KeyError`] states why there is none.
pub(crate) fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, KeyError> {
    let text = without_mark(text);
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds have one meaning")]
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        _ if is_encrypted(text) => KeyError::Encrypted,
        pem::Error::NoItemsFound => KeyError::Missing,
        _ => KeyError::Malformed,
    })
}

/// Reports whether a text has an encrypted key, of PKCS #8 or of OpenSSL's older form.
fn is_encrypted(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    lines.any(|line| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
            || line.strip_prefix(b"Proc-Type:").is_some_and(|value| value.ends_with(b"ENCRYPTED"))
    })
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_hides_nothing() {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
        assert_eq!(certificates(&marked(&pair.cert.pem())).unwrap(), [pair.cert.der().clone()]);
        assert!(private_key(&marked(&pair.signing_key.serialize_pem())).is_ok());
    }

    #[test]
    fn an_encrypted_key_is_called_encrypted() {
        let body = "MIIB\n";
        let pkcs8 = format!("-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}-----END ENCRYPTED PRIVATE KEY-----\n");
        let older = |kind: &str| {
            let head = "Proc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-256-CBC,0123456789ABCDEF\r\n\r\n";
            format!("-----BEGIN {kind} PRIVATE KEY-----\r\n{head}{body}-----END {kind} PRIVATE KEY-----\r\n")
        };
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in [&pkcs8, &older("RSA"), &older("EC"), &format!("\u{feff}{pkcs8}"), &format!("{certificate}{pkcs8}")]
        {
            assert_eq!(private_key(text.as_bytes()).unwrap_err(), KeyError::Encrypted, "{text}");
        }
        assert_eq!(private_key(certificate.as_bytes()).unwrap_err(), KeyError::Missing);
        let cut_short = "-----BEGIN PRIVATE KEY-----\nMIIB";
        assert_eq!(private_key(cut_short.as_bytes()).unwrap_err(), KeyError::Malformed);
        let plain = rcgen::KeyPair::generate().unwrap().serialize_pem();
        assert!(private_key(format!("{pkcs8}{plain}").as_bytes()).is_ok(), "a usable key beside it is used");
    }
}
