//! Limits the requests to HTTP providers in flight: for each shop, and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ShopCode;

/// The most requests in flight of one shop.
const OF_A_SHOP: usize = 32;
/// The most requests in flight in all, except that every shop may have one: providers that are slow together delay no
/// other shop.
const IN_ALL: usize = 256;

/// Counts the requests in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlightLimiter(Arc<Mutex<HashMap<ShopCode, usize>>>);

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    all: InFlightLimiter,
    shop: ShopCode,
}

impl InFlightLimiter {
    /// Returns how many more requests of a shop may start.
    pub(super) fn room(&self, shop: &ShopCode) -> usize {
        let counts = self.counts();
        let own = counts.get(shop).copied().unwrap_or_default();
        let in_all: usize = counts.values().sum();
        let room = OF_A_SHOP.saturating_sub(own).min(IN_ALL.saturating_sub(in_all));
        if own == 0 { room.max(1) } else { room }
    }

    /// Counts another request of a shop.
    pub(super) fn start(&self, shop: &ShopCode) -> Flight {
        *self.counts().entry(shop.clone()).or_default() += 1;
        Flight { all: self.clone(), shop: shop.clone() }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<ShopCode, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
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
    fn a_shop_has_its_share_and_nobody_is_locked_out() {
        let shop = |number: usize| ShopCode::new(&format!("shop-{number}")).unwrap();
        let flights = InFlightLimiter::default();
        assert_eq!(flights.room(&shop(0)), OF_A_SHOP);
        let mut under_way: Vec<_> = (0..OF_A_SHOP).map(|_| flights.start(&shop(0))).collect();
        assert_eq!((flights.room(&shop(0)), flights.room(&shop(1))), (0, OF_A_SHOP));
        for number in 1..8 {
            under_way.extend((0..OF_A_SHOP).map(|_| flights.start(&shop(number))));
        }
        assert_eq!(flights.room(&shop(8)), 1, "every shop may have one");
        let own = flights.start(&shop(8));
        assert_eq!(flights.room(&shop(8)), 0);
        drop(own);
        under_way.truncate(OF_A_SHOP + 5);
        assert_eq!(flights.room(&shop(1)), OF_A_SHOP - 5);
        under_way.clear();
        assert!(flights.counts().is_empty(), "shops without requests are removed");
    }
}
