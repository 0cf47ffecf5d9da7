//! Accepting connections, up to the limit, and handing them to the workers in turn.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::workers::{Accepted, Lifecycle};
use super::{Service, Shared};
use crate::telemetry::Metrics;

/// How long to wait when the process has no room for another socket.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Accepts until the listener drains. Dropping the workers' queues tells them that nothing more comes.
pub(super) async fn run<S: Service>(
    listener: TcpListener,
    workers: Vec<mpsc::Sender<Accepted>>,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) {
    tokio::select! {
        () = accept(&listener, &workers, &shared) => {}
        () = shared.rests.give_back() => {}
        () = lifecycle.draining() => {}
    }
}

async fn accept<S: Service>(listener: &TcpListener, workers: &[mpsc::Sender<Accepted>], shared: &Shared<S>) {
    let open = Arc::new(AtomicUsize::new(0));
    let mut failing = false;
    for worker in workers.iter().cycle() {
        let accepted = loop {
            match next(listener, &open, shared).await {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "connections cannot be accepted; trying on");
                    }
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        };
        failing = false;
        if worker.send(accepted).await.is_err() {
            tracing::error!("a worker has ended; its connections are lost");
        }
    }
}

/// The next connection; `None` when it was over the limit.
async fn next<S: Service>(
    listener: &TcpListener,
    open: &Arc<AtomicUsize>,
    shared: &Shared<S>,
) -> io::Result<Option<Accepted>> {
    let (socket, from) = listener.accept().await?;
    let limit = (shared.settings.rules)().limits.connections;
    let Some(slot) = Slot::take(open, limit, &shared.settings.metrics) else {
        shared.settings.metrics.connection_refused("limit");
        return Ok(None);
    };
    // Replies are written whole; waiting for more to send would only delay them.
    socket.set_nodelay(true)?;
    Ok(Some(Accepted { socket: socket.into_std()?, from, slot }))
}

/// Whether an accept failed because of the connection itself, which is over, and not for want of room.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput, NotConnected, TimedOut, WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput | NotConnected | TimedOut | WouldBlock
    )
}

/// A place among the open connections.
#[derive(Debug)]
pub(super) struct Slot {
    open: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

impl Slot {
    /// Only the accepting task takes places, so that looking before counting is enough.
    fn take(open: &Arc<AtomicUsize>, limit: usize, metrics: &Arc<Metrics>) -> Option<Self> {
        if open.load(Ordering::Acquire) >= limit {
            return None;
        }
        open.fetch_add(1, Ordering::AcqRel);
        metrics.connection_opened();
        Some(Self { open: Arc::clone(open), metrics: Arc::clone(metrics) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.metrics.connection_closed();
    }
}
