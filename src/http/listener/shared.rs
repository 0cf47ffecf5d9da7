//! The interface between the listener and the service behind it, and the state that all connections share: the service,
//! the settings, the lifecycle, and the slots that limit their number.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::settings::{ConnectionRules, ListenerSettings};
use super::transport::Inbound;
use crate::error::AdmissionError;
use crate::reply_room::ReplyRoom;
use crate::telemetry::{Metrics, Stopwatch};

/// How long an idle connection may still begin a request after the listener stops accepting, or after a handshake that ends
/// later. A request that was on its way when the drain began is then answered, and so is one from a client that sends
/// without pause, and the first one of a connection that was accepted before.
pub(super) const LAST_REQUEST: Duration = Duration::from_millis(500);

/// Answers requests. It must refuse a request whose [`HeadCheck`] holds a violation.
pub trait Service: Send + Sync + 'static {
    /// Answers one request, on the worker thread of its connection; it may spawn tasks there. The future is dropped
    /// when the client disconnects. Work that must not stop half-way belongs in a task of its own, which a drain waits
    /// for.
    fn call(
        &self,
        request: Request<Inbound>,
        connection_info: ConnectionInfo,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// The state that all connections share.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) settings: ListenerSettings,
    pub(super) slots: Arc<ConnectionSlots>,
    /// Whether clients are made to disconnect: HTTP/1 replies then close their connections.
    pub(super) leaving: Arc<AtomicBool>,
}

impl<S> Shared<S> {
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }
}

/// The lifecycle stage of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerLife {
    /// Accepting.
    Serving,
    /// Accepting, while clients are made to disconnect.
    Leaving,
    /// Finishing open requests. A connection may begin another one for this long.
    Draining { began: Instant, last_request: Duration },
    /// Dropping the remaining requests.
    Cut,
}

/// Waits for the next [`WorkerLife`]. A listener whose handle was dropped has ended.
#[derive(Debug, Clone)]
pub(super) struct Lifecycle {
    receiver: watch::Receiver<WorkerLife>,
    /// Since when the connection waits for its client.
    ready: Instant,
}

impl Lifecycle {
    pub(super) fn new(receiver: watch::Receiver<WorkerLife>) -> Self {
        Self { receiver, ready: Instant::now() }
    }

    /// Notes that the connection waits for its client from now on: a drain gives it as long as one that waited before.
    pub(super) fn set_ready(&mut self) {
        self.ready = Instant::now();
    }

    /// Waits until clients are made to disconnect.
    pub(super) async fn leaving(&mut self) {
        let _ = self.receiver.wait_for(|life| *life != WorkerLife::Serving).await;
    }

    /// Waits until no new connection is accepted. Returns until when this connection may begin another request.
    pub(super) async fn draining(&mut self) -> Instant {
        let ready = self.ready;
        match self.receiver.wait_for(|life| !matches!(life, WorkerLife::Serving | WorkerLife::Leaving)).await.as_deref()
        {
            Ok(WorkerLife::Draining { began, last_request }) => ready.max(*began) + *last_request,
            _ => Instant::now(),
        }
    }

    /// Waits until the connection may begin no other request.
    pub(super) async fn last_request(&mut self) {
        let until = self.draining().await;
        tokio::time::sleep_until(until).await;
    }

    /// Waits until everything has to end.
    pub(super) async fn cut(&mut self) {
        let _ = self.receiver.wait_for(|life| *life == WorkerLife::Cut).await;
    }
}

/// An accepted connection that a worker has to serve.
pub(super) struct AcceptedConnection {
    pub(super) socket: std::net::TcpStream,
    pub(super) from: SocketAddr,
    pub(super) slot: Slot,
}

/// What the listener knows of a request, beside the request itself.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The client.
    pub peer: Peer,
    /// The check of its head.
    pub head_check: HeadCheck,
    /// Notified when the caller is authenticated.
    pub connection: Arc<ConnectionState>,
}

/// The other end of a connection, as the listener knows it before any request is read.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address the connection counts as coming from: the socket's, or the PROXY header's.
    pub address: IpAddr,
    /// The negotiated protocol.
    pub protocol: Protocol,
}

/// The protocol that ALPN chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, also without ALPN.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What the listener found in a request's head that hyper does not report (contract section 3, "What hyper leaves to its
/// user").
///
/// A request with a violation is refused before anything else: over HTTP/1 it has what could be read of its head, and no
/// body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadCheck {
    /// Why the head is refused, worded for the caller; an HTTP/1 connection closes after the reply.
    pub violation: Option<&'static str>,
    /// The kind of violation, when there is one.
    pub fault: HeadError,
    /// When its first byte came, if it did not come in one piece.
    pub began: Option<Stopwatch>,
}

/// The kinds of violation of a head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeadError {
    /// It is not HTTP as it is allowed here.
    #[default]
    Malformed,
    /// It is over `limits.head`, or has too many header lines.
    TooLarge,
    /// It did not arrive within `limits.head_timeout`.
    TooSlow,
}

impl HeadCheck {
    /// Marks a head as refused.
    #[must_use]
    pub const fn violating(fault: HeadError, violation: &'static str) -> Self {
        Self { violation: Some(violation), fault, began: None }
    }

    /// Returns the refusal of the request, if its head is refused.
    #[must_use]
    pub fn refusal(&self) -> Option<AdmissionError> {
        self.violation.map(|violation| match self.fault {
            HeadError::Malformed => AdmissionError::Malformed(violation),
            HeadError::TooLarge => AdmissionError::HeadTooLarge,
            HeadError::TooSlow => AdmissionError::HeadTooSlow,
        })
    }
}

/// How many candidates for eviction one pass over all connections selects, among those that were never authenticated. A
/// client that opens connections without end then costs one pass for that many connections instead of one for each.
const CHOSEN_AT_ONCE: usize = 64;
/// The places that authenticated connections leave to others, as a part of all: without any, new connections would evict
/// each other in their handshakes.
const NEWCOMERS_SHARE: usize = 8;
/// How many evicted connections may still be open when another one is accepted: each holds a file descriptor beyond the
/// limit.
const CLOSING: usize = 32;

/// The state of one connection, as the connection limit needs it: since when it is idle, and whether a request on it
/// was ever authenticated.
///
/// Until the first authentication the connection may be evicted at any moment, even during a request; after that only
/// between requests.
#[derive(Debug)]
pub struct ConnectionState {
    opened: Instant,
    /// [`EVICTED`], or the milliseconds from `opened` to the start of its idle time, shifted above [`AUTHENTICATED`]
    /// and [`BUSY`].
    bits: AtomicU64,
    evicted: Notify,
    room: ReplyRoom,
}

/// A request that must not be interrupted is being served.
const BUSY: u64 = 1;
/// A request was authenticated.
const AUTHENTICATED: u64 = 2;
const FLAGS: u32 = 2;
const EVICTED: u64 = u64::MAX;

impl Default for ConnectionState {
    fn default() -> Self {
        Self { opened: Instant::now(), bits: AtomicU64::new(0), evicted: Notify::new(), room: ReplyRoom::default() }
    }
}

impl ConnectionState {
    /// Marks the connection busy, if a request on it was ever authenticated.
    pub fn begin_request(&self) {
        self.update(|bits| if bits & AUTHENTICATED == 0 { bits } else { bits | BUSY });
    }

    /// Marks the current request authenticated: from now on it is not interrupted. Returns false if the connection was
    /// evicted already, so that the client would not receive the reply.
    pub fn authenticate(&self) -> bool {
        self.update(|bits| bits | AUTHENTICATED | BUSY)
    }

    /// Marks the connection idle from now on: every request was replied to.
    pub fn end_request(&self) {
        let idle_since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or_default();
        self.update(|bits| idle_since << FLAGS | bits & AUTHENTICATED);
    }

    /// Returns the room for replies that the client has not taken yet.
    #[must_use]
    pub const fn room(&self) -> &ReplyRoom {
        &self.room
    }

    /// Returns whether a request was ever authenticated.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.bits.load(Ordering::Acquire) & AUTHENTICATED != 0
    }

    /// Waits until the connection is evicted.
    pub async fn evicted(&self) {
        // `Notify` keeps a permit for a connection that does not wait yet.
        self.evicted.notified().await;
    }

    /// Changes the state. Returns false if the connection is evicted, which is final.
    fn update(&self, change: impl Fn(u64) -> u64) -> bool {
        let change = |bits| (bits != EVICTED).then(|| change(bits));
        self.bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }

    /// Returns the connection as a candidate for eviction, unless it is busy or evicted.
    fn candidate(&self) -> Option<Candidate> {
        let bits = self.bits.load(Ordering::Acquire);
        // `EVICTED` has this bit set, too.
        if bits & BUSY != 0 {
            return None;
        }
        let idle_since = self.opened + Duration::from_millis(bits >> FLAGS);
        Some(Candidate { authenticated: bits & AUTHENTICATED != 0, idle_since, slot: 0, bits })
    }
}

/// A connection that may be evicted. Of those that were authenticated, and of the others, the smallest is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    authenticated: bool,
    idle_since: Instant,
    slot: usize,
    /// Its state when it was selected: it is evicted only if this is still its state.
    bits: u64,
}

/// All slots of a listener.
pub struct ConnectionSlots {
    rules: Arc<ArcSwap<ConnectionRules>>,
    metrics: Arc<Metrics>,
    /// Whether the last accept succeeded.
    accepting: AtomicBool,
    /// Notified when a connection was closed.
    closed: Notify,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Option<Arc<ConnectionState>>>,
    free: Vec<usize>,
    /// How many connections are evicted, but not closed yet.
    closing: usize,
    /// The next connections to evict, the first choice last.
    chosen: Vec<Candidate>,
}

impl ConnectionSlots {
    /// Creates the slots of a listener, all free.
    #[must_use]
    pub fn new(rules: Arc<ArcSwap<ConnectionRules>>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            rules,
            metrics,
            accepting: AtomicBool::new(true),
            closed: Notify::new(),
            table: Mutex::default(),
        })
    }

    /// Takes a slot for a new connection, evicting another one if necessary. Returns `None` if every connection is
    /// busy.
    pub(in crate::http) fn take(self: &Arc<Self>) -> Option<Slot> {
        let limit = self.rules.load().limits.connections;
        let mut table = self.table();
        if table.open() >= limit {
            let authenticated = table.evict(limit)?;
            self.metrics.connection_evicted(authenticated);
        }
        let state = Arc::new(ConnectionState::default());
        let index = table.insert(Arc::clone(&state));
        drop(table);
        self.metrics.connection_opened();
        Some(Slot { slots: Arc::clone(self), index, state })
    }

    /// Waits while too many evicted connections are still open.
    pub(in crate::http) async fn closed(&self) {
        while self.table().closing >= CLOSING {
            self.closed.notified().await;
        }
    }

    /// Records whether connections can be accepted.
    pub(super) fn set_accepting(&self, accepting: bool) {
        self.accepting.store(accepting, Ordering::Release);
    }

    /// Checks that new connections can be served.
    ///
    /// # Errors
    /// Every connection that the limit allows is busy, or the system accepts none.
    pub fn check(&self) -> Result<(), &'static str> {
        if !self.accepting.load(Ordering::Acquire) {
            return Err("connections cannot be accepted");
        }
        let limit = self.rules.load().limits.connections;
        let table = self.table();
        let room = table.open() < limit || table.candidates().next().is_some();
        if room { Ok(()) } else { Err("all connections that limits.connections allows are busy") }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::indexing_slicing, reason = "slots are never removed, so that a number stays valid")]
impl Table {
    const fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn insert(&mut self, state: Arc<ConnectionState>) -> usize {
        if let Some(index) = self.free.pop() {
            self.slots[index] = Some(state);
            return index;
        }
        self.slots.push(Some(state));
        self.slots.len() - 1
    }

    fn remove(&mut self, index: usize, state: &Arc<ConnectionState>) {
        // The slot of an evicted connection may belong to another one by now.
        if self.slots[index].as_ref().is_some_and(|held| Arc::ptr_eq(held, state)) {
            self.slots[index] = None;
            self.free.push(index);
        } else {
            self.closing -= 1;
        }
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, state)| Some(Candidate { slot, ..state.as_ref()?.candidate()? }))
    }

    /// Evicts the connection that has been idle longest. Connections that were never authenticated go before all others,
    /// unless they have less than their share of `limit` places. Returns whether the evicted connection was
    /// authenticated, or `None` if all are busy.
    fn evict(&mut self, limit: usize) -> Option<bool> {
        loop {
            if self.chosen.is_empty() {
                self.choose(limit);
            }
            let chosen = self.chosen.pop()?;
            let Candidate { authenticated, slot, bits, .. } = chosen;
            let Some(state) = &self.slots[slot] else { continue };
            // The slot may belong to another connection by now, with another idle time.
            let is_chosen = state.candidate().is_some_and(|now| Candidate { slot, ..now } == chosen);
            if is_chosen && state.bits.compare_exchange(bits, EVICTED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                state.evicted.notify_one();
                self.slots[slot] = None;
                self.free.push(slot);
                self.closing += 1;
                return Some(authenticated);
            }
        }
    }

    /// Selects the next connections to evict.
    fn choose(&mut self, limit: usize) {
        let authenticated = self.slots.iter().flatten().filter(|state| state.is_authenticated()).count();
        let excess = authenticated.saturating_sub(limit - limit / NEWCOMERS_SHARE);
        let (idle, newcomers): (Vec<_>, Vec<_>) = self.candidates().partition(|candidate| candidate.authenticated);
        // Authenticated ones are selected one at a time: another may end by itself, and the next new connection, which is
        // not authenticated yet, may go before them.
        let (mut chosen, most) = if newcomers.is_empty() || (excess > 0 && !idle.is_empty()) {
            (idle, 1)
        } else {
            (newcomers, CHOSEN_AT_ONCE)
        };
        if chosen.len() > most {
            chosen.select_nth_unstable(most);
            chosen.truncate(most);
        }
        chosen.sort_unstable_by(|one, other| other.cmp(one));
        self.chosen = chosen;
    }
}

/// A taken slot, until it is dropped or its connection is evicted.
pub(in crate::http) struct Slot {
    slots: Arc<ConnectionSlots>,
    index: usize,
    state: Arc<ConnectionState>,
}

impl Slot {
    pub(in crate::http) const fn state(&self) -> &Arc<ConnectionState> {
        &self.state
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.table().remove(self.index, &self.state);
        self.slots.closed.notify_one();
        self.slots.metrics.connection_closed();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConnectionRules;
    use super::*;
    use crate::domain::UnixMillis;
    use crate::rules::{LoadOptions, load};

    fn slots(connections: usize) -> Arc<ConnectionSlots> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("gateway.toml"), "").unwrap();
        let rules = load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap();
        let mut limits = rules.gateway.limits.clone();
        limits.connections = connections;
        let rules = ConnectionRules { limits, tls: None, keeps_field_case: false };
        ConnectionSlots::new(Arc::new(ArcSwap::from_pointee(rules)), Arc::default())
    }

    /// Lets more time pass than the resolution of idle times, which is a millisecond.
    async fn a_moment() {
        tokio::time::advance(Duration::from_millis(2)).await;
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.state().bits.load(Ordering::Acquire) == EVICTED
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_is_evicted_first_and_unauthenticated_before_authenticated() {
        let slots = slots(4);
        let take = async || {
            a_moment().await;
            slots.take().unwrap()
        };
        let (kept, other, silent, unauthenticated) = (take().await, take().await, take().await, take().await);
        for (slot, authenticated) in [(&other, true), (&kept, true), (&unauthenticated, false)] {
            a_moment().await;
            slot.state().begin_request();
            if authenticated {
                slot.state().authenticate();
            }
            slot.state().end_request();
        }
        let newer = take().await;
        assert!(is_evicted(&silent), "it never sent a request");
        newer.state().authenticate();
        newer.state().end_request();
        drop(silent);
        let newest = take().await;
        assert!(is_evicted(&unauthenticated), "nothing on it was authenticated");
        newest.state().authenticate();
        let another = take().await;
        assert!(is_evicted(&other), "idle for longer than the first one");
        another.state().authenticate();
        let last = take().await;
        assert!(is_evicted(&kept) && !is_evicted(&newer) && !is_evicted(&newest));
        assert!(slots.check().is_ok());
        drop((another, last));
        assert_eq!(slots.table().open(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_authenticated_connections_leave_an_eighth_to_newcomers() {
        let slots = slots(16);
        let held: Vec<_> = (0..16).map(|_| slots.take().unwrap()).collect();
        let is_busy = |index: usize| index == 0 || index == 15;
        for (index, slot) in held.iter().enumerate() {
            a_moment().await;
            slot.state().authenticate();
            if !is_busy(index) {
                slot.state().end_request();
            }
        }
        let mut newcomers = Vec::new();
        for _ in 0..4 {
            a_moment().await;
            newcomers.push(slots.take().unwrap());
        }
        let evicted = |slots: &[Slot]| slots.iter().map(is_evicted).collect::<Vec<_>>();
        assert_eq!(evicted(&held)[..4], [false, true, true, false], "those that were idle longest give way");
        assert_eq!(evicted(&held).iter().filter(|evicted| **evicted).count(), 2, "no more than their excess");
        assert_eq!(evicted(&newcomers), [true, true, false, false], "then the oldest newcomers do");
        newcomers[2].state().authenticate();
        newcomers[2].state().end_request();
        let _next = slots.take().unwrap();
        assert!(
            is_evicted(&held[3]) && !is_evicted(&newcomers[3]),
            "a newcomer that was authenticated takes the place of another one"
        );
        // Where the others are busy, newcomers have only each other.
        for slot in &held {
            slot.state().begin_request();
        }
        assert!(slots.take().is_some() && slots.check().is_ok());
    }

    #[test]
    fn a_busy_connection_is_never_evicted() {
        let slots = slots(2);
        let held: Vec<_> = (0..2).map(|_| slots.take().unwrap()).collect();
        for slot in &held {
            slot.state().authenticate();
        }
        assert!(slots.take().is_none() && slots.check().is_err());
        held[1].state().end_request();
        assert!(slots.check().is_ok());
        let next = slots.take().unwrap();
        assert!(is_evicted(&held[1]) && !is_evicted(&held[0]));
        next.state().authenticate();
        next.state().end_request();
        held[1].state().authenticate();
        assert!(is_evicted(&held[1]), "it stays evicted");
        drop(held);
        assert_eq!(slots.table().open(), 1, "an evicted one frees no slot of another");
        slots.set_accepting(false);
        assert!(slots.check().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_candidate_whose_slot_was_reused_is_skipped() {
        let slots = slots(4);
        let mut held: Vec<_> = (0..4).map(|_| slots.take().unwrap()).collect();
        held.push(slots.take().unwrap());
        assert!(is_evicted(&held[0]), "the rest of the first four are chosen to be the next");
        let oldest = held.pop().unwrap();
        held.clear();
        let mut newer = Vec::new();
        for _ in 0..3 {
            a_moment().await;
            newer.push(slots.take().unwrap());
        }
        let _newest = slots.take().unwrap();
        assert!(is_evicted(&oldest) && !newer.iter().any(is_evicted));
    }

    #[test]
    fn many_new_connections_evict_many() {
        let slots = slots(300);
        let mut held: Vec<_> = (0..300).map(|_| slots.take().unwrap()).collect();
        held[7].state().authenticate();
        held[7].state().end_request();
        for _ in 0..1000 {
            held.push(slots.take().unwrap());
        }
        assert!(!is_evicted(&held[7]));
        assert_eq!(held.iter().filter(|slot| !is_evicted(slot)).count(), 300);
        assert_eq!(slots.table().slots.len(), 300);
    }

    #[tokio::test]
    async fn few_evicted_connections_are_open_at_once() {
        let slots = slots(1);
        let held: Vec<_> = (0..=CLOSING).map(|_| slots.take().unwrap()).collect();
        let mut closed = Box::pin(slots.closed());
        assert!(is_pending(&mut closed).await);
        drop(held);
        closed.await;
        assert_eq!(slots.table().closing, 0);
    }

    async fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn an_evicted_connection_is_notified_whether_it_waits_or_not() {
        let slots = slots(1);
        let first = slots.take().unwrap();
        let second = slots.take().unwrap();
        first.state().evicted().await;
        let (waiting, third) = tokio::join!(second.state().evicted(), async { slots.take() });
        let () = waiting;
        assert!(third.is_some());
    }
}
