//! The threads that serve connections, each with a runtime of its own: a connection and all its requests stay on one
//! thread, which costs less than moving them between threads.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::slots::Slot;
use super::{Service, Shared, connection};

/// Connections that may wait for one worker.
const QUEUE: usize = 1024;
/// How often a draining worker looks whether its tasks have ended.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Where the listener is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerLife {
    /// Accepting.
    Serving,
    /// Accepting, while clients are asked to leave.
    Leaving,
    /// Finishing what is in flight. A connection between two requests may begin another one until `last_request`.
    Draining { last_request: Instant },
    /// Dropping what is left.
    Cut,
}

/// Watches for the next [`WorkerLife`]. A listener whose handle is gone is over.
#[derive(Debug, Clone)]
pub(super) struct Lifecycle(watch::Receiver<WorkerLife>);

impl Lifecycle {
    pub(super) const fn new(receiver: watch::Receiver<WorkerLife>) -> Self {
        Self(receiver)
    }

    /// Ready when clients are asked to leave.
    pub(super) async fn leaving(&mut self) {
        let _ = self.0.wait_for(|life| *life != WorkerLife::Serving).await;
    }

    /// Ready when no new connection is taken; until when the ones that are open may begin another request.
    pub(super) async fn draining(&mut self) -> Instant {
        match self.0.wait_for(|life| !matches!(life, WorkerLife::Serving | WorkerLife::Leaving)).await.as_deref() {
            Ok(WorkerLife::Draining { last_request }) => *last_request,
            _ => Instant::now(),
        }
    }

    /// Ready when no new request may begin.
    pub(super) async fn last_request(&mut self) {
        let until = self.draining().await;
        tokio::time::sleep_until(until).await;
    }

    /// Ready when everything has to end.
    async fn cut(&mut self) {
        let _ = self.0.wait_for(|life| *life == WorkerLife::Cut).await;
    }
}

/// A connection on its way to a worker.
pub(super) struct AcceptedConnection {
    pub(super) socket: std::net::TcpStream,
    pub(super) from: SocketAddr,
    pub(super) slot: Slot,
}

/// A runtime for one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts the workers, and gives how to reach each and its runtime. `ended` carries no value: every worker holds it until
/// its thread ends.
pub(super) fn start<S: Service>(
    count: NonZeroUsize,
    shared: &Arc<Shared<S>>,
    lifecycle: &Lifecycle,
    ended: &mpsc::Sender<Infallible>,
) -> io::Result<(Vec<mpsc::Sender<AcceptedConnection>>, Vec<Handle>)> {
    (0..count.get())
        .map(|index| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let (runtime, shared, lifecycle, ended) =
                (runtime()?, Arc::clone(shared), lifecycle.clone(), ended.clone());
            let handle = runtime.handle().clone();
            thread::Builder::new().name(format!("http-{index}")).spawn(move || {
                runtime.block_on(work(receiver, shared, lifecycle));
                // Tasks that were cut are dropped before the end is told.
                drop(runtime);
                drop(ended);
            })?;
            Ok((sender, handle))
        })
        .collect()
}

async fn work<S: Service>(
    mut queue: mpsc::Receiver<AcceptedConnection>,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) {
    while let Some(AcceptedConnection { socket, from, slot }) = queue.recv().await {
        match TcpStream::from_std(socket) {
            Ok(socket) => {
                tokio::spawn(connection::serve(socket, from, Arc::clone(&shared), lifecycle.clone(), slot));
            }
            Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
        }
    }
    tokio::select! {
        () = all_tasks_ended() => {}
        () = lifecycle.cut() => {}
    }
}

/// Connections are tasks, and so is what the service goes on with after its caller has hung up: both are waited for.
async fn all_tasks_ended() {
    let metrics = Handle::current().metrics();
    while metrics.num_alive_tasks() > 0 {
        tokio::time::sleep(DRAIN_POLL).await;
    }
}
