//! Network addresses: the customer's address, and the canonical form for comparisons.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::InvalidValue;

/// The customer's address as the merchant sent it: exactly one IPv4 or IPv6 address (promises P072 to
/// P078). The text is kept because retries are compared by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerIp {
    text: Box<str>,
    address: IpAddr,
}

impl CustomerIp {
    /// Parses one address, without whitespace, port, prefix length, zone or list.
    ///
    /// # Errors
    /// Any other text, including the empty string.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        let address = text
            .parse::<Ipv4Addr>()
            .map(IpAddr::V4)
            .or_else(|_| text.parse::<Ipv6Addr>().map(IpAddr::V6))
            .map_err(|_| InvalidValue::new("must be exactly one IPv4 or IPv6 address"))?;
        Ok(Self { text: text.into(), address })
    }

    /// Returns the text as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the address; IPv4-mapped IPv6 becomes IPv4.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        canonical_ip(self.address)
    }
}

/// Returns the form in which addresses are compared: IPv4-mapped IPv6 becomes IPv4 (contract section 3, step 4).
#[must_use]
pub fn canonical_ip(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Returns what one subscriber has, by which requests are counted: an IPv4 address, or the /64 of an IPv6 one.
#[must_use]
pub fn subscriber_network(address: IpAddr) -> IpAddr {
    match canonical_ip(address) {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_and_nothing_around_it() {
        for text in ["203.0.113.7", "::1", "2001:db8::1", "::ffff:203.0.113.7"] {
            assert_eq!(CustomerIp::new(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            " 203.0.113.7",
            "203.0.113.7 ",
            "203.0.113.7:80",
            "203.0.113.0/24",
            "203.0.113.7,203.0.113.8",
            "[::1]",
            "fe80::1%eth0",
            "203.0.113",
            "0203.0.113.7",
            "localhost",
            "1",
            "203.0.113.256",
            "203.0.113.7\n",
        ] {
            assert!(CustomerIp::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn mapped_addresses_compare_as_ipv4() {
        let mapped = CustomerIp::new("::ffff:203.0.113.7").unwrap();
        assert_eq!(mapped.address(), "203.0.113.7".parse::<IpAddr>().unwrap());
    }
}
