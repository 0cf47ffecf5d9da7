//! The egress policy: which addresses may be connected to. Addresses that do not come from the rules must not reach the
//! private network around the gateway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses a request may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EgressPolicy {
    /// Any address: the operator's rules named it.
    Anywhere,
    /// Only addresses of the public internet, checked after the name was resolved.
    PublicOnly,
}

impl EgressPolicy {
    /// Reports whether this address may be connected to.
    #[must_use]
    pub const fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::PublicOnly => is_public(address),
        }
    }
}

/// Reports whether an address is a host of the public internet. Addresses in IANA's special-purpose registries are not,
/// nor is a cloud's service for its own machines. An IPv4 address embedded in an IPv6 address is checked as IPv4, if
/// such an address is routed on the internet at all.
#[must_use]
pub const fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = matches!(
        address.octets(),
        // "This network", private, loopback; multicast, reserved, broadcast.
        [0 | 10 | 127 | 224..=255, ..]
            // Carriers' own networks, 100.64.0.0/10; some clouds' metadata too.
            | [100, 64..=127, ..]
            // Link local: most clouds' metadata.
            | [169, 254, ..]
            | [172, 16..=31, ..]
            // Protocol assignments, documentation.
            | [192, 0, 0 | 2, _]
            // Relays of 6to4.
            | [192, 88, 99, _]
            | [192, 168, ..]
            // Benchmarks.
            | [198, 18 | 19, ..]
            // Documentation.
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            // A cloud's service for its own machines, at an address outside the special ranges.
            | [168, 63, 129, 16]
    );
    !special
}

const fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // Mapped: the socket uses IPv4. NAT64: so does the host behind the translator.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_embedded_public(high, low),
        // 6to4.
        [0x2002, high, low, ..] if !is_embedded_public(high, low) => false,
        // Protocol assignments with Teredo, benchmarks and ORCHID; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // ISATAP, below any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] if !is_embedded_public(high, low) => false,
        // Only 2000::/3 is allocated to hosts of the internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

const fn is_embedded_public(high: u16, low: u16) -> bool {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    is_public_v4(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:db7:ffff::1",
            "2001:db9::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "3ffe::1",
            "3fff:1000::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2606:4700::5efe:8.8.8.8",
            "2606:4700::200:5efe:8.8.8.8",
            "2606:4700::100:5efe:10.0.0.1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            // RFC 6890 and its updates, as IANA's IPv4 registry has them, first and last of each.
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.192",
            "192.0.0.255",
            "192.0.2.0",
            "192.0.2.255",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.255",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            // The same for IPv6.
            "::",
            "::1",
            "64:ff9b:1::1",
            "64:ff9b:1:ffff:ffff:ffff:808:808",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:1::1",
            "2001:2::1",
            "2001:3::1",
            "2001:4:112::1",
            "2001:10::1",
            "2001:20::1",
            "2001:2f:ffff::1",
            "2001:30::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff::1",
            "3fff:fff:ffff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ffff::1",
            "200::1",
            "1fff::1",
            // IPv4 inside IPv6.
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:168.63.129.16",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "::ffff:0:8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::1:808:808",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "2002:a9fe:a9fe::1",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:127.0.0.1",
            "2002:808:808::5efe:192.168.0.1",
            "fe80::5efe:8.8.8.8",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn anywhere_allows_private_addresses() {
        let [private, public] = ["10.0.0.1", "8.8.8.8"].map(|address| address.parse().unwrap());
        assert!(EgressPolicy::Anywhere.allows(private) && EgressPolicy::Anywhere.allows(public));
        assert!(!EgressPolicy::PublicOnly.allows(private) && EgressPolicy::PublicOnly.allows(public));
    }
}
