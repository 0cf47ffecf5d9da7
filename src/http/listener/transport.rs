//! The bytes of a connection, TLS or plain, and of its requests' bodies: ends a reply that is taken too slowly, and closes
//! so that the client can read the last one.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_rustls::server::TlsStream;

use super::deadline::Deadline;
use super::pace::Pace;
use crate::domain::wide;

/// The most bytes that are discarded from a client after the last reply.
pub(super) const LINGER_BYTES: usize = 32 * 1024 * 1024;
/// How long a client may be silent before the close stops waiting for it.
pub(super) const LINGER_SILENCE: Duration = Duration::from_secs(2);
/// How long a client may keep sending after the last reply, in all.
pub(super) const LINGER_TIME: Duration = Duration::from_secs(10);

/// The socket, with or without TLS.
pub(super) enum Stream {
    /// Without TLS.
    Plain(CountedSocket),
    /// After the handshake.
    Tls(Box<TlsStream<CountedSocket>>),
}

impl Stream {
    fn tcp(&mut self) -> &mut CountedSocket {
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

/// A socket that counts what it has taken from us. TLS has a buffer of its own, whose filling shows nothing of the client.
pub(super) struct CountedSocket {
    socket: TcpStream,
    written: u64,
}

impl CountedSocket {
    pub(super) const fn new(socket: TcpStream) -> Self {
        Self { socket, written: 0 }
    }

    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = written {
            self.written += wide(written);
        }
        written
    }
}

impl AsyncRead for CountedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CountedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Reports whether bytes have arrived that the runtime may not have reported yet.
pub(super) fn has_arrived(socket: &TcpStream) -> bool {
    let mut first = [std::mem::MaybeUninit::uninit()];
    socket2::SockRef::from(socket).peek(&mut first).is_ok_and(|read| read > 0)
}

/// Both halves of a stream of either kind.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A [`Stream`] whose client has to take what is written, and with a lingering close.
pub(super) struct Transport {
    stream: Stream,
    pace: Pace,
    linger_timer: Option<Deadline>,
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
    /// Wraps a stream. `pace_period`: over which time it is averaged how fast the client takes a reply.
    pub(super) const fn new(stream: Stream, pace_period: Duration) -> Self {
        let close = Close::Open { lingers: true };
        Self { stream, pace: Pace::over(pace_period), linger_timer: None, close }
    }

    /// Reports whether bytes have arrived that the runtime has not reported yet.
    pub(super) fn has_arrived(&mut self) -> bool {
        has_arrived(&self.stream.tcp().socket)
    }

    /// Makes the close not wait for the client: there is no reply that it could miss.
    pub(super) const fn close_quickly(&mut self) {
        if let Close::Open { lingers } = &mut self.close {
            *lingers = false;
        }
    }

    /// Returns the result of a write, or a time-out error if the client takes too little.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            return progress;
        }
        ready!(self.pace.poll_too_slow(cx, self.stream.tcp().written));
        self.close = Close::Done;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the reply")))
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
                    return self.linger_timer.get_or_insert_with(|| Deadline::at(deadline)).poll(cx, deadline);
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
        if flushed.is_ready() {
            this.pace.all_taken();
        }
        this.bounded(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_close(cx)
    }
}

/// A request's body as it arrives.
///
/// Over HTTP/2, a body that is dropped before its end is still read and discarded, for as long as the close of an
/// HTTP/1 connection would wait. Otherwise h2 would reset the stream right after the reply, as RFC 9113, 8.1 allows;
/// but some clients that are still sending (curl before 8) treat the reset as the outcome and never show the reply.
pub struct Inbound(Kind);

enum Kind {
    /// A refused request's, which is not read.
    Unread,
    /// Its connection lingers as a whole when it closes.
    Http1(Incoming),
    Http2(Http2),
}

struct Http2 {
    /// Taken by the drop.
    stream: Option<RecvStream>,
    /// How many bytes are still to come, if the length was announced.
    remaining: Option<u64>,
    /// Notified when the service begins to read.
    wanted: Option<oneshot::Sender<()>>,
    data_ended: bool,
}

impl Inbound {
    /// The empty body of a request that is refused unread.
    pub(super) const UNREAD: Self = Self(Kind::Unread);

    pub(super) const fn http1(body: Incoming) -> Self {
        Self(Kind::Http1(body))
    }

    /// Wraps an HTTP/2 body. `announced`: the length that the head states, in bytes. `wanted` is notified when the
    /// service begins to read.
    pub(super) const fn http2(stream: RecvStream, announced: Option<u64>, wanted: Option<oneshot::Sender<()>>) -> Self {
        Self(Kind::Http2(Http2 { stream: Some(stream), remaining: announced, wanted, data_ended: false }))
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>> {
        match &mut self.get_mut().0 {
            Kind::Unread => Poll::Ready(None),
            Kind::Http1(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Kind::Http2(body) => body.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Unread => true,
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Http2(body) => body.stream.as_ref().is_none_or(RecvStream::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Unread => SizeHint::with_exact(0),
            Kind::Http1(body) => body.size_hint(),
            Kind::Http2(_) if self.is_end_stream() => SizeHint::with_exact(0),
            Kind::Http2(body) => body.remaining.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

impl Http2 {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        if let Some(wanted) = self.wanted.take() {
            let _ = wanted.send(());
        }
        if !self.data_ended {
            if let Some(data) = ready!(poll_data(stream, cx)?) {
                self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(wide(data.len())));
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            self.data_ended = true;
        }
        stream.poll_trailers(cx).map(|trailers| trailers.transpose().map(|trailers| trailers.map(Frame::trailers)))
    }
}

/// Returns the next data, and lets the client send as much again.
fn poll_data(stream: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, h2::Error>> {
    let Some(data) = ready!(stream.poll_data(cx)?) else { return Poll::Ready(Ok(None)) };
    stream.flow_control().release_capacity(data.len())?;
    Poll::Ready(Ok(Some(data)))
}

impl Drop for Http2 {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take().filter(|stream| !stream.is_end_stream()) else { return };
        // Without a runtime, the connection has ended too.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(discard(stream));
        }
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Unread => "Inbound(Unread)",
            Kind::Http1(_) => "Inbound(Http1)",
            Kind::Http2(_) => "Inbound(Http2)",
        })
    }
}

/// Reads and discards the rest of a body, until its end or the limits of a lingering close.
async fn discard(mut stream: RecvStream) {
    let until = Instant::now() + LINGER_TIME;
    let mut bytes = 0;
    while bytes <= LINGER_BYTES {
        let patience = LINGER_SILENCE.min(until.saturating_duration_since(Instant::now()));
        let next = std::future::poll_fn(|cx| poll_data(&mut stream, cx));
        let Ok(Ok(Some(data))) = timeout(patience, next).await else { return };
        bytes += data.len();
    }
}
