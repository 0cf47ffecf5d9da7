//! The worker threads, each with a runtime of its own. A connection and all its requests stay on one thread, which
//! costs less than moving them between threads.

use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

use super::connection;
use super::shared::{AcceptedConnection, Lifecycle, Service, Shared};

/// The most accepted connections that wait for one worker.
const QUEUE: usize = 1024;
/// How often a draining worker checks whether its tasks have ended.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Builds a runtime for one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts the workers. Returns each worker's queue and runtime. `ended` carries no value: every worker holds it until
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
                // Drops the remaining tasks before the thread is reported as ended.
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
            Err(error) => tracing::warn!(%error, "an accepted connection could not be registered with its worker"),
        }
    }
    tokio::select! {
        () = all_tasks_ended() => {}
        () = lifecycle.cut() => {}
    }
}

/// Waits for all tasks: connections, and work that the service continues after its client has disconnected.
async fn all_tasks_ended() {
    let metrics = Handle::current().metrics();
    while metrics.num_alive_tasks() > 0 {
        tokio::time::sleep(DRAIN_POLL).await;
    }
}
