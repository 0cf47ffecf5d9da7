//! A lock for each order: a request waits while another one of this process resolves the same order, so that no two of them
//! send, cancel or complete it at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use super::deadline::RequestDeadline;
use crate::domain::{Direction, MerchantId, OrderId};
use crate::error::ApiError;

/// The number of locks at which unused ones are first removed.
const FEW: usize = 1024;

/// The key of an order.
type Name = (MerchantId, Direction, OrderId);

/// The locks of orders in use.
#[derive(Default)]
pub(super) struct OrderLocks(Mutex<LockTable>);

#[derive(Default)]
struct LockTable {
    turns: HashMap<Name, Weak<Turns<()>>>,
    /// At this many, unused locks are removed.
    full_at: usize,
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
    pub(super) async fn turn(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
        deadline: RequestDeadline,
    ) -> Result<OrderGuard, ApiError> {
        let turns = self.turns((merchant.clone(), direction, order_id.clone()));
        let guard = deadline.bounds(turns.lock_owned()).await.ok_or(ApiError::EngineTimeout)?;
        Ok(OrderGuard { _guard: guard })
    }

    fn turns(&self, name: Name) -> Arc<Turns<()>> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = asked.turns.get(&name).and_then(Weak::upgrade) {
            return turns;
        }
        if asked.turns.len() >= asked.full_at.max(FEW) {
            asked.turns.retain(|_, turns| turns.strong_count() > 0);
            asked.full_at = asked.turns.len() * 2;
        }
        let turns = Arc::default();
        asked.turns.insert(name, Arc::downgrade(&turns));
        turns
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
    async fn an_order_has_one_turn_at_a_time() {
        let orders = OrderLocks::default();
        let merchant = MerchantId::new("acme").unwrap();
        let turn = |number| {
            let (orders, merchant) = (&orders, &merchant);
            async move {
                let deadline = RequestDeadline::after(Duration::from_secs(1));
                orders.turn(merchant, Direction::Payin, &order(number), deadline).await
            }
        };
        let first = turn(1).await.unwrap();
        assert!(matches!(turn(1).await, Err(ApiError::EngineTimeout)));
        turn(2).await.unwrap();
        drop(first);
        turn(1).await.unwrap();
    }

    #[tokio::test]
    async fn unused_orders_are_forgotten() {
        let orders = OrderLocks::default();
        let merchant = MerchantId::new("acme").unwrap();
        let deadline = RequestDeadline::after(Duration::from_mins(1));
        let kept = orders.turn(&merchant, Direction::Payin, &order(0), deadline).await.unwrap();
        for number in 1..5 * FEW {
            orders.turn(&merchant, Direction::Payin, &order(number), deadline).await.unwrap();
        }
        let held = |orders: &OrderLocks| orders.0.lock().unwrap().turns.len();
        assert!(held(&orders) <= FEW, "{}", held(&orders));
        let soon = RequestDeadline::after(Duration::from_millis(1));
        assert!(orders.turn(&merchant, Direction::Payin, &order(0), soon).await.is_err(), "it is still taken");
        drop(kept);
    }
}
