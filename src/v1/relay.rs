//! The address at which this gateway takes the v2 callbacks of operations that it translated from v1.

use crate::domain::{Direction, Fingerprint, MerchantId};

/// The relay address of an order: `{public_url}/relay/{merchant}.{direction}.{code}`. `order` is the store's key of the
/// order, a keyed hash, so that it cannot be guessed or used for another one; it is the same at every try of the same
/// create, so that two concurrent ones say the same to the engine.
#[must_use]
pub fn relay_url(public_url: &str, merchant: &MerchantId, direction: Direction, order: Fingerprint) -> String {
    let mut url = String::with_capacity(public_url.len() + merchant.as_str().len() + 64);
    for piece in [public_url, "/relay/", merchant.as_str(), ".", direction.as_str(), "."] {
        url.push_str(piece);
    }
    url.push_str(&hex::encode(order.0));
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FingerprintKey;
    use crate::domain::OrderId;

    #[test]
    fn one_address_for_each_order() {
        let fingerprint_key = FingerprintKey::new(&[5; 32]);
        let merchant = MerchantId::new("acme").unwrap();
        let url = |direction, order: &str| {
            let order = fingerprint_key.order_key(&merchant, direction, &OrderId::new(order).unwrap());
            relay_url("https://gw.example", &merchant, direction, order)
        };
        let first = url(Direction::Payin, "o1");
        assert_eq!(first, url(Direction::Payin, "o1"));
        assert!(first.starts_with("https://gw.example/relay/acme.payin."), "{first}");
        assert_ne!(first, url(Direction::Payin, "o2"));
        assert_ne!(first.rsplit('.').next(), url(Direction::Payout, "o1").rsplit('.').next());
    }
}
