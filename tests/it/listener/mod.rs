//! The listener over real sockets, with a service that tells what it saw.

mod closing;
mod fixture;
mod http1;
mod http2;
mod opening;
