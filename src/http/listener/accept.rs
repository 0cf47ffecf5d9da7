//! Accepts connections, up to the limit, and distributes them among the workers in turn.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::shared::{AcceptedConnection, Lifecycle, Service, Shared};

/// How long to wait when the process cannot open another socket.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Accepts until the listener drains. Dropping the workers' queues then lets the workers end.
pub(super) async fn run<S: Service>(
    listener: TcpListener,
    workers: Vec<mpsc::Sender<AcceptedConnection>>,
    shared: Arc<Shared<S>>,
    mut lifecycle: Lifecycle,
) {
    tokio::select! {
        () = accept(&listener, &workers, &shared) => {}
        _ = lifecycle.draining() => {}
    }
}

async fn accept<S: Service>(listener: &TcpListener, workers: &[mpsc::Sender<AcceptedConnection>], shared: &Shared<S>) {
    let mut failing = false;
    for worker in workers.iter().cycle() {
        let accepted = loop {
            match next(listener, shared).await {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    shared.slots.set_accepting(false);
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "connections cannot be accepted; retrying");
                    }
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        };
        if std::mem::take(&mut failing) {
            shared.slots.set_accepting(true);
        }
        if worker.send(accepted).await.is_err() {
            tracing::error!("a worker has ended; its connections are lost");
        }
    }
}

/// Accepts the next connection; returns `None` when there is no slot for it.
async fn next<S: Service>(listener: &TcpListener, shared: &Shared<S>) -> io::Result<Option<AcceptedConnection>> {
    shared.slots.closed().await;
    let (socket, from) = listener.accept().await?;
    let Some(slot) = shared.slots.take() else {
        shared.settings.metrics.connection_refused("limit");
        return Ok(None);
    };
    // Replies are written whole; Nagle's algorithm would only delay them.
    socket.set_nodelay(true)?;
    Ok(Some(AcceptedConnection { socket: socket.into_std()?, from, slot }))
}

/// Reports whether an accept failed because the connection itself has ended, and not for lack of resources.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput, NotConnected, TimedOut, WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput | NotConnected | TimedOut | WouldBlock
    )
}
