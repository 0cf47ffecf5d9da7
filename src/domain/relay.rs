//! The address at which a gateway receives the callbacks of a v2 engine.

use super::{CallbackUrl, Direction, Fingerprint, MerchantId, push_hex};

impl CallbackUrl {
    /// Returns the address at which a gateway receives the v2 callback of an order:
    /// `{public_url}/relay/{merchant}.{direction}.{code}`. `public_url` is a [`service_url`](super::service_url); `order` is the store's key of the
    /// order, a keyed hash, so that the address cannot be guessed or used for another order. It is the same at every try of a
    /// create, so that two concurrent tries send the engine the same body.
    #[must_use]
    pub fn of_relay(public_url: &str, merchant: &MerchantId, direction: Direction, order: Fingerprint) -> Self {
        let mut url = String::with_capacity(public_url.len() + merchant.as_str().len() + 64);
        for piece in [public_url, "/relay/", merchant.as_str(), ".", direction.as_str(), "."] {
            url.push_str(piece);
        }
        push_hex(&mut url, &order.0);
        Self::of_checked(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FingerprintKey, OrderId};

    #[test]
    fn one_address_for_each_order() {
        let fingerprint_key = FingerprintKey::new(&[5; 32]);
        let merchant = MerchantId::new("acme").unwrap();
        let url = |direction, order: &str| {
            let order = fingerprint_key.order_key(&merchant, direction, &OrderId::new(order).unwrap());
            CallbackUrl::of_relay("https://gw.example", &merchant, direction, order)
        };
        let first = url(Direction::Payin, "o1");
        assert_eq!(first, url(Direction::Payin, "o1"));
        assert!(first.as_str().starts_with("https://gw.example/relay/acme.payin."), "{first:?}");
        assert_eq!(CallbackUrl::new(first.as_str()).as_ref(), Ok(&first), "it keeps the rules of every other one");
        assert_ne!(first, url(Direction::Payin, "o2"));
        let code = |url: &CallbackUrl| url.as_str().rsplit('.').next().map(str::to_owned);
        assert_ne!(code(&first), code(&url(Direction::Payout, "o1")));
    }
}
