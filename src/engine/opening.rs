//! Opening balances: offered with a merchant's creates, and with its balance questions, until one of them stood. The store
//! books them once, with whatever comes first; what is remembered here only spares it the question.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::{Amount, Currency, MerchantId};

/// How many merchants are remembered; beyond, all are forgotten, which costs the store a look for each.
const REMEMBERED: usize = 65_536;

/// The merchants that the store is known to know.
#[derive(Debug, Default)]
pub(super) struct OpeningBalances {
    seen: Mutex<HashSet<MerchantId>>,
}

impl OpeningBalances {
    /// What a request of this merchant offers to be booked; `None` when it cannot be the first.
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

    /// A request that offered them stands: the merchant is known to the store.
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
