//! Finishes the upgrade of a store (contract section 15): locks older releases out, waits for their gateways to leave, and
//! removes what only they needed.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::backend::{Backend, ReadKind};
use super::{StoreError, StoreFuture, format};

/// How long no older release may have touched the store before it is narrowed.
pub const UNTOUCHED: Duration = Duration::from_secs(10);

/// How often the processes that use the store are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The formats of a store that is in use.
pub trait Upgrade: Send + Sync + 'static {
    /// Reads the oldest format whose releases can serve the store.
    fn oldest_format(&self) -> StoreFuture<'_, u32>;

    /// Locks releases out that are older than this one. Returns `false` if the upgrade was finished before.
    fn lock_out_older(&self) -> StoreFuture<'_, bool>;

    /// Reports whether an older release uses the store just now.
    fn is_used_by_older(&self) -> StoreFuture<'_, bool>;

    /// Removes what only older releases needed, in one transaction. Returns `false` if that has to wait.
    fn narrow(&self) -> StoreFuture<'_, bool>;
}

impl<B: Backend> Upgrade for B {
    fn oldest_format(&self) -> StoreFuture<'_, u32> {
        Box::pin(async {
            let read = self.read(ReadKind::Lookup, async |tx| format::oldest(tx).await).await;
            // Connections are refused then, so that it cannot be read.
            self.locked_out().map_or(read, Ok)
        })
    }

    fn lock_out_older(&self) -> StoreFuture<'_, bool> {
        Box::pin(self.transact(async |tx| format::lock_out(tx).await))
    }

    fn is_used_by_older(&self) -> StoreFuture<'_, bool> {
        Box::pin(Backend::is_used_by_older(self))
    }

    fn narrow(&self) -> StoreFuture<'_, bool> {
        Box::pin(Backend::narrow(self))
    }
}

/// What [`finish_upgrade`] is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeWait {
    /// An older release uses the store.
    Used,
    /// None has touched it for this long.
    Untouched(Duration),
}

/// Finishes the upgrade of the store to this release's format, once no older release has touched it for `untouched`.
/// Reports what it waits for. Returns `false` if the upgrade was finished before.
///
/// # Errors
/// The store cannot be read or written. Running it again continues.
pub async fn finish_upgrade(
    store: &dyn Upgrade,
    untouched: Duration,
    mut report: impl FnMut(UpgradeWait),
) -> Result<bool, StoreError> {
    if !store.lock_out_older().await? {
        return Ok(false);
    }
    let mut since = Instant::now();
    loop {
        if store.is_used_by_older().await? {
            since = Instant::now();
            report(UpgradeWait::Used);
        } else {
            report(UpgradeWait::Untouched(since.elapsed()));
            if since.elapsed() >= untouched {
                if store.narrow().await? {
                    return Ok(true);
                }
                // A table is busy, or a database that took the place of another one has lost the lock-out.
                if !store.lock_out_older().await? {
                    return Ok(false);
                }
                since = Instant::now();
            }
        }
        sleep(LOOK_INTERVAL).await;
    }
}
