//! The threads of a listener: one accepts connections, up to the limit, and distributes them among the workers in turn. Each
//! worker has a runtime of its own. A connection and all its requests stay on one thread, which costs less than moving
//! them between threads.

use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
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

/// The runtimes of a listener's threads.
#[derive(Debug, Clone)]
pub struct Watchdog(Arc<[Handle]>);

impl Watchdog {
    pub(super) fn of(runtimes: Vec<Handle>) -> Self {
        Self(runtimes.into())
    }

    /// Returns once every thread has run a task since the call, or has ended. Never returns while one of them is
    /// blocked.
    pub async fn probe(&self) {
        let tasks: Vec<_> = self.0.iter().map(|runtime| runtime.spawn(async {})).collect();
        for task in tasks {
            // A task that its ending runtime dropped counts as an answer.
            let _ = task.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_stuck_thread_is_detected_until_it_continues_or_ends() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let watchdog = Watchdog::of(vec![runtime.handle().clone(), Handle::current()]);
        let (started, is_stuck) = oneshot::channel();
        let (release, stuck) = mpsc::channel::<()>();
        let (end, ending) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                started.send(()).unwrap();
                // A runtime's thread must never block like this.
                stuck.recv().unwrap();
                ending.await.unwrap();
            });
        });
        is_stuck.await.unwrap();
        let mut probe = tokio::spawn({
            let watchdog = watchdog.clone();
            async move { watchdog.probe().await }
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!probe.is_finished(), "a thread that is stuck does not answer");
        release.send(()).unwrap();
        (&mut probe).await.unwrap();
        end.send(()).unwrap();
        thread.join().unwrap();
        watchdog.probe().await;
    }
}
