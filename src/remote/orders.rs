//! A lock for each order: a request waits while another one of this process resolves the same order, so that no two of them
//! send, cancel or complete it at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::deadline::RequestDeadline;
use crate::domain::{Direction, MerchantId, OrderId};
use crate::error::ApiError;

/// The number of locks at which unused ones are first removed.
const FIRST_SWEEP_AT: usize = 1024;

/// The key of an order.
type OrderName = (MerchantId, Direction, OrderId);

/// The locks of orders in use.
#[derive(Default)]
pub(super) struct OrderLocks(Mutex<LockTable>);

#[derive(Default)]
struct LockTable {
    locks: HashMap<OrderName, Weak<AsyncMutex<()>>>,
    /// At this many, unused locks are removed.
    sweep_at: usize,
}

/// Holds the lock of an order.
pub(super) struct OrderGuard {
    _guard: OwnedMutexGuard<()>,
}

impl OrderLocks {
    /// Locks an order.
    ///
    /// # Errors
    /// [`ApiError::EngineTimeout`]: another request holds it until the deadline.
    pub(super) async fn lock(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
        deadline: RequestDeadline,
    ) -> Result<OrderGuard, ApiError> {
        let lock = self.lock_of((merchant.clone(), direction, order_id.clone()));
        let guard = deadline.bounds(lock.lock_owned()).await.ok_or(ApiError::EngineTimeout)?;
        Ok(OrderGuard { _guard: guard })
    }

    fn lock_of(&self, name: OrderName) -> Arc<AsyncMutex<()>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = table.locks.get(&name).and_then(Weak::upgrade) {
            return lock;
        }
        if table.locks.len() >= table.sweep_at.max(FIRST_SWEEP_AT) {
            table.locks.retain(|_, lock| lock.strong_count() > 0);
            table.sweep_at = table.locks.len() * 2;
        }
        let lock = Arc::default();
        table.locks.insert(name, Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn order(number: usize) -> OrderId {
        OrderId::new(&format!("o{number}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_locked_by_one_request_at_a_time() {
        let orders = OrderLocks::default();
        let merchant = MerchantId::new("acme").unwrap();
        let lock = |number| {
            let (orders, merchant) = (&orders, &merchant);
            async move {
                let deadline = RequestDeadline::after(Duration::from_secs(1));
                orders.lock(merchant, Direction::Payin, &order(number), deadline).await
            }
        };
        let first = lock(1).await.unwrap();
        assert!(matches!(lock(1).await, Err(ApiError::EngineTimeout)));
        lock(2).await.unwrap();
        drop(first);
        lock(1).await.unwrap();
    }

    #[tokio::test]
    async fn unused_orders_are_forgotten() {
        let orders = OrderLocks::default();
        let merchant = MerchantId::new("acme").unwrap();
        let deadline = RequestDeadline::after(Duration::from_mins(1));
        let kept = orders.lock(&merchant, Direction::Payin, &order(0), deadline).await.unwrap();
        for number in 1..5 * FIRST_SWEEP_AT {
            orders.lock(&merchant, Direction::Payin, &order(number), deadline).await.unwrap();
        }
        let held = |orders: &OrderLocks| orders.0.lock().unwrap().locks.len();
        assert!(held(&orders) <= FIRST_SWEEP_AT, "{}", held(&orders));
        let soon = RequestDeadline::after(Duration::from_millis(1));
        assert!(orders.lock(&merchant, Direction::Payin, &order(0), soon).await.is_err(), "it is still taken");
        drop(kept);
    }
}
