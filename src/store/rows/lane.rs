//! Lanes: what a merchant's history can be asked for, by a number.

use crate::domain::Operation;
use crate::store::{Comparer, Parts};

/// The number of what an operation has in common with others of its lane: merchant, direction, shop and currency. Every
/// node gives them the same one.
pub(in crate::store) fn number(comparer: &Comparer, operation: &Operation) -> i64 {
    let Operation { merchant, shop, currency, .. } = operation;
    of(comparer, [merchant.as_str(), operation.direction().as_str(), shop.as_str(), currency.as_str()])
}

/// The same of the words of these.
pub(in crate::store) fn of(comparer: &Comparer, common: [&str; 4]) -> i64 {
    let mut parts = Parts::of("lane");
    for part in common {
        parts.part(part.as_bytes());
    }
    comparer.digest(&parts).number()
}
