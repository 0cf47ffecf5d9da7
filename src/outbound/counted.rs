//! Counts open connections, used or idle, against a limit: hosts that the rules do not name cannot use up the process's
//! file descriptors.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::sync::OwnedSemaphorePermit;

/// A connection with its permit.
pub(super) struct Counted<T> {
    inner: T,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<T> Counted<T> {
    /// Wraps a connection that returns its permit when it is closed; `None`: it needs no permit.
    pub(super) const fn new(inner: T, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { inner, _permit: permit }
    }
}

impl<T: Connection> Connection for Counted<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<T: Read + Unpin> Read for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: Write + Unpin> Write for Counted<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    /// Always false: HTTP/2 then copies bodies of up to a kilobyte next to their heads and writes all buffered data at
    /// once, where it would otherwise write each of them alone. TLS copies what it encrypts in any case.
    fn is_write_vectored(&self) -> bool {
        false
    }
}
