//! The public listener: TCP sockets, TLS and HTTP, up to one call of a [`Service`] for each request (contract sections
//! 1 to 3).
//!
//! `connection` (accepts, up to the limit of [`ConnectionSlots`]; PROXY header, TLS, time-outs) -> hyper, or `http2` ->
//! [`Service`]. Over HTTP/1, hyper reads through `head_guard`, which checks every head and follows every body (`head`)
//! before hyper does; a head that is refused never reaches hyper, and the listener writes the reply. Over HTTP/2 the head
//! is checked after h2 has parsed it. Either way the service receives the result as [`HeadCheck`] beside the [`Peer`], so
//! that one place refuses bad requests.

mod connection;
mod deadline;
mod head;
mod head_guard;
mod http2;
mod pace;
mod passed;
mod proxy_header;
mod settings;
mod shared;
pub mod tls;
mod transport;
mod unix_socket;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use shared::{LAST_REQUEST, Lifecycle, Shared, WorkerLife};

use crate::connection_error::of_binding;

pub use connection::Watchdog;
pub use passed::{PassedAdminSocket, PassedSockets};
pub use settings::{ConnectionRules, ListenerSettings};
pub use shared::{ConnectionInfo, ConnectionSlots, ConnectionState, HeadCheck, HeadError, Peer, Protocol, Service};
pub use transport::Inbound;
pub use unix_socket::UnixSocket;

/// The most connections that wait in the kernel to be accepted.
const BACKLOG: i32 = 1024;
/// How long the threads may take to end after the remaining requests are dropped.
const CUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Longer than a busy connection is idle between requests, and short enough that the buffers of idle connections do not
/// add up.
pub const TRIM_IDLE_AFTER: Duration = Duration::from_secs(1);

/// Returns a socket that listens at an address, without blocking.
///
/// # Errors
/// The address is in use, or does not belong to this machine.
pub fn bound_to(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(socket2::Protocol::TCP))?;
    // A restart need not wait for the last connections of the previous process.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Returns one worker for each core that the process may use.
#[must_use]
pub fn available_workers() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// One or more bound addresses. The kernel queues connections from now on; [`Listener::serve`] accepts them.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<std::net::TcpListener>,
    addresses: Box<[SocketAddr]>,
}

impl Listener {
    /// Binds `address`; port 0 selects a free port.
    ///
    /// # Errors
    /// The address is in use or does not belong to this machine. The message is one line that names the address.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        bound_to(address).and_then(|socket| Self::of(vec![socket])).map_err(|error| {
            let why = of_binding(&error);
            io::Error::new(error.kind(), format!("`server.listen`: cannot listen on {address}: {why}"))
        })
    }

    /// Returns the listener of sockets that listen already, without blocking.
    ///
    /// # Errors
    /// The address of a socket is not known.
    pub fn of(sockets: Vec<std::net::TcpListener>) -> io::Result<Self> {
        let addresses = sockets.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<_>>()?;
        Ok(Self { sockets, addresses })
    }

    /// Returns the bound addresses, with their actual ports.
    #[must_use]
    pub const fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts serving, on threads of its own.
    ///
    /// # Errors
    /// The system provides no thread, or no resources for its runtime.
    pub fn serve(self, service: impl Service, settings: ListenerSettings) -> io::Result<Handle> {
        let (life, receiver) = watch::channel(WorkerLife::Serving);
        let (running, ended) = mpsc::channel(1);
        let lifecycle = Lifecycle::new(receiver);
        let count = settings.workers;
        let slots = ConnectionSlots::new(Arc::clone(&settings.rules), Arc::clone(&settings.metrics));
        let leaving = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared { service, settings, slots: Arc::clone(&slots), leaving: Arc::clone(&leaving) });
        let (workers, mut runtimes) = connection::start_workers(count, &shared, &lifecycle, &running)?;

        let (runtime, sockets) = (connection::runtime()?, self.sockets);
        runtimes.push(runtime.handle().clone());
        thread::Builder::new().name("accept".to_owned()).spawn(move || {
            runtime.block_on(async {
                match sockets.into_iter().map(tokio::net::TcpListener::from_std).collect() {
                    Ok(listeners) => connection::accept_until_drained(listeners, workers, shared, lifecycle).await,
                    Err(error) => {
                        tracing::error!(%error, "the listener's socket cannot be registered with its runtime");
                    }
                }
            });
            drop(running);
        })?;
        Ok(Handle { addresses: self.addresses, watchdog: Watchdog::of(runtimes), slots, leaving, life, ended })
    }
}

/// A serving listener. Dropping it ends all connections at once.
pub struct Handle {
    addresses: Box<[SocketAddr]>,
    watchdog: Watchdog,
    slots: Arc<ConnectionSlots>,
    leaving: Arc<AtomicBool>,
    life: watch::Sender<WorkerLife>,
    ended: mpsc::Receiver<Infallible>,
}

impl Handle {
    /// Returns the bound addresses.
    #[must_use]
    pub const fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a watchdog that checks whether the listener's threads still make progress.
    #[must_use]
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }

    /// Returns the connection slots, which report whether another connection can be accepted.
    #[must_use]
    pub fn slots(&self) -> Arc<ConnectionSlots> {
        Arc::clone(&self.slots)
    }

    /// Makes clients disconnect: every HTTP/1 reply carries `Connection: close` from now on, and HTTP/2 clients get
    /// GOAWAY. New connections are still accepted.
    pub fn disconnect_clients(&self) {
        self.leaving.store(true, Ordering::Release);
        self.life.send_replace(WorkerLife::Leaving);
    }

    /// Stops accepting, then waits for every connection to finish what it has begun (its handshake; HTTP/1: the current
    /// request, and one that arrives within [`LAST_REQUEST`]; HTTP/2: the open streams, and the first one if it arrives
    /// within that time) and for every task that the service spawned.
    /// After `grace`, drops what is left. Returns whether nothing was left.
    pub async fn drain(mut self, grace: Duration) -> bool {
        self.leaving.store(true, Ordering::Release);
        self.life
            .send_replace(WorkerLife::Draining { began: Instant::now(), last_request: LAST_REQUEST.min(grace / 2) });
        if timeout(grace, self.ended.recv()).await.is_ok() {
            return true;
        }
        self.life.send_replace(WorkerLife::Cut);
        let _ = timeout(CUT_TIMEOUT, self.ended.recv()).await;
        false
    }
}
