//! Work that outlives whoever waits for it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that is not abandoned when it is dropped unfinished: it goes on in a task of its own. Nothing is spawned for the
/// many that are waited for to their end.
pub(super) struct SpawnOnDrop<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> SpawnOnDrop<F> {
    pub(super) fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for SpawnOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let poll = work.as_mut().poll(context);
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for SpawnOnDrop<F> {
    fn drop(&mut self) {
        // A panic is no hang-up: what panicked is not polled again.
        if std::thread::panicking() {
            return;
        }
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(work));
        }
    }
}
