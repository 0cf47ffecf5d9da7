//! Bounds how many bytes of replies wait on one connection for its client to take them (contract section 3).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A unit of [`ReplyRoom`], in bytes.
const UNIT: usize = 1024;
/// The units of one connection: half of what the contract allows. The requests that wait need about as much themselves.
const UNITS: usize = 512;
/// The units that every request takes before it is answered. All streams of a connection together take half of [`UNITS`].
const FIRST_UNITS: u32 = 2;
/// The most units beyond the first that a reply takes. Two such replies do not fit beside each other.
const MORE_UNITS: u32 = 256;

/// The room for the replies of one connection that its client has not taken yet: 512 KiB, or one reply that is larger.
///
/// A request takes a little of it before it is answered. A reply that may be large takes the rest of its need before it is
/// made. So a client that does not read holds up its next reply, and not the gateway's memory.
#[derive(Debug, Clone)]
pub struct ReplyRoom(Arc<Semaphore>);

impl Default for ReplyRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNITS)))
    }
}

impl ReplyRoom {
    /// The length up to which a reply needs no more room than its request has, in bytes.
    pub const SHORT: usize = 2 * UNIT;

    /// Waits for the room that every request needs. `None`: the connection ends.
    pub(crate) async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.acquire(FIRST_UNITS).await
    }

    /// Waits for the room of a reply of up to `bytes`, beyond what its request has. `None`: the connection ends.
    pub async fn reserve(&self, bytes: usize) -> Option<ReservedRoom> {
        let units = u32::try_from(bytes.div_ceil(UNIT).min(UNITS)).unwrap_or(MORE_UNITS);
        match units.saturating_sub(FIRST_UNITS).min(MORE_UNITS) {
            0 => Some(ReservedRoom(None)),
            more => Some(ReservedRoom(Some(Arc::new(self.acquire(more).await?)))),
        }
    }

    /// Ends every wait for room: the client takes nothing.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    async fn acquire(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_many_owned(units).await.ok()
    }
}

/// Reserved [`ReplyRoom`], until the last clone is dropped. A reply that was made within it has it among its extensions.
#[derive(Debug, Clone)]
pub struct ReservedRoom(#[expect(dead_code, reason = "held for its drop")] Option<Arc<OwnedSemaphorePermit>>);

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_large_reply_waits_for_the_one_before_it_and_small_ones_do_not() {
        let room = ReplyRoom::default();
        let mut small = Vec::new();
        for _ in 0..128 {
            small.push((room.enter().await.unwrap(), room.reserve(2 * UNIT).await.unwrap()));
        }
        let large = room.reserve(64 * 1024 * UNIT).await.unwrap();
        let mut next = pin!(room.reserve(2 * UNIT + 1));
        assert!(poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await.is_pending());
        drop(large.clone());
        assert!(poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await.is_pending(), "its clone is still there");
        drop(large);
        next.await.unwrap();
        small.truncate(2);
        let _large = room.reserve(64 * 1024 * UNIT).await.unwrap();
        let mut second = pin!(room.reserve(64 * 1024 * UNIT));
        assert!(poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx))).await.is_pending(), "also beside no others");
        room.close();
        assert!(second.await.is_none() && room.enter().await.is_none());
    }
}
