//! What two address lists let in, compared exactly: as sets of addresses, shown as the fewest networks.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};

use crate::rules::merchant::canonical_prefix;

/// How many networks a sentence names.
const MOST_NAMED: usize = 8;

/// First and last address, IPv4 as numbers of 32 bits.
type Range = (u128, u128);

/// IPv4's addresses as IPv6 writes them: no address that is compared is among them, since they count as IPv4.
const MAPPED: Range = (0xffff_0000_0000, 0xffff_ffff_ffff);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

/// The addresses that are in one list and not in another, as networks.
pub(super) struct Networks {
    v4: Vec<Range>,
    v6: Vec<Range>,
    /// The families that are in the first list as a whole, as far as anything of them is left.
    whole: Vec<&'static str>,
}

impl Networks {
    /// The addresses of `list` that are not in `without`.
    pub fn difference(list: &[IpNet], without: &[IpNet]) -> Self {
        let of = |family| minus(&ranges(list, family), &ranges(without, family));
        let mut v6 = of(Family::V6);
        v6.retain(|(first, last)| *first < MAPPED.0 || *last > MAPPED.1);
        let v4 = of(Family::V4);
        let families = [(Family::V4, &v4, u32::MAX.into(), "IPv4"), (Family::V6, &v6, u128::MAX, "IPv6")];
        let whole = families
            .iter()
            .filter(|(family, left, last, _)| !left.is_empty() && ranges(list, *family).contains(&(0, *last)));
        Self { whole: whole.map(|(.., name)| *name).collect(), v4, v6 }
    }

    /// Whether no address is in it.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The fewest networks that hold exactly these addresses, IPv4 first.
    pub fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        let v4 = self.v4.iter().flat_map(|(first, last)| {
            let address = |number: &u128| Ipv4Addr::from(u32::try_from(*number).unwrap_or(u32::MAX));
            Ipv4Subnets::new(address(first), address(last), 0).map(IpNet::V4)
        });
        let v6 = self.v6.iter().flat_map(|(first, last)| {
            Ipv6Subnets::new(Ipv6Addr::from(*first), Ipv6Addr::from(*last), 0).map(IpNet::V6)
        });
        v4.chain(v6)
    }

    /// "a, b and 31 more networks", and whether it is more than one.
    pub fn named(&self) -> (String, bool) {
        let mut prefixes = self.prefixes();
        let named: Vec<String> = prefixes.by_ref().take(MOST_NAMED).map(|prefix| shown(&prefix)).collect();
        let more = prefixes.count();
        (super::words::and_more(&named, more, "network"), named.len() + more > 1)
    }

    /// Says so when every address of a family is let in from now on: the networks alone hide it.
    pub fn everyone(&self) -> String {
        let all = |family: &&str| format!(": every {family} address is let in now");
        self.whole.iter().map(all).collect()
    }
}

/// A network as it is written; one address without its length.
pub(super) fn shown(prefix: &IpNet) -> String {
    if prefix.prefix_len() == prefix.max_prefix_len() { prefix.addr().to_string() } else { prefix.to_string() }
}

/// The addresses of one family, in order, nothing twice, nothing that hangs together apart.
fn ranges(list: &[IpNet], family: Family) -> Vec<Range> {
    let range = |prefix: &IpNet| match (canonical_prefix(*prefix), family) {
        (IpNet::V4(v4), Family::V4) => Some((u32::from(v4.network()).into(), u32::from(v4.broadcast()).into())),
        (IpNet::V6(v6), Family::V6) => Some((v6.network().into(), v6.broadcast().into())),
        _ => None,
    };
    let mut sorted: Vec<Range> = list.iter().filter_map(range).collect();
    sorted.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (first, last) in sorted {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// What of `list` is not in `without`; both as [`ranges`] makes them.
fn minus(list: &[Range], without: &[Range]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut from = 0;
    for (first, last) in list {
        let mut start = Some(*first);
        while without.get(from).is_some_and(|(_, end)| end < first) {
            from += 1;
        }
        for (taken, end) in without[from..].iter().take_while(|(taken, _)| taken <= last) {
            if let Some(at) = start.filter(|at| at < taken) {
                left.push((at, taken - 1));
            }
            start = if end < last { Some(end + 1) } else { None };
        }
        left.extend(start.map(|at| (at, *last)));
    }
    left
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::AddressSet;

    fn list(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn difference(one: &[&str], other: &[&str]) -> String {
        Networks::difference(&list(one), &list(other)).named().0
    }

    #[test]
    fn differences_are_the_fewest_networks() {
        assert_eq!(difference(&["10.0.0.0/24"], &["10.0.0.0/24"]), "");
        assert_eq!(difference(&["10.0.0.0/25", "10.0.0.128/25"], &[]), "10.0.0.0/24");
        assert_eq!(difference(&["10.0.0.0/25", "10.0.0.128/25"], &["10.0.0.0/24"]), "");
        assert_eq!(difference(&["10.0.0.0/24"], &["10.0.0.128/25"]), "10.0.0.0/25");
        assert_eq!(difference(&["198.51.100.7/32", "2001:db8::/32"], &[]), "198.51.100.7 and 2001:db8::/32");
        assert_eq!(difference(&["::ffff:192.0.2.0/120"], &["192.0.2.0/24"]), "");
        assert_eq!(difference(&["::/0"], &["::/1", "8000::/1"]), "");
        assert_eq!(difference(&["::/0"], &[]), "::/0");
        assert_eq!(difference(&["0.0.0.0/0"], &["::/0"]), "0.0.0.0/0");
    }

    #[test]
    fn everyone_is_said() {
        let everyone = |new: &[&str], old: &[&str]| Networks::difference(&list(new), &list(old)).everyone();
        let both = ": every IPv4 address is let in now: every IPv6 address is let in now";
        assert_eq!(everyone(&["0.0.0.0/0", "::/0"], &["127.0.0.0/8", "::1/128"]), both);
        assert_eq!(everyone(&["0.0.0.0/1", "128.0.0.0/1"], &[]), ": every IPv4 address is let in now");
        assert_eq!(everyone(&["0.0.0.0/0"], &["0.0.0.0/0"]), "");
        assert_eq!(everyone(&["10.0.0.0/8"], &[]), "");
    }

    #[test]
    fn a_hole_does_not_explode() {
        let (named, several) = Networks::difference(&list(&["0.0.0.0/0"]), &list(&["198.51.100.7/32"])).named();
        assert!(several && named.ends_with(" and 24 more networks"), "{named}");
        assert!(named.len() < 250, "{named}");
    }

    fn prefix() -> impl Strategy<Value = IpNet> {
        prop_oneof![
            (any::<u32>(), 0..=32_u8)
                .prop_map(|(address, length)| IpNet::new(IpAddr::V4((address & 0xff).into()), length)),
            (any::<u128>(), 0..=128_u8)
                .prop_map(|(address, length)| IpNet::new(IpAddr::V6((address & 0xffff).into()), length)),
            (any::<u8>(), 96..=128_u8).prop_map(|(address, length)| {
                IpNet::new(IpAddr::V6(Ipv4Addr::from(u32::from(address)).to_ipv6_mapped()), length)
            }),
        ]
        .prop_map(|prefix| prefix.unwrap().trunc())
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_difference_when_it_is_in_one_alone(
            one in proptest::collection::vec(prefix(), 0..6),
            other in proptest::collection::vec(prefix(), 0..6),
            near in proptest::collection::vec(any::<u16>(), 40),
            far in proptest::collection::vec(any::<u128>(), 8),
        ) {
            let found: Vec<IpNet> = Networks::difference(&one, &other).prefixes().collect();
            let (one, other) = (AddressSet::new(one), AddressSet::new(other));
            let difference = AddressSet::new(found.clone());
            let near = near.into_iter().flat_map(|number| {
                [IpAddr::V4(u32::from(number & 0x1ff).into()), IpAddr::V6(u128::from(number).into())]
            });
            for address in near.chain(far.into_iter().map(|number| IpAddr::V6(number.into()))) {
                prop_assert_eq!(difference.contains(address), one.contains(address) && !other.contains(address));
            }
            for (at, prefix) in found.iter().enumerate() {
                let beside = |other: &IpNet| prefix.prefix_len() == other.prefix_len()
                    && prefix.supernet().is_some() && prefix.supernet() == other.supernet();
                prop_assert!(!found[..at].iter().any(beside), "two that make one: {:?}", found);
            }
        }
    }
}
