//! The byte stream through which hyper reads an HTTP/1 connection. Every head is held back until it is complete and
//! checked. A refused head is replaced by a harmless one, and nothing after it is read as HTTP. The time-outs for heads
//! and idle connections are kept here too: hyper's own would count an idle connection as a slow head.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::deadline::Deadline;
use super::head::{self, Framing, HeadRefused, Scan, Scanner};
use super::shared::{ConnectionState, HeadCheck, HeadError};
use super::transport::Transport;
use crate::rules::Limits;
use crate::telemetry::Stopwatch;

/// The most bytes per read from the transport.
const READ_SIZE: usize = 8 * 1024;

thread_local! {
    /// The read buffer of a thread: an idle connection has no buffer of its own, and none is cleared for each read.
    static READ_BUFFER: RefCell<[u8; READ_SIZE]> = const { RefCell::new([0; READ_SIZE]) };
}

/// How many empty lines may precede a request.
const EMPTY_LINES: u8 = 4;

/// What the [`HeadGuard`] reports to the service of its connection. There is never more than one request between the
/// two: hyper reads the next head after the last reply was written.
#[derive(Debug, Default)]
pub(super) struct GuardStatus {
    connection: Arc<ConnectionState>,
    fields: Mutex<StatusFields>,
}

#[derive(Debug, Default)]
struct StatusFields {
    /// While the listener drains: until when another request may begin.
    last_request: Option<Instant>,
    facts: Option<HeadCheck>,
    body_open: bool,
    silent: bool,
    trim_idle: bool,
}

impl GuardStatus {
    pub(super) fn of(connection: Arc<ConnectionState>) -> Self {
        Self { connection, fields: Mutex::default() }
    }

    /// Returns the connection's state for the connection limit.
    pub(super) const fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }

    /// Makes the connection end if no other request begins by then. It has to be polled after this call.
    pub(super) fn drain(&self, last_request: Instant) {
        self.lock().last_request = Some(last_request);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.lock().last_request.is_some()
    }

    /// Takes the result of the check of the head that hyper last received.
    pub(super) fn take_facts(&self) -> HeadCheck {
        let unchecked = HeadCheck::violating(HeadError::Malformed, "the request could not be read");
        self.lock().facts.take().unwrap_or(unchecked)
    }

    /// Reports whether bytes of the last request's body have not been passed to hyper: after a reply now, the
    /// connection cannot be reused.
    pub(super) fn body_open(&self) -> bool {
        self.lock().body_open
    }

    /// Reports whether the connection was closed because its first request did not arrive.
    pub(super) fn was_silent(&self) -> bool {
        self.lock().silent
    }

    /// Reports, once, whether the connection has been idle so long that hyper and its buffers can be dropped.
    pub(super) fn take_trim_idle(&self) -> bool {
        std::mem::take(&mut self.lock().trim_idle)
    }

    fn set_head(&self, facts: HeadCheck, body_open: bool) {
        let mut fields = self.lock();
        fields.facts = Some(facts);
        fields.body_open = body_open;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, StatusFields> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guards the reading side of a connection; writes are passed through.
pub(super) struct HeadGuard {
    transport: Transport,
    status: Arc<GuardStatus>,
    head_limit: usize,
    head_timeout: Duration,
    idle_timeout: Duration,
    trim_idle_after: Duration,
    /// Whether a request has begun whose reply is not completely written.
    serving: bool,
    /// Whether the connection's buffers were released since its last request.
    trimmed: bool,
    /// Bytes that were read and not passed to hyper yet. Holds no memory between requests.
    input: BytesMut,
    /// How many bytes at the front of `input` may be passed to hyper.
    cleared: usize,
    phase: Phase,
    timer: Deadline,
    /// Empty lines seen since the last request.
    empty_lines: u8,
    /// When the current head began to arrive, if it did not arrive in one piece.
    began: Option<Stopwatch>,
    /// If set, every head is refused with this message.
    refusing: Option<&'static str>,
    /// Whether the current reply has already yielded to the other connections of this thread.
    yielded: bool,
}

/// What follows the cleared bytes in `input`.
enum Phase {
    /// A head, or nothing yet.
    Head { scanner: Scanner, waiting: Waiting, deadline: Option<Instant> },
    /// A body.
    Body(Framing),
    /// Ignored bytes: a head was refused, or a body's framing is malformed.
    Refused,
    /// The client, or a time-out, has ended the connection.
    Ended,
}

/// What the connection waits for. Determines its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte after the handshake.
    First,
    /// The first byte of another request.
    Idle,
    /// The rest of a head.
    Rest,
}

/// The precondition for hyper's next read.
enum Next {
    /// None: bytes are cleared.
    Cleared,
    /// More bytes from the client are needed.
    Fill,
    /// No more bytes will be cleared: hyper answers the requests it has, and closes.
    Never,
    /// The connection has ended.
    End,
}

impl Phase {
    fn head(waiting: Waiting) -> Self {
        Self::Head { scanner: Scanner::default(), waiting, deadline: None }
    }
}

impl HeadGuard {
    pub(super) fn new(
        transport: Transport,
        status: Arc<GuardStatus>,
        limits: &Limits,
        trim_idle_after: Duration,
    ) -> Self {
        Self {
            transport,
            status,
            head_limit: limits.head,
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            trim_idle_after,
            serving: false,
            trimmed: false,
            input: BytesMut::new(),
            cleared: 0,
            phase: Phase::head(Waiting::First),
            timer: Deadline::at(Instant::now() + limits.head_timeout),
            empty_lines: 0,
            began: None,
            refusing: None,
            yielded: false,
        }
    }

    /// Refuses every request with this message.
    pub(super) const fn refusing(mut self, violation: &'static str) -> Self {
        self.refusing = Some(violation);
        self
    }

    /// Checks the bytes that were read, and clears those that hyper may have.
    fn advance(&mut self) -> io::Result<Next> {
        match self.phase {
            Phase::Head { .. } => self.advance_head(),
            Phase::Body(_) => self.advance_body()?,
            Phase::Refused => return Ok(Next::Never),
            Phase::Ended => return Ok(Next::End),
        }
        Ok(if self.cleared > 0 { Next::Cleared } else { Next::Fill })
    }

    fn advance_body(&mut self) -> io::Result<()> {
        let Phase::Body(framing) = &mut self.phase else { return Ok(()) };
        let Ok(taken) = framing.follow(&self.input) else {
            self.phase = Phase::Refused;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body"));
        };
        self.cleared = taken;
        if framing.is_done() {
            self.status.lock().body_open = false;
            self.phase = Phase::head(Waiting::Idle);
        }
        Ok(())
    }

    fn advance_head(&mut self) {
        let Phase::Head { scanner, waiting, deadline } = &mut self.phase else { return };
        // Empty lines before a request are ignored (RFC 9112, section 2.2) and are not its first byte.
        while *waiting != Waiting::Rest && self.empty_lines < EMPTY_LINES && self.input.starts_with(b"\r\n") {
            self.input.advance(2);
            self.empty_lines += 1;
        }
        if self.input.is_empty() || *self.input == *b"\r" {
            return;
        }
        if *waiting != Waiting::Rest {
            // For the first request the time runs from the end of the handshake.
            if *waiting == Waiting::Idle {
                *deadline = None;
            }
            *waiting = Waiting::Rest;
        }
        match scanner.scan(&self.input) {
            Scan::Complete(_) if let Some(violation) = self.refusing => {
                self.refuse_partial(HeadCheck::violating(HeadError::Malformed, violation));
            }
            Scan::Complete(length) if length <= self.head_limit => match head::check(self.input.split_at(length).0) {
                Ok(framing) => self.clear_head(length, framing),
                Err(refused) => self.refuse(&refused),
            },
            Scan::Partial if self.input.len() <= self.head_limit => {
                self.began.get_or_insert_with(Stopwatch::start);
            }
            Scan::Complete(_) | Scan::Partial => self.refuse_partial(head::too_large()),
            Scan::BareLineEnd => self.refuse_partial(head::bare_line_end()),
        }
    }

    fn clear_head(&mut self, length: usize, framing: Framing) {
        self.cleared = length;
        self.trimmed = false;
        self.serving = true;
        self.empty_lines = 0;
        let body_open = !framing.is_done();
        self.status.set_head(HeadCheck { began: self.began.take(), ..HeadCheck::default() }, body_open);
        self.phase = if body_open { Phase::Body(framing) } else { Phase::head(Waiting::Idle) };
    }

    fn refuse_partial(&mut self, facts: HeadCheck) {
        let (seen, _) = self.input.split_at(self.input.len().min(self.head_limit));
        let refused = head::refuse_partial(seen, facts);
        self.refuse(&refused);
    }

    fn refuse(&mut self, refused: &HeadRefused) {
        self.input = BytesMut::from(refused.replacement.as_slice());
        self.cleared = self.input.len();
        self.status.set_head(HeadCheck { began: self.began.take(), ..refused.facts }, false);
        self.phase = Phase::Refused;
    }

    /// Reads more bytes, or enforces the deadline. Ready with false: the connection has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let (transport, input) = (Pin::new(&mut self.transport), &mut self.input);
        let result = READ_BUFFER.with_borrow_mut(|bytes| {
            let mut buffer = ReadBuf::new(bytes);
            transport.poll_read(cx, &mut buffer).map_ok(|()| {
                input.extend_from_slice(buffer.filled());
                !buffer.filled().is_empty()
            })
        });
        match result {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => self.poll_waiting(cx),
        }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Phase::Head { waiting, deadline, .. } = &mut self.phase else { return Poll::Pending };
        let waiting = *waiting;
        if waiting == Waiting::Idle && self.yielded {
            // The client has not taken the last reply: it is not idle, and the transport bounds how slow it may be.
            *deadline = None;
            return Poll::Pending;
        }
        let may_idle = waiting == Waiting::Idle && self.status.connection().is_authenticated();
        let span = if may_idle { self.idle_timeout } else { self.head_timeout };
        let mut deadline = *deadline.get_or_insert_with(|| Instant::now() + span);
        let trim_at = deadline.checked_sub(span).map_or(deadline, |since| since + self.trim_idle_after);
        let last_request = self.status.lock().last_request.filter(|_| waiting != Waiting::Rest);
        deadline = last_request.map_or(deadline, |last| last.min(deadline));
        if waiting == Waiting::Idle && self.serving {
            self.serving = false;
            self.status.connection().end_request();
        }
        if waiting == Waiting::Idle && !self.trimmed && trim_at < deadline {
            ready!(self.timer.poll(cx, trim_at));
            self.trimmed = true;
            self.status.lock().trim_idle = true;
        }
        ready!(self.timer.poll(cx, deadline));
        if waiting == Waiting::Rest {
            self.refuse_partial(head::too_slow());
            Poll::Ready(Ok(true))
        } else if last_request.is_some() && self.transport.has_arrived() {
            // A last check of the socket: many connections end at this moment, and the runtime may not have reported
            // this request yet.
            Poll::Pending
        } else {
            self.status.lock().silent = waiting == Waiting::First && last_request.is_none();
            self.transport.close_quickly();
            Poll::Ready(Ok(false))
        }
    }

    /// Ready when a reply may be written: after the other connections of this thread that have work had their turn. All
    /// their replies are then written in one go. Writing first and reading their requests afterwards would wake the
    /// reader of the replies for each of them anew, which costs as much as a short request.
    fn poll_yield(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Puts back the bytes that hyper has read and not used, when hyper is detached from this connection.
    pub(super) fn put_back(&mut self, read: &[u8]) {
        if !read.is_empty() {
            let behind = std::mem::replace(&mut self.input, BytesMut::from(read));
            self.input.extend_from_slice(&behind);
            self.cleared += read.len();
        }
    }

    /// Ready when there is something for hyper to read: a checked head, body bytes, or the end of the connection.
    pub(super) fn poll_cleared(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.cleared == 0 {
            match self.advance()? {
                Next::Cleared | Next::End => break,
                Next::Never => return Poll::Pending,
                Next::Fill => {
                    if !ready!(self.poll_fill(cx))? {
                        self.phase = Phase::Ended;
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Read for HeadGuard {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_cleared(cx))?;
        let length = this.cleared.min(into.remaining());
        into.put_slice(this.input.split_at(length).0);
        this.input.advance(length);
        this.cleared -= length;
        if this.input.is_empty() {
            this.input = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for HeadGuard {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_yield(cx));
        Pin::new(&mut this.transport).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_yield(cx));
        Pin::new(&mut this.transport).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.transport).poll_flush(cx))?;
        this.yielded = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use hyper::rt::Write as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::super::transport::{CountedSocket, Stream};
    use super::*;
    use crate::domain::UnixMillis;
    use crate::rules::{LoadOptions, load};

    /// The default limits.
    fn limits() -> Limits {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("gateway.toml"), "").unwrap();
        load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap().gateway.limits.clone()
    }

    #[tokio::test]
    async fn a_reply_yields_to_other_connections_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let limits = limits();
        let transport = Transport::new(Stream::Plain(CountedSocket::new(socket)), limits.body_timeout);
        let mut io = HeadGuard::new(transport, Arc::default(), &limits, Duration::from_secs(1));
        for reply in [&b"first"[..], b"second"] {
            let mut polls = 0;
            let mut write = async |bytes: &[u8]| {
                poll_fn(|cx| {
                    polls += 1;
                    Pin::new(&mut io).poll_write_vectored(cx, &[IoSlice::new(bytes)])
                })
                .await
                .unwrap()
            };
            let (begin, rest) = reply.split_at(2);
            // The write must wake its task itself, or this would never end.
            assert_eq!((write(begin).await, write(rest).await), (2, rest.len()));
            assert_eq!(polls, 3, "the rest of a reply does not yield again");
            poll_fn(|cx| Pin::new(&mut io).poll_flush(cx)).await.unwrap();
            let mut read = [0; 16];
            client.readable().await.unwrap();
            assert_eq!(client.try_read(&mut read).unwrap(), reply.len());
        }
    }
}
