//! A request's body, and how the rest of it is discarded when the service does not read it to its end.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::transport::{LINGER_BYTES, LINGER_SILENCE, LINGER_TIME};
use crate::domain::wide;

/// A request's body as it arrives.
///
/// Over HTTP/2, a body that is dropped before its end is still read and discarded, for as long as the close of an
/// HTTP/1 connection would wait. Otherwise h2 would reset the stream right after the reply, as RFC 9113, 8.1 allows;
/// but some clients that are still sending (curl before 8) treat the reset as the outcome and never show the reply.
pub struct Inbound(Kind);

enum Kind {
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
            Kind::Http1(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Kind::Http2(body) => body.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Http2(body) => body.stream.as_ref().is_none_or(RecvStream::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
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
        f.write_str(if matches!(self.0, Kind::Http1(_)) { "Inbound(Http1)" } else { "Inbound(Http2)" })
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
