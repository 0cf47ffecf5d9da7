//! Limits the requests to HTTP providers in flight: for each shop, and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ShopCode;

/// The most requests in flight of one shop.
const MAX_PER_SHOP: usize = 32;
/// The most requests in flight in all, except that every shop may have one: providers that are slow together delay no
/// other shop.
const MAX_TOTAL: usize = 256;

/// Counts the requests in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlightLimiter(Arc<Mutex<HashMap<ShopCode, usize>>>);

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlight {
    all: InFlightLimiter,
    shop: ShopCode,
}

impl InFlightLimiter {
    /// Returns how many more requests of a shop may start.
    pub(super) fn capacity(&self, shop: &ShopCode) -> usize {
        let counts = self.counts();
        let own = counts.get(shop).copied().unwrap_or_default();
        let total: usize = counts.values().sum();
        let capacity = MAX_PER_SHOP.saturating_sub(own).min(MAX_TOTAL.saturating_sub(total));
        if own == 0 { capacity.max(1) } else { capacity }
    }

    /// Counts another request of a shop.
    pub(super) fn start(&self, shop: &ShopCode) -> InFlight {
        *self.counts().entry(shop.clone()).or_default() += 1;
        InFlight { all: self.clone(), shop: shop.clone() }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<ShopCode, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        if let Some(count) = counts.get_mut(&self.shop) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.shop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shop_has_a_limit_and_every_shop_may_have_one() {
        let shop = |number: usize| ShopCode::new(&format!("shop-{number}")).unwrap();
        let limiter = InFlightLimiter::default();
        assert_eq!(limiter.capacity(&shop(0)), MAX_PER_SHOP);
        let mut in_flight: Vec<_> = (0..MAX_PER_SHOP).map(|_| limiter.start(&shop(0))).collect();
        assert_eq!((limiter.capacity(&shop(0)), limiter.capacity(&shop(1))), (0, MAX_PER_SHOP));
        for number in 1..8 {
            in_flight.extend((0..MAX_PER_SHOP).map(|_| limiter.start(&shop(number))));
        }
        assert_eq!(limiter.capacity(&shop(8)), 1, "every shop may have one");
        let own = limiter.start(&shop(8));
        assert_eq!(limiter.capacity(&shop(8)), 0);
        drop(own);
        in_flight.truncate(MAX_PER_SHOP + 5);
        assert_eq!(limiter.capacity(&shop(1)), MAX_PER_SHOP - 5);
        in_flight.clear();
        assert!(limiter.counts().is_empty(), "shops without requests are removed");
    }
}
