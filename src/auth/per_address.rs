//! Rate limits by client address: for failed authentications (contract section 2, `unauthenticated_per_ip`) and for
//! requests of customers' pages.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};

use crate::domain::{Quota, subscriber_network};

type Limiter<K, S, C> = RateLimiter<K, S, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The most addresses that are counted individually. Each takes some 50 bytes.
const MAX_TRACKED_ADDRESSES: usize = 65_536;

/// The shortest time between two removals of recovered addresses.
const MIN_CLEANUP_INTERVAL: Duration = Duration::from_secs(1);

/// A rate limiter for each address.
///
/// Memory is bounded: while the table is full, all addresses share one quota. IPv6 addresses count by their /64, which is
/// what one subscriber has.
#[derive(Debug)]
pub struct PerAddress<C: Clock = DefaultClock> {
    clock: C,
    tracked: usize,
    counts: Mutex<Arc<Counts<C>>>,
}

#[derive(Debug)]
struct Counts<C: Clock> {
    quota: Quota,
    by_source: Limiter<IpAddr, DashMapStateStore<IpAddr>, C>,
    overflow: Limiter<NotKeyed, InMemoryState, C>,
    cleaned_at: Mutex<C::Instant>,
}

impl PerAddress {
    /// Creates an unused limiter.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::with_clock(quota, DefaultClock::default(), MAX_TRACKED_ADDRESSES)
    }
}

impl<C: Clock + Clone> PerAddress<C> {
    fn with_clock(quota: Quota, clock: C, tracked: usize) -> Self {
        let counts = Mutex::new(Arc::new(Counts::new(quota, &clock)));
        Self { clock, tracked, counts }
    }

    /// Counts one event of `address`. `quota` is that of the current rules; when it has changed, counting starts again.
    ///
    /// # Errors
    /// The quota is exceeded: the time until the next event is allowed.
    pub fn count(&self, address: IpAddr, quota: Quota) -> Result<(), Duration> {
        let counts = self.counts(quota);
        let now = self.clock.now();
        let checked = if counts.has_room(self.tracked, now) {
            counts.by_source.check_key(&subscriber_network(address))
        } else {
            counts.overflow.check()
        };
        checked.map_err(|not_until| not_until.wait_time_from(now))
    }

    fn counts(&self, quota: Quota) -> Arc<Counts<C>> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.quota != quota {
            *counts = Arc::new(Counts::new(quota, &self.clock));
        }
        Arc::clone(&counts)
    }
}

impl<C: Clock + Clone> Counts<C> {
    fn new(quota: Quota, clock: &C) -> Self {
        let rate = governor::Quota::per_second(quota.per_second).allow_burst(quota.burst);
        Self {
            quota,
            by_source: RateLimiter::new(rate, DashMapStateStore::default(), clock.clone()),
            overflow: RateLimiter::direct_with_clock(rate, clock.clone()),
            cleaned_at: Mutex::new(clock.now()),
        }
    }

    /// Reports whether an address may be counted individually.
    fn has_room(&self, tracked: usize, now: C::Instant) -> bool {
        if self.by_source.len() < tracked {
            return true;
        }
        let mut cleaned_at = self.cleaned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if Duration::from(now.duration_since(*cleaned_at)) < MIN_CLEANUP_INTERVAL {
            return false;
        }
        *cleaned_at = now;
        self.by_source.retain_recent();
        self.by_source.len() < tracked
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn quota(per_second: u32, burst: u32) -> Quota {
        Quota { per_second: NonZeroU32::new(per_second).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
    }

    fn fails(failures: &PerAddress<FakeRelativeClock>, address: &str) -> bool {
        failures.count(address.parse().unwrap(), quota(1, 2)).is_err()
    }

    #[test]
    fn an_address_recovers_as_the_quota_says() {
        let clock = FakeRelativeClock::default();
        let failures = PerAddress::with_clock(quota(1, 2), clock.clone(), MAX_TRACKED_ADDRESSES);
        assert!(!fails(&failures, "192.0.2.1"));
        assert!(!fails(&failures, "::ffff:192.0.2.1"));
        let wait = failures.count("192.0.2.1".parse().unwrap(), quota(1, 2)).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
        assert!(!fails(&failures, "192.0.2.2"), "another address");
        clock.advance(Duration::from_secs(1));
        assert!(!fails(&failures, "192.0.2.1"));
        assert!(fails(&failures, "192.0.2.1"));
    }

    #[test]
    fn an_ipv6_network_counts_as_one() {
        let failures = PerAddress::with_clock(quota(1, 2), FakeRelativeClock::default(), MAX_TRACKED_ADDRESSES);
        assert!(!fails(&failures, "2001:db8::1"));
        assert!(!fails(&failures, "2001:db8::2"));
        assert!(fails(&failures, "2001:db8::3"));
        assert!(!fails(&failures, "2001:db8:0:1::1"));
    }

    #[test]
    fn addresses_beyond_the_bound_share_a_quota_until_others_recover() {
        let clock = FakeRelativeClock::default();
        let failures = PerAddress::with_clock(quota(1, 2), clock.clone(), 2);
        for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"] {
            assert!(!fails(&failures, address), "{address}");
        }
        assert!(fails(&failures, "192.0.2.5"), "the shared quota is used up");
        assert_eq!(failures.counts(quota(1, 2)).by_source.len(), 2);
        clock.advance(Duration::from_secs(10));
        assert!(!fails(&failures, "192.0.2.5"));
        assert!(!fails(&failures, "192.0.2.5"));
        assert!(fails(&failures, "192.0.2.5"), "it is counted by itself now");
        assert!(!fails(&failures, "192.0.2.6"));
    }

    #[test]
    fn a_changed_quota_counts_anew() {
        let failures = PerAddress::with_clock(quota(1, 1), FakeRelativeClock::default(), MAX_TRACKED_ADDRESSES);
        let address = "192.0.2.1".parse().unwrap();
        assert!(failures.count(address, quota(1, 1)).is_ok());
        assert!(failures.count(address, quota(1, 1)).is_err());
        assert!(failures.count(address, quota(1, 3)).is_ok());
        assert!(failures.count(address, quota(1, 3)).is_ok());
    }
}
