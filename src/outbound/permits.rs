//! Permits for lookups, which merchants share: one that waits for silent name servers leaves permits to the others.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

tokio::task_local! {
    static MERCHANT: Arc<str>;
}

/// Counts the names that a future looks up as this merchant's. All other lookups, for hosts that the rules name, count
/// together.
pub fn on_behalf_of<F: Future>(merchant: &str, future: F) -> impl Future<Output = F::Output> {
    MERCHANT.scope(merchant.into(), future)
}

/// Returns the merchant for which the running task looks up names; an empty text for hosts that the rules name.
pub(super) fn current_merchant() -> Arc<str> {
    MERCHANT.try_with(Arc::clone).unwrap_or_default()
}

/// A number of permits.
#[derive(Debug)]
pub(super) struct Permits {
    count: usize,
    held: Mutex<HashMap<Arc<str>, usize>>,
    returned: Notify,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Arc<Permits>,
    merchant: Arc<str>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self { count, held: Mutex::default(), returned: Notify::new() }
    }

    /// Waits for a permit that the merchant may have: until then it holds as many as are left.
    pub(super) async fn acquire(self: Arc<Self>, merchant: Arc<str>) -> Permit {
        loop {
            let mut returned = std::pin::pin!(self.returned.notified());
            returned.as_mut().enable();
            if self.try_take(&merchant) {
                return Permit { permits: Arc::clone(&self), merchant };
            }
            returned.await;
        }
    }

    fn try_take(&self, merchant: &Arc<str>) -> bool {
        let mut held = self.held();
        let left = self.count.saturating_sub(held.values().sum());
        let own = held.get(merchant).copied().unwrap_or_default();
        let may_take = own < left;
        if may_take {
            held.insert(merchant.clone(), own + 1);
        }
        may_take
    }

    /// Returns how many permits are held.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.held().values().sum()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.permits.held();
        if let Some(count) = held.get_mut(&self.merchant) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.merchant);
            }
        }
        drop(held);
        self.permits.returned.notify_waiters();
    }
}
