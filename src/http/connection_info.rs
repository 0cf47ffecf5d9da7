//! What the listener hands to the gateway with each request.

use std::net::IpAddr;
use std::sync::Arc;

use super::listener::ConnectionState;
use crate::error::AdmissionError;
use crate::telemetry::Stopwatch;

/// What the listener knows of a request, beside the request itself.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The client.
    pub peer: Peer,
    /// The check of its head.
    pub head_check: HeadCheck,
    /// Notified when the caller is authenticated.
    pub connection: Arc<ConnectionState>,
}

/// The other end of a connection, as the listener knows it before any request is read.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address the connection counts as coming from: the socket's, or the PROXY header's.
    pub address: IpAddr,
    /// The negotiated protocol.
    pub protocol: Protocol,
}

/// The protocol that ALPN chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, also without ALPN.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What the listener found in a request's head that hyper does not report (contract section 3, "What hyper leaves to its
/// user").
///
/// A request with a violation is refused before anything else: over HTTP/1 the head that follows is a substitute without a
/// body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadCheck {
    /// Why the head is refused, worded for the caller; an HTTP/1 connection closes after the reply.
    pub violation: Option<&'static str>,
    /// The kind of violation, when there is one.
    pub fault: HeadError,
    /// When its first byte came, if it did not come in one piece.
    pub began: Option<Stopwatch>,
}

/// The kinds of violation of a head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeadError {
    /// It is not HTTP as it is allowed here.
    #[default]
    Malformed,
    /// It is over `limits.head`, or has too many header lines.
    TooLarge,
    /// It did not arrive within `limits.head_timeout`.
    TooSlow,
}

impl HeadCheck {
    /// Marks a head as refused.
    #[must_use]
    pub const fn violating(fault: HeadError, violation: &'static str) -> Self {
        Self { violation: Some(violation), fault, began: None }
    }

    /// Returns the refusal of the request, if its head is refused.
    #[must_use]
    pub fn refusal(&self) -> Option<AdmissionError> {
        self.violation.map(|violation| match self.fault {
            HeadError::Malformed => AdmissionError::Malformed(violation),
            HeadError::TooLarge => AdmissionError::HeadTooLarge,
            HeadError::TooSlow => AdmissionError::HeadTooSlow,
        })
    }
}
