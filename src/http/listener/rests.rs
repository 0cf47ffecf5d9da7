//! The memory of connections that rest, given back to the system.
//!
//! The allocator keeps what was freed for a second, so that it can be used again, and gives it back when a thread collects what
//! it has, after that. The threads that serve do so in the midst of work; when there is none, nobody would.

use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

/// Longer than the allocator keeps what was freed.
const GIVE_BACK_AFTER: Duration = Duration::from_secs(2);

/// Hears of connections that begin to rest.
#[derive(Debug, Default)]
pub(super) struct Rests(Notify);

impl Rests {
    /// A connection has begun to rest, and freed what it needs no more.
    pub(super) fn begun(&self) {
        self.0.notify_one();
    }

    /// Has the allocator look at what was freed, some time after connections began to rest; at most once in that time.
    pub(super) async fn give_back(&self) {
        loop {
            self.0.notified().await;
            tokio::time::sleep(GIVE_BACK_AFTER).await;
            // The end of a thread makes the allocator look. Without room for a thread it is done another time.
            let _ = thread::Builder::new().name("give-back".to_owned()).stack_size(64 * 1024).spawn(|| {});
        }
    }
}
