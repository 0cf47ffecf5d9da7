//! A watchdog for the threads that accept and serve: it detects a thread that no longer runs its tasks.

use std::sync::Arc;

use tokio::runtime::Handle;

/// The runtimes of a listener's threads.
#[derive(Debug, Clone)]
pub struct Watchdog(Arc<[Handle]>);

impl Watchdog {
    pub(super) fn of(runtimes: Vec<Handle>) -> Self {
        Self(runtimes.into())
    }

    /// Returns once every thread has run a task since the call, or has ended. Never returns while one of them is
    /// blocked.
    pub async fn felt(&self) {
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
            async move { watchdog.felt().await }
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!probe.is_finished(), "a thread that is stuck does not answer");
        release.send(()).unwrap();
        (&mut probe).await.unwrap();
        end.send(()).unwrap();
        thread.join().unwrap();
        watchdog.felt().await;
    }
}
