//! Opening balances: offered with a merchant's creates until one of them stood. The store books them in the commit of
//! the first operation that finds the merchant's ledger empty; what is remembered here only spares it the question.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::{Amount, Currency, MerchantId};

/// How many merchants are remembered; beyond, all are forgotten, which costs the store a look for each.
const REMEMBERED: usize = 65_536;

/// The merchants whose opening balances are booked.
#[derive(Debug, Default)]
pub(super) struct Openings {
    booked: Mutex<HashSet<MerchantId>>,
}

impl Openings {
    /// What a create of this merchant offers to be booked; empty when there is nothing left.
    pub(super) fn offered(
        &self,
        merchant: &MerchantId,
        opening: &BTreeMap<Currency, Amount>,
    ) -> Arc<[(Currency, Amount)]> {
        if opening.is_empty() || self.booked().contains(merchant) {
            return Arc::default();
        }
        opening.iter().map(|(currency, amount)| (*currency, *amount)).collect()
    }

    /// A create that offered them stands: they are booked now, or were before.
    pub(super) fn stood(&self, merchant: &MerchantId) {
        let mut booked = self.booked();
        if booked.len() >= REMEMBERED {
            booked.clear();
        }
        booked.insert(merchant.clone());
    }

    fn booked(&self) -> MutexGuard<'_, HashSet<MerchantId>> {
        self.booked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_offered_until_a_create_stood() {
        let merchant = |name: &str| MerchantId::new(name).unwrap();
        let amount = Amount::from_hundredths(100).unwrap();
        let opening = BTreeMap::from([(Currency::new("EUR").unwrap(), amount)]);
        let openings = Openings::default();
        assert!(openings.offered(&merchant("a"), &BTreeMap::new()).is_empty());
        for _ in 0..2 {
            assert_eq!(*openings.offered(&merchant("a"), &opening), [(Currency::new("EUR").unwrap(), amount)]);
        }
        openings.stood(&merchant("a"));
        assert!(openings.offered(&merchant("a"), &opening).is_empty());
        assert_eq!(openings.offered(&merchant("b"), &opening).len(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let openings = Openings::default();
        for number in 0..=REMEMBERED {
            openings.stood(&MerchantId::new(&format!("m{number}")).unwrap());
        }
        assert_eq!(openings.booked().len(), 1);
    }
}
