//! A timer for a deadline that moves.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for a deadline that changes with every request. Moving the deadline later costs nothing until the old one
/// has passed.
#[derive(Debug)]
pub(super) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    pub(super) fn at(deadline: Instant) -> Self {
        Self(Box::pin(sleep_until(deadline)))
    }

    /// Returns `Ready` once `deadline` has passed; until then, the task will be woken.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if self.0.deadline() > deadline {
            self.0.as_mut().reset(deadline);
        }
        loop {
            ready!(self.0.as_mut().poll(cx));
            if self.0.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.0.as_mut().reset(deadline);
        }
    }
}
