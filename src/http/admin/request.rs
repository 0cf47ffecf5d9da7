//! A request of the admin listener, as its handlers see it.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;

use super::form::Form;
use super::sessions::SignedIn;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PeerAddress {
    /// Over TCP, from this address.
    Ip(IpAddr),
    /// Over the Unix socket.
    Unix,
}

/// The address, or `unix`.
impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionEnds {
    pub peer: PeerAddress,
    /// The address at which it arrived; `None` for the Unix socket.
    pub local: Option<IpAddr>,
    pub is_tls: bool,
}

/// A request that its user may make.
#[derive(Debug)]
pub(super) struct AdminRequest<'r> {
    pub user: SignedIn,
    /// Where it comes from.
    pub address: PeerAddress,
    /// Its id, which the reply carries too.
    pub request_id: &'r str,
    /// The part of the path that the table of routes calls `{id}`, as sent; else empty.
    pub id: &'r str,
    /// The query, without `?`.
    pub query: Option<&'r str>,
    /// The fields of the form; empty for a GET and for the API.
    pub form: Form,
    /// The body of a request of the API; empty where the route takes none.
    pub body: Bytes,
}
