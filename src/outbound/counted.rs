//! Connections that are counted for as long as they are open, used or not, so that hosts without number, which others than
//! the rules name, cannot use up the process's files.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::sync::OwnedSemaphorePermit;

/// A connection with its place among those that may be open.
pub(super) struct Counted<T> {
    inner: T,
    _place: Option<OwnedSemaphorePermit>,
}

impl<T> Counted<T> {
    /// A connection that gives its place back when it is closed; `None`: it needs none.
    pub(super) const fn new(inner: T, place: Option<OwnedSemaphorePermit>) -> Self {
        Self { inner, _place: place }
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

    /// Said of no connection: HTTP/2 then copies bodies of up to a kilobyte beside their heads, and writes what waits at once,
    /// where it would else write each of them alone. TLS copies what it seals in any case.
    fn is_write_vectored(&self) -> bool {
        false
    }
}
