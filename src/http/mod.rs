//! HTTP: from the socket to a handler and back.

pub mod admin;
pub mod admission;
pub mod body;
pub mod correlation;
pub mod gateway;
pub mod listener;
pub mod reader;
pub mod reply;
pub mod router;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use self::listener::ConnectionState;
use crate::failure::AdmissionError;

/// What the listener knows of a request beside what the request says.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// Who sent it.
    pub peer: Peer,
    /// How its head looked.
    pub facts: HeadCheck,
    /// What is told when the request is authenticated.
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

/// What ALPN chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, also without ALPN.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What the listener saw in a request's head and hyper does not tell (contract section 3, "What hyper leaves to its
/// user").
///
/// A request with a violation is answered with its refusal before anything else is looked at: over HTTP/1 its remaining
/// head is a substitute without a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadCheck {
    /// Why the head is refused, in words for the caller; an HTTP/1 connection closes after the reply.
    pub violation: Option<&'static str>,
    /// Which kind of violation it is, when there is one.
    pub fault: HeadError,
    /// When its first byte came, if it did not come in one piece.
    pub began: Option<Instant>,
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
    /// The facts of a refused head.
    #[must_use]
    pub const fn violating(fault: HeadError, violation: &'static str) -> Self {
        Self { violation: Some(violation), fault, began: None }
    }

    /// How the request has to be refused, if its head is.
    #[must_use]
    pub fn refusal(&self) -> Option<AdmissionError> {
        self.violation.map(|violation| match self.fault {
            HeadError::Malformed => AdmissionError::Malformed(violation),
            HeadError::TooLarge => AdmissionError::HeadTooLarge,
            HeadError::TooSlow => AdmissionError::HeadTooSlow,
        })
    }
}
