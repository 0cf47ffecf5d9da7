//! Places for requests to one service: a bound that no merchant can use up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::MerchantId;

/// A number of places, of which no merchant has more than half, whether or not others need them.
pub struct RequestPlaces {
    all: Arc<Semaphore>,
    half: usize,
    /// The half of each merchant that has a place or waits for one.
    halves: Mutex<HashMap<MerchantId, Arc<Semaphore>>>,
}

/// A place, given back when it is dropped.
pub struct RequestPlace {
    _of_half: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl RequestPlaces {
    /// Makes so many places.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(count)), half: count / 2, halves: Mutex::default() }
    }

    /// Takes a place now; `None` when none is free, or the merchant has half of them.
    #[must_use]
    pub fn take(&self, merchant: &MerchantId) -> Option<RequestPlace> {
        let of_half = self.half_of(merchant).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(RequestPlace { _of_half: of_half, _of_all: of_all })
    }

    /// Waits for a place, however long it takes. Requests of merchants that have half of the places wait behind each other
    /// alone.
    pub async fn wait(&self, merchant: &MerchantId) -> Option<RequestPlace> {
        let of_half = self.half_of(merchant).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(RequestPlace { _of_half: of_half, _of_all: of_all })
    }

    fn half_of(&self, merchant: &MerchantId) -> Arc<Semaphore> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(half) = halves.get(merchant) {
            return Arc::clone(half);
        }
        // Only halves in use are kept, so that there are never more than places and requests that wait.
        halves.retain(|_, half| Arc::strong_count(half) > 1);
        let half = Arc::new(Semaphore::new(self.half));
        halves.insert(merchant.clone(), Arc::clone(&half));
        half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merchant(name: &str) -> MerchantId {
        MerchantId::new(name).unwrap()
    }

    #[test]
    fn no_merchant_has_more_than_half_of_the_places() {
        let (places, acme) = (RequestPlaces::new(4), merchant("acme"));
        let held: Vec<_> = std::iter::from_fn(|| places.take(&acme)).collect();
        assert_eq!(held.len(), 2);
        let other = [places.take(&merchant("beta")).unwrap(), places.take(&merchant("gamma")).unwrap()];
        assert!(places.take(&merchant("delta")).is_none(), "none is free");
        drop(other);
        assert!(places.take(&acme).is_none());
        drop(held);
        assert!(places.take(&acme).is_some(), "places are given back");
        for number in 0..100 {
            assert!(places.take(&merchant(&format!("m{number}"))).is_some());
        }
        assert!(places.halves.lock().unwrap().len() < 4, "merchants without a place are forgotten");
    }

    #[tokio::test]
    async fn a_wait_ends_with_a_place_of_the_merchants_own_half() {
        let (places, acme) = (RequestPlaces::new(4), merchant("acme"));
        let first = places.wait(&acme).await.unwrap();
        let _second = places.wait(&acme).await.unwrap();
        let mut third = Box::pin(places.wait(&acme));
        assert!(futures_pending(&mut third).await);
        assert!(places.wait(&merchant("beta")).await.is_some(), "others do not wait behind it");
        drop(first);
        assert!(third.await.is_some());
    }

    /// Reports whether a future is not ready.
    async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
