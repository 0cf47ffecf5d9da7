//! The address at which this gateway takes the v2 callbacks of operations that it translated from v1.

use crate::auth::signatures::lower_hex;
use crate::domain::{Direction, MerchantId, OrderId};
use crate::store::Comparer;

/// The relay address of an order: `{public_url}/relay/{merchant}.{direction}.{code}`. The code is the store's key of the
/// order, a keyed hash, so that it cannot be guessed or used for another one; it is the same at every try of the same
/// create, so that two concurrent ones say the same to the engine.
#[must_use]
pub fn relay_url(
    public_url: &str,
    comparer: &Comparer,
    merchant: &MerchantId,
    direction: Direction,
    external_id: &OrderId,
) -> String {
    let code = comparer.order_key(merchant, direction, external_id);
    format!("{public_url}/relay/{merchant}.{direction}.{}", lower_hex(&code.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_for_each_order() {
        let comparer = Comparer::new(&[5; 32]);
        let merchant = MerchantId::new("acme").unwrap();
        let url = |direction, order: &str| {
            relay_url("https://gw.example", &comparer, &merchant, direction, &OrderId::new(order).unwrap())
        };
        let first = url(Direction::Payin, "o1");
        assert_eq!(first, url(Direction::Payin, "o1"));
        assert!(first.starts_with("https://gw.example/relay/acme.payin."), "{first}");
        assert_ne!(first, url(Direction::Payin, "o2"));
        assert_ne!(first.rsplit('.').next(), url(Direction::Payout, "o1").rsplit('.').next());
    }
}
