//! A set of addresses.

use std::fmt;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixSet;

use crate::domain::canonical_ip;

/// A set of addresses, such as a key's allow-list: one prefix trie for each address family. An empty set contains no
/// address.
#[derive(Default)]
pub struct AddressSet {
    v4: PrefixSet<Ipv4Net>,
    v6: PrefixSet<Ipv6Net>,
}

impl AddressSet {
    /// Returns the prefixes, as rule files write them.
    pub fn prefixes(&self) -> impl Iterator<Item = String> {
        self.v4.iter().map(|prefix| prefix.to_string()).chain(self.v6.iter().map(|prefix| prefix.to_string()))
    }

    /// Creates a set of prefixes; IPv4-mapped IPv6 prefixes count as IPv4.
    #[must_use]
    pub fn new(prefixes: impl IntoIterator<Item = IpNet>) -> Self {
        let mut list = Self::default();
        for prefix in prefixes {
            match canonical_prefix(prefix) {
                IpNet::V4(prefix) => list.v4.insert(prefix),
                IpNet::V6(prefix) => list.v6.insert(prefix),
            };
        }
        list
    }

    /// Reports whether the set contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match canonical_ip(address) {
            IpAddr::V4(address) => self.v4.get_lpm(&Ipv4Net::from(address)).is_some(),
            IpAddr::V6(address) => self.v6.get_lpm(&Ipv6Net::from(address)).is_some(),
        }
    }
}

impl fmt::Debug for AddressSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressSet({} IPv4, {} IPv6 prefixes)", self.v4.iter().count(), self.v6.iter().count())
    }
}

/// A prefix as addresses are compared with it: IPv4-mapped IPv6 is IPv4.
pub(super) fn canonical_prefix(prefix: IpNet) -> IpNet {
    let IpNet::V6(v6) = prefix else { return prefix };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(address), Some(length)) => Ipv4Net::new(address, length).map_or(prefix, IpNet::V4),
        _ => prefix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(prefixes: &[&str]) -> AddressSet {
        AddressSet::new(prefixes.iter().map(|text| text.parse::<IpNet>().unwrap()))
    }

    #[test]
    fn addresses_are_matched_by_prefix() {
        let list = list(&["203.0.113.0/24", "198.51.100.7/32", "2001:db8::/32", "::ffff:192.0.2.0/120"]);
        for inside in ["203.0.113.255", "198.51.100.7", "2001:db8:1::1", "::ffff:203.0.113.9", "192.0.2.44"] {
            assert!(list.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["203.0.114.0", "198.51.100.8", "2001:db9::", "::ffff:10.0.0.1", "::1"] {
            assert!(!list.contains(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn an_empty_list_admits_no_address() {
        assert!(!list(&[]).contains("127.0.0.1".parse().unwrap()));
        assert!(list(&["0.0.0.0/0"]).contains("127.0.0.1".parse().unwrap()));
        assert!(!list(&["0.0.0.0/0"]).contains("::1".parse().unwrap()));
    }
}
