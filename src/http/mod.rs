//! HTTP: from the socket to a handler and back.

pub mod admin;
mod admission;
mod body;
mod client_hints;
mod connection_info;
mod context;
mod correlation;
pub mod gateway;
pub mod listener;
pub mod reply;
pub mod router;

pub use connection_info::{ConnectionInfo, HeadCheck, HeadError, Peer, Protocol};
