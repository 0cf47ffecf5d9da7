//! Checks the validity periods of certificates.

use std::fmt;

use rustls::pki_types::CertificateDer;

use crate::domain::UnixMillis;

/// How long before its end a certificate counts as about to expire.
const SOON_MILLIS: i64 = 14 * DAY_MILLIS;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A problem of a certificate's validity period; displayed as the end of a sentence that begins with the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Staleness {
    /// It was valid until this moment.
    Expired(UnixMillis),
    /// It is valid from this moment on.
    NotYet(UnixMillis),
    /// It is valid until this moment, which is near.
    Soon(UnixMillis),
}

impl fmt::Display for Staleness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Expired(end) => write!(f, "expired on {}", day(end)),
            Self::NotYet(start) => write!(f, "is not valid before {}", day(start)),
            Self::Soon(end) => write!(f, "expires on {}, in less than 14 days", day(end)),
        }
    }
}

/// Returns the problem of a certificate's validity period at `now`; `None` when there is none, or when the certificate
/// cannot be parsed.
#[must_use]
pub(super) fn staleness(certificate: &CertificateDer<'_>, now: UnixMillis) -> Option<Staleness> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let validity = parsed.validity();
    let (start, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let (start, end) = (UnixMillis(start.saturating_mul(1000)), UnixMillis(end.saturating_mul(1000)));
    if now > end {
        Some(Staleness::Expired(end))
    } else if now < start {
        Some(Staleness::NotYet(start))
    } else if end.0 - now.0 < SOON_MILLIS {
        Some(Staleness::Soon(end))
    } else {
        None
    }
}

/// Formats the UTC date of a moment.
fn day(at: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| "a date out of range".to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
}
