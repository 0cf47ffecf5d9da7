//! The byte stream under HTTP, TLS or plain: limits how long a write may stall, and closes so that the client can read
//! the last reply.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::deadline::Deadline;

/// The most bytes that are discarded from a client after the last reply.
pub(super) const LINGER_BYTES: usize = 32 * 1024 * 1024;
/// How long a client may be silent before the close stops waiting for it.
pub(super) const LINGER_SILENCE: Duration = Duration::from_secs(2);
/// How long a client may keep sending after the last reply, in all.
pub(super) const LINGER_TIME: Duration = Duration::from_secs(10);

/// The socket, with or without TLS.
pub(super) enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// After the handshake.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_mut().0,
        }
    }

    fn half(&mut self) -> Pin<&mut dyn Duplex> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp),
            Self::Tls(tls) => Pin::new(tls.as_mut()),
        }
    }
}

/// Both halves of a stream of either kind.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A [`Stream`] with a write time-out and a lingering close.
pub(super) struct Transport {
    stream: Stream,
    write_timeout: Duration,
    /// Since when no byte could be written.
    stalled_since: Option<Instant>,
    timer: Option<Deadline>,
    close: Close,
}

/// The progress of the close.
enum Close {
    /// Not begun. `lingers`: the client may still be sending, and has to be able to read the last reply.
    Open { lingers: bool },
    /// The sending side is closed; bytes from the client are discarded.
    Lingering { until: Instant, silent_until: Instant, bytes: usize },
    /// Closed.
    Done,
}

impl Transport {
    /// Wraps a stream. `write_timeout`: how long the client may leave a reply unread.
    pub(super) const fn new(stream: Stream, write_timeout: Duration) -> Self {
        Self { stream, write_timeout, stalled_since: None, timer: None, close: Close::Open { lingers: true } }
    }

    /// Reports whether bytes have arrived that the runtime has not reported yet.
    pub(super) fn has_arrived(&mut self) -> bool {
        let mut first = [std::mem::MaybeUninit::uninit()];
        socket2::SockRef::from(&*self.stream.tcp()).peek(&mut first).is_ok_and(|read| read > 0)
    }

    /// Makes the close not wait for the client: there is no reply that it could miss.
    pub(super) const fn close_quickly(&mut self) {
        if let Close::Open { lingers } = &mut self.close {
            *lingers = false;
        }
    }

    /// Returns the result of a write, or a time-out error if it has been pending for too long.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled_since = None;
            return progress;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        ready!(self.poll_timer(cx, since + self.write_timeout));
        self.close = Close::Done;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the reply")))
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.timer.get_or_insert_with(|| Deadline::at(deadline)).poll(cx, deadline)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Close::Open { lingers } = self.close {
            let closed = self.stream.half().poll_shutdown(cx);
            ready!(self.bounded(cx, closed))?;
            let now = Instant::now();
            self.close = if lingers {
                Close::Lingering { until: now + LINGER_TIME, silent_until: now + LINGER_SILENCE, bytes: 0 }
            } else {
                Close::Done
            };
        }
        ready!(self.poll_linger(cx));
        self.close = Close::Done;
        Poll::Ready(Ok(()))
    }

    /// Ready when the client has closed its side too, or has used up its time. Without this, closing a socket with
    /// unread bytes resets the connection, and the client loses a reply that it has not read yet.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 8 * 1024];
        while let Close::Lingering { until, silent_until, bytes } = &mut self.close {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(self.stream.tcp()).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    *bytes += buffer.filled().len();
                    *silent_until = Instant::now() + LINGER_SILENCE;
                    if *bytes > LINGER_BYTES {
                        break;
                    }
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    let deadline = (*until).min(*silent_until);
                    return self.poll_timer(cx, deadline);
                }
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let result = ready!(this.stream.half().poll_read(cx, buffer));
        if result.is_err() || buffer.filled().len() == before {
            // The client has closed its side, or the connection is broken.
            this.close_quickly();
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.stream.half().poll_write(cx, bytes);
        this.bounded(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.stream.half().poll_write_vectored(cx, slices);
        this.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = this.stream.half().poll_flush(cx);
        this.bounded(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_close(cx)
    }
}
