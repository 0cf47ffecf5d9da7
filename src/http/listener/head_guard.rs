//! The byte stream through which hyper reads an HTTP/1 connection. Every head is held back until it is complete and
//! checked. At a refused one the stream ends for hyper, and the listener answers it. The time-outs for heads and idle
//! connections are kept here too: hyper's own would count an idle connection as a slow head.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::Request;
use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::deadline::Deadline;
use super::head::{self, Framing, Scan, Scanner};
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

/// What a [`HeadGuard`] shares with the loop and the service of its connection while hyper owns it. All of them run in one
/// task, and there is never more than one request between them: hyper reads the next head after it has the last reply.
#[derive(Debug, Default)]
pub(super) struct GuardStatus {
    connection: Arc<ConnectionState>,
    /// While the listener drains: until when another request may begin.
    last_request: OnceLock<Instant>,
    /// How long the last head took to arrive, in microseconds; 0 if it came in one piece.
    head_took: AtomicU64,
    body_open: AtomicBool,
}

impl GuardStatus {
    pub(super) fn of(connection: Arc<ConnectionState>) -> Self {
        Self { connection, ..Self::default() }
    }

    /// Returns the connection's state for the connection limit.
    pub(super) const fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }

    /// Makes the connection end if no other request begins by then. It has to be polled after this call.
    pub(super) fn drain(&self, last_request: Instant) {
        let _ = self.last_request.set(last_request);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.last_request.get().is_some()
    }

    /// Returns the check of the head that hyper last received, which was not refused.
    pub(super) fn head_check(&self) -> HeadCheck {
        let took = Duration::from_micros(self.head_took.load(Ordering::Relaxed));
        HeadCheck { began: (!took.is_zero()).then(|| Stopwatch::started_before(took)), ..HeadCheck::default() }
    }

    /// Reports whether bytes of the last request's body have not been passed to hyper: after a reply now, the
    /// connection cannot be reused.
    pub(super) fn body_open(&self) -> bool {
        self.body_open.load(Ordering::Relaxed)
    }
}

/// A head that is refused: why, and what could be read of it.
pub(super) struct RefusedHead {
    pub(super) check: HeadCheck,
    pub(super) request: Request<()>,
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
    /// Whether the connection waits for a head without hyper, or makes it leave.
    resting: bool,
    /// Bytes that were read and not passed to hyper yet. Holds no memory between requests.
    input: BytesMut,
    /// How many bytes at the front of `input` may be passed to hyper.
    cleared: usize,
    phase: Phase,
    timer: Deadline,
    /// When the current head began to arrive, if it did not arrive in one piece.
    began: Option<Stopwatch>,
    /// If set, every head is refused with this message.
    refusing: Option<&'static str>,
    /// Whether the current reply has already yielded to the other connections of this thread.
    yielded: bool,
    /// Whether the connection ended because its first request did not arrive.
    silent: bool,
}

/// What follows the cleared bytes in `input`.
enum Phase {
    /// A head, or nothing yet.
    Head { scanner: Scanner, waiting: Waiting, deadline: Option<Instant> },
    /// A body.
    Body(Framing),
    /// A head that is refused, and ignored bytes.
    Refused(Box<RefusedHead>),
    /// Nothing that is read: the client or a time-out has ended the connection, a refused head was taken, or a body's
    /// framing is malformed.
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
            resting: true,
            input: BytesMut::new(),
            cleared: 0,
            phase: Phase::head(Waiting::First),
            timer: Deadline::at(Instant::now() + limits.head_timeout),
            began: None,
            refusing: None,
            yielded: false,
            silent: false,
        }
    }

    /// Refuses every request with this message.
    pub(super) const fn refusing(mut self, violation: &'static str) -> Self {
        self.refusing = Some(violation);
        self
    }

    /// Waits for the next request, without hyper. Ready with true when there is one for hyper; with false when a head is
    /// refused, or the connection has ended.
    pub(super) fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        ready!(self.poll_cleared(cx, None))?;
        Poll::Ready(Ok(self.cleared > 0))
    }

    /// Reports whether hyper had to leave because no request followed, so that the connection continues without it.
    pub(super) const fn is_resting(&self) -> bool {
        self.resting && matches!(self.phase, Phase::Head { .. })
    }

    /// Returns the head that is to be refused, if the connection came to one. Nothing after it is read.
    pub(super) fn take_refused(&mut self) -> Option<RefusedHead> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Refused(refused) => Some(*refused),
            Phase::Head { .. } | Phase::Body(_) | Phase::Ended => None,
        }
    }

    /// Reports whether the connection ended because its first request did not arrive.
    pub(super) const fn was_silent(&self) -> bool {
        self.silent
    }

    /// Returns the stream, which is to be closed.
    pub(super) fn into_transport(self) -> Transport {
        self.transport
    }

    /// Checks bytes that were not checked before. Returns how many of them may be passed to hyper.
    fn check(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.phase {
            Phase::Head { .. } => Ok(self.check_head(bytes)),
            Phase::Body(framing) => {
                let Ok(taken) = framing.follow(bytes) else {
                    self.phase = Phase::Ended;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body"));
                };
                if framing.is_done() {
                    self.expect_head();
                }
                Ok(taken)
            }
            Phase::Refused(_) | Phase::Ended => Ok(0),
        }
    }

    fn check_head(&mut self, bytes: &[u8]) -> usize {
        let Phase::Head { scanner, waiting, deadline } = &mut self.phase else { return 0 };
        let scan = scanner.scan(bytes);
        let (ignored, head) = bytes.split_at(scanner.start());
        // Empty lines before a request are not its first byte.
        if head.is_empty() || head == b"\r" {
            return 0;
        }
        if *waiting != Waiting::Rest {
            // For the first request the time runs from the end of the handshake.
            if *waiting == Waiting::Idle {
                *deadline = None;
            }
            *waiting = Waiting::Rest;
        }
        let checked = match scan {
            Scan::Complete(_) if let Some(violation) = self.refusing => {
                Err(HeadCheck::violating(HeadError::Malformed, violation))
            }
            Scan::Complete(end) if end - ignored.len() <= self.head_limit => {
                let (head, rest) = head.split_at(end - ignored.len());
                head::check(head).map(|framing| end + self.begin_request(framing, rest))
            }
            Scan::Partial if head.len() <= self.head_limit => {
                self.began.get_or_insert_with(Stopwatch::start);
                Ok(0)
            }
            Scan::Complete(_) | Scan::Partial => Err(head::too_large()),
            Scan::BareLineEnd => Err(head::bare_line_end()),
        };
        checked.unwrap_or_else(|violation| {
            self.refuse(violation, head);
            0
        })
    }

    /// Begins a request whose head is good. Returns how many of the bytes after it may be passed to hyper with it.
    fn begin_request(&mut self, mut framing: Framing, rest: &[u8]) -> usize {
        self.resting = false;
        self.serving = true;
        let took = self.began.take().map_or(0, |began| u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        self.status.head_took.store(took, Ordering::Relaxed);
        // Of a body that the service leaves unread, hyper discards one piece: chunks must not look as if they were all read.
        let taken = if framing.has_length() { framing.follow(rest).unwrap_or_default() } else { 0 };
        if framing.is_done() {
            self.expect_head();
        } else {
            self.status.body_open.store(true, Ordering::Relaxed);
            self.phase = Phase::Body(framing);
        }
        taken
    }

    fn expect_head(&mut self) {
        self.status.body_open.store(false, Ordering::Relaxed);
        self.phase = Phase::head(Waiting::Idle);
    }

    fn refuse(&mut self, violation: HeadCheck, head: &[u8]) {
        let (seen, _) = head.split_at(head.len().min(self.head_limit));
        let check = HeadCheck { began: self.began.take(), ..violation };
        self.phase = Phase::Refused(Box::new(RefusedHead { check, request: head::readable(seen) }));
    }

    /// Ready when bytes may be passed to hyper, and when none will be for now: a head is refused, the connection has
    /// ended, or hyper has to leave it. With `into`, what was read just now is passed on at once.
    fn poll_cleared(&mut self, cx: &mut Context<'_>, mut into: Option<&mut ReadBufCursor<'_>>) -> Poll<io::Result<()>> {
        let serves = into.is_some();
        loop {
            if self.cleared == 0 && !self.input.is_empty() {
                let input = std::mem::take(&mut self.input);
                let checked = self.check(&input);
                self.input = input;
                self.cleared = checked?;
            }
            let stays = matches!(self.phase, Phase::Head { .. } | Phase::Body(_)) && !(serves && self.resting);
            if self.cleared > 0 || !stays || ready!(self.poll_fill(cx, into.as_deref_mut()))? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Reads more bytes, or enforces the deadline. Bytes that may go to hyper at once are checked where they were read, and
    /// copied there alone. Ready with true when there were some.
    fn poll_fill(&mut self, cx: &mut Context<'_>, into: Option<&mut ReadBufCursor<'_>>) -> Poll<io::Result<bool>> {
        let read = READ_BUFFER.with_borrow_mut(|bytes| {
            let mut buffer = ReadBuf::new(bytes);
            ready!(Pin::new(&mut self.transport).poll_read(cx, &mut buffer))?;
            let (mut read, mut passed) = (buffer.filled(), 0);
            if read.is_empty() {
                self.phase = Phase::Ended;
            } else if let Some(into) = into.filter(|_| self.input.is_empty()) {
                let cleared = self.check(read)?;
                passed = cleared.min(into.remaining());
                self.cleared = cleared - passed;
                into.put_slice(read.split_off(..passed).unwrap_or_default());
            }
            self.input.extend_from_slice(read);
            Poll::Ready(Ok(passed > 0))
        });
        match read {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => self.poll_waiting(cx).map(|()| Ok(false)),
        }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
        let rests_at = deadline.checked_sub(span).map_or(deadline, |since| since + self.trim_idle_after);
        let last_request = self.status.last_request.get().copied().filter(|_| waiting != Waiting::Rest);
        deadline = last_request.map_or(deadline, |last| last.min(deadline));
        if waiting == Waiting::Idle && self.serving {
            self.serving = false;
            self.status.connection().end_request();
        }
        if waiting == Waiting::Idle && !self.resting && rests_at < deadline {
            ready!(self.timer.poll(cx, rests_at));
            self.resting = true;
            return Poll::Ready(());
        }
        ready!(self.timer.poll(cx, deadline));
        if waiting == Waiting::Rest {
            let input = std::mem::take(&mut self.input);
            self.refuse(head::too_slow(), &input);
        } else if last_request.is_some() && self.transport.has_arrived() {
            // A last check of the socket: many connections end at this moment, and the runtime may not have reported
            // this request yet.
            return Poll::Pending;
        } else {
            self.silent = waiting == Waiting::First && last_request.is_none();
            self.transport.close_quickly();
            self.phase = Phase::Ended;
        }
        Poll::Ready(())
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
}

impl hyper::rt::Read for HeadGuard {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let room = into.remaining();
        ready!(this.poll_cleared(cx, Some(&mut into)))?;
        if into.remaining() == room {
            let length = this.cleared.min(room);
            into.put_slice(this.input.split_at(length).0);
            this.input.advance(length);
            this.cleared -= length;
            if this.input.is_empty() {
                this.input = BytesMut::new();
            }
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

    /// The connection's loop closes: it may have a refused head to answer first, and hyper's memory is free by then.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
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
