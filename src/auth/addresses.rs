//! Finds the client's address behind proxies (contract section 2, `[clients]`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};

use ipnet::IpNet;

use crate::domain::canonical_ip;

/// Returns the caller's address. `peer` is the other end of the connection, and `forwarded` has the values of all
/// `X-Forwarded-For` lines in order. Together they are one list, to which each proxy appends the address of its client.
///
/// The list is trusted from its end for as long as its entries are trusted proxies: the caller is the rightmost entry
/// that is not a trusted proxy. An untrusted peer is itself the caller. At an entry that is not an address, the caller
/// is the last trusted proxy, because nothing vouches for the entries left of it. Addresses may have a port, and IPv6
/// brackets, as some proxies write them.
///
/// `Forwarded`, `X-Real-IP` and similar headers never count.
#[must_use]
pub fn client_address<'a>(
    peer: IpAddr,
    trusted_proxies: &[IpNet],
    forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> IpAddr {
    let mut caller = canonical_ip(peer);
    if !is_trusted(trusted_proxies, caller) {
        return caller;
    }
    for entry in forwarded.rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
        let Some(address) = entry_address(entry) else { break };
        caller = address;
        if !is_trusted(trusted_proxies, caller) {
            break;
        }
    }
    caller
}

/// Reports whether a canonical address is a trusted proxy's. Rules may contain IPv4 prefixes in IPv6-mapped form.
fn is_trusted(trusted_proxies: &[IpNet], address: IpAddr) -> bool {
    let mapped = match address {
        IpAddr::V4(address) => IpAddr::V6(address.to_ipv6_mapped()),
        IpAddr::V6(_) => address,
    };
    trusted_proxies.iter().any(|prefix| prefix.contains(&address) || prefix.contains(&mapped))
}

fn entry_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim_matches([' ', '\t']);
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        IpAddr::V6(address.parse::<Ipv6Addr>().ok().filter(|_| port_fits)?)
    } else if let Ok(address) = text.parse::<Ipv4Addr>() {
        IpAddr::V4(address)
    } else if let Ok(with_port) = text.parse::<SocketAddrV4>() {
        IpAddr::V4(*with_port.ip())
    } else {
        IpAddr::V6(text.parse::<Ipv6Addr>().ok()?)
    };
    Some(canonical_ip(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(peer: &str, trusted: &[&str], lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &trusted, lines.iter().map(|line| line.as_bytes())).to_string()
    }

    #[test]
    fn forwarding_headers_count_only_from_trusted_proxies() {
        assert_eq!(caller("192.0.2.1", &[], &["203.0.113.7"]), "192.0.2.1", "no proxy is trusted");
        assert_eq!(caller("192.0.2.1", &["10.0.0.0/8"], &["203.0.113.7"]), "192.0.2.1", "another proxy is trusted");
        assert_eq!(caller("::ffff:192.0.2.1", &[], &[]), "192.0.2.1", "canonical");
    }

    #[test]
    fn the_rightmost_untrusted_entry_is_the_caller() {
        let trusted = ["10.0.0.0/8", "2001:db8:aaaa::/48"];
        for (lines, expected) in [
            (&[][..], "10.0.0.1"),
            (&["203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1", "203.0.113.7"], "203.0.113.7"),
            (&["203.0.113.7", "10.9.9.9,10.8.8.8"], "203.0.113.7"),
            (&["198.51.100.1,203.0.113.7\t, 10.9.9.9", "2001:db8:aaaa::9"], "203.0.113.7"),
            (&["10.9.9.9, 10.8.8.8"], "10.9.9.9"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            (&["203.0.113.7, ::ffff:10.9.9.9"], "203.0.113.7"),
            (&["2001:db8::7"], "2001:db8::7"),
            (&["203.0.113.7:4711"], "203.0.113.7"),
            (&["[2001:db8::7]"], "2001:db8::7"),
            (&["[2001:db8::7]:4711"], "2001:db8::7"),
        ] {
            assert_eq!(caller("10.0.0.1", &trusted, lines), expected, "{lines:?}");
            assert_eq!(caller("::ffff:10.0.0.1", &trusted, lines), expected, "{lines:?}");
        }
        assert_eq!(caller("10.0.0.1", &["::ffff:10.0.0.0/104"], &["203.0.113.7"]), "203.0.113.7");
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_walk_at_the_last_trusted_proxy() {
        for bad in
            ["", "unknown", "_hidden", "203.0.113.7/32", "203.0.113", "203.0.113.7:x", "[::1", "[::1]x", "\u{e9}"]
        {
            let line = format!("198.51.100.1, {bad}, 10.9.9.9");
            assert_eq!(caller("10.0.0.1", &["10.0.0.0/8"], &[&line]), "10.9.9.9", "{bad}");
            assert_eq!(caller("10.0.0.1", &["10.0.0.0/8"], &["198.51.100.1", bad]), "10.0.0.1", "{bad}");
        }
    }
}
