//! HTTP: from the socket to a handler and back.

pub mod admin;

use std::net::IpAddr;

/// The other end of a connection, as the listener knows it before any request is read.
#[derive(Debug, Clone)]
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

/// What the watcher of an HTTP/1 connection saw in a request's head and hyper does not tell (contract section 3, "What
/// hyper leaves to its user"). The listener puts it into the request's extensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// Why the head is refused, in words for the caller; the connection closes after the reply.
    pub violation: Option<&'static str>,
}
