//! Counts failed sign-ins by address.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::request::PeerAddress;
use crate::domain::subscriber_network;

/// How many failures an address may have within [`FAILURE_WINDOW`].
pub(super) const MAX_FAILURES: usize = 10;
pub(super) const FAILURE_WINDOW: Duration = Duration::from_mins(1);

/// The most addresses that are counted individually.
const MAX_ADDRESSES: usize = 4096;

/// The failures of the last minute, by address. Memory is bounded: addresses beyond [`MAX_ADDRESSES`] share one count
/// (`None`) until others recover. IPv6 addresses count by their /64, which is what one subscriber has.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<Option<PeerAddress>, VecDeque<Instant>>>);

impl Failures {
    /// Counts a failure.
    ///
    /// # Errors
    /// The address had too many: how long it has to wait.
    pub(super) fn count(&self, address: PeerAddress, now: Instant) -> Result<(), Duration> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut address = Some(network(address));
        if !known.contains_key(&address) && known.len() >= MAX_ADDRESSES {
            known.retain(|_, times| times.back().is_some_and(|last| now < *last + FAILURE_WINDOW));
            if known.len() >= MAX_ADDRESSES {
                address = None;
            }
        }
        let times = known.entry(address).or_default();
        while times.front().is_some_and(|first| *first + FAILURE_WINDOW <= now) {
            times.pop_front();
        }
        match times.front() {
            Some(first) if times.len() >= MAX_FAILURES => Err((*first + FAILURE_WINDOW).saturating_duration_since(now)),
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

fn network(address: PeerAddress) -> PeerAddress {
    match address {
        PeerAddress::Ip(address) => PeerAddress::Ip(subscriber_network(address)),
        PeerAddress::Unix => PeerAddress::Unix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    fn peer(address: &str) -> PeerAddress {
        PeerAddress::Ip(address.parse().unwrap())
    }

    #[test]
    fn an_address_has_ten_failures_a_minute() {
        let failures = Failures::default();
        let began = SystemClock.monotonic();
        let at = |second: u64| began + Duration::from_secs(second);
        for second in 0..10 {
            assert_eq!(failures.count(peer("192.0.2.1"), at(second)), Ok(()));
        }
        assert_eq!(failures.count(peer("::ffff:192.0.2.1"), at(20)), Err(Duration::from_secs(40)));
        assert_eq!(failures.count(PeerAddress::Unix, at(20)), Ok(()), "another address");
        assert_eq!(failures.count(peer("192.0.2.1"), at(60)), Ok(()), "the first one is a minute old");
        assert_eq!(failures.count(peer("192.0.2.1"), at(60)), Err(Duration::from_secs(1)));
        for _ in 0..10 {
            assert_eq!(failures.count(peer("2001:db8::1"), at(0)), Ok(()));
        }
        assert!(failures.count(peer("2001:db8::2"), at(0)).is_err());
        assert_eq!(failures.count(peer("2001:db8:0:1::2"), at(0)), Ok(()));
    }

    #[test]
    fn addresses_beyond_the_bound_share_a_count_until_others_recover() {
        let failures = Failures::default();
        let now = SystemClock.monotonic();
        let other =
            |number: usize| PeerAddress::Ip(std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into());
        for number in 0..MAX_ADDRESSES + MAX_FAILURES {
            assert_eq!(failures.count(other(number), now), Ok(()));
        }
        assert!(failures.count(other(MAX_ADDRESSES + MAX_FAILURES), now).is_err());
        assert_eq!(failures.0.lock().unwrap().len(), MAX_ADDRESSES + 1);
        assert_eq!(failures.count(other(MAX_ADDRESSES + MAX_FAILURES), now + FAILURE_WINDOW), Ok(()));
        assert_eq!(failures.0.lock().unwrap().len(), 1);
    }
}
