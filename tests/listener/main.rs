//! The listener over real sockets, with a service that tells what it saw.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod closing;
mod http1;
mod http2;
mod opening;
mod support;
