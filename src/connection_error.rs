//! Puts in plain words why a connection failed. Libraries wrap the reason in a chain of errors of their own, in which
//! operators find it last.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError};

/// The longest chain of errors that is searched.
const DEEPEST: usize = 16;

/// What the system's resolver reports, and the part of it that means that no name server answered.
const LOOKUP: &str = "failed to lookup address information";
const NO_NAME_SERVER: &str = "emporary failure";

/// The system's codes for no free file descriptor: of the machine, and of this process.
const NO_DESCRIPTOR: [i32; 2] = [23, 24];

/// Returns why a connection failed, by the innermost known error of the chain; `None`: no error of it is known. The words
/// hold nothing that was sent or received.
#[must_use]
pub(crate) fn reason(error: &(dyn Error + 'static)) -> Option<String> {
    let chain: Vec<_> = std::iter::successors(Some(error), |&error| cause(error)).take(DEEPEST).collect();
    chain.into_iter().rev().find_map(words)
}

/// Returns why an address could not be listened on.
#[must_use]
pub(crate) fn of_binding(error: &io::Error) -> String {
    if error.kind() == ErrorKind::AddrInUse { "the port is in use".to_owned() } else { error.to_string() }
}

/// Returns the next error of a chain. An [`io::Error`] passes over the error that it wraps.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match io_error(error).and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let shared = || error.downcast_ref::<Arc<io::Error>>().map(|error| &**error);
    error.downcast_ref().or_else(shared).or_else(|| error.downcast_ref::<h2::Error>()?.get_io())
}

fn words(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = io_error(error) {
        return of_io(error).map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return match error.reason()? {
            h2::Reason::NO_ERROR => Some("connection closed".to_owned()),
            // The name that RFC 9113 gives to the code.
            reason => Some(format!("HTTP/2 error {reason:?}")),
        };
    }
    let words = if let Some(error) = error.downcast_ref::<rustls::Error>() {
        of_tls(error)
    } else if let Some(error) = error.downcast_ref::<hyper::Error>() {
        of_http(error)?
    } else {
        error.is::<tokio::time::error::Elapsed>().then_some("timed out")?
    };
    Some(words.to_owned())
}

fn of_io(error: &io::Error) -> Option<&'static str> {
    if error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code)) {
        return Some("too many open files");
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "most kinds of the system's errors concern no connection")]
    match error.kind() {
        ErrorKind::ConnectionRefused => Some("connection refused"),
        ErrorKind::ConnectionReset => Some("connection reset"),
        ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof
        | ErrorKind::WriteZero => Some("connection closed"),
        ErrorKind::TimedOut => Some("timed out"),
        ErrorKind::HostUnreachable => Some("host unreachable"),
        ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => Some("network unreachable"),
        ErrorKind::AddrNotAvailable => Some("no local address or port is free"),
        // Without a code it is PostgreSQL's client that refuses a server which is read only.
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Some("the database does not allow writes"),
        ErrorKind::PermissionDenied => Some("the system does not permit the connection"),
        ErrorKind::NotFound => Some("no such socket"),
        _ => of_lookup(&error.to_string()),
    }
}

fn of_lookup(text: &str) -> Option<&'static str> {
    let is_lookup = text.starts_with(LOOKUP);
    is_lookup.then_some(if text.contains(NO_NAME_SERVER) {
        "name not found: no name server answers"
    } else {
        "name not found"
    })
}

fn of_tls(error: &rustls::Error) -> &'static str {
    use AlertDescription::{
        BadCertificate, CertificateExpired, CertificateRequired, CertificateUnknown, ProtocolVersion, UnknownCA,
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other errors are defects of a peer")]
    match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::NoCertificatesPresented => "no certificate",
        rustls::Error::AlertReceived(UnknownCA | BadCertificate | CertificateUnknown) => "certificate not trusted",
        rustls::Error::AlertReceived(CertificateExpired) => "certificate expired",
        rustls::Error::AlertReceived(CertificateRequired) => "a client certificate is required",
        rustls::Error::AlertReceived(ProtocolVersion) | rustls::Error::PeerIncompatible(_) => {
            "no common TLS version or cipher"
        }
        rustls::Error::AlertReceived(_) => "TLS handshake refused",
        rustls::Error::InvalidMessage(_) => "no TLS at the other side",
        _ => "TLS handshake failed",
    }
}

fn of_certificate(error: &CertificateError) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "for all other reasons it is not trusted")]
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "certificate not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "certificate is for another name"
        }
        CertificateError::Revoked => "certificate revoked",
        _ => "certificate not trusted",
    }
}

fn of_http(error: &hyper::Error) -> Option<&'static str> {
    if error.is_parse() {
        Some("no valid HTTP")
    } else if error.is_timeout() {
        Some("timed out")
    } else {
        (error.is_incomplete_message() || error.is_closed() || error.is_canceled()).then_some("connection closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_plain_words() {
        let io = |kind: ErrorKind| io::Error::from(kind);
        let tls = |error: rustls::Error| io::Error::new(ErrorKind::InvalidData, error);
        let lookup = |text: &str| io::Error::other(format!("{LOOKUP}: {text}"));
        for (error, expected) in [
            (io(ErrorKind::ConnectionRefused), "connection refused"),
            (io::Error::from_raw_os_error(111), "connection refused"),
            (io::Error::from_raw_os_error(24), "too many open files"),
            (io(ErrorKind::ConnectionReset), "connection reset"),
            (io(ErrorKind::UnexpectedEof), "connection closed"),
            (io(ErrorKind::TimedOut), "timed out"),
            (io(ErrorKind::HostUnreachable), "host unreachable"),
            (lookup("Name or service not known"), "name not found"),
            (lookup("Temporary failure in name resolution"), "name not found: no name server answers"),
            (tls(CertificateError::UnknownIssuer.into()), "certificate not trusted"),
            (tls(CertificateError::Expired.into()), "certificate expired"),
            (tls(CertificateError::NotValidYet.into()), "certificate not valid yet"),
            (tls(CertificateError::NotValidForName.into()), "certificate is for another name"),
            (tls(rustls::Error::AlertReceived(AlertDescription::UnknownCA)), "certificate not trusted"),
            (tls(rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)), "TLS handshake refused"),
            (tls(rustls::InvalidMessage::InvalidContentType.into()), "no TLS at the other side"),
            (io::Error::other(h2::Error::from(h2::Reason::NO_ERROR)), "connection closed"),
            (io::Error::other(h2::Error::from(h2::Reason::PROTOCOL_ERROR)), "HTTP/2 error PROTOCOL_ERROR"),
        ] {
            let text = error.to_string();
            assert_eq!(reason(&error).as_deref(), Some(expected), "{text}");
            let wrapped = io::Error::other(io::Error::other(error));
            assert_eq!(reason(&wrapped).as_deref(), Some(expected), "wrapped: {text}");
            assert_eq!(reason(&Arc::new(wrapped)).as_deref(), Some(expected), "shared: {text}");
        }
        assert_eq!(reason(&io::Error::other("a secret")), None);
    }
}
