//! Opening balances: part of a merchant's creates and balance requests until one of them was committed. The store posts
//! them once; what is remembered here only saves it the check.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::{Amount, Currency, MerchantId};

/// The most merchants remembered; then all are forgotten, which costs the store one check for each.
const REMEMBERED: usize = 65_536;

/// The merchants whose opening balances are known to be posted.
#[derive(Debug, Default)]
pub(super) struct OpeningBalances {
    seen: Mutex<HashSet<MerchantId>>,
}

impl OpeningBalances {
    /// Returns the opening balances to post with a request of this merchant; `None` when they are posted already.
    pub(super) fn offered(
        &self,
        merchant: &MerchantId,
        opening: &BTreeMap<Currency, Amount>,
    ) -> Option<Arc<[(Currency, Amount)]>> {
        if self.seen().contains(merchant) {
            return None;
        }
        Some(opening.iter().map(|(currency, amount)| (*currency, *amount)).collect())
    }

    /// Notes that a request with the opening balances was committed.
    pub(super) fn confirmed(&self, merchant: &MerchantId) {
        let mut seen = self.seen();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert(merchant.clone());
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<MerchantId>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_offered_until_a_create_confirmed() {
        let merchant = |name: &str| MerchantId::new(name).unwrap();
        let amount = Amount::from_hundredths(100).unwrap();
        let opening = BTreeMap::from([(Currency::new("EUR").unwrap(), amount)]);
        let openings = OpeningBalances::default();
        assert!(openings.offered(&merchant("a"), &BTreeMap::new()).unwrap().is_empty());
        for _ in 0..2 {
            assert_eq!(*openings.offered(&merchant("a"), &opening).unwrap(), [(Currency::new("EUR").unwrap(), amount)]);
        }
        openings.confirmed(&merchant("a"));
        assert_eq!(openings.offered(&merchant("a"), &opening), None);
        assert_eq!(openings.offered(&merchant("b"), &opening).unwrap().len(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let openings = OpeningBalances::default();
        for number in 0..=REMEMBERED {
            openings.confirmed(&MerchantId::new(&format!("m{number}")).unwrap());
        }
        assert_eq!(openings.seen().len(), 1);
    }
}
